"""What counts as a hall that is watched: every target up, the page for the broken GPU, a job with figures."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from lab.demo import watch
from lab.demo.summary import Summary, as_json, text
from lab.tests.demo.test_refusal import seen

WELL = watch.Watched(
    {"node/head": "up", "dcgm/dgx01": "up"}, "dgx02: GPU 0 is lost", "Drain the node.", 31.0, ("job 6",)
)


def test_all_of_it_is_asked_for():
    assert WELL.good() and WELL.text() == "2 of 2 targets up; dgx02: GPU 0 is lost (31 s after)"
    assert WELL.as_json()["good"] and WELL.as_json()["targets"]["node/head"] == "up"


@pytest.mark.parametrize("lacking", [{"targets": {}}, {"targets": {"node/head": "down"}}, {"alert": ""}, {"job": ()}])
def test_what_is_lacking_counts(lacking):
    assert not replace(WELL, **lacking).good()


def test_only_this_alert_of_this_node():
    assert watch._is_ours({"alertname": "GpuLost", "node": "dgx02"})
    assert not watch._is_ours({"alertname": "GpuLost", "node": "dgx01"})
    assert not watch._is_ours({"alertname": "Watchdog"})


def test_the_summary_has_it():
    history = SimpleNamespace(jobs=[SimpleNamespace(fate="home", gpu_hours=1.0)], run_twice=0, spent_usd=0.0, leases=())
    figures = {"rent_to_request_s": 0, "tick_s": 2, "joined_to_running_s": 0, "disk_peak_mb": 1, "memory_peak_mb": 1}
    result = Summary("engine", history=history, leftovers={"cloud": 0}, figures=figures, refused=seen(), watched=WELL)
    assert result.good() and as_json(result)["watched"] == WELL.as_json()
    assert "watched     well: 2 of 2 targets up" in text(result, "page")
    result.watched = replace(WELL, alert="")
    assert not result.good() and "watched     NOT well: 2 of 2 targets up; NO ALERT" in text(result, "page")
