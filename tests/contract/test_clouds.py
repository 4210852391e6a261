"""What a controller counts on of every cloud (ironburst.ports.Cloud), and what a hall without one answers."""

import contextlib
from pathlib import Path

import pytest

from ironburst import document, ports
from ironburst.config import clouds as classes
from ironburst.wiring import clouds
from tests.contract.cloud_benches import BENCHES, OF_THREE, RENTING, THREE, bench

__all__ = ["bench"]
renting = pytest.mark.parametrize("bench", RENTING, indirect=True)
every = pytest.mark.parametrize("bench", [*RENTING, None], indirect=True)


def ids(instances):
    return sorted(instance.id for instance in instances)


def alive(bench):
    return [instance for instance in bench.port.instances("lab") if instance.alive]


def test_every_cloud_of_the_table_is_held_to_it():
    assert clouds.PROVIDERS.keys() <= BENCHES.keys()
    assert clouds.PROVIDERS.keys() - {None} == classes.CLASSES.keys()


def test_a_cloud_without_a_row_is_rented_in_by_nobody():
    """What leads to half a cloud is paid for, and ends in nodes that never join (docs/adr/0121)."""
    published = Path(__file__).parents[1] / "unit/document/published_by_0_2/cloud.json"
    there = document.CloudDocument(provider="oracle", region="us-ashburn-1")
    with pytest.raises(ports.Refused, match=r"oracle.*can't rent in"):
        clouds.connect(document.read(published).model_copy(update={"cloud": there}))


@every
def test_a_token_that_is_repeated_starts_nothing_more(bench):
    asked = bench.request(count=2)
    first, again = (bench.ask(asked)[0] for _ in range(2))
    if not bench.rents:
        assert {type(first), type(again)} == {ports.Refused} and alive(bench) == []
        return
    assert ids(first) == ids(again) == ids(alive(bench)) and len(first) == 2
    assert sorted(instance.index for instance in first) == [0, 1]


@renting
def test_a_token_with_other_parameters_is_a_mismatch_and_starts_nothing(bench):
    first = bench.launched()
    (answer,) = bench.ask(bench.request(count=2))
    assert type(answer) is ports.TokenMismatch and ids(alive(bench)) == ids(first)


@every
def test_a_gang_is_launched_whole_or_not_at_all(bench):
    if bench.rents:
        bench.capacity(1)
    (answer,) = bench.ask(bench.request(count=2))
    assert isinstance(answer, ports.InsufficientCapacity if bench.rents else ports.Refused)
    assert alive(bench) == []
    known = bench.port.by_token("ib-1")
    assert known == [] or type(known) is type(answer), "what ended it, where the cloud knows"


@every
def test_launches_side_by_side_are_answered_each_for_itself_in_their_order(bench):
    if bench.rents:
        bench.capacity(2)
    asked = [bench.request(token=f"ib-{n}", launch=f"l{n}", count=count) for n, count in ((1, 1), (2, 9), (3, 1))]
    one, refused, three = bench.ask(*asked)
    assert isinstance(refused, ports.CapacityError if bench.rents else ports.Refused)
    if bench.rents:
        assert [[instance.launch for instance in answer] for answer in (one, three)] == [["l1"], ["l3"]]
    assert bench.ask() == []


@renting
def test_what_was_launched_says_whose_it_is(bench):
    bench.launched(owner="0a1b2c", account="vision", usd_per_hour=55.04)
    (shown,) = alive(bench)
    assert (shown.launch, shown.token, shown.pool, shown.market) == ("l1", "ib-1", "p5", "on-demand")
    assert (shown.owner, shown.account, shown.usd_per_hour) == ("0a1b2c", "vision", 55.04)
    assert shown.image_id == (bench.image if bench.shows_images else "")


@renting
def test_an_id_that_is_not_known_hides_no_other(bench):
    (known,) = bench.launched()
    assert ids(bench.port.described([bench.unknown[0], known.id, bench.unknown[1]])) == [known.id]
    assert bench.port.described(bench.unknown) == [] and bench.port.described([]) == []
    assert bench.ended([bench.unknown[0], known.id]) == {known.id}


@pytest.mark.parametrize("bench", [None], indirect=True)
def test_without_a_cloud_nothing_is_said_of_an_id(bench):
    """That nobody knows it would be taken for a proof that it is gone."""
    for ask in (bench.port.described, bench.port.terminate, bench.port.troubles):
        assert not ask([])
        with pytest.raises(ports.Refused):
            ask(bench.unknown)


@renting
def test_one_that_has_ended_is_fine_to_end_again_and_never_alive(bench):
    one, two = bench.launched(count=2)
    assert bench.ended([one.id]) == {one.id} == bench.port.terminate([one.id])
    assert ids(alive(bench)) == [two.id] and bench.port.terminate([]) == set()
    assert not any(instance.alive for instance in bench.port.described([one.id]))


@renting
def test_a_launch_that_is_slowed_down_is_repeated_unchanged(bench):
    bench.throttles_a_launch()
    (answer,) = bench.ask(bench.request())
    assert isinstance(answer, ports.Throttled) and isinstance(answer, ports.OutcomeUnknown)
    assert ids(bench.launched()) == ids(alive(bench))


@renting
def test_a_list_that_is_slowed_down_is_no_empty_one(bench):
    (known,) = bench.launched()
    bench.throttles_a_list()
    for ask in (lambda: bench.port.instances("lab"), lambda: bench.port.described([known.id])):
        with pytest.raises((ports.Throttled, ports.SomeSilent)):
            ask()


@renting
def test_an_answer_that_is_lost_is_found_by_its_repeat_and_by_its_token(bench):
    bench.loses_an_answer()
    (answer,) = bench.ask(bench.request(count=2))
    assert isinstance(answer, ports.OutcomeUnknown)
    bench.passes(1)
    assert ids(bench.port.by_token("ib-1")) == ids(bench.launched(count=2)) == ids(alive(bench))


@pytest.mark.parametrize("bench", [*THREE, *OF_THREE.values()], indirect=True)
def test_a_part_of_an_answer_is_never_taken_for_a_gang(bench):
    bench.answers_in_part()
    (answer,) = bench.ask(bench.request(count=2))
    assert type(answer) is ports.OutcomeUnknown
    assert len(bench.launched(count=2)) == 2 == len(alive(bench))


@pytest.mark.parametrize(
    "bench", ["azure", "google", "in memory", OF_THREE["azure"], OF_THREE["google"]], indirect=True
)
def test_a_launch_that_takes_minutes_is_under_way_and_its_instances_are_not_launched_yet(bench):
    bench.works_at_launches(180)
    asked = bench.request(count=2)
    (answer,) = bench.ask(asked)
    assert isinstance(answer, ports.UnderWay) and isinstance(answer, ports.OutcomeUnknown)
    bench.passes(100)
    assert isinstance(bench.ask(asked)[0], ports.UnderWay)
    there = bench.port.instances("lab")
    assert {each.state for each in there} <= {ports.LAUNCHING} and all(each.alive for each in there)
    with pytest.raises(ports.UnderWay):
        bench.port.by_token("ib-1")
    bench.passes(100)
    assert ids(bench.launched(count=2)) == ids(alive(bench)) == ids(bench.port.by_token("ib-1"))
    assert ports.LAUNCHING not in {each.state for each in bench.port.instances("lab")}


@pytest.mark.parametrize("bench", ["azure", "google", OF_THREE["azure"], OF_THREE["google"]], indirect=True)
def test_who_looks_for_a_launch_that_failed_and_that_nobody_asks_for_any_more_is_told_why(bench):
    bench.works_at_launches(60)
    bench.capacity(1)
    assert isinstance(bench.ask(bench.request(count=2))[0], ports.UnderWay)
    told = None
    for _ in range(60):
        bench.passes(10)
        with contextlib.suppress(ports.UnderWay):
            if told := bench.port.by_token("ib-1"):
                break
    assert type(told) is ports.InsufficientCapacity and alive(bench) == [], told


@renting
def test_one_that_lists_show_late_is_known_by_its_id_and_by_its_repeat(bench):
    (known,) = bench.launched()
    bench.lists_late([known.id])
    assert alive(bench) == [] and bench.port.by_token("ib-1") == []
    assert ids(bench.port.described([known.id])) == [known.id] == ids(bench.launched())


@every
def test_a_pool_whose_image_is_nowhere_has_none(bench):
    assert bench.port.image_id(bench.no_image) is None


@every
def test_nothing_to_ask_about_is_no_trouble(bench):
    assert bench.port.interruptions([]) == [] == bench.port.troubles([])
    bench.port.acknowledge()


@every
def test_what_is_there_and_what_is_gone_is_prolonged_without_a_word(bench):
    nodes = bench.launched(count=2) if bench.rents else []
    bench.port.prolong({each.id: 4e9 for each in nodes} | {bench.unknown[0]: 4e9})
    assert bench.port.prolong({}) is None
