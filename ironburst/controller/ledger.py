"""The ledger: what is intended, rented, spent and decided, in one SQLite file, or in PostgreSQL where two heads share
it. What isn't in it before a call isn't called.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ironburst.burst import CoolDown, Launch
from ironburst.controller import postgresql, records, schema
from ironburst.controller.lease_states import MOVES, State
from ironburst.controller.ledger_decisions import DecisionRecords
from ironburst.controller.records import (
    CoolDownRow,
    EventRow,
    IntentRow,
    LaunchRow,
    LeaseRow,
    Place,
    Rate,
    storable,
)
from ironburst.controller.schema import LedgerError as LedgerError
from ironburst.controller.schema import NotForYou as NotForYou

_PLACE = "pool, zone, market, nodes, instance_type"  # the key of cool_downs
# each by its index, which an OR would not use
_PAID_AFTER = "(SELECT rowid FROM leases WHERE state != 'ended' UNION SELECT rowid FROM leases WHERE to_s > ?)"
_EVENTS = "SELECT at_s, kind, launch, lease, job, text FROM events"


class IllegalMove(LedgerError):
    """A lease can't go from its state to that one."""


class Ledger(DecisionRecords):
    """Opened once by the controller (read_only=False), and by any reader beside it.
    Raises LedgerError; and LockedError where another head holds one that is shared.
    """

    def __init__(self, path: Path | str, *, read_only: bool = False):
        self.path = Path(path)
        self.shared = postgresql.is_named_by(self.path)
        super().__init__(postgresql.database(self.path, read_only=read_only))

    def close(self) -> None:
        """No call after this."""
        self._db.close()

    def check(self) -> None:
        """Before a call outside: raises Lost where another head may hold it by now."""
        if self.shared:
            self._db.execute("SELECT 1")

    # ---- launches and leases
    def add_launch(
        self, id: str, launch: Launch, instance_type: str, image_id: str, boot_s: float, serial: int, now_s: float
    ) -> None:
        """Write down that these nodes are to be rented, and for which jobs."""
        what = {"instance_type": instance_type, "market": launch.market, "usd_per_hour": launch.usd_per_hour}
        which = {"zones": json.dumps(launch.zones), "nodes": json.dumps(launch.nodes), "image_id": image_id}
        why = {"boot_s": boot_s, "reason": launch.reason, "made_s": now_s, "serial": serial}
        until = {"committed_until_s": launch.committed_until_s, "made_s": now_s, "changed_s": now_s}
        leases = [f"{id}/{node}" for node in launch.nodes]
        with self.transaction():
            self._insert("launches", id=id, pool=launch.pool, **what, **which, **why)
            for lease, node in zip(leases, launch.nodes, strict=True):
                of = {"id": lease, "launch": id, "node": node, "pool": launch.pool}
                self._insert("leases", state=records.INTENDED, **of, **what, **until)
                self.rate(lease, 0.0, launch.account, launch.usd_per_hour)
            for job in launch.jobs:
                self.assign(job, leases, now_s)

    def _insert(self, table: str, key: str = "", /, **values: Any) -> None:
        """A row; in place of the one with the same `key` (columns, comma-separated), where one is given."""
        query = f"INSERT INTO {table} ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})"
        if key:
            query += f" ON CONFLICT ({key}) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in values)}"
        self._db.execute(query, tuple(map(storable, values.values())))

    def _update(self, table: str, id: int | str, values: dict[str, Any]) -> None:
        columns = ", ".join(f"{name} = ?" for name in values)
        self._db.execute(f"UPDATE {table} SET {columns} WHERE id = ?", (*map(storable, values.values()), id))

    def launch(self, id: str) -> LaunchRow:
        """Raises IndexError for one that isn't there."""
        row = self._rows("SELECT * FROM launches WHERE id = ?", id)[0]
        return records.of(LaunchRow, row, zones=tuple(json.loads(row["zones"])), nodes=tuple(json.loads(row["nodes"])))

    def leases(self, *, open_only: bool = True) -> list[LeaseRow]:
        """In the order in which they were decided."""
        where = "WHERE state != 'ended'" if open_only else ""
        return [records.lease(row) for row in self._rows(f"SELECT * FROM leases {where} ORDER BY made_s, rowid")]

    def lease(self, id: str) -> LeaseRow:
        """As it is now. Raises IndexError for one that isn't there."""
        return records.lease(self._rows("SELECT * FROM leases WHERE id = ?", id)[0])

    def leases_of(self, launch: str) -> list[LeaseRow]:
        """Open ones of a launch, in the order of its nodes."""
        query = "SELECT * FROM leases WHERE launch = ? AND state != 'ended' ORDER BY rowid"
        return [records.lease(row) for row in self._rows(query, launch)]

    def newest_boots_s(self, pool: str, count: int) -> list[float]:
        """How long a pool's newest leases took from launch to joined."""
        query = (
            "SELECT joined_s - from_s AS took FROM leases WHERE pool = ? AND joined_s IS NOT NULL"
            " ORDER BY joined_s DESC LIMIT ?"
        )
        return [row["took"] for row in self._rows(query, pool, count) if row["took"] is not None]

    def lease_of_instance(self, instance_id: str, *, open_only: bool = True) -> LeaseRow | None:
        """The open lease of an instance, or the newest one."""
        where = "AND state != 'ended'" if open_only else "ORDER BY made_s DESC"
        rows = self._rows(f"SELECT * FROM leases WHERE instance_id = ? {where}", instance_id)
        return records.lease(rows[0]) if rows else None

    def update(self, leases: Iterable[LeaseRow], **values: Any) -> None:
        """Set columns of leases; their states are set by `move`."""
        assert "state" not in values
        with self.transaction():
            for lease in leases:
                self._update("leases", lease.id, values)

    def move(self, leases: Iterable[LeaseRow], to: State, now_s: float, **values: Any) -> None:
        """Set the state of leases, and with it other columns. Raises IllegalMove for one that `MOVES` doesn't have, and
        then no lease is changed.
        """
        with self.transaction():
            for lease in leases:
                at = self.lease(lease.id).state
                if at != to and to not in MOVES[at]:
                    raise IllegalMove(f"lease {lease.id} can't go from {at} to {to}")
                changed = {"changed_s": now_s} if at != to else {}
                self._update("leases", lease.id, values | {"state": to} | changed)

    def assign(self, job: int, leases: Iterable[str], now_s: float) -> None:
        """Leases are meant for a job."""
        rows = [(job, lease, now_s) for lease in leases]
        again = "ON CONFLICT (job, lease) DO UPDATE SET at_s = excluded.at_s"
        self._db.executemany(f"INSERT INTO assignments (job, lease, at_s) VALUES (?,?,?) {again}", rows)

    def jobs_of(self, lease: str) -> tuple[int, ...]:
        """The jobs that a lease was meant for, in that order."""
        rows = self._rows("SELECT job FROM assignments WHERE lease = ? ORDER BY at_s, job", lease)
        return tuple(row["job"] for row in rows)

    def leases_for(self, job: int) -> list[LeaseRow]:
        """Every lease, open or ended, that was meant for a job."""
        query = (
            "SELECT leases.* FROM leases JOIN assignments ON lease = leases.id WHERE job = ?"
            " ORDER BY made_s, leases.rowid"
        )
        return [records.lease(row) for row in self._rows(query, job)]

    def refused_s(self, nodes: Sequence[str]) -> dict[str, float]:
        """When the cloud refused the last lease of each of these nodes; of the others that started none or ended."""
        query = (
            "SELECT node, changed_s, launch, from_s, state FROM leases WHERE rowid IN"
            f" (SELECT max(rowid) FROM leases WHERE node IN ({_marks(nodes)}) GROUP BY node)"
        )
        never = [row for row in self._rows(query, *nodes) if row["from_s"] is None and row["state"] == records.ENDED]
        refused = "SELECT 1 FROM intents WHERE launch = ? AND state = 'refused'"
        return {row["node"]: row["changed_s"] for row in never if self._rows(refused, row["launch"])}

    # ---- intents
    def add_intent(
        self, token: str, launch: str, attempt: int, zone: str, request: dict[str, Any], now_s: float
    ) -> None:
        """The exact parameters and the token, before the call;
        the launch's early leases are `requested` from now on.
        """
        with self.transaction():
            asked = {"token": token, "launch": launch, "attempt": attempt, "zone": zone}
            said = {"request": json.dumps(request, sort_keys=True), "state": "open"}
            self._insert("intents", **asked, **said, made_s=now_s, changed_s=now_s)
            self._db.execute(
                "UPDATE leases SET state = ?, zone = ?, changed_s = ? WHERE launch = ? AND state = ?",
                (records.REQUESTED, zone, now_s, launch, records.POWERING),
            )

    def intents(self, launch: str) -> list[IntentRow]:
        """Of a launch, the oldest first."""
        return [
            records.of(IntentRow, row)
            for row in self._rows("SELECT * FROM intents WHERE launch = ? ORDER BY attempt", launch)
        ]

    def open_tokens(self) -> set[str]:
        """Of all intents that the cloud hasn't answered."""
        return {row["token"] for row in self._rows("SELECT token FROM intents WHERE state IN ('open', 'unknown')")}

    def answer_intent(
        self, token: str, state: str, now_s: float, *, code: str = "", error: str = "", retry_s: float = 0.0
    ) -> None:
        """The cloud's answer: `answered`, `refused`, or `unknown`, to be repeated from `retry_s` on."""
        self._db.execute(
            "UPDATE intents SET state = ?, code = ?, error = ?, tries = tries + 1, retry_s = ?, changed_s = ?"
            " WHERE token = ?",
            (state, code, error, retry_s, now_s, token),
        )

    # ---- cool-downs
    def put_cool_down(self, row: CoolDownRow) -> None:
        """Close a place; one that is closed already is closed again."""
        self._insert("cool_downs", _PLACE, **asdict(row))

    def cool_down_of(self, place: Place) -> CoolDownRow | None:
        """The last one of exactly this place, over or not."""
        query = (
            "SELECT * FROM cool_downs WHERE pool = ? AND zone = ? AND market = ? AND nodes = ? AND instance_type = ?"
        )
        rows = self._rows(query, *place)
        return records.of(CoolDownRow, rows[0]) if rows else None

    def all_cool_downs(self) -> list[CoolDownRow]:
        """Also those that are over and not forgiven yet."""
        rows = (records.of(CoolDownRow, row) for row in self._rows("SELECT * FROM cool_downs"))
        return sorted(rows, key=lambda row: row.place)  # one that is only read may have no instance_type yet

    def cool_downs(self, now_s: float) -> list[CoolDown]:
        """The places that are closed now."""
        closed = [row for row in self.all_cool_downs() if row.until_s is None or row.until_s > now_s]
        return [CoolDown(*row.place[:4], row.until_s, row.reason, row.instance_type) for row in closed]

    def reopen(
        self,
        pool: str,
        zone: str | None = None,
        market: str | None = None,
        nodes: int | None = None,
        instance_type: str | None = None,
    ) -> int:
        """Forget the cool-downs of a place: a launch succeeded there, or a person says so. How many there were."""
        gone: int = self._db.execute(
            "DELETE FROM cool_downs WHERE pool = ?1 AND (?2 IS NULL OR zone = ?2) AND (?3 IS NULL OR market = ?3)"
            " AND (?4 IS NULL OR nodes = ?4) AND (?5 IS NULL OR instance_type = ?5)",
            (pool, zone, market, nodes, instance_type),
        ).rowcount
        return gone

    # ---- money
    def leases_paid_after(self, at_s: float) -> list[LeaseRow]:
        """Open ones, and those that were paid for beyond that moment."""
        query = f"SELECT * FROM leases WHERE rowid IN {_PAID_AFTER} ORDER BY rowid"
        return [records.lease(row) for row in self._rows(query, at_s)]

    def rates_paid_after(self, at_s: float) -> dict[str, list[Rate]]:
        """Those of `leases_paid_after`, by lease, the oldest first.
        A ledger that no controller of this version has opened yet has none.
        """
        if not schema.columns(self._db, "rates"):
            return {}
        query = (
            f"SELECT rates.* FROM rates JOIN leases ON lease = leases.id WHERE leases.rowid IN {_PAID_AFTER}"
            " ORDER BY lease, rates.from_s"
        )
        rates: dict[str, list[Rate]] = {}
        for row in self._rows(query, at_s):
            rates.setdefault(row["lease"], []).append(Rate(row["from_s"], row["account"], row["usd_per_hour"]))
        return rates

    def rate(self, lease: str, from_s: float, account: str, usd_per_hour: float) -> None:
        """What a lease costs from then on, and who pays."""
        self._db.execute(  # one of an older ironburst has none yet
            "INSERT INTO rates (lease, from_s, account, usd_per_hour) SELECT id, 0, '', usd_per_hour FROM leases"
            " WHERE id = ?1 AND ?1 NOT IN (SELECT lease FROM rates)",
            (lease,),
        )
        values = {"lease": lease, "from_s": from_s, "account": account, "usd_per_hour": usd_per_hour}
        self._insert("rates", "lease, from_s", **values)

    def charge(self, launch: str, instance_id: str, from_s: float, now_s: float) -> bool:
        """Count an instance of a launch that has no lease, as one that ends now, at the first price of the launch's
        first lease. False: the launch isn't known, nor is the price.
        """
        rows = self._rows("SELECT * FROM leases WHERE launch = ? ORDER BY rowid LIMIT 1", launch)
        if not rows:
            return False
        like, id = records.lease(rows[0]), f"{launch}/{instance_id}"
        first = "SELECT account, usd_per_hour FROM rates WHERE lease = ? ORDER BY from_s LIMIT 1"
        account, usd_per_hour = next(map(tuple, self._rows(first, like.id)), ("", like.usd_per_hour))
        with self.transaction():
            self._db.execute(
                "INSERT INTO leases (id, node, state, instance_id, made_s, from_s, committed_until_s,"
                " changed_s, to_s, end_reason, launch, pool, instance_type, market, usd_per_hour)"
                " SELECT ?1, node, 'ended', ?2, ?3, ?3, ?4, ?4, ?4, 'it had no lease',"
                " launch, pool, instance_type, market, usd_per_hour FROM leases WHERE id = ?5"
                " ON CONFLICT (id) DO UPDATE"
                " SET made_s = ?3, from_s = ?3, committed_until_s = ?4, changed_s = ?4, to_s = ?4",
                (id, instance_id, from_s, now_s, like.id),
            )
            self.rate(id, 0.0, account, usd_per_hour)
        return True

    def backdate(self, seconds: float) -> None:
        """Every lease that is paid for now began that much earlier, and ends that much earlier."""
        self._db.execute(
            "UPDATE leases SET from_s = from_s - ?1, committed_until_s = committed_until_s - ?1"
            " WHERE from_s IS NOT NULL AND state NOT IN ('terminated', 'ended')",
            (seconds,),
        )
        self._db.execute("UPDATE leases SET changed_s = changed_s - ? WHERE state = 'requested'", (seconds,))
        self._db.execute("UPDATE intents SET made_s = made_s - ? WHERE state IN ('open', 'unknown')", (seconds,))

    # ---- what happened
    def event(
        self, kind: str, text: str, now_s: float, *, launch: str = "", lease: str = "", job: int | None = None
    ) -> None:
        """Something happened. `kind`: one word; `text`: for people."""
        self._insert("events", at_s=now_s, kind=kind, launch=launch, lease=lease, job=job, text=text)

    def events(self, since_s: float = 0.0, after: int = 0) -> list[EventRow]:
        """From a moment on, or written after a mark (a clock may have been put back), the oldest first."""
        query = f"{_EVENTS} WHERE at_s >= ? AND id > ? ORDER BY at_s, id"
        return [EventRow(**row) for row in self._rows(query, since_s, after)]

    def last_event(self) -> int:
        """A mark for `events`; 0: there is none yet."""
        return int(self._rows("SELECT coalesce(max(id), 0) AS id FROM events")[0]["id"])

    def events_of(self, job: int, launches: Iterable[str]) -> list[EventRow]:
        """Those of a job and of launches."""
        wanted = [job, *launches]
        query = f"{_EVENTS} WHERE job = ? OR launch IN ({_marks(wanted[1:])}) ORDER BY id"
        return [EventRow(**row) for row in self._rows(query, *wanted)]

    def forget_before(self, at_s: float) -> None:
        """Jobs that had left the queue by then, with what was decided for them, events, and use of GPUs; but not jobs
        that had leases, nor events of launches and leases.
        """
        with self.transaction():
            had_leases = "(SELECT job FROM assignments)"
            gone = "DELETE FROM jobs WHERE state = 'LEFT_QUEUE' AND last_s < ?"
            self._db.execute(f"{gone} AND job NOT IN {had_leases}", (at_s,))
            self._db.execute("DELETE FROM decisions WHERE last_s < ? AND job NOT IN (SELECT job FROM jobs)", (at_s,))
            self._db.execute("DELETE FROM events WHERE at_s < ? AND launch = '' AND lease = ''", (at_s,))
            self._db.execute("DELETE FROM gpu_use WHERE last_s < ?", (at_s,))

    def note(self, key: str, value: str) -> None:
        """Keep a value under a key; it replaces the one before."""
        self._insert("meta", "key", key=key, value=value)

    def noted(self, key: str) -> str | None:
        """The value of a key; None: there is none."""
        rows = self._rows("SELECT value FROM meta WHERE key = ?", key)
        return rows[0]["value"] if rows else None


def _marks(values: Sequence[object]) -> str:
    """Of a list in SQL, which PostgreSQL wants not empty."""
    return ",".join("?" * len(values)) or "NULL"
