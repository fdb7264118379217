"""Local topologies: hosts reach each other on both families, and nothing of one stays, however it ends."""
import os
import pathlib
import re
import signal
import time

import bounded
from lab import Process, check_sanitizers
from tap import Skip

PEER = os.environ.get("TOPOLOGY_PEER", "build/test/topology_peer")
LOCKS = pathlib.Path("/run/pitot")


def need_root():
    if os.geteuid() != 0:
        raise Skip("network namespaces need root")


def locks():
    return {p.name for p in LOCKS.iterdir()} if LOCKS.exists() else set()


def peer(*argv, before=(), rc=0):
    """Runs the peer; its output, which must hold no sanitizer's report."""
    ended = bounded.run([*before, PEER, *map(str, argv)], 30)
    check_sanitizers(ended.out)
    assert ended.rc == rc, f"{argv}: {ended.rc}\n{ended.out}"
    return ended.out


def value(text, key):
    found = re.search(rf"^{key} (.*)$", text, re.M)
    assert found, f"no {key} in\n{text}"
    return found.group(1)


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def wait_gone(pids, limit=5):
    until = time.monotonic() + limit
    while any(map(alive, pids)):
        assert time.monotonic() < until, f"still there: {[p for p in pids if alive(p)]}"
        time.sleep(0.02)


def wait_for(holds, limit=5):
    """Other topologies may live and die on this machine meanwhile: only what stays is ours."""
    until = time.monotonic() + limit
    while not holds():
        assert time.monotonic() < until, f"locks: {locks()}"
        time.sleep(0.05)


def nothing_to_sweep():
    return value(peer("sweep"), "swept") == "0"


def hold(n, kind="any"):
    """A peer that holds a topology, and (mark, workers, stray)."""
    process = Process([PEER, "hold", kind, str(n)])
    mark = process.wait_line(r"^mark (\S+)").group(1)
    stray = int(process.wait_line(r"^stray (\d+)").group(1))
    process.wait_line(r"^holding 1")
    until = time.monotonic() + 10
    while len(re.findall(r"^worker", process.text(), re.M)) < n and time.monotonic() < until:
        time.sleep(0.01)
    workers = [int(p) for p in re.findall(r"^worker (\d+)", process.text(), re.M)]
    assert len(workers) == n, process.text()
    return process, mark, workers, stray


def end(process, *pids):
    for pid in pids:
        if alive(pid):
            os.kill(pid, signal.SIGKILL)
    process.end()


def _reach(kind, n, words):
    need_root()
    text = peer("reach", kind, n)
    assert value(text, "namespaces") == "1" and value(text, "reached") == "1", text
    assert words in value(text, "text"), text
    assert value(text, "mark") not in locks()
    hosts = re.findall(r"^host (\S+) (\S+) (\S+)$", text, re.M)
    assert len({four for _, four, _ in hosts}) == n and len({six for *_, six in hosts} - {"-"}) in (0, n), text


def test_two_hosts():
    _reach("any", 2, "veth")


def test_three_hosts():
    _reach("any", 3, "veth")


def test_eight_hosts():
    _reach("any", 8, "veth")


def test_eight_hosts_without_a_bridge():
    _reach("routes", 8, "a routing hub")


def test_the_end_by_a_signal_leaves_nothing():
    need_root()
    for number in (signal.SIGTERM, signal.SIGINT):
        process, mark, workers, stray = hold(2)
        try:
            assert mark in locks()
            process.signal(number)
            # The stray holds the pipe open: the process's end is what counts here.
            assert process.proc.wait(10) == 0
            assert mark not in locks()
            wait_gone(workers)
        finally:
            end(process, stray)


def test_sigkill_leaves_nothing_after_the_next_start():
    need_root()
    process, mark, workers, stray = hold(3)
    try:
        inside = os.stat(f"/proc/{stray}/ns/net").st_ino
        process.signal(signal.SIGKILL)
        process.proc.wait(10)
        wait_gone(workers)  # they asked to die with their owner
        assert alive(stray) and mark in locks()
        peer("sweep")
        wait_gone([stray])
        assert mark not in locks()
        for entry in pathlib.Path("/proc").glob("[0-9]*/ns/net"):
            try:
                assert entry.stat().st_ino != inside, entry
            except (FileNotFoundError, PermissionError):
                pass
        wait_for(nothing_to_sweep)
    finally:
        end(process, stray, *workers)


def test_sigkill_while_it_opens_leaves_nothing_after_the_next_start():
    need_root()
    for after_ms in (1, 3, 6, 10, 20, 40, 80):
        process = Process([PEER, "open", "any", "16"])
        time.sleep(after_ms / 1000)
        process.signal(signal.SIGKILL)
        process.end()
        peer("sweep")
        wait_for(nothing_to_sweep)


def test_opening_sweeps_too():
    need_root()
    process, mark, workers, stray = hold(1)
    try:
        process.signal(signal.SIGKILL)
        process.proc.wait(10)
        peer("open", "any", 1)
        wait_gone([stray, *workers])
        assert mark not in locks()
    finally:
        end(process, stray, *workers)


def test_the_living_and_the_foreign_are_left_alone():
    need_root()
    process, mark, workers, stray = hold(2)
    # The same alias but for one digit, and a lock file that is nobody's: neither makes it ours.
    similar = mark[:-1] + ("0" if mark[-1] != "0" else "1")
    foreign = Process(["unshare", "-n", "sh", "-c", f"ip link set lo alias {similar}; echo ready; exec sleep 60"])
    try:
        foreign.wait_line("ready")
        peer("sweep")
        peer("reach", "any", 2)
        assert all(map(alive, [foreign.pid, process.pid, stray, *workers]))
        assert mark in locks()
        process.signal(signal.SIGKILL)
        process.proc.wait(10)
        peer("sweep")
        assert alive(foreign.pid) and not alive(stray)
    finally:
        end(process, stray, *workers)
        foreign.end()


def test_without_rights_hosts_are_loopback_addresses():
    before = []
    if os.geteuid() == 0:
        before = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--reuid=65534", "--regid=65534", "--clear-groups"]
        probe = bounded.run([*before, "test", "-x", PEER], 10)
        if probe.rc != 0:
            raise Skip("the build folder is not readable for an ordinary user")
    text = peer("reach", "any", 3, before=before)
    assert value(text, "namespaces") == "0" and value(text, "reached") == "1", text
    assert "loopback" in value(text, "text") and "need root" in value(text, "text"), text
    fours = re.findall(r"^host \S+ (127\.\d+\.\d+\.\d+) (?:::1|-)$", text, re.M)
    assert len(set(fours)) == 3, text


def test_running_out_half_way_leaves_nothing():
    need_root()
    kept = locks()
    for files in (5, 6, 8, 11):  # of which three are the standard ones
        out = peer("open", "any", 8, before=["prlimit", f"--nofile={files}:{files}"], rc=1)
        assert "-24 " in out, out
    # In a user namespace of its own, so that the limit is nobody else's.
    script = f'echo 4 > /proc/sys/user/max_net_namespaces && exec "{PEER}" open any 8'
    ended = bounded.run(["unshare", "-rn", "sh", "-c", script], 20)
    assert ended.rc == 1 and "max_net_namespaces" in ended.out, ended.out
    wait_for(lambda: locks() <= kept)


def test_impossible_numbers_of_hosts_are_refused():
    for n in (0, 251):
        assert "1 to 250 hosts" in peer("open", "loopback", n, rc=1)
