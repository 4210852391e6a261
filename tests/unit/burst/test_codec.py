"""Snapshots from JSON: what doesn't fit is one sentence with the path."""

import math
import random

import pytest

from ironburst.burst import (
    Snapshot,
    codec,
    from_json,
    to_json,
)
from ironburst.burst.codec import DataError
from tests.fakes.snapshots import job, snapshot

NAN = math.nan


def test_a_damaged_snapshot_says_where():
    data = to_json(snapshot([job()]))
    data["jobs"][0]["nodes"] = "two"
    with pytest.raises(ValueError, match=r"Snapshot\.jobs\[0\]\.nodes: int is needed"):
        from_json(Snapshot, data)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("now_s",), NAN, "Snapshot.now_s: float is needed, not nan"),
        (("jobs",), 5, "Snapshot.jobs: a list is needed, not 5"),
        (("jobs",), "abc", "Snapshot.jobs: a list is needed, not 'abc'"),
        (("jobs", 0, "nodes"), True, "Snapshot.jobs[0].nodes: int is needed, not True"),
        (("jobs", 0, "nodes"), 10**30, "Snapshot.jobs[0].nodes: 1000000000000000000000000000000 is larger"),
        (("jobs", 0, "submit_s"), 10**400, "is larger than any number here may be"),
        (("jobs", 0, "each"), [8], "Snapshot.jobs[0].each: a mapping is needed, not [8]"),
        (("jobs", 0, "time_limit_s"), "soon", "Snapshot.jobs[0].time_limit_s: float is needed, not 'soon'"),
        (("pools", 0, "usd_per_hour"), ["spot"], "Snapshot.pools[0].usd_per_hour: a mapping is needed"),
        (("budget",), {"usd_per_month": 1.0}, "Snapshot.budget: "),
    ],
)
def test_a_damaged_file_is_one_sentence_with_the_path(path, value, said):
    data = to_json(snapshot([job()]))
    at = data
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    with pytest.raises(DataError) as error:
        from_json(Snapshot, data)
    assert said in str(error.value) and "\n" not in str(error.value) and len(str(error.value)) < 250


@pytest.mark.parametrize("seed", range(100))
def test_the_quick_way_gives_what_the_slow_one_gives(seed):
    """Whatever is damaged: the same value, or the same sentence."""
    rng = random.Random(seed)
    data = to_json(snapshot([job(), job(2, limit_s=None)]))
    for _ in range(rng.choice((0, 1, 1, 3))):
        at = data
        while isinstance(at, dict | list) and at and rng.random() < 0.9:
            key = rng.choice(sorted(at)) if isinstance(at, dict) else rng.randrange(len(at))
            if not isinstance(at[key], dict | list) or rng.random() < 0.1:
                at[key] = rng.choice((None, True, 5, 5.0, -(10**30), NAN, math.inf, "x", [], {}, [1], {"a": 1}, 2**63))
                break
            at = at[key]

    def read(how, *arguments):
        try:
            return how(*arguments)
        except DataError as error:
            return str(error)

    quick, slow = read(from_json, Snapshot, data), read(codec._decode, Snapshot, data, "Snapshot")
    assert repr(quick) == repr(slow)
