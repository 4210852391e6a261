"""Reads a BMC: one login, connections that are kept for as long as it takes, and a few requests at once.

Nothing is changed by this, so a GET may be repeated. What changes a machine goes by sushy, a connection for each
request (client._login): a POST into a connection that the BMC has just closed would be sent twice. docs/adr/0119.
By http.client, for requests and urllib3 take three quarters of the processor time of 600 nodes.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import queue
import ssl
import time
import zlib
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple
from urllib.parse import quote, urljoin, urlsplit

from urllib3.util.ssl_ import assert_fingerprint

from ironburst.adapters.redfish.link import MOST_BYTES, TooMuch, origin
from ironburst.baremetal.documents import NO_ROOT, ROOT, Incomplete, RequestRefused
from ironburst.baremetal.said import text

AT_ONCE = 4
"""requests in one BMC. NVIDIA's own controller asks its DGX and HGX machines so many (infra-controller,
bmc_request_concurrency); ten were too many for some (idrac_exporter 189: HTTP 504)
"""
BUSY = frozenset({429, 502, 503, 504})
"""HTTP statuses of a BMC that may have been asked too much"""
TRIES, REFUSALS, HOPS = 2, 3, 5
"""of a request that gets no answer, of one that gets a server error, and redirections that are followed"""
DROPPED = (ConnectionError, ssl.SSLEOFError, ssl.SSLZeroReturnError)
"""a connection that is gone; http.client.RemoteDisconnected is one"""
_SAFE = "/?&=$().,;:@!*'+%~#-_[]"
_HEADERS = {"Accept": "application/json", "OData-Version": "4.0", "Accept-Encoding": "identity"}


class HttpRefused(Exception):
    """An answer with an HTTP status that is an error."""

    def __init__(self, status: int) -> None:
        super().__init__(f"HTTP {status}")
        self.status_code = status


class LoginRefused(HttpRefused):
    """HTTP 401 or 403."""


class NotReached(Exception):
    """Nobody listens there, or there is no way."""


_PASSING = (*DROPPED, NotReached, TimeoutError, http.client.IncompleteRead)
"""what may go well the next time"""


class HttpAnswer(NamedTuple):
    """What came back."""

    status: int
    headers: Any
    body: bytes


class Reading:
    """`check` is called with every part of an answer, and may end it all. Methods raise HttpRefused, NotReached,
    TooMuch, ValueError for what is no JSON, errors of ssl and http.client, TimeoutError, and what `check` raises;
    client._translated knows them.
    """

    def __init__(
        self,
        address: str,
        login: tuple[str, str],
        context: ssl.SSLContext | None,
        sha256: str | None,
        answer_s: float,
        check: Callable[[], None],
    ) -> None:
        """`answer_s`: seconds that a BMC is waited for that doesn't answer at all, with all tries."""
        self._address, self._login, self._check = address, login, check
        self._pause_s = min(1.0, answer_s / 10)
        self._context, self._sha256, self._answer_s = context, sha256, answer_s / 2
        self._idle: queue.LifoQueue[http.client.HTTPConnection] = queue.LifoQueue()
        self._headers = dict(_HEADERS)
        self._session: str | None = None
        self._root: Any = None
        self._threads: ThreadPoolExecutor | None = None
        self._known = self._alone = False
        self._kept = True

    # ---- the login

    def log_in(self) -> None:
        """A session; basic authentication only where the BMC has no sessions, not where it refuses the password, which
        is tried once: some lock the user after three.
        """
        try:
            self._root = self._document(ROOT)
        except RequestRefused as refused:
            raise refused.error from None
        if not isinstance(self._root, dict):
            raise Incomplete(NO_ROOT)
        name, password = self._login
        place = text(self._root, "Links/Sessions/@odata.id") or f"{ROOT}/SessionService/Sessions"
        sent = json.dumps({"UserName": name, "Password": password}).encode()
        answer = self._asked("POST", place, sent)
        if answer.status in (401, 403):
            raise LoginRefused(answer.status)
        token = answer.headers.get("X-Auth-Token")
        if answer.status < 300 and token:
            self._headers["X-Auth-Token"] = token
            self._session = answer.headers.get("Location") or text(_json(answer), "@odata.id")
            self._known = True
        else:
            basic = base64.b64encode(f"{name}:{password}".encode()).decode()
            self._headers["Authorization"] = f"Basic {basic}"

    def close(self) -> None:
        """Log out, for BMCs have few sessions. Raises nothing."""
        if self._threads:
            self._threads.shutdown(wait=False, cancel_futures=True)
        with contextlib.suppress(Exception):  # the result is decided already, and a session ends by itself some time
            if self._session:
                self._once("DELETE", self._session)
        while not self._idle.empty():
            self._idle.get().close()

    # ---- documents

    def get(self, path: str) -> Any:
        """documents.Get."""
        return self._root if path == ROOT else self._document(path)

    def several(self, paths: Sequence[str]) -> list[Any]:
        """documents.Several. A BMC that can't take so many at once is asked one by one from then on."""
        if not self._known and paths:  # four at once would be four tries of the password
            self._known = bool(first := [self._tried(paths[0], 0)])
            return first + self.several(paths[1:])
        if len(paths) < 2 or self._alone:
            return [self._tried(path, 0) for path in paths]
        answers = self._beside(paths)
        again = [n for n, its in enumerate(answers) if isinstance(its, _Passing)]
        too_many = False
        for n in again:
            tries = answers[n].tries
            if tries:
                time.sleep(self._pause_s)
            answers[n] = self._tried(paths[n], tries)
            too_many |= bool(tries) and not isinstance(answers[n], RequestRefused)
        self._alone = too_many  # else it is that document: it isn't answered alone either
        return answers

    def _beside(self, paths: Sequence[str]) -> list[Any]:
        """One try of each, AT_ONCE at the same time: this thread's, and others'."""
        answers: list[Any] = [None] * len(paths)
        waiting = deque(enumerate(paths))

        def work() -> None:
            while waiting:
                try:
                    n, path = waiting.popleft()
                except IndexError:  # another took the last one
                    return
                try:
                    answers[n] = self._first(path)
                except BaseException:
                    waiting.clear()  # it ends it all
                    raise

        self._threads = self._threads or ThreadPoolExecutor(AT_ONCE - 1)
        others = [self._threads.submit(work) for _ in paths[: AT_ONCE - 1]]
        work()
        for each in others:
            each.result()
        return answers

    def _first(self, path: str) -> Any:
        """One try beside others."""
        if self._alone:  # it has turned out to be too much meanwhile
            return _Passing(0)
        try:
            answer = self._once("GET", path)
        except _PASSING:
            self._alone = True
            return _Passing(1)
        if answer.status in BUSY:
            self._alone = True
            return _Passing(1)
        return self._taken(self._followed(answer, path))

    def _tried(self, path: str, tries: int) -> Any:
        try:
            return self._document(path, tries)
        except RequestRefused as refused:
            return refused

    def _document(self, path: str, tries: int = 0) -> Any:
        answer = self._taken(self._asked("GET", path, tries=tries))
        if isinstance(answer, RequestRefused):
            raise answer
        return answer

    def _taken(self, answer: HttpAnswer) -> Any:
        """The parsed document, None for one that isn't there, or RequestRefused where others may be answered."""
        status = answer.status
        if status == 404:
            return None
        if status == 401:
            raise LoginRefused(status)
        if status == 403:
            return RequestRefused(LoginRefused(status), "this user may not read it (HTTP 403)")
        if status >= 300:
            return RequestRefused(HttpRefused(status), f"the BMC answers with HTTP {status}")
        return _json(answer)

    # ---- requests

    def _asked(self, method: str, path: str, sent: bytes | None = None, *, tries: int = 0) -> HttpAnswer:
        """`tries`: how many there were already."""
        refusals = tries
        while True:
            try:
                answer = self._once(method, path, sent)
            except _PASSING:
                tries += 1
                if tries >= TRIES:
                    raise
            else:
                refusals += 1
                if method != "GET" or (answer.status < 500 and answer.status != 429) or refusals >= REFUSALS:
                    return self._followed(answer, path)
            time.sleep(self._pause_s)

    def _followed(self, answer: HttpAnswer, path: str) -> HttpAnswer:
        """Where a redirection leads, on this BMC."""
        for _ in range(HOPS):
            place = answer.headers.get("Location") if answer.status in (301, 302, 303, 307, 308) else None
            if not place:
                return answer
            path = urljoin(path, place)
            answer = self._once("GET", path)
        raise TooMuch("sends a request in circles: is this address a BMC with Redfish?")

    def _once(self, method: str, path: str, sent: bytes | None = None) -> HttpAnswer:
        at = urlsplit(path)
        if (at.scheme or at.netloc) and origin(path) != origin(self._address):
            raise TooMuch("sends us to another host, where we don't go: its answers are not to be trusted")
        target = quote(f"{at.path}?{at.query}" if at.query else at.path, safe=_SAFE)
        kept = self._kept
        try:
            return self._sent(method, target, sent, kept)
        except DROPPED:
            if not kept:
                raise
            self._kept = False  # it may be one that closes each connection and doesn't say so
            if method != "GET":
                raise
            return self._sent(method, target, sent, False)

    def _sent(self, method: str, target: str, sent: bytes | None, kept: bool) -> HttpAnswer:
        """`kept`: by a connection that was used before and may be again."""
        headers = self._headers | ({"Content-Type": "application/json"} if sent else {})
        try:
            link = self._idle.get_nowait() if kept else self._connected()
        except queue.Empty:
            link = self._connected()
        done = False
        try:
            link.request(method, target, sent, headers | ({} if kept else {"Connection": "close"}))
            with link.getresponse() as response:
                answer = self._received(response)
            done = True
            return answer
        finally:
            if done and kept and not response.will_close:
                self._idle.put(link)
            else:
                link.close()

    def _received(self, response: http.client.HTTPResponse) -> HttpAnswer:
        body = bytearray()
        # as it comes: a read waits for a full part, and a BMC that drips is never done with one
        while part := response.read1(64 * 1024):
            body += part
            if len(body) > MOST_BYTES:
                raise _too_much()
            self._check()
        if response.length:
            raise http.client.IncompleteRead(bytes(body), response.length)
        self._check()
        return HttpAnswer(response.status, response.headers, _plain(bytes(body), response.headers))

    def _connected(self) -> http.client.HTTPConnection:
        """A new connection, to the server whose certificate is declared."""
        at = urlsplit(self._address)
        host, limit_s = at.hostname or "", min(5.0, self._answer_s)
        if self._context is None:
            link = http.client.HTTPConnection(host, at.port, timeout=limit_s)
        else:
            link = http.client.HTTPSConnection(host, at.port, timeout=limit_s, context=self._context)
        try:
            link.connect()
        except (TimeoutError, ssl.SSLError):
            raise
        except OSError as error:
            raise NotReached(error.strerror or str(error)) from error
        if self._sha256 and isinstance(link.sock, ssl.SSLSocket):
            try:
                assert_fingerprint(link.sock.getpeercert(binary_form=True), self._sha256)
            except BaseException:
                link.close()
                raise
        link.sock.settimeout(self._answer_s)
        return link


class _Passing(NamedTuple):
    """A request that is to be made again, alone; `tries`: how many there were."""

    tries: int


def _json(answer: HttpAnswer) -> Any:
    return json.loads(answer.body)


def _plain(body: bytes, headers: Any) -> bytes:
    """Some compress what they were asked not to."""
    if not body or "gzip" not in (headers.get("Content-Encoding") or ""):
        return body
    packed = zlib.decompressobj(wbits=31)
    whole = packed.decompress(body, MOST_BYTES)
    if packed.unconsumed_tail:
        raise _too_much()
    return whole


def _too_much() -> TooMuch:
    return TooMuch(f"gave an answer of more than {MOST_BYTES // 2**20} MiB, which no inventory needs")
