"""Snapshots from JSON: what doesn't fit is one sentence with the path."""

import math

import pytest

from ironburst.burst import (
    Snapshot,
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
