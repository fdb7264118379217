"""control_client.py: the client's half of docs/formats/control.md, written from that page alone.

As a program, `control_client.py HOST PORT`: opens a session and one UDP flow up to the proof, and prints
what it found as JSON; for use inside a network namespace.
"""
import hashlib
import hmac
import json
import os
import socket
import struct
import sys
import time

CONTROL, STREAM, HELLO, PROOF, READY, CHALLENGE = 1, 2, 3, 4, 5, 6
ACCEPTED = b"\x06"


class Refused(Exception):
    """The server sent an error message; args are code and reason."""


def preamble(kind, token=bytes(16), flow=0, version=1):
    return b"PTOT" + bytes([version, kind, 0, 0]) + token + struct.pack(">II", flow, 0)


def knock(kind, token, flow, nonce=bytes(16)):
    return preamble(kind, token, flow) + nonce


def connect(host, port, source=None, timeout=5):
    """A TCP connection; host may have a zone."""
    family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    sock = socket.socket(family, kind, proto)
    sock.settimeout(timeout)
    if source:
        sock.bind((source, 0))
    sock.connect(address)
    return sock


class Client:
    """A session, open when the constructor returns."""

    def __init__(self, host, port, source=None, secret=None):
        self.sock = connect(host, port, source)
        self.address = self.sock.getpeername()
        self.sock.sendall(preamble(CONTROL))
        nonce = os.urandom(32)
        self.send({"type": "hello", "versions": [1], "nonce": nonce.hex(), "identity": {"host": "a-test"}})
        self.hello = self.receive("hello")
        if self.hello["auth"] == "hmac-sha256":
            both = bytes.fromhex(self.hello["nonce"]) + nonce
            prove = lambda role: hmac.new(secret, both + role, hashlib.sha256).hexdigest()
            self.send({"type": "auth", "proof": prove(b"client")})
        self.welcome = self.receive("welcome")
        if self.hello["auth"] == "hmac-sha256":
            assert self.welcome["proof"] == prove(b"server"), "the server did not prove the secret"
        self.token = bytes.fromhex(self.welcome["token"])

    def send(self, message):
        text = json.dumps(message).encode()
        self.sock.sendall(struct.pack(">I", len(text)) + text)

    def _exactly(self, n):
        out = b""
        while len(out) < n:
            part = self.sock.recv(n - len(out))
            if not part:
                raise ConnectionResetError("the server closed the connection")
            out += part
        return out

    def receive(self, kind):
        message = json.loads(self._exactly(struct.unpack(">I", self._exactly(4))[0]))
        if message["type"] == "error":
            raise Refused(message["code"], message["reason"])
        assert message["type"] == kind, message
        return message

    def stream(self, flow):
        sock = socket.create_connection(self.address[:2], timeout=5)
        sock.sendall(preamble(STREAM, self.token, flow))
        return sock

    def udp(self):
        sock = socket.socket(self.sock.family, socket.SOCK_DGRAM)
        sock.settimeout(2)
        sock.connect(self.address)
        return sock

    def close(self):
        self.sock.close()


def main(host, port):
    client = Client(host, int(port))
    with client.udp() as sock:
        sock.send(knock(HELLO, client.token, 7))
        answer = sock.recv(4096)
        sock.send(knock(PROOF, client.token, 7, answer[32:]))
        print(json.dumps({"identity": client.welcome["identity"], "kind": answer[5], "bytes": len(answer)}))
        sys.stdout.flush()
        time.sleep(0.2)  # the session outlives the proof
        sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
