"""The lab itself: its nodes reach each other on every kind of address, and nothing of it stays."""
import os
import signal
import subprocess
import sys
import time

import bounded
import lab as lab_module
from lab import Lab, Local, check_document
from tap import limit

ECHO = ("import socket,sys\n"
        "a=socket.getaddrinfo(sys.argv[1],7,type=socket.SOCK_DGRAM)[0]\n"
        "s=socket.socket(a[0],a[1]);s.settimeout(5);s.bind(a[4]);print('listening :7',flush=True)\n"
        "d,p=s.recvfrom(99);s.sendto(d,p)\n")
ASK = ("import socket,sys\n"
       "a=socket.getaddrinfo(sys.argv[1],7,type=socket.SOCK_DGRAM)[0]\n"
       "s=socket.socket(a[0],a[1]);s.settimeout(5);s.sendto(b'x',a[4]);print(s.recv(9).decode())\n")


def _reaches(lab, a, b, address):
    server = lab.start(b, sys.executable, "-c", ECHO, address)
    server.wait_line("listening")
    client = lab.start(a, sys.executable, "-c", ASK, address)
    assert client.wait(10) == 0, client.text()
    assert client.text() == "x"
    assert server.wait(10) == 0, server.text()


def test_two_nodes_reach_each_other():
    with Lab() as lab:
        for address in (lab.v4(1), lab.v6(1), lab.link_local(1)):
            _reaches(lab, 0, 1, address)


def test_three_nodes_reach_each_other():
    with Lab(3) as lab:
        _reaches(lab, 0, 2, lab.v4(2))
        _reaches(lab, 2, 1, lab.link_local(1))


def test_a_link_comes_back_with_its_addresses():
    with Lab() as lab:
        lab.link(1, "down")
        client = lab.start(0, sys.executable, "-c", ASK.replace("settimeout(5)", "settimeout(.2)"), lab.v4(1))
        assert client.wait(10) != 0
        lab.link(1, "up")
        _reaches(lab, 0, 1, lab.v6(1))


def test_nothing_stays():
    with Lab() as lab:
        names = [lab.ns(0), lab.ns(1)]
        sleeper = lab.start(0, "sleep", "100")
        assert set(names) <= set(os.listdir("/run/netns"))
    assert sleeper.proc.returncode == -signal.SIGTERM
    assert not set(names) & set(os.listdir("/run/netns"))
    try:
        with Lab() as lab:
            name = lab.ns(0)
            raise KeyError("as a failing test would")
    except KeyError:
        pass
    assert name not in os.listdir("/run/netns")


def test_remains_of_a_killed_lab_are_removed():
    with Lab(1):
        dead = subprocess.Popen(["true"])
        dead.wait()
        name = f"{lab_module.PREFIX}-{dead.pid}-0-0"
        subprocess.run(["ip", "netns", "add", name], check=True, timeout=20)
        lab_module.remove_leftovers()
        assert name not in os.listdir("/run/netns")


def test_a_process_left_behind_is_found():
    with Local():
        orphan = "import subprocess;print(subprocess.Popen(['sleep','61.5'],start_new_session=True).pid)"
        pid = int(bounded.run([sys.executable, "-c", orphan], 20).out)
        assert "sleep 61.5" in bounded.descendants()[pid]
        left = bounded.sweep(0.1)
        assert left == [f"{pid}: sleep 61.5"], left
        assert not os.path.exists(f"/proc/{pid}")


@limit(20)
def test_a_program_ends_at_its_limit():
    began = time.monotonic()
    ended = bounded.run(["sh", "-c", "sleep 62 & sleep 63"], 0.3)
    assert ended.rc is None
    assert time.monotonic() - began < 10
    assert bounded.sweep(0.5) == []


def test_a_document_that_lies_is_refused():
    good = '{"totals":{"operations":5,"ok":3,"errors":{"timeout":1},"in_flight_at_end":1},"x":1.5}'
    schema, lab_module.SCHEMA = lab_module.SCHEMA, lab_module.ROOT / "none"
    try:
        assert check_document(good)["x"] == 1.5
        for bad in (good.replace("5", "6", 1), good.replace("1.5", "NaN"), good.replace("1.5", "1e999")):
            try:
                check_document(bad)
            except (AssertionError, ValueError):
                continue
            raise AssertionError(f"accepted {bad}")
    finally:
        lab_module.SCHEMA = schema


def test_the_binary_runs():
    with Local() as here:
        ended = bounded.run(here.argv(0, [lab_module.binary(), "--version"]), 20)
        assert ended.rc == 0, ended.out
        assert ended.out.startswith("pitot "), ended.out
