"""The gate before the site's Prometheus: what rented nodes push (remote write) counts only from the address of an open
lease, and as that lease's. Nothing else of what a node says of itself is believed: which node it is, which hall it
stands in, that it is the head. docs/adr/0110.
"""

from __future__ import annotations

import threading
import time
import urllib.error
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeAlias

from ironburst.monitoring import log_relay, remote_write
from ironburst.monitoring.remote_write import Malformed

PATH = "/api/v1/write"
NAMES = (b"node_", b"DCGM_")
"""what the two exporters of a node have; `up` isn't theirs: whether a node lives is the controller's knowledge"""
NOT_ITS_OWN = (b"hall", b"rack", b"role", b"cluster")
"""labels of owned nodes, by which rules count"""
LATE_S, EARLY_S = 7200.0, 60.0
"""how old a sample may be, and how far ahead: one from next year would make all of home's too old for Prometheus"""
BODY, DATA = 1_000_000, 8_000_000
"""bytes of a request, and of what it unfolds to. Prometheus sends 500 samples, or 2,000 (from 3.0 on): below a tenth"""
SERIES, LABELS = 10_000, 2048
"""of a lease within an hour, and bytes of one's labels. DCGM's 29 fields of 8 GPUs are 232 series, and as many for each
job; the node's own are 1,000 to 3,000
"""
SAMPLES_S, DATA_S = 500.0, 150_000.0
"""a second, and the bytes they unfold to: three times what a large node sends. Ten minutes' worth may come at once"""
LOGS_S = 20_000.0
"""bytes of logs a second: some 60 lines"""
AT_ONCE_S = 600.0
CONNECTIONS = 16  # of one address
UNREAD_S = 60.0  # a ledger that can't be read is believed for so long
Answer: TypeAlias = tuple[int, str]
"""HTTP status, and why. 4xx: what was sent is dropped, by who sent it; 429 and 5xx: it is sent again"""


class Pusher(NamedTuple):
    """Whose an address is."""

    node: str
    lease: str


class Gate:
    """`leases`: {address: whose it is, or None where two leases have it}, of the open ones; it raises OSError or
    ValueError where that can't be read. `forward` writes a request to Prometheus; it doesn't raise. `clock`: seconds
    since 1970.
    """

    def __init__(
        self,
        leases: Callable[[], Mapping[str, Pusher | None]],
        forward: Callable[[bytes], Answer],
        clock: Callable[[], float] = time.time,
        journal: Path = log_relay.JOURNAL,
    ):
        self._read, self._forward, self._clock, self._journal = leases, forward, clock, journal
        self._leases: Mapping[str, Pusher | None] | None = None
        self._read_s = -UNREAD_S
        self._of: dict[Pusher, _Pushed] = {}
        self._lock = threading.Lock()  # the work on bytes; not while Prometheus is waited for

    def look(self) -> str:
        """At the leases, every few seconds. The series of those that have ended end, too. What is wrong, or empty."""
        try:
            leases = self._read()
        except (OSError, ValueError) as error:
            if time.monotonic() - self._read_s > UNREAD_S:
                self._leases = None
            return str(error)
        self._leases, self._read_s = leases, time.monotonic()
        there = set(leases.values())
        with self._lock:
            over = [self._of.pop(pusher) for pusher in list(self._of) if pusher not in there]
        at_ms = int(self._clock() * 1000)
        for pushed in over:
            if ends := pushed.ends(at_ms):
                self._forward(remote_write.compressed(ends))
        return ""

    def _whose(self, address: str) -> Pusher | Answer:
        if self._leases is None:
            return 503, "the leases can't be read now"
        pusher = self._leases.get(address)
        if pusher is None:
            why = "two open leases have" if address in self._leases else "no open lease has"
            return 403, f"{why} the address {address}: only rented nodes push here, as long as they are rented"
        return pusher

    def take_logs(self, address: str, body: bytes) -> Answer:
        """Lines of this address: they are in this host's journal when the answer is 200."""
        pusher = self._whose(address)
        if not isinstance(pusher, Pusher):
            return pusher
        with self._lock:
            pushed = self._of.setdefault(pusher, _Pushed(pusher))
            if not pushed.logs.take(len(body)):
                return 429, f"more than {LOGS_S:.0f} bytes of logs a second"
        try:
            log_relay.write(log_relay.lines(body, *pusher, self._clock()), self._journal)
        except log_relay.MalformedLines as error:
            return 400, str(error)
        except OSError as error:
            return 503, f"the journal takes nothing: {error.strerror or error}"
        return 200, ""

    def take(self, address: str, body: bytes) -> Answer:
        """A request of this address."""
        pusher = self._whose(address)
        if not isinstance(pusher, Pusher):
            return pusher
        try:
            with self._lock:
                pushed = self._of.setdefault(pusher, _Pushed(pusher))
                data, dropped = pushed.taken(body, self._clock())
        except Malformed as error:
            return 400, str(error)
        except _TooMuch as error:
            return error.status, str(error)
        answer = self._forward(remote_write.compressed(data)) if data else (204, "")
        return (400, dropped) if dropped and answer[0] < 300 else answer


class _TooMuch(Exception):
    def __init__(self, status: int, text: str):
        super().__init__(text)
        self.status = status


class _Allowance:
    """So much a second, and some of it saved up."""

    def __init__(self, a_second: float):
        self._a_second = a_second
        self._left, self._at_s = a_second * AT_ONCE_S, time.monotonic()

    def take(self, amount: float) -> bool:
        """What is taken once there was something left may be more than that: the next one waits for it."""
        now_s = time.monotonic()
        self._left = min(self._left + (now_s - self._at_s) * self._a_second, self._a_second * AT_ONCE_S)
        self._at_s = now_s
        if self._left <= 0:
            return False
        self._left -= amount
        return True


class _Pushed:
    """What a lease has sent, and may."""

    def __init__(self, pusher: Pusher):
        self._pusher = pusher
        self._samples, self._data, self.logs = _Allowance(SAMPLES_S), _Allowance(DATA_S), _Allowance(LOGS_S)
        # labels as sent: as they go on; None: they don't. Of this hour and of the one before
        self._series: dict[bytes, bytes | None] = {}
        self._before: dict[bytes, bytes | None] = {}
        self._hour_s = time.monotonic()

    def taken(self, body: bytes, now_s: float) -> tuple[bytes, str]:
        """What goes on of a body, and why the rest of it doesn't. Raises Malformed or _TooMuch."""
        size = remote_write.length(body)
        if size > DATA:
            raise _TooMuch(413, f"the body unfolds to {size} bytes, more than {DATA}")
        if not self._data.take(size):
            raise _TooMuch(429, f"more than {DATA_S:.0f} bytes a second")
        kept, samples, dropped = list[bytes](), 0, Counter[str]()
        for labels, its in remote_write.series(remote_write.decompressed(body)):
            named, why = self._named(labels)
            if why:
                dropped[why] += len(its)
            if not named:
                continue
            timely = [sample for at_ms, sample in its if -LATE_S <= at_ms / 1000 - now_s <= EARLY_S]
            if late := len(its) - len(timely):
                dropped["more than 2 h old, or ahead of the clock here"] += late
            if timely:
                kept.append(remote_write.series_as_sent(named, timely))
                samples += len(timely)
        if samples and not self._samples.take(samples):
            raise _TooMuch(429, f"more than {SAMPLES_S:.0f} samples a second")
        return b"".join(kept), ", ".join(f"{n} samples dropped: {why}" for why, n in sorted(dropped.items()))

    def ends(self, at_ms: int) -> bytes:
        """The request by which all of its series end."""
        last = [remote_write.stale(at_ms)]
        every = self._before | self._series
        return b"".join(remote_write.series_as_sent(named, last) for named in every.values() if named)

    def _named(self, labels: bytes) -> tuple[bytes | None, str]:
        """A series' labels as they go on, None: it doesn't; why, unless that is as it should be."""
        if labels in self._series:
            return self._series[labels], ""
        if time.monotonic() - self._hour_s > 3600:
            self._before, self._series, self._hour_s = self._series, {}, time.monotonic()
        if len(self._series) >= SERIES:
            return None, f"more than {SERIES} series within an hour"
        if len(labels) > LABELS:
            return None, f"labels of more than {LABELS} bytes"
        named = self._before.pop(labels) if labels in self._before else self._renamed(labels)
        self._series[labels] = named
        return named, ""

    def _renamed(self, sent: bytes) -> bytes | None:
        its = remote_write.labels(sent)
        if not its.get(b"__name__", b"").startswith(NAMES):
            return None
        node = self._pusher.node.encode()
        its = {name: value for name, value in its.items() if name not in NOT_ITS_OWN}
        its |= {b"node": node, b"lease": self._pusher.lease.encode(), b"rented": b"true"}
        if b"Hostname" in its:  # DCGM's, by which a job's figures are found
            its[b"Hostname"] = node
        return remote_write.labels_as_sent(its)


def forward_to(url: str, timeout_s: float = 10.0) -> Callable[[bytes], Answer]:
    """The way to a Prometheus, by the URL that it takes remote write at."""
    headers = {"Content-Type": "application/x-protobuf", "Content-Encoding": "snappy"}
    headers |= {"X-Prometheus-Remote-Write-Version": "0.1.0", "User-Agent": "ironburst"}

    def forward(body: bytes) -> Answer:
        try:
            with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=timeout_s) as answer:
                return answer.status, ""
        except urllib.error.HTTPError as error:
            with error:
                why = error.read(300).decode(errors="replace").strip()
            # 400: these samples. Others are about the way here (404: --web.enable-remote-write-receiver is missing)
            return (400 if error.code == 400 else 503), f"{url}: HTTP {error.code}: {why or error.reason}"
        except (OSError, ValueError) as error:
            return 503, f"{url} gives no answer: {getattr(error, 'reason', None) or error}"

    return forward


TAKEN = {PATH: (BODY, Gate.take), log_relay.PATH: (log_relay.BODY, Gate.take_logs)}


class Server(ThreadingHTTPServer):
    """POST /api/v1/write at an address, from threads of its own. `said` hears why an address was refused."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, host: str, port: int, gate: Gate, said: Callable[[str, Answer], None]):
        """Raises OSError where the address can't be had."""
        self._open, self._counting = defaultdict[str, int](int), threading.Lock()
        handler = type("Handler", (_Handler,), {"gate": gate, "said": staticmethod(said)})
        super().__init__((host, port), handler)

    def verify_request(self, _: Any, client_address: Any) -> bool:
        """No node takes all threads."""
        return self._open[client_address[0]] < CONNECTIONS

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """One connection."""
        with self._counted(client_address[0]):
            super().process_request_thread(request, client_address)

    @contextmanager
    def _counted(self, address: str) -> Any:
        with self._counting:
            self._open[address] += 1
        try:
            yield
        finally:
            with self._counting:
                self._open[address] -= 1
                if not self._open[address]:
                    del self._open[address]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no news."""


class _Handler(BaseHTTPRequestHandler):
    gate: ClassVar[Gate]
    said: ClassVar[Callable[[str, Answer], None]]
    protocol_version = "HTTP/1.1"
    timeout = 30
    server_version, sys_version = "ironburst", ""

    def do_POST(self) -> None:
        """Remote write, or lines of logs."""
        address, given = self.client_address[0], self.headers.get("Content-Length", "")
        if self.path not in TAKEN:
            return self._answer(404, f"see {' and '.join(TAKEN)}")
        most, take = TAKEN[self.path]
        if not given.isdecimal() or int(given) > most:
            return self._answer(413 if given.isdecimal() else 411, f"a body of up to {most} bytes")
        body = self.rfile.read(int(given))
        if len(body) < int(given):
            return None
        answer = take(type(self).gate, address, body)
        if answer[0] >= 300:
            type(self).said(address, answer)
        return self._answer(*answer, close=answer[0] == 403)

    def _answer(self, status: int, text: str, close: bool = False) -> None:
        self.close_connection |= close or status in (404, 411, 413)
        body = f"{text}\n".encode() if text else b""
        self.send_response(status)
        if status == 429:
            self.send_header("Retry-After", "5")
        if self.close_connection:
            self.send_header("Connection", "close")
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if status != 204:
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """What is refused is said by who started the server."""
