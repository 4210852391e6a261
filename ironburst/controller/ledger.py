"""The ledger: what is intended, rented, spent and decided, in one SQLite file. What isn't in it before a call isn't
called.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from importlib import resources
from pathlib import Path
from typing import Any

from ironburst.burst import Budget, CoolDown, Job, Launch, backoff
from ironburst.controller import money, records
from ironburst.controller.records import DecisionRow, EventRow, IntentRow, JobRow, LaunchRow, LeaseRow, Rate
from ironburst.ports import Uptime

VERSION = "1"
_BOOTS = 15  # newest ones that tell how long a boot takes
STEP_S = 0.1  # of a clock; less is rounding
KEEP_S = 90 * 86400.0  # what cost no money is forgotten after this


class LedgerError(Exception):
    """The ledger can't be used; the text is one sentence."""


class Ledger:
    """Opened once by the controller (read_only=False), and by any reader beside it."""

    def __init__(self, path: Path | str, *, read_only: bool = False):
        path = Path(path)
        if read_only and not path.exists():
            raise LedgerError(
                f"there is no ledger at {path}: give --ledger, or start the controller with `ironburst run`"
            )
        try:
            if not read_only:
                path.parent.mkdir(parents=True, exist_ok=True)
            where = f"{path.absolute().as_uri()}?mode={'ro' if read_only else 'rwc'}"
            self._db = sqlite3.connect(where, uri=True, isolation_level=None, timeout=10)
            self._db.row_factory = sqlite3.Row
            if not read_only:
                self._db.execute("PRAGMA journal_mode=WAL")
                self._db.execute("PRAGMA synchronous=FULL")  # an intent must survive a power cut
                self._db.executescript(resources.files(__package__).joinpath("schema.sql").read_text())
                self._db.execute("INSERT OR IGNORE INTO meta VALUES ('version', ?)", (VERSION,))
                self._add_columns()
            found = self._db.execute("SELECT value FROM meta WHERE key = 'version'").fetchone()[0]
        except (sqlite3.Error, OSError, TypeError) as error:
            raise LedgerError(f"{path} can't be used as a ledger: {error}") from None
        if found != VERSION:
            raise LedgerError(f"{path} is a ledger of version {found}; this ironburst reads version {VERSION}")

    def _add_columns(self) -> None:
        """Columns that ledgers written before them lack."""
        if "figures" not in {row["name"] for row in self._rows("PRAGMA table_info(decisions)")}:
            self._db.execute("ALTER TABLE decisions ADD COLUMN figures TEXT NOT NULL DEFAULT ''")

    def close(self) -> None:
        self._db.close()

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
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def _rows(self, query: str, *values: Any) -> list[sqlite3.Row]:
        return self._db.execute(query, values).fetchall()

    # ---- launches and leases
    def add_launch(
        self, id: str, launch: Launch, instance_type: str, image_id: str, boot_s: float, serial: int, now_s: float
    ) -> None:
        """Write down that these nodes are to be rented, and for which jobs."""
        with self.transaction():
            self._db.execute(
                "INSERT INTO launches VALUES (?,?,?,?,?,?,?,?,?,?,?,?)",
                (
                    id,
                    launch.pool,
                    instance_type,
                    launch.market,
                    json.dumps(launch.zones),
                    json.dumps(launch.nodes),
                    launch.usd_per_hour,
                    image_id,
                    boot_s,
                    launch.reason,
                    now_s,
                    serial,
                ),
            )
            for node in launch.nodes:
                self._db.execute(
                    "INSERT INTO leases (id, launch, node, pool, instance_type, market, usd_per_hour, state, committed_until_s,"
                    " made_s, changed_s) VALUES (?,?,?,?,?,?,?,?,?,?,?)",
                    (
                        f"{id}/{node}",
                        id,
                        node,
                        launch.pool,
                        instance_type,
                        launch.market,
                        launch.usd_per_hour,
                        records.INTENDED,
                        launch.committed_until_s,
                        now_s,
                        now_s,
                    ),
                )
                self.rate(f"{id}/{node}", 0.0, launch.account, launch.usd_per_hour)
            for job in launch.jobs:
                self._assign(job, [f"{id}/{node}" for node in launch.nodes], now_s)

    def launch(self, id: str) -> LaunchRow:
        row = self._rows("SELECT * FROM launches WHERE id = ?", id)[0]
        return LaunchRow(**{**row, "zones": tuple(json.loads(row["zones"])), "nodes": tuple(json.loads(row["nodes"]))})

    def leases(self, *, open_only: bool = True) -> list[LeaseRow]:
        """In the order in which they were decided."""
        where = "WHERE state != 'ended'" if open_only else ""
        return [_lease(row) for row in self._rows(f"SELECT * FROM leases {where} ORDER BY made_s, rowid")]

    def leases_of(self, launch: str) -> list[LeaseRow]:
        """Open ones of a launch, in the order of its nodes."""
        return [
            _lease(row)
            for row in self._rows("SELECT * FROM leases WHERE launch = ? AND state != 'ended' ORDER BY rowid", launch)
        ]

    def usual_boot_s(self, pool: str) -> float | None:
        """The median time from launch to joined of a pool's newest leases; None: none has joined."""
        query = "SELECT joined_s - from_s AS took FROM leases WHERE pool = ? AND joined_s IS NOT NULL ORDER BY joined_s DESC LIMIT ?"
        took = sorted(row["took"] for row in self._rows(query, pool, _BOOTS) if row["took"] is not None)
        return took[len(took) // 2] if took else None

    def lease_of_instance(self, instance_id: str) -> LeaseRow | None:
        rows = self._rows("SELECT * FROM leases WHERE instance_id = ? AND state != 'ended'", instance_id)
        return _lease(rows[0]) if rows else None

    def update(self, leases: Iterable[LeaseRow], now_s: float, **values: Any) -> None:
        """Set columns of leases; `changed_s` follows a change of the state."""
        names = ", ".join(f"{name} = ?" for name in values)
        with self.transaction():
            for lease in leases:
                self._db.execute(f"UPDATE leases SET {names} WHERE id = ?", (*values.values(), lease.id))
                if values.get("state", lease.state) != lease.state:
                    self._db.execute("UPDATE leases SET changed_s = ? WHERE id = ?", (now_s, lease.id))

    def assign(
        self, job: int, leases: Sequence[str], committed_until_s: float, now_s: float, account: str = ""
    ) -> None:
        """Give leases to a job: they are kept until then, and `account` pays for them from now on."""
        with self.transaction():
            self._assign(job, leases, now_s)
            for lease in (each for each in self.leases() if each.id in leases):
                # what isn't launched yet is kept for as long as from now to then, from its launch on
                until_s = committed_until_s + (lease.made_s - now_s if lease.from_s is None else 0.0)
                self.update([lease], now_s, committed_until_s=max(lease.committed_until_s, until_s))
                rate = money.rates_of(lease, self.rates(now_s))[-1]
                if rate.account != account:
                    self.rate(lease.id, now_s, account, rate.usd_per_hour)

    def _assign(self, job: int, leases: Sequence[str], now_s: float) -> None:
        self._db.executemany(
            "INSERT OR REPLACE INTO assignments VALUES (?,?,?)", [(job, lease, now_s) for lease in leases]
        )

    def jobs_of(self, lease: str) -> tuple[int, ...]:
        return tuple(
            row["job"] for row in self._rows("SELECT job FROM assignments WHERE lease = ? ORDER BY at_s, job", lease)
        )

    def leases_for(self, job: int) -> list[LeaseRow]:
        """Every lease, open or ended, that was meant for a job."""
        query = "SELECT leases.* FROM leases JOIN assignments ON lease = leases.id WHERE job = ? ORDER BY made_s, leases.rowid"
        return [_lease(row) for row in self._rows(query, job)]

    # ---- intents
    def add_intent(
        self, token: str, launch: str, attempt: int, zone: str, request: dict[str, Any], now_s: float
    ) -> None:
        """The exact parameters and the token, before the call; the launch's early leases are `requested` from now
        on.
        """
        with self.transaction():
            self._db.execute(
                "INSERT INTO intents (token, launch, attempt, zone, request, state, made_s, changed_s) VALUES (?,?,?,?,?,'open',?,?)",
                (token, launch, attempt, zone, json.dumps(request, sort_keys=True), now_s, now_s),
            )
            self._db.execute(
                "UPDATE leases SET state = 'requested', zone = ?, changed_s = ? WHERE launch = ? AND state = 'powering'",
                (zone, now_s, launch),
            )

    def intents(self, launch: str) -> list[IntentRow]:
        return [
            IntentRow(**row) for row in self._rows("SELECT * FROM intents WHERE launch = ? ORDER BY attempt", launch)
        ]

    def open_tokens(self) -> set[str]:
        return {row["token"] for row in self._rows("SELECT token FROM intents WHERE state IN ('open', 'unknown')")}

    def settle_intent(
        self, token: str, state: str, now_s: float, *, code: str = "", error: str = "", retry_s: float = 0.0
    ) -> None:
        self._db.execute(
            "UPDATE intents SET state = ?, code = ?, error = ?, tries = tries + 1, retry_s = ?, changed_s = ? WHERE token = ?",
            (state, code, error, retry_s, now_s, token),
        )

    # ---- cool-downs
    def cool_down(
        self,
        pool: str,
        zone: str,
        market: str,
        nodes: int,
        seconds: float | None,
        reason: str,
        now_s: float,
        serial: int,
    ) -> float | None:
        """Close a place for requests of `nodes` or more; the longer, the more refusals in a row. None: until
        reopened.
        """
        with self.transaction():
            rows = self._rows(
                "SELECT strikes FROM cool_downs WHERE pool=? AND zone=? AND market=? AND nodes=?",
                pool,
                zone,
                market,
                nodes,
            )
            strikes = rows[0]["strikes"] + 1 if rows else 1
            until = None if seconds is None else now_s + backoff.lasts_s(seconds, strikes)
            self._db.execute(
                "INSERT OR REPLACE INTO cool_downs VALUES (?,?,?,?,?,?,?,?,?)",
                (pool, zone, market, nodes, until, reason, strikes, now_s, serial),
            )
            return until

    def reopen(self, pool: str, zone: str | None = None, market: str | None = None) -> int:
        """Forget the cool-downs of a place: a launch succeeded there, or a person says so. How many there were."""
        return self._db.execute(
            "DELETE FROM cool_downs WHERE pool = ? AND (? IS NULL OR zone = ?) AND (? IS NULL OR market = ?)",
            (pool, zone, zone, market, market),
        ).rowcount

    def forget_old_refusals(self, serial: int, now_s: float) -> None:
        """A new document may have cured what was closed until further notice; an old cool-down's strikes are forgiven
        in time.
        """
        self._db.execute("DELETE FROM cool_downs WHERE until_s IS NULL AND serial != ?", (serial,))
        self._db.execute(
            "DELETE FROM cool_downs WHERE until_s + ? * (until_s - at_s) < ?", (backoff.FORGIVEN_AFTER, now_s)
        )

    def cool_downs(self, now_s: float) -> list[CoolDown]:
        rows = self._rows(
            "SELECT * FROM cool_downs WHERE until_s IS NULL OR until_s > ? ORDER BY pool, zone, market, nodes", now_s
        )
        return [CoolDown(r["pool"], r["zone"], r["market"], r["nodes"], r["until_s"], r["reason"]) for r in rows]

    # ---- money
    def budget(
        self,
        usd_per_month: float,
        now_s: float,
        usd_per_day: float | None = None,
        accounts: Mapping[str, float] | None = None,
        ahead_s: float = 0.0,
    ) -> Budget:
        """What all leases have spent, and what is set aside for those that aren't over, under each ceiling from now to
        `ahead_s` later.
        """
        return money.budget(
            usd_per_month, usd_per_day, accounts or {}, self._paying(now_s), self.rates(now_s), now_s, ahead_s
        )

    def _paying(self, now_s: float) -> list[LeaseRow]:
        """The leases that this month pays for."""
        start, _ = money.month(now_s - records.CLOCK_S)
        return [
            _lease(row)
            for row in self._rows("SELECT * FROM leases WHERE state != 'ended' OR to_s > ?", start - records.CLOCK_S)
        ]

    def rates(self, now_s: float) -> dict[str, list[Rate]]:
        """By lease: those that this month pays for. A ledger that no controller of this version has opened yet has
        none.
        """
        if not self._rows("SELECT 1 FROM sqlite_master WHERE name = 'rates'"):
            return {}
        start, _ = money.month(now_s - records.CLOCK_S)
        query = (
            "SELECT rates.* FROM rates JOIN leases ON lease = leases.id WHERE state != 'ended' OR to_s > ?"
            " ORDER BY lease, rates.from_s"
        )
        found: dict[str, list[Rate]] = {}
        for row in self._rows(query, start - records.CLOCK_S):
            found.setdefault(row["lease"], []).append(Rate(row["from_s"], row["account"], row["usd_per_hour"]))
        return found

    def rate(self, lease: str, from_s: float, account: str, usd_per_hour: float) -> None:
        """What a lease costs from then on, and who pays."""
        self._db.execute(  # one of an older ironburst has none yet
            "INSERT INTO rates SELECT id, 0, '', usd_per_hour FROM leases WHERE id = ?1 AND ?1 NOT IN (SELECT lease FROM rates)",
            (lease,),
        )
        self._db.execute("INSERT OR REPLACE INTO rates VALUES (?,?,?,?)", (lease, from_s, account, usd_per_hour))

    def charge(self, launch: str, instance_id: str, from_s: float, now_s: float) -> bool:
        """Count an instance of a launch that has no lease, as one that ends now. False: the launch isn't known, nor is
        the price.
        """
        rows = self._rows("SELECT * FROM leases WHERE launch = ? ORDER BY rowid LIMIT 1", launch)
        if not rows:
            return False
        like, id = _lease(rows[0]), f"{launch}/{instance_id}"
        rates = self._rows("SELECT account, usd_per_hour FROM rates WHERE lease = ? ORDER BY from_s LIMIT 1", like.id)
        with self.transaction():
            self._db.execute(
                "INSERT OR REPLACE INTO leases (id, launch, node, pool, instance_type, market, usd_per_hour, state, instance_id,"
                " committed_until_s, made_s, changed_s, from_s, to_s, end_reason) VALUES (?,?,?,?,?,?,?,'ended',?,?,?,?,?,?,?)",
                (
                    id,
                    launch,
                    like.node,
                    like.pool,
                    like.instance_type,
                    like.market,
                    like.usd_per_hour,
                    instance_id,
                    now_s,
                    from_s,
                    now_s,
                    from_s,
                    now_s,
                    "it had no lease",
                ),
            )
            self.rate(
                id, 0.0, rates[0]["account"] if rates else "", rates[0]["usd_per_hour"] if rates else like.usd_per_hour
            )
        return True

    def tick_began(self, now_s: float, tick_s: float, uptime: Uptime) -> float:
        """When the last one began. As much time has passed since as the host was up (since another boot: a tick),
        whatever the clock
        says: one that was put back uncounts no money.
        """
        last = json.loads(self.noted("clock") or "null")
        # an older ironburst wrote down the clock alone
        last_s, boot, up_s = last if isinstance(last, list) else (last, "", 0.0)
        with self.transaction():
            passed_s = uptime.seconds - up_s if boot and boot == uptime.boot else tick_s
            if last_s is not None and (missing_s := last_s + passed_s - now_s) > STEP_S:
                self._db.execute(
                    "UPDATE leases SET from_s = from_s - ?1, committed_until_s = committed_until_s - ?1"
                    " WHERE from_s IS NOT NULL AND state NOT IN ('terminated', 'ended')",
                    (missing_s,),
                )
            self.note("clock", json.dumps([now_s, *uptime]))
        return now_s if last_s is None else last_s

    # ---- what was decided and what happened
    def decided(
        self,
        job: int,
        kind: str,
        code: str,
        text: str,
        now_s: float,
        look_again_s: float | None = None,
        figures: str = "",
    ) -> None:
        """One row for as long as the same thing is decided for a job, with its latest wording and figures."""
        with self.transaction():
            last = self._rows("SELECT id, kind, code FROM decisions WHERE job = ? ORDER BY id DESC LIMIT 1", job)
            if last and (last[0]["kind"], last[0]["code"]) == (kind, code):
                self._db.execute(
                    "UPDATE decisions SET last_s=?, text=?, look_again_s=?, figures=? WHERE id=?",
                    (now_s, text, look_again_s, figures, last[0]["id"]),
                )
            else:
                self._db.execute(
                    "INSERT INTO decisions (at_s, last_s, job, kind, code, text, look_again_s, figures) VALUES (?,?,?,?,?,?,?,?)",
                    (now_s, now_s, job, kind, code, text, look_again_s, figures),
                )

    def decisions(self, job: int | None = None) -> list[DecisionRow]:
        """Of one job, or all; the oldest first."""
        if job is None:
            return [_decision(row) for row in self._rows("SELECT * FROM decisions ORDER BY id")]
        return [_decision(row) for row in self._rows("SELECT * FROM decisions WHERE job = ? ORDER BY id", job)]

    def last_decision(self, job: int) -> DecisionRow | None:
        rows = self._rows("SELECT * FROM decisions WHERE job = ? ORDER BY id DESC LIMIT 1", job)
        return _decision(rows[0]) if rows else None

    def saw_jobs(self, jobs: Iterable[Job], now_s: float) -> None:
        """Remember jobs, so that they can be explained after they have left the queue."""
        query = """INSERT INTO jobs VALUES (?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT (job) DO UPDATE SET
            state = excluded.state, last_s = excluded.last_s, time_limit_s = excluded.time_limit_s,
            start_s = coalesce(excluded.start_s, start_s), ran_on = CASE excluded.ran_on WHEN '' THEN ran_on ELSE excluded.ran_on END"""
        with self.transaction():
            for job in jobs:
                size = (job.nodes, job.each.gpus, job.time_limit_s)
                self._db.execute(
                    query,
                    (job.id, job.name, job.user, job.submit_s, *size, job.state, job.start_s, ",".join(job.on), now_s),
                )

    def left_queue(self, job: int, now_s: float) -> None:
        self._db.execute("UPDATE jobs SET state = 'LEFT_QUEUE', last_s = ? WHERE job = ?", (now_s, job))

    def job(self, job: int) -> JobRow | None:
        rows = self._rows("SELECT * FROM jobs WHERE job = ?", job)
        return JobRow(**rows[0]) if rows else None

    def in_queue(self) -> set[int]:
        """The jobs that were in the queue when it was last seen. (Jobs that have left stay in the ledger, for
        `explain`.)
        """
        states = "'PENDING', 'RUNNING', 'COMPLETING', 'CONFIGURING', 'SUSPENDED'"
        return {row["job"] for row in self._rows(f"SELECT job FROM jobs WHERE state IN ({states})")}

    def event(
        self, kind: str, text: str, now_s: float, *, launch: str = "", lease: str = "", job: int | None = None
    ) -> None:
        self._db.execute(
            "INSERT INTO events (at_s, kind, launch, lease, job, text) VALUES (?,?,?,?,?,?)",
            (now_s, kind, launch, lease, job, text),
        )

    def events(self, since_s: float = 0.0) -> list[EventRow]:
        rows = self._rows(
            "SELECT at_s, kind, launch, lease, job, text FROM events WHERE at_s >= ? ORDER BY at_s, id", since_s
        )
        return [EventRow(**row) for row in rows]

    def events_of(self, job: int, launches: Iterable[str]) -> list[EventRow]:
        """Those of a job and of launches."""
        wanted = [job, *launches]
        marks = ",".join("?" * (len(wanted) - 1))
        query = (
            f"SELECT at_s, kind, launch, lease, job, text FROM events WHERE job = ? OR launch IN ({marks}) ORDER BY id"
        )
        return [EventRow(**row) for row in self._rows(query, *wanted)]

    def forget_old(self, now_s: float) -> None:
        """Once a day: jobs that left the queue long ago, with what was decided for them, and events. What money was
        spent on stays, and
        why: jobs that had leases, events of launches and leases.
        """
        forgot = float(self.noted("forgot") or 0.0)
        if 0 <= now_s - forgot < 86400:
            return
        before_s = now_s - KEEP_S
        with self.transaction():
            self._db.execute(
                "DELETE FROM jobs WHERE state = 'LEFT_QUEUE' AND last_s < ? AND job NOT IN (SELECT job FROM assignments)",
                (before_s,),
            )
            self._db.execute(
                "DELETE FROM decisions WHERE last_s < ? AND job NOT IN (SELECT job FROM jobs)", (before_s,)
            )
            self._db.execute("DELETE FROM events WHERE at_s < ? AND launch = '' AND lease = ''", (before_s,))
            self.note("forgot", repr(now_s))

    def note(self, key: str, value: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def noted(self, key: str) -> str | None:
        rows = self._rows("SELECT value FROM meta WHERE key = ?", key)
        return rows[0]["value"] if rows else None


def _lease(row: sqlite3.Row) -> LeaseRow:
    return LeaseRow(**{**row, "worked": bool(row["worked"])})


def _decision(row: sqlite3.Row) -> DecisionRow:
    names = [field.name for field in fields(DecisionRow)]
    return DecisionRow(**{name: row[name] for name in names if name in row.keys()})
