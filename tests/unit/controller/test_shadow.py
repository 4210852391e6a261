"""A controller in shadow decides as the real one until that one rents, and asks nothing of scheduler or cloud."""

from random import Random

import pytest

from ironburst.burst import to_json
from ironburst.controller.ledger import Ledger
from ironburst.controller.recorder import Recorder, ticks
from ironburst.controller.shadow import Shadow
from ironburst.nodes import naming
from tests.fakes import FakeClock, FakeSlurm, document
from tests.fakes.world import World

DAYS, TICKS = 40, 60


class Watched:
    """A scheduler that may be looked at only."""

    def __init__(self, slurm):
        self.observe = slurm.observe


class Shadowed:
    """A queue and its shadow, by itself."""

    def __init__(self, folder, home=2):
        self.clock, self.document = FakeClock(), document()
        self.slurm = FakeSlurm(self.clock, home=home)
        self.ledger = Ledger(folder / "shadow.sqlite")
        self.shadow = Shadow(Watched(self.slurm), self.ledger, self.clock)

    def restart(self):
        """As after a reboot: what it knows is in its ledger."""
        path = self.ledger.path
        self.ledger.close()
        self.ledger = Ledger(path)
        self.shadow = Shadow(Watched(self.slurm), self.ledger, self.clock)

    def tick(self, times=1):
        for _ in range(times):
            report = self.shadow.tick(self.document)
            self.clock.at += self.document.burst.tick_s
        return report


def arrives(rng, slurm):
    """Now and then a job of somebody's."""
    if rng.random() < 0.4:
        limit_s = rng.choice((600.0, 3600.0, 20_000.0, None))
        more = {"requeue": rng.random() < 0.5, "user": rng.choice(("alice", "bob")), "batch": rng.random() < 0.8}
        more |= {"nodes": rng.randint(1, 3), "limit_s": limit_s, "runs_s": rng.uniform(10, 6000)}
        if rng.random() < 0.3:
            array = next(slurm.ids)
            for task in range(rng.randint(2, 6)):
                slurm.submit(id=naming.task_of_array(array, task), called=f"{array}_{task}", **more)
        else:
            slurm.submit(**more)


@pytest.mark.parametrize("seed", range(DAYS))
def test_decisions_are_those_of_the_run_that_follows_until_it_rents(tmp_path, seed):
    """Also of a shadow that is restarted in between, on every second day."""
    world, shadowed = World(tmp_path), Shadowed(tmp_path)
    days = [Random(seed), Random(seed)]
    compared, when = 0, Random(-seed)
    for _ in range(TICKS):
        if seed % 2 and when.random() < 0.2:
            shadowed.restart()
        assert not world.ledger.leases(open_only=False)
        for rng, slurm in zip(days, (world.slurm, shadowed.slurm), strict=True):
            arrives(rng, slurm)
        real, shown = world.tick(), shadowed.tick()
        assert to_json(shown.decision) == to_json(real.decision)
        compared += 1
        if real.decision.launches:
            break
    assert compared > 0


def test_most_of_these_days_rent_in_the_end(tmp_path):
    rented = 0
    for seed in range(0, DAYS, 4):
        (tmp_path / str(seed)).mkdir()
        shadowed, rng = Shadowed(tmp_path / str(seed)), Random(seed)
        for _ in range(TICKS):
            arrives(rng, shadowed.slurm)
            rented += bool(shadowed.tick().decision.launches)
    assert rented > DAYS / 8


def test_it_says_once_what_it_would_rent_and_changes_nothing(tmp_path):
    shadowed = Shadowed(tmp_path)
    shadowed.slurm.submit(nodes=2, limit_s=7200, runs_s=7200)
    job = shadowed.slurm.submit(limit_s=600, runs_s=300)
    before = {name: node.record() for name, node in shadowed.slurm.nodes.items()}
    shadowed.tick(20)
    said = [event for event in shadowed.ledger.events() if event.kind == "would_rent"]
    assert [event.job for event in said] == [job] and "1 node of p5 (spot), $" in said[0].text
    assert shadowed.slurm.state(job) == "PENDING" and shadowed.ledger.leases(open_only=False) == []
    assert {name: node.record() for name, node in shadowed.slurm.nodes.items()} == before
    assert shadowed.slurm.permits == set() and shadowed.slurm.beats == 0


def test_nodes_that_slurm_does_not_know_yet_can_be_rented_in_thought(tmp_path):
    shadowed = Shadowed(tmp_path)
    shadowed.slurm.nodes = {name: node for name, node in shadowed.slurm.nodes.items() if name.startswith("dgx")}
    shadowed.slurm.submit(nodes=2, limit_s=7200, runs_s=7200)
    shadowed.slurm.submit(nodes=2, limit_s=600, runs_s=300)
    launches = shadowed.tick(3).decision.launches
    assert [(launch.pool, launch.nodes) for launch in launches] == [("p5", ("p5-1", "p5-2"))]


def test_what_it_saw_is_written_down_for_a_report(tmp_path):
    shadowed = Shadowed(tmp_path)
    shadowed.shadow = Shadow(Watched(shadowed.slurm), shadowed.ledger, shadowed.clock, Recorder(tmp_path / "ticks"))
    job = shadowed.slurm.submit(limit_s=600, runs_s=60)
    shadowed.tick(40)
    seen = list(ticks(tmp_path / "ticks"))
    assert {each.id for tick in seen for each in tick.snapshot.jobs} == {job} and not seen[-1].snapshot.jobs
    assert shadowed.ledger.job(job) is not None
