"""The controller with in-memory ports: a whole site in which time passes only when a test lets it."""

import itertools

from ironburst.controller.ledger import Ledger
from ironburst.controller.recorder import Recorder, ticks
from ironburst.controller.tick import Controller
from tests.fakes import Breaking, FakeClock, FakeCloud, FakeSlurm, document


class World:
    """A site, its controller, and time that passes only here."""

    def __init__(self, tmp_path, home=2, ledger=None, **burst):
        self.path, self.document = ledger or tmp_path / "ledger.sqlite", document(**burst)
        self.clock = FakeClock()
        self.make(home)
        self.start()

    def make(self, home):
        """Slurm and the cloud."""
        self.slurm = FakeSlurm(self.clock, home=home)
        self.cloud = FakeCloud(self.clock, self.slurm)

    def start(self, **breaking):
        counter = itertools.count(1)
        slurm, cloud = (Breaking(port, counter, **breaking) if breaking else port for port in (self.slurm, self.cloud))
        self.ledger = Ledger(self.path)
        if not self.ledger.shared:
            self.ledger._db.execute("PRAGMA synchronous=OFF")  # no power cut in these tests; four times as fast
        self.controller = Controller(slurm, cloud, self.ledger, self.clock, Recorder(self.path.with_name("ticks")))
        return counter

    def tick(self, times=1):
        for _ in range(times):
            before = self.clock.now()
            report = self.controller.tick(self.document)
            self.clock.at = max(self.clock.at, before + self.document.burst.tick_s)
        return report

    def until(self, condition, limit_s=3600.0, every_s=None):
        """Tick until the condition holds, at most so often (a wait of hours: each half minute); fails at the limit."""
        end = self.clock.now() + limit_s
        every_s = every_s if every_s is not None else 30.0 if limit_s > 3600 else 0.0
        while not condition():
            assert self.clock.now() < end, (
                f"not within {limit_s} s; leases {self.states()}, events {self.events()[-8:]}"
            )
            self.pass_by(every_s)

    def pass_by(self, seconds, every_s=None):
        """Tick for so long, at most so often; at least once."""
        end = self.clock.now() + seconds
        while True:
            before = self.clock.now()
            self.tick()
            self.clock.at = max(self.clock.at, min(end, before + (seconds if every_s is None else every_s)))
            if self.clock.now() >= end:
                return

    def rounds(self):
        """The recorded ticks."""
        return list(ticks(self.path.with_name("ticks")))

    def states(self):
        return [lease.state for lease in self.ledger.leases()]

    def events(self, kind=None):
        return [event.text for event in self.ledger.events() if kind in (None, event.kind)]

    def quiet(self):
        """Nothing is rented, nothing is left over, nothing waits."""
        return (
            not self.ledger.leases()
            and not self.cloud.alive()
            and not any(j.job.pending or j.job.on for j in self.slurm.jobs.values() if not j.done)
        )

    def fill_home(self, limit_s=7200.0):
        return self.slurm.submit(
            nodes=len([n for n in self.slurm.nodes.values() if "home" in n.partitions]), limit_s=limit_s, runs_s=limit_s
        )
