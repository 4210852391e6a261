"""A rented node's whole way in a cloud whose launches take a minute or two, for each such cloud's tests."""

from ironburst.ports import LAUNCHING
from tests.fakes import Breaking
from tests.faults.story import Story
from tests.faults.test_crashes import Counter, lives
from tests.parts import a_third


class SlowLaunches(Story):
    def start(self):
        self.cloud.connect()
        super().start()

    def nothing_is_left(self):
        """Whether the lab's cloud is empty in the end."""
        raise NotImplementedError

    def check(self, again=()):
        assert self.jobs() == dict.fromkeys(self.slurm.jobs, "COMPLETED"), self.told()[-12:]
        assert {job for job, fake in self.slurm.jobs.items() if len(fake.started) > 1} <= set(again), self.told()[-12:]
        assert self.nothing_is_left() and self.ledger.leases() == [] and self.slurm.permits == set()
        assert self.cloud.lab.wrong == []


def short_of_machines(story):
    """A gang's machine is made, shown, and taken back; the gang is launched in the next zone."""
    shown = set()
    for _ in range(30):
        story.tick()
        shown |= {each.state for each in story.cloud.port.instances("lab")}
    assert LAUNCHING in shown
    story.end().check()


def stages(faults, of_launches):
    """Each fault with the stages in which it is tried; those whose names begin so are of a launch."""
    all_of_them = ["queued", "running", "leaving"]
    return a_third({name: all_of_them[:1] if name.startswith(of_launches) else all_of_them for name in sorted(faults)})


def met(story, fault, stage):
    """The story in which that happens to calls, from that stage on. `fault`: their name, and what happens."""
    name, said = fault
    story.reach(stage)
    hit = story.cloud.lab.fault(name, **{"status": 0, **said})
    story.end().check()
    assert hit.hits


def killed(kind, folder, part, late):
    """A launch under way has a time of its own: the new process finds it. `kind`: of the story."""

    def broken(folder, at):
        story, counter = kind(folder), Counter()
        for name in ("scheduler", "cloud"):
            port = getattr(story.controller, name)
            setattr(story.controller, name, Breaking(port, counter, at=at, after=late))
        return story, counter

    story, counter = broken(folder / "whole", -1)
    story.end().check()
    story.cloud.lab.close()
    assert len(counter.places) > 25 and len(set(counter.places)) > 10
    for at in counter.points(part):
        story, _ = broken(folder / f"at{at}", at)
        assert lives(story), at
        story.check()
        assert not any(event.kind == "orphan" for event in story.ledger.events()), at
        story.cloud.lab.close()
