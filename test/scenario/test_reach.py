"""test_reach.py: every way to a server, and every option about the way has its effect."""
import contextlib
import itertools
import pathlib
import re
import shutil
import subprocess
import time

from control_client import Client, Refused
from lab import Lab, Local, _ip, binary

SHORT = ("-d", "250ms", "--warmup", "100ms", "-q")
LONGER = ("-d", "1s", "--warmup", "200ms", "-q")


def good(run):
    assert run.rc == 0 and run.doc and run.doc["status"] == "ok" and run.doc["exit"] == 0, run
    return run.doc


def refused(run, *needles, status=1):
    """Nothing was measured, and one sentence says why."""
    assert run.rc == status and run.doc is None, run
    assert len(run.err.strip().splitlines()) == 1 and run.err.startswith("pitot "), run
    for needle in needles:
        assert needle in run.err, (needle, run.err)


def patiently(what, *args):
    """Two ends that spin may find no CPU on a busy machine for as long as a short run lasts."""
    for _ in range(5):
        run = what(*args)
        if run.rc == 0:
            break
    return run


def receiver_is_plausible(doc):
    t, r, s = doc["totals"], doc["rates"], doc["duration_s"]
    assert t["ok"] > 0 and t["rx_bytes"] > 0 and t["tx_bytes"] > 0, t
    assert abs(r["rx_bits_per_s"] * s / 8 - t["rx_bytes"]) < 0.02 * t["rx_bytes"] + 1, (r, t, s)
    assert t["rx_bytes"] < 1.5 * t["tx_bytes"] + (64 << 20), t
    if t.get("tx_packets"):
        assert 0 <= t["lost_packets"] <= t["tx_packets"], t
        assert abs(r["rx_packets_per_s"] * s - t["rx_packets"]) < 0.02 * t["rx_packets"] + 1, (r, t, s)


# cubic: bbr may pause for seconds on a link without a delay whose CPUs are busy.
TESTS = [["bw", "--cc", "cubic"], ["bw", "--cc", "cubic", "--reverse"],
         ["bw", "--cc", "cubic", "--bidir", "-c", "2"], ["bw", "-u"], ["bw", "-u", "--reverse"],
         ["pps", "-c", "4"], ["lat"], ["lat", "-u"], ["lat", "--crr"], ["lat", "-u", "--one-way"], ["lat", "--spin"]]


def reach_by(host):
    with Lab() as lab:
        serve = lab.serve(1)
        at = {"v4": lab.v4(1), "v6": f"[{lab.v6(1)}]", "local": f"[{lab.link_local(1)}]"}[host] + f":{serve.port}"
        for test in TESTS:
            doc = good(patiently(lab.pitot, 0, *test, at, *SHORT))
            receiver_is_plausible(doc)
            assert doc["peer"]["boot_id"] == doc["local"]["boot_id"]
            assert doc["peer"]["netns"] != doc["local"]["netns"] and doc["peer"]["pitot"], doc["peer"]
            for flow in doc["flows"]:
                if "--crr" not in test:
                    assert flow["remote"] == at and flow["local"], flow
        lines = [line for line in serve.lines if " session_end " in line]
        assert len(lines) == len(TESTS) and all("status=ok" in line for line in lines), serve.text()


def test_everything_over_ipv4():
    reach_by("v4")


def test_everything_over_ipv6():
    reach_by("v6")


def test_everything_over_a_link_local_address_with_zone():
    reach_by("local")


def test_unix_sockets():
    with Local() as lab:
        at = "unix:" + lab.path("socket")
        process = lab.start(0, binary(), "serve", "--listen", at)
        process.wait_line("listening on unix:")
        for test in (["lat"], ["lat", "--spin"], ["lat", "-c", "5", "--inflight", "4"], ["bw"], ["bw", "--reverse"],
                     ["bw", "--bidir", "-c", "2"]):
            receiver_is_plausible(good(patiently(lab.pitot, 0, *test, at, *SHORT)))
        doc = good(lab.pitot(0, "bw", "--bytes", "1000003", "-c", "3", at, "-q"))
        assert doc["totals"]["rx_bytes"] == 1000003 and "congestion_control" not in doc, doc["totals"]
        refused(lab.pitot(0, "lat", "-u", at), "unix socket")
        refused(lab.pitot(0, "bw", "-u", at), "unix socket")
        refused(lab.pitot(0, "pps", at), "unix socket")
        refused(lab.pitot(0, "lat", "--crr", at), "--crr")
        for option in (["--tos", "8"], ["--cc", "cubic"], ["--mss", "500"], ["--bind", "127.0.0.1"],
                       ["--ports", "4000-4100"]):
            refused(lab.pitot(0, "lat", *option, at), option[0])
        refused(lab.pitot(0, "lat", at + ".not"), "pitot serve --listen unix:")


# ---- options

def sockets(lab, node, kind="t"):
    """What ss shows of the flows that a node has with port 7411 of the other."""
    done = subprocess.run(lab.argv(node, ["ss", "-Hn", f"-{kind}iem", "--tos", "( sport = :7411 or dport = :7411 )"]),
                          capture_output=True, text=True, timeout=10, check=True)
    return re.sub(r"\n[\t ]+", " ", done.stdout).splitlines()


def during(lab, kind, *args):
    """Runs a measurement; returns its document and what ss showed of the flows at both ends in the middle."""
    process = lab.begin(0, *args, *LONGER)
    time.sleep(0.8)
    ends = sockets(lab, 0, kind), sockets(lab, 1, kind)
    return good(lab.finish(process)), ends


def flows_of(lines):
    """Without control connections, which move next to nothing."""
    return [line for line in lines
            if max(int(n) for n in re.findall(r"bytes_(?:sent|received):(\d+)", line) or ["0"]) > 1 << 20]


def test_socket_options_reach_both_ends():
    with Lab() as lab:
        at = f"{lab.v4(1)}:{lab.serve(1).port}"
        options = ["--tos", "0xb8", "--mss", "800", "--cc", "reno", "--sndbuf", "300000", "--rcvbuf", "200000"]
        for way in ([], ["--reverse"]):
            doc, ends = during(lab, "t", "bw", *way, *options, at)
            assert doc["congestion_control"] == "reno", doc["sockets"]
            for name, lines in zip(("local", "peer"), ends):
                flow, = flows_of(lines)
                assert "tos:0xb8" in flow and " reno " in flow and "rb400000" in flow and "tb600000" in flow, (name, flow)
                granted = doc["sockets"][name]
                assert granted["sndbuf_bytes"] == 300000 and granted["rcvbuf_bytes"] == 200000, granted
                assert granted["tos"] == 0xb8 and granted["congestion_control"] == "reno", granted
                assert doc["sockets"][name]["mss"] <= 800, granted
                if "bytes_sent" in flow:
                    assert int(re.search(r"\bmss:(\d+)", flow).group(1)) <= 800, flow
        doc, ends = during(lab, "u", "bw", "-u", "-r", "100mbit", *options[:2], *options[6:], at)
        for name, lines in zip(("local", "peer"), ends):
            flow, = lines
            assert "tos:0xb8" in flow and "rb400000" in flow and "tb600000" in flow, (name, flow)


def test_a_receiver_of_datagrams_has_room():
    with Lab() as lab:
        at = f"{lab.v4(1)}:{lab.serve(1).port}"
        doc, ends = during(lab, "u", "bw", "-u", "-r", "100mbit", at)
        flow, = ends[1]
        room = int(re.search(r"rb(\d+)", flow).group(1)) // 2
        assert room == doc["sockets"]["peer"]["rcvbuf_bytes"] and room > 1 << 20, (room, doc["sockets"])
        assert any("UDP receive buffers of" in note for note in doc["notes"]), doc["notes"]
        assert doc["totals"]["lost_packets"] == 0, doc["totals"]
        _, ends = during(lab, "u", "bw", "-u", "-r", "100mbit", "--rcvbuf", "65536", at)
        assert "rb131072" in ends[1][0]


def test_what_the_kernel_does_not_grant_is_said():
    with Lab() as lab:
        at = f"{lab.v4(1)}:{lab.serve(1).port}"
        doc = good(lab.pitot(0, "bw", "--sndbuf", "1GiB", "--rcvbuf", "1GiB", at, *SHORT))
        assert sum("granted (net.core.rmem_max" in note for note in doc["notes"]) == 2, doc["notes"]
        refused(lab.pitot(0, "bw", "--cc", "nosuch", at), "nosuch", "this kernel has")


def test_congestion_control_is_shown_and_a_pacing_one_warned_of_on_loopback():
    with Local() as lab:
        cubic = good(lab.pitot(0, "bw", "--cc", "cubic", *SHORT))
        assert cubic["congestion_control"] == "cubic" and not any("paces" in w for w in cubic["warnings"])
        # Accepted sockets have the system's, or what was asked for: not the listener's.
        default = pathlib.Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
        assert good(lab.pitot(0, "bw", "-R", *SHORT))["congestion_control"] == default
        assert good(lab.pitot(0, "bw", "-R", "--cc", "cubic", *SHORT))["congestion_control"] == "cubic"
        bbr = lab.pitot(0, "bw", "--cc", "bbr", *SHORT)
        if bbr.doc is None:
            assert "this kernel has" in bbr.err, bbr
            return
        assert bbr.doc["congestion_control"] == "bbr" and any("paces" in w for w in bbr.doc["warnings"]), bbr


def test_a_local_window_is_held_only_where_the_path_is_direct():
    """Held while both ends are on one machine and it carries what such a path carries; not at a rate, not when asked
    for otherwise."""
    with Local() as lab:
        def held(*argv):
            doc = good(lab.pitot(0, "bw", "-d", "400ms", "--warmup", "200ms", *argv))
            return any("receive windows are held" in note for note in doc["notes"])
        for argv in (["--cc", "cubic"], ["-R", "--cc", "cubic"]):
            assert any(held(*argv) for _ in range(3)), argv  # a busy machine may carry too little at first
        assert not held("--rcvbuf", "300k")
        assert not held("-r", "1gbit")


def test_source_addresses_and_ports():
    with Lab() as lab:
        at = f"{lab.v4(1)}:{lab.serve(1).port}"
        _ip("addr add 10.77.0.50/24 dev eth0\naddr add 10.77.0.51/24 dev eth0\n", lab.ns(0))
        doc = good(lab.pitot(0, "lat", "--bind", "10.77.0.50,10.77.0.51", "-c", "4", at, *SHORT))
        hosts = [flow["local"].split(":")[0] for flow in doc["flows"]]
        assert sorted(hosts) == ["10.77.0.50"] * 2 + ["10.77.0.51"] * 2, hosts
        for test in (["lat"], ["lat", "-u"]):
            doc = good(lab.pitot(0, *test, "--bind", "10.77.0.50-10.77.0.51", "--ports", "41000-41001", "-c", "4", at,
                                 *SHORT))
            sources = {flow["local"] for flow in doc["flows"]}
            assert sources == {f"10.77.0.5{i}:4100{j}" for i, j in itertools.product((0, 1), (0, 1))}, sources
        refused(lab.pitot(0, "lat", "--bind", "10.77.0.50", "--ports", "41000-41001", "-c", "3", at), "3", status=2)
        refused(lab.pitot(0, "lat", "--bind", "10.77.0.99", at), "10.77.0.99", "no address of this host")
        refused(lab.pitot(0, "lat", "--bind", "fd77::1", at), "fd77::1", status=2)
        doc = good(lab.pitot(0, "lat", "--crr", "--bind", "10.77.0.51", "-n", "50", "--warmup", "0s", at, "-q"))
        seen = subprocess.run(lab.argv(0, ["ss", "-Htan", "state", "time-wait"]), capture_output=True, text=True,
                              timeout=10, check=True).stdout
        assert doc["totals"]["ok"] == 50 and seen.count("10.77.0.51:") >= 50 and seen.count("10.77.0.1:") < 10, seen


@contextlib.contextmanager
def named_hosts(lab):
    """localhost has both families in the lab, whatever the machine's own file says."""
    hosts = pathlib.Path("/etc/netns") / lab.ns(0) / "hosts"  # `ip netns exec` puts it over /etc/hosts
    hosts.parent.mkdir(parents=True)
    hosts.write_text("127.0.0.1 localhost\n::1 localhost\n")
    try:
        yield
    finally:
        shutil.rmtree(hosts.parent)


def test_address_families():
    with Lab(nodes=1) as lab, named_hosts(lab):
        lab.start(0, binary(), "serve").wait_line("listening on 127.0.0.1:7411, ")
        for option, host in (("-4", "127.0.0.1:"), ("-6", "[::1]:")):
            doc = good(lab.pitot(0, "lat", option, "localhost", *SHORT))
            assert doc["flows"][0]["remote"].startswith(host), doc["flows"]
        refused(lab.pitot(0, "lat", "-4", "::1"), "IPv4", status=2)
        refused(lab.pitot(0, "lat", "-6", "127.0.0.1"), "IPv6", status=2)


def test_fragments_only_when_asked():
    with Lab() as lab:
        at = f"{lab.v4(1)}:{lab.serve(1).port}"
        doc = good(lab.pitot(0, "bw", "-u", "-r", "50mbit", at, *SHORT))
        assert doc["totals"]["tx_bytes"] == 1472 * doc["totals"]["tx_packets"] and not doc.get("fragments_sent")
        run = lab.pitot(0, "bw", "-u", "-r", "50mbit", "--size", "9000", at, *SHORT)
        doc = good(run)
        assert doc["totals"]["rx_bytes"] == 9000 * doc["totals"]["rx_packets"] and doc["totals"]["rx_packets"] > 0
        # 9008 bytes in packets that carry 1480 each: seven.
        assert doc["fragments_sent"] >= 7 * doc["totals"]["tx_packets"], doc
        assert any("fragments" in w for w in doc["warnings"]) and "fragments" in run.out, run
        assert any("are fragmented" in n for n in doc["notes"]), doc["notes"]
        doc = good(lab.pitot(0, "bw", "-u", "-r", "50mbit", f"[{lab.v6(1)}]:7411", *SHORT))
        assert doc["totals"]["tx_bytes"] == 1452 * doc["totals"]["tx_packets"] and not doc.get("fragments_sent")


# ---- limits

def test_a_cap_on_the_rate_is_kept_at_both_ends():
    with Lab() as lab:
        at = f"{lab.v4(1)}:{lab.serve(1, '--max-rate', '40mbit').port}"
        for test in (["bw", "--cc", "cubic"], ["bw", "--cc", "cubic", "--reverse"], ["bw", "--cc", "cubic", "--bidir"], ["bw", "-u"], ["bw", "-u", "--reverse"],
                     ["pps", "-s", "100", "-c", "4"]):
            doc = good(lab.pitot(0, *test, at, "-d", "600ms", "--warmup", "200ms", "-q"))
            rates = [d["rates"]["rx_bits_per_s"] for d in doc.get("directions", [doc])]
            # A sender that was held up catches up; 0.2 s of 0.6 may be moved in or out of the window.
            assert all(27e6 < rate < 53e6 for rate in rates), (test, rates)
            assert any("allows 40.0 Mbit/s" in w for w in doc["warnings"]), doc["warnings"]
        good(lab.pitot(0, "bw", "-r", "40mbit", at, *SHORT))
        refused(lab.pitot(0, "bw", "-r", "41mbit", at), "allows 40.0 Mbit/s", "41.0 Mbit/s")
        good(lab.pitot(0, "lat", at, *SHORT))
        fat = lab.pitot(0, "lat", "-s", "60000", at, "-d", "3s", "--warmup", "0s", "-q")
        assert fat.rc == 1 and fat.doc["status"] == "partial" and fat.seconds < 2.5, fat
        assert any("allows 40.0 Mbit/s" in w for w in fat.doc["warnings"]), fat.doc["warnings"]


def test_a_client_that_ignores_the_caps_is_refused():
    with Local() as lab:
        serve = lab.serve(0, "--max-rate", "1mbit", "--max-duration", "2s", "--max-connections", "3")
        for params in ({"rate": None}, {"rate": {"per_s": 2e6, "bits": True}}, {"connections": 4}, {"duration_s": 3.0}):
            client = Client("127.0.0.1", serve.port)
            good_params = {"connections": 1, "duration_s": 1.0, "warmup_s": 0.0, "rate": {"per_s": 5e5, "bits": True}}
            client.send({"type": "test", "workload": "bw", "params": {**good_params, **params}, "workers": 1,
                         "cpus": [-1], "engine": "epoll"})
            try:
                client.receive("accepted")
                raise AssertionError(f"{params} was accepted")
            except Refused as why:
                assert why.args[0] == "limit" and "this server allows" in why.args[1], why
            client.close()
