"""What `ironburst serve` shows, gathered from the controller's files: the ledger, the ticks, the document, and the last
look for drift. It reads; it asks no scheduler and no cloud, however many people look.
"""

from __future__ import annotations

import json
import math
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ironburst import catalog
from ironburst.burst import Job
from ironburst.controller import burn, job_story, karpenter_store, money, spending, status_report
from ironburst.controller.ledger import Ledger, LedgerError
from ironburst.controller.recorder import Newest, RecordError, TickObservation
from ironburst.controller.records import DecisionRow
from ironburst.document import ClusterDocument, DocumentError
from ironburst.page import broken, history, render, view
from ironburst.page.history import Picture
from ironburst.page.seen import Look, PageFiles, Usd
from ironburst.ports import Observation
from ironburst.system import collector, local_time
from ironburst.system.bad_input import BadInput

DAYS = 8  # whose cost is shown, today's too
PICTURES_S = 60.0  # between two of them: their finest part is a quarter of an hour


@dataclass(frozen=True)
class Files:
    """Where it reads. `check` None: the document is where no such file can be beside it."""

    document: Callable[[], ClusterDocument]
    ledger: Path
    ticks: Path
    check: Path | None


class Source:
    """The pages. People who ask within the same seconds see the same look."""

    def __init__(self, files: Files, document: ClusterDocument, clock: Callable[[], float] = time.time):
        self._files, self._document, self._clock = files, document, clock
        self._newest = Newest(files.ticks)
        self._tick: TickObservation | None = None
        self._lock = threading.Lock()
        self._seen: PageFiles | None = None
        self._pictures: tuple[float, list[Picture]] = (-math.inf, [])  # and when they were made

    @property
    def every_s(self) -> float:
        """Seconds between two looks: a tick, for nothing changes in between."""
        return max(2.0, float(self._document.burst.tick_s))

    @collector.paused()
    def file(self) -> str:
        """As one file, with every job."""
        return render.page(view.view(self.seen(), local_time.at, rows=None), None, _zone())

    def page(self, asked: str) -> str:
        """See ironburst.page.web."""
        return render.page(view.view(self.seen(), local_time.at, asked), self.every_s, _zone())

    def now(self, asked: str) -> str:
        """See ironburst.page.web."""
        return render.fragment(view.view(self.seen(), local_time.at, asked))

    def story(self, job: str) -> str | None:
        """See ironburst.page.web."""
        try:
            with closing(Ledger(self._files.ledger, read_only=True)) as ledger:
                told = [job_story.gather(ledger, id, self._clock()) for id in job_story.numbers(ledger, job)]
        except (BadInput, LedgerError):
            return None
        lines = [line for each in told for line in (*job_story.lines(each), "")]
        return render.story(f"Job {job}", lines)

    def seen(self) -> PageFiles:
        """A look that is no older than half a tick."""
        with self._lock:
            if self._seen is None or not 0 <= self._clock() - self._seen.said["at_s"] < self.every_s / 2:
                self._seen = self._look()
            return self._seen

    @collector.paused()
    def _look(self) -> PageFiles:
        wrong: list[str] = []
        try:
            self._document = self._files.document()
        except (DocumentError, BadInput) as error:
            wrong.append(f"{error}; the document of before is used")
        try:
            self._tick = self._newest.look()
        except RecordError as error:
            wrong.append(str(error))
        path = self._files.ledger
        try:
            if not path.exists():
                return self._of(None, wrong)
            with closing(Ledger(path, read_only=True)) as ledger:
                return self._of(ledger, wrong)
        except OSError as error:
            return self._of(None, [*wrong, f"{path}: {error.strerror}; the group ironburst may read it"])
        except (LedgerError, sqlite3.Error) as error:
            return self._of(None, [*wrong, f"the ledger {path} can't be read: {error}"])

    def _of(self, ledger: Ledger | None, wrong: list[str]) -> PageFiles:
        tick, now_s = self._tick, self._clock()
        decided = ledger.last_decisions() if ledger else {}
        said = status_report.gather(self._document, _observed(self._document, tick), ledger, now_s, decided)
        if tick is None and said["last_tick"]:
            wrong = [*wrong, f"no tick can be read in {self._files.ticks}: the queue isn't known"]
        jobs = {job.id: job for job in tick.jobs} if tick else {}
        events = ledger.events(now_s - broken.TOLD_S) if ledger else []
        decisions = ledger.newest_decisions(view.DECISIONS) if ledger else []
        if ledger and not 0 <= now_s - self._pictures[0] < PICTURES_S:
            self._pictures = (now_s, history.pictures(_recent(self._document, ledger, said, now_s)))
        return PageFiles(
            said=said,
            tick_s=tick.at_s if tick else None,
            wrong=wrong,
            events=events,
            decisions=decisions,
            names=_names(ledger, said, {*(row.job for row in events), *(row.job for row in decisions)}),
            why=lambda id: _sentences(jobs[id], decided.get(id)) if id in jobs else [],
            spent=_spent(ledger, now_s) if ledger else [],
            pictures=self._pictures[1],
            look=look(self._files.check),
            burn=burn.lines(said["money"]),
            links=_links(self._document),
            late=status_report.late(said) if said["late_s"] is not None else "",
        )


def _links(document: ClusterDocument) -> list[tuple[str, str]]:
    """Where figures over time are. Another scheme than http(s) would be somebody's script."""
    known = (("Grafana", document.monitoring.grafana), ("Prometheus", document.monitoring.url))
    return [(name, url) for name, url in known if url.startswith(("http://", "https://"))]


def _names(ledger: Ledger | None, said: dict[str, Any], others: Iterable[int | None]) -> dict[int, str]:
    """How people call the jobs of the queue, and these."""
    names = {job["job"]: view.called(job) for job in said["queue"]}
    for id in others:
        if ledger and id is not None and id not in names and (row := ledger.job(id)):
            names[id] = row.called or str(id)
    return names


def _observed(document: ClusterDocument, tick: TickObservation | None) -> Observation:
    """As the controller saw it at its last tick; a scheduler that it decided nothing for gave no answer."""
    if tick is None:
        return Observation((), ())
    silent = tuple(each.kind for each in document.schedulers if each.home_partition not in tick.homes)
    silent = silent if document.other_schedulers else ()
    return Observation(tick.jobs, tick.nodes, silent=silent)


def _sentences(job: Job, row: DecisionRow | None) -> list[str]:
    if row is None:
        return []
    size = {"nodes": job.nodes, "gpus": job.nodes * job.each.gpus, "time_limit_s": job.time_limit_s}
    return job_story.spoken({"job": job.id, "called": job.called or job.id, **size, "story": [job_story.decision(row)]})


def _recent(document: ClusterDocument, ledger: Ledger, said: dict[str, Any], now_s: float) -> history.Recent:
    since_s = now_s - history.MONTH_S
    leases = [*ledger.leases_paid_after(since_s), *karpenter_store.rows(ledger)[0]]
    gpus: dict[str, int] = {}
    for name in {lease.instance_type for lease in leases}:
        try:
            gpus[name] = catalog.instance_type(name).gpu_count
        except catalog.Unknown:
            gpus[name] = next((pool.gpu.count for pool in document.pools if pool.instance_type == name), 0)
    home_gpus = sum(node["gpus"] for node in said["home"])
    until_s = float(said["last_tick"]["at_s"]) if said["last_tick"] else now_s
    return history.Recent(until_s, ledger.gpu_use(since_s), leases, gpus, home_gpus)


def _spent(ledger: Ledger, now_s: float) -> list[tuple[str, Usd]]:
    """Today's, yesterday's, and the days before."""
    days = [money.day(now_s)]
    while len(days) < DAYS:
        days.append(money.day(days[-1][0] - 1.0))
    dates = [f"{datetime.fromtimestamp(from_s, UTC):%Y-%m-%d}" for from_s, _ in days]
    named = [f"today so far, {dates[0]}", f"yesterday, {dates[1]}", *dates[2:]]
    return list(zip(named, spending.by_pool(ledger, days, now_s), strict=True))


def look(check: Path | None) -> Look:
    """The last look for drift, from the file that `converge --check --receipt` wrote."""
    how = "ironburst converge --check --receipt FILE"
    if check is None:
        return Look(None, why=f"nobody has said where a look for drift is written: give --check FILE, of `{how}`")
    try:
        report = json.loads(check.read_text())
        hosts = {str(name): _host(host) for name, host in report["hosts"].items()}
        known = {"started": float(report["started"]), "serial": int(report["serial"]), "check": bool(report["check"])}
        return Look({**known, "error": report.get("error"), "hosts": hosts}, str(check))
    except FileNotFoundError:
        return Look(None, why=f"nobody has looked yet, or not said so in {check}: `{how.replace('FILE', str(check))}`")
    except OSError as error:
        return Look(None, why=f"{check} can't be read: {error.strerror}")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return Look(None, why=f"{check} is no report of `{how}` ({error or type(error).__name__})")


def _host(host: dict[str, Any]) -> dict[str, Any]:
    lists = {name: [str(word) for word in host.get(name) or []] for name in ("why", "remaining")}
    return {"state": str(host["state"]), "changed": int(host["changed"]), "error": host.get("error"), **lists}


def _zone() -> str:
    """Whose times the page has."""
    name = datetime.now().astimezone().tzname() or "local"
    return name if name == "UTC" else f"{name} ({datetime.now().astimezone():%z})"
