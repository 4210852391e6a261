"""The digest of decisions: equal for equal ones, another one as soon as one of them is another."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import digest
from ironburst.burst import Policy, decide
from ironburst.replay import simulate
from ironburst.replay.home import Home
from ironburst.replay.simulate import play
from ironburst.replay.traces import Trace

SEEDS = range(8, 44, 9)  # sites with as many jobs as any


def playing():
    jobs = Trace(np.zeros(9), np.full(9, 3600.0), np.full(9, 8))
    return play(jobs, Home(1), Policy("home", 5400.0))


def test_equal_sites_give_equal_digests():
    first, again = digest.of_sites(SEEDS), digest.of_sites(SEEDS)
    assert first.count == len(SEEDS) * len(digest.POLICIES) and str(first) == str(again)
    assert str(digest.of_sites(range(9, 45, 9))) != str(first)


def test_one_decision_that_is_another_changes_the_digest(monkeypatch):
    """Here: the last one, which says that it waits with one word more."""
    before, asked = digest.of_sites(SEEDS), []

    def changed(snapshot, policy):
        asked.append(decision := decide(snapshot, policy))
        if len(asked) < before.count:
            return decision
        first, *others = decision.waits
        return replace(decision, waits=(replace(first, text=f"{first.text} still"), *others))

    monkeypatch.setattr(digest, "decide", changed)
    after = digest.of_sites(SEEDS)
    assert after.count == before.count == len(asked) and str(after) != str(before)


def test_a_play_is_digested_whole_and_goes_on_as_before():
    played = []
    first = digest.of_play(lambda: played.append(playing()))
    assert first.count == played[0].decisions > 0 and str(digest.of_play(playing)) == str(first)
    assert simulate.decide is decide and np.array_equal(playing().start_s, played[0].start_s)
    with pytest.raises(ZeroDivisionError):
        digest.of_play(lambda: 1 / 0)
    assert simulate.decide is decide


def test_it_prints_a_line_for_the_sites(monkeypatch, capsys):
    monkeypatch.setattr(digest, "of_sites", lambda: digest.Digest())
    assert digest.main(["--quick"]) == 0
    assert capsys.readouterr().out.startswith("sites: 0 decisions e3b0c442")
