"""A copy of a cluster's objects, by one list and then a watch of each kind.

A copy that may be incomplete is never handed out: not before the first whole lists are there, and not when a watch has
been broken for longer than BROKEN_S.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ironburst.adapters.kubernetes.client import ApiError, Client, Stream
from ironburst.adapters.kubernetes.views import ObjectView
from ironburst.ports import SchedulerError, WrongShape

Json = dict[str, Any]
FIRST_S = 60.0  # the first lists may take so long
BROKEN_S = 30.0  # a watch that can't be opened again for so long: what it said last is too old
SILENT_S = 95.0  # the API server says something (a bookmark) once a minute: a stream without a word is opened again
ABSENT_S = 300.0  # an API that isn't there is looked for again after that
_PAGE = "500"
_SHORT_S = 1.0  # a stream that ends sooner isn't opened again at once
_RETRY_S = (0.2, 5.0)  # the first pause after a failure, and the longest


@dataclass(frozen=True)
class Kind:
    """A kind of objects to keep. `may_lack`: a cluster without this API has none of them."""

    name: str
    paths: tuple[str, ...]  # in the versions of the API that are read, the newest first
    read: Callable[[Json], ObjectView]
    fields: str = ""  # field selector: the others are none of ours
    may_lack: bool = False


class _Expired(Exception):
    """The server doesn't know our resourceVersion any more (410): everything is listed again."""


class Watched:
    """The objects of one kind, kept by a thread of its own."""

    def __init__(
        self, client: Client, kind: Kind, lock: threading.Lock, *, silent_s: float, clock: Callable[[], float]
    ):
        self.kind, self._client, self._lock, self._silent_s, self._clock = kind, client, lock, silent_s, clock
        self._views: dict[str, ObjectView] = {}
        self._path, self._others = kind.paths[0], list(kind.paths[1:])
        self._version = ""  # to watch from; empty: list first
        self._stream: Stream | None = None
        self._whole = threading.Event()  # a complete list has been there
        self._told = threading.Event()  # that, or that there is no such API
        self._ended = threading.Event()
        self._broken: tuple[float, str] | None = None  # since when, and why
        self._thread = threading.Thread(target=self._run, name=f"ironburst-watch-{kind.name}", daemon=True)

    def start(self) -> None:
        """Begin; returns at once."""
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._ended.set()
        if self._stream:
            self._stream.close()
        self._thread.join(timeout=5.0)

    def check(self, until_s: float, broken_s: float) -> None:
        """Wait for the first list. Raises SchedulerError where what is here isn't to be relied on."""
        self._told.wait(max(0.0, until_s - self._clock()))
        if not self._whole.is_set():
            why = self._broken[1] if self._broken else "no answer so far"
            raise SchedulerError(f"the {self.kind.name} of the cluster aren't known yet: {why}")
        if (broken := self._broken) and (silent_s := self._clock() - broken[0]) > broken_s:
            raise SchedulerError(f"the {self.kind.name} of the cluster are {silent_s:.0f} s old: {broken[1]}")

    def copy(self) -> dict[str, ObjectView]:
        """Under the cache's lock."""
        return dict(self._views)

    def note(self, raw: Json) -> None:
        """An object as our own write left it, before the watch says so."""
        view = self.kind.read(raw)
        with self._lock:
            self._newer(view)

    def forget(self, key: str) -> None:
        """An object that we deleted, before the watch says so."""
        with self._lock:
            self._views.pop(key, None)

    # ---- the thread
    def _run(self) -> None:
        pause_s = _RETRY_S[0]
        while not self._ended.is_set():
            try:
                if not self._version:
                    self._list()
                began_s = self._clock()
                self._follow()
                if self._clock() - began_s > _SHORT_S:
                    pause_s = _RETRY_S[0]
                    continue
            except _Expired:
                self._version = ""
                continue
            except ApiError as error:
                if error.status == 404 and self._lacks():
                    continue
                if error.status == 410:
                    self._version = ""
                self._failed(error)
                if error.status == 404:
                    self._told.set()
            except SchedulerError as error:
                self._failed(error)
            except Exception as error:  # a defect of ours: told where it is asked for, and tried again from the start
                self._version = ""
                self._failed(WrongShape(f"{self.kind.name}: {type(error).__name__}: {error}"))
            self._ended.wait(pause_s * random.uniform(0.5, 1.0))
            pause_s = min(2 * pause_s, _RETRY_S[1])

    def _failed(self, error: SchedulerError) -> None:
        if self._broken is None:
            self._broken = self._clock(), str(error)
        else:
            self._broken = self._broken[0], str(error)

    def _lacks(self) -> bool:
        """This version of the API isn't there: go on with the next one; without any there are no objects of the kind.
        False: it has to be there.
        """
        if self._others:
            self._path, self._version = self._others.pop(0), ""
            return True
        if not self.kind.may_lack:
            return False
        self._broken, self._version = None, ""
        self._path, self._others = self.kind.paths[0], list(self.kind.paths[1:])
        with self._lock:
            self._views = {}
        self._whole.set()
        self._told.set()
        self._ended.wait(ABSENT_S)
        return True

    def _list(self) -> None:
        views: dict[str, ObjectView] = {}
        query = {"limit": _PAGE, **self._selected()}
        while True:
            try:
                page = self._client.get(self._path, query).body
            except ApiError as error:
                raise _Expired if error.status == 410 and "continue" in query else error from None
            for raw in page["items"] or ():
                view = self.kind.read(raw)
                views[view.key] = view
            meta = page["metadata"]
            if not meta.get("continue"):
                break
            query["continue"] = meta["continue"]
        with self._lock:
            self._views = views
        self._version, self._broken = meta["resourceVersion"], None
        self._whole.set()
        self._told.set()

    def _follow(self) -> None:
        query = {
            "resourceVersion": self._version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(random.randint(240, 480)),  # not all clients of a server at the same moment
            **self._selected(),
        }
        stream = self._client.watch(self._path, query, self._silent_s)
        self._stream, self._broken = stream, None
        try:
            for event in stream:
                if self._ended.is_set():
                    return
                self._apply(event["type"], event["object"])
        finally:
            self._stream = None
            stream.close()

    def _apply(self, what: str, raw: Json) -> None:
        if what == "ERROR":
            if raw.get("code") == 410:
                raise _Expired
            raise ApiError(f"the watch of {self.kind.name} ended: {raw.get('message')}", int(raw.get("code") or 500))
        if what != "BOOKMARK":
            view = self.kind.read(raw)
            with self._lock:
                if what == "DELETED":
                    self._views.pop(view.key, None)
                else:
                    self._newer(view)
        self._version = raw["metadata"]["resourceVersion"]

    def _newer(self, view: ObjectView) -> None:
        known = self._views.get(view.key)
        if known is None or known.uid != view.uid or not known.version > view.version > 0:
            self._views[view.key] = view

    def _selected(self) -> dict[str, str]:
        return {"fieldSelector": self.kind.fields} if self.kind.fields else {}


class Cache:
    """All kinds together."""

    def __init__(
        self,
        client: Client,
        kinds: list[Kind],
        *,
        silent_s: float = SILENT_S,
        broken_s: float = BROKEN_S,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._lock, self._clock, self._broken_s = threading.Lock(), clock, broken_s
        self._of = {kind.name: Watched(client, kind, self._lock, silent_s=silent_s, clock=clock) for kind in kinds}
        self._started = False

    def copies(self, first_s: float = FIRST_S) -> Mapping[str, dict[str, ObjectView]]:
        """The objects at one moment, by kind and key. The first call starts the watches and waits for the lists. Raises
        SchedulerError.
        """
        if not self._started:
            self._started = True
            for watched in self._of.values():
                watched.start()
        until_s = self._clock() + first_s
        for watched in self._of.values():
            watched.check(until_s, self._broken_s)
        with self._lock:
            return {name: watched.copy() for name, watched in self._of.items()}

    def note(self, kind: str, raw: Json) -> None:
        """See Watched."""
        self._of[kind].note(raw)

    def forget(self, kind: str, key: str) -> None:
        """See Watched."""
        self._of[kind].forget(key)

    def close(self) -> None:
        """End all watches."""
        for watched in self._of.values() if self._started else ():
            watched.close()
