"""The page of a report: opens without a word in the console, shows every section and the figures of the document,
in both languages, and texts from elsewhere do nothing in it."""
import html
import json
import os
import pathlib
import re
import subprocess
import tempfile

import browser
import documents
from tap import limit

PITOT = os.environ["PITOT"]
SECTIONS = ["verdict", "warnings", "headline", "latency", "series", "path", "flows", "steps", "search", "repeat", "hosts", "plan", "environment"]
NASTY = "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\"><!--&lt;\u2028\u2029'\"`${1}]]>"


def pitot(*words):
    return subprocess.run([PITOT, *words], capture_output=True, text=True, timeout=40)


def page_of(doc, folder, *options):
    """The page that `pitot report` makes of a document."""
    stored, page = pathlib.Path(folder) / "stored.json", pathlib.Path(folder) / "page.html"
    stored.write_text(json.dumps(doc))
    done = pitot("report", str(stored), "--html", str(page), *options)
    assert done.returncode == 0 and not done.stderr, done
    return page


def seen(page, **how):
    root, console = browser.open_page(page, **how)
    assert not console, console
    top, = root.all("html")
    assert top.get("data-ready") == "yes", "the script did not come to its end"
    return root


def sections(root):
    return [e.get("data-section") for e in root.all(data_section=True)]


def check_figures(root, doc, least):
    """Every figure of the page is the one at its place in the document."""
    count = 0
    for figure in root.all("span", data_path=True):
        test = figure
        while test and test.get("data-test") is None:
            test = test.parent
        own = doc["tests"][int(test.get("data-test"))] if test and "tests" in doc else doc
        value, shown = documents.at(own, figure.get("data-path")), figure.get("data-value")
        if value is None:
            assert shown is None and figure.text() == "–", figure.get("data-path")
        else:
            assert float(shown) == value, (figure.get("data-path"), shown, value)
            assert re.search(r"\d", figure.text()), figure.get("data-path")
            count += 1
    assert count >= least, count


def check_charts(root, want):
    charts = {c.get("data-chart"): c for c in root.all("figure", data_chart=True)}
    assert want <= set(charts), (want, set(charts))
    for name, chart in charts.items():
        assert len(list(chart.all("canvas"))) == 1, name


@limit(120)
def test_every_section_shows_the_figures_of_the_document():
    with tempfile.TemporaryDirectory() as folder:
        for workload in ("lat", "pps", "bw"):
            doc = documents.result(workload)
            root = seen(page_of(doc, folder))
            assert sections(root) == SECTIONS, sections(root)
            check_figures(root, doc, 400)
            check_charts(root, {"percentiles", "histogram", "rate", "packets", "latency-time", "cpu", "host-packets"})
            sentence = next(root.all("p", **{"class": "sentence"})).text()
            assert sentence.endswith("limited by receive buffer (target)."), sentence
            assert "44 more flows" in root.text()


@limit(60)
def test_a_run_has_the_tables_of_the_recipe_on_top():
    with tempfile.TemporaryDirectory() as folder:
        doc = documents.run()
        page = page_of(doc, folder)
        root = seen(page)
        assert sections(root) == ["verdict", "warnings", "overview"] + 4 * SECTIONS + ["plan-text"], sections(root)
        check_figures(root, doc, 1200)
        tables = {t.get("data-recipe"): {f.get("data-path") for f in t.all("span", data_path=True)} for t in root.all("div", data_recipe=True)}
        assert list(tables) == ["pps", "bw", "lat"], tables
        assert {f"{at}.rates.rx_packets_per_s" for at in ("tests.0", "tests.1", "sums.0")} <= tables["pps"]
        assert "tests.2.rates.rx_bits_per_s" in tables["bw"]
        assert {"tests.3.latency.mean_us", "tests.3.latency.p99_us"} <= tables["lat"]
        assert "packets, in all" in root.text() and "packets: began at one instant, within 871 µs" in root.text()
        links = [a.get("href") for a in root.all("a")]
        assert set(links) == {f"#test-{i}" for i in range(1, 5)} == {"#" + e.get("id") for e in root.all("article", id=True)}
        stored = page.with_name("stored.json")
        for words, part in (([], "packets, sender-2 → target"), (["--csv", "-"], "20260131T235952Z-00000002")):
            done = pitot("report", str(stored), *words)
            assert done.returncode == 0 and done.stdout.count(part) >= 1, done
        again = page.with_name("again.json")
        assert pitot("report", str(stored), "--json", str(again)).returncode == 0
        assert json.loads(again.read_text()) == doc


@limit(60)
def test_what_has_no_data_is_left_out():
    with tempfile.TemporaryDirectory() as folder:
        bare = {key: documents.result()[key] for key in ("schema", "version", "id", "started", "exit", "test")}
        bare.update(status="failed", headline=[], warnings=["no operation succeeded"], notes=[], limited_by=[])
        root = seen(page_of(bare, folder))
        assert sections(root) == ["verdict", "warnings", "plan"], sections(root)
        assert not list(root.all("canvas"))
        odd = documents.result()
        odd.update(latency={"count": 5, "hdr": "HISTFAAAnothing"}, hosts=[{"name": "x", "role": "both", "series": [3, None], "net": "none"}],
                   series=[{"t_s": None}], flows=[{"id": None}], environment={"local": 4, "peer": {"interfaces": [None, {"if": 3}]}})
        seen(page_of(odd, folder))


@limit(60)
def test_texts_from_elsewhere_do_nothing():
    with tempfile.TemporaryDirectory() as folder:
        for doc in (documents.hostile(documents.result(), NASTY), {**documents.run(), "name": NASTY, "plan": NASTY,
                                                                   "tests": [documents.hostile(t, NASTY) for t in documents.run()["tests"]]}):
            page = page_of(doc, folder)
            text = page.read_text()
            assert text.isascii() or "\u2028" not in text
            assert text.count("<script") == 5 == text.count("</script"), "a text got out of its element"
            root = seen(page)
            assert not list(root.all("img")) and len(list(root.all("script"))) == 5
            title = next(root.all("title")).text()
            assert title != "taken" and html.unescape(title).startswith(("pitot lat </script>", "</script>")), title
            shown = root.text()
            assert shown.count("document.title='taken'</script>") > 40


def test_the_page_needs_nothing_else():
    with tempfile.TemporaryDirectory() as folder:
        text = page_of(documents.run(), folder).read_text()
        assert "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'" in text
        assert not re.search(r"(?:src|href)\s*=\s*[\"'](?!#)", text) and "url(" not in text and "@import" not in text
        assert "Leon Sorokin" in text, "the licence goes where its code goes"
        code = text[text.rindex("<script>"):]
        own = code[code.index("// say.js"):]
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|new Function|fetch\(|XMLHttp", own)


# Names that are the same in every language: of tools, counters, protocols, percentiles, and keys of the document.
KEPT = re.compile(r"[\d.]+ (?:min|s)|\d\. \w+|[rt]xkB/s|CPU|CPU, %|VIRT|RES|SHR|%MEM|TCP|UDP|softnet|MTU|qdisc|cwnd|srtt|min rtt|p[\d.]+|%?[a-z]+/s|%ifutil|[rt]x(?:drop|err)|"
                  r"[a-z0-9_.]+|CPU, (?:sender-1|target).*|eth0|idle0|pitot|sender-1|target|10\.0\..*|block size|\d+|p99<1ms|loss<=20%")


@limit(60)
def test_the_chinese_page_is_chinese():
    with tempfile.TemporaryDirectory() as folder:
        doc = documents.run()
        root = seen(page_of(doc, folder, "--lang", "zh"), dark=True)
        assert next(root.all("html")).get("lang") == "zh"
        check_figures(root, doc, 1200)
        plain = set()
        for tag in ("h3", "h4", "th", "dt", "figcaption", "button", "summary"):
            for e in root.all(tag):
                if e.text() and not re.search(r"[\u3400-\u9fff]", e.text()) and not KEPT.fullmatch(e.text()):
                    plain.add((tag, e.text()))
        assert not plain - {("button", "English"), ("button", "◐")}, plain
        words = re.findall(r'say\("([^"]+)"\)', root.text())
        known = json.loads(next(root.all("script", id="words")).text())
        unknown = {w for w in words if w not in known and not w.startswith("CPU")}
        assert len(words) > 100 and not unknown, unknown


@limit(60)
def test_it_fits_a_phone():
    with tempfile.TemporaryDirectory() as folder:
        page = page_of(documents.run(), folder)
        # The page says itself how wide it became; what scrolls within itself does not count.
        page.write_text(page.read_text().replace("</body>", """<script>
            document.documentElement.dataset.width = document.documentElement.scrollWidth;
            document.documentElement.dataset.plots = [...document.querySelectorAll(".uplot")].filter((p) => p.offsetWidth > innerWidth).length;
            document.documentElement.dataset.inner = innerWidth;</script></body>"""))
        top = next(seen(page, width=360).all("html"))
        assert int(top.get("data-width")) <= int(top.get("data-inner")) and top.get("data-plots") == "0", top.attributes


@limit(120)
def test_long_labels_have_their_room():
    doc = documents.result()
    with tempfile.TemporaryDirectory() as folder:
        rooms = []
        for factor in (1, 1e6):
            for host in doc["hosts"]:
                for point in host["series"]:
                    point["rx_kB_per_s"] *= factor
            chart = next(seen(page_of(doc, folder)).all("figure", data_chart="host-bytes"))
            style = next(chart.all("div", **{"class": "u-over"})).get("style")
            rooms.append(float(re.search(r"left: ([0-9.]+)px", style).group(1)))
        assert rooms[1] > rooms[0] + 20, rooms


@limit(120)
def test_a_measurement_makes_the_page_itself():
    commands = {"lat": ["lat", "-r", "2000"], "pps": ["pps", "-c", "4"], "bw": ["bw", "-c", "2"]}
    common = {"verdict", "headline", "series", "flows", "hosts", "plan", "environment"}
    with tempfile.TemporaryDirectory() as folder:
        for name, words in commands.items():
            page, stored, again = (pathlib.Path(folder) / f"{name}.{end}" for end in ("html", "json", "again.html"))
            for _ in range(3):  # a machine that pauses for so long has measured nothing
                done = pitot(*words, "-d", "1s", "--warmup", "0.2s", "-i", "200ms", "-q", "--html", str(page), "--json", str(stored))
                if done.returncode == 0:
                    break
            assert done.returncode == 0, done
            assert pitot("report", str(stored), "--html", str(again)).returncode == 0
            assert again.read_bytes() == page.read_bytes(), "the stored document makes the same page"
            doc, root = json.loads(stored.read_text()), seen(page)
            want = common | ({"latency"} if name == "lat" else set()) | ({"path"} if name == "pps" else set())
            assert want <= set(sections(root)), sections(root)
            check_figures(root, doc, 60)
            check_charts(root, {"rate", "cpu"} | ({"percentiles", "histogram"} if name == "lat" else set()))
            for head in doc["headline"]:
                assert any(f.text() in done.stdout for f in root.all("span", data_path=f"headline.{doc['headline'].index(head)}.value")), head
            interfaces = {i["if"]: i for i in doc["environment"]["local"]["interfaces"]}
            assert interfaces["lo"]["mtu"] > 0 and "lo" in next(root.all("section", data_section="environment")).text()


def test_a_page_goes_to_stdout_and_nowhere_else():
    with tempfile.TemporaryDirectory() as folder:
        stored = page_of(documents.result(), folder).with_name("stored.json")
        done = pitot("report", str(stored), "--html", "-")
        assert done.returncode == 0 and done.stdout.startswith("<!DOCTYPE html>") and done.stdout.endswith("</html>\n")
        assert "pitot lat 10.0.0.2:7411" in done.stderr, "the text goes to stderr"
        same = str(pathlib.Path(folder) / "one")
        done = pitot("lat", "--html", same, "--json", same)
        assert done.returncode == 2 and "give one another name" in done.stderr and not os.path.exists(same), done
        done = pitot("report", str(stored), "--html", "/nonexistent/x.html")
        assert done.returncode == 2 and "/nonexistent/x.html" in done.stderr, done
