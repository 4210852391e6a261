"""Every value of the example stacks, replaced by what doesn't belong there: sentences, never a traceback."""

import copy
import math
import random
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import ValidationError

from ironburst.config import load, refusals, stack
from ironburst.config.checks import check
from ironburst.config.software_models import Strict

STACKS = sorted((Path(__file__).parents[3] / "stacks").glob("Pulumi.*.yaml"))
NOW = datetime(2026, 11, 21, tzinfo=UTC)
WRONG = [
    *(None, "", " ", True, 0, -1, 10**30, 2.5, math.nan, math.inf, -math.inf),
    *([], {}, [None], [[]], {"a": {"b": [1]}}, [{}], {1: 2}),
    *("x" * 5000, "ünï☃", "\x00", "a\nb", "[", "a[1-", "[0-99999999]", "{{ x }}", "%n%s", "../..", "-", "*", "0x1f"),
    *(
        "0.0.0.0/0",
        "::1",
        "http://[",
        "https://a:b@[::1]:99999/",
        "p5.48xlarge",
        "9" * 400,
        "1e999",
        "24.11",
        "4294967296d",
    ),
    datetime(2026, 1, 1),
]


def places(value, path=()):
    """Paths of everything in a value, sections and lists too."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


def put(value, path, new):
    if not path:
        return new
    changed = copy.deepcopy(value)
    at = changed
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = new
    return changed


def said(value):
    """Findings of a value; whatever isn't a finding is a crash."""
    try:
        return check(load.from_value(value), NOW)
    except load.ConfigError as error:
        return error.findings


@pytest.mark.parametrize("path", STACKS, ids=[path.name for path in STACKS])
def test_whatever_stands_anywhere_is_told_in_sentences(path):
    value = load.read_value(path)
    mutations = [(where, wrong) for where in places(value) for wrong in WRONG]
    for where, wrong in random.Random(path.name).sample(mutations, min(len(mutations), MOST)):
        try:
            findings = said(put(value, where, wrong))
        except Exception as error:
            raise AssertionError(f"{where} = {wrong!r:.60}: {type(error).__name__}: {error}") from error
        for each in findings:
            assert each.message and "\n" not in each.message and each.path.startswith("config"), (where, wrong, each)
            assert not re.search(r"Traceback|<class|object at 0x|pydantic", each.message), (where, wrong, each)


def sections(model=Strict):
    """Every kind of section that a stack file may have, in one that an example has or not."""
    for each in model.__subclasses__():
        yield each
        yield from sections(each)


@pytest.mark.parametrize("section", list(sections()), ids=lambda section: section.__name__)
def test_an_empty_text_is_a_value_nowhere(section):
    for name, field in section.model_fields.items():
        for empty, words in (("", "is empty; write a value, or leave the key out"), ([""], "an empty text")):
            with pytest.raises(ValidationError) as error:
                section.model_validate({field.alias or name: empty})
            findings = map(refusals.finding, error.value.errors())
            (found,) = (each for each in findings if each.path.rpartition(".")[2] == (field.alias or name))
            assert words in found.message


def test_a_pool_of_an_empty_type_is_one_sentence(declared):
    """It was an IndexError where its software is solved."""
    declared["cloud"]["pools"][0]["instance_type"] = ""
    with pytest.raises(load.ConfigError) as error:
        stack.valid(load.from_value(declared), STACKS[0], now=NOW)
    (found,) = error.value.findings
    assert (found.path, found.message) == (
        "config.ironburst:cluster.cloud.pools[0].instance_type",
        "'' is empty; write a value, or leave the key out",
    )


MOST = 400
"""mutations of one file that are tried; all of them were, once: `MOST` of 100,000 takes some minutes"""


@pytest.mark.parametrize("path", STACKS, ids=[path.name for path in STACKS])
def test_whatever_is_left_out_is_told_in_sentences(path):
    value = load.read_value(path)
    for where in list(places(value))[1:]:
        changed = copy.deepcopy(value)
        at = changed
        for key in where[:-1]:
            at = at[key]
        del at[where[-1]]
        assert all(each.message for each in said(changed))
