"""pitot pps --path packet and xdp over a veth pair: exact books over IPv4, IPv6 and link-local, other traffic
undisturbed, nothing left behind, and clear refusals where the path cannot work."""
import json
import os
import pathlib
import signal
import subprocess
import time

import lab as lab_module
from lab import Lab, Local
from tap import Skip

POWERLESS = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")  # root without any capability
FEW = ("-n", "500", "-c", "3", "-r", "20k", "--warmup", "0s")
RATE = ("-r", "20k", "-d", "1s", "--warmup", "0.2s")


def _attached(lab, node):
    done = subprocess.run(lab.argv(node, ["ip", "-json", "link", "show", "eth0"]), capture_output=True, text=True,
                          timeout=20, check=True)
    return "xdp" in json.loads(done.stdout)[0]


def _until(condition, what, limit=5):
    until = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < until, what
        time.sleep(0.02)


def _pps(lab, path, to, *options, node=0):
    run = lab.pitot(node, "pps", to, "--path", path, *options)
    if run.rc and "no such socket" in run.err:
        raise Skip(run.err)
    return run


def _books(run, via):
    """The books of one run: what is missing is what the stages of the path say is lost. Returns how many that is."""
    assert run.rc == 0 and run.doc["status"] == "ok", run
    totals, stages = run.doc["totals"], run.doc["path"]
    for key in ("duplicate_packets", "reordered_packets", "late_packets"):
        assert totals[key] == 0, (key, str(run))
    assert len(stages) == 6 and stages[0]["packets"] >= totals["tx_packets"] > 0, run
    missing = sum(stage["lost_here"] for stage in stages)
    assert stages[0]["packets"] - missing == stages[-1]["packets"] and totals["lost_packets"] <= missing, run
    assert via in " ".join(run.doc["notes"]), run
    return missing


def _exact(lab, path, to, *options, node=0):
    """A run in which everything arrived, once, in order. A machine that is busy with something else may keep a
    receiver from running for so long that its ring or buffer overflows: then once more, three runs in all."""
    via = {"packet": "packet socket on ", "xdp": "AF_XDP on "}[path]
    for _ in range(3):
        run = _pps(lab, path, to, *options, node=node)
        missing = _books(run, via)
        if not missing:
            return run
    raise AssertionError(f"{missing} datagrams are missing: {run}")


def _delivers(path):
    with Lab() as lab:
        server = lab.serve(1)
        for address in (lab.v4(1), lab.v6(1), lab.link_local(1)):
            for _ in range(3):  # a machine that pauses keeps the rate in one of three
                totals = _exact(lab, path, server.at(address), *RATE).doc["totals"]
                if 18000 <= totals["tx_packets"] <= 22000:
                    break
            assert 18000 <= totals["tx_packets"] <= 22000, totals
            for size in ("5", "14", "1400"):
                run = _exact(lab, path, server.at(address), "-s", size, *FEW)
                totals, arrived = run.doc["totals"], run.doc["path"][-1]
                assert totals["tx_packets"] == totals["operations"] == arrived["packets"] == 1500, run
                assert totals["tx_bytes"] == arrived["bytes"] == 1500 * int(size), run
        assert not _attached(lab, 1)


def test_packet_delivers():
    _delivers("packet")


def test_xdp_delivers():
    _delivers("xdp")


def test_xdp_again_and_again():
    """One session after another, and several tests in one session."""
    with Lab() as lab:
        server = lab.serve(1)
        for _ in range(3):
            _exact(lab, "xdp", server.at(lab.v4(1)), *FEW)
        run = _pps(lab, "xdp", server.at(lab.v6(1)), *FEW, "--repeat", "3")
        assert run.rc == 0 and run.doc["repeat"]["n"] == 3, run


# A server that takes itself for another machine: it has a boot id of its own.
ELSEWHERE = ("unshare", "-m", "sh", "-c", 'mount --bind "$1" /proc/sys/kernel/random/boot_id && shift && exec "$@"', "sh")


def test_xdp_over_several_queues():
    """Flows come in by the queue they were sent on, whichever worker they live on."""
    with Lab() as lab:
        boot_id = pathlib.Path(lab.path("boot_id"))
        boot_id.write_text("01234567-89ab-cdef-0123-456789abcdef\n")
        server = lab.start(1, *ELSEWHERE, boot_id, lab_module.binary(), "serve", "--listen", f":{lab_module.PORT}")
        server.wait_line("listening")
        for net, queues in ((78, 2), (79, 1)):  # as many as the server has; fewer: one of its workers gets all
            lab_module._ip(f"link add mq{net} numtxqueues {queues} numrxqueues 2 type veth peer name mq{net} "
                           f"numtxqueues 2 numrxqueues 2 netns {lab.ns(1)}\n"
                           f"link set mq{net} up\naddr add 10.{net}.0.1/24 dev mq{net}\n", lab.ns(0))
            lab_module._ip(f"link set mq{net} up\naddr add 10.{net}.0.2/24 dev mq{net}\n", lab.ns(1))
            to = lab_module.join(f"10.{net}.0.2", lab_module.PORT)
            run = _exact(lab, "xdp", to, "-c", "6", "-n", "300", "-r", "20k", "--warmup", "0s")
            here, there = min(queues, os.cpu_count()), min(2, os.cpu_count())
            place = run.doc["placement"]
            assert (place["workers"], place["peer_workers"]) == (here, there), run
            assert "2 queues" in " ".join(run.doc["notes"]), run
            assert run.doc["path"][-1]["packets"] == 1800, run
            assert all(flow["lost_packets"] == 0 for flow in run.doc["flows"]), run


def test_xdp_takes_nothing_but_its_own():
    """While one client's xdp session runs, another's flows on the same port and everybody's TCP go on."""
    with Lab(nodes=3) as lab:
        server = lab.serve(1)
        to = server.at(lab.v4(1))
        session = lab.begin(0, "pps", to, "--path", "xdp", "-r", "5k", "-d", "6s", "--warmup", "0s")
        _until(lambda: _attached(lab, 1), "the program was not attached")
        for node in (0, 2):
            run = _pps(lab, "plain", to, "-r", "5k", "-d", "0.5s", "--warmup", "0.1s", node=node)
            assert run.rc == 0 and run.doc["totals"]["rx_packets"] > 500, run
        run = lab.pitot(2, "lat", to, "-n", "100", "--warmup", "0s")
        assert run.rc == 0 and run.doc["totals"]["ok"] == 100, run
        refused = _pps(lab, "xdp", to, node=2)
        assert refused.rc == 1 and "eth0 has an XDP program already" in refused.err, refused
        run = lab.finish(session)
        _books(run, "AF_XDP on eth0")
        _until(lambda: not _attached(lab, 1), "the program stayed")
        _exact(lab, "xdp", to, *FEW, node=2)


def test_a_killed_server_leaves_no_program():
    with Lab() as lab:
        server = lab.serve(1)
        client = lab.begin(0, "pps", server.at(lab.v4(1)), "--path", "xdp", "-r", "5k", "-d", "20s")
        _until(lambda: _attached(lab, 1), "the program was not attached")
        client.wait_line("delivered")
        server.signal(signal.SIGKILL)
        _until(lambda: not _attached(lab, 1), "the program outlived the server")
        run = lab.finish(client)
        assert run.rc == 1 and run.doc["status"] == "partial", run


def test_a_killed_client_leaves_no_program():
    with Lab() as lab:
        server = lab.serve(1)
        client = lab.begin(0, "pps", server.at(lab.v4(1)), "--path", "xdp", "-r", "5k", "-d", "20s")
        _until(lambda: _attached(lab, 1), "the program was not attached")
        client.signal(signal.SIGKILL)
        _until(lambda: not _attached(lab, 1), "the program outlived the client")
        _exact(lab, "xdp", server.at(lab.v4(1)), *FEW)


def test_interrupted():
    with Lab() as lab:
        server = lab.serve(1)
        client = lab.begin(0, "pps", server.at(lab.v6(1)), "--path", "xdp", "-r", "5k", "-d", "20s", "--warmup", "0s")
        _until(lambda: _attached(lab, 1), "the program was not attached")
        client.wait_line("delivered")
        client.signal(signal.SIGINT)
        run = lab.finish(client)
        assert run.rc == 130 and run.doc["status"] == "partial" and run.doc["totals"]["rx_packets"] > 0, run


def test_refused_on_the_loopback():
    with Local() as here:
        server = here.serve(0)
        for path in ("packet", "xdp"):
            for to in ([server.at("127.0.0.1")], []):
                run = here.pitot(0, "pps", *to, "--path", path)
                assert run.rc == 1 and run.doc is None, run
                assert f"--path {path}: 127.0.0.1 is an address of this host" in run.err, run
                assert "try --path plain or gso" in run.err, run


def test_refused_without_privileges():
    with Lab() as lab:
        server = lab.serve(1)
        for path in ("packet", "xdp"):
            client = lab.start(0, *POWERLESS, lab_module.binary(), "pps", server.at(lab.v4(1)), "--path", path)
            assert client.wait(10) == 1, client.text()
            assert f"--path {path} needs root or CAP_NET_RAW on the sending host" in client.text(), client.text()


def test_xdp_refused_by_a_server_without_privileges():
    with Lab() as lab:
        server = lab.start(1, *POWERLESS, lab_module.binary(), "serve", "--listen", f":{lab_module.PORT}")
        server.wait_line("listening")
        to = lab_module.join(lab.v4(1), lab_module.PORT)
        run = _pps(lab, "xdp", to)
        assert run.rc == 1 and "needs a server that runs as root" in run.err, run
        assert "try --path packet or plain" in run.err, run
        _exact(lab, "packet", to, *FEW)


def test_refused_when_a_datagram_does_not_fit():
    with Lab() as lab:
        server = lab.serve(1)
        for path in ("packet", "xdp"):
            for address, most in ((lab.v4(1), 1472), (lab.v6(1), 1452)):
                run = _pps(lab, path, server.at(address), "-s", str(most + 1))
                assert run.rc == 1 and f"carries at most {most} bytes, not {most + 1}" in run.err, run
                run = _exact(lab, path, server.at(address), "-s", str(most), *FEW)
                assert run.doc["totals"]["tx_bytes"] == run.doc["path"][-1]["bytes"] == 1500 * most, run
