"""What was launched is what was asked for: the type of the pool, its image, from the template's published version."""

import json

import pytest

from ironburst.adapters.aws.cloud import parameters
from ironburst.ports import OutcomeUnknown
from tests.fakes import document, with_places
from tests.fakes.world import World

OF_LATER = "launch_template_version"  # an intent of before 0.2 has none


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    world.fill_home()
    return world


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"wrong_type": "p5e.48xlarge"}, "i-1 has type p5e.48xlarge, asked for was p5.48xlarge"),
        ({"wrong_image": "ami-evil"}, "i-1 has image ami-evil, asked for was ami-1"),
    ],
)
@pytest.mark.parametrize("answer_lost", [False, True])
def test_what_is_not_as_asked_is_ended_at_once_and_told(world, wrong, told, answer_lost):
    vars(world.cloud).update(wrong, lost_answers=int(answer_lost))
    job = world.slurm.submit(nodes=2, limit_s=600)
    world.until(lambda: world.cloud.all and not world.cloud.alive(), 60)
    assert len(world.cloud.all) == 2
    assert any(told in text and "pool p5" in text for text in world.events("needs_a_person"))
    world.pass_by(600, 20)
    assert len(world.cloud.all) == 2 and world.slurm.jobs[job].started == []


def test_what_is_as_asked_or_not_told_goes_on(world):
    world.slurm.submit(nodes=2, limit_s=600)
    world.until(lambda: "joined" in world.states() or "ready" in world.states(), 60)
    assert world.events("needs_a_person") == []


def test_a_launch_names_the_version_that_was_published(world):
    pool = world.document.pools[0]
    pools = [with_places(pool, launch_template_version="7")]
    world.document = world.document.model_copy(update={"pools": pools})
    world.slurm.submit(limit_s=600)
    world.until(lambda: world.cloud.requests, 60)
    assert {request.place["launch_template_version"] for request in world.cloud.requests} == {"7"}


def test_a_document_of_before_still_means_the_newest():
    assert {zone.place.launch_template_version for zone in document().pools[0].zones} == {"$Latest"}


def test_an_intent_of_before_is_repeated_as_it_was_asked(world):
    """Its token was used with $Latest: anything else would be other parameters."""
    world.cloud.errors = [OutcomeUnknown("no answer")]
    world.slurm.submit(limit_s=600)
    world.until(lambda: world.cloud.requests, 60)
    (launch,) = {lease.launch for lease in world.ledger.leases()}
    (intent,) = world.ledger.intents(launch)
    flat = json.loads(intent.request)  # what is the place's stood beside the rest, and no version
    flat |= {key: value for key, value in flat.pop("place").items() if key not in ("provider", OF_LATER)}
    with world.ledger.transaction():
        world.ledger._db.execute("UPDATE intents SET request = ? WHERE launch = ?", (json.dumps(flat), launch))
    pool = world.document.pools[0]
    pools = [with_places(pool, launch_template_version="7")]
    world.document = world.document.model_copy(update={"pools": pools})
    world.until(lambda: len(world.cloud.requests) == 2, 60)
    first, second = world.cloud.requests
    assert OF_LATER not in second.place and parameters(first) == parameters(second)
