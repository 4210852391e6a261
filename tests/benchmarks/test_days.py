"""The benchmark of accidents: nothing is lost, and what would be is noticed."""

import json
from dataclasses import replace

import pytest

from benchmarks import days, kube_days
from ironburst.controller import lasting, sightings
from ironburst.nodes.state_times import POD, Then
from tests.fakes import FakeCloud
from tests.parts import some_fast


def test_a_few_hours_with_accidents_lose_no_job_and_no_money():
    outcomes = list(days.play(range(9001, 9004), hours=5))
    figures = days.figures(outcomes)
    assert {key: value for key, value in figures.items() if key.endswith("(0)") and value} == {}
    assert figures["launches"] > 5 and len(figures["accidents"]) > 4


@pytest.mark.parametrize("played", some_fast((3, 6), 3))
def test_a_state_that_lasts_costs_what_the_table_allows(played):
    outcomes = list(days.play(range(9031, 9031 + played), hours=5, only="a state lasts"))
    seen = days.figures(outcomes)
    assert sum(outcome.lasting_usd for outcome in outcomes) > 100
    assert (seen[days.LASTING], seen[days.SILENT], seen[days.LOST], seen[days.AGAIN]) == (0.0, [], [], [])


def test_a_state_that_is_believed_for_ever_is_noticed(monkeypatch):
    monkeypatch.setattr(lasting, "look", lambda site, observation: False)
    seen = days.figures(list(days.play([9032], hours=5, only="a state lasts")))
    assert seen[days.LASTING] > 100 and seen[days.SILENT]


def test_a_controller_that_is_killed_for_ever_leaves_nothing():
    (outcome,) = days.play([9013], hours=5, dead=True, only="an instance dies")
    seen = days.figures([outcome])
    assert outcome.launches and 0 < seen[days.OUTLIVED] <= seen["allowed of that, s"] and outcome.idle == []


def test_a_job_that_is_killed_without_a_cause_is_noticed(monkeypatch):
    """As before instances were asked for by their ids: what isn't in a list is gone."""
    monkeypatch.setattr(sightings, "answers", lambda node: False)
    monkeypatch.setattr(sightings, "UNSEEN_S", 60.0)
    monkeypatch.setattr(FakeCloud, "described", lambda self, ids: [])
    assert any(outcome.again for outcome in days.play(range(9021, 9024), hours=5, only="listings that are cut"))


def test_it_prints_what_it_found(capsys):
    shown = []
    for processes in ("1", "2"):
        assert days.main(["--days", "2", "--seed", "9001", "--hours", "2", "--processes", processes]) == 0
        shown.append(json.loads(capsys.readouterr().out) | {"wall_s": 0})
    assert shown[0] == shown[1] and shown[0]["days"] == 2
    with pytest.raises(SystemExit):
        days.main(["--days", "0"])
    assert "must be 1 or more" in capsys.readouterr().err


def test_days_that_were_kept_are_not_played_again(tmp_path, capsys, monkeypatch):
    """A thousand take hours: a run that was stopped goes on."""
    asked = ["--hours", "0.2", "--json", "--keep", str(tmp_path / "days")]
    assert days.main(["--days", "2", *asked]) == 0
    first = json.loads(capsys.readouterr().out)
    monkeypatch.setattr(days, "Day", None)
    assert days.main(["--days", "2", *asked]) == 0
    again = json.loads(capsys.readouterr().out)
    del first["wall_s"], again["wall_s"]
    assert again == first and first["days"] == 2


@pytest.mark.parametrize("played", some_fast((1, 2), 1))
@pytest.mark.parametrize("accident", ["a pod that never starts", "a pod that never ends"])
def test_a_pod_that_never_starts_or_ends_costs_what_the_table_allows(accident, played):
    outcomes = list(days.play(range(9042, 9042 + played), hours=8, only=accident, of=kube_days.KubeDay))
    seen = days.figures(outcomes)
    assert seen["states that last"] and seen["paid for states that last, USD"] > 10
    assert {key: value for key, value in seen.items() if key.endswith("(0)") and value} == {}


SLOW = ("a large image", "a registry that is away", "an init container that stages data")


@pytest.mark.slow
@pytest.mark.parametrize("accident", SLOW)
def test_pods_that_are_slow_and_good_are_not_cut_off(accident):
    (outcome,) = days.play([9052], hours=6, only=accident, of=kube_days.KubeDay)
    assert outcome.launches and not outcome.wrong


def test_a_slow_pod_that_is_cut_off_is_noticed(monkeypatch):
    row = replace(POD["ContainerCreating"], steps=((60.0, Then.TELL), (120.0, Then.REQUEUE)), again=True)
    monkeypatch.setitem(POD, "ContainerCreating", row)
    outcomes = days.play(range(9057, 9058), hours=6, only=SLOW[0], of=kube_days.KubeDay)
    assert any(outcome.again for outcome in outcomes)


def test_pods_that_are_believed_for_ever_are_noticed(monkeypatch):
    monkeypatch.setattr(lasting, "look", lambda site, observation: False)
    seen = days.figures(list(days.play([9043], hours=8, only="a pod that never starts", of=kube_days.KubeDay)))
    assert seen[days.LASTING] > 50 and seen[days.SILENT]
