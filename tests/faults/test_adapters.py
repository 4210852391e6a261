"""Each fault at each place of a rented node's way: no job is lost or runs twice, nothing is left in the cloud, nothing
is launched twice, the next ticks carry on, and one sentence says what happened.

A job runs again only where the fault takes a node from under it; which faults do is said beside each. Crashes between
any two steps: test_crashes.py. The same on a live Slurm: tests/lab.
"""

import json
import re
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from ironburst.controller.ledger import Ledger, LedgerError
from ironburst.controller.tick import Controller
from ironburst.ports import InsufficientCapacity, OutcomeUnknown, QuotaReached, Throttled, TokenMismatch
from tests.faults.story import STAGES, Story, changed, expired, silent_cloud

RENTED = ("booting", "running", "idle", "leaving")
EVERY = tuple(STAGES)
MINUTE = 60.0


@dataclass(frozen=True)
class Fault:
    """`happens` at a stage. `says`: what a person can read of it, at the stages in `tells` (None: at each); elsewhere
    it does nothing that anybody could notice. `again`: it takes nodes from under jobs, so these run again. `fast`: the
    stage that `make test` tries.
    """

    happens: Callable[[Story], None]
    says: str
    stages: tuple[str, ...] = EVERY
    tells: tuple[str, ...] | None = None
    again: bool = False
    cancels: bool = False
    fast: str = "running"


# ---- the cloud


def launches_fail(*errors):
    def happens(story):
        story.cloud.errors = list(errors)

    return happens


def cloud_fails(error, seconds):
    def happens(story):
        story.cloud.fails = error()
        story.after(seconds, lambda: setattr(story.cloud, "fails", None))

    return happens


def lost_answers(story):
    story.cloud.lost_answers = 2


def no_capacity(story):
    places = [(zone, market) for zone in ("us-east-1a", "us-east-1b") for market in ("spot", "on-demand")]
    story.cloud.capacity = dict.fromkeys(places, 0)
    story.after(10 * MINUTE, story.cloud.capacity.clear)


def capacity_for_one(story):
    """The gang of two gets nothing, rather than a half."""
    places = [(zone, market) for zone in ("us-east-1a", "us-east-1b") for market in ("spot", "on-demand")]
    story.cloud.capacity = dict.fromkeys(places, 1)
    story.after(10 * MINUTE, story.cloud.capacity.clear)


def partial_lists(story):
    story.cloud.partial = [1, 0, 1, 0]


def not_listed(story):
    """EC2 shows what it launched late."""
    story.cloud.hidden = set(story.cloud.all)
    story.after(4 * MINUTE, story.cloud.hidden.clear)


def spot_notice(story):
    for instance in story.cloud.alive():
        if story.cloud.tokens[instance.token][0].market == "spot":
            story.cloud.interrupt(instance.id)
            story.after(2 * MINUTE, lambda id=instance.id: story.cloud.alive() and _dies(story, id))


def _dies(story, id, reason="Server.SpotInstanceTermination"):
    if story.cloud.all[id].instance.alive:
        story.cloud.die(id, reason)


def ends_outside(reason):
    def happens(story):
        for instance in story.cloud.alive():
            story.cloud.die(instance.id, reason)

    return happens


def never_joins(story):
    """Its gate fails, so slurmd doesn't start: wrong GPU count, bad image, no way to the head. Mended after 20 min."""
    story.slurm.gate_fails |= set(story.slurm.nodes)

    def mended():
        story.slurm.gate_fails.clear()
        story.ledger.reopen("p5")

    story.after(20 * MINUTE, mended)


def wrong_type(story):
    story.cloud.types = {zone.place.launch_template_id: "p5.48xlarge" for zone in story.document.pools[0].zones}
    story.cloud.wrong_type = "p4d.24xlarge"

    def mended():
        story.cloud.wrong_type = ""
        story.ledger.reopen("p5")

    story.after(10 * MINUTE, mended)


def link_down(seconds):
    """The rented nodes don't answer, and are there again; after SlurmdTimeout (300 s) Slurm holds them for dead."""

    def happens(story):
        nodes = [node for name, node in story.slurm.nodes.items() if name.startswith("p5") and node.address]
        for node in nodes:
            node.states |= {"NOT_RESPONDING"}

        def dead():
            for node in nodes:
                if "NOT_RESPONDING" in node.states and node.address:
                    node.states = (node.states - {"IDLE"}) | {"DOWN"}
                    node.adds("Not responding", story.clock.now())
                    for job in story.slurm._on(node.name):
                        story.slurm._requeued(job)

        def back():
            for node in nodes:
                node.states -= {"NOT_RESPONDING"}

        if seconds > 300:
            story.after(300, dead)
        story.after(seconds, back)

    return happens


# ---- the controller


def restarted(story):
    story.restart()


def ledger_gone(story):
    story.ledger.close()
    for path in story.folder.glob("ledger.sqlite*"):
        path.unlink()
    story.start()


def ledger_truncated(story):
    """Half of it is there after a power cut; a person takes it away after 5 minutes, as docs/how-to/ledger.md says."""
    story.ledger.close()
    whole = story.path.read_bytes()
    story.path.write_bytes(whole[: len(whole) // 2])
    try:
        story.start()
    except LedgerError as error:
        story.missed.append(str(error))
        story.stopped = True
    story.after(5 * MINUTE, lambda: ledger_gone(story))


def ledger_locked(story):
    other = sqlite3.connect(story.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    story.after(5 * MINUTE, other.close)


class Full:
    """A ledger's file on a disk that is full."""

    def __init__(self, db):
        self.db = db

    def execute(self, sql, *values):
        if sql.lstrip().startswith(("INSERT", "UPDATE")):
            raise sqlite3.OperationalError("database or disk is full")
        return self.db.execute(sql, *values)

    def __getattr__(self, name):
        return getattr(self.db, name)


def disk_full(story):
    ledger, db = story.ledger, story.ledger._db
    ledger._db = Full(db)
    story.after(5 * MINUTE, lambda: setattr(ledger, "_db", db))


def document_changes(change, seconds=10 * MINUTE):
    def happens(story):
        path = story.folder / "document.json"
        before = path.read_text()
        change(path)
        story.after(seconds, lambda: path.write_text(before))

    return happens


def older_serial(path):
    path.write_text(json.dumps(json.loads(path.read_text()) | {"serial": 0}))


def newer_version(path):
    path.write_text(json.dumps(json.loads(path.read_text()) | {"version": 99}))


def clock(seconds):
    def happens(story):
        story.clock.ahead_s = seconds
        story.after(10 * MINUTE, lambda: setattr(story.clock, "ahead_s", 0.0))

    return happens


def second_controller(story):
    rival = Controller(story.slurm, story.cloud, Ledger(story.folder / "rival.sqlite"), story.clock)

    def ticks():
        try:
            rival.tick(story.document)
        except Exception as error:
            story.missed.append(str(error))

    for n in range(12):
        story.after(n * 10 + 1, ticks)


# ---- Slurm


def slurm_away(seconds):
    def happens(story):
        story.slurm.out_of_reach = True
        story.after(seconds, lambda: setattr(story.slurm, "out_of_reach", False))

    return happens


def slurm_slow(story):
    """Each command takes 20 s: a tick is longer than its interval."""
    story.slurm.call_s = 20.0
    story.after(10 * MINUTE, lambda: setattr(story.slurm, "call_s", 0.0))


def cancelled(story):
    for job in (story.gang, story.single):
        if not story.slurm.jobs[job].done:
            story.slurm.cancel(job)


def requeued(story):
    """By their user."""
    for job in (story.gang, story.single):
        if story.slurm.jobs[job].job.on:
            story.slurm.requeue(job)


def held(story):
    for job in (story.gang, story.single):
        if story.slurm.jobs[job].job.pending:
            story.slurm.change(job, held=True)
            story.after(15 * MINUTE, lambda job=job: story.slurm.change(job, held=False))


def shorter(story):
    """Their user lowers the time limit while they wait or run."""
    for job in (story.gang, story.single):
        if not story.slurm.jobs[job].done:
            changed(story, job, time_limit_s=1800.0)


def drained_by_admin(story):
    """Until it is looked at, half an hour later."""
    leased = {lease.node for lease in story.ledger.leases()}
    for node in (story.slurm.nodes[name] for name in leased):
        node.states |= {"DRAIN"}
        node.reason, node.reason_by = "fan 3 rattles", "root"

    def looked_at():
        for node in story.slurm.nodes.values():
            if node.reason.endswith("fan 3 rattles"):
                node.reason = node.reason_by = ""
                node.states -= {"DRAIN"} if node.address else set()

    story.after(30 * MINUTE, looked_at)


FAULTS = {
    "launch: throttled": Fault(
        launches_fail(*[Throttled("Request limit exceeded.", "RequestLimitExceeded")] * 4), "Request limit", ("queued",)
    ),
    "launch: no answer, and it happened": Fault(lost_answers, "no answer", ("queued",)),
    "launch: no answer, and it didn't happen": Fault(
        launches_fail(OutcomeUnknown("Read timeout"), OutcomeUnknown("Read timeout")), "Read timeout", ("queued",)
    ),
    "launch: the token was used with other parameters": Fault(
        launches_fail(TokenMismatch("other parameters", "IdempotentParameterMismatch")), "other parameters", ("queued",)
    ),
    "launch: over the account's quota": Fault(
        launches_fail(QuotaReached("more vCPU capacity than your current limit", "VcpuLimitExceeded")),
        "vCPU",
        ("queued",),
    ),
    "launch: no capacity in the first zone": Fault(
        launches_fail(InsufficientCapacity("no capacity", "InsufficientInstanceCapacity")), "no capacity", ("queued",)
    ),
    "no capacity in any zone": Fault(no_capacity, "no capacity", tells=("queued",), fast="queued"),
    "capacity for a part of the gang": Fault(capacity_for_one, "no capacity", tells=("queued",), fast="queued"),
    "launch: another type than asked for": Fault(wrong_type, "p4d", ("queued",)),
    "lists that break off": Fault(partial_lists, "", tells=()),
    "lists that are late": Fault(not_listed, "", tells=()),
    "credentials expired for 20 min": Fault(cloud_fails(expired, 20 * MINUTE), "expired"),
    "the cloud's API is away for 1 min": Fault(cloud_fails(silent_cloud, MINUTE), "Could not connect"),
    "the cloud's API is away for 20 min": Fault(cloud_fails(silent_cloud, 20 * MINUTE), "Could not connect"),
    "spot notice": Fault(spot_notice, "taken back|interrupt|notice|spot", RENTED, ("booting", "running"), again=True),
    "an instance is ended by somebody else": Fault(
        ends_outside("Client.UserInitiatedShutdown"), "UserInitiatedShutdown|ended|gone", RENTED, again=True
    ),
    "an instance's hardware dies": Fault(
        ends_outside("Server.InternalError"), "InternalError|ended|gone", RENTED, again=True
    ),
    "nodes never join": Fault(
        never_joins, "didn't join|not joined|did not", tells=("queued", "booting"), fast="booting"
    ),
    "the link is down for 1 min": Fault(link_down(MINUTE), "", RENTED, tells=()),
    "the link is down for 20 min": Fault(
        link_down(20 * MINUTE), "Not responding|lost|DOWN|dead", RENTED, ("running",), again=True
    ),
    "the controller is killed": Fault(restarted, "", tells=()),
    "the ledger is gone": Fault(ledger_gone, "lease again|had no lease|carried over", tells=("running",)),
    "the ledger is truncated": Fault(ledger_truncated, "malformed|can't be used as a ledger"),
    "the ledger is locked by another process": Fault(ledger_locked, "locked"),
    "the disk is full": Fault(disk_full, "disk is full"),
    "the document is gone": Fault(document_changes(lambda path: path.unlink()), "counts on|no ClusterDocument"),
    "the document is damaged": Fault(
        document_changes(lambda path: path.write_text("{")), "counts on|can't be read as JSON"
    ),
    "the document is an older one": Fault(document_changes(older_serial), "older than", tells=EVERY[1:]),
    "the document is of a newer version": Fault(document_changes(newer_version), "version 99"),
    "the clock is an hour ahead": Fault(clock(3600.0), "expired|clock"),
    "the clock is an hour behind": Fault(clock(-3600.0), "expired|clock"),
    "a second controller with another ledger": Fault(second_controller, "holds|another controller|owner"),
    "slurmctld is away for 1 min": Fault(slurm_away(MINUTE), "Unable to contact"),
    "slurmctld is away for 20 min": Fault(slurm_away(20 * MINUTE), "Unable to contact"),
    "Slurm is slow": Fault(slurm_slow, "", tells=()),
    "the jobs are cancelled": Fault(
        cancelled, "need it no more", ("queued", "booting", "running"), ("booting",), cancels=True
    ),
    "the jobs are requeued by their user": Fault(requeued, "", ("running",), tells=(), again=True),
    "the jobs are held for a while": Fault(held, "", ("queued", "booting"), tells=(), fast="booting"),
    "the jobs' limits are lowered": Fault(shorter, "", ("queued", "booting", "running"), tells=()),
    "an administrator drains the rented nodes": Fault(drained_by_admin, "", RENTED, tells=()),
}
CASES = [
    pytest.param(name, stage, id=f"{name}, {stage}", marks=[] if stage == at else [pytest.mark.slow])
    for name, fault in FAULTS.items()
    for at in [fault.fast if fault.fast in fault.stages else fault.stages[0]]
    for stage in fault.stages
]


@pytest.mark.parametrize(("name", "stage"), CASES)
def test_a_fault_costs_no_job_no_node_and_no_dollar_unseen(tmp_path, name, stage):
    fault, story = FAULTS[name], Story(tmp_path).reach(stage)
    before = len(story.told())
    fault.happens(story)
    story.end()
    mine = (story.gang, story.single)
    gone = [job for job in mine if story.slurm.state(job) == "CANCELLED"]
    assert bool(gone) == fault.cancels
    story.check(cancelled=gone, again=mine if fault.again else ())
    if stage in (fault.stages if fault.tells is None else fault.tells):
        told = story.told()[before:] if "ledger" not in name else story.told()
        assert any(re.search(fault.says, text) for text in told), told


def test_there_are_as_many_cases_as_were_asked_for():
    assert len(CASES) >= 120
