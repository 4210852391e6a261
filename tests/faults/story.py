"""A site in memory whose jobs go a lease's whole way, and the faults that meet it there.

The real controller, ledger and document reader; Slurm, EC2 and the rented nodes are tests.fakes, with the nodes' own
dead man's switch. `Story.reach` goes to a stage of the way, a fault happens, and `Story.end` plays to the end as
`ironburst run` would: nothing that a tick raises ends it.
"""

from __future__ import annotations

import sqlite3
from dataclasses import replace

from ironburst import document as documents
from ironburst.controller import records
from ironburst.controller.ledger import Ledger, LedgerError
from ironburst.controller.lock import LockedError
from ironburst.controller.loop import said
from ironburst.controller.ownership import OwnedElsewhere
from ironburst.controller.recorder import Recorder
from ironburst.controller.tick import Controller
from ironburst.document import DocumentError, Reader
from ironburst.ports import CloudError, OutcomeUnknown, Refused, SchedulerError
from tests.fakes import FakeClock, FakeCloud, FakeSlurm, document

HOUR = 3600.0
NODES = [f"p5-{n}" for n in range(1, 7)]
MISSED = (SchedulerError, CloudError, DocumentError, LockedError, LedgerError, OwnedElsewhere, sqlite3.Error)
CLOUD_CALLS = {
    *("image_id", "launch", "launch_all", "instances", "described", "by_token", "console", "terminate"),
    *("troubles", "interruptions", "acknowledge"),
}
SLURM_CALLS = {
    *("observe", "claim", "put_permit", "remove_permit", "admit", "power_up", "resume", "drain", "release"),
    *("abandon", "heal", "place", "requeue", "limit", "beat"),
}


class Cloud(FakeCloud):
    """`fails`: what every call raises for now."""

    fails: CloudError | None = None

    def __getattribute__(self, name):
        if name in CLOUD_CALLS and (error := object.__getattribute__(self, "fails")):
            raise error
        return super().__getattribute__(name)


class Slurm(FakeSlurm):
    """`out_of_reach`: no command gets an answer; its own life, and its nodes', go on."""

    out_of_reach = False

    def __getattribute__(self, name):
        if name in SLURM_CALLS and object.__getattribute__(self, "out_of_reach"):
            raise SchedulerError("Unable to contact slurm controller (connect failure)")
        return super().__getattribute__(name)


class Story:
    """Two jobs fill the hall; a gang and a single job, both may be requeued, are rented for."""

    tick_s, cloud_of, burst = 10.0, Cloud, {"burst-p5": NODES}
    runs_s = (2400.0, 900.0, 700.0)  # at home, the gang, the single one

    def __init__(self, folder, clock=None, ledger=None):
        folder.mkdir(exist_ok=True)
        self.folder, self.path = folder, ledger or folder / "ledger.sqlite"
        self.clock = clock or FakeClock()
        self.slurm = Slurm(self.clock, home=2, burst=self.burst)
        self.cloud = self.cloud_of(self.clock, self.slurm)
        self.cloud.boot_s = 90.0
        declared = document(nodes=NODES, boot_s=300, tick_s=10, idle_s=120, dead_man_s=1800, cool_down_s=60)
        self.document = documents.publish(self.declared(declared), folder / "document.json")
        self.read = Reader(folder / "document.json", folder / "last-good.json")
        self.stopped = False  # nobody could start the controller
        self.missed: list[str] = []  # why ticks didn't happen
        self.later: list[tuple[float, object]] = []  # (when, what)
        self.start()
        home_s, gang_s, single_s = self.runs_s
        self.home = [self.slurm.submit(limit_s=2 * HOUR, runs_s=home_s) for _ in range(2)]
        self.gang = self.slurm.submit(nodes=2, limit_s=HOUR, runs_s=gang_s)
        self.single = self.slurm.submit(limit_s=HOUR, runs_s=single_s)

    def declared(self, document):
        """What is published."""
        return document

    def start(self):
        """A new process of the controller."""
        self.stopped = True
        self.ledger = Ledger(self.path)
        if not self.ledger.shared:
            self.ledger._db.execute("PRAGMA synchronous=OFF")  # no power cut here; four times as fast
            self.ledger._db.execute("PRAGMA busy_timeout=0")
        recorder = Recorder(self.path.with_name("ticks"))
        self.controller = Controller(self.slurm, self.cloud, self.ledger, self.clock, recorder)
        self.stopped = False

    def restart(self):
        self.ledger.close()
        self.start()

    def after(self, seconds, what):
        self.later.append((self.clock.at + seconds, what))

    # ---- time
    def tick(self):
        for due in [each for each in self.later if each[0] <= self.clock.at]:
            self.later.remove(due)
            due[1]()
        before = self.clock.at
        if self.stopped:
            self.slurm.live()
            self.clock.at = before + self.tick_s
            return
        try:
            self.controller.tick(self.read())
            if self.read.stale:
                self.controller.tell("stale", self.read.stale)
        except MISSED as error:
            self.missed.append(said(error))
            self.controller.tell("trouble", str(error))
            self.slurm.live()
        self.clock.at = max(self.clock.at, before + self.tick_s)

    def states(self):
        return {lease.state for lease in self.ledger.leases()}

    def on_rented(self):
        """Rented nodes with jobs."""
        burst = {node for nodes in self.burst.values() for node in nodes}
        return {node for fake in self.slurm.jobs.values() if not fake.done for node in fake.job.on} & burst

    def reach(self, stage):
        """Go on until the way is there; AssertionError if it never is."""
        end = self.clock.at + 4 * HOUR
        while not STAGES[stage](self):
            assert self.clock.at < end, f"never {stage}: {self.states()}, {self.told()[-8:]}"
            self.tick()
        return self

    def end(self, limit_s=8 * HOUR):
        """Until all jobs are done, nothing is rented, and what comes later has come."""
        end = self.clock.at + limit_s
        while self.later or self.cloud.alive() or not self.done() or self.ledger.leases():
            assert self.clock.at < end, f"no end: {self.jobs()}, {self.states()}, {self.told()[-12:]}"
            if not (self.later or self.cloud.alive() or self.ledger.leases()):
                self._skip()
            self.tick()
        for _ in range(3):
            self.tick()  # the next ones carry on
        return self

    def _skip(self):
        """Nothing is rented or waits: a tick before a job at home ends is the next in which there is anything to do."""
        ends = [fake.ends for fake in self.slurm.jobs.values() if not fake.done]
        if all(ends):
            self.clock.at = max(self.clock.at, min(ends, default=0.0) - self.tick_s)

    # ---- what counts
    def done(self):
        return all(fake.done for fake in self.slurm.jobs.values())

    def jobs(self):
        return {id: self.slurm.state(id) for id in self.slurm.jobs}

    def told(self):
        """Everything that a person can read of it."""
        return ([] if self.stopped else [event.text for event in self.ledger.events()]) + self.missed

    def instances_of(self, *states):
        leases = [lease for lease in self.ledger.leases() if not states or lease.state in states]
        return [lease.instance_id for lease in leases if lease.instance_id]

    def check(self, cancelled=(), again=()):
        """0 jobs lost, 0 run twice but those of `again`, 0 instances left, 0 launched twice."""
        wanted = {id: "CANCELLED" if id in cancelled else "COMPLETED" for id in self.slurm.jobs}
        assert self.jobs() == wanted, self.told()[-12:]
        twice = {id for id, fake in self.slurm.jobs.items() if len(fake.started) > 1}
        assert twice <= set(again), self.told()[-12:]
        assert self.cloud.alive() == [] and self.ledger.leases() == [] and self.slurm.permits == set()
        tokens = [fake.instance.token for fake in self.cloud.all.values()]
        assert all(tokens.count(token) == self.cloud.tokens[token][0].count for token in tokens)
        rented = [node for name, node in self.slurm.nodes.items() if name.startswith("p5")]
        assert all("DRAIN" in node.states for node in rented), "a powered-down node without a lease takes no job"


STAGES = {
    "queued": lambda story: story.slurm.jobs[story.gang].job.pending and not story.ledger.leases(),
    "booting": lambda story: records.LAUNCHED in story.states(),
    "running": lambda story: len(story.on_rented()) >= 3,
    "idle": lambda story: story.slurm.state(story.single) == "COMPLETED" and records.READY in story.states(),
    "leaving": lambda story: story.states() & {records.RELEASING, records.TERMINATED},
    "given back": lambda story: story.slurm.state(story.gang) == "COMPLETED" and not story.ledger.leases(),
}


def expired():
    return Refused("The security token included in the request is expired", "ExpiredToken")


def silent_cloud():
    return OutcomeUnknown("Could not connect to the endpoint URL")


def changed(story, job, **values):
    fake = story.slurm.jobs[job]
    fake.job = replace(fake.job, **values)
