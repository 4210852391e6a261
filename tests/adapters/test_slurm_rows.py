"""Slurm's answers row by row: the same as read whole, and what is printed again isn't read again."""

import json
from pathlib import Path

import pytest

from ironburst.adapters.slurm.rows import Rows

FIXTURES = Path(__file__).parent / "slurm_fixtures"
ANSWERS = [(path, key) for path in sorted(FIXTURES.glob("*/*.json")) for key in ("jobs", "nodes")]
# what a user may write into the name or comment of a job; json-c escapes quotes and line breaks
HOSTILE = ['\n    },\n    {\n      "job_id": 1', '"jobs": [\n    {\n', "\ud83d", "}]}", "\u2028", ""]


@pytest.mark.parametrize(("path", "key"), ANSWERS, ids=[f"{p.parent.name}-{p.stem}-{key}" for p, key in ANSWERS])
@pytest.mark.parametrize("indent", [None, 1, 2, 4])
def test_the_same_as_read_whole(path, key, indent):
    answer = json.loads(path.read_text())
    text, rows = json.dumps(answer, indent=indent), Rows(key)
    for _ in range(3):
        assert rows.read(text) == answer


def test_a_row_that_is_printed_again_is_the_same_object():
    rows = Rows("jobs")
    first = rows.read(json.dumps({"meta": {}, "jobs": [{"id": 1}, {"id": 2}, {"id": 2}], "errors": []}, indent=2))
    then = rows.read(json.dumps({"meta": {}, "jobs": [{"id": 2}, {"id": 3}], "errors": ["one"]}, indent=2))
    assert first["jobs"] == [{"id": 1}, {"id": 2}, {"id": 2}] and then["errors"] == ["one"]
    assert then["jobs"][0] is first["jobs"][1] and then["jobs"][1] == {"id": 3}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_a_user_writes_ends_no_row(name):
    answer = {"jobs": [{"id": 1, "name": name}, {"id": 2, "jobs": [{"name": name}, {}]}], "nodes": [{"id": 3}]}
    text = json.dumps(answer, indent=2)
    for key in answer:
        assert Rows(key).read(text) == json.loads(json.dumps(answer).replace("\\ud83d", "?"))


@pytest.mark.parametrize("cut", [10, 60, -4, -20])
def test_an_answer_that_is_cut_short_is_none(cut):
    text = json.dumps({"jobs": [{"id": 1}, {"id": 2}], "errors": []}, indent=2)
    with pytest.raises(ValueError):
        Rows("jobs").read(text[:cut])
