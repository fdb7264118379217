"""`pitot pps` and `pitot bw` against known loss, duplication, reordering and rates."""
import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
from truth import Bench, between, binomial, each_engine, limit, near, timing  # noqa: E402

PLAIN = ("--path", "plain", "--warmup", "0s", "-t", "1")


def _run(bench, truth, *args, limit=30):
    run = bench.pitot(0, *args[:1], truth.at, *args[1:], limit=limit)
    assert run.rc == 0, run
    return run.doc


@each_engine
@timing
def test_loss_duplicates_and_reordering_equal_what_was_injected(engine):
    """Slow enough that neither socket ever overflows: then every count is the injected one, exactly. (By
    number, not by time: a timed run sends a little longer than its figures last, and that is injected too.)"""
    with Bench() as bench:
        truth = bench.truth("--loss", "every:100", "--dup", "every:70", "--reorder", "every:50:by:3")
        doc = _run(bench, truth, "pps", *PLAIN, "-c", "1", "-r", "1000", "-n", "2010", *engine)
        injected = bench.injected(truth)
        totals = doc["totals"]
        assert totals["tx_packets"] == injected["offered"] == 2010, (totals, injected)
        assert totals["lost_packets"] == injected["lost"] == 20, (totals, injected)
        assert totals["duplicate_packets"] == injected["duplicated"], (totals, injected)
        assert totals["reordered_packets"] == injected["reordered"], (totals, injected)
        assert totals["rx_packets"] == injected["departed"], (totals, injected)


@timing
def test_bursts_over_several_flows_add_up():
    with Bench() as bench:
        truth = bench.truth("--loss", "burst:2%:20%", "--seed", "9")
        doc = _run(bench, truth, "pps", *PLAIN, "-c", "8", "-r", "4000", "-n", "1000")
        injected = bench.injected(truth)
        totals = doc["totals"]
        assert totals["lost_packets"] == injected["lost"] > 0, (totals, injected)
        # Mean burst of 5, c = 1 - p - r = 0.78: the variance of the share is (1 + c) / (1 - c) larger.
        near(injected["lost"], 8000 * 2 / 22, binomial(8000, 2 / 22) * 2.85, "lost")


@timing
def test_received_packets_keep_to_a_rate_cap():
    with Bench() as bench:
        truth = bench.truth("--rate-cap", "5k")
        doc = _run(bench, truth, "pps", *PLAIN, "-c", "4", "-r", "10000", "-d", "3s")
        injected = bench.injected(truth)
        near(doc["rates"]["rx_packets_per_s"], 5000, 100, "packets/s (2 %: the queue of 50 ms in 3 s)")
        between(doc["totals"]["lost_packets"], 0, injected["rate_dropped"], "lost, without what came after the window")


@timing
def test_what_a_full_queue_drops_is_counted():
    with Bench() as bench:
        truth = bench.truth("--rate-cap", "5k:queue:20ms")
        doc = _run(bench, truth, "pps", *PLAIN, "-c", "4", "-r", "10000", "-n", "2500")
        injected = bench.injected(truth)
        assert injected["rate_dropped"] > 4000, injected
        assert doc["totals"]["lost_packets"] == injected["rate_dropped"], (doc["totals"], injected)
        assert doc["totals"]["rx_packets"] == injected["departed"], (doc["totals"], injected)


@limit(120)
@timing
def test_the_search_finds_the_knee():
    """Loss begins where the offered rate passes the cap: that is the answer, whatever lies above it."""
    with Bench() as bench:
        truth = bench.truth("--rate-cap", "8k:queue:10ms")
        doc = _run(bench, truth, "pps", *PLAIN, "-c", "4", "-d", "1s",
                   "--search", "loss<=0.1%", limit=55)
        bench.injected(truth)
        near(doc["rates"]["rx_packets_per_s"], 8000, 400, "packets/s (the step of the search, and 10 ms of queue)")


@each_engine
@timing
def test_udp_bandwidth_keeps_to_a_rate_cap(engine):
    with Bench() as bench:
        truth = bench.truth("--rate-cap", "40mbit")
        doc = _run(bench, truth, "bw", "-u", "--warmup", "0s", "-r", "60mbit", "-d", "3s", *engine)
        bench.injected(truth)
        near(doc["rates"]["rx_bits_per_s"], 40e6, 0.8e6, "bit/s (2 %: the queue of 50 ms in 3 s)")


@each_engine
@timing
def test_tcp_bandwidth_keeps_to_a_rate_cap(engine):
    with Bench() as bench:
        truth = bench.truth("--rate-cap", "100mbit")
        doc = _run(bench, truth, "bw", "--warmup", "1s", "-d", "3s", *engine)
        injected = bench.injected(truth)
        near(doc["rates"]["rx_bits_per_s"], 100e6, 3e6, "bit/s (a chunk of 64 KiB and a queue of 50 ms in 3 s)")
        assert injected["rate_dropped"] == 0


def test_an_exact_transfer_through_delay_and_stalls_is_exact():
    with Bench() as bench:
        truth = bench.truth("--delay", "uniform:1ms-3ms", "--stall", "50ms/300ms")
        doc = _run(bench, truth, "bw", "--warmup", "0s", "--bytes", "3000001")
        injected = bench.injected(truth)
        assert doc["totals"]["rx_bytes"] == 3000001, doc["totals"]
        assert injected["departed_bytes"] == 3000001, injected
        # 3 MB leave the sender within a millisecond or so and the path between 1 and 3 ms later, unless a
        # stall (the first begins with the first chunk) holds them for its 50 ms.
        between(doc["duration_s"], 0.001, 1, "seconds")
