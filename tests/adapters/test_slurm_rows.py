"""Slurm's answers row by row: the same as read whole, and what is printed again isn't read again."""

import json
from pathlib import Path

import pytest

from ironburst.adapters.slurm import fields as slurm_fields
from ironburst.adapters.slurm.rows import Rows

FIXTURES = Path(__file__).parent / "slurm_fixtures"
ANSWERS = [(path, key) for path in sorted(FIXTURES.glob("*/*.json")) for key in ("jobs", "nodes")]
# what a user may write into the name or comment of a job; json-c escapes quotes and line breaks
HOSTILE = [
    '\n    },\n    {\n      "job_id": 1',
    '"jobs": [\n    {\n',
    "\ud83d",
    "}]}",
    "\u2028",
    "",
    '"last_sched_evaluation"',
]
LOOKED = "last_sched_evaluation"


def read(rows, text, size=1 << 20):
    """As a pipe gives it."""
    data = text.encode()
    return rows.read(data[at : at + size] for at in range(0, len(data), size))


def steady(answer, key):
    """Without what slurmctld writes at each look of its own."""
    return answer | {key: [{k: v for k, v in row.items() if k != LOOKED} for row in answer.get(key, [])]}


@pytest.mark.parametrize(("path", "key"), ANSWERS, ids=[f"{p.parent.name}-{p.stem}-{key}" for p, key in ANSWERS])
@pytest.mark.parametrize("indent", [None, 1, 2, 4])
def test_the_same_as_read_whole(path, key, indent):
    answer = json.loads(path.read_text())
    text, rows = json.dumps(answer, indent=indent), Rows(key)
    for size in (1 << 20, 70_001, 70_000, 1009):
        assert steady(read(rows, text, size), key) == steady(answer, key)


@pytest.mark.parametrize("size", range(1, 60))
def test_wherever_the_pipe_ends_a_piece(size, monkeypatch):
    monkeypatch.setattr("ironburst.adapters.slurm.rows._HEAD", 40)
    answer = {
        "meta": {"a": 1},
        "jobs": [{"id": n, "name": "é" * n, "in": [{"jobs": []}]} for n in range(4)],
        "errors": [],
    }
    text = json.dumps(answer, indent=2, ensure_ascii=False)
    assert read(Rows("jobs"), text, size) == answer


def test_a_row_that_is_printed_again_is_the_same_object():
    rows = Rows("jobs")
    first = read(rows, json.dumps({"meta": {}, "jobs": [{"id": 1}, {"id": 2}, {"id": 2}], "errors": []}, indent=2))
    then = read(rows, json.dumps({"meta": {}, "jobs": [{"id": 2}, {"id": 3}], "errors": ["one"]}, indent=2))
    assert first["jobs"] == [{"id": 1}, {"id": 2}, {"id": 2}] and then["errors"] == ["one"]
    assert then["jobs"][0] is first["jobs"][1] and then["jobs"][1] == {"id": 3}
    assert rows.made == 3


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("looked", [lambda at_s: at_s, lambda at_s: {"set": True, "infinite": False, "number": at_s}])
def test_a_row_is_the_same_when_slurm_has_looked_at_the_job_again(place, looked):
    """In the form of v0.0.39, and of the later ones; whichever field it is (the last one stays, and costs a read)."""

    def text(at_s):
        fields = [("job_id", 7), ("name", LOOKED)]
        return json.dumps({"jobs": [dict([*fields[:place], (LOOKED, looked(at_s)), *fields[place:]])]}, indent=2)

    rows = Rows("jobs", slurm_fields.job)
    first, then = read(rows, text(1)), read(rows, text(2))
    assert first["jobs"] == then["jobs"] == [{"job_id": 7, "name": LOOKED}]
    assert rows.made == (2 if place == 2 else 1)


@pytest.mark.parametrize("name", HOSTILE)
def test_what_a_user_writes_ends_no_row(name):
    answer = {"jobs": [{"id": 1, "name": name}, {"id": 2, "jobs": [{"name": name}, {}]}], "nodes": [{"id": 3}]}
    text = json.dumps(answer, indent=2)
    for key in answer:
        assert read(Rows(key), text) == json.loads(json.dumps(answer).replace("\\ud83d", "?"))


@pytest.mark.parametrize("cut", [10, 60, -4, -20])
def test_an_answer_that_is_cut_short_is_none(cut):
    text = json.dumps({"jobs": [{"id": 1}, {"id": 2}], "errors": []}, indent=2)
    with pytest.raises(ValueError):
        read(Rows("jobs"), text[:cut])
