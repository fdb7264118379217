"""lab.py: network namespaces joined by veth, and the pitot binary run inside them.

    with Lab() as lab:
        server = lab.serve(1)
        run = lab.pitot(0, "lat", server.at(lab.v6(1)), "-n", "100")
        assert run.doc["status"] == "ok"

Node i has 10.77.0.(i+1), fd77::(i+1) and fe80::(i+1) on its interface `eth0`. Names carry our pid, so
that several labs live side by side and the remains of a killed one are recognised and removed. Everything
a lab made is gone when its block ends, however it ends. The addresses of Local (no namespaces, no root)
are the loopback's.
"""
import itertools
import json
import math
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import threading
import time

import bounded
from tap import Skip

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCHEMA = ROOT / "docs" / "result.schema.json"
PORT = 7411
PREFIX = "pitot"
_serial = itertools.count()


def binary():
    """Path of the pitot under test: $PITOT, as the build sets it."""
    path = pathlib.Path(os.environ.get("PITOT", ROOT / "build" / "src" / "pitot"))
    if not path.exists():
        raise FileNotFoundError(f"{path}: build first, or set PITOT to the binary under test")
    return str(path)


def join(host, port):
    """host:port, with brackets where IPv6 needs them."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _ip(script, ns=None):
    """Feeds lines to one `ip -batch`; any line that fails raises with what ip said."""
    argv = ["ip"] + (["-n", ns] if ns else []) + ["-batch", "-"]
    done = subprocess.run(argv, input=script, capture_output=True, text=True, timeout=20)
    if done.returncode:
        raise RuntimeError(f"ip failed on\n{script}{done.stderr}")


def _remove(ns):
    """Ends what still runs in a namespace of ours, then deletes it."""
    pids = subprocess.run(["ip", "netns", "pids", ns], capture_output=True, text=True, timeout=20)
    for pid in pids.stdout.split():
        try:
            os.kill(int(pid), signal.SIGKILL)
        except ProcessLookupError:
            pass
    subprocess.run(["ip", "netns", "del", ns], capture_output=True, timeout=20)


def _namespaces():
    """{name: pid of the lab that made it} of all namespaces with our prefix."""
    try:
        names = os.listdir("/run/netns")
    except FileNotFoundError:
        return {}
    found = {name: re.fullmatch(PREFIX + r"-(\d+)-\d+-\w+", name) for name in names}
    return {name: int(match.group(1)) for name, match in found.items() if match}


def remove_leftovers():
    """Namespaces whose maker is dead go away."""
    for name, pid in _namespaces().items():
        if not os.path.exists(f"/proc/{pid}"):
            _remove(name)


def _refuse_constant(name):
    raise ValueError(f"the result document holds {name}; numbers are finite or null")


def _finite(node, where="result"):
    if isinstance(node, float) and not math.isfinite(node):
        raise AssertionError(f"{where} is not finite")
    if isinstance(node, dict):
        for key, value in node.items():
            _finite(value, f"{where}.{key}")
    if isinstance(node, list):
        for index, value in enumerate(node):
            _finite(value, f"{where}[{index}]")


def check_document(text):
    """Parses a result document; it must be strict JSON, fit its schema, and its books must balance."""
    doc = json.loads(text, parse_constant=_refuse_constant)
    _finite(doc)
    if SCHEMA.exists():
        try:
            import jsonschema
        except ImportError as why:
            raise Skip("python3-jsonschema is not installed") from why
        jsonschema.validate(doc, json.loads(SCHEMA.read_text()))
    totals = doc.get("totals") or {}
    if "operations" in totals:
        booked = totals["ok"] + sum(totals["errors"].values()) + totals["in_flight_at_end"]
        assert totals["operations"] == booked, f"the books do not balance: {totals}"
    return doc


def check_sanitizers(text):
    for mark in ("ERROR: AddressSanitizer", "ERROR: LeakSanitizer", "runtime error:"):
        assert mark not in text, f"a sanitizer spoke:\n{text}"


class Run:
    """One ended run of pitot: rc, out, err, seconds, and doc (None when no result was written)."""

    def __init__(self, argv, rc, out, err, doc, seconds):
        self.argv, self.rc, self.out, self.err, self.doc, self.seconds = argv, rc, out, err, doc, seconds

    def __str__(self):
        return f"{' '.join(self.argv)} → {self.rc} after {self.seconds:.2f} s\n{self.out}\n{self.err}"


class Process:
    """A program that goes on running; its output is collected line by line as it comes."""

    def __init__(self, argv):
        self.argv, self.lines, self._more = argv, [], threading.Condition()
        self.proc = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT, start_new_session=True,
                                     preexec_fn=bounded.die_with_parent)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self):
        return self.proc.pid

    def _read(self):
        for raw in self.proc.stdout:
            with self._more:
                self.lines.append(raw.decode(errors="replace").rstrip("\n"))
                self._more.notify_all()
        with self._more:
            self.lines.append(None)
            self._more.notify_all()

    def text(self):
        return "\n".join(line for line in self.lines if line is not None)

    def wait_line(self, pattern, limit=10):
        """Waits for a line that matches, up to `limit` seconds; returns the match."""
        until, seen = time.monotonic() + limit, 0
        with self._more:
            while True:
                for line in self.lines[seen:]:
                    if line is None:
                        raise AssertionError(f"{' '.join(self.argv)} ended before /{pattern}/:\n{self.text()}")
                    found = re.search(pattern, line)
                    if found:
                        return found
                seen = len(self.lines)
                rest = until - time.monotonic()
                if rest <= 0 or not self._more.wait(rest) and time.monotonic() >= until:
                    raise AssertionError(f"{' '.join(self.argv)}: no /{pattern}/ in {limit} s:\n{self.text()}")

    def signal(self, number):
        os.kill(self.proc.pid, number)

    def wait(self, limit):
        """The exit status, within `limit` seconds."""
        rc = self.proc.wait(limit)
        self._reader.join(5)
        check_sanitizers(self.text())
        return rc

    def end(self):
        """Stops it: SIGCONT and SIGTERM, SIGKILL when that does not help in 5 s. Returns the exit status."""
        if self.proc.poll() is None:
            try:
                os.killpg(self.proc.pid, signal.SIGCONT)
            except ProcessLookupError:
                pass
            bounded.stop(self.proc)
        self._reader.join(5)
        self.proc.stdout.close()
        return self.proc.returncode


class Serve(Process):
    """A `pitot serve` that is listening; port is the one it said."""

    def __init__(self, argv):
        super().__init__(argv)
        try:
            self.port = int(self.wait_line(r"listening\b.*?:(\d+)\b(?!.*:\d)").group(1))
        except BaseException:
            self.end()
            raise

    def at(self, host):
        return join(host, self.port)


class Local:
    """Runs pitot on this machine as it is, without namespaces; the base of Lab."""

    def __init__(self):
        self._running = []

    def __enter__(self):
        self.dir = tempfile.TemporaryDirectory(prefix="pitot-lab-")
        return self

    def __exit__(self, kind, _value, _trace):
        for process in reversed(self._running):
            process.end()
        texts = [process.text() for process in self._running]
        self._running = []
        self.dir.cleanup()
        if kind is None:
            for text in texts:
                check_sanitizers(text)

    def argv(self, node, argv):
        """The command line that runs argv on a node."""
        del node
        return [str(a) for a in argv]

    def path(self, name):
        return os.path.join(self.dir.name, name)

    def start(self, node, *argv):
        """Starts a program that goes on running; it is ended with the lab."""
        process = Process(self.argv(node, argv))
        self._running.append(process)
        return process

    def serve(self, node, *options):
        """Starts `pitot serve` on all addresses (Local: a free loopback port) and waits until it listens."""
        if "--listen" not in options:
            options = ("--listen", "127.0.0.1:0" if type(self) is Local else f":{PORT}") + options
        process = Serve(self.argv(node, [binary(), "serve", *options]))
        self._running.append(process)
        return process

    def begin(self, node, *args):
        """Starts a measurement and returns at once; finish() waits for it. For signals in between."""
        name = self.path(f"result-{next(_serial)}.json")
        argv = [binary(), *args]
        if "--json" not in args:
            argv += ["--json", name]
        process = self.start(node, *argv)
        process.result, process.began = name, time.monotonic()
        return process

    def finish(self, process, limit=30):
        """Waits for a begun measurement and reads its result; output is in `out`."""
        try:
            rc = process.wait(limit)
        except subprocess.TimeoutExpired:
            process.end()
            raise AssertionError(f"{' '.join(process.argv)} still ran after {limit} s:\n{process.text()}") from None
        doc = None
        if os.path.exists(process.result):
            text = pathlib.Path(process.result).read_text()
            doc = check_document(text) if text else None
        return Run(process.argv, rc, process.text(), "", doc, time.monotonic() - process.began)

    def pitot(self, node, *args, limit=30):
        """Runs pitot to its end, at most `limit` seconds; the result document is checked and in `doc`."""
        name = self.path(f"result-{next(_serial)}.json")
        argv = [binary(), *args]
        if "--json" not in args:
            argv += ["--json", name]
        argv = self.argv(node, argv)
        began = time.monotonic()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            proc = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                    start_new_session=True, preexec_fn=bounded.die_with_parent)
            try:
                rc = proc.wait(limit)
            except subprocess.TimeoutExpired:
                rc = None
                bounded.stop(proc)
            except BaseException:
                bounded.stop(proc)
                raise
            seconds = time.monotonic() - began
            texts = []
            for stream in (out, err):
                stream.seek(0)
                texts.append(stream.read().decode(errors="replace"))
        check_sanitizers(texts[1])
        assert rc is not None, f"{' '.join(argv)} still ran after {limit} s:\n{texts[0]}\n{texts[1]}"
        doc = None
        if os.path.exists(name) and os.path.getsize(name):
            doc = check_document(pathlib.Path(name).read_text())
        return Run(argv, rc, texts[0], texts[1], doc, seconds)


class Lab(Local):
    """`nodes` namespaces; two are joined by one veth pair, more by a bridge in a namespace of its own."""

    def __init__(self, nodes=2, mtu=1500):
        super().__init__()
        self.nodes, self.mtu = nodes, mtu
        self._number = next(_serial)
        self._made = []

    def ns(self, node):
        return f"{PREFIX}-{os.getpid()}-{self._number}-{node}"

    def v4(self, node):
        return f"10.77.0.{node + 1}"

    def v6(self, node):
        return f"fd77::{node + 1}"

    def link_local(self, node):
        """The link-local address of a node, with the zone that every node knows it under."""
        return f"fe80::{node + 1}%eth0"

    def argv(self, node, argv):
        return ["ip", "netns", "exec", self.ns(node)] + [str(a) for a in argv]

    def link(self, node, state):
        """Takes the interface of a node `up` or `down`."""
        _ip(f"link set dev eth0 {state}\n", self.ns(node))
        if state == "up":
            self._address(node)

    def __enter__(self):
        if os.geteuid() != 0:
            raise Skip("network namespaces need root")
        super().__enter__()
        try:
            remove_leftovers()
            self._build()
        except BaseException:
            self.__exit__(RuntimeError, None, None)
            raise
        return self

    def __exit__(self, kind, value, trace):
        try:
            super().__exit__(kind, value, trace)
        finally:
            for name in reversed(self._made):
                _remove(name)
            self._made = []

    def _add(self, node):
        name = self.ns(node)
        self._made.append(name)
        done = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, timeout=20)
        if done.returncode:
            raise Skip(f"no network namespaces here: {done.stderr.strip()}")
        _ip("link set dev lo up\n", name)

    def _address(self, node):
        _ip(f"link set dev eth0 mtu {self.mtu} addrgenmode none\n"
            "link set dev eth0 up\n"
            f"addr replace {self.v4(node)}/24 dev eth0\n"
            f"addr replace {self.v6(node)}/64 dev eth0 nodad\n"
            f"addr replace fe80::{node + 1}/64 dev eth0 nodad\n", self.ns(node))

    def _build(self):
        for node in range(self.nodes):
            self._add(node)
        if self.nodes == 2:
            _ip(f"link add eth0 netns {self.ns(0)} type veth peer name eth0 netns {self.ns(1)}\n")
        elif self.nodes > 2:
            self._add("hub")
            _ip("link add br0 type bridge\nlink set dev br0 up\n", self.ns("hub"))
            for node in range(self.nodes):
                _ip(f"link add port{node} mtu {self.mtu} type veth peer name eth0 netns {self.ns(node)}\n"
                    f"link set dev port{node} master br0 up\n", self.ns("hub"))
        if self.nodes > 1:
            for node in range(self.nodes):
                self._address(node)
