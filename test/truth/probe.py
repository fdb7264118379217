"""probe.py: an independent prober, so that `pitot truth` is not judged by pitot alone.

Nothing clever: one thread sends numbered datagrams at their instants, another notes what comes back and
when. Good to about 0.2 ms on a busy machine, which is what the tolerances of test_echo.py allow for.
"""
import socket
import struct
import threading
import time

_HEAD = struct.Struct("!Q")


class Probes:
    """What became of `sent` probes: sent_ns by number, arrivals as (number, instant) in order."""

    def __init__(self, sent_ns, arrivals):
        self.sent_ns, self.arrivals = sent_ns, arrivals
        self.copies, self.first = {}, {}
        self.reordered, high = 0, -1
        for number, at in arrivals:
            self.copies[number] = self.copies.get(number, 0) + 1
            if number in self.first:
                continue
            self.first[number] = at
            self.reordered += number < high          # RFC 4737 3.4
            high = max(high, number)

    @property
    def sent(self):
        return len(self.sent_ns)

    @property
    def lost(self):
        return [n for n in range(self.sent) if n not in self.copies]

    @property
    def duplicates(self):
        return sum(n - 1 for n in self.copies.values())

    def rtts_ms(self):
        """Round trips by number, from the instant of the send."""
        return {n: (at - self.sent_ns[n]) / 1e6 for n, at in self.first.items()}

    def quantile(self, q):
        values = sorted(self.rtts_ms().values())
        return values[min(len(values) - 1, int(q * len(values)))]


def udp(address, rate, count, drain_s=0.5, size=64):
    """Sends `count` datagrams at `rate`/s, whatever comes back, then waits `drain_s` for the rest."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    sock.connect(address)
    sock.settimeout(0.05)
    arrivals, done = [], threading.Event()

    def receive():
        while not done.is_set():
            try:
                packet = sock.recv(2048)
            except (TimeoutError, ConnectionRefusedError):
                continue
            arrivals.append((_HEAD.unpack_from(packet)[0], time.monotonic_ns()))

    receiver = threading.Thread(target=receive)
    receiver.start()
    sent_ns, pad = [], bytes(size - _HEAD.size)
    start = time.monotonic_ns()
    try:
        for number in range(count):
            wait = start + number * 10**9 // rate - time.monotonic_ns()
            if wait > 0:
                time.sleep(wait / 1e9)
            sent_ns.append(time.monotonic_ns())
            sock.send(_HEAD.pack(number) + pad)
        time.sleep(drain_s)
    finally:
        done.set()
        receiver.join()
        sock.close()
    return Probes(sent_ns, arrivals)
