"""pitot run: plans run as written, alone and together, in namespaces and on the loopback; what is wrong is
refused with its place; however it ends, the document tells what was done and nothing is left running."""
import csv
import datetime
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time

import bounded
import jsonschema
from lab import ROOT, check_document, check_sanitizers
from tap import Skip, limit

PITOT = os.environ["PITOT"]
LOCKS = pathlib.Path("/run/pitot")
SHORT = ["--set", "duration=400ms", "--set", "warmup=100ms", "--set", "interval=100ms"]
ORDINARY = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--reuid=65534", "--regid=65534", "--clear-groups"]
HOSTS = "hosts: {a: {}, b: {count: 2}}\n"


def document(text):
    """The document of a run, checked against its schema, and each of its tests as a result is."""
    doc = json.loads(text)
    schema = json.loads((ROOT / "docs/run.schema.json").read_text())
    jsonschema.validators.validator_for(schema).check_schema(schema)
    # Each test is checked by itself, with its books.
    schema["properties"]["tests"]["items"] = {"type": "object"}
    jsonschema.validate(doc, schema)
    for test in doc["tests"]:
        check_document(json.dumps(test))
    return doc


class Ended:
    def __init__(self, rc, out, err, doc):
        self.rc, self.out, self.err, self.doc = rc, out, err, doc

    def __str__(self):
        return f"{self.rc}\n{self.out}\n{self.err}"

    def named(self, name):
        return [t for t in self.doc["tests"] if t["test"]["name"] == name]


def run(plan, *words, before=(), seconds=60):
    """Runs a plan (a path, or its text) with --json; the text is in `out`."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        folder.chmod(0o777)
        path = plan
        if "\n" in str(plan):
            path = folder / "plan.yaml"
            path.write_text(plan)
        kept = folder / "run.json"
        keep = [] if {"--json", "--dry-run", "--print-plan"} & set(words) else ["--json", kept]
        done = subprocess.run([*map(str, before), PITOT, "run", str(path), *words, *map(str, keep)], capture_output=True,
                              text=True, timeout=seconds)
        check_sanitizers(done.stderr)
        doc = document(kept.read_text()) if kept.exists() else None
        return Ended(done.returncode, done.stdout, done.stderr, doc)


def measured(plan, *words, want=0, **more):
    """A run that shall measure: a machine that pauses longer than a test lasts, or starts its workers as late as
    half a window, gets two more tries."""
    for _ in range(3):
        r = run(plan, *words, **more)
        if r.rc == want and all(skew is None or skew < 200e3 for skew in (r.doc or {}).get("start_skew_us", [])):
            break
    assert r.rc == want, r
    return r


def locks():
    return {p.name for p in LOCKS.iterdir()} if LOCKS.exists() else set()


def family(pid):
    """A process and all below it."""
    tree = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rsplit(")", 1)[1].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        tree.setdefault(int(fields[1]), []).append(int(entry.parent.name))
    found, todo = [], [pid]
    while todo:
        found.append(todo.pop())
        todo += tree.get(found[-1], [])
    return found


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_gone(pids, seconds=10):
    until = time.monotonic() + seconds
    while any(map(alive, pids)):
        assert time.monotonic() < until, [p for p in pids if alive(p)]
        time.sleep(0.05)


# ---- plans that run


def test_a_plan_without_hosts_measures_this_machine():
    r = measured("tests:\n  - bw:\n  - lat: {name: round trips}\n", *SHORT)
    assert r.doc["topology"]["kind"] == "host" and r.doc["topology"]["hosts"] == []
    assert [t["test"]["name"] for t in r.doc["tests"]] == ["bw", "round trips"]
    assert all("from" not in t["test"] and t["test"]["target"] is None for t in r.doc["tests"])
    assert r.doc["together"] == r.doc["start_skew_us"] == r.doc["sums"] == []
    assert r.doc["name"] == "plan" and r.doc["status"] == "ok"
    assert "round trips, this machine" in r.out and "All tests" in r.out


def test_the_same_test_as_its_command():
    """Every value of a test reaches the measurement as it does from the command line."""
    r = measured("tests:\n  - lat: {connections: 3, udp: true, rate: 2k, arrivals: poisson, size: 100, duration: 400ms,\n"
                 "          warmup: 100ms, engine: epoll, tos: 0x2e, expect: ['p50<1s', errors==0]}\n")
    line = subprocess.run([PITOT, "lat", "-c3", "-u", "-r2k", "--arrivals=poisson", "-s100", "-d400ms", "--warmup=100ms",
                           "--engine=epoll", "--tos=0x2e", "--expect=p50<1s", "--expect=errors==0", "-q", "--json", "-"],
                          capture_output=True, text=True, timeout=30)
    assert json.loads(line.stdout)["test"]["params"] == r.doc["tests"][0]["test"]["params"]
    assert [x["ok"] for x in r.doc["tests"][0]["expect"]] == [True, True]


def test_hosts_are_namespaces_for_root():
    if os.geteuid() != 0:
        raise Skip("network namespaces need root")
    before = locks()
    r = measured(HOSTS + "tests:\n  - lat: {from: b-2, to: a}\n  - bw: {from: a, to: b-1, ipv6: true}\n", *SHORT)
    topology = r.doc["topology"]
    assert topology["kind"] == "namespaces", topology
    address = {h["name"]: h for h in topology["hosts"]}
    assert set(address) == {"a", "b-1", "b-2"}
    lat, bw = r.doc["tests"]
    assert lat["test"]["from"] == "b-2" and lat["test"]["to"] == lat["test"]["target"] == "a"
    assert lat["flows"][0]["remote"].startswith(address["a"]["v4"] + ":"), lat["flows"]
    assert lat["flows"][0]["local"].startswith(address["b-2"]["v4"] + ":"), lat["flows"]
    assert bw["flows"][0]["remote"].startswith("[" + address["b-1"]["v6"] + "]:"), bw["flows"]
    assert lat["local"]["netns"] != lat["peer"]["netns"] and lat["local"]["boot_id"] == lat["peer"]["boot_id"]
    assert len(lat["hosts"]) == 2
    assert locks() <= before


def test_hosts_are_loopback_addresses_for_others():
    before = []
    if os.geteuid() == 0:
        if bounded.run([*ORDINARY, "test", "-x", PITOT], 10).rc != 0:
            raise Skip("the build folder is not readable for an ordinary user")
        before = ORDINARY
    r = measured(HOSTS + "tests:\n  - lat: {from: b, to: a}\n  - bw: {from: a, to: b-2, ipv6: true}\n", *SHORT, before=before)
    assert r.doc["topology"]["kind"] == "loopback" and "need root" in " ".join(r.out.split()), r
    address = {h["name"]: h["v4"] for h in r.doc["topology"]["hosts"]}
    one, two = r.named("lat")
    for test, host in ((one, "b-1"), (two, "b-2")):
        assert test["flows"][0]["local"].startswith(address[host] + ":"), test["flows"]
        assert test["flows"][0]["remote"].startswith(address["a"] + ":"), test["flows"]
    assert r.named("bw")[0]["flows"][0]["remote"].startswith("[::1]:")


def test_several_senders_run_at_once_and_are_added_up():
    r = measured("hosts: {t: {}, s: {count: 3}}\ntests:\n  - pps: {from: s, to: t, connections: 2, rate: 2k}\n"
                 "  - lat: {from: s-1, to: t}\n", *SHORT)
    assert [t["test"].get("from") for t in r.doc["tests"]] == ["s-1", "s-2", "s-3", "s-1"]
    assert r.doc["together"] == [[0, 1, 2]]
    # All are told one instant; how late a busy machine runs them is measured, and not half a window.
    assert 0 <= r.doc["start_skew_us"][0] < 200e3, r.doc["start_skew_us"]
    total, = r.doc["sums"]
    assert total["name"] == "pps" and total["tests"] == [0, 1, 2]
    for block, key in (("rates", "rx_packets_per_s"), ("totals", "tx_packets"), ("totals", "lost_packets")):
        parts = sum(t[block][key] for t in r.doc["tests"][:3])
        assert abs(total[block][key] - parts) <= 1e-6 * max(parts, 1), (key, total)
    assert 4500 < total["rates"]["tx_packets_per_s"] < 7500, total
    assert "pps, in all" in r.out


def window(test):
    """When the window of a test was to begin, to 1 ms, in seconds since the epoch."""
    return datetime.datetime.fromisoformat(test["started"].replace("Z", "+00:00")).timestamp() + test["warmup_s"]


def test_windows_of_tests_together_begin_at_one_instant():
    """Whatever their warm-ups are; tests that follow each other do not."""
    r = measured("tests:\n  - together:\n      - lat: {rate: 2k, duration: 500ms, warmup: 100ms}\n"
                 "      - bw: {udp: true, rate: 20mbit, duration: 500ms, warmup: 900ms}\n"
                 "      - pps: {rate: 1k, connections: 2, duration: 500ms, warmup: 300ms}\n"
                 "  - lat: {duration: 500ms, warmup: 100ms}\n")
    at = [window(t) for t in r.doc["tests"]]
    assert max(at[:3]) - min(at[:3]) < 0.01, at
    assert at[3] - at[0] > 0.5, at
    assert r.doc["together"] == [[0, 1, 2]] and 0 <= r.doc["start_skew_us"][0] < 200e3, r.doc["start_skew_us"]


def test_tests_together_are_repeated_together():
    r = measured("tests:\n  - together:\n      - lat: {rate: 2k, duration: 300ms, warmup: 100ms, repeat: 3}\n"
                 "      - bw: {udp: true, rate: 20mbit, duration: 300ms, warmup: 200ms, repeat: 3}\n")
    assert [t["repeat"]["n"] for t in r.doc["tests"]] == [3, 3]
    assert 0 <= r.doc["start_skew_us"][0] < 200e3 and r.doc["sums"] == [], r.doc["start_skew_us"]


def test_one_that_cannot_begin_calls_its_group_off_and_the_plan_goes_on():
    r = run("tests:\n  - together:\n      - lat: {duration: 300ms, warmup: 100ms}\n"
            "      - pps: {path: xdp, duration: 300ms, warmup: 100ms}\n  - bw: {duration: 300ms, warmup: 100ms}\n")
    assert r.rc == 1 and r.doc["status"] == "partial" and r.doc["exit"] == 1, r
    assert [t["status"] for t in r.doc["tests"]] == ["failed", "failed", "ok"]
    assert "together" in r.doc["tests"][0]["warnings"][0] and "--path xdp" in r.doc["tests"][1]["warnings"][0]
    assert r.doc["start_skew_us"] == [None]


def test_only_and_set():
    plan = "tests:\n  - lat: {}\n  - together: [bw: {}, lat: {name: beside}]\n"
    r = measured(plan, *SHORT, "--only", "beside", "--only", "lat", "--set", "connections=2")
    assert [t["test"]["name"] for t in r.doc["tests"]] == ["lat", "beside"] and r.doc["together"] == []
    assert all(t["test"]["params"]["connections"] == 2 for t in r.doc["tests"])
    assert "connections: 2\n" in r.doc["plan"]


def test_boost_search_load_and_repeat_work_in_plans():
    r = measured("tests:\n  - lat: {name: b, boost: 'conns:2,every:200ms,until:flat', warmup: 100ms}\n"
                 "  - lat: {name: l, load: tcp, duration: 300ms, warmup: 100ms}\n"
                 "  - lat: {name: r, repeat: 3, duration: 200ms, warmup: 100ms}\n")
    assert r.named("b")[0]["steps"] and r.named("l")[0]["load"]["status"] == "ok" and r.named("r")[0]["repeat"]["n"] == 3


# ---- thresholds, endings


def test_the_exit_status_is_that_of_the_worst_test():
    held, missed = "{expect: 'p50<10s'}", "{expect: 'p50<1ns'}"
    assert measured(f"tests:\n  - lat: {held}\n", *SHORT).doc["exit"] == 0
    r = measured(f"tests:\n  - lat: {missed}\n  - lat: {held}\n", *SHORT, want=3)
    assert r.doc["exit"] == 3 and r.doc["status"] == "ok" and "not held" in r.out
    r = run(f"tests:\n  - lat: {missed}\n  - pps: {{path: xdp}}\n", *SHORT)
    assert r.rc == r.doc["exit"] == 1, r


def started(folder, plan):
    """A plan that runs, with the paths of its document and of its output."""
    path, kept, log = folder / "plan.yaml", folder / "run.json", folder / "log"
    path.write_text(plan)
    with log.open("w") as out:
        process = subprocess.Popen([PITOT, "run", path, "--json", kept], stdin=subprocess.DEVNULL, stdout=out,
                                   stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=bounded.die_with_parent)
    return process, kept, log


def wait_text(log, pattern, seconds=15):
    until = time.monotonic() + seconds
    while not re.search(pattern, log.read_text(), re.M):
        assert time.monotonic() < until, log.read_text()
        time.sleep(0.02)


LONG = HOSTS + ("tests:\n  - lat: {from: a, to: b-1, duration: 300ms, warmup: 100ms, name: first}\n"
                "  - together:\n      - lat: {from: b, to: a, duration: 60s, warmup: 100ms, interval: 100ms}\n"
                "      - bw: {from: a, to: b-1, duration: 60s, warmup: 100ms}\n  - bw: {from: a, to: b-1, name: last}\n")


def interrupt(folder, number, group):
    process, kept, log = started(folder, LONG)
    wait_text(log, r"^running lat from 2 hosts, bw: (?:.|\n)*^ +\d.*p99")
    pids = family(process.pid)
    (os.killpg if group else os.kill)(process.pid, number)
    assert process.wait(20) == 130, log.read_text()
    doc = document(kept.read_text())
    assert doc["exit"] == 130 and doc["status"] == "partial"
    assert [t["status"] for t in doc["tests"]] == ["ok", "partial", "partial", "partial"], log.read_text()
    assert all(t["totals"]["ok"] > 0 for t in doc["tests"])
    assert doc["together"] == [[1, 2, 3]]
    assert any("last was not run" in w for w in doc["warnings"]), doc["warnings"]
    wait_gone(pids)
    check_sanitizers(log.read_text())


def test_an_interrupt_ends_with_the_document_of_what_was_done():
    """A terminal sends SIGINT to the whole group; an operator may send SIGTERM to the one."""
    for number, group in ((signal.SIGINT, True), (signal.SIGTERM, False)):
        with tempfile.TemporaryDirectory() as folder:
            interrupt(pathlib.Path(folder), number, group)


def test_an_interrupt_before_a_test_has_measured_tells_so():
    with tempfile.TemporaryDirectory() as folder:
        process, kept, log = started(pathlib.Path(folder), "tests:\n  - lat: {duration: 60s}\n")
        wait_text(log, r"^running lat")
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130, log.read_text()
        doc = document(kept.read_text())
        assert doc["exit"] == 130 and len(doc["tests"]) + len(doc["warnings"]) == 1, doc


def test_sigkill_leaves_nothing_after_the_next_start():
    before = locks()
    with tempfile.TemporaryDirectory() as folder:
        process, _, log = started(pathlib.Path(folder), LONG)
        wait_text(log, r"^running lat from 2 hosts")
        time.sleep(0.5)
        pids = family(process.pid)
        assert len(pids) > 5, pids
        process.kill()
        process.wait(10)
    assert run(HOSTS + "tests:\n  - lat: {from: a, to: b-1}\n", "--dry-run").rc == 0
    wait_gone(pids)
    until = time.monotonic() + 5
    while os.geteuid() == 0 and locks() - before:
        assert time.monotonic() < until, locks() - before
        time.sleep(0.05)


# ---- what runs nothing


def test_what_is_wrong_is_refused_with_its_place():
    wrong = [("tests:\n  - lat: {conections: 5}\n", r"plan.yaml:2:11: unknown key 'conections' of lat; did you mean 'connections'"),
             ("tests:\n  - lat: {duration: 5 parsecs}\n", r"plan.yaml:2:21: duration: .*expected a time"),
             ("tests:\n  - lat: {requests: 5, duration: 5s}\n", r"plan.yaml:2:5: requests and duration contradict"),
             ("tests:\n  - bw: {bytes: 0}\n", r"plan.yaml:2:5: bytes must be at least 1"),
             ("tests:\n  - bw: {udp: true, cc: bbr}\n", r"plan.yaml:2:5: cc is about TCP"),
             ("tests:\n  - lat: {udp: true, crr: true}\n", r"plan.yaml:2:5: "),
             ("link: {rtt: 1ms}\ntests: []\n", r"plan.yaml:1:1: link: this version has no emulated links"),
             ("a: &a [1]\nb: *a\n", r"plan.yaml:1:4: anchors"), ("tests: [\n", r"plan.yaml:2:1: ")]
    for plan, needle in wrong:
        r = run(plan)
        assert r.rc == 2 and not r.out and r.doc is None, (plan, r)
        assert re.search(needle, r.err) and r.err.count("\n") == 1, (plan, r.err)
    plan = "tests:\n  - lat: {name: x}\n"
    for words, needle in ((["--only", "y"], "has no test 'y'"), (["--set", "duratoin=5s"], "did you mean 'duration'"),
                          (["--set", "duration"], "KEY=VALUE"), (["--set", "duration=x"], "test x: "),
                          (["--set", "requests=5", "--set", "duration=1s"], "contradict"),
                          (["--dry-run", "--json", "x"], "measure nothing"), (["--print-plan", "--dry-run"], "one at a time"),
                          (["--json", "x.summary.csv", "--csv", "x.csv"], "give one another name")):
        r = run(plan, *words)
        assert r.rc == 2 and not r.out and needle in r.err and r.err.count("\n") == 1, (words, r)
    for words in ([], ["/nonexistent.yaml"], ["/etc/passwd"], ["a", "b"], ["/"]):
        done = subprocess.run([PITOT, "run", *words], capture_output=True, text=True, timeout=20)
        assert done.returncode == 2 and done.stderr.count("\n") == 1, (words, done)


def test_the_printed_plan_is_the_same_plan():
    for path in sorted((ROOT / "plans").glob("*.yaml")):
        first = run(path, "--print-plan", "--set", "timeout=7s")
        again = run(first.out, "--print-plan")
        assert first.rc == again.rc == 0 and first.out == again.out, path
        assert "timeout: 7s\n" in first.out and "!default" in first.out


def test_a_dry_run_says_what_and_where_and_runs_nothing():
    for path in sorted((ROOT / "plans").glob("*.yaml")):
        r = run(path, "--dry-run")
        assert r.rc == 0 and not r.err, r
        assert re.search(r"^plan [\w-]+: [\d.]+ (s|min)", r.out), r.out
        assert re.search(r"^    \S+ \((10|127)\.[\d.]+\) to \S+ \((10|127)\.[\d.]+\)$", r.out, re.M), r.out
        commands = re.findall(r"^    pitot (.*)$", r.out, re.M)
        assert len(commands) >= 3, r.out
    r = run("tests:\n  - lat: {expect: \"p99<5ms\", requests: 7}\n", "--dry-run")
    assert "pitot lat --requests=7 '--expect=p99<5ms'" in r.out or "pitot lat --requests=7 --expect='p99<5ms'" in r.out, r.out
    assert "until it is done" in r.out


# ---- the ready plans, and the reports


@limit(150)
def test_the_ready_plans_complete():
    before = [[]]
    if os.geteuid() == 0 and bounded.run([*ORDINARY, "test", "-x", PITOT], 10).rc == 0 and \
            bounded.run([*ORDINARY, "test", "-r", ROOT / "plans/quick.yaml"], 10).rc == 0:
        before.append(ORDINARY)
    for way in before:
        for name, tests in (("quick", 3), ("ecs-network", 5), ("bufferbloat", 4)):
            r = measured(ROOT / f"plans/{name}.yaml", "-q", "--set", "duration=1500ms", "--set", "warmup=300ms", before=way)
            assert len(r.doc["tests"]) == tests and r.doc["status"] == "ok", (name, r)
            if name == "ecs-network":
                assert r.doc["sums"][0]["rates"]["rx_packets_per_s"] > 0
                lat = r.named("lat")[0]["latency"]
                assert lat["mean_us"] > 0 and lat["p99_us"] >= lat["p50_us"]


def test_a_stored_run_gives_the_same_report_again():
    with tempfile.TemporaryDirectory() as folder:
        at = pathlib.Path(folder)
        (at / "p.yaml").write_text("tests:\n  - lat: {}\n  - together: [bw: {}, lat: {name: '带宽, \"x\"'}]\n")
        files = ["--json", str(at / "a.json"), "--csv", str(at / "a.csv")]
        made = subprocess.run([PITOT, "run", str(at / "p.yaml"), "-q", *SHORT, *files], capture_output=True, text=True, timeout=40)
        assert made.returncode == 0, made
        again = subprocess.run([PITOT, "report", str(at / "a.json"), "--json", str(at / "b.json"), "--csv", str(at / "b.csv")],
                               capture_output=True, text=True, timeout=20)
        assert again.returncode == 0 and again.stdout.replace("/b.", "/a.") == made.stdout, (made.stdout, again.stdout)
        for kind in ("json", "csv", "summary.csv"):
            assert (at / f"a.{kind}").read_bytes() == (at / f"b.{kind}").read_bytes(), kind
        doc = document((at / "a.json").read_text())
        rows = list(csv.DictReader((at / "a.summary.csv").open(newline="")))
        assert [row["test"] for row in rows] == [t["test"]["name"] for t in doc["tests"]] == ["lat", "bw", '带宽, "x"']
        assert [int(row["ok"]) for row in rows] == [t["totals"]["ok"] for t in doc["tests"]]
        series = list(csv.DictReader((at / "a.csv").open(newline="")))
        assert len(series) == sum(len(t["series"]) for t in doc["tests"])
        zh = subprocess.run([PITOT, "report", str(at / "a.json"), "--lang", "zh"], capture_output=True, text=True, timeout=20)
        assert "全部测试" in zh.stdout and "往返" in zh.stdout, zh
    r = measured("tests:\n  - lat: {}\n", *SHORT, "-q", "--json", "-")
    document(r.out)
    assert "All tests" in r.err and "running" not in r.err
