"""test_serve.py: `pitot serve` among strangers, liars and the dead.

Its sessions carry no measurement here; test/unit/test_serve.c has flows that carry bytes.
"""
import os
import pathlib
import random
import re
import resource
import signal
import socket
import subprocess
import sys
import time

from control_client import (CHALLENGE, CONTROL, HELLO, PROOF, Client, Refused, connect, knock, preamble)
from lab import Lab, Local, binary
from tap import limit

SCRIPT = pathlib.Path(__file__).resolve().parent / "control_client.py"


def lines(serve, word):
    return [line for line in serve.lines if line and f" {word} " in f"{line} "]


def wait_for(what, seconds=3):
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, f"not within {seconds} s"
        time.sleep(0.01)


def until_closed(sock, seconds):
    """What the server still sends, and how long it takes until it closes."""
    sock.settimeout(seconds)
    began, got = time.monotonic(), b""
    try:
        while part := sock.recv(4096):
            got += part
    except ConnectionResetError:
        pass
    return got, time.monotonic() - began


def cpu_s(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def fds(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def test_strangers_get_one_line_and_nothing_else():
    rng = random.Random(1)
    hello = bytes.fromhex("16030100c8010000c40303") + rng.randbytes(200)
    strangers = [(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP"), (b"GET / HTTP/1.0\r\n\r\n", "HTTP"),
                 (b"POST /a HTTP/1.1\r\n\r\n", "HTTP"), (hello, "TLS"), (b"SSH-2.0-x\r\n", "SSH"),
                 (b"\x1b[2J\x1b[31mred\r\n", "unknown"), (b"PTOX" + bytes(28), "unknown"),
                 (preamble(9), "unknown")]
    strangers += [(bytes([rng.randrange(81, 256)]) + rng.randbytes(rng.randrange(1, 3000)), None) for _ in range(40)]
    with Local() as lab:
        serve = lab.serve(0)
        before = len(serve.lines)
        for sent, looks in strangers:
            with connect("127.0.0.1", serve.port) as sock:
                at, mine = len(serve.lines), sock.getsockname()[1]
                sock.sendall(sent)
                got, _ = until_closed(sock, 3)
                assert got == b"", f"{sent[:20]} was answered with {got[:40]}"
            wait_for(lambda: len(serve.lines) > at)
            assert f"not_pitot peer=127.0.0.1:{mine} " in serve.lines[at], serve.lines[at]
            assert looks is None or f"looks_like={looks} " in serve.lines[at], serve.lines[at]
            assert all(" " <= c < "\x7f" for c in serve.lines[at]), "a stranger wrote to the terminal"
        time.sleep(0.1)
        assert len(serve.lines) == before + len(strangers)
        Client("127.0.0.1", serve.port).close()


def test_the_silent_and_the_slow_have_five_seconds():
    with Local() as lab:
        serve = lab.serve(0)
        silent = connect("127.0.0.1", serve.port)
        slow = connect("127.0.0.1", serve.port)
        half = connect("127.0.0.1", serve.port)  # says what it is, then no hello
        half.sendall(preamble(CONTROL))
        began, closed = time.monotonic(), {}
        for byte in preamble(CONTROL):
            for name, sock in (("silent", silent), ("slow", slow), ("half", half)):
                sock.settimeout(0.3)
                try:
                    if not sock.recv(1000):
                        closed.setdefault(name, time.monotonic() - began)
                except socket.timeout:
                    pass
                except ConnectionResetError:
                    closed.setdefault(name, time.monotonic() - began)
            if len(closed) == 3:
                break
            try:
                slow.send(bytes([byte]))
            except OSError:
                pass
        assert set(closed) == {"silent", "slow", "half"}, closed
        assert all(4.5 < t < 7.5 for t in closed.values()), closed
        wait_for(lambda: lines(serve, "handshake_failed"))
        assert len(lines(serve, "silent")) == 2 and len(lines(serve, "handshake_failed")) == 1, serve.text()
        for sock in (silent, slow, half):
            sock.close()


def test_a_flood_of_connections_keeps_nobody_out():
    with Local() as lab:
        serve = lab.serve(0)
        flood = [connect("127.0.0.1", serve.port) for _ in range(600)]
        began = time.monotonic()
        client = Client("127.0.0.1", serve.port)
        assert time.monotonic() - began < 1
        with client.stream(0) as sock:
            sock.settimeout(0.2)
            try:
                assert sock.recv(1) != b"", "the flow was closed"
            except socket.timeout:
                pass  # it waits in the session
        client.close()
        for sock in flood:
            sock.close()
        wait_for(lambda: fds(serve.pid) < 30)
        assert len(serve.lines) < 800  # the lines of strangers are counted, not all printed


def test_many_sessions_at_once():
    with Local() as lab:
        serve = lab.serve(0)
        clients = [Client("127.0.0.1", serve.port) for _ in range(100)]
        assert len({client.token for client in clients}) == 100
        wait_for(lambda: len(lines(serve, "session_start")) == 100)
        for client in clients:
            client.close()
        wait_for(lambda: len(lines(serve, "session_end")) == 100)
        assert all("status=ok" in line for line in lines(serve, "session_end"))


def test_the_cap_on_sessions_is_told():
    with Local() as lab:
        serve = lab.serve(0, "--max-sessions", "2")
        held = [Client("127.0.0.1", serve.port) for _ in range(2)]
        try:
            Client("127.0.0.1", serve.port)
            raise AssertionError("a third session was let in")
        except Refused as why:
            assert why.args[0] == "busy" and "2 sessions" in why.args[1], why
        held.pop().close()
        wait_for(lambda: len(lines(serve, "session_end")) == 1, 1)
        held.append(Client("127.0.0.1", serve.port))


def test_the_allow_list():
    with Local() as lab:
        serve = lab.serve(0, "--listen", "0.0.0.0:0", "--allow", "127.0.0.2,10.0.0.0/8", "--allow", "127.0.1.0/24")
        for source, good in (("127.0.0.2", True), ("127.0.1.77", True), ("127.0.0.1", False), ("127.0.0.3", False)):
            try:
                Client("127.0.0.1", serve.port, source).close()
                assert good, f"{source} was let in"
            except OSError as why:
                assert not good, f"{source}: {why}"
        wait_for(lambda: len(lines(serve, "refused")) == 2)


def test_secrets():
    with Local() as lab:
        path = pathlib.Path(lab.path("secret"))
        path.write_bytes(b"correct horse\r\n")
        path.chmod(0o644)
        refused = subprocess.run([binary(), "serve", "--listen", "127.0.0.1:0", "--secret-file", path],
                                 capture_output=True, text=True, timeout=10)
        assert refused.returncode == 1 and "chmod" in refused.stderr, refused
        path.chmod(0o600)
        serve = lab.serve(0, "--secret-file", path)
        client = Client("127.0.0.1", serve.port, secret=b"correct horse")
        assert "identity" not in client.hello and "token" not in client.hello
        client.close()
        for wrong in (b"correct horse\r\n", b"", b"x" * 100):
            try:
                Client("127.0.0.1", serve.port, secret=wrong)
                raise AssertionError("a wrong secret was let in")
            except Refused as why:
                assert why.args == ("auth", "wrong secret"), why
        assert "horse" not in serve.text()


def test_udp_is_not_an_amplifier():
    with Local() as lab:
        serve = lab.serve(0)
        client = Client("127.0.0.1", serve.port)
        sent = got = 0
        wrong = bytes([client.token[0] ^ 1]) + client.token[1:]
        with client.udp() as sock:
            sock.settimeout(0.1)
            for _ in range(20):
                for kind in range(256):
                    sent += sock.send(knock(kind, client.token if kind % 2 else wrong, 1))
            for size in range(200):
                sent += sock.send(os.urandom(size))
            try:
                while True:
                    got += len(sock.recv(65536))
            except socket.timeout:
                pass
        assert 0 < got <= sent, (got, sent)
        assert got <= 20 * 48, "only a hello with the token has an answer"
        client.close()


def test_main_rests_while_sessions_hold_connections():
    """A descriptor that was passed on must be out of main's event loop: what comes on it is not main's."""
    with Local() as lab:
        serve = lab.serve(0)
        client = Client("127.0.0.1", serve.port)
        flows = [client.stream(flow) for flow in range(20)]
        with client.udp() as sock:
            sock.send(knock(HELLO, client.token, 30))
            challenge = sock.recv(1000)
            assert challenge[5] == CHALLENGE and len(challenge) == 48
            sock.send(knock(PROOF, client.token, 30, challenge[32:]))
            time.sleep(0.1)
            held = fds(serve.pid)
            for flow in flows:
                flow.sendall(b"x" * 1000)
            before = cpu_s(serve.pid)
            time.sleep(0.6)
            assert cpu_s(serve.pid) - before <= 0.05
            assert held < 20, f"main still holds {held} descriptors"
        client.close()
        wait_for(lambda: "datagrams=1" in "".join(lines(serve, "session_end")))
        assert "streams=20" in lines(serve, "session_end")[0]


def test_a_small_descriptor_limit_does_not_kill_it():
    with Local() as lab:
        process = lab.start(0, "prlimit", "--nofile=64:64", binary(), "serve", "--listen", "127.0.0.1:0")
        port = int(process.wait_line(r"listening on .*:(\d+)").group(1))
        held, refused = [], 0
        for _ in range(40):
            try:
                held.append(Client("127.0.0.1", port))
            except Refused as why:
                assert why.args[0] == "busy", why
                refused += 1
        assert held and refused
        flood = [connect("127.0.0.1", port) for _ in range(150)]
        held.pop().close()
        wait_for(lambda: len(lines(process, "session_end")) == 1)
        held.append(Client("127.0.0.1", port))
        for sock in flood:
            sock.close()
        for client in held:
            client.close()
        process.signal(signal.SIGTERM)
        assert process.wait(3) == 0, process.text()


def test_signals_end_it_and_its_sessions():
    for number in (signal.SIGINT, signal.SIGTERM):
        with Local() as lab:
            serve = lab.serve(0)
            client = Client("127.0.0.1", serve.port)
            began = time.monotonic()
            serve.signal(number)
            assert serve.wait(4) == 0
            assert time.monotonic() - began < 2
            got, _ = until_closed(client.sock, 2)
            assert got == b""
            assert "reason=server-stops" in serve.text()


def test_a_stopped_session_does_not_hold_up_the_end():
    with Local() as lab:
        serve = lab.serve(0)
        client = Client("127.0.0.1", serve.port)
        child = int(pathlib.Path(f"/proc/{serve.pid}/task/{serve.pid}/children").read_text().split()[0])
        os.kill(child, signal.SIGSTOP)
        serve.signal(signal.SIGTERM)
        assert serve.wait(4) == 0
        client.close()


def test_sessions_do_not_outlive_a_killed_server():
    with Local() as lab:
        serve = lab.serve(0)
        client = Client("127.0.0.1", serve.port)
        serve.signal(signal.SIGKILL)
        got, took = until_closed(client.sock, 3)
        assert got == b"" and took < 1
        assert serve.wait(3) == -signal.SIGKILL


def test_it_is_small_and_quick():
    with Local() as lab:
        began = time.monotonic()
        serve = lab.serve(0)
        took = time.monotonic() - began
        status = pathlib.Path(f"/proc/{serve.pid}/status").read_text()
        rss_kb = int(re.search(r"VmRSS:\s*(\d+)", status).group(1))
        sanitized = b"__asan_init" in pathlib.Path(binary()).read_bytes()
        assert sanitized or rss_kb < 4096, f"{rss_kb} kB resident"
        assert took < 1


def test_loopback_only_unless_asked():
    with Lab(nodes=1) as lab:
        serve = lab.start(0, binary(), "serve")
        assert serve.wait_line(r"listening on (.*)").group(1) == "127.0.0.1:7411, [::1]:7411"
        serve.wait_line("only this host can connect; --listen")


def test_across_namespaces_with_zones():
    with Lab() as lab:
        serve = lab.start(1, binary(), "serve", "--listen", ":7411")
        serve.wait_line("listening on 0.0.0.0:7411, ")
        for host in (lab.v4(1), lab.v6(1), lab.link_local(1)):
            client = subprocess.Popen(lab.argv(0, [sys.executable, "-B", SCRIPT, host, "7411"]), text=True,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            try:
                out = client.communicate("", timeout=10)[0]
            finally:
                client.kill()
                client.wait()
            assert client.returncode == 0, f"{host}: {out}"
            assert f'"kind": {CHALLENGE}, "bytes": 48' in out, out
        wait_for(lambda: len(lines(serve, "session_end")) == 3)
        for line in lines(serve, "session_end"):
            assert "datagrams=1 " in line, line


@limit(40)
def test_a_peer_that_was_cut_off_is_noticed():
    with Lab() as lab:
        serve = lab.start(1, binary(), "serve", "--listen", ":7411")
        serve.wait_line("listening on ")
        client = subprocess.Popen(lab.argv(0, [sys.executable, "-B", SCRIPT, lab.v4(1), "7411"]), text=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            assert "kind" in client.stdout.readline()
            lab.link(0, "down")
            wait_for(lambda: lines(serve, "session_end"), 15)
        finally:
            client.kill()
            client.communicate()
