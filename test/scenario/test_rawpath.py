"""Raw packet paths over a veth pair: AF_XDP and packet sockets deliver, and leave other traffic and the
interface as they were. The far ends are rawpath_peer.c, which uses the program's own src/os."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import lab as lab_module
from lab import Lab
from tap import Skip

PORT, COUNT = 7500, 3000
ECHO = ("import socket,sys\n"
        "s=socket.create_server(('',int(sys.argv[1])));print('listening',flush=True)\n"
        "c,_=s.accept();c.sendall(c.recv(99));c.close()\n")
ASK = ("import socket,sys\n"
       "s=socket.create_connection((sys.argv[1],int(sys.argv[2])),5);s.sendall(b'over tcp')\n"
       "print(s.recv(99).decode())\n")
FRAGMENTED = ("import socket,sys\n"
              "payload=bytes(8)+bytes(i&255 for i in range(8,1900))\n"
              "socket.socket(2,2).sendto(payload,(sys.argv[1],int(sys.argv[2])))\n")
# An echo request with everything zero has this checksum; for v6 the kernel fills it in.
PING = ("import socket,sys\n"
        "six=':' in sys.argv[1]\n"
        "s=socket.socket(10 if six else 2,socket.SOCK_RAW,58 if six else 1);s.settimeout(5)\n"
        "s.sendto(bytes.fromhex('8000000000000000' if six else '0800f7ff00000000'),(sys.argv[1],0))\n"
        "while s.recv(99)[0 if six else 20]!=(129 if six else 0): pass\n")


def _peer():
    path = pathlib.Path(os.environ.get("RAWPATH_PEER", lab_module.ROOT / "build" / "test" / "rawpath_peer"))
    if not path.exists():
        raise FileNotFoundError(f"{path}: build first, or set RAWPATH_PEER")
    return str(path)


def _start(lab, node, *args):
    return lab.start(node, _peer(), *args)


def _ready(process):
    """The rest of the ready line; a peer that says the kernel cannot do it skips the test."""
    try:
        return process.wait_line(r"^ready ?(.*)").group(1)
    except AssertionError:
        if process.wait(5) == 77:
            raise Skip(process.text()) from None
        raise


def _result(process):
    rc = process.wait(20)
    if rc == 77:
        raise Skip(process.text())
    assert rc == 0, f"{process.argv} → {rc}\n{process.text()}"
    return json.loads([line for line in process.lines if line][-1])


def _ip(lab, node, *args):
    """What `ip -json` says inside a node."""
    done = subprocess.run(lab.argv(node, ["ip", "-s", "-d", "-json", *args]), capture_output=True, text=True,
                          timeout=20, check=True)
    return json.loads(done.stdout)


def _delivers(lab, receiver, send, address, size=14):
    """COUNT numbered datagrams arrive whole and in order."""
    mode = _ready(receiver)
    sent = _result(_start(lab, 0, send, "eth0", address, PORT, COUNT, size))
    got = _result(receiver)
    assert sent["sent"] == COUNT and sent.get("dropped", 0) == 0 and sent.get("invalid", 0) == 0, sent
    assert got["received"] == COUNT and got["disordered"] == 0 and got["damaged"] == 0, (got, sent)
    return mode, got


def _xdp_to_xdp(asked, taken):
    with Lab() as lab:
        for address, size in ((lab.v4(1), 14), (lab.v6(1), 14), (lab.link_local(1), 9), (lab.v4(1), 1472)):
            receiver = _start(lab, 1, "xdp-recv", "eth0", PORT, COUNT, asked)
            mode, got = _delivers(lab, receiver, "xdp-send", address, size)
            assert mode == taken + " copy", mode
            assert got["rx_dropped"] == got["ring_full"] == got["fill_empty"] == 0, got


def test_xdp_to_xdp_in_native_mode():
    _xdp_to_xdp("native", "native")


def test_xdp_to_xdp_in_generic_mode():
    _xdp_to_xdp("generic", "generic")


def test_xdp_to_xdp_in_the_mode_for_veth():
    _xdp_to_xdp("auto", "generic")


def test_each_queue_reaches_its_own_socket():
    with Lab() as lab:
        lab_module._ip("link add mq0 numtxqueues 2 numrxqueues 2 type veth peer name mq0 numtxqueues 2 numrxqueues 2 "
                       f"netns {lab.ns(1)}\nlink set mq0 up\naddr add 10.78.0.1/24 dev mq0\n", lab.ns(0))
        lab_module._ip("link set mq0 up\naddr add 10.78.0.2/24 dev mq0\n", lab.ns(1))
        link = _result(_start(lab, 1, "link", "mq0"))
        assert (link["rx_queues"], link["tx_queues"]) == (2, 2), link
        assert _result(_start(lab, 1, "link", "eth0"))["rx_queues"] == 1
        for queue in (1, 0):
            receiver = _start(lab, 1, "xdp-recv", "mq0", PORT, COUNT, "auto", queue)
            mode = _ready(receiver)
            assert mode == ("native copy" if queue else "generic copy"), mode
            sent = _result(_start(lab, 0, "xdp-send", "mq0", "10.78.0.2", PORT, COUNT, 14, queue))
            got = _result(receiver)
            assert got["received"] == COUNT and got["disordered"] == 0, (sent, got)
        refused = _start(lab, 1, "xdp-recv", "mq0", PORT, COUNT, "auto", 2)
        assert refused.wait(10) == 1 and "queue 2" in refused.text(), refused.text()


def test_xdp_to_an_ordinary_socket():
    with Lab() as lab:
        for address, size in ((lab.v4(1), 14), (lab.v6(1), 15), (lab.link_local(1), 14), (lab.v6(1), 1452)):
            _delivers(lab, _start(lab, 1, "udp-recv", address, PORT, COUNT), "xdp-send", address, size)


def test_packet_socket_to_an_ordinary_socket():
    with Lab() as lab:
        for address, size in ((lab.v4(1), 14), (lab.v6(1), 15), (lab.link_local(1), 14), (lab.v4(1), 1472)):
            _delivers(lab, _start(lab, 1, "udp-recv", address, PORT, COUNT), "packet-send", address, size)


def test_xdp_counts_and_drops():
    with Lab() as lab:
        counter = _start(lab, 1, "xdp-count", "eth0", PORT, COUNT)
        _ready(counter)
        _result(_start(lab, 0, "packet-send", "eth0", lab.v4(1), PORT + 1, 100, 20))
        _result(_start(lab, 0, "packet-send", "eth0", lab.v6(1), PORT, COUNT, 20))
        assert _result(counter) == {"packets": COUNT, "bytes": COUNT * (62 + 20)}


def test_other_traffic_passes_while_attached():
    with Lab() as lab:
        holder = _start(lab, 1, "hold", "eth0", PORT)
        _ready(holder)
        assert "xdp" in _ip(lab, 1, "link", "show", "eth0")[0]
        for address in (lab.v4(1), lab.v6(1)):
            ping = lab.start(0, sys.executable, "-c", PING, address)
            assert ping.wait(10) == 0, ping.text()
        server = lab.start(1, sys.executable, "-c", ECHO, PORT)
        server.wait_line("listening")
        client = lab.start(0, sys.executable, "-c", ASK, lab.v4(1), PORT)
        assert client.wait(10) == 0 and client.text() == "over tcp", client.text()
        # Another UDP port, and the port itself while no socket is in the map: both reach the stack.
        for port in (PORT + 1, PORT):
            receiver = _start(lab, 1, "udp-recv", lab.v4(1), port, 100)
            _ready(receiver)
            _result(_start(lab, 0, "packet-send", "eth0", lab.v4(1), port, 100, 14))
            assert _result(receiver)["received"] == 100
        # Fragments are the stack's to put together, whatever their port.
        receiver = _start(lab, 1, "udp-recv", lab.v4(1), PORT, 1)
        _ready(receiver)
        assert lab.start(0, sys.executable, "-c", FRAGMENTED, lab.v4(1), PORT).wait(10) == 0
        got = _result(receiver)
        assert got["received"] == 1 and got["damaged"] == 0, got


def test_a_killed_process_leaves_no_program():
    with Lab() as lab:
        holder = _start(lab, 1, "hold", "eth0", PORT)
        _ready(holder)
        assert "xdp" in _ip(lab, 1, "link", "show", "eth0")[0]
        assert _result(_start(lab, 1, "link", "eth0"))["xdp"] is True
        second = _start(lab, 1, "hold", "eth0", PORT)
        assert second.wait(10) == 1 and "another XDP program" in second.text(), second.text()
        holder.signal(signal.SIGKILL)
        assert holder.wait(10) == -signal.SIGKILL
        until = time.monotonic() + 5
        while "xdp" in _ip(lab, 1, "link", "show", "eth0")[0]:
            assert time.monotonic() < until, "the program is still attached"
            time.sleep(0.02)
        assert _result(_start(lab, 1, "link", "eth0"))["xdp"] is False


def test_routes_are_the_kernels():
    with Lab() as lab:
        macs = [_ip(lab, node, "link", "show", "eth0")[0]["address"] for node in (0, 1)]
        for far, near in ((lab.v4(1), lab.v4(0)), (lab.v6(1), lab.v6(0)), (lab.link_local(1), "fe80::1")):
            found = _result(_start(lab, 0, "route", far))
            assert found == {"source": near, "next_hop": far.split("%")[0], "gatewayed": False, "local": False,
                             "source_mac": macs[0], "next_hop_mac": macs[1], "ifindex": found["ifindex"]}, found
        lab_module._ip("route add 192.0.2.0/24 via 10.77.0.2\nroute add 2001:db8::/64 via fe80::2 dev eth0\n"
                       "route add 198.51.100.0/24 via inet6 fe80::2 dev eth0\n", lab.ns(0))
        for far, near, hop in (("192.0.2.9", lab.v4(0), "10.77.0.2"), ("2001:db8::9", lab.v6(0), "fe80::2"),
                               ("198.51.100.9", lab.v4(0), "fe80::2")):
            found = _result(_start(lab, 0, "route", far))
            assert (found["source"], found["next_hop"], found["gatewayed"], found["next_hop_mac"]) == \
                (near, hop, True, macs[1]), found
        silent = _start(lab, 0, "route", "10.77.0.99")
        assert silent.wait(10) == 1 and "10.77.0.99 does not answer on eth0" in silent.text(), silent.text()
        nowhere = _start(lab, 0, "route", "203.0.113.1")
        assert nowhere.wait(10) == 1 and "203.0.113.1" in nowhere.text(), nowhere.text()


def test_links_are_the_kernels():
    with Lab() as lab:
        subprocess.run(lab.argv(0, ["tc", "qdisc", "add", "dev", "eth0", "root", "pfifo", "limit", "5"]), check=True,
                       timeout=20)
        before = _result(_start(lab, 0, "link", "eth0"))
        _result(_start(lab, 0, "packet-send", "eth0", lab.v4(1), PORT, 100, 14))
        _delivers(lab, _start(lab, 1, "udp-recv", lab.v4(1), PORT, COUNT), "xdp-send", lab.v4(1))
        found, said = _result(_start(lab, 0, "link", "eth0")), _ip(lab, 0, "link", "show", "eth0")[0]
        assert (found["name"], found["kind"], found["driver"], found["up"]) == ("eth0", "veth", "veth", True), found
        assert (found["mtu"], found["mac"], found["speed"]) == (said["mtu"], said["address"], 0), (found, said)
        assert found["tx_packets"] - before["tx_packets"] >= COUNT + 100, (before, found)
        tc = subprocess.run(lab.argv(0, ["tc", "-s", "-json", "qdisc", "show", "dev", "eth0"]), check=True, timeout=20,
                            capture_output=True, text=True)
        root = [q for q in json.loads(tc.stdout) if q.get("root")][0]
        after = _result(_start(lab, 0, "link", "eth0"))  # neighbour discovery sends in between
        assert found["qdisc"] == root["kind"] == "pfifo", (found, root)
        for ours, theirs in (("qdisc_packets", "packets"), ("qdisc_bytes", "bytes"), ("qdisc_drops", "drops"),
                             ("overlimits", "overlimits"), ("requeues", "requeues")):
            assert found[ours] <= root[theirs] <= after[ours], (found, root, after)
