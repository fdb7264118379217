"""The man pages: made for every command, without a warning from man, and complete."""
import os
import pathlib
import re
import subprocess

PITOT = pathlib.Path(os.environ["PITOT"])
PAGES = PITOT.parents[1] / "man"


def _pitot(*words):
    done = subprocess.run([PITOT, *words], capture_output=True, text=True, timeout=20)
    assert done.returncode == 0 and not done.stderr, (words, done)
    return done.stdout


def _commands():
    """As `pitot --help` lists them."""
    found = re.findall(r"^  (\w+) +\w", _pitot("--help"), re.M)
    assert len(found) >= 5, found
    return found


def _page(name):
    """What a reader sees of an installed page; any word on stderr is a fault of the page."""
    done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", str(PAGES / name)], capture_output=True,
                          text=True, timeout=30, env={**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "80", "TERM": "dumb"})
    assert done.returncode == 0 and not done.stderr, (name, done.stderr)
    return re.sub(".\b", "", done.stdout)


def _words(page):
    """The text without the line breaks and hyphenation of the formatter."""
    return re.sub(r"\s+", " ", re.sub(r"[‐-]\n\s*", "", page))


def test_every_command_has_its_page():
    assert {p.name for p in PAGES.glob("*.1")} == {"pitot.1"} | {f"pitot-{c}.1" for c in _commands()}


def test_the_overview_names_every_command_and_exit_status():
    page = _page("pitot.1")
    for command in _commands():
        assert f"pitot-{command}(1)" in page, command
    for heading in ("COMMANDS", "EXIT STATUS", "FILES", "ENVIRONMENT"):
        assert re.search(f"^{heading}$", page, re.M), heading
    for status in (0, 1, 2, 3, 130):
        assert re.search(rf"^       {status} +\w", page, re.M), status


def test_every_option_of_the_help_is_on_the_page():
    for command in _commands():
        options = re.findall(r"^  (?:-\w, |    )(--[\w-]+)", _pitot(command, "--help"), re.M)
        page = _page(f"pitot-{command}.1")
        shown = re.findall(r"^       (?:-\w, )?(--[\w-]+)", page, re.M)
        assert options and sorted(options) == sorted(shown), (command, set(options) ^ set(shown))
        assert "\\" not in page, (command, re.findall(r".*\\.*", page))


def test_the_text_of_the_help_is_on_the_page():
    for command in _commands():
        page = _words(_page(f"pitot-{command}.1")).lower()
        text = _pitot(command, "--help")
        for summary in re.findall(rf"^{command}: (.+)$", text, re.M):
            assert summary.lower() in page, (command, summary)
        for example in re.findall(rf"^  (pitot {command}.*)$", text, re.M):
            assert example.lower() in page, (command, example)
