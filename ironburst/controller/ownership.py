"""Who controls a site. Every ledger has an id; its controller says it on the scheduler's host at each tick, with what
the next one would have to know if the ledger were lost, and puts it on its instances as a tag.

The lock beside the ledger keeps two processes from one ledger; this keeps two ledgers from one site.
"""

from __future__ import annotations

import json
import secrets
import socket
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

from ironburst.controller import money, records, spending
from ironburst.controller.ledger import Ledger
from ironburst.controller.lock import LockedError
from ironburst.controller.money import Spent
from ironburst.controller.site import Site
from ironburst.ports import Claim

STALE_S = 600.0  # a controller that said nothing for so long is gone: another may take its site over
_KEY, _SAID, _PLACE = "owner", "said_s", "place"
_PREDECESSORS = 10
_MOST_RUNNING = 100_000  # characters: what is said is one argument of a command, of which the kernel takes 128 KiB


class OwnedElsewhere(LockedError):
    """Another controller controls this site: nothing may be done; the text says who, and what to do."""


@dataclass(frozen=True)
class Owner:
    """A ledger as the owner of a site."""

    id: str
    since_s: float | None = None  # it has held the site since; None: it never has
    before: tuple[str, ...] = ()  # whose site it took over, the newest last


class Running(NamedTuple):
    """What a controller says of an instance that it pays for, or asked for without an answer."""

    instance: str  # empty: there was no answer
    account: str
    usd_per_hour: float
    until_s: float  # money is set aside until then
    launch: str = ""
    asked_s: float | None = None  # a call without an answer: when it was made; that isn't in what was spent
    # of its lease, for whoever can't see it; an ironburst of before wrote none of these
    node: str = ""
    pool: str = ""
    zone: str = ""
    market: str = ""
    instance_type: str = ""
    from_s: float | None = None
    state: str = ""


_OF_LEASE = ("node", "pool", "zone", "market", "instance_type", "from_s", "state")


@dataclass(frozen=True)
class Said:
    """What a controller writes down at a tick, for the next one."""

    at_s: float = 0.0
    host: str = ""
    boot: str = ""
    ledger: str = ""
    before: tuple[str, ...] = ()
    spent: Spent = field(default_factory=Spent)
    running: tuple[Running, ...] = ()
    whole: bool = False  # `running` has all, with what their leases were
    stopped: bool = False  # it was told to stop, and does nothing more: another one need not wait

    def same_place(self, other: Said) -> bool:
        """The same ledger's path of the same running host: its lock is ours, so who wrote this has ended."""
        return bool(self.boot) and (self.boot, self.host, self.ledger) == (other.boot, other.host, other.ledger)


def owner_of(ledger: Ledger) -> Owner:
    """The ledger's id, which it gets here if it has none."""
    said = json.loads(ledger.noted(_KEY) or "null")
    if said is None:
        said = {"id": secrets.token_hex(6)}
        ledger.note(_KEY, json.dumps(said))
    return Owner(**said | {"before": tuple(said.get("before", ()))})


def claim(site: Site, *, first: bool) -> Said | None:
    """Claim the site. The `first` claim of a process writes no figures yet, and keeps those that were written (`say`
    follows). Returns what was written that this ledger may not know: by another owner, or since this ledger was copied.
    Raises OwnedElsewhere, or SchedulerError.
    """
    owner, now = _here(site.ledger) if first else owner_of(site.ledger), site.now
    before = site.scheduler.claim(owner.id, "" if first else _words(site, owner), STALE_S)
    heard, foreign = heard_of(before), before.owner not in ("", owner.id)
    if foreign and before.age_s <= STALE_S:
        if not (heard.stopped or heard.same_place(_said(site, owner))):
            raise OwnedElsewhere(_held(before, heard))
        site.scheduler.claim(owner.id, "", -1.0)
    known_s = float(site.ledger.noted(_SAID) or 0.0)
    news = heard.at_s > known_s if before.owner in ("", owner.id, *owner.before) else True
    if before.owner != owner.id:
        known = [*owner.before, *heard.before, *([before.owner] if foreign else [])]
        owner = replace(owner, since_s=now, before=tuple(dict.fromkeys(known))[-_PREDECESSORS:])
        site.ledger.note(_KEY, json.dumps(asdict(owner)))
    if foreign:
        text = f"took the site over from controller {before.owner}, which said so {before.age_s:.0f} s ago"
        site.event("owner", text)
    return heard if news else None


def _here(ledger: Ledger) -> Owner:
    """The ledger's owner, as of this place. A ledger that was copied to another one is another owner, which has taken
    over from the first: else the two would not be told apart. The same path on the same host is the same place, and so
    is the same file: a container has a new host name at each start.
    """
    owner, path = owner_of(ledger), ledger.path.absolute()
    if ledger.shared:  # by heads that are one owner
        return owner
    here = {"host": socket.gethostname(), "path": str(path), "file": path.stat().st_ino}
    was = json.loads(ledger.noted(_PLACE) or "null")
    if was and (was["path"] != here["path"] or (was["host"] != here["host"] and was["file"] != here["file"])):
        owner = Owner(secrets.token_hex(6), before=(*owner.before, owner.id)[-_PREDECESSORS:])
        ledger.note(_KEY, json.dumps(asdict(owner)))
    if was != here:
        ledger.note(_PLACE, json.dumps(here))
    return owner


def say(site: Site, *, stopped: bool = False) -> None:
    """Say what the next one would have to know; `stopped`: that there may be a next one now. Raises SchedulerError."""
    owner = owner_of(site.ledger)
    site.scheduler.claim(owner.id, _words(site, owner, stopped=stopped), STALE_S)


def holder(site: Site) -> str:
    """Whose site it is, if another controller holds it now; this claims nothing. Raises SchedulerError."""
    now = site.scheduler.claim("", "", STALE_S)
    return now.owner if now.age_s <= STALE_S and now.owner != owner_of(site.ledger).id else ""


def heard_of(claim: Claim) -> Said:
    """What a claim says; nothing, if it can't be read."""
    try:
        said: dict[str, Any] = json.loads(claim.said)
        spent = Spent(**said.pop("spent"))
        running = tuple(Running(*each) for each in said.get("running", ()))
        known = {"before": tuple(said["before"]), "at_s": float(said["at_s"]), "spent": spent, "running": running}
        return Said(**said | known)
    except (ValueError, TypeError, KeyError, AttributeError):
        return Said()


def elsewhere(site: Site) -> set[str]:
    """Owners of instances of a cluster of this name that control another site: they launched while we held this one,
    and never held it themselves.
    """
    owner = owner_of(site.ledger)
    if owner.since_s is None:
        return set()
    ours = {"", owner.id, *owner.before}
    late = (each for each in site.instances.values() if each.launched_s > owner.since_s + records.CLOCK_S)
    return {instance.owner for instance in late} - ours


def _words(site: Site, owner: Owner, *, stopped: bool = False) -> str:
    said = _said(site, owner)
    rates = spending.rates(site.ledger, said.at_s)
    running, whole = _running(site, rates)
    said = replace(said, spent=spending.spent(site.ledger, rates, said.at_s), running=running, whole=whole)
    site.ledger.note(_SAID, repr(said.at_s))
    words = asdict(said) | {"stopped": True} if stopped else {k: v for k, v in asdict(said).items() if k != "stopped"}
    return json.dumps(words, separators=(",", ":"))  # an ironburst of before knows no `stopped`


def _running(site: Site, rates: money.Paid) -> tuple[tuple[Running, ...], bool]:
    """What runs or may run, as far as there is room for it, and whether that is all."""
    running, room = list[Running](), _MOST_RUNNING
    for lease in site.ledger.leases():
        rate = money.rates_of(lease, rates)[-1]
        of = (rate.account, rate.usd_per_hour, round(lease.committed_until_s))
        what: dict[str, Any] = {name: getattr(lease, name) for name in _OF_LEASE}
        if lease.instance_id and lease.to_s is None:
            each = Running(lease.instance_id, *of, **what)
        elif lease.state == records.REQUESTED:
            each = Running("", *of, lease.launch, lease.changed_s, **what)
        else:
            continue
        room -= len(json.dumps(each))
        if room < 0:
            return tuple(running), False
        running.append(each)
    return tuple(running), True


def _said(site: Site, owner: Owner) -> Said:
    path = str(site.ledger.path.absolute())
    return Said(site.now, socket.gethostname(), site.clock.uptime().boot, path, owner.before)


def _held(claim: Claim, said: Said) -> str:
    who = f"controller {claim.owner}" + (f" on {said.host} with the ledger {said.ledger}" if said.host else "")
    return (
        f"another controller holds this site: {who}, as it said {claim.age_s:.0f} s ago. Stop one of the two; "
        f"{STALE_S / 60:.0f} min after its last word this one takes the site over"
    )
