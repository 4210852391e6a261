"""Waits and curves of a played trace, and pictures of them."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from ironburst.replay import results
from ironburst.replay.pictures import Panel, Series, axis_values, svg
from ironburst.replay.traces import Trace

HOUR = 3600.0


def test_waits_are_counted_over_all_jobs_and_weighted_by_their_work():
    trace = Trace(np.zeros(4), np.array([1, 1, 1, 7]) * HOUR, np.array([1, 1, 1, 1]))
    waits = results.waits(trace, np.array([0, 1, 2, 5]) * HOUR)
    assert (waits.mean_h, waits.p50_h, waits.max_h) == (2.0, 1.5, 5.0)
    assert waits.gpu_hour_weighted_h == pytest.approx((0 + 1 + 2 + 35) / 10) and waits.p95_h == pytest.approx(4.55)
    limits = waits.limits()
    assert (limits.mean_h, limits.max_h, limits.gpu_hour_weighted_h) == (2.0, 5.0, pytest.approx(3.8))


@pytest.mark.parametrize("seed", range(5))
def test_the_mean_in_use_is_exact(seed):
    random = np.random.default_rng(seed)
    begins = random.uniform(0, 100, 50)
    ends, gpus = begins + random.exponential(20, 50), random.integers(1, 9, 50).astype(float)
    edges = np.sort(random.uniform(0, 150, 12))
    for low, high, mean in zip(edges, edges[1:], results.mean_in_use(begins, ends, gpus, edges), strict=False):
        within = np.maximum(np.minimum(ends, high) - np.maximum(begins, low), 0.0)
        assert mean == pytest.approx((within * gpus).sum() / (high - low))


def test_curves_hold_all_the_work_and_all_the_waiting():
    trace = Trace(np.array([0.0, 0.0, HOUR]), np.array([2, 2, 3]) * HOUR, np.array([8, 4, 2]))
    start, rented = np.array([0.0, 2 * HOUR, HOUR]), np.array([False, False, True])
    curves = results.curves(trace, start, start + trace.duration_s, rented)
    step = curves.hours[1] - curves.hours[0]
    assert curves.home.sum() * step == pytest.approx(24) and curves.rented.sum() * step == pytest.approx(6)
    assert curves.queued.sum() * step == pytest.approx(8) and len(curves.hours) == results.POINTS


def test_a_picture_is_well_formed_and_the_same_for_the_same_numbers():
    panels = [
        Panel(
            "waits & money <1>",
            "h",
            "USD",
            {"a": Series([0, 1, 2], [3, float("nan"), 5]), "b": Series([1], [2], True, ["x < y"])},
        ),
        Panel("nothing", "h", "USD", {}),
    ]
    text = svg(panels)
    assert text == svg(panels)
    root = ET.fromstring(text)
    words = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"waits & money <1>", "x < y", "nothing"} <= set(words) and "nan" not in text
    assert len(list(root.iter("{http://www.w3.org/2000/svg}circle"))) == 1


@pytest.mark.parametrize(
    ("low", "high", "expected"), [(0, 10, [0, 2, 4, 6, 8, 10]), (0, 0.31, [0, 0.1, 0.2, 0.3]), (5, 5, [5])]
)
def test_axes_have_round_numbers(low, high, expected):
    assert axis_values(low, high)[: len(expected)] == pytest.approx(expected)
