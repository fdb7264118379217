"""pitot compare: measurements side by side, as a person would run it."""
import json
import os
import pathlib
import subprocess
import tempfile

import jsonschema
from tap import limit

PITOT = os.environ["PITOT"]
SCHEMA = json.loads((pathlib.Path(__file__).resolve().parents[2] / "docs/compare.schema.json").read_text())


def pitot(*words):
    return subprocess.run([PITOT, *words], capture_output=True, text=True, timeout=60)


def measure(path, *words):
    for _ in range(3):  # a machine that pauses for so long has measured nothing
        done = pitot(*words, "-d", "200ms", "--warmup", "50ms", "-q", "--json", str(path))
        if done.returncode == 0:
            break
    assert done.returncode == 0, done
    return str(path)


@limit(90)
def test_two_sides_of_repeated_runs():
    with tempfile.TemporaryDirectory() as folder:
        at = pathlib.Path(folder)
        slow = measure(at / "slow.json", "lat", "-r", "200", "--repeat", "3")
        fast = measure(at / "fast.json", "lat", "-r", "1000", "--repeat", "3")
        done = pitot("compare", slow, fast, "--json", str(at / "c.json"))
        assert done.returncode == 0 and not done.stderr, done
        doc = json.loads((at / "c.json").read_text())
        jsonschema.validate(doc, SCHEMA)
        rate = next(f for f in doc["tests"][0]["figures"] if f["path"] == "rates.operations_per_s")
        change = rate["against"][0]
        assert change["verdict"] == "better" and 4.5 < change["ratio_low"] <= change["ratio"] <= change["ratio_high"] < 5.5, rate
        assert [s["n"] for s in rate["sides"]] == [3, 3] and rate["sides"][0]["values"] == \
            json.loads(pathlib.Path(slow).read_text())["repeat"]["metrics"]["rates.operations_per_s"]["values"]
        assert any(d["path"] == "test.params.rate.per_s" and d["values"] == ["200", "1000"] for d in doc["tests"][0]["differences"]), doc["tests"]
        for words in ("slow.json: 3 runs", "round trips", "better", "test.params.rate.per_s"):
            assert words in done.stdout, (words, done.stdout)
        chinese = pitot("compare", slow, fast, "--lang", "zh").stdout
        assert "有何不同" in chinese and "更好" in chinese, chinese
        # Three sides, one of them of two files.
        done = pitot("compare", slow, f"{slow},{fast}", fast, "--json", "-")
        doc = json.loads(done.stdout)
        jsonschema.validate(doc, SCHEMA)
        assert [s["name"] for s in doc["sides"]] == ["A", "B", "C"] and [s["runs"] for s in doc["tests"][0]["sides"]] == [3, 6, 3], doc
        assert done.stderr.count("C/A") == 1 and done.stderr.count("B/A") == 1, done.stderr


def test_what_cannot_be_compared_is_one_sentence():
    with tempfile.TemporaryDirectory() as folder:
        at = pathlib.Path(folder)
        lat, pps = measure(at / "lat.json", "lat"), measure(at / "pps.json", "pps")
        broken = at / "broken.json"
        broken.write_text("{")
        for words, status, needle in (([lat], 2, "two files"), ([lat, pps], 2, "no figures in common"), ([lat, str(at / "none.json")], 1, "none.json"),
                                      ([lat, str(broken)], 1, "broken.json"), ([lat, f"{lat},,{lat}"], 2, "between commas"),
                                      ([lat] * 9, 2, "more than 8"), ([lat, lat, "--csv", "x"], 2, "--csv")):
            done = pitot("compare", *words)
            assert done.returncode == status and needle in done.stderr and done.stderr.count("\n") <= 2 and not done.stdout, done
        done = pitot("compare", lat, lat)
        assert done.returncode == 0 and "One run tells nothing of the noise" in done.stdout and "Nothing that the documents know of" in done.stdout, done
        odd = at / "a,b.json"
        odd.write_text(pathlib.Path(lat).read_text())
        assert pitot("compare", lat, str(odd)).returncode == 0, "a comma in a name"
