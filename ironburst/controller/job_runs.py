"""Runs of jobs on GPUs: noted when they start and end, and some time later Prometheus is asked what they made of them.

It is asked by a thread of its own, a few runs at a time, and what it answered is written down by a later tick: no tick
waits for it. One that is away is asked again for as long as it keeps what it has; a run whose last samples are missing
(a node that was cut off sends them late) is asked for again, too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeAlias

from ironburst.burst import Job
from ironburst.controller import job_figures
from ironburst.controller.energy import Places
from ironburst.controller.job_figures import Figures
from ironburst.controller.records import RunRow
from ironburst.controller.site import Site
from ironburst.controller.teams import Teams
from ironburst.nodes import gpus, naming
from ironburst.ports import Observation
from ironburst.ports.measured import Measured, MeasuredError, QueryRefused

Key: TypeAlias = tuple[int, float]
"""(job, start)"""
SETTLE_S = 60.0
"""behind an end: scrapes and what is pushed have arrived by then"""
SHORT_S = 30.0
"""a run that is over before the next scrape has no samples: tasks of arrays by the thousand aren't asked for"""
KEPT_S = 15 * 86400.0
"""Prometheus' own retention where nothing is said: later there is nothing to ask for"""
AGAIN_S = (600.0, 3600.0, 6 * 3600.0, 86400.0)
"""after an answer without samples, or without the last ones"""
LATE_S = 90.0
"""a last sample that is so much older than the end is not the last that there was"""
_AWAY_S = (60.0, 900.0)  # until a Prometheus that gave no answer is asked again, at first and at most
_AT_ONCE = 16  # runs


def measured(run: RunRow) -> Figures | None:
    """None: nothing was, or not yet; also where it can't be read."""
    return job_figures.kept(run.figures)


class JobRuns:
    """One for a ticking controller. `connect`: the way to a Prometheus, by its URL; None: nobody is asked."""

    def __init__(self, connect: Callable[[str], Measured] | None = None):
        self._connect = connect
        self._open: dict[Key, RunRow] | None = None  # runs that go on; None: not looked into the ledger yet
        self._ends: dict[Key, float] = {}  # of those that complete: when they ended, according to Slurm
        self._looked_s = 0.0
        self._asker: _Asker | None = None
        self._away_until_s, self._away_s = 0.0, 0.0
        self._told = ""
        self.teams = Teams()

    def look(self, site: Site, observation: Observation) -> None:
        """Once a tick; without a URL in the document nothing is noted."""
        url, now_s = site.document.monitoring.url, site.clock.now()
        if not url or self._connect is None:
            return
        places = Places.of(site.document)
        for run in self._note(site, observation, now_s):
            self.teams.ended(run, places)
        self.teams.running((self._open or {}).values(), places)
        for run in self._collect(site, now_s):
            self.teams.measured(run, places)
        if self._asker is None and now_s >= self._away_until_s and (due := site.ledger.runs_to_ask(now_s, _AT_ONCE)):
            self._asker = _Asker(self._connect(url), due)

    # ---- starts and ends
    def _note(self, site: Site, observation: Observation, now_s: float) -> list[RunRow]:
        """Those that have ended."""
        if self._open is None:
            self._open = {(run.job, run.start_s): run for run in site.ledger.open_runs()}
        known = dict(self._open)  # for a ledger that takes nothing now
        running = {
            (job.id, job.start_s): job
            for job in observation.jobs
            if job.on and job.start_s and (job.each.gpus or gpus.is_slice(job.gpu_type))
        }
        new = [job for key, job in running.items() if key not in known and naming.scheduler_of(job.id) == "slurm"]
        over = [key for key in known if key not in running and not observation.unseen_job(key[0])]
        ended = list[RunRow]()
        if new or over:
            with site.ledger.transaction():
                for job in new:
                    run = _run(job, observation.numbers.get(job.id, job.id))
                    site.ledger.add_run(run)
                    known[run.job, run.start_s] = run
                for key in over:
                    again_s = [start_s for id, start_s in running if id == key[0] and start_s and start_s > key[1]]
                    ended.append(self._end(site, known.pop(key), min([now_s, *again_s])))
        self._ends = {key: job.end_s for key, job in running.items() if job.state == "COMPLETING" and job.end_s}
        self._open, self._looked_s = known, now_s
        return ended

    def _end(self, site: Site, run: RunRow, now_s: float) -> RunRow:
        """Between the last look and now, or according to Slurm."""
        guessed_s = (self._looked_s + now_s) / 2 if self._looked_s else now_s
        end_s = max(min(self._ends.get((run.job, run.start_s), guessed_s), now_s), run.start_s)
        ask_s = None if run.slice or end_s - run.start_s < SHORT_S else end_s + SETTLE_S
        run = replace(run, end_s=end_s, usd=_usd(site, run, end_s), ask_s=ask_s)
        site.ledger.set_run(run)
        return run

    # ---- answers
    def _collect(self, site: Site, now_s: float) -> list[RunRow]:
        """Those for which nobody asks any more."""
        if self._asker is None or self._asker.works:
            return []
        asker, self._asker = self._asker, None
        answered = [_answered(run, found, now_s) for run, found in asker.answers]
        with site.ledger.transaction():
            for run in answered:
                site.ledger.set_run(run)
            if asker.wrong:
                for run in site.ledger.runs_to_ask(now_s - KEPT_S, _AT_ONCE):
                    answered.append(replace(run, ask_s=None))
                    site.ledger.set_run(answered[-1])
        if not asker.wrong:
            self._away_s = self._away_until_s = 0.0
        else:
            self._away_s = min(max(self._away_s * 2, _AWAY_S[0]), _AWAY_S[1])
            self._away_until_s = now_s + self._away_s
        if (wrong := asker.wrong or asker.refused) and wrong != self._told:
            site.event("trouble", f"what jobs made of their GPUs is asked for again later: {wrong}")
        self._told = wrong
        return [run for run in answered if run.ask_s is None]


class _Asker:
    """A few runs, in a thread of its own: a hung Prometheus delays nothing else."""

    def __init__(self, measured: Measured, due: Iterable[RunRow]):
        self.answers: list[tuple[RunRow, Figures | None]] = []
        self.wrong, self.refused = "", ""
        self._thread = threading.Thread(target=self._ask, args=(measured, tuple(due)), name="job figures", daemon=True)
        self._thread.start()

    @property
    def works(self) -> bool:
        """It isn't done yet."""
        return self._thread.is_alive()

    def _ask(self, measured: Measured, due: tuple[RunRow, ...]) -> None:
        for run in due:
            found = None
            try:
                nodes, end_s = run.nodes.split(","), run.end_s or run.start_s
                found = job_figures.measure(measured, run.number, nodes, run.start_s, end_s)
            except QueryRefused as error:  # of this one: too much to load
                self.refused = str(error)
            except MeasuredError as error:
                self.wrong = str(error)
                return
            except Exception as error:  # a bug; in this thread nobody else would tell it
                self.refused = f"{type(error).__name__}: {error}"
            self.answers.append((run, found))


def _answered(run: RunRow, found: Figures | None, now_s: float) -> RunRow:
    complete = found is not None and (run.end_s or now_s) - found.to_s <= LATE_S
    ask_s = None if complete or run.asked >= len(AGAIN_S) else now_s + AGAIN_S[run.asked]
    figures = job_figures.packed(found) if found else run.figures
    return replace(run, asked=run.asked + 1, ask_s=ask_s, figures=figures)


def _run(job: Job, number: int) -> RunRow:
    return RunRow(
        job=job.id,
        start_s=job.start_s or 0.0,
        number=number,
        called=job.called or str(job.id),
        user=job.user,
        account=job.account,
        nodes=",".join(job.on),
        gpus=len(job.on) * job.each.gpus,
        slice=int(gpus.is_slice(job.gpu_type)),
        time_limit_s=job.time_limit_s,
    )


def _usd(site: Site, run: RunRow, end_s: float) -> float | None:
    """What its part of its nodes cost while it ran, by the ledger's prices and the declared ones. None: one of them
    isn't known.
    """
    nodes, hours = run.nodes.split(","), (end_s - run.start_s) / 3600
    gpus_a_node, usd = run.gpus / len(nodes), 0.0
    leases = {lease.node: lease for lease in site.ledger.leases_paid_after(run.start_s) if lease.made_s < end_s}
    declared = {host.name: host.usd_per_gpu_hour for host in site.document.hosts}
    for node in nodes:
        if node in declared:
            price = declared[node]
        elif (lease := leases.get(node)) and (pool := site.document.pool(lease.pool)) and pool.gpu.count:
            price = lease.usd_per_hour / pool.gpu.count
        else:
            price = None
        if price is None:
            return None
        usd += price * gpus_a_node * hours
    return usd
