"""peers.py: runs one measurement of pitot, of a peer or of a bare loop and returns its figures.

Every function takes a Place (where) and seconds (how long), and returns a dict of plain numbers under the
same names whoever measured: gbit_s, mpps (delivered to the application), sent_mpps, half_p50_us and
half_p99_9_us (half round trips), cpu_s_per_GB (both ends, all their processes, from the kernel's rusage).
"""
import json
import os
import pathlib
import re
import resource
import socket
import subprocess

import bounded
import lab

BUILD = pathlib.Path()


class Place:
    """Where a measurement runs: the loopback, or two namespaces joined by a veth pair."""

    def __init__(self, site):
        self.site, self.veth = site, isinstance(site, lab.Lab)
        self.address = site.v4(1) if self.veth else "127.0.0.1"
        self.names = f"{site.ns(0)},{site.ns(1)}" if self.veth else ""

    def client(self, argv, limit):
        """Runs the client's side to its end."""
        ended = bounded.run(self.site.argv(0, argv), limit)
        if ended.rc != 0:
            how = f"no end within {limit:.0f} s" if ended.rc is None else f"exit status {ended.rc}"
            raise RuntimeError(f"{pathlib.Path(argv[0]).name}: {how}: {ended.out.strip()[-300:]}")
        return ended.out

    def server(self, argv, ready):
        """Starts the server's side and waits for the line that says it listens."""
        process = self.site.start(1, *argv)
        process.wait_line(ready)
        return process


def free_port():
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


def _cpu_s():
    """CPU seconds of every child that has been waited for, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def iperf3(place, seconds, *options):
    port, before = str(free_port()), _cpu_s()
    server = place.server(["iperf3", "-s", "-1", "-p", port, "--forceflush"], "listening on")
    out = place.client(["iperf3", "-c", place.address, "-p", port, "-t", str(seconds), "-J", *options], seconds + 10)
    try:
        server.wait(5)
    except subprocess.TimeoutExpired:
        server.end()
    got = json.loads(out)["end"]["sum_received"]
    return {"gbit_s": got["bits_per_second"] / 1e9, "cpu_s_per_GB": (_cpu_s() - before) / (got["bytes"] / 1e9)}


def _sockperf(place, seconds, mode, *options, cpus=None):
    """`cpus` = (client's, server's): placed like pitot's ends, so that the same thing is compared: a scheduler
    that puts both ends on one CPU answers another question."""
    port = str(free_port())
    both = [option for option in options if option in ("--tcp", "--nonblocked")]
    on_client, on_server = [["taskset", "-c", str(cpu)] for cpu in cpus] if cpus else ([], [])
    server = place.server([*on_server, "stdbuf", "-oL", "sockperf", "sr", "-i", place.address, "-p", port, *both], r"\[tid")
    try:
        return place.client([*on_client, "sockperf", mode, "-i", place.address, "-p", port, "-m", "14", "-t",
                             str(max(1, round(seconds))), *options], seconds + 10)
    finally:
        server.end()


def sockperf_pp(place, seconds, *options):
    out = _sockperf(place, seconds, "pp", *options, cpus=(0, 1) if os.cpu_count() > 1 else None)
    share = {float(at): float(us) for at, us in re.findall(r"percentile ([\d.]+) =\s+([\d.]+)", out)}
    return {"half_p50_us": share[50.0], "half_p99_us": share[99.0], "half_p99_9_us": share[99.9]}


def sockperf_tp(place, seconds, *options):
    """What its sender sends; it does not say how much of that arrived."""
    out = _sockperf(place, seconds, "tp", *options)
    return {"sent_mpps": int(re.search(r"Message Rate is (\d+)", out).group(1)) / 1e6}


def bare(place, seconds, program, *options):
    """A bare loop; its figures come under our names."""
    argv = [str(BUILD / "test" / program), "--seconds", str(seconds), "--addr", place.address, *options]
    if place.veth:
        argv += ["--ns", place.names]
    ended = bounded.run(argv, seconds + 15)
    if ended.rc != 0:
        raise RuntimeError(f"{program}: {ended.out.strip()[-300:] or ended.rc}")
    got = json.loads(ended.out)
    for ours, theirs in (("mpps", "delivered_mpps"), ("cpu_s_per_Mpkt", "cpu_s_per_mpkt")):
        if theirs in got:
            got[ours] = got.pop(theirs)
    return {key: value for key, value in got.items() if isinstance(value, (int, float))}


def figures(doc):
    """The figures of a pitot result; half round trips are half of its RTT percentiles."""
    rates, latency = doc.get("rates") or {}, doc.get("latency") or {}
    generator, cost, totals = doc.get("generator") or {}, doc.get("cost") or {}, doc.get("totals") or {}
    found = {
        "gbit_s": (rates.get("rx_bits_per_s"), 1e-9), "mpps": (rates.get("rx_packets_per_s"), 1e-6),
        "sent_mpps": (rates.get("tx_packets_per_s"), 1e-6), "half_p50_us": (latency.get("p50_us"), 0.5),
        "half_p99_us": (latency.get("p99_us"), 0.5), "half_p99_9_us": (latency.get("p99_9_us"), 0.5),
        "operations_per_s": (rates.get("operations_per_s"), 1), "late_p99_us": (generator.get("pacer_late_p99_us"), 1),
        "said_cpu_s_per_GB": (cost.get("cpu_s_per_GB"), 1), "lost": (totals.get("lost_packets"), 1),
    }
    return {key: value * scale for key, (value, scale) in found.items() if value is not None}


def fairness(doc):
    """Jain's index of the flows' rates: 1 when all are equal, 1/n when one has everything."""
    rates = [flow["bits_per_s"] for flow in doc.get("flows") or [] if flow.get("bits_per_s") is not None]
    return sum(rates) ** 2 / (len(rates) * sum(r * r for r in rates)) if sum(rates) else None


def pitot(place, seconds, command, *options):
    """pitot with its own serve on the loopback, or against a serve in the other namespace."""
    before = _cpu_s()
    args = [command]
    server = None
    if place.veth:
        server = place.site.serve(1)
        args.append(server.at(place.address))
    args += ["-d", f"{seconds}s", "-q", *options]
    try:
        run = place.site.pitot(0, *args, limit=3 * seconds + 30)
    finally:
        if server:
            server.end()
    if run.rc != 0 or not run.doc:
        raise RuntimeError(f"pitot {' '.join(args)}: exit status {run.rc}: {(run.err or run.out).strip()[-300:]}")
    got = figures(run.doc)
    jain = fairness(run.doc)
    if jain is not None:
        got["fairness"] = jain
    measured, warmup = run.doc.get("duration_s"), run.doc.get("warmup_s") or 0
    received = (run.doc.get("totals") or {}).get("rx_bytes")
    if measured and received:
        # The warm-up costs CPU too: charge it with the bytes it moved at the same rate. Never less than pitot says.
        moved = received * (measured + warmup) / measured
        got["cpu_s_per_GB"] = max((_cpu_s() - before) / (moved / 1e9), got.get("said_cpu_s_per_GB", 0))
    return got


def recorder(_place, _seconds):
    out = bounded.run([str(BUILD / "test" / "bench_recorder")], 60).out
    return {"ns_per_sample": float(re.search(r"median ([\d.]+) ns", out).group(1))}


def startup(place, _seconds):
    """Exec to exit of one round trip, size of the stripped binary, memory of an idle serve."""
    once = place.site.pitot(0, "lat", "-n", "1", "--warmup", "0s", "-q", limit=10)
    if once.rc != 0:
        raise RuntimeError(f"pitot lat -n 1: exit status {once.rc}: {(once.err or once.out).strip()[-300:]}")
    stripped = place.site.path("stripped")
    subprocess.run(["strip", "-o", stripped, lab.binary()], check=True, timeout=30)
    serve = place.site.serve(1)
    kib = 0
    try:
        for pid in bounded.descendants():
            status = pathlib.Path(f"/proc/{pid}/status").read_text()
            kib += int(re.search(r"VmRSS:\s+(\d+)", status).group(1))
    finally:
        serve.end()
    return {"startup_ms": once.seconds * 1000, "binary_MB": os.path.getsize(stripped) / 1e6, "serve_rss_MB": kib / 1000}
