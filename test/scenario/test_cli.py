"""The command line and the documents: what is refused, what is printed where, what is stored."""
import csv
import json
import os
import pathlib
import subprocess
import tempfile

import jsonschema

PITOT = os.environ["PITOT"]
ROOT = pathlib.Path(__file__).resolve().parents[2]
SHORT = ["-d", "0.3", "--warmup", "0.1s", "-i", "100ms"]
COMMANDS = ["bw", "pps", "lat", "run", "host", "doctor", "serve", "truth", "report", "compare"]
TESTS = [["bw"], ["bw", "-u"], ["bw", "--bidir"], ["bw", "--reverse"], ["pps", "-c2"], ["lat"], ["lat", "-u", "-r1000"],
         ["lat", "--crr"], ["lat", "-u", "--one-way"]]


def run(*words, env=None, **options):
    return subprocess.run([PITOT, *words], capture_output=True, text=True, timeout=30,
                          env={**os.environ, **(env or {})}, **options)


def measured(*words, **more):
    """A run that shall measure something: a machine that pauses longer than it lasts gets two more tries."""
    for _ in range(3):
        r = run(*words, **more)
        if r.returncode == 0:
            break
    return r


def document(text):
    """The document, checked against the schema; numbers that JSON does not have are refused."""
    def refuse(word):
        raise ValueError(f"{word} is no JSON")
    d = json.loads(text, parse_constant=refuse)
    schema = json.loads((ROOT / "docs/result.schema.json").read_text())
    cls = jsonschema.validators.validator_for(schema)
    cls.check_schema(schema)
    wrong = [f"{'/'.join(map(str, e.path))}: {e.message}" for e in cls(schema).iter_errors(d)]
    assert not wrong, wrong[:5]
    return d


def at(d, path):
    for key in path.split("."):
        d = d[int(key)] if isinstance(d, list) else d[key]
    return d


def test_every_command_has_help_that_fits():
    for command in COMMANDS:
        for words in ([command, "--help"], ["help", command]):
            r = run(*words)
            assert r.returncode == 0 and not r.stderr, (words, r)
            assert r.stdout.startswith(f"usage: pitot {command}"), r.stdout[:80]
            long = [line for line in r.stdout.splitlines() if len(line) > 80]
            assert not long, (command, long)
        man = run("--man", command)
        assert man.returncode == 0 and man.stdout.startswith(f'.TH "pitot\\-{command}" 1'), man


def test_what_is_wrong_is_refused_in_one_line():
    wrong = [(["bww"], 'did you mean "bw"'), (["bw", "--conections", "5"], "did you mean --connections?"),
             (["lat", "-d", "5 minutes"], "expected a time"), (["lat", "-n5", "-d5"], "contradict"),
             (["pps", "--size=-1"], "expected bytes"), (["bw", "--db=x"], "unknown option --db"),
             (["bw", "--html=a.summary.csv", "--csv=a.csv"], "give one another name"),
             (["lat", "-c"], "needs a value"), (["lat", "a", "b"], "one target at a time"),
             (["lat", "--expect", "p98<1ms"], "unknown figure"), (["lat", "--expect", "p99<1"], "say the unit"),
             (["bw", "--bytes", "0"], "--bytes must be"), (["lat", "--secret-file", "x"], "name HOST"),
             (["lat", "--json", "x.summary.csv", "--csv", "x.csv"], "give one another name"),
             (["lat", "127.0.0.1:99999"], "port"), (["lat", "[::1"], "expected [v6]"), (["lat", "::1", "-4"], "-4"),
             (["lat", "127.0.0.1", "-6"], "-6"), (["lat", "fe80::1"], "needs its interface"),
             (["lat", "--cpus", "1000"], "CPU 1000 is not usable"), (["lat", "--bind", "::1", "127.0.0.1"], "IPv4"),
             (["lat", "--ports", "20000-20001", "-c", "5"], "do not fit"), (["lat", "--ports", "0-10"], "0 is no port")]
    for words, needle in wrong:
        r = run(*words)
        assert r.returncode == 2 and not r.stdout, (words, r)
        assert needle in r.stderr and len(r.stderr.splitlines()) == 1, (words, r.stderr)
    assert run().returncode == 2
    assert run("--version").stdout.startswith("pitot ")


def test_documents_follow_the_schema_and_balance():
    for words in TESTS:
        r = measured(*words, *SHORT, "--json", "-")
        assert r.returncode == 0, (words, r)
        d = document(r.stdout)
        t = d["totals"]
        assert t["operations"] == t["ok"] + sum(t["errors"].values()) + t["in_flight_at_end"], (words, t)
        assert t["ok"] > 0 and d["series"] and d["headline"], words
        for h in d["headline"]:
            assert at(d, h["path"]) == h["value"], (words, h)
        assert "pitot " + words[0] in r.stderr, "the text goes to stderr"


def test_json_is_json_in_every_locale():
    for env in ({"LC_ALL": "de_DE.UTF-8"}, {"LC_ALL": "zh_CN.UTF-8"}, {"LC_ALL": "C"}, {"LANG": "tr_TR", "LC_ALL": ""}):
        d = document(measured("lat", *SHORT, "--json", "-", env=env).stdout)
        assert d["totals"]["ok"] > 0


def test_a_full_disk_does_not_lose_the_result():
    with tempfile.TemporaryDirectory() as dir:
        r = run("lat", *SHORT, "--json", "/dev/full", env={"TMPDIR": dir})
        assert r.returncode == 1, r
        assert "No space left on device" in r.stderr, r.stderr
        files = list(pathlib.Path(dir).iterdir())
        assert len(files) == 1 and str(files[0]) in r.stderr, (files, r.stderr)
        document(files[0].read_text())
    r = run("lat", *SHORT, "--json", "/dev/full", env={"TMPDIR": "/nonexistent"})
    document(r.stderr[r.stderr.index("{\n"):r.stderr.rindex("}\n") + 2])


def test_a_page_that_cannot_be_written_does_not_lose_the_result():
    for option in ("--html", "--csv"):
        with tempfile.TemporaryDirectory() as dir:
            r = run("lat", *SHORT, option, "/dev/full", env={"TMPDIR": dir})
            files = list(pathlib.Path(dir).iterdir())
            assert r.returncode == 1 and len(files) == 1 and str(files[0]) in r.stderr, (r, files)
            document(files[0].read_text())
            # What is stored already is not stored again.
            r = run("report", str(files[0]), option, "/dev/full", env={"TMPDIR": dir})
            assert r.returncode == 1 and len(list(pathlib.Path(dir).iterdir())) == 1, r


def test_the_report_says_where_all_files_are():
    with tempfile.TemporaryDirectory() as dir:
        names = {kind: str(pathlib.Path(dir) / f"a.{kind}") for kind in ("json", "csv", "html")}
        r = measured("lat", *SHORT, *(w for kind, name in names.items() for w in (f"--{kind}", name)))
        for kind, name in names.items():
            assert any(line.split() == [kind.upper(), name] for line in r.stdout.splitlines()), r.stdout


def test_what_cannot_be_written_is_told_before_anything_runs():
    for words in (["lat", "-d", "1h"], ["run", str(ROOT / "plans/quick.yaml")], ["host"], ["doctor"]):
        for path, part in (("/nonexistent/x", "/nonexistent: No such file"), ("/tmp", "is a directory")):
            r = run(*words, "--json", path)
            assert r.returncode == 2 and not r.stdout and part in r.stderr and r.stderr.count("\n") == 1, (words, r)


def test_no_file_overwrites_another_one_or_what_is_read():
    with tempfile.TemporaryDirectory() as dir:
        folder = pathlib.Path(dir)
        kept, plan, link = folder / "a.json", folder / "p.yaml", folder / "link"
        assert measured("lat", *SHORT, "--json", str(kept)).returncode == 0
        plan.write_text("tests:\n  - lat: {duration: 1h}\n")
        link.symlink_to(kept)
        before = kept.read_bytes(), plan.read_bytes()
        other = f"{dir}/../{folder.name}"
        for words in (["report", str(kept), "--html", str(kept)], ["report", str(kept), "--html", str(link)],
                      ["report", str(kept), "--csv", f"{other}/a.json"], ["compare", str(kept), str(kept), "--json", str(kept)],
                      ["run", str(plan), "--json", str(plan)], ["run", str(plan), "--html", f"{other}/p.yaml"]):
            r = run(*words)
            assert r.returncode == 2 and "would overwrite what is read" in r.stderr and r.stderr.count("\n") == 1, (words, r)
        for words in (["--json", f"{dir}/new", "--html", f"{other}/new"], ["--csv", f"{dir}/n.csv", "--html", f"{other}/n.summary.csv"]):
            r = run("lat", "-d", "1h", *words)
            assert r.returncode == 2 and "give one another name" in r.stderr, (words, r)
        assert (kept.read_bytes(), plan.read_bytes()) == before and len(list(folder.iterdir())) == 3


def test_text_that_is_lost_is_a_failure_and_a_reader_who_left_is_none():
    plan = str(ROOT / "plans/quick.yaml")
    for words in (["run", plan, "--dry-run"], ["run", plan, "--print-plan"], ["host", "-i", "100ms", "-n", "1"], ["doctor"],
                  ["--help"], ["lat", "--help"], ["--version"], ["--man"]):
        with open("/dev/full", "w", encoding="ascii") as full:
            r = subprocess.run([PITOT, *words], stdout=full, stderr=subprocess.PIPE, text=True, timeout=30)
        assert r.returncode == 1 and ("No space left" in r.stderr or "not all of the text" in r.stderr), (words, r)
    reader, writer = os.pipe()
    os.close(reader)
    r = subprocess.run([PITOT, "host", "-i", "100ms"], stdout=writer, stderr=subprocess.PIPE, text=True, timeout=10)
    os.close(writer)
    assert r.returncode == 0 and not r.stderr, r


def test_csv_has_a_row_per_interval_and_one_of_totals():
    with tempfile.TemporaryDirectory() as dir:
        path = pathlib.Path(dir) / "a.csv"
        r = measured("lat", *SHORT, "--csv", str(path), "--json", "-")
        assert r.returncode == 0, r
        d = document(r.stdout)
        assert {p.name for p in path.parent.iterdir()} == {"a.csv", "a.summary.csv"}
        rows = list(csv.DictReader(path.open()))
        assert len(rows) == len(d["series"]) and rows[0].keys() == rows[-1].keys()
        assert [int(row["ok"]) for row in rows] == [p["ok"] for p in d["series"]]
        total, = csv.DictReader((path.parent / "a.summary.csv").open())
        assert int(total["ok"]) == d["totals"]["ok"] and total["id"] == d["id"]
        assert float(total["latency_p50_us"]) == d["latency"]["p50_us"]


def test_thresholds_decide_the_exit_status():
    r = measured("lat", *SHORT, "--expect", "p50<10s", "--expect", "errors==0")
    assert r.returncode == 0 and "held" in r.stdout, r
    r = run("lat", *SHORT, "--expect", "p50<1ns")
    assert r.returncode == 3 and "not held" in r.stdout, r


def test_the_report_speaks_the_language_that_was_asked_for():
    assert "往返时间" in run("lat", *SHORT, "--lang", "zh").stdout
    assert "往返时间" in run("lat", *SHORT, env={"LC_ALL": "zh_CN.UTF-8"}).stdout
    assert "round trip" in run("lat", *SHORT, "--lang", "en", env={"LC_ALL": "zh_CN.UTF-8"}).stdout
    plain = run("lat", *SHORT)
    assert "\x1b" not in plain.stdout + plain.stderr, "no escape sequences when not on a terminal"
    quiet = run("lat", *SHORT, "-q")
    assert "warm-up  " not in quiet.stdout and quiet.stdout.startswith("pitot lat")


def test_repeated_runs_are_one_document():
    d = document(measured("lat", *SHORT, "--repeat", "3", "--json", "-").stdout)
    assert d["repeat"]["n"] == 3
    m = d["repeat"]["metrics"][d["headline"][0]["path"]]
    assert len(m["values"]) == 3 and m["min"] <= m["median"] <= m["max"]
    assert sorted(m["values"])[1] == m["median"] == d["headline"][0]["value"]


def test_a_stored_result_gives_the_same_report_again():
    with tempfile.TemporaryDirectory() as folder:
        at_first = pathlib.Path(folder)
        for i, words in enumerate(TESTS):
            kept, again = at_first / f"{i}.json", at_first / f"{i}.again.json"
            r = measured(*words, *SHORT, "-q", "--json", str(kept), "--csv", str(at_first / f"{i}.csv"),
                         "--html", str(at_first / f"{i}.html"))
            assert r.returncode == 0, r
            made = run("report", str(kept), "--json", str(again), "--csv", str(at_first / f"{i}.again.csv"),
                       "--html", str(at_first / f"{i}.again.html"))
            assert made.returncode == 0 and not made.stderr, made
            assert again.read_bytes() == kept.read_bytes()
            assert made.stdout.replace(".again", "") == r.stdout, (made.stdout, r.stdout)
            for kind in ("csv", "summary.csv", "html"):
                assert (at_first / f"{i}.again.{kind}").read_bytes() == (at_first / f"{i}.{kind}").read_bytes()
        zh = run("report", str(at_first / "0.json"), "--lang", "zh")
        assert zh.returncode == 0 and "接收" in zh.stdout, zh
    for words, status, part in (([], 2, "FILE"), (["/nonexistent.json"], 1, "/nonexistent.json"),
                                (["/etc/passwd"], 1, "no JSON"), (["a", "b"], 2, "FILE")):
        r = run("report", *words)
        assert r.returncode == status and part in r.stderr and r.stderr.count("\n") == 1, r
