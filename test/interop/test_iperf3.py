"""Debian's iperf3 at the other end, as server and as client: every direction, one and eight streams, both families."""
import concurrent.futures
import itertools
import json
import queue
import subprocess

import bounded
from lab import Lab, Local, binary, join
from tap import limit

TRIES = 3  # a machine that pauses for so long has measured nothing
SIDES = list(itertools.product(("tcp", "udp"), ("forward", "reverse", "bidir"), (1, 8), ("127.0.0.1", "::1")))
RATE = 40e6  # bit/s in all: what is asked for must come, whatever the machine does beside it


def stock(lab, *words, limit=20):
    """Runs the stock client; its JSON and exit status."""
    argv = ["iperf3", *words, "-J"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=limit, preexec_fn=bounded.die_with_parent)
    return json.loads(done.stdout or "{}"), done


def stock_server(lab, number):
    process = lab.start(0, "iperf3", "-s", "--forceflush", "-p", str(number))
    process.wait_line("Server listening")
    return number


def port_of():
    """Ports of this test: they differ from run to run."""
    import os
    return itertools.count(20000 + os.getpid() % 20000)


def each(pool_of, work, cases):
    """work(resource, case) for all cases, as many at once as there are resources."""
    free = queue.Queue()
    for resource in pool_of:
        free.put(resource)

    def one(case):
        resource = free.get()
        try:
            return work(resource, case)
        finally:
            free.put(resource)
    with concurrent.futures.ThreadPoolExecutor(len(pool_of)) as pool:
        return list(pool.map(one, cases))


def near(value, want, by=0.12):
    return abs(value - want) <= by * want


@limit(120)
def test_pitot_measures_against_the_stock_server():
    ports = port_of()

    def measure(port, case):
        proto, way, streams, host = case
        words = ["bw", "--peer", "iperf3", join(host, port), "-c", str(streams), "-r", f"{RATE / 1e6:.0f}mbit", "-d", "500ms", "-q"]
        words += {"forward": [], "reverse": ["-R"], "bidir": ["--bidir"]}[way]
        words += ["-u", "-s", "1200"] if proto == "udp" else ["--warmup", "0s"]
        for _ in range(TRIES):
            run = lab.pitot(0, *words)
            if run.rc == 0 and all(near(r, RATE) for r in received(run.doc, way)) and not run.doc["totals"].get("lost_packets"):
                break
        assert run.rc == 0 and run.doc["status"] == "ok", run
        assert run.doc["peer"]["software"] == "iperf3" and run.doc["peer"]["address"].endswith(str(port)), run.doc["peer"]
        assert all(near(r, RATE) for r in received(run.doc, way)), (run.doc["rates"], run.doc.get("directions"), run)
        totals = run.doc["totals"]
        if proto == "udp":
            assert totals["lost_packets"] == 0 == totals["duplicate_packets"], totals
            assert totals["rx_packets"] == totals["tx_packets"] > 0, totals
        if way == "forward":
            assert totals["tx_bytes"] == totals["rx_bytes"] or proto == "tcp", totals
        assert len(run.doc["flows"]) == streams * (2 if way == "bidir" else 1)

    def received(doc, way):
        return [d["rates"]["rx_bits_per_s"] for d in doc["directions"]] if way == "bidir" else [doc["rates"]["rx_bits_per_s"]]

    with Local() as lab:
        servers = [stock_server(lab, next(ports)) for _ in range(3)]
        each(servers, measure, SIDES)


@limit(120)
def test_the_stock_client_measures_against_pitot():
    """Four at once, which a stock server would refuse."""
    ports = port_of()
    with Local() as lab:
        port = next(ports)
        lab.serve(0, "--listen", "127.0.0.1:0", "--listen", "[::1]:0", "--compat", "iperf3", "--iperf3-port", str(port)).wait_line("clients of iperf3")

        def measure(_, case):
            proto, way, streams, host = case
            words = ["-c", host, "-p", str(port), "-P", str(streams), "-t", "1", "-b", str(int(RATE / streams))]
            words += {"forward": [], "reverse": ["-R"], "bidir": ["--bidir"]}[way] + (["-u", "-l", "1200"] if proto == "udp" else [])
            for _ in range(TRIES):
                doc, done = stock(lab, *words)
                end = doc.get("end", {})
                sums = [end.get(key, {}) for key in (("sum", "sum_bidir_reverse") if proto == "udp" else
                                                     ("sum_received", "sum_received_bidir_reverse"))[:2 if way == "bidir" else 1]]
                if done.returncode == 0 and all(near(s.get("bits_per_second", 0), RATE) and not s.get("lost_packets") for s in sums):
                    break
            assert done.returncode == 0 and "error" not in doc, done
            assert all(near(s["bits_per_second"], RATE) for s in sums), (case, sums)
            if proto == "udp":
                assert all(s["lost_packets"] == 0 and s["packets"] > 0 for s in sums), (case, sums)
            elif way == "forward":
                assert end["sum_sent"]["bytes"] == end["sum_received"]["bytes"], (case, end["sum_sent"], end["sum_received"])
        each(range(4), measure, SIDES)


@limit(60)
def test_counted_transfers_are_counted_whole():
    ports = port_of()
    with Local() as lab:
        port = stock_server(lab, next(ports))
        for words, want in ((["--bytes", "10M"], 10_000_000), (["--bytes", "1000001", "-c", "3"], 1_000_001),
                            (["-u", "--bytes", "600000", "-s", "1000", "-r", "80mbit"], 600_000)):
            for _ in range(TRIES):
                run = lab.pitot(0, "bw", "--peer", "iperf3", f"127.0.0.1:{port}", *words, "-q")
                if run.rc == 0 and run.doc["totals"]["rx_bytes"] == want:
                    break
            assert run.rc == 0 and run.doc["totals"]["tx_bytes"] == run.doc["totals"]["rx_bytes"] == want, run
        run = lab.pitot(0, "bw", "--peer", "iperf3", f"127.0.0.1:{port}", "-R", "--bytes", "1M", "-q")
        assert run.rc == 0 and run.doc["totals"]["rx_bytes"] >= 1_000_000, run
        server = next(ports)
        lab.serve(0, "--compat", "iperf3", "--iperf3-port", str(server)).wait_line("clients of iperf3")
        for words in (["-n", "10M"], ["-n", "10M", "-P", "4"], ["-k", "10"]):
            doc, done = stock(lab, "-c", "127.0.0.1", "-p", str(server), *words)
            assert done.returncode == 0 and doc["end"]["sum_sent"]["bytes"] == doc["end"]["sum_received"]["bytes"] > 0, done


@limit(150)
def test_two_hundred_short_runs_count_every_byte():
    ports = port_of()
    with Local() as lab:
        servers = [stock_server(lab, next(ports)) for _ in range(3)]

        def measure(port, number):
            run = lab.pitot(0, "bw", "--peer", "iperf3", f"127.0.0.1:{port}", "-d", "200ms", "--warmup", "0s", "-r", "400mbit", "-q")
            assert run.rc == 0 and run.doc["status"] == "ok", (number, run)
            short = [w for w in run.doc["warnings"] if "bytes" in w or "acknowledged" in w]
            assert run.doc["totals"]["rx_bytes"] > 0 and not short, (number, run.doc["totals"], short)
        each(servers, measure, range(200))


@limit(40)
def test_a_busy_server_and_one_that_is_not_there():
    ports = port_of()
    with Local() as lab:
        port = stock_server(lab, next(ports))
        other = lab.start(0, "iperf3", "--forceflush", "-c", "127.0.0.1", "-p", str(port), "-t", "5", "-b", "1M")
        other.wait_line(r"\[ +\d+\]")
        run = lab.pitot(0, "bw", "--peer", "iperf3", f"127.0.0.1:{port}", "-d", "200ms", "-q")
        assert run.rc == 1 and "busy with another test" in run.err and not run.doc, run
        other.end()
        run = lab.pitot(0, "bw", "--peer", "iperf3", f"127.0.0.1:{next(ports)}", "-d", "200ms", "-q")
        assert run.rc == 1 and "refused" in run.err and "pitot serve" not in run.err, run


@limit(60)
def test_caps_and_vanished_clients():
    """A client that goes away holds up nobody; what the server does not allow it refuses."""
    ports = port_of()
    with Local() as lab:
        port = next(ports)
        serve = lab.serve(0, "--compat", "iperf3", "--iperf3-port", str(port), "--max-rate", "50mbit", "--max-connections", "4")
        serve.wait_line("clients of iperf3")
        gone = lab.start(0, "iperf3", "--forceflush", "-c", "127.0.0.1", "-p", str(port), "-t", "20", "-b", "1M")
        gone.wait_line(r"\[ +\d+\]")
        gone.signal(9)
        doc, done = stock(lab, "-c", "127.0.0.1", "-p", str(port), "-t", "1", "-b", "10M")
        assert done.returncode == 0, done
        for words in (["-P", "8", "-b", "1M"], ["-b", "200M"]):
            doc, done = stock(lab, "-c", "127.0.0.1", "-p", str(port), "-t", "1", *words)
            assert doc.get("error"), done
        serve.wait_line("this server allows")


def test_what_a_stock_server_cannot_do_is_said_before():
    for words, needle in ((["lat", "--peer", "iperf3", "127.0.0.1"], "lat measures against"), (["bw", "--peer", "iperf3"], "name HOST"),
                          (["bw", "--peer", "nttcp", "127.0.0.1"], "iperf3"), (["bw", "--peer", "iperf3", "127.0.0.1", "-c", "129"], "128"),
                          (["bw", "--peer", "iperf3", "127.0.0.1", "-u", "--warmup", "1s"], "--warmup"),
                          (["bw", "--peer", "iperf3", "127.0.0.1", "--discard"], "--discard"),
                          (["serve", "--compat", "nttcp"], "known are"), (["serve", "--iperf3-port", "1"], "--compat iperf3")):
        done = subprocess.run([binary(), *words], capture_output=True, text=True, timeout=10)
        assert done.returncode == 2 and needle in done.stderr and done.stderr.count("\n") == 1, done
