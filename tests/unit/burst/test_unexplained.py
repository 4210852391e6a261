"""A decision that no person reads decides the same."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.digest import POLICIES
from ironburst.burst import decide
from ironburst.replay import simulate
from ironburst.replay.home import Home
from ironburst.replay.traces import Trace
from tests.fakes.random_sites import made


def unsaid(items):
    return [replace(each, reason="") for each in items]


def told(waits):
    return [(wait.job, wait.code, wait.look_again_s, wait.rent_s) for wait in waits]


@pytest.mark.parametrize("seed", range(40))
def test_without_its_sentences_a_decision_is_the_same(seed):
    site = made(seed, count=seed % 9)
    for policy in POLICIES:
        said, brief = decide(site, policy), decide(site, policy, explained=False)
        for name in ("launches", "assigns"):
            assert unsaid(getattr(brief, name)) == unsaid(getattr(said, name))
        for name in ("widen", "narrow", "releases", "moves"):
            assert getattr(brief, name) == getattr(said, name)
        assert [(each.job, each.code) for each in brief.infeasible] == [(e.job, e.code) for e in said.infeasible]
        brief_waits, waits = told(brief.waits), told(said.waits)
        assert [each[:2] for each in brief_waits] == [each[:2] for each in waits]
        assert brief_waits == waits
        assert not any(wait.text or wait.alternatives for wait in brief.waits if wait.code.startswith("home"))


@pytest.mark.parametrize(("submit_s", "sound"), [(0.0, True), (-60.0, False), (1e12, False)])
def test_a_play_skips_the_search_for_damage_only_where_there_is_none(submit_s, sound, monkeypatch):
    asked, real = [], simulate.decide
    monkeypatch.setattr(simulate, "decide", lambda *what, **how: asked.append(how["sound"]) or real(*what, **how))
    jobs = Trace(submit_s + np.arange(3.0), np.full(3, 3600.0), np.full(3, 8))
    simulate.play(jobs, Home(1), POLICIES[0])
    assert asked and set(asked) == {sound}
