"""truth.py: a running `pitot truth`, and the comparisons its tests make."""
import functools
import json
import math
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "scenario"))
from lab import Local, binary  # noqa: E402
from tap import Skip, limit  # noqa: E402,F401  (for the tests that import from here)


ATTEMPTS = 3

def go_first():
    """Other work on this machine is not what is measured: from here on we, and what we start, go before it where
    that is allowed. Only for tests of some thousand packets a second: what polls all the time would keep
    the kernel's own threads from working. (A nice value does not reach beyond one session: autogroups.)"""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        pass


def timing(function):
    """Decorator for tests that compare times: on a machine with other work a tail is at times the
    scheduler's. Such a deviation goes away when the test is repeated, the instrument's own does not."""
    @functools.wraps(function)
    def repeat(*args):
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return function(*args)
            except AssertionError as why:
                if attempt == ATTEMPTS:
                    raise
                print(f"# {function.__name__}, attempt {attempt}: {why}".splitlines()[0], flush=True)
    return repeat


@functools.lru_cache
def _engines():
    """The loop back ends that this kernel allows."""
    with Local() as local:
        run = local.pitot(0, "lat", "-n", "1", "--warmup", "0s", "--engine", "uring")
    if run.rc == 0:
        return ("epoll", "uring")
    assert "io_uring" in run.err, run
    print(f"# only epoll: {run.err.strip()}", flush=True)
    return ("epoll",)


def each_engine(function):
    """Decorator: once per back end, with the options that choose it."""
    @functools.wraps(function)
    def repeat():
        for name in _engines():
            try:
                function(("--engine", name))
            except AssertionError as why:
                raise AssertionError(f"--engine {name}: {why}") from why
    return repeat


class Bench(Local):
    """This machine with a truth server on it: `with Bench() as bench: bench.truth("--delay", "5ms")`."""

    def truth(self, *options):
        """Starts `pitot truth` on a free loopback port; options of its own may replace that port."""
        name = self.path("truth.json")
        listen = () if "--echo" in options else ("--listen", "127.0.0.1:0")
        process = self.start(0, binary(), "truth", *listen, "--json", name, *options)
        process.port = int(process.wait_line(r"listening\b.*?:(\d+)\b(?!.*:\d)").group(1))
        process.at = f"127.0.0.1:{process.port}"
        process.document = name
        return process

    def injected(self, process):
        """Ends a truth server; returns its document, whose books must balance."""
        process.signal(15)
        assert process.wait(10) == 0, process.text()
        doc = json.loads(pathlib.Path(process.document).read_text())
        dropped = doc["lost"] + doc["rate_dropped"] + doc["queue_dropped"]
        assert doc["offered"] == doc["passed"] + dropped, doc
        assert doc["departed"] <= doc["passed"] + doc["duplicated"] - doc["forgotten"], doc
        # A truth that dropped packets of its own is no truth.
        assert doc["unseen"] == 0 and doc["queue_dropped"] == 0, doc
        return doc


def near(got, want, error, what):
    """|got - want| <= error."""
    assert got is not None and abs(got - want) <= error, f"{what}: got {got}, want {want} ± {error}"


def between(got, low, high, what):
    assert got is not None and low <= got <= high, f"{what}: got {got}, want {low} to {high}"


def binomial(n, p, sigmas=5):
    """How far a count of n trials with probability p may be from n p: five standard deviations."""
    return sigmas * math.sqrt(n * p * (1 - p))
