"""`pitot lat` against known delays, stalls, losses and clocks.

What pitot reports is the injected figure plus what this machine adds: the stack and two wake-ups, 0.02 to
0.2 ms, more while other work runs. So a median may be 0.3 ms above what was injected and never below; a
tail some ms above. Counts are exact.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
from truth import Bench, between, binomial, each_engine, go_first, near, timing  # noqa: E402

go_first()
UDP = ("-u", "--warmup", "0s")
TCP = ("--warmup", "0s")


def _lat(bench, truth, *args, rc=0, limit=30):
    run = bench.pitot(0, "lat", truth.at, *args, limit=limit)
    assert run.rc == rc, run
    return run.doc


@each_engine
@timing
def test_a_fixed_delay_is_that_delay(engine):
    for kind in (UDP, TCP):
        with Bench() as bench:
            truth = bench.truth("--delay", "5ms")
            doc = _lat(bench, truth, *kind, "-d", "1s", *engine)
            injected = bench.injected(truth)
            latency = doc["latency"]
            assert latency["min_us"] >= 5000, "an answer came before it left"
            between(latency["p50_us"], 5000, 5300, "p50")
            between(latency["p90_us"], 5000, 6500, "p90")
            assert doc["totals"]["ok"] == latency["count"]
            near(injected["departed"], doc["totals"]["operations"], 1, "what both ends saw")


@each_engine
@timing
def test_two_delays_give_two_percentiles(engine):
    with Bench() as bench:
        truth = bench.truth("--delay", "table:1ms=90,10ms=10", "--seed", "5")
        doc = _lat(bench, truth, *UDP, "-n", "1000", *engine)
        bench.injected(truth)
        latency = doc["latency"]
        # p90 itself sits on the edge; 85 and 93 are 5 and 3 standard deviations of the share away.
        between(latency["p75_us"], 1000, 1300, "p75")
        between(latency["p95_us"], 10000, 11000, "p95")
        between(latency["p99_us"], 10000, 12000, "p99")
        error = binomial(1000, 0.1) / 1000 * 9000
        near(latency["mean_us"], 1900, error + 150, "mean: 0.9 × 1 ms + 0.1 × 10 ms")


@each_engine
@timing
def test_an_open_loop_feels_the_whole_stall(engine):
    """A reflector that sleeps 100 ms in each second, under 1,000 probes/s: a tenth of them fall into a
    stall, evenly, so p95 is its middle and p99 its nine tenths, and half of them notice nothing."""
    for kind in (UDP, TCP):
        with Bench() as bench:
            truth = bench.truth("--stall", "100ms/1s@500ms")
            doc = _lat(bench, truth, *kind, "-r", "1000", "-d", "4s", *engine)
            injected = bench.injected(truth)
            latency = doc["latency"]
            near(doc["totals"]["operations"], 4000, 2, "operations")
            between(latency["p50_us"], 0, 300, "p50, unaffected")
            near(latency["p95_us"], 50000, 4000, "p95 (1 ms between probes; 4 stalls; this machine)")
            near(latency["p99_us"], 90000, 3000, "p99")
            near(latency["max_us"], 100000, 4000, "max")
            near(latency["p95_us"], injected["delay"]["p95_us"], 3000, "p95 as injected")
            assert doc["generator"]["valid"] is True, doc["generator"]


@timing
def test_a_closed_loop_hides_the_stall():
    """The same reflector asked one question at a time: while it sleeps nobody asks, so each stall costs one
    slow answer among thousands. That is coordinated omission, and why the loop is named in the result."""
    with Bench() as bench:
        truth = bench.truth("--stall", "100ms/1s@500ms")
        doc = _lat(bench, truth, *UDP, "-d", "3s")
        injected = bench.injected(truth)
        between(doc["latency"]["p99_us"], 0, 5000, "p99, which an open loop sees at 90 ms")
        between(doc["latency"]["max_us"], 99000, 110000, "max")
        assert injected["stalled"] == 3, injected


@timing
def test_one_request_behind_another_waits_in_an_open_loop():
    """With one request in flight per connection the service time leaves out the wait, the latency does not."""
    with Bench() as bench:
        truth = bench.truth("--stall", "100ms/1s@500ms")
        doc = _lat(bench, truth, *TCP, "-r", "1000", "-d", "3s")
        bench.injected(truth)
        assert doc["service_time"]["p99_us"] <= doc["latency"]["p99_us"]
        near(doc["latency"]["p99_us"], 90000, 3000, "p99")


@each_engine
def test_lost_answers_time_out_and_the_run_goes_on(engine):
    with Bench() as bench:
        truth = bench.truth("--loss", "every:50")
        doc = _lat(bench, truth, *UDP, "-n", "500", "--timeout", "60ms", *engine)
        injected = bench.injected(truth)
        totals = doc["totals"]
        assert injected["lost"] == 10
        assert totals["errors"]["timeout"] == totals["lost_packets"] == 10, totals
        assert totals["operations"] == injected["offered"] == 500, totals
        assert totals["ok"] == 490, totals


def test_what_comes_after_its_timeout_is_late_not_lost_twice():
    with Bench() as bench:
        truth = bench.truth("--stall", "300ms@200ms")
        doc = _lat(bench, truth, *UDP, "-r", "500", "-d", "1s", "--timeout", "100ms")
        injected = bench.injected(truth)
        totals = doc["totals"]
        near(injected["stalled"], 150, 3, "stalled")
        # Those of the first 200 ms of the stall waited longer than the timeout.
        near(totals["errors"]["timeout"], 100, 10, "timed out")
        assert totals["late_packets"] == totals["errors"]["timeout"], totals
        assert injected["lost"] == 0


def test_duplicates_and_reordering_are_counted():
    with Bench() as bench:
        truth = bench.truth("--dup", "every:41", "--reorder", "every:47:by:3")
        doc = _lat(bench, truth, *UDP, "-r", "1000", "-d", "2s")
        injected = bench.injected(truth)
        totals = doc["totals"]
        assert totals["duplicate_packets"] == injected["duplicated"] == 48, (totals, injected)
        assert totals["reordered_packets"] == injected["reordered"], (totals, injected)
        assert injected["reordered"] == injected["held"] == 42, injected
        assert totals["ok"] == totals["operations"], totals


def test_the_clock_of_the_other_side_is_found_within_its_error_bar():
    for path in ((), ("--delay", "2ms")):
        for offset in (3000, -250000):
            with Bench() as bench:
                truth = bench.truth(f"--clock-offset={offset}us", *path)
                doc = _lat(bench, truth, *UDP, "--one-way", "-d", "1s")
                bench.injected(truth)
                one_way = doc["one_way"]
                error = one_way["offset_error_us"]
                near(one_way["offset_us"], offset, error, f"offset with {path or 'nothing'} in the way")
                # The bar is half of the fastest round trip: honest, and no wider than it must be.
                between(error, 0, 2000 if path else 500, "error bar")
                if path:
                    # All of the delay is on the way there; the estimate cannot know, its bar says so.
                    between(one_way["forward"]["p50_us"] + error, 2000, 4500, "forward, upper end")


@timing
def test_an_outage_shows_as_a_stall_with_a_warning():
    with Bench() as bench:
        truth = bench.truth("--stall", "2s@1s")
        doc = _lat(bench, truth, *UDP, "-r", "500", "-d", "5s")
        injected = bench.injected(truth)
        near(injected["stalled"], 1000, 5, "stalled")
        near(doc["latency"]["max_us"], 2000000, 20000, "max")
        between(doc["latency"]["p50_us"], 0, 300, "p50: three in five probes saw nothing")
        assert any("stall" in w or "silen" in w for w in doc["warnings"]), doc["warnings"]
        # And it shows in the series: no answers in the seconds of the outage.
        quiet = [row for row in doc["series"] if row["ok"] == 0]
        assert quiet, [row["ok"] for row in doc["series"]]
