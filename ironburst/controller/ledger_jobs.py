"""What the ledger knows of jobs, beside what was decided for them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from itertools import islice
from typing import Any, TypeVar

from ironburst.burst import Job
from ironburst.controller import records, schema
from ironburst.controller.records import QUARTER_S, GpuUse, GpuUseRow, JobRow, LeaseRow, RunRow, storable
from ironburst.controller.schema import Database, Row

T = TypeVar("T")
_SEEN = [f'"{field.name}"' for field in fields(JobRow) if field.name != "spot_losses"]  # "user" is a word of SQL

# by the index of states, which != would not use
_IN_QUEUE = "state IN ('PENDING', 'RUNNING', 'COMPLETING', 'CONFIGURING', 'SUSPENDED', 'STOPPED', 'STAGE_OUT')"

AT_ONCE = 500
"""jobs that one query asks for"""


def lots(items: Iterable[T]) -> Iterator[list[T]]:
    """AT_ONCE of them at a time."""
    items = iter(items)
    while lot := [*islice(items, AT_ONCE)]:
        yield lot


class JobRecords:
    """The part of a Ledger that is about jobs, on its file."""

    def __init__(self, db: Database):
        self._db = db

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing; transactions may nest."""
        if self._db.in_transaction:
            yield
            return
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self._db.in_transaction:  # after a full disk SQLite has done it itself
                self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def _rows(self, query: str, *values: Any) -> list[Row]:
        rows: list[Row] = self._db.execute(query, values).fetchall()
        return rows

    def _rows_of(self, query: str, jobs: Collection[int]) -> list[Row]:
        """Of no more than AT_ONCE jobs, whose places are `{}` in the query."""
        return self._rows(query.format(",".join("?" * len(jobs))), *jobs)

    def saw_jobs(self, jobs: Iterable[Job], now_s: float) -> None:
        """Remember jobs, so that they can be explained after they have left the queue."""
        names = ", ".join(_SEEN)
        query = f"""INSERT INTO jobs ({names}) VALUES ({", ".join("?" * len(_SEEN))}) ON CONFLICT (job) DO UPDATE SET
            state = excluded.state, last_s = excluded.last_s, time_limit_s = excluded.time_limit_s,
            start_s = coalesce(excluded.start_s, jobs.start_s), called = excluded.called,
            ran_on = CASE excluded.ran_on WHEN '' THEN jobs.ran_on ELSE excluded.ran_on END"""
        with self.transaction():
            self._db.executemany(query, (_seen(job, now_s) for job in jobs))

    def left_queue(self, job: int, now_s: float) -> None:
        """Remember that a job has left."""
        self._db.execute("UPDATE jobs SET state = 'LEFT_QUEUE', last_s = ? WHERE job = ?", (now_s, job))

    def job(self, job: int | str) -> JobRow | None:
        """By its number, or its name (of several the last). None: it was never seen, or is forgotten."""
        which = "job = ?" if isinstance(job, int) else "name = ? ORDER BY submit_s DESC LIMIT 1"
        rows = self._rows(f"SELECT * FROM jobs WHERE {which}", job)
        return records.of(JobRow, rows[0]) if rows else None

    # ---- GPUs over time
    def saw_gpus(self, use: GpuUse, now_s: float) -> None:
        """What jobs had at a look, since the one before; not for longer than a quarter of an hour: nobody looked."""
        before = self._rows("SELECT last_s FROM gpu_use ORDER BY quarter DESC LIMIT 1")
        seen_s = min(max(now_s - before[0]["last_s"], 0.0), QUARTER_S) if before else 0.0
        query = """INSERT INTO gpu_use (quarter, last_s, seen_s, home, rented, waiting) VALUES (?, ?, ?, ?, ?, ?)
            ON CONFLICT (quarter) DO UPDATE SET last_s = excluded.last_s, seen_s = gpu_use.seen_s + excluded.seen_s,
            home = gpu_use.home + excluded.home, rented = gpu_use.rented + excluded.rented,
            waiting = gpu_use.waiting + excluded.waiting"""
        seconds = (seen_s * gpus for gpus in (use.home, use.rented, use.waiting))
        self._db.execute(query, (math.ceil(now_s / QUARTER_S) - 1, now_s, seen_s, *seconds))

    def gpu_use(self, after_s: float) -> list[GpuUseRow]:
        """Of the quarters of an hour that ended after a moment."""
        if not schema.columns(self._db, "gpu_use"):
            return []  # no controller of this version has opened it yet
        rows = self._rows("SELECT * FROM gpu_use WHERE quarter >= ? ORDER BY quarter", int(after_s // QUARTER_S))
        return [records.of(GpuUseRow, row) for row in rows]

    def parts(self, whole: int) -> list[JobRow]:
        """The tasks of an array, the parts of a heterogeneous job, and earlier jobs of a number, by the number."""
        if "called" not in schema.columns(self._db, "jobs"):
            return []  # of an older ledger
        part = "SELECT * FROM jobs WHERE called != '' AND called >= ? AND called < ?"  # by an index
        between = [f"{whole}{chr(ord(sign) + after)}" for sign in "_+@" for after in (0, 1)]
        rows = self._rows(" UNION ALL ".join([part] * 3), *between)
        return sorted((records.of(JobRow, row) for row in rows), key=lambda row: row.job)

    def in_queue(self) -> set[int]:
        """The jobs that were in the queue when it was last seen; those that have left stay, for `explain`."""
        return {row["job"] for row in self._rows(f"SELECT job FROM jobs WHERE {_IN_QUEUE}")}

    # ---- runs on GPUs
    def add_run(self, run: RunRow) -> None:
        """One that began; it may be known already."""
        row = {name: storable(value) for name, value in asdict(run).items()}
        names, marks = ", ".join(f'"{name}"' for name in row), ", ".join("?" * len(row))
        query = f"INSERT INTO job_runs ({names}) VALUES ({marks}) ON CONFLICT DO NOTHING"
        self._db.execute(query, tuple(row.values()))

    def set_run(self, run: RunRow) -> None:
        """Its end, what it cost, and what it is known to have made of its GPUs."""
        query = (
            "UPDATE job_runs SET end_s = ?, usd = ?, ask_s = ?, asked = ?, figures = ? WHERE job = ? AND start_s = ?"
        )
        self._db.execute(query, (run.end_s, run.usd, run.ask_s, run.asked, run.figures, run.job, run.start_s))

    def open_runs(self) -> list[RunRow]:
        """Those that go on."""
        return self._runs("end_s IS NULL ORDER BY job, start_s")

    def runs_to_ask(self, now_s: float, count: int) -> list[RunRow]:
        """Those for which Prometheus is to be asked by now, no more than that many."""
        return self._runs("ask_s <= ? ORDER BY ask_s, job LIMIT ?", now_s, count)

    def runs_of(self, job: int) -> list[RunRow]:
        """A job's, the oldest first."""
        return self._runs("job = ? ORDER BY start_s", job)

    def runs_called(self, asked: str) -> list[RunRow]:
        """Those of a job by what Slurm's users call it; of an array all of its tasks'."""
        return self._runs(
            "called = ?1 OR substr(called, 1, length(?1) + 1) = ?1 || '_' ORDER BY job DESC, start_s", asked
        )

    def runs_between(self, from_s: float, to_s: float) -> list[RunRow]:
        """Those that ended in a time."""
        return self._runs("end_s >= ? AND end_s < ? ORDER BY end_s, job", from_s, to_s)

    def _runs(self, where: str, *values: float | str) -> list[RunRow]:
        if not schema.columns(self._db, "job_runs"):
            return []  # no controller of this version has opened it yet
        return [records.of(RunRow, row) for row in self._rows(f"SELECT * FROM job_runs WHERE {where}", *values)]

    # ---- spot
    def lost_spot(self, lease: LeaseRow) -> None:
        """The provider takes a spot node back: the jobs that were on it when they were seen last lose it, each start
        of one once, with however many nodes.
        """
        on = f"{_IN_QUEUE} AND state NOT IN ('PENDING', 'COMPLETING')"
        query = f"SELECT job, ran_on FROM jobs WHERE {on} AND start_s >= ?"
        lost = [row["job"] for row in self._rows(query, lease.made_s) if lease.node in row["ran_on"].split(",")]
        count = (
            "UPDATE jobs SET spot_losses = spot_losses + 1, lost_start_s = start_s"
            " WHERE job = ? AND (lost_start_s IS NULL OR lost_start_s != start_s)"
        )
        self._db.executemany(count, [(job,) for job in lost])

    def spot_losses(self) -> dict[int, int]:
        """How often it happened to each job that is in the queue, where it did."""
        query = f"SELECT job, spot_losses FROM jobs WHERE {_IN_QUEUE} AND spot_losses > 0"
        return {row["job"]: row["spot_losses"] for row in self._rows(query)}


def _seen(job: Job, now_s: float) -> tuple[object, ...]:
    """As `_SEEN` names it."""
    size = (job.nodes, job.each.gpus, job.time_limit_s)
    who = (job.id, storable(job.name), storable(job.user), job.submit_s)
    return (*who, *size, job.state, job.start_s, ",".join(job.on), now_s, job.called)
