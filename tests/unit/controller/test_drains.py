"""What a person drained stays drained, with the person's own words; nothing is rented for it."""

from dataclasses import replace

import pytest

from ironburst.burst import Node, Resources, drains
from ironburst.controller import records
from tests.fakes.world import World

WORDS = "GPU 3 is sick, ask Bob"


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    world.fill_home(limit_s=86400.0)
    world.job = world.slurm.submit(limit_s=600, runs_s=60)
    return world


@pytest.mark.parametrize(
    ("reason", "by", "person"),
    [
        ("", "", False),
        ("no lease", "slurm", False),
        ("no lease", "root", False),
        (drains.PREFIX + "spot interruption", "root", False),
        ("given up", "", False),
        ("POWER_DOWN_ASAP", "root", False),
        ("Not responding", "slurm", False),
        ("ResumeTimeout reached", "slurm", False),
        (WORDS, "root", True),
        (WORDS, "bob", True),
        (WORDS, "", True),
        (drains.HELD + WORDS, "slurm", True),
        # slurmctld adds its own words, and signs for all of them
        (WORDS + " : Not responding", "slurm", True),
        (WORDS + " : Not responding : reboot timed out", "slurm", True),
        ("no lease : Not responding", "slurm", False),
        (drains.PREFIX + "spot interruption : Not responding", "slurm", False),
        ("Not responding : ResumeTimeout reached", "slurm", False),
        ("Low RealMemory (reported:1 < 100.00% of configured:2)", "slurm", False),
        ("something that a later Slurm says", "slurm", False),
        ("Low priority: looking at it", "root", True),
        ("looking at the NHC: it is wrong", "root", True),
        (drains.HELD + "NHC: check_nv_gpu_count: 7 GPUs of 8", "slurm", False),  # by an older SuspendProgram
        *((words + "7 of 8", user, False) for words in drains.PROGRAMS for user in ("root", "slurm", "slurmadm", "")),
        *((f"{WORDS} : {words}", "slurm", True) for words in drains.PROGRAMS),
    ],
)
def test_whose_a_drain_is(reason, by, person):
    off = Node("n", (), Resources(8), ("CLOUD", "DRAIN", "IDLE", "POWERED_DOWN"), reason, "", by)
    assert off.held_by_person == person and off.launchable == (not person)
    assert not Node("n", (), Resources(8), ("IDLE",), reason, "", by).held_by_person


def test_a_node_that_a_person_drained_while_it_booted_is_given_back_and_not_rented_again(world):
    world.until(lambda: world.states() == [records.LAUNCHED], 60)
    (lease,) = world.ledger.leases()
    world.slurm.drain([lease.node], WORDS)
    world.until(lambda: world.slurm.state(world.job) == "COMPLETED", 600)
    assert world.slurm.jobs[world.job].started[0][1] != (lease.node,)
    world.until(lambda: not world.ledger.leases(), 600)
    node = world.slurm.nodes[lease.node]
    assert WORDS in node.reason and {"DRAIN", "POWERED_DOWN"} <= node.states
    assert [text for text in world.events("given_up") if WORDS in text]
    assert [request.user_data.count(f'"{lease.node}"') for request in world.cloud.requests] == [1, 0]


def test_a_drain_between_the_decision_and_the_act_is_not_lifted(world):
    observe, seen = world.slurm.observe, []

    def observed():
        """It was joined at the tick's first look, and the tick looks once more before it acts."""
        if world.states() == [records.JOINED] and not seen:
            (lease,) = world.ledger.leases()
            seen.append(lease.node)
            world.slurm.drain([lease.node], WORDS)
        return observe()

    world.slurm.observe = observed
    world.until(lambda: seen, 60)
    node = world.slurm.nodes[seen[0]]
    assert node.reason == WORDS and not node.record().open, "it is drained, or given back already"
    world.until(lambda: world.slurm.state(world.job) == "COMPLETED", 900)
    assert world.slurm.jobs[world.job].started[0][1] != (seen[0],)


def test_a_ready_node_that_a_person_drained_ends_after_its_job_with_the_persons_words(world):
    world.until(lambda: world.slurm.state(world.job) == "RUNNING", 120)
    (lease,) = world.ledger.leases()
    world.slurm.drain([lease.node], WORDS)
    world.until(lambda: not world.ledger.leases(), 900)
    assert world.slurm.state(world.job) == "COMPLETED" and WORDS in world.slurm.nodes[lease.node].reason
    world.slurm.resume([lease.node])
    world.until(lambda: world.slurm.nodes[lease.node].record().launchable, 60)


def test_a_powered_down_node_that_a_person_set_down_is_not_healed(world):
    node = world.slurm.nodes["p5-3"]
    node.states, node.reason, node.reason_by = {"DOWN", "CLOUD", "POWERED_DOWN"}, WORDS, "bob"
    world.tick(5)
    assert "DOWN" in node.states and node.reason == WORDS
    node.reason, node.reason_by = "ResumeTimeout reached", "slurm"
    world.until(lambda: node.record().launchable, 60)


@pytest.mark.parametrize(
    ("states", "by", "ended"),
    [
        ({"COMPLETING", "NOT_RESPONDING"}, "root", True),
        ({"COMPLETING", "NOT_RESPONDING"}, "bob", True),
        ({"COMPLETING"}, "root", False),
        ({"NOT_RESPONDING"}, "root", False),
    ],
)
def test_a_job_that_ends_for_ever_on_a_node_without_an_instance_is_ended(world, monkeypatch, states, by, ended):
    """Seen live: its instance was gone when the node was told to power down, so slurmd never said that it had ended."""
    observe, heal, healed = world.slurm.observe, world.slurm.heal, []
    reason = WORDS if by == "bob" else "given up"

    def stuck(node):
        also = {
            "states": frozenset(states | {"IDLE", "CLOUD", "DRAIN", "POWER_DOWN"}),
            "reason": reason,
            "reason_by": by,
        }
        return replace(node, **also) if node.name == "p5-3" else node

    def seen():
        now = observe()
        return now if healed else replace(now, nodes=tuple(map(stuck, now.nodes)))

    monkeypatch.setattr(world.slurm, "observe", seen)
    monkeypatch.setattr(world.slurm, "heal", lambda nodes: (healed.append(nodes), heal(nodes)))
    world.tick(3)
    assert healed == ([["p5-3"]] if ended else [])
    assert by == "root" or world.slurm.nodes["p5-3"].reason == WORDS


# ---- what a program says of a machine ends with it

# as Slurm 24.11.5, LBNL's NHC and the role node_health write them
VERDICTS = [
    ("health: GPU 3: 1 uncorrectable ECC error", "root"),
    ("NHC: check_nv_gpu_count: 7 GPUs of 8", "root"),
    ("Kill task failed", "root"),
    ("gres/gpu count reported lower than configured (7 < 8)", "slurm"),
    ("Low RealMemory (reported:1 < 100.00% of configured:2)", "slurm"),
    ("batch job complete failure", "slurm"),
    ("Prolog error", "slurm"),
    ("Epilog error", "slurm"),
    ("Duplicate jobid", "slurm"),
]


def drained(world, name, words, by):
    world.slurm.drain([name], words)
    world.slurm.nodes[name].reason_by = by


@pytest.mark.parametrize(("words", "by"), VERDICTS)
def test_a_machine_that_a_program_drained_goes_after_its_job_and_its_name_comes_back(world, words, by):
    world.until(lambda: world.slurm.state(world.job) == "RUNNING", 120)
    (lease,) = world.ledger.leases()
    drained(world, lease.node, words, by)
    world.tick(2)
    assert world.states() == [records.RELEASING] and world.slurm.state(world.job) == "RUNNING"
    world.until(lambda: not world.ledger.leases(), 900)
    assert world.slurm.state(world.job) == "COMPLETED"
    world.until(lambda: world.slurm.nodes[lease.node].record().launchable, 60)
    assert [text for text in world.events("drained") if words in text] and not world.events("needs_a_person")


@pytest.mark.parametrize(("words", "by"), VERDICTS)
def test_a_machine_that_a_program_drained_before_it_was_used_is_not_used(world, words, by):
    """The check runs when slurmd starts; its drain isn't ours to lift."""
    observe, seen = world.slurm.observe, []

    def observed():
        """It was joined at the tick's first look, and the tick looks once more before it acts."""
        if world.states() == [records.JOINED] and not seen:
            seen.append(world.ledger.leases()[0].id)
            drained(world, world.ledger.leases()[0].node, words, by)
        return observe()

    world.slurm.observe = observed
    world.until(lambda: seen and seen[0] not in {lease.id for lease in world.ledger.leases()}, 600)
    assert world.slurm.jobs[world.job].started == []
    assert [text for text in world.events("drained") if words in text]
    world.until(lambda: world.slurm.state(world.job) == "COMPLETED", 3600)


def test_a_pool_that_keeps_producing_drained_nodes_is_told_by_cause_and_image(world):
    for n in range(4):
        job = world.job if not n else world.slurm.submit(limit_s=600, runs_s=60)
        world.until(lambda job=job: world.slurm.state(job) == "RUNNING", 3600)
        drained(world, world.slurm.jobs[job].job.on[0], f"health: GPU {n}: {n + 1} uncorrectable ECC errors", "root")
        world.until(lambda: not world.ledger.leases(), 3600)
    (told,) = world.events("needs_a_person")
    assert "3 nodes of pool p5 with ami-1" in told and "GPU #: # uncorrectable ECC errors" in told
    assert len(world.events("drained")) == 4


def test_a_pool_that_people_drained_half_of_is_told_once(world):
    world.slurm.drain(["p5-1"], WORDS)
    world.tick(3)
    assert not world.events("needs_a_person")
    world.slurm.drain(["p5-2"], WORDS)
    world.tick(3)
    (told,) = world.events("needs_a_person")
    assert "2 of the 3 nodes of pool p5" in told and WORDS in told
