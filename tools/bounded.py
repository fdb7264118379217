"""bounded.py: runs programs that cannot outlive their time or their caller.

Every program started here gets no terminal, its own session, and a limit at which the whole group is
killed. adopt() makes this process the reaper of orphans, so that whatever a program left running can be
found by its ancestry (never by its name) and ended by pid.
"""
import ctypes
import os
import pathlib
import signal
import subprocess
import tempfile
import time

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
_libc = ctypes.CDLL(None, use_errno=True)


class Ended:
    """How a program ended: rc (None when it had to be killed at its limit), out, seconds."""

    def __init__(self, rc, out, seconds):
        self.rc, self.out, self.seconds = rc, out, seconds


def adopt():
    """From now on orphans of our children become our children."""
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent():
    """For preexec_fn: the kernel kills this process when the one that started it dies."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _stat(pid):
    """(state, parent pid) of a process, or None when it is gone."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    fields = text[text.rindex(")") + 2:].split()
    return fields[0], int(fields[1])


def descendants():
    """{pid: command line} of everything below this process; its zombies are left out."""
    parent = {}
    zombies = set()
    for name in os.listdir("/proc"):
        if name.isdigit():
            found = _stat(int(name))
            if found:
                parent[int(name)] = found[1]
                if found[0] == "Z":
                    zombies.add(int(name))
    ours, grown = {os.getpid()}, True
    while grown:
        more = {pid for pid, up in parent.items() if up in ours and pid not in ours}
        grown = bool(more)
        ours |= more
    lines = {}
    for pid in sorted(ours - zombies - {os.getpid()}):
        try:
            raw = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        lines[pid] = raw.replace(b"\0", b" ").decode(errors="replace").strip()[:120]
    return lines


def _signal_all(pids, number):
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def sweep(grace=1.0):
    """Waits up to `grace` seconds for our descendants to end, kills the rest and returns them as lines.

    Only to be called while no program of ours is meant to run.
    """
    until = time.monotonic() + grace
    left = descendants()
    while left and time.monotonic() < until:
        time.sleep(0.02)
        left = descendants()
    stubborn = time.monotonic() + 5
    alive = left
    while alive and time.monotonic() < stubborn:
        _signal_all(alive, signal.SIGKILL)
        time.sleep(0.02)
        alive = descendants()
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
    return [f"{pid}: {line}" for pid, line in left.items()]


def stop(proc, grace=5.0):
    """SIGTERM to the group of a Popen started in its own session, SIGKILL after `grace` seconds."""
    for number, patience in ((signal.SIGTERM, grace), (signal.SIGKILL, 5.0)):
        try:
            os.killpg(proc.pid, number)
        except ProcessLookupError:
            pass
        try:
            proc.wait(patience)
            return
        except subprocess.TimeoutExpired:
            continue


def run(argv, limit, text_in="", **more):
    """Runs argv to its end or its limit (seconds); stdout and stderr come back as one text.

    stdin holds text_in and then ends.
    """
    started = time.monotonic()
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as given:
        given.write(text_in.encode())
        given.seek(0)
        try:
            proc = subprocess.Popen([str(a) for a in argv], stdin=given, stdout=output,
                                    stderr=subprocess.STDOUT, start_new_session=True, **more)
        except OSError as why:
            return Ended(127, f"{argv[0]}: {why.strerror}", 0.0)
        try:
            rc = proc.wait(limit)
        except subprocess.TimeoutExpired:
            stop(proc)
            rc = None
        except BaseException:
            stop(proc, 1.0)
            raise
        output.seek(0)
        text = output.read().decode(errors="replace")
    return Ended(rc, text, time.monotonic() - started)
