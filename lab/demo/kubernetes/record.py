"""What the API server itself has said of each pod: one list, then a watch that goes on where it broke off, so that no
pod is missed that was there for a moment only.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from time import time
from typing import Any

import requests

from lab.demo.kubernetes.pods import NAME_LABEL, NAMESPACE
from lab.kubernetes.access import Api
from lab.system import LabError

INDEX = "batch.kubernetes.io/job-completion-index"
PATH = f"/api/v1/namespaces/{NAMESPACE}/pods"
QUIET_S = 10
Json = dict[str, Any]


@dataclass(frozen=True)
class PodSeen:
    """One pod, as it was last seen. Times are seconds since 1970; None: not yet."""

    job: str
    index: int
    node: str
    phase: str
    began: float | None = None
    ended: float | None = None

    @property
    def ran(self) -> bool:
        return self.began is not None


class Record:
    """Of all pods of users, from now on. `api` is its own."""

    def __init__(self, api: Api, now: Callable[[], float] = time):
        self._api, self._now, self._lock = api, now, threading.Lock()
        self._seen: dict[str, PodSeen] = {}
        self.gaps = 0  # how often what was between two lists may be unknown
        self._closed = threading.Event()
        threading.Thread(target=self._follow, args=(self._list(),), daemon=True).start()

    def close(self) -> None:
        """Follow no more. A watch that is quiet ends after its time."""
        self._closed.set()

    def pods(self) -> dict[str, PodSeen]:
        """By uid, also those that are gone."""
        with self._lock:
            return dict(self._seen)

    def of(self, job: str) -> list[PodSeen]:
        """Of one Job, in the order of their starts."""
        return sorted((pod for pod in self.pods().values() if pod.job == job), key=lambda pod: pod.began or 0.0)

    def _list(self) -> str:
        answer = self._api.call("GET", PATH)
        there = {raw["metadata"]["uid"] for raw in answer["items"]}
        for raw in answer["items"]:
            self._note(raw, gone=False)
        with self._lock:
            for uid, pod in self._seen.items():
                if uid not in there and pod.ran and pod.ended is None:
                    self._seen[uid] = replace(pod, ended=self._now())
        return str(answer["metadata"]["resourceVersion"])

    def _follow(self, version: str) -> None:
        gone = False
        while not self._closed.is_set():
            try:
                version, gone = (self._list() if gone else self._watch(version)), False
            except _Gone:
                self.gaps += 1
                gone = True
            except (OSError, ValueError, LabError):  # the API server is away: where we were is still known
                self._closed.wait(0.2)

    def _watch(self, version: str) -> str:
        query = {"watch": "true", "resourceVersion": version, "allowWatchBookmarks": "true"}
        url = self._api.server + PATH
        with self._api.session.get(url, params=query, stream=True, timeout=(5, QUIET_S)) as answer:
            if answer.status_code == 410:
                raise _Gone
            if not answer.ok:
                raise LabError(f"watch of pods: {answer.status_code}")
            try:
                for line in answer.iter_lines():
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        raise _Gone if event["object"].get("code") == 410 else LabError(str(event["object"]))
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        self._note(event["object"], gone=event["type"] == "DELETED")
            except requests.RequestException:
                return version
        return version

    def _note(self, raw: Json, gone: bool) -> None:
        uid = raw["metadata"]["uid"]
        with self._lock:
            self._seen[uid] = seen(raw, self._seen.get(uid), self._now() if gone else None)


class _Gone(Exception):
    """410: what was between is no longer known."""


def seen(raw: Json, before: PodSeen | None, gone_s: float | None) -> PodSeen:
    """What is known of a pod now. `gone_s`: when it was deleted."""
    meta, status = raw["metadata"], raw.get("status") or {}
    state = ((status.get("containerStatuses") or [{}])[0]).get("state") or {}
    ended, running = state.get("terminated") or {}, state.get("running") or {}
    began_s = _seconds(running.get("startedAt") or ended.get("startedAt")) or (before.began if before else None)
    ended_s = _seconds(ended.get("finishedAt")) or (before.ended if before else None)
    if gone_s is not None and began_s is not None and ended_s is None:
        ended_s = gone_s  # its node is gone, and nobody could say when it ended
    labels = meta.get("labels") or {}
    return PodSeen(
        job=labels.get(NAME_LABEL, ""),
        index=int((meta.get("annotations") or {}).get(INDEX) or 0),
        node=(raw.get("spec") or {}).get("nodeName") or "",
        phase=status.get("phase") or "Pending",
        began=began_s,
        ended=ended_s,
    )


def _seconds(text: str | None) -> float | None:
    return datetime.fromisoformat(text).timestamp() if text else None
