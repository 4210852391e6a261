"""Random days of three clouds: nothing is lost, and what would be is noticed."""

import json
import math
from itertools import product

import pytest

from benchmarks import cloud_days, days
from benchmarks.cloud_days import CloudDay, Clouds
from tests.fakes.three import POOLS
from tests.parts import some_fast


def wrong(outcome):
    return [*outcome.wrong, *outcome.silent]


@pytest.mark.parametrize("seed", [106])
def test_a_few_hours_with_accidents_in_three_clouds_lose_nothing(tmp_path, seed):
    outcome = CloudDay(seed, tmp_path, hours=4).run()
    assert wrong(outcome) == [] and outcome.jobs > 5
    assert all(outcome.accidents[f"rented in {whose}"] for whose in cloud_days.CLOUDS)


class Dead(CloudDay):
    """The controller is killed for ever as soon as a job runs in this cloud."""

    whose = ""

    def _happens(self, name):
        """Nothing else."""

    def _step(self, now):
        on = {node for fake in self.slurm.jobs.values() for node in fake.job.on}
        if any(node.startswith(POOLS[self.whose]) for node in on):
            self.away_until = math.inf
        super()._step(now)


def killed(folder, whose):
    """In a cloud that is the only one with capacity."""
    day = Dead(3, folder, hours=2)
    day.whose = whose
    aws = day.cloud.clouds["aws"]
    for other in {"google", "azure"} - {whose}:
        day.cloud.clouds[other].out_of_capacity(0)
    if whose != "aws":
        aws.capacity = dict.fromkeys(product(cloud_days.ZONES, ("spot", "on-demand")), 0)
    outcome = day.run()
    assert outcome.accidents[f"rented in {whose}"] and outcome.launches
    return outcome


@pytest.mark.parametrize("whose", cloud_days.CLOUDS)
def test_without_a_controller_all_end_within_the_declared_time(tmp_path, whose):
    outcome = killed(tmp_path, whose)
    assert wrong(outcome) == [] and (outcome.lasting_usd > 0) == (whose == "azure")


def test_a_machine_in_azure_that_no_workflow_ends_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(Clouds, "reap", lambda self: None)
    outcome = killed(tmp_path, "azure")
    assert any("z5" in text for text in outcome.idle) and outcome.silent


@pytest.mark.parametrize("whose", ["aws", "google"])
def test_a_node_that_does_not_end_itself_is_noticed(tmp_path, whose, monkeypatch):
    monkeypatch.setattr("tests.fakes.dead_man.Switch.ends", lambda *_: False)
    assert killed(tmp_path, whose).idle


def test_it_prints_what_it_found(capsys):
    assert cloud_days.main(["--days", "1", "--seed", "106", "--hours", "1"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["days"] == 1 and {days.LOST, days.AGAIN, days.IDLE, days.BEYOND, days.LEFT} <= found.keys()
    with pytest.raises(SystemExit):
        cloud_days.main(["--days", "0"])
    assert "must be 1 or more" in capsys.readouterr().err


WENT_WRONG = {
    188: "leases that the brake had ended counted on while the disk was full, and a job was put back",
    488: "after a lost ledger a node of an unknown launch registered for the lease that has its name now",
    710: "machines that were being ended got leases again, and a gang",
    776: "the same of one in Google Cloud",
    829: "the same of a single one in Azure",
}


@pytest.mark.parametrize("seed", some_fast(WENT_WRONG, 488, 776))
def test_days_that_went_wrong(seed):
    assert cloud_days.main(["--days", "1", "--seed", str(seed), "--hours", "6"]) == 0
