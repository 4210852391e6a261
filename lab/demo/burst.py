"""Step 4: a real trace is submitted to Slurm, and the controller rents for what is worth it, through two faults."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ironburst.controller.ledger import Ledger, LedgerError
from ironburst.controller.records import LeaseRow
from ironburst.nodes import naming
from lab.demo import boot, service, trace
from lab.demo.cloud import room_of
from lab.demo.inside import Boxed, Inside
from lab.system import LabError, wait_for

LIMIT_S = 420
SUBMIT_FOLDER = "/shared/alice"


@dataclass
class Faults:
    """What went wrong on purpose."""

    refusals_expected: str
    interrupted: str | None = None
    """instance id of the spot instance that was taken back"""


@dataclass
class Submitted:
    """Slurm's id of each trace job, and when (seconds since 1970) the first was submitted."""

    began: float
    ids: dict[str, int] = field(default_factory=dict)


class Head:
    """The head node, as an ordinary user and as an administrator see it."""

    def __init__(self, inside: Inside):
        self.inside = inside

    def root(self, line: str) -> str:
        return self.inside.run([*self.inside.head_prefix(), line])

    def alice(self, line: str, stdin: str | None = None) -> str:
        command = f"cd {SUBMIT_FOLDER} && exec runuser -u alice -- sh -c {shlex.quote(line)}"
        return self.inside.run([*self.inside.head_prefix(), command], stdin=stdin or "")

    def submit(self, job: trace.TraceJob) -> int:
        return int(self.alice("sbatch --parsable", stdin=trace.script(job)))

    def queue(self) -> dict[int, str]:
        """State of every job that Slurm still has in its queue; tasks of arrays one by one, by ironburst's ids."""
        lines = self.root("squeue -h -r -t all -o '%i %T'").split("\n")
        return {naming.id_of(job): state for job, state in (line.split() for line in lines if line)}


def run(inside: Inside, say: Callable[[str], None]) -> tuple[Submitted, Faults, boot.Boot | None]:
    """Submit the slice, let the controller work, take one spot instance back; returns when all jobs and leases have
    ended.
    """
    sell(inside)
    service.install(inside)
    service.start(inside, "controller")
    say("the controller runs on the head: its own user, a sandboxed unit, administrator in Slurm's accounting")
    ledger = wait_for(lambda: open_ledger(inside), 30, "the controller (see controller.log)")
    jobs, head, faults = trace.jobs(), Head(inside), refused_first(inside)
    hour = f"{3600 / trace.COMPRESSION:.0f} s"
    say(f"{len(jobs)} jobs of the Philly trace (CC-BY-4.0), one hour of it in {hour}, submitted by alice with sbatch")
    submitted, todo = Submitted(began=time.time()), list(jobs)
    told: set[str] = set()
    came_up = None
    while True:
        now = time.time() - submitted.began
        if now > LIMIT_S:
            raise LabError(f"the burst did not end within {LIMIT_S} s: {_unfinished(head, ledger)}; see controller.log")
        while todo and todo[0].submit_s <= now:
            job = todo.pop(0)
            submitted.ids[job.name] = head.submit(job)
        tell(ledger, told, submitted, say)
        if came_up is None and (came_up := boot.measure(inside, ledger)):  # before it may be taken back
            say(came_up.text())
        if faults.interrupted is None:
            faults.interrupted = _interrupt_one(inside, head, ledger, say)
        states = head.queue()
        if not todo and all(over(states.get(id)) for id in submitted.ids.values()) and not ledger.leases():
            say("every job has ended and every lease is given back")
            return submitted, faults, came_up
        time.sleep(0.3)


def sell(inside: Boxed) -> None:
    """What the world of this cloud has."""
    for room in inside.cloud.rooms:
        kind = room.instance_type
        for (zone, market), count in room.capacity.items():
            room.control(inside, "POST", "/lab/capacity", instance_type=kind, zone=zone, market=market, count=count)


def refused_first(inside: Boxed) -> Faults:
    """What the capacity leads to."""
    room = inside.cloud.rooms[0]
    zone, market = next(place for place, count in room.capacity.items() if not count)
    return Faults(f"{room.no_capacity} for {market} in {zone}")


def take_back(inside: Boxed, lease: LeaseRow, meanwhile: str, say: Callable[[str], None]) -> None:
    """The cloud ends a spot instance, after its notice."""
    room = room_of(inside.cloud, lease.instance_type)
    room.control(inside, "POST", "/lab/interrupt", instance_id=lease.instance_id, notice_s=room.notice_s)
    say(f"{room.name} takes {lease.node} back (spot interruption, {room.notice_s:g} s notice) {meanwhile}")


def open_ledger(inside: Boxed) -> Ledger | None:
    """The controller's ledger, as soon as it has made it."""
    try:
        return Ledger(inside.ledger, read_only=True)
    except LedgerError:
        return None


def arguments(inside: Boxed) -> list[str]:
    return ["--document", str(inside.document), "--ledger", str(inside.ledger)]


def over(state: str | None) -> bool:
    return state is None or state in ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY")


def _interrupt_one(inside: Inside, head: Head, ledger: Ledger, say: Callable[[str], None]) -> str | None:
    """Take back the first spot instance on which a job has been running."""
    for lease in ledger.leases():
        if lease.market == "spot" and lease.state == "ready" and lease.instance_id:
            on_it = head.root(f"squeue -h -t running -w {lease.node} -o %j").split()
            if on_it:
                take_back(inside, lease, f"while {', '.join(on_it)} runs on it", say)
                return lease.instance_id
    return None


RENTING = ("rent", "refused", "launched", "widened")
ENDING = ("interrupted", "requeued", "release", "terminated")
SPOKEN = {*RENTING, *ENDING, "given_up", "needs_a_person", "trouble"}


def tell(ledger: Ledger, told: set[str], submitted: Submitted, say: Callable[[str], None]) -> None:
    """Say what the controller wrote down since the last look."""
    names = {id: name for name, id in submitted.ids.items()}
    for event in ledger.events(submitted.began - 1):
        key = json.dumps([event.at_s, event.kind, event.text])
        if event.kind in SPOKEN and key not in told:
            told.add(key)
            job = f" ({names[event.job]})" if event.job in names else ""
            say(f"{event.kind}: {event.text}{job}")


def _unfinished(head: Head, ledger: Ledger) -> str:
    jobs = [f"job {id} {state}" for id, state in head.queue().items() if not over(state)]
    leases = [f"lease {lease.node} {lease.state}" for lease in ledger.leases()]
    return ", ".join(jobs + leases) or "nothing is left"
