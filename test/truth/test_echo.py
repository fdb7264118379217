"""The truth server itself, judged by an independent prober and by its own record.

Every other truth test rests on this file. The prober is Python on a machine that may be busy: it is at
times late to send (it notes when it did) and late to note an arrival. So lower bounds are exact (nothing
may arrive before its delay is over), medians are within 0.5 ms, tails within some ms, counts exact.
"""
import os
import socket
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))
import probe  # noqa: E402
from lab import binary  # noqa: E402
from truth import Bench, between, binomial, go_first, near, timing  # noqa: E402

go_first()


def _udp(bench, *options):
    truth = bench.truth("--echo", "udp:0", *options)
    return truth, ("127.0.0.1", truth.port)


@timing
def test_a_perfect_path_adds_nothing():
    with Bench() as bench:
        truth, at = _udp(bench)
        probes = probe.udp(at, 1000, 1000)
        doc = bench.injected(truth)
        assert probes.lost == [] and probes.duplicates == 0 and probes.reordered == 0
        assert doc["offered"] == doc["departed"] == 1000
        assert doc["delay"]["max_us"] == 0
        between(probes.quantile(0.5), 0, 0.5, "p50 in ms")


@timing
def test_a_fixed_delay_is_that_delay():
    with Bench() as bench:
        truth, at = _udp(bench, "--delay", "5ms")
        probes = probe.udp(at, 1000, 2000)
        doc = bench.injected(truth)
        assert probes.lost == []
        between(min(probes.rtts_ms().values()), 5, 5.3, "the fastest in ms")
        between(probes.quantile(0.5), 5, 5.5, "p50 in ms")
        between(probes.quantile(0.9), 5, 7, "p90 in ms")
        near(doc["delay"]["p50_us"], 5000, 5, "injected p50")
        between(doc["lateness"]["p50_us"], 0, 50, "the truth's own lateness, p50 in us")


@timing
def test_two_delays_come_in_their_shares():
    with Bench() as bench:
        truth, at = _udp(bench, "--delay", "table:1ms=90,10ms=10", "--overtake", "--seed", "7")
        probes = probe.udp(at, 1000, 3000)
        doc = bench.injected(truth)
        slow = sum(1 for ms in probes.rtts_ms().values() if ms >= 10)
        near(slow, 300, binomial(3000, 0.1) + 30, "slow ones (1 % of the fast ones may be held up here)")
        between(probes.quantile(0.5), 1, 1.5, "p50 in ms")
        between(probes.quantile(0.97), 10, 12, "p97 in ms")
        near(doc["delay"]["p99_us"], 10000, 10, "injected p99")
        # A slow packet is overtaken by some later fast one, as a rule.
        assert doc["reordered"] > 150
        near(probes.reordered, doc["reordered"], 5, "reordered (a tie within one read may hide one)")


@timing
def test_a_stall_each_second_has_its_percentiles():
    with Bench() as bench:
        truth, at = _udp(bench, "--stall", "100ms/1s@500ms")
        probes = probe.udp(at, 1000, 4000)
        doc = bench.injected(truth)
        assert probes.lost == [] and probes.reordered == 0
        near(doc["stalled"], 400, 8, "stalled: 100 in each of 4 s, the edges may fall either way")
        between(probes.quantile(0.5), 0, 0.5, "p50 in ms")
        near(probes.quantile(0.95), 50, 5, "p95 in ms")
        near(probes.quantile(0.99), 90, 4, "p99 in ms")
        near(doc["delay"]["p95_us"], 50000, 2000, "injected p95")
        near(doc["delay"]["p99_us"], 90000, 2000, "injected p99")


def test_every_nth_is_lost_doubled_and_late():
    with Bench() as bench:
        truth, at = _udp(bench, "--loss", "every:100", "--dup", "every:33", "--reorder", "every:50:by:3")
        probes = probe.udp(at, 2000, 4000)
        doc = bench.injected(truth)
        assert probes.lost == list(range(99, 4000, 100)), probes.lost
        assert doc["lost"] == 40
        assert probes.duplicates == doc["duplicated"] == (4000 - 40) // 33
        assert doc["held"] == (4000 - 40) // 50
        assert probes.reordered == doc["reordered"]
        near(doc["reordered"], doc["held"], 1, "reordered (the last one held may have nobody behind it)")


def test_random_loss_is_counted_exactly():
    with Bench() as bench:
        truth, at = _udp(bench, "--loss", "burst:1%:25%", "--seed", "3")
        probes = probe.udp(at, 2000, 5000)
        doc = bench.injected(truth)
        assert len(probes.lost) == doc["lost"] > 0
        # Mean burst of 4: the variance of the share is (1 + c) / (1 - c) larger, c = 1 - p - r = 0.74.
        near(doc["lost"], 5000 * 0.01 / 0.26, binomial(5000, 0.0385) * 2.6, "lost")


@timing
def test_a_rate_cap_is_exact():
    with Bench() as bench:
        truth, at = _udp(bench, "--rate-cap", "500:queue:100ms")
        probes = probe.udp(at, 1500, 3000)
        doc = bench.injected(truth)
        assert doc["rate_dropped"] == len(probes.lost) > 0
        first, last = probes.arrivals[0][1], probes.arrivals[-1][1]
        rate = (len(probes.arrivals) - 1) / ((last - first) / 1e9)
        near(rate, 500, 2.5, "packets/s (0.5 %: one late note of 5 ms at either end of 2 s)")
        # 51 fit: one on the link, and the queue until it is more than 100 ms deep.
        between(probes.quantile(0.5), 99, 105, "p50 in ms: the depth of the queue and one packet")


@timing
def test_an_outage_happens_once():
    with Bench() as bench:
        truth, at = _udp(bench, "--stall", "500ms@1s")
        probes = probe.udp(at, 500, 1000)
        doc = bench.injected(truth)
        near(doc["stalled"], 250, 3, "stalled")
        slow = [n for n, ms in probes.rtts_ms().items() if ms > 100]
        near(len(slow), 200, 10, "slower than 100 ms")
        near(min(slow), 500, 10, "the first of them")
        near(max(probes.rtts_ms().values()), 500, 10, "the longest in ms")


def _exchange(at, data, limit_s=10):
    """Sends `data` on a TCP connection while reading it back; returns what came and the seconds."""
    with socket.create_connection(at, 5) as sock:
        sock.settimeout(limit_s)
        begun, sent, got = time.monotonic(), 0, bytearray()
        sock.setblocking(False)
        while len(got) < len(data):
            if time.monotonic() - begun > limit_s:
                raise AssertionError(f"{len(got)} of {len(data)} bytes came back in {limit_s} s")
            try:
                if sent < len(data):
                    sent += sock.send(data[sent:sent + 65536])
            except BlockingIOError:
                pass
            try:
                got += sock.recv(1 << 20)
            except BlockingIOError:
                time.sleep(0.0005)
        return bytes(got), time.monotonic() - begun


def test_tcp_is_delayed_in_order():
    with Bench() as bench:
        truth = bench.truth("--echo", "tcp:0", "--delay", "uniform:1ms-4ms", "--stall", "50ms/500ms@100ms")
        data = os.urandom(1 << 20)
        got, seconds = _exchange(("127.0.0.1", truth.port), data)
        doc = bench.injected(truth)
        assert got == data
        between(seconds, 0.001, 5, "seconds")
        assert doc["departed_bytes"] == len(data)


@timing
def test_tcp_round_trips_take_the_delay():
    with Bench() as bench:
        truth = bench.truth("--echo", "tcp:0", "--delay", "3ms")
        times = []
        with socket.create_connection(("127.0.0.1", truth.port), 5) as sock:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.settimeout(5)
            for _ in range(200):
                begun = time.monotonic_ns()
                sock.send(b"x" * 14)
                assert len(sock.recv(64)) == 14
                times.append((time.monotonic_ns() - begun) / 1e6)
        doc = bench.injected(truth)
        assert doc["departed"] == 200
        assert min(times) >= 3
        between(sorted(times)[100], 3, 3.5, "p50 in ms")


@timing
def test_tcp_rate_cap_holds_back_and_loses_nothing():
    with Bench() as bench:
        truth = bench.truth("--echo", "tcp:0", "--rate-cap", "80mbit")
        data = os.urandom(6_000_000)
        got, seconds = _exchange(("127.0.0.1", truth.port), data)
        doc = bench.injected(truth)
        assert got == data
        near(seconds, len(data) * 8 / 80e6, 0.03, "seconds for 48 Mbit at 80 Mbit/s")
        assert doc["rate_dropped"] == 0


def test_a_stream_cannot_lose_bytes():
    with Bench() as bench:
        run = bench.start(0, binary(), "truth", "--echo", "tcp:0", "--loss", "1%")
        assert run.wait(10) == 2
        assert "loss" in run.text() and "TCP" in run.text(), run.text()


def test_strangers_get_no_echo():
    with Bench() as bench:
        truth = bench.truth("--echo", "udp:0", "--allow", "10.77.0.0/16")
        probes = probe.udp(("127.0.0.1", truth.port), 1000, 20, drain_s=0.2)
        doc = bench.injected(truth)
        assert probes.arrivals == []
        assert doc["refused"] == 20 and doc["offered"] == 0


def test_the_same_seed_injects_the_same():
    lost = []
    for _ in range(2):
        with Bench() as bench:
            truth, at = _udp(bench, "--loss", "5%", "--seed", "42")
            lost.append(probe.udp(at, 4000, 1000, drain_s=0.2).lost)
            bench.injected(truth)
    assert lost[0] == lost[1] and lost[0]
