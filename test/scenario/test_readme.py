"""The README's commands work as they are written there; both languages have the same ones."""
import os
import pathlib
import re
import signal

from lab import ROOT, Lab, binary
from tap import limit

MEASURE_S = ("-d", "0.3s", "--warmup", "0.1s")
TRIES = 3  # a machine that pauses for so long has measured nothing; a command that is wrong fails each time


def _blocks(page):
    """The ```sh blocks of a page: lists of command lines, without their remarks."""
    text = (ROOT / page).read_text()
    found = [[re.sub(r"\s+#.*", "", line) for line in block.splitlines() if line.strip()]
             for block in re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S)]
    assert len(found) > 5 and all(block for block in found), page
    return found


class Reader:
    """Somebody who types what the page says: servers on node 1, the rest on node 0."""

    def __init__(self, lab):
        self.lab, self.server, self.secret, self.path = lab, None, None, pathlib.Path(binary()).parent

    def _here(self, line):
        """A line with the lab's addresses and paths, and shorter."""
        for theirs, ours in (("10.0.0.1", self.lab.v4(0)), ("10.0.0.2", self.lab.v4(1)), ("fd00::2", self.lab.v6(1)),
                             ("/run/", f"{self.lab.dir.name}/"), ("10GiB", "10MiB"), ("every:2s", "every:200ms"),
                             ("4711", str(os.getpid()))):
            line = re.sub(rf"(?<![\w.:]){re.escape(theirs)}(?![\w:])", ours, line)
        return line

    def _bash(self, node, line):
        script = f"cd {self.lab.dir.name} && PATH={self.path}:$PATH && exec {line}"
        return self.lab.start(node, "bash", "-c", script)

    def _serve(self, line):
        if self.server:
            self.server.signal(signal.SIGINT)
            assert self.server.wait(10) == 0, self.server.text()
        self.server, self.secret = self._bash(1, line), "--secret-file" in line
        self.server.wait_line("listening on")

    def types(self, line):
        line = self._here(line)
        words = line.split()
        if words[0] != "pitot":
            process = self.lab.start(0, "bash", "-c", f"cd {self.lab.dir.name} && {line}")
            assert process.wait(10) == 0, process.text()
        elif words[1] in ("serve", "truth"):
            self._serve(line)
        else:
            if self.secret and "--secret-file" not in words:
                self._serve("pitot serve --listen :7411")
            more = MEASURE_S[2:] if "--bytes" in words or "--boost" in words else MEASURE_S
            if words[1] == "run":
                line = line.replace("plans/", f"{ROOT}/plans/")
                more = ("--set", "duration=1s", "--set", "warmup=0.3s")
            more = MEASURE_S[:2] if words[1] == "host" else () if words[1] in ("report", "compare") else more
            held = {0, 3} if "--expect" in words else {0}
            for _ in range(TRIES):
                process = self._bash(0, f"{line} {' '.join(more)}")
                if process.wait(40) in held:
                    return
            raise AssertionError(f"{line}\n{process.text()}")

    def leaves(self):
        self._serve("pitot serve")


@limit(200)
def test_every_command_works_as_written():
    with Lab() as lab:
        reader = Reader(lab)
        for block in _blocks("README.md"):
            for line in block:
                reader.types(line)
        reader.leaves()


def test_both_languages_have_the_same_commands():
    assert _blocks("README.md") == _blocks("README.zh-CN.md")


def test_the_links_lead_somewhere():
    for page in (ROOT / "README.md", ROOT / "README.zh-CN.md", *(ROOT / "docs").rglob("*.md")):
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
        for target in re.findall(r"`((?:src|test|docs)/[\w./]+)`", page.read_text()):
            assert (ROOT / target).exists(), f"{page.name}: {target}"
