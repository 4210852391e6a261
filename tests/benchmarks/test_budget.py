"""The benchmark of hard ceilings: none is passed, and one that is broken is noticed."""

import json

import pytest

from benchmarks import budget
from benchmarks.mishaps import Scenario


def test_no_ceiling_is_passed_whatever_goes_wrong():
    figures = budget.figures(budget.play(range(9001, 9009), ticks=50))
    assert figures["passed"] == [] and figures["times a ceiling was passed (0)"] == 0
    assert figures["instances left over"] == 0
    assert figures["launches"] > 10 and figures["failures in all"] > 25 and len(figures["failures"]) > 10
    # they were in the way
    assert figures["scenarios in which a job waited for money"] > 4 and figures["worst use of a ceiling"] > 0.8


@pytest.mark.slow
def test_no_ceiling_is_passed_in_forty_scenarios():
    figures = budget.figures(budget.play(range(9101, 9141)))
    assert figures["passed"] == [] and figures["instances left over"] == 0 and figures["worst use of a ceiling"] > 0.9


@pytest.mark.parametrize("broken", [budget.no_ceiling, budget.nothing_is_set_aside])
def test_a_broken_ceiling_is_noticed(broken):
    with broken():
        assert any(each.passed for each in budget.play([9001, 9002], ticks=50))


def test_the_bill_is_the_clouds_own(tmp_path):
    site = Scenario(9001, tmp_path)
    key = ("month", "", site.declared[0][0], site.declared[0][0] + 7200)
    now = site.clock.now()
    site.prices = {"on-demand": 10.0, "spot": 10.0}
    site.declared = [(now, {"on-demand": 10.0}, site.money), (now + 1800, {"on-demand": 20.0}, site.money)]
    site._market = lambda id: "on-demand"
    site.cloud.began, site.cloud.ended = {"i-1": now, "i-2": now + 3600}, {"i-1": now + 3600, "i-2": now + 3601}
    site.payers = {"i-1": [(0.0, "vision"), (now + 900, "speech")]}
    minute = 20 / 60  # the second one is paid for a minute
    assert site._spent(key) == pytest.approx(5 + 10 + minute)
    assert site._spent(("month", "vision", *key[2:])) == pytest.approx(2.5)
    site.ledger.close()


def test_it_prints_what_it_found(capsys):
    assert budget.main(["--scenarios", "1", "--seed", "9001", "--ticks", "50", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["scenarios"] == 1
    assert list(figures["broken on purpose: ceilings passed"]) == ["scenarios", *budget.BROKEN]
    with pytest.raises(SystemExit):
        budget.main(["--scenarios", "0"])
    assert "must be 1 or more" in capsys.readouterr().err
