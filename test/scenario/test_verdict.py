"""The verdict: what really limits a test is named first, and nothing is when nothing does."""
import subprocess

from lab import Lab, Local, binary
from tap import limit

QUICK = ("-d", "800ms", "--warmup", "200ms", "-q")


def first(run):
    """The first of limited_by: what and where."""
    found = run.doc["limited_by"]
    for one in found:
        assert one["evidence"] and one["advice"], one
    return (found[0]["what"], found[0]["where"]) if found else (None, None)


def named(what, lab, *argv, tries=3):
    """`what` is named first, in one of three runs: a busy machine may limit another way."""
    for _ in range(tries):
        run = lab.pitot(0, *argv, *QUICK)
        if run.doc and first(run)[0] == what:
            return run
    raise AssertionError(f"{argv}: {run.doc and run.doc['limited_by']}, {run.doc and run.doc['warnings']}, {run.err}")


def test_nothing_limits_a_test_that_gets_what_it_asks_for():
    with Local() as lab:
        for argv in (["lat"], ["lat", "-u", "-r", "500"], ["bw", "-r", "50mbit"], ["pps", "-r", "2k", "-c", "2"],
                     ["bw", "-u", "-r", "50mbit"]):
            named(None, lab, *argv)


def test_a_flood_is_limited_by_a_cpu():
    with Local() as lab:
        for argv in (["pps", "-c", "1"], ["bw", "--cc", "cubic"]):
            for _ in range(4):
                what, where = first(lab.pitot(0, *argv, *QUICK))
                if what in ("sender CPU", "receiver CPU") and where.startswith("CPU "):
                    break
            assert what in ("sender CPU", "receiver CPU") and where.startswith("CPU "), (argv, what, where)


def test_a_small_receive_buffer():
    with Local() as lab:
        named("receive buffer", lab, "pps", "-c", "1", "-r", "60k", "--rcvbuf", "4k")


def test_a_thin_link():
    """As a token bucket makes one, where this kernel has it."""
    with Lab() as lab:
        at = f"{lab.v4(1)}:{lab.serve(1).port}"
        dev = subprocess.run(["ip", "-n", lab.ns(0), "-o", "route", "get", lab.v4(1)], capture_output=True, text=True,
                             timeout=10).stdout.split(" dev ")[1].split()[0]
        made = subprocess.run(["ip", "netns", "exec", lab.ns(0), "tc", "qdisc", "add", "dev", dev, "root", "tbf", "rate",
                               "20mbit", "burst", "20kb", "limit", "50kb"], capture_output=True, text=True, timeout=10)
        if made.returncode:
            print("# this kernel has no token bucket filter:", made.stderr.strip()[:100])
            return
        named("link rate", lab, "bw", at, "-u", "-r", "40mbit", "-s", "1200")


@limit(120)
def test_a_short_listen_queue_and_few_local_ports():
    with Lab() as lab:
        sysctl = lambda node, text: subprocess.run(["ip", "netns", "exec", lab.ns(node), "sysctl", "-qw", text], check=True,
                                                   timeout=10)
        sysctl(1, "net.core.somaxconn=1")
        at = f"{lab.v4(1)}:{lab.serve(1).port}"
        named("listen backlog", lab, "lat", at, "--crr", "-c", "200", "--timeout", "500ms")
    with Lab() as lab:
        at = f"{lab.v4(1)}:{lab.serve(1).port}"
        subprocess.run(["ip", "netns", "exec", lab.ns(0), "sysctl", "-qw", "net.ipv4.ip_local_port_range=40000 40030"],
                       check=True, timeout=10)
        named("local ports", lab, "lat", at, "--crr", "-c", "60", "--timeout", "500ms")
