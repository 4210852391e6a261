"""GPUs over time: what the pictures say of what ticks saw and of leases, added up here second by second."""

import dataclasses
import random
import re

import pytest

from ironburst.controller.lease_states import State
from ironburst.controller.records import GpuUseRow, LeaseRow
from ironburst.page import chart, history

NOW_S, QUARTER_S = 400_000.0, 900.0
KNOWN = {"instance_type": "p5.48xlarge", "state": State.ENDED}
LEASE = LeaseRow(**dict.fromkeys((field.name for field in dataclasses.fields(LeaseRow)), None) | KNOWN)


def lease(from_s, to_s):
    return dataclasses.replace(LEASE, from_s=from_s, to_s=to_s)


@pytest.mark.parametrize("seed", range(20))
def test_an_average_is_gpu_seconds_over_the_seconds_that_passed(seed):
    rng = random.Random(seed)
    edges = [NOW_S - 1000 + 300 * n for n in range(5)]  # the last part goes on
    spans = [(begin, begin + rng.choice((60, 400, 2000))) for begin in rng.sample(range(398_000, 400_000), 5)]
    leases = [lease(float(begin), rng.choice((float(end), None))) for begin, end in spans]
    found = history._paid(history.Recent(NOW_S, (), leases, {"p5.48xlarge": 8}, 0), edges)
    for n, value in enumerate(found):
        seconds = range(int(edges[n]), int(min(edges[n + 1], NOW_S)))
        ends = [each.to_s or NOW_S for each in leases]
        paid = sum(8 * (each.from_s <= at < end) for at in seconds for each, end in zip(leases, ends, strict=True))
        assert value == pytest.approx(paid / len(seconds))


def test_of_what_no_tick_saw_nothing_is_said():
    """Half of a quarter of an hour was seen; the next one wasn't; the one after it was, and the last part goes on."""
    first = int(NOW_S // QUARTER_S) - 3
    seen = [used(first, 450, home=8, waiting=2), used(first + 2, 900, home=4), used(first + 3, 60, home=4)]
    gpus, wanted, month, _ = history.pictures(history.Recent(NOW_S, seen, (), {}, 16))
    assert "in use at home: 5.3 on average, 8.0 at most, 4.0 at last" in gpus.svg
    assert "wanted by jobs that wait: 0.7 on average, 2.0 at most, 0.0 at last" in wanted.svg
    assert f"in use at home: {(8 * 450 + 4 * 960) / 1410:.1f} on average" in month.svg
    (line,) = re.findall(r'class="line home" d="([^"]*)"', gpus.svg)
    assert line.count("M") == 2 and "in use at home: not known" in gpus.svg


def used(quarter, seen_s, **gpus):
    seconds = {name: float(seen_s * gpus.get(name, 0)) for name in ("home", "rented", "waiting")}
    return GpuUseRow(**seconds, quarter=quarter, last_s=0.0, seen_s=float(seen_s))


def test_a_ledger_that_nobody_has_written_yet_has_pictures():
    pictures = history.pictures(history.Recent(0.0, (), (), {}, 0))
    assert len(pictures) == 4 and all("in use at home: not known" in pictures[n].svg for n in (0, 2))
    assert chart.drawn([chart.Series("x", "home", [None])], [0.0, 1.0], [], ["then"]).count("M") == 3
