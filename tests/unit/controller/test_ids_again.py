"""A slurmctld that was set up again counts its jobs from 1: yesterday's job of an id isn't today's."""

import json
import re
from dataclasses import asdict, fields
from pathlib import Path

import pytest

from ironburst.burst.unstarted import Unstarted
from ironburst.controller import (
    deadline_moves,
    foreign,
    idle_gpus,
    job_story,
    lasting,
    logbook,
    own_exclusions,
    unstarted,
)
from tests.fakes.world import World

DAY = 86400.0


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path, usd_per_month=1e6)
    world.fill_home(limit_s=9 * DAY)
    return world


def again(world, id, **more):
    """Yesterday's job of that id has gone with its slurmctld; a new one has it."""
    world.slurm.jobs.pop(id), world.slurm.unfinished.pop(id, None)
    return world.slurm.submit(id=id, **more)


def test_each_of_the_two_jobs_is_explained_and_by_its_own_story(world):
    job = world.slurm.submit(limit_s=3600, runs_s=600, name="old")
    world.until(lambda: world.slurm.state(job) == "COMPLETED", 3600)
    world.pass_by(DAY, 600)
    before = job_story.gather(world.ledger, job, world.clock.now())
    assert before["leases"] and before["story"]
    began = world.clock.now()
    again(world, job, limit_s=7200.0, name="new", user="bob")
    world.slurm.change(job, held=True)
    world.tick(2)
    told = job_story.gather(world.ledger, job, world.clock.now())
    assert (told["name"], told["user"], told["leases"], told["submit_s"]) == ("new", "bob", [], began)
    assert told["story"] and all(item["at_s"] >= began for item in told["story"])
    others = [id for id in job_story.numbers(world.ledger, str(job)) if id != job]
    (kept,) = [job_story.gather(world.ledger, id, world.clock.now()) for id in others]
    for what in ("leases", "story", "name", "user", "submit_s", "ran_on", "start_s"):
        assert kept[what] == before[what], what
    assert kept["called"] == f"{job}@2026-11-21T12:00Z"
    assert job_story.numbers(world.ledger, kept["called"]) == others
    again(world, job, limit_s=7200.0, name="third", user="cem")
    world.tick(2)
    assert len(job_story.numbers(world.ledger, str(job))) == 3
    assert job_story.gather(world.ledger, others[0], world.clock.now())["story"] == before["story"]


def test_a_lease_of_yesterdays_job_is_not_todays(world):
    world.slurm._may = lambda name, job: not name.startswith("p5")
    job = world.slurm.submit(limit_s=3600, runs_s=600)
    world.until(lambda: world.states() == ["ready"], 600)
    world.clock.at += 60
    again(world, job, limit_s=3600.0, each=world.slurm.jobs[job].job.each)
    world.ledger.set_apart([world.slurm.jobs[job].job])
    assert job not in world.ledger.jobs_of(world.ledger.leases()[0].id)


def test_a_job_that_was_put_back_is_the_same_one(world):
    job = world.slurm.submit(limit_s=3600, runs_s=1200)
    world.until(lambda: world.slurm.state(job) == "RUNNING", 600)
    world.cloud.die(world.cloud.alive()[0].id)
    world.until(lambda: world.slurm.jobs[job].job.restarts == 1, 3600)
    world.tick(3)
    told = job_story.gather(world.ledger, job, world.clock.now())
    assert told["leases"] and job_story.numbers(world.ledger, str(job)) == [job]


def test_another_user_has_another_job_whatever_the_times_say(world):
    job = world.slurm.submit(limit_s=3600)
    world.tick()
    seen = world.slurm.jobs[job].job
    world.slurm.change(job, user="mallory", restarts=4)
    assert world.ledger.set_apart([seen]) == []
    assert world.ledger.set_apart([world.slurm.jobs[job].job]) == [job]


NOTES = {  # what each module keeps of job 7
    deadline_moves: {"work": {id: asdict(deadline_moves.Work(5.0, None, 5.0)) for id in ("7", "8")}, "spot": []},
    foreign: [7, 8],
    idle_gpus: [asdict(idle_gpus.IdleRun(id, 5.0, "alice", "vision", 8, 8, owner_s=4000.0)) for id in (7, 8)],
    own_exclusions: {"7": [["p5-1"], []], "8": [["p5-1"], []]},
    lasting: {"of": {f"l-1/{id}/COMPLETING": {"since_s": 5.0, "steps": 1, "away_s": None} for id in (7, 8)}},
    unstarted: {
        field.name: {
            "7": {"passed_over": {"shape": "s", "nodes": []}, "not_begun": {"asks": "", "seen_s": 1.0}}.get(
                field.name, 1.0 if field.name.endswith("_s") else "shape"
            )
        }
        for field in fields(Unstarted)
        if field.name not in ("misfits", "proven")  # by what jobs are alike in
    },
}


def of_job(note, id):
    """Whether something of a note is kept by this id."""
    if isinstance(note, dict):
        return any(str(id) in key.split("/") or of_job(value, id) for key, value in note.items())
    return isinstance(note, list) and any(each == id or (isinstance(each, dict) and each["job"] == id) for each in note)


def test_whatever_was_kept_by_the_id_is_not_the_new_jobs(world):
    """A job that gave its nodes up, one that a person was told of: the new one is rented for, and told of."""
    job = world.slurm.submit(id=7, limit_s=3600, name="old")
    world.slurm.change(job, held=True)
    world.tick()
    assert set(NOTES) == set(logbook.KEEPERS)
    for keeper, note in NOTES.items():
        world.ledger.note(keeper._KEY, json.dumps(note))
    again(world, job, limit_s=3600.0, user="bob")
    world.ledger.saw_jobs([], 0.0)
    observation = world.slurm.observe()
    world.controller._logbook.learn(world.document, observation, world.clock.now())
    for keeper, note in NOTES.items():
        kept = json.loads(world.ledger.noted(keeper._KEY))
        assert of_job(note, 7) and not of_job(kept, 7), keeper.__name__
        assert of_job(kept, 8) == of_job(note, 8), keeper.__name__


def test_every_module_that_keeps_something_by_a_jobs_id_is_among_them():
    """By what they write: a note with `job.id`, or ids, as keys."""
    folder = Path(logbook.__file__).parent
    by_id = re.compile(r"\bjob\.id\b|\bstr\(id\)|dict\[int,")
    writes = {
        path.stem for path in folder.glob("*.py") if "ledger.note(" in (text := path.read_text()) and by_id.search(text)
    }
    others = {"runtime_store", "tick"}  # by who submitted it and what it is called; in what a tick reports
    assert writes - others <= {keeper.__name__.rpartition(".")[2] for keeper in logbook.KEEPERS}
