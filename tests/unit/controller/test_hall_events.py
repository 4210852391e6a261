"""A cooling or feed incident is one event of the hall: told once, capped first, drained last, lifted by itself."""

import pytest

from ironburst.adapters.no_cloud import NoCloud
from ironburst.controller import status_report
from ironburst.health import shared
from tests.fakes.gates import EVERY_S, TEXT, Gates
from tests.fakes.world import World
from tests.parts import some_fast

HOUR = 3600.0
A = [f"a{n:02}" for n in range(1, 21)]
B = [f"b{n:02}" for n in range(1, 5)]
TRIPS = 3  # of 20: more than a tenth


class Site(World):
    def __init__(self, tmp_path, **hall):
        super().__init__(tmp_path, tick_s=10)
        self.gates = Gates(self.slurm, {"hall-a": A, "hall-b": B})
        self.document = self.gates.document(self.document, **hall)

    def live(self, seconds, each=lambda: None):
        end = self.clock.now() + seconds
        while self.clock.now() < end:
            each()
            self.gates.look()
            self.pass_by(100)

    def drained(self):
        return sorted(name for name in A + B if "DRAIN" in self.slurm.nodes[name].states)

    def told(self):
        return [text for text in self.events("needs_a_person") if text.startswith("hall ")]


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


@pytest.mark.parametrize("cause", sorted(shared.CAUSES))
@pytest.mark.parametrize("count", some_fast((1, TRIPS - 1, TRIPS, 20), TRIPS - 1, TRIPS))
@pytest.mark.parametrize("passes", [False, True], ids=["lasts", "is over"])
def test_how_many_have_what_and_for_how_long(site, cause, count, passes):
    hit, halls = A[:count], count >= TRIPS
    site.gates.fail(hit, cause)
    site.live(3 * HOUR)
    works = shared.CAUSES[cause].works
    assert site.drained() == ([] if halls and works else hit)
    assert len(site.told()) == halls
    if passes:
        site.gates.fail(hit)
    site.live(3 * HOUR)
    back = passes and halls
    assert site.drained() == ([] if back else hit), "a node alone stays for a person; what lasts is drained at last"
    assert len(site.told()) == halls + (halls and works and not passes)
    site.gates.fail(hit)
    site.live(2 * HOUR)
    assert site.drained() == ([] if halls else hit)
    assert len(site.events("hall")) > 0 if halls else site.events("hall") == []


def test_what_is_told_is_what_a_person_needs(site):
    site.gates.fail(A, "throttle")
    site.live(EVERY_S + 60)
    (text,) = site.told()
    assert "GPUs are held down by heat or power on 20 of its 20 nodes at once" in text
    assert (
        "they go on, and are drained if it lasts for 4 h" in text and "`ironburst hall cap WATTS --hall hall-a`" in text
    )
    (shown,) = status_report.gather(site.document, site.slurm.observe(), site.ledger, site.clock.now())["halls"]
    assert shown.startswith("hall hall-a: GPUs are held down by heat or power on many of its 20 nodes since 2026-")


@pytest.mark.parametrize("cause", sorted(shared.CAUSES))
def test_two_halls_are_two(site, cause):
    """Two of twenty and one of four: beyond the share only if they were one hall."""
    site.gates.fail([*A[:2], B[0]], cause)
    site.live(HOUR)
    assert site.told() == [] and site.drained() == [*A[:2], B[0]]
    site.gates.fail(B[1:2], cause)  # two of four
    site.live(HOUR / 2)
    assert [text.partition(":")[0] for text in site.told()] == ["hall hall-b"]
    site.gates.fail(A + B)
    site.live(2 * HOUR)
    assert site.drained() == A[:2]


def test_nodes_that_fail_one_by_one_over_weeks_are_no_event(site):
    for name in A[:8]:
        site.gates.fail([name], "throttle")
        site.live(1.2 * HOUR)
    assert site.told() == [] and site.drained() == A[:8]


def test_nodes_that_cool_down_while_they_are_drained_count_all_the_same(site):
    """Each is hot only behind its job (the epilog looks), and well at the next look: it is idle then."""
    for name in A[:TRIPS]:
        site.gates.fail([name], "throttle")
        site.gates.look(name)
        site.gates.fail([name])
        site.live(600)
    assert len(site.told()) == 1 and site.drained() == []


@pytest.mark.parametrize("words", [TEXT["xid"], "NHC: check_nv_gpu_count: 7 GPUs of 8", "rack 4 is rewired, ask Bob"])
def test_a_drain_with_any_other_cause_is_never_lifted(site, words):
    """Before the event, in the midst of it, and added by slurmctld behind ours."""
    site.slurm.drain([A[0]], words)
    site.gates.fail(A, "throttle")
    site.live(HOUR)
    site.slurm.drain([A[1]], words)
    site.gates.fail([A[2]], "throttle", "xid")
    site.live(HOUR)
    site.gates.fail(A)
    site.live(3 * HOUR)
    assert site.drained() == A[:3] and [site.slurm.nodes[name].reason for name in A[:2]] == [words, words]
    assert site.slurm.nodes[A[2]].reason == f"health: {TEXT['xid']}"


def test_a_node_that_was_drained_alone_long_before_is_no_part_of_an_event(site):
    site.gates.fail(A[:1], "throttle")
    site.live(2 * HOUR)
    site.gates.fail(A, "throttle")
    site.live(HOUR)
    assert site.drained() == A[:1]
    site.gates.fail(A)
    site.live(2 * HOUR)
    assert site.drained() == A[:1] and "] ready: " in site.slurm.nodes[A[0]].reason


def test_a_cause_that_only_one_node_has_is_its_own_in_the_midst_of_anothers_event(site):
    site.gates.fail(A[4:], "mounts")
    site.gates.fail([A[0]], "throttle")
    site.live(HOUR)
    site.gates.fail(A)
    site.live(2 * HOUR)
    assert len(site.told()) == 1 and site.drained() == [A[0]]


def test_what_slurmctld_adds_behind_the_reason_leaves_it_to_a_person(site):
    site.gates.fail(A[:6], "mounts")
    site.live(HOUR)
    site.slurm.nodes[A[0]].adds("Kill task failed", site.clock.now())
    site.gates.fail(A)
    site.live(2 * HOUR)
    assert site.drained() == [A[0]]


def test_a_person_who_comes_between_look_and_act_counts(site):
    site.gates.fail(A[:6], "mounts")
    site.live(HOUR)
    site.gates.fail(A)
    observe, looks = site.slurm.observe, []

    def observed():
        found = observe()
        looks.append(1)
        ready = [node.name for node in found.nodes if "] ready: " in node.reason]
        if A[0] in ready and len(looks) % 2:  # after the tick's look, before the act's
            site.slurm.drain([A[0]], "ask Bob")
        return found

    site.slurm.observe = observed
    site.live(2 * HOUR)
    assert site.drained() == [A[0]] and site.slurm.nodes[A[0]].reason == "ask Bob"


@pytest.mark.parametrize("cause", sorted(shared.CAUSES))
def test_a_restart_of_the_controller_loses_nothing(site, cause):
    def again():
        site.ledger.close()
        site.start()

    site.gates.fail(A, cause)
    site.live(2 * HOUR, again)
    assert len(site.told()) == 1
    site.live(3 * HOUR, again)
    assert site.drained() == A and len(site.told()) == 1 + shared.CAUSES[cause].works
    site.gates.fail(A)
    site.live(2 * HOUR, again)
    assert site.drained() == []


def test_a_node_that_fails_yet_when_the_event_is_over_is_left_to_a_person_and_named(site):
    site.gates.fail(A, "fabric")
    site.live(HOUR)
    site.gates.fail(A[1:])
    site.live(HOUR)
    assert site.drained() == [A[0]] and any(text.endswith(f"for they fail yet: {A[0]}") for text in site.events("hall"))
    site.gates.fail(A)  # the last cable is plugged in: the event had drained it
    site.live(HOUR)
    assert site.drained() == []


def test_the_share_and_the_time_are_declared(tmp_path):
    site = Site(tmp_path, breaker_share=0.5, drain_after_s=7200)
    site.gates.fail(A[:10], "throttle")
    site.live(HOUR)
    assert site.told() == [] and site.drained() == A[:10]
    site.gates.fail(A[:1])
    site.gates.fail(B[:3], "throttle")
    site.live(1.5 * HOUR)
    assert len(site.told()) == 1 and not {*site.drained()} & {*B}
    site.live(HOUR)
    assert {*site.drained()} >= {*B[:3]}


def test_a_node_that_is_down_is_not_resumed(site):
    site.gates.fail(A[:6], "mounts")
    site.live(HOUR)
    site.slurm.nodes[A[0]].states |= {"DOWN"}
    site.gates.fail(A)
    site.live(2 * HOUR)
    assert site.drained() == [A[0]]


def test_a_site_without_a_cloud_has_halls_all_the_same(site):
    site.controller.cloud = NoCloud()
    site.document = site.document.model_copy(update={"pools": [], "region": None, "budget": None})
    site.gates.fail(A, "throttle")
    site.live(2 * HOUR)
    assert site.drained() == [] and len(site.told()) == 1 and site.events("trouble") == []
