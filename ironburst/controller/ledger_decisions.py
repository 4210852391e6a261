"""What was decided for jobs. Of a large queue (ironburst.controller.written) the newest wordings of all that wait are
in a table of their own, compressed: tens of bytes a job where a row is a thousand.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from itertools import groupby
from typing import NamedTuple

from ironburst.burst import Job
from ironburst.controller import records, schema
from ironburst.controller.ledger_jobs import JobRecords, lots
from ironburst.controller.records import DecisionRow, storable
from ironburst.controller.schema import Row
from ironburst.nodes import naming

PARTS = 32
"""of the table of wordings, each of the jobs whose ids leave one remainder: who asks about one job reads one"""
_NO_SCHEDULERS = -(2**56)  # below all tasks of arrays (naming.task_of_array)


class Wording(NamedTuple):
    """How a decision reads; `figures`: as a DecisionRow's."""

    kind: str
    code: str
    text: str
    look_again_s: float | None = None
    figures: str = ""


class DecisionRecords(JobRecords):
    """The part of a Ledger that is about decisions, on its file."""

    def decided(self, told: Iterable[tuple[int, Wording]], now_s: float) -> None:
        """By job: one row for as long as the same thing is decided for it, with its latest wording and figures."""
        query = "INSERT INTO decisions (job, at_s, last_s, kind, code, text, look_again_s, figures)"
        with self.transaction():
            for lot in lots(told):
                same = self.reworded(lot, now_s)
                new = ((job, now_s, now_s, *each) for job, each in lot if job not in same)
                self._db.executemany(f"{query} VALUES (?,?,?,?,?,?,?,?)", new)

    def reworded(self, told: Iterable[tuple[int, Wording]], at_s: float) -> set[int]:
        """What was decided last for these jobs still held at a moment, and reads like this. Returns those of which it
        did; what was decided of the others was another thing.
        """
        query, found = "UPDATE decisions SET last_s = ?, text = ?, look_again_s = ?, figures = ? WHERE id = ?", set()
        for lot in lots(told):
            now = dict(lot)
            last = self._last(now)
            same = [job for job, row in last.items() if (row["kind"], row["code"]) == now[job][:2]]
            self._db.executemany(query, ((at_s, *now[job][2:], last[job]["id"]) for job in same))
            found.update(same)
        return found

    def _last(self, jobs: Collection[int]) -> dict[int, Row]:
        """The newest decision of each job."""
        newest = "SELECT max(id) FROM decisions WHERE job IN ({}) GROUP BY job"
        rows = self._rows_of(f"SELECT id, job, kind, code, last_s FROM decisions WHERE id IN ({newest})", jobs)
        return {row["job"]: row for row in rows}

    def word(self, told: Mapping[int, Wording], at_s: float) -> None:
        """How the last decision of each job that waits reads at a moment, instead of those of before."""
        parts: dict[int, dict[int, Wording]] = {}
        for job, wording in told.items():
            parts.setdefault(job % PARTS, {})[job] = wording
        with self.transaction():
            self._db.execute("DELETE FROM wordings")
            for part, of in parts.items():
                packed = zlib.compress(json.dumps(of, separators=(",", ":")).encode())
                self._db.execute("INSERT INTO wordings (part, at_s, said) VALUES (?,?,?)", (part, at_s, packed))

    def fold_wordings(self) -> None:
        """Into the rows of the decisions."""
        with self.transaction():
            for at_s, wordings in groupby(self._wordings().items(), lambda item: item[1][0]):
                for lot in lots(wordings):
                    last = self._last(dict(lot))
                    older = (each for each in lot if each[0] in last and last[each[0]]["last_s"] < at_s)
                    self.reworded(((job, told) for job, (_, told) in older), at_s)
            self._db.execute("DELETE FROM wordings")

    def _wordings(self, jobs: Iterable[int] | None = None) -> dict[int, tuple[float, Wording]]:
        """With their moment, of more jobs than these; None: of all."""
        if not schema.columns(self._db, "wordings"):
            return {}  # no controller of this version has opened it yet
        parts = range(PARTS) if jobs is None else sorted({job % PARTS for job in jobs})
        marks = ",".join("?" * len(parts))
        rows = self._rows(f"SELECT at_s, said FROM wordings WHERE part IN ({marks})", *parts)
        told = [(row["at_s"], json.loads(zlib.decompress(row["said"]))) for row in rows]
        return {int(job): (at_s, Wording(*wording)) for at_s, of in told for job, wording in of.items()}

    def _worded(self, newest: Mapping[int, Row]) -> dict[int, DecisionRow]:
        """Decisions, each the newest of its job, as they read now."""
        wordings, found = self._wordings(newest) if newest else {}, {}
        for job, row in newest.items():
            at_s, told = wordings.get(job, (0.0, None))
            if told and row["last_s"] < at_s and (row["kind"], row["code"]) == told[:2]:
                _, _, text, look_again_s, figures = told
                more = {"last_s": at_s, "text": text, "look_again_s": look_again_s, "figures": figures}
                found[job] = records.of(DecisionRow, row, **more)
            else:
                found[job] = records.of(DecisionRow, row)
        return found

    def decisions(self, job: int | None = None) -> list[DecisionRow]:
        """Of one job, or all; the oldest first."""
        where, values = ("", ()) if job is None else ("WHERE job = ?", (job,))
        rows = self._rows(f"SELECT * FROM decisions {where} ORDER BY id", *values)
        waits = job is None or self._rows("SELECT 1 FROM jobs WHERE job = ? AND state = 'PENDING'", job)
        return self._read(rows, {row["job"]: row for row in rows} if waits else {})

    def last_decisions(self) -> dict[int, DecisionRow]:
        """Of each job that waits, if it was decided when the job was seen last."""
        query = """SELECT decisions.* FROM jobs JOIN decisions ON decisions.last_s >= jobs.last_s
            AND id = (SELECT max(id) FROM decisions WHERE job = jobs.job) WHERE state = 'PENDING'"""
        return self._worded({row["job"]: row for row in self._rows(query)})

    def newest_decisions(self, count: int) -> list[DecisionRow]:
        """The newest ones of all jobs, the newest first."""
        query = """SELECT *, id = (SELECT max(id) FROM decisions AS others WHERE others.job = decisions.job) AS newest
            FROM decisions ORDER BY id DESC LIMIT ?"""
        rows = self._rows(query, count)
        return self._read(rows, {row["job"]: row for row in rows if row["newest"]})

    def _read(self, rows: list[Row], newest: Mapping[int, Row]) -> list[DecisionRow]:
        now = self._worded(newest)
        newest_ids = {row["id"] for row in newest.values()}
        return [now[row["job"]] if row["id"] in newest_ids else records.of(DecisionRow, row) for row in rows]

    # ---- whose an id is
    def set_apart(self, jobs: Iterable[Job]) -> list[int]:
        """Where the scheduler counts its ids anew (a slurmctld that was set up again): what is kept of a job that had
        the id of one of these is kept under an id that no scheduler gives, and its name has its submit time behind it.
        Returns the ids of these.
        """
        query, taken = 'SELECT job, submit_s, "user", called FROM jobs WHERE job IN ({})', list[tuple[int, Row]]()
        for lot in lots(jobs):
            by_id = {job.id: job for job in lot}
            taken += [(row["job"], row) for row in self._rows_of(query, by_id) if _another(row, by_id[row["job"]])]
        if taken:
            self.fold_wordings()
        for id, before in taken:
            free = min(self._rows("SELECT coalesce(min(job), 0) AS job FROM jobs")[0]["job"], _NO_SCHEDULERS) - 1
            called = f"{before['called'] or naming.called(id)}@{moment(before['submit_s'])}"
            told = "UPDATE jobs SET job = ?, called = ?, state = 'LEFT_QUEUE' WHERE job = ?"
            self._db.execute(told, (free, called, id))
            for table in ("decisions", "assignments", "events", "job_runs"):
                self._db.execute(f"UPDATE {table} SET job = ? WHERE job = ?", (free, id))
            self._db.execute("UPDATE job_runs SET called = ? WHERE job = ?", (called, free))
        return [id for id, _ in taken]


def moment(at_s: float) -> str:
    """As behind the number of an earlier job: UTC, to the minute."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%MZ")


def _another(before: Row, job: Job) -> bool:
    """A requeue gives a job another submit time, and counts as a restart; nothing gives it another user."""
    if naming.scheduler_of(job.id) != "slurm" or not job.submit_s:  # an unreadable row says neither
        return False
    submitted = abs(before["submit_s"] - job.submit_s) > 1 and not job.restarts
    return submitted or before["user"] != storable(job.user)
