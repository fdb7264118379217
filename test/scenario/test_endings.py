"""test_endings.py: however a run ends, it ends in time, with its report and the reason, and leaves nothing behind."""
import concurrent.futures
import os
import pathlib
import re
import resource
import signal
import socket
import ssl
import subprocess
import threading
import time
import traceback

from lab import Lab, Local, binary, check_document
from tap import limit

SHORT = ("-d", "200ms", "--warmup", "100ms", "-q")
FEW = ("-n", "5", "--warmup", "0s", "-q")  # ends when it is done, on the busiest machine
# Gentle loads: many at once fit on a machine.
GENTLE = {"bw": ["bw", "-r", "20mbit"], "bw -R": ["bw", "-R", "-r", "20mbit"], "bw -u": ["bw", "-u", "-r", "20mbit"],
          "pps": ["pps", "-r", "2k", "-c", "3"], "lat": ["lat", "-r", "500"], "lat -u": ["lat", "-u", "-r", "500"]}
if subprocess.run([binary(), "lat", "--engine", "uring", "-n", "1", "--warmup", "0s"], capture_output=True,
                  timeout=20).returncode == 0:
    GENTLE["lat io_uring"] = ["lat", "-r", "500", "--engine", "uring"]
    GENTLE["lat -u io_uring"] = ["lat", "-u", "-r", "500", "--engine", "uring"]


def children(pid):
    """The processes that a process has forked, by pid."""
    try:
        return [int(p) for p in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def until(what, seconds=5):
    end = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.01)
    return found


def fds(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def sessions(serve):
    """Session processes of a server."""
    return children(serve.pid)


def good(run):
    assert run.rc == 0 and run.doc and run.doc["status"] == "ok", run
    return run.doc


def partial(run, *needles, rc=1, statuses=("partial",)):
    assert run.rc == rc and run.doc and run.doc["exit"] == rc and run.doc["status"] in statuses, run
    said = " / ".join(run.doc["warnings"])
    for needle in needles:
        assert re.search(needle, said), (needle, said)
    for warning in run.doc["warnings"]:  # the text report wraps its lines
        assert " ".join(warning.split()) in " ".join(run.out.split()), (warning, run.out)
    return run.doc


def refused(run, *needles, rc=1):
    """Nothing was measured, and one sentence says why."""
    said = (run.err or run.out).strip()
    assert run.rc == rc and run.doc is None, run
    assert len(said.splitlines()) == 1 and said.startswith("pitot "), run
    for needle in needles:
        assert re.search(needle, said), (needle, said)


def begin_all(lab, node, at, *options, tests=GENTLE):
    return {name: lab.begin(node, *words, *([at] if at else []), *options) for name, words in tests.items()}


def finish_all(lab, begun, seconds):
    """Waits for all; each must end within that many seconds from now."""
    end = time.monotonic() + seconds
    return {name: lab.finish(process, max(0.01, end - time.monotonic())) for name, process in begun.items()}


# ---- signals to the client

def test_a_signal_while_measuring_gives_the_report():
    with Local() as lab:
        serve = lab.serve(0)
        for number in (signal.SIGINT, signal.SIGTERM):
            begun = begin_all(lab, 0, serve.at("127.0.0.1"), "-d", "20s", "--warmup", "100ms", "-q")
            time.sleep(1)
            for process in begun.values():
                process.signal(number)
            for name, run in finish_all(lab, begun, 3).items():
                doc = partial(run, "interrupted after", rc=130)
                assert 0 < doc["duration_s"] < 3 and doc["totals"]["ok"] > 0, (name, doc["totals"])
                assert doc["totals"]["rx_bytes"] > 0 and doc["rates"]["rx_bits_per_s"] > 0, (name, doc["rates"])
        until(lambda: not sessions(serve), 2)


def test_a_signal_in_the_warm_up_ends_it_with_a_report():
    with Local() as lab:
        begun = begin_all(lab, 0, None, "-d", "20s", "--warmup", "20s", "-q")
        time.sleep(1)
        for process in begun.values():
            process.signal(signal.SIGTERM)
        for run in finish_all(lab, begun, 3).values():
            doc = partial(run, "interrupted in the warm-up", rc=130, statuses=("failed",))
            assert doc["totals"]["ok"] == 0 and doc["duration_s"] < 0.1, doc["totals"]


def test_a_signal_before_the_start_and_a_second_one():
    with Local() as lab, silent_server() as port:
        process = lab.begin(0, "lat", f"127.0.0.1:{port}")
        time.sleep(0.4)
        process.signal(signal.SIGINT)
        run = lab.finish(process, 1)
        refused(run, "interrupted", rc=130)
        process = lab.begin(0, "bw", "-r", "20mbit", "-d", "20s", "--warmup", "0s", "-q")
        time.sleep(0.8)
        process.signal(signal.SIGINT)
        time.sleep(0.02)
        process.signal(signal.SIGINT)
        run = lab.finish(process, 1.5)
        partial(run, "interrupted", rc=130)


def signals_while_waiting_for_the_report():
    with Local() as lab:
        serve = lab.serve(0)
        process = lab.begin(0, "lat", serve.at("127.0.0.1"), "-r", "100", "-d", "500ms", "--warmup", "0s", "-q")
        session, = until(lambda: sessions(serve))
        time.sleep(0.3)
        os.kill(session, signal.SIGSTOP)
        time.sleep(1)  # the time is over, the report does not come
        process.signal(signal.SIGINT)
        time.sleep(0.3)
        assert process.proc.poll() is None, "the first signal does not give the report up"
        process.signal(signal.SIGINT)
        run = lab.finish(process, 1)
        partial(run, "interrupted while waiting for the peer's report", rc=130)
        os.kill(session, signal.SIGCONT)


# ---- the server dies, stops, hangs

def victims_of(deed, seconds, needle, *options):
    """All gentle tests run when the deed is done to their server; they end within `seconds` with the reason."""
    with Local() as lab:
        serve = lab.serve(0)
        begun = begin_all(lab, 0, serve.at("127.0.0.1"), "-d", "30s", "--warmup", "100ms", "-q", *options)
        until(lambda: sum(" session_start " in line for line in serve.lines) == len(begun))
        time.sleep(0.8)
        deed(serve)
        try:
            for name, run in finish_all(lab, begun, seconds).items():
                doc = partial(run, needle)
                assert doc["totals"]["ok"] > 0 or name == "bw -R", (name, doc["totals"])
        finally:
            if serve.proc.poll() is None:
                os.killpg(serve.pid, signal.SIGCONT)
        return serve


def the_server_is_killed():
    victims_of(lambda serve: serve.signal(signal.SIGKILL), 3, "closed the connection|reset|peer lost")


def the_server_is_ended():
    victims_of(lambda serve: serve.signal(signal.SIGTERM), 3, "closed the connection|reset|peer lost")


def the_server_is_stopped():
    victims_of(lambda serve: os.killpg(serve.pid, signal.SIGSTOP), 6, "said nothing for 3 s|no report", "--timeout", "1s")


def a_session_is_killed_and_the_server_serves_on():
    with Local() as lab:
        serve = lab.serve(0)
        process = lab.begin(0, "lat", serve.at("127.0.0.1"), "-r", "100", "-d", "20s", "--warmup", "0s", "-q")
        session, = until(lambda: sessions(serve))
        time.sleep(0.6)
        os.kill(session, signal.SIGKILL)
        partial(lab.finish(process, 2), "closed the connection|reset|peer lost")
        good(lab.pitot(0, "lat", serve.at("127.0.0.1"), *FEW))


def a_worker_is_killed_or_hangs():
    deeds = {"killed here": (signal.SIGKILL, False, "worker 0 was killed by signal 9", 2),
             "killed there": (signal.SIGKILL, True, "worker 0 was killed by signal 9", 2),
             "hangs here": (signal.SIGSTOP, False, "worker 0 did not end in time", 9),
             "hangs there": (signal.SIGSTOP, True, "worker 0 did not end in time|no report", 9)}
    with Local() as lab:
        servers = {name: lab.serve(0) for name in deeds}

        def run(name):
            number, there, needle, seconds = deeds[name]
            serve = servers[name]
            process = lab.begin(0, "bw", "-r", "20mbit", "-t", "1", "--timeout", "1s", serve.at("127.0.0.1"), "-d",
                                "2s", "--warmup", "0s", "-q")
            session, = until(lambda: sessions(serve))
            worker, = until(lambda: children(session if there else process.pid))
            time.sleep(0.8)
            os.kill(worker, number)
            partial(lab.finish(process, seconds), needle)
            until(lambda: not sessions(serve), 6)
            good(lab.pitot(0, "lat", serve.at("127.0.0.1"), *FEW))
        with concurrent.futures.ThreadPoolExecutor(len(deeds)) as pool:
            list(pool.map(run, deeds))


# ---- the network

def the_network_is_cut_for_good():
    with Lab() as lab:
        serve = lab.serve(1)
        begun = begin_all(lab, 0, serve.at(lab.v4(1)), "-d", "20s", "--warmup", "100ms", "-q", "--timeout", "1s")
        time.sleep(1.2)
        lab.link(0, "down")
        for name, run in finish_all(lab, begun, 9).items():
            doc = partial(run, "said nothing|timed out|no report|closed")
            assert doc["totals"]["tx_bytes"] or name == "bw -R", (name, doc["totals"])
        until(lambda: not sessions(serve), 12)


@limit(40)
def test_an_outage_in_the_middle_is_a_stall_and_not_an_end():
    with Lab() as lab:
        serve = lab.serve(1)
        begun = begin_all(lab, 0, serve.at(lab.v4(1)), "-d", "5s", "--warmup", "100ms", "-q")
        time.sleep(1.5)
        lab.link(0, "down")
        time.sleep(1.5)
        lab.link(0, "up")
        for name, run in finish_all(lab, begun, 15).items():
            doc = good(run)
            stalls = [re.search(r"stall: .* for ([0-9.]+) s, from ([0-9.]+) s", w) for w in doc["warnings"]]
            found = [(float(m.group(1)), float(m.group(2))) for m in stalls if m]
            assert found and 1.2 < found[0][0] < 4.5 and 0.3 < found[0][1] < 2.5, (name, doc["warnings"])
            assert abs(doc["duration_s"] - 5) < 0.1, (name, doc["duration_s"])
            if name == "lat":  # an open loop: what was due in the outage waited
                assert doc["latency"]["max_us"] > 1.2e6, doc["latency"]
            if name == "lat -u":
                assert doc["totals"]["errors"]["timeout"] + doc["totals"]["errors"]["send"] > 0, doc["totals"]


def the_network_is_cut_while_draining():
    with Lab() as lab:
        serve = lab.serve(1)
        process = lab.begin(0, "bw", "--cc", "cubic", serve.at(lab.v4(1)), "-d", "1s", "--warmup", "0s", "--timeout",
                            "1s", "-q")
        session, = until(lambda: sessions(serve))
        time.sleep(0.5)
        os.kill(session, signal.SIGSTOP)  # so that the end is waited for
        time.sleep(1)
        lab.link(0, "down")
        os.kill(session, signal.SIGCONT)
        run = lab.finish(process, 5)
        partial(run, "no report|timed out")
        assert abs(run.doc["duration_s"] - 1) < 0.1, run


# ---- the client dies or stops

def test_a_killed_client_frees_its_session_at_once():
    with Local() as lab:
        serve = lab.serve(0, "--max-sessions", "1")
        took = []
        for words in GENTLE.values():
            process = lab.begin(0, *words, serve.at("127.0.0.1"), "-d", "20s", "--warmup", "0s", "-q")
            until(lambda: sessions(serve))
            time.sleep(0.3)
            process.signal(signal.SIGKILL)
            began = time.monotonic()
            until(lambda: not sessions(serve), 5)
            took.append(time.monotonic() - began)
        assert sorted(took)[-2] < 1, took  # one may meet a machine that pauses
        good(lab.pitot(0, "lat", serve.at("127.0.0.1"), *FEW))


def a_stopped_client_loses_its_session_and_blocks_nobody():
    with Local() as lab:
        serve = lab.serve(0)
        at = serve.at("127.0.0.1")
        begun = begin_all(lab, 0, at, "-d", "20s", "--warmup", "0s", "-q", "--timeout", "1s")
        until(lambda: len(sessions(serve)) == len(begun))
        time.sleep(0.5)
        for process in begun.values():
            os.killpg(process.pid, signal.SIGSTOP)
        began = time.monotonic()
        good(lab.pitot(0, "lat", at, *FEW))
        good(lab.pitot(0, "lat", "-u", at, *FEW))
        until(lambda: not sessions(serve), 15)
        assert time.monotonic() - began > 8, "the deadline is ten seconds"
        for process in begun.values():
            os.killpg(process.pid, signal.SIGCONT)
        for run in finish_all(lab, begun, 5).values():
            partial(run, "said nothing|closed|reset|in time", statuses=("partial", "failed"))


# ---- all of these wait most of their time: together

@limit(90)
def test_the_other_end_dies_stops_hangs_is_cut_off_or_is_no_pitot():
    cases = [signals_while_waiting_for_the_report, the_server_is_killed, the_server_is_ended, the_server_is_stopped,
             a_session_is_killed_and_the_server_serves_on, a_worker_is_killed_or_hangs, the_network_is_cut_for_good,
             the_network_is_cut_while_draining, a_stopped_client_loses_its_session_and_blocks_nobody,
             peers_that_are_not_pitot, names_and_addresses_that_lead_nowhere, udp_that_does_not_pass]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        begun = {case.__name__: pool.submit(case) for case in cases}
    failed = {name: future.exception() for name, future in begun.items() if future.exception()}
    for name, why in failed.items():
        print("#", name, "".join(traceback.format_exception(why)).replace("\n", "\n# "))
    assert not failed, list(failed)


# ---- again and again

@limit(120)
def test_two_hundred_short_runs_leave_nothing_behind():
    tests = [["lat"], ["lat", "-u", "-r", "1k"], ["bw", "-r", "50mbit"], ["pps", "-c", "2", "-r", "2k"],
             ["bw", "-R", "-r", "50mbit"], ["lat", "--crr"], ["bw", "-u", "-r", "50mbit"], ["lat", "-c", "20"]]
    with Local() as lab:
        serve = lab.serve(0)
        at = serve.at("127.0.0.1")
        good(lab.pitot(0, "lat", at, *FEW))
        until(lambda: not sessions(serve), 2)
        before = fds(serve.pid)

        def run(i):
            for _ in range(3):  # a busy machine may hold a process up for longer than a run lasts
                done = lab.pitot(0, *tests[i % len(tests)], at, "-d", "200ms", "--warmup", "0s", "-q")
                if "no operation succeeded" not in (done.doc or {"warnings": ()})["warnings"]:
                    break
            good(done)
            return done.seconds
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            seconds = sorted(pool.map(run, range(200)))
        assert seconds[100] < 1.5, f"a run of 0.2 s takes {seconds[100]:.2f} s in the middle"
        until(lambda: not sessions(serve), 2)
        assert fds(serve.pid) == before, f"{fds(serve.pid)} descriptors, {before} before"
        lines = [line for line in serve.lines if " session_end " in line]
        assert 201 <= len(lines) < 211 and all("status=ok" in line for line in lines), lines[:3]


def test_a_server_that_comes_back_serves_again():
    with Local() as lab:
        serve = lab.serve(0)
        at, port = serve.at("127.0.0.1"), serve.port
        good(lab.pitot(0, "bw", "--bytes", "1MB", at, "-q"))
        serve.signal(signal.SIGKILL)
        serve.wait(3)
        refused(lab.pitot(0, "lat", at), "nothing listens there", "pitot serve")
        lab.serve(0, "--listen", f"127.0.0.1:{port}")
        good(lab.pitot(0, "bw", "--bytes", "1MB", at, "-q"))


# ---- peers that are not what they should be

class Listener:
    """A TCP listener on the loopback that treats each connection in a thread."""

    def __init__(self, treat):
        self.treat, self.listening, self.taken = treat, socket.create_server(("127.0.0.1", 0)), []
        self.port = self.listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                sock, _ = self.listening.accept()
            except OSError:
                return
            self.taken.append(sock)
            threading.Thread(target=self._treat, args=(sock,), daemon=True).start()

    def _treat(self, sock):
        try:
            self.treat(sock)
        except OSError:
            pass

    def __enter__(self):
        return self.port

    def __exit__(self, *_):
        self.listening.close()
        for sock in self.taken:
            sock.close()


def silent_server():
    return Listener(lambda sock: time.sleep(30))


def dribble(sock):
    for _ in range(30):
        sock.send(b"\0")
        time.sleep(0.5)


def speak_http(sock):
    sock.recv(100)
    sock.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
    sock.close()


def speak_tls(sock):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.wrap_socket(sock, server_side=True)


def other_version(sock):
    sock.recv(1000)
    text = b'{"type":"hello","version":9,"auth":"none","nonce":"' + b"0" * 64 + b'"}'
    sock.sendall(len(text).to_bytes(4, "big") + text)
    time.sleep(30)


def refuse_version(sock):
    sock.recv(1000)
    text = b'{"type":"error","code":"version","reason":"the server speaks protocol version 9"}'
    sock.sendall(len(text).to_bytes(4, "big") + text)
    sock.close()


def peers_that_are_not_pitot():
    strangers = {"silent": (lambda sock: time.sleep(30), "says nothing"), "slow": (dribble, "did not|says nothing|does not speak"),
                 "http": (speak_http, "does not speak pitot.*HTTP"), "tls": (speak_tls, "does not speak pitot|closed"),
                 "shut": (lambda sock: sock.close(), "closed the connection without a word|reset"),
                 "newer": (other_version, "version 9.*version 1"), "refusing": (refuse_version, "version 9.*version 1")}
    with Local() as lab:
        def meet(name):
            treat, needle = strangers[name]
            with Listener(treat) as port:
                run = lab.pitot(0, "lat", f"127.0.0.1:{port}", "--timeout", "1s")
                refused(run, needle)
                assert run.seconds < 4, (name, run)
        with concurrent.futures.ThreadPoolExecutor(len(strangers)) as pool:
            list(pool.map(meet, strangers))


def names_and_addresses_that_lead_nowhere():
    with Local() as lab:
        refused(lab.pitot(0, "lat", "127.0.0.1:1"), "nothing listens there", "pitot serve")
        refused(lab.pitot(0, "lat", "no.such.name.invalid"), "no.such.name.invalid")
        refused(lab.pitot(0, "lat", "[fe80::1%nolink]:7411"), "nolink")
    with Lab() as lab:
        run = lab.pitot(0, "lat", "10.77.0.99", "--timeout", "1s")
        refused(run, "10.77.0.99", "no route|no answer")
        assert run.seconds < 5, run
        refused(lab.pitot(0, "lat", "192.0.2.1"), "route")


def test_secrets():
    with Local() as lab:
        for name, text in (("right", "open sesame"), ("wrong", "close sesame")):
            path = pathlib.Path(lab.path(name))
            path.write_text(text)
            path.chmod(0o600)
        serve, plain = lab.serve(0, "--secret-file", lab.path("right")), lab.serve(0)
        at = serve.at("127.0.0.1")
        good(lab.pitot(0, "lat", "--secret-file", lab.path("right"), at, *FEW))
        refused(lab.pitot(0, "lat", "--secret-file", lab.path("wrong"), at, *SHORT), "wrong secret")
        refused(lab.pitot(0, "lat", at, *SHORT), "secret")
        refused(lab.pitot(0, "lat", "--secret-file", lab.path("right"), plain.at("127.0.0.1"), *SHORT), "secret")
        refused(lab.pitot(0, "lat", "--secret-file", lab.path("none"), at, *SHORT), "none", "No such file")


def test_caps():
    with Local() as lab:
        at = lab.serve(0, "--max-connections", "4", "--max-duration", "1s", "--max-sessions", "1").at("127.0.0.1")
        good(lab.pitot(0, "lat", "-c", "4", at, *FEW))
        refused(lab.pitot(0, "lat", "-c", "5", at, *SHORT), "allows 4 connections", "lower -c")
        refused(lab.pitot(0, "bw", "--bidir", "-c", "3", at, *SHORT), "allows 4 connections")
        refused(lab.pitot(0, "lat", "-d", "900ms", "--warmup", "200ms", at), "allows tests of 1s", "1100ms|1.1s")
        good(lab.pitot(0, "lat", "-d", "900ms", "--warmup", "100ms", "-r", "100", at, "-q"))
        counted = lab.begin(0, "lat", "-n", "1000", "-r", "100", at, "--warmup", "0s", "-q")
        time.sleep(0.4)
        refused(lab.pitot(0, "lat", at, *SHORT), "1 sessions|taken|busy")
        run = lab.finish(counted, 4)
        doc = partial(run, "allows tests of 1s")
        assert 50 < doc["totals"]["ok"] < 300, doc["totals"]
        strict = lab.serve(0, "--allow", "127.0.0.2").at("127.0.0.1")
        refused(lab.pitot(0, "lat", strict, *SHORT), "--allow")
        good(lab.pitot(0, "lat", "--bind", "127.0.0.2", strict, *FEW))


def udp_that_does_not_pass():
    with Local() as lab:
        port = lab.serve(0).port

        def forward(sock):
            with socket.create_connection(("127.0.0.1", port)) as there:
                threading.Thread(target=pump, args=(there, sock), daemon=True).start()
                pump(sock, there)

        def pump(a, b):
            try:
                while data := a.recv(65536):
                    b.sendall(data)
                b.shutdown(socket.SHUT_WR)
            except OSError:
                pass
        with Listener(forward) as at:
            good(lab.pitot(0, "lat", f"127.0.0.1:{at}", *FEW))
            run = lab.pitot(0, "lat", "-u", f"127.0.0.1:{at}", "--timeout", "1s", *SHORT)
            refused(run, "nothing listens there on UDP")
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as hole:
                hole.bind(("127.0.0.1", at))
                for test in (["lat", "-u"], ["pps"]):
                    run = lab.pitot(0, *test, f"127.0.0.1:{at}", "--timeout", "1s", *SHORT)
                    refused(run, "no answer by UDP", "firewall")
                    assert run.seconds < 5, run


# ---- small machines

def tight(lab, *words):
    """Runs a command line as it is; its result is checked when there is one."""
    name = lab.path(f"tight-{time.monotonic_ns()}.json")
    done = subprocess.run([*words, "--json", name], capture_output=True, text=True, timeout=30)
    doc = check_document(pathlib.Path(name).read_text()) if os.path.exists(name) else None
    return done, doc


def test_few_descriptors():
    with Local() as lab:
        at = lab.serve(0).at("127.0.0.1")
        done, doc = tight(lab, "prlimit", "--nofile=32:32", binary(), "lat", "-c", "100", at, *SHORT)
        assert done.returncode == 1 and doc is None and "ulimit -n" in done.stderr, done
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr
        done, doc = tight(lab, "prlimit", "--nofile=32:4096", binary(), "lat", "-c", "100", at, *SHORT)
        assert done.returncode == 0 and doc["status"] == "ok", done
        process = lab.start(0, "prlimit", "--nofile=64:64", binary(), "serve", "--listen", "127.0.0.1:0")
        small = process.wait_line(r"listening on (\S+)").group(1)
        good(lab.pitot(0, "lat", "-c", "10", small, *FEW))
        refused(lab.pitot(0, "lat", "-c", "200", small, *SHORT), "descriptors")
        good(lab.pitot(0, "lat", "-c", "10", small, *FEW))


def test_little_memory():
    sanitized = b"__asan_init" in pathlib.Path(binary()).read_bytes()
    with Local() as lab:
        at = lab.serve(0).at("127.0.0.1")
        seen = set()
        for mib in [] if sanitized else (4, 6, 8, 10, 12, 16, 24, 32, 64, 256):
            done, doc = tight(lab, "prlimit", f"--as={mib << 20}", binary(), "lat", at, *SHORT)
            seen.add(done.returncode)
            assert done.returncode in (0, 1, 127), (mib, done)  # 127: the loader had no room
            assert done.returncode != 0 or doc["status"] == "ok", (mib, done)
            assert done.returncode == 0 or len(done.stderr.strip().splitlines()) == 1, (mib, done)
        assert sanitized or 0 in seen, "256 MiB are enough"
        done, doc = tight(lab, "prlimit", f"--as={64 << 20}", binary(), "lat", "-s", "16MiB", "-c", "50", at, *SHORT)
        assert sanitized or done.returncode == 1 and doc is None and "memory" in done.stderr, done


def test_one_cpu():
    with Local() as lab:
        for words in (["bw"], ["lat"], ["lat", "--spin"], ["pps", "-c", "4"], ["lat", "-c", "8", "-t", "4"]):
            done, doc = tight(lab, "taskset", "-c", "0", binary(), *words, "-d", "500ms", "--warmup", "200ms", "-q")
            assert done.returncode == 0 and doc["status"] == "ok" and doc["totals"]["ok"] > 0, done
            assert doc["placement"]["workers"] == 1, doc["placement"]


def test_without_root():
    if os.geteuid() != 0:
        return  # every other test is without root then
    with Local() as lab:
        os.chmod(lab.dir.name, 0o777)
        become = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]
        for words in (["bw"], ["bw", "-u"], ["lat"], ["lat", "-u"], ["lat", "--crr"], ["lat", "--spin"], ["pps", "-c", "4"],
                      ["lat", "--engine", "uring"], ["bw", "--tos", "8", "--rcvbuf", "100k"]):
            done, doc = tight(lab, *become, binary(), *words, *SHORT)
            if done.returncode and "--spin" not in words:
                done, doc = tight(lab, *become, binary(), *words, *SHORT)
            assert "--spin" in words or done.returncode == 0 and doc["status"] == "ok", done
        for path in ("packet", "xdp"):
            done, doc = tight(lab, *become, binary(), "pps", "--path", path, *SHORT)
            assert done.returncode in (1, 2) and doc is None and len(done.stderr.strip().splitlines()) == 1, done


# ---- exact amounts, small and large

def test_counted_transfers_are_exact_at_the_receiver():
    with Local() as lab:
        tcp, path = lab.serve(0).at("127.0.0.1"), "unix:" + lab.path("socket")
        lab.start(0, binary(), "serve", "--listen", path).wait_line("listening on unix:")
        cases = [(at, kind, way, n, c) for at, kind in ((tcp, []), (tcp, ["-u"]), (path, []))
                 for way in ([], ["-R"], ["--bidir"]) for n, c in ((1, 1), (7, 3), (1000003, 3))]

        def run(case):
            at, kind, way, n, c = case
            doc = good(lab.pitot(0, "bw", *kind, *way, "--bytes", str(n), "-c", str(c), at, "-q"))
            parts = doc.get("directions", [doc])
            for part in parts:
                assert part["totals"].get("lost_packets", 0) == 0, (case, part["totals"])
                assert part["totals"]["rx_bytes"] == part["totals"]["tx_bytes"] == n, (case, part["totals"])
            assert doc["totals"]["rx_bytes"] == n * len(parts), (case, doc["totals"])
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            list(pool.map(run, cases))
        done = lab.pitot(0, "bw", "--bytes", "2", "-c", "3", tcp)
        assert done.rc == 2 and "fewer bytes than connections" in done.err, done


def test_counted_operations():
    with Local() as lab:
        at = lab.serve(0).at("127.0.0.1")
        for words, n in ((["lat", "-n", "7", "-c", "3"], 21), (["lat", "-u", "-n", "1"], 1), (["lat", "--crr", "-n", "5"], 5),
                         (["pps", "-n", "10", "-c", "4"], 40), (["lat", "-n", "50", "-r", "1k", "-c", "2"], 100),
                         (["bw", "-n", "3", "-s", "100000", "-c", "2"], 6)):
            doc = good(lab.pitot(0, *words, at, "--warmup", "0s", "-q", limit=10))
            assert doc["totals"]["ok"] == n, (words, doc["totals"])
        doc = good(lab.pitot(0, "lat", "-n", "20", "-c", "2", at, "--warmup", "200ms", "-q", limit=10))
        assert doc["totals"]["ok"] == 40, doc["totals"]


def test_many_connections():
    with Local() as lab:
        at = lab.serve(0).at("127.0.0.1")
        for words in (["lat"], ["bw", "--cc", "cubic"], ["pps"]):
            doc = good(lab.pitot(0, *words, "-c", "1000", at, "-d", "500ms", "--warmup", "300ms", "-q"))
            assert doc["test"]["load"]["connections"] == 1000 and doc["flows_not_shown"] == 1000 - len(doc["flows"])


def test_extremes():
    with Local() as lab:
        at = lab.serve(0).at("127.0.0.1")
        for words in (["lat", "-s", "1"], ["lat", "-u", "-s", "1"], ["pps", "-s", "1", "-c", "2"], ["lat", "-u", "-s", "65507"],
                      ["lat", "-s", "1MiB"], ["lat", "--inflight", "64"], ["lat", "-u", "--inflight", "64"],
                      ["lat", "-s", "1MiB", "--inflight", "64"], ["lat", "--crr", "-s", "100000"], ["bw", "-s", "1"],
                      ["lat", "--inflight", "64", "-s", "1", "-c", "3"]):
            doc = good(lab.pitot(0, *words, at, "-d", "300ms", "--warmup", "100ms", "-q"))
            assert doc["totals"]["ok"] > 0 and sum(doc["totals"]["errors"].values()) == 0, (words, doc["totals"])
        for words in (["lat"], ["bw"], ["pps", "-c", "2"], ["lat", "-u"], ["bw", "-u"], ["bw", "-R"]):
            doc = good(lab.pitot(0, *words, at, "-d", "50ms", "--warmup", "0s", "-q"))
            assert abs(doc["duration_s"] - 0.05) < 0.01, doc["duration_s"]
