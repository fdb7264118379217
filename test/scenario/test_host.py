"""`pitot host` and the `hosts` of a result say what sar, free and top say of the same time."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

import jsonschema
from lab import Lab, Local, binary
from tap import Skip

PITOT = binary()
ROOT = pathlib.Path(__file__).resolve().parents[2]
C = {**os.environ, "LC_ALL": "C", "S_COLORS": "never", "COLUMNS": "200"}


def host(*words, limit=30, **more):
    return subprocess.run([PITOT, "host", *words], capture_output=True, text=True, timeout=limit, **more)


def document(text):
    d = json.loads(text)
    schema = json.loads((ROOT / "docs/host.schema.json").read_text())
    wrong = [f"{'/'.join(map(str, e.path))}: {e.message}"
             for e in jsonschema.validators.validator_for(schema)(schema).iter_errors(d)]
    assert not wrong, wrong[:5]
    cpu = d["cpu"]
    assert abs(sum(v for k, v in cpu.items() if k != "per_cpu") - 100) < 1e-3, cpu
    return d


def table(text, first):
    """The rows of the average, by their first column, of the table of sar whose header has the word `first`."""
    rows, names = {}, None
    for line in text.splitlines():
        words = line.split()
        if first in words:
            names = words[words.index(first) + 1:]
        elif not words:
            names = None
        elif names and words[0] == "Average:":
            rows[words[1]] = dict(zip(names, map(float, words[2:])))
    return rows


def near(ours, theirs, share, least):
    return abs(ours - theirs) <= max(share * max(abs(ours), abs(theirs)), least)


def agree(d, sar):
    """What differs by more than that the two did not look at quite the same instants."""
    cpu, theirs = d["cpu"], table(sar, "CPU")["all"]
    wrong = []
    for key, name in (("user_pct", "%usr"), ("nice_pct", "%nice"), ("system_pct", "%sys"), ("iowait_pct", "%iowait"),
                      ("irq_pct", "%irq"), ("softirq_pct", "%soft"), ("steal_pct", "%steal"), ("idle_pct", "%idle")):
        if not near(cpu[key], theirs[name], 0, 2.5):
            wrong.append((key, cpu[key], theirs[name]))
    lo, theirs = next(n for n in d["net"] if n["if"] == "lo"), table(sar, "IFACE")["lo"]
    for key, name in (("rx_packets_per_s", "rxpck/s"), ("tx_packets_per_s", "txpck/s"), ("rx_kB_per_s", "rxkB/s"),
                      ("tx_kB_per_s", "txkB/s"), ("rx_cmp_per_s", "rxcmp/s"), ("tx_cmp_per_s", "txcmp/s")):
        if not near(lo[key], theirs[name], 0.05, 2):
            wrong.append((key, lo[key], theirs[name]))
    return wrong


def test_cpu_and_network_as_sar():
    for attempt in range(4):
        load = subprocess.Popen([PITOT, "pps", "-c", "2", "-r", "20k", "-d", "6s", "--warmup", "0s", "-q"],
                                stdout=subprocess.DEVNULL)
        time.sleep(1)
        sar = subprocess.Popen(["sar", "-u", "ALL", "-n", "DEV", "3", "1"], stdout=subprocess.PIPE, text=True, env=C)
        done = host("-i", "3s", "-n", "1", "-q", "--json", "-")
        text = sar.communicate(timeout=20)[0]
        load.wait(20)
        wrong = agree(document(done.stdout), text)
        if not wrong:
            return
        print("# attempt", attempt, wrong, flush=True)
    assert not wrong, wrong


def test_memory_as_free():
    for _ in range(4):
        done = host("-i", "200ms", "-n", "1", "-q", "--json", "-")
        lines = subprocess.run(["free", "-b"], capture_output=True, text=True, env=C, timeout=10).stdout.splitlines()
        theirs = dict(zip(lines[0].split(), map(int, lines[1].split()[1:])))
        ours = document(done.stdout)["memory"]
        far = [k for k, name in (("used", "used"), ("free", "free"), ("shared", "shared"), ("buff_cache", "buff/cache"),
                                 ("available", "available")) if abs(ours[k] - theirs[name]) > 64 << 20]
        assert ours["total"] == theirs["total"], (ours, theirs)
        if not far:
            return
    assert not far, (far, ours, theirs)


def test_a_process_as_top_and_load_as_uptime():
    sleeper = subprocess.Popen(["sleep", "30"])
    try:
        time.sleep(0.2)
        done = host("-i", "200ms", "-n", "1", "-q", "--pid", str(sleeper.pid), "--json", "-")
        top = subprocess.run(["top", "-b", "-n", "1", "-E", "k", "-e", "k", "-p", str(sleeper.pid)], capture_output=True,
                             text=True, env=C, timeout=20).stdout
        words = next(line for line in top.splitlines() if line.split()[:1] == [str(sleeper.pid)]).split()
        ours = document(done.stdout)
        assert [ours["process"][k] // 1024 for k in ("virt", "res", "shr")] == [int(w) for w in words[4:7]], (ours, words)
        assert ours["process"]["cpu_user_s"] == 0, ours["process"]
        load = [float(v) for v in pathlib.Path("/proc/loadavg").read_text().split()[:3]]
        assert all(abs(a - b) < 1 for a, b in zip(ours["load"], load)), (ours["load"], load)
    finally:
        sleeper.kill()
        sleeper.wait()


def test_views_averages_and_the_end():
    done = host("-i", "200ms", "-n", "2")
    assert done.returncode == 0 and done.stdout.count("This host") == 2 and done.stdout.count("Averages") == 1, done
    assert "\x1b" not in done.stdout and "load average" in done.stdout and "buff/cache" in done.stdout
    done = host("-i", "200ms", "-n", "1", "--lang", "zh")
    assert "平均值" in done.stdout and "内存" in done.stdout, done.stdout
    view = subprocess.Popen([PITOT, "host", "-i", "200ms"], stdout=subprocess.PIPE, text=True)
    time.sleep(0.7)
    view.send_signal(signal.SIGINT)
    text = view.communicate(timeout=10)[0]
    assert view.returncode == 0 and "Averages" in text and text.count("This host") >= 2, text
    with tempfile.TemporaryDirectory() as folder:
        done = host("-i", "100ms", "-d", "500ms", "-q", "--json", folder + "/h.json")
        d = document(pathlib.Path(folder, "h.json").read_text())
        assert 4 <= len(d["series"]) <= 6 and abs(d["interval_s"] - 0.5) < 0.2, d["series"]
        assert d["sampling"]["cpu_pct"] < 5, d["sampling"]


def hidden(name):
    """The text and the document of a `pitot host` whose /proc has no `name`, or of which /proc/net has none."""
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder).chmod(0o755)
        what = "mount --bind /dev/null /proc/" + name
        if name.startswith("net/"):
            # A file of /proc/net cannot be mounted over, the folder of the process can.
            os.mkdir(folder + "/net")
            for other in ("dev", "snmp", "netstat", "snmp6", "softnet_stat"):
                if "net/" + other != name and os.path.exists("/proc/net/" + other):
                    pathlib.Path(folder, "net", other).write_text(pathlib.Path("/proc/net", other).read_text())
            what = f"mount --bind {folder}/net /proc/$$/net"
        done = subprocess.run(["unshare", "-m", "sh", "-c", f'{what} && exec "$0" "$@"', PITOT, "host", "-i", "200ms", "-n", "1",
                               "-q", "--json", folder + "/h.json"], capture_output=True, text=True, timeout=20)
        kept = pathlib.Path(folder, "h.json")
        return done, json.loads(kept.read_text()) if kept.exists() else None


def test_what_proc_hides_is_unknown_not_nothing():
    if os.geteuid() != 0:
        raise Skip("mounting over /proc needs root")
    done, d = hidden("meminfo")
    assert d["memory"]["used"] is None and d["load"][0] is not None and d["tcp"]["retransmits"] is not None, (done, d)
    done, d = hidden("loadavg")
    assert d["load"] == [None] * 3 and d["load_per_cpu"] is None and "load average" not in done.stdout, (done, d)
    done, d = hidden("net/softnet_stat")
    assert d["softnet"]["dropped"] is None and d["tcp"]["retransmits"] is not None and d["net"], (done, d)
    assert "- dropped, - squeezed" in done.stdout and "0 retransmits" in done.stdout, done
    done, d = hidden("net/snmp")
    assert d["tcp"]["retransmits"] is None and d["cpu"]["idle_pct"] is not None, (done, d)
    assert "- retransmits, - listen overflows" in done.stdout and "- RcvbufErrors" in done.stdout, done
    done, d = hidden("stat")
    assert done.returncode == 1 and "/proc/stat" in done.stderr and d is None, done


def test_without_root_and_in_a_namespace_of_its_own():
    if os.geteuid() != 0:
        raise Skip("network namespaces need root")
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder).chmod(0o755)
        mine = shutil.copy(PITOT, folder + "/pitot")
        done = subprocess.run(["unshare", "-n", "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", mine, "host",
                               "-i", "200ms", "-n", "1", "-q", "--json", "-"], capture_output=True, text=True, timeout=20)
        d = document(done.stdout)
        assert [n["if"] for n in d["net"]] == ["lo"] and d["memory"]["total"] > 0, d


def test_what_is_refused():
    for words, part in ((["--pid", "0"], "--pid 0"), (["--pid", "999999999"], "no such process"),
                        (["--if", "nosuch0"], "no such interface"), (["-i", "1ms"], "100ms"), (["eth0"], "no argument"),
                        (["--json", "/nonexistent/h.json", "-n", "1", "-i", "100ms"], "/nonexistent/h.json")):
        done = host(*words)
        assert done.returncode in (1, 2) and part in done.stderr, (words, done)


def test_sampling_costs_next_to_nothing():
    for _ in range(3):
        done = host("-d", "3s", "-q", "--json", "-")
        cost = document(done.stdout)["sampling"]["cpu_pct"]
        if cost < 0.5:
            return
    assert cost < 0.5, cost


def test_results_have_both_hosts():
    quick = ("-d", "1200ms", "--warmup", "200ms", "-q")
    with Local() as lab:
        hosts = lab.pitot(0, "bw", "-r", "200mbit", *quick).doc["hosts"]
        assert len(hosts) == 1 and hosts[0]["role"] == "both" and hosts[0]["cpus"] >= 1, hosts
        assert abs(hosts[0]["interval_s"] - 1.2) < 0.3 and len(hosts[0]["series"]) >= 1, hosts[0]
        assert hosts[0]["process"]["res"] > 0 and hosts[0]["sampling"]["cpu_pct"] < 2, hosts[0]
    with Lab() as lab:
        at = f"{lab.v4(1)}:{lab.serve(1).port}"
        for argv, roles in ((["bw", "-r", "200mbit"], ["sender", "receiver"]),
                            (["bw", "-R", "-r", "200mbit"], ["receiver", "sender"]), (["lat"], ["both", "both"])):
            hosts = lab.pitot(0, argv[0], at, *argv[1:], *quick).doc["hosts"]
            assert [h["role"] for h in hosts] == roles, hosts
            if roles[0] != roles[1]:
                sent = max(n["tx_kB_per_s"] for n in hosts[roles.index("sender")]["net"])
                came = max(n["rx_kB_per_s"] for n in hosts[roles.index("receiver")]["net"])
                assert 0.7 < sent * 1024 * 8 / 200e6 < 1.4 and near(sent, came, 0.2, 1), (sent, came)
