"""Spot under a deadline: the published policies' figures are those that were published with the data, and ours never
ends a job late, whatever spot does.
"""

import functools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks import spot, spot_peers
from benchmarks.figures import DATA
from benchmarks.spot_peers import SETTINGS, TICK, WORK, Setting, State, Window
from ironburst.burst.memory import SpotMarket
from ironburst.burst.policy import DeadlineMoves

FILE = DATA / spot.WINDOWS
needs_data = pytest.mark.skipif(not FILE.exists(), reason=f"there is no {spot.WINDOWS} in IRONBURST_DATA")
# shared data's peers.md, section 6: mean USD of 120 windows
PUBLISHED = {
    (52, 3): (100.1320, 129.3411, 112.0541),
    (52, 12): (109.9395, 133.0085, 126.4274),
    (70, 3): (82.5608, 104.1048, 88.2578),
    (70, 12): (92.5301, 112.9116, 104.0809),
}
NOTHING = SpotMarket("burst")


@functools.cache
def windows(path: Path = FILE) -> list[Window]:
    return spot_peers.read(path)


def mean_usd(setting: Setting, policy: spot_peers.Rule) -> float:
    paid = [spot_peers.play(window.there, setting, policy(setting)) for window in windows()]
    assert all(each.in_time for each in paid)
    return float(np.mean([each.usd for each in paid]))


@needs_data
@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_the_published_policies_cost_what_was_published(setting: Setting) -> None:
    _, greedy, uniform = PUBLISHED[setting.deadline // 60, setting.changeover]
    assert mean_usd(setting, spot_peers.greedy) == pytest.approx(greedy, abs=5e-5)
    assert mean_usd(setting, spot_peers.uniform_progress) == pytest.approx(uniform, abs=5e-5)


@needs_data
def test_one_window_costs_what_was_published() -> None:
    setting = Setting(52 * 60, 12)
    window = next(each for each in windows() if (each.series, each.id) == ("us-west-2a_v100_1", "191"))
    assert spot_peers.optimum(window.there, setting) == pytest.approx(121.1648, abs=5e-5)
    assert spot_peers.play(window.there, setting, spot_peers.greedy(setting)).usd == pytest.approx(142.3662, abs=5e-5)
    uniform = spot_peers.play(window.there, setting, spot_peers.uniform_progress(setting))
    assert uniform.usd == pytest.approx(141.5163, abs=5e-5)


@needs_data
@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_the_best_in_hindsight_costs_what_was_published(setting: Setting) -> None:
    best = np.mean([spot_peers.optimum(window.there, setting) for window in windows()])
    assert best == pytest.approx(PUBLISHED[setting.deadline // 60, setting.changeover][0], abs=5e-5)


def brute_force(there: np.ndarray, setting: Setting) -> float:
    """Every sequence of choices, for a few ticks."""
    best = np.inf

    def go(choices: list[spot_peers.On]) -> None:
        nonlocal best
        asked = [False]

        def policy(state: State) -> spot_peers.On:
            if state.tick < len(choices):
                return choices[state.tick]
            asked[0] = True
            return "nothing"

        try:
            paid = spot_peers.play(there, setting, policy)
        except ValueError:
            return  # spot where there is none
        if paid.in_time:
            best = min(best, paid.usd)
        if asked[0] and len(choices) < setting.deadline // TICK:
            for on in ("nothing", "spot", "on-demand"):
                go([*choices, on])

    go([])
    return float(best)


@settings(deadline=None, max_examples=25)
@given(st.lists(st.booleans(), min_size=6, max_size=6), st.sampled_from((3, 12)), st.integers(20, 45))
def test_the_best_in_hindsight_is_the_best_of_all_sequences(there: list[bool], changeover: int, work: int) -> None:
    setting = Setting(6 * TICK, changeover, work)
    assert spot_peers.optimum(np.array(there), setting) == pytest.approx(brute_force(np.array(there), setting))


# ---- ours


def ours(setting: Setting, seen: SpotMarket = NOTHING) -> spot_peers.Policy:
    return spot.ours(setting, seen, DeadlineMoves(0.0, 60.0 * TICK))


spells = st.lists(st.tuples(st.booleans(), st.integers(1, 60)), min_size=1, max_size=60)
short = st.builds(
    lambda slack, work, changeover: Setting(work + slack, changeover, work),
    slack=st.integers(5, 60).map(lambda ticks: ticks * TICK),
    work=st.integers(6, 60).map(lambda ticks: ticks * TICK),
    changeover=st.sampled_from((3, 12)),
)


@settings(deadline=None, max_examples=60)
@given(spells, short)
def test_no_deadline_is_missed_whatever_spot_does(spells: list[tuple[bool, int]], setting: Setting) -> None:
    there = np.array([there for there, ticks in spells for _ in range(ticks)])
    assert spot_peers.play(there, setting, ours(setting)).in_time


@settings(deadline=None, max_examples=30)
@given(short, st.integers(0, 2**32 - 1), st.floats(0.0, 1.0))
def test_no_deadline_is_missed_where_spot_goes_as_soon_as_it_is_taken(
    setting: Setting, seed: int, spite: float
) -> None:
    """The availability answers the choices: taken spot goes at the next tick, as often as `spite` says."""
    random, there, policy = np.random.default_rng(seed), np.ones(setting.deadline // TICK + 1, bool), ours(setting)

    def choose(state: State) -> spot_peers.On:
        wanted = policy(state)
        if state.tick + 1 < len(there):
            there[state.tick + 1] = random.random() >= (spite if wanted == "spot" else 0.3)
        return wanted

    assert spot_peers.play(there, setting, choose).in_time


@settings(deadline=None, max_examples=20)
@given(spells, short, st.tuples(st.floats(0, 1e4), st.floats(0, 1e4)), st.tuples(st.floats(0, 1e4), st.floats(0, 1e4)))
def test_no_deadline_is_missed_whatever_was_seen_before(
    spells: list[tuple[bool, int]], setting: Setting, ended: tuple[float, float], expected: tuple[float, float]
) -> None:
    there = np.array([there for there, ticks in spells for _ in range(ticks)])
    seen = SpotMarket("burst", ended=ended, expected=expected)
    assert spot_peers.play(there, setting, ours(setting, seen)).in_time


def test_it_costs_little_more_than_spot_where_spot_is_always_there() -> None:
    setting = Setting(70 * 60, 12)
    paid = spot_peers.play(np.ones(500, bool), setting, ours(setting))
    assert paid.launches == 1 and paid.usd == pytest.approx((WORK + 12) / 60 * spot_peers.USD_PER_HOUR["spot"])


def test_where_spot_never_comes_it_is_on_demand_once() -> None:
    setting = Setting(52 * 60, 3)
    paid = spot_peers.play(np.zeros(500, bool), setting, ours(setting))
    assert paid.launches == 1 and paid.hours["spot"] == 0 and paid.in_time
