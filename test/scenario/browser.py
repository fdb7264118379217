"""browser.py: a page as Chromium sees it, without a window: its elements after its script ran, and what the console said."""
import html.parser
import os
import re
import shutil
import subprocess
import tempfile

import bounded
from tap import Skip

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


class Element:
    def __init__(self, tag, attributes, parent):
        self.tag, self.attributes, self.parent, self.children = tag, attributes, parent, []

    def get(self, name, otherwise=None):
        return self.attributes.get(name, otherwise)

    def text(self):
        return "".join(c if isinstance(c, str) else c.text() for c in self.children)

    def all(self, tag=None, **attributes):
        """Elements below this one of that tag with those attributes; `data_path=True`: with any value of data-path."""
        want = {name.replace("_", "-"): value for name, value in attributes.items()}
        for child in self.children:
            if isinstance(child, Element):
                if (tag is None or child.tag == tag) and all(
                        name in child.attributes and value in (True, child.attributes[name]) for name, value in want.items()):
                    yield child
                yield from child.all(tag, **attributes)


class _Tree(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.root = self.at = Element("", {}, None)

    def handle_starttag(self, tag, attrs):
        made = Element(tag, dict(attrs), self.at)
        self.at.children.append(made)
        if tag not in VOID:
            self.at = made

    def handle_endtag(self, tag):
        at = self.at
        while at.tag != tag and at.parent:
            at = at.parent
        if at.parent:
            self.at = at.parent

    def handle_data(self, data):
        self.at.children.append(data)


def parse(text):
    tree = _Tree()
    tree.feed(text)
    tree.close()
    return tree.root


def find():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return name
    raise Skip("chromium is not installed")


def open_page(path, width=1100, dark=False):
    """(root element, lines of the console) of a file."""
    program = find()
    with tempfile.TemporaryDirectory(prefix="pitot-browser-", ignore_cleanup_errors=True) as profile:
        argv = [program, "--headless", "--disable-gpu", "--no-first-run", "--disable-crash-reporter", "--disable-breakpad",
                "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update", "--disable-sync",
                f"--user-data-dir={profile}", "--enable-logging=stderr", f"--window-size={width},1600", "--virtual-time-budget=2000",
                f"--blink-settings=preferredColorScheme={0 if dark else 1}"]
        argv += ["--no-sandbox"] if os.geteuid() == 0 else []
        process = subprocess.Popen([*argv, "--dump-dom", f"file://{path}"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, start_new_session=True, env={**os.environ, "HOME": profile})
        try:
            out, err = process.communicate(timeout=40)
        finally:
            bounded.stop(process)
    assert process.returncode == 0 and out, err[-2000:]
    # What the browser says of pages of its own is not about this one.
    return parse(out), [line for line in err.splitlines()
                        if re.search(r":CONSOLE|Refused to|Uncaught", line) and "source: chrome://" not in line]
