"""GPUs over time: the same as adding up second by second."""

import random

import numpy as np
import pytest

from ironburst.page import chart, history


@pytest.mark.parametrize("seed", range(20))
def test_an_average_is_gpu_seconds_over_seconds(seed):
    rng = random.Random(seed)
    edges = [1000.0 + 50 * n for n in range(9)]
    spans = [(rng.randrange(500, 1700), rng.randrange(500, 1700), rng.randrange(1, 9)) for _ in range(rng.randrange(9))]
    found = chart.average(np.array(spans, dtype=float).reshape(-1, 3), edges)
    for n, value in enumerate(found):
        seconds = np.arange(edges[n], edges[n + 1]) + 0.5
        used = sum(gpus * ((seconds > begin) & (seconds < end)) for begin, end, gpus in spans)
        assert value == pytest.approx(np.mean(used) if spans else 0.0)


def test_a_job_waits_until_it_starts_and_is_somewhere_until_it_left():
    """(GPUs, submitted, started, until, nodes), as the ledger tells of them."""
    jobs = [(8, 10.0, 30.0, 90.0, "dgx1,dgx2"), (4, 20.0, 40.0, 50.0, "p5-1"), (2, 60.0, None, 100.0, "")]
    recent = history.Recent(100.0, jobs, (), {}, frozenset({"p5-1"}), 16)
    home, rented, waiting = (each.tolist() for each in history._spans(recent))
    assert home == [[30, 90, 8]] and rented == [[40, 50, 4]]
    assert waiting == [[10, 30, 8], [20, 40, 4], [60, 100, 2]]
    assert [len(each.svg) > 100 for each in history.pictures(history.Recent(0.0, (), (), {}, frozenset(), 0))] == [
        True
    ] * 4
