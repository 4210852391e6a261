"""The table of the life cycle: asked for every combination of facts, and what may never be done."""

import typing
from dataclasses import fields
from itertools import product

import pytest

from ironburst.baremetal import lifecycle
from ironburst.baremetal.lifecycle import RULES, NodeFacts, rule

WORDS = {each.name: typing.get_args(typing.get_type_hints(NodeFacts)[each.name]) for each in fields(NodeFacts)}
ALL = [NodeFacts(**dict(zip(WORDS, words, strict=True))) for words in product(*WORDS.values())]
DESTRUCTIVE = ("insert", "arm", "power_on", "eject")


def test_every_combination_has_its_row_and_every_row_is_some_combinations():
    met = {id(rule(facts)) for facts in ALL}
    assert len(ALL) > 10_000 and met == {id(row) for row in RULES}


def test_rows_use_words_that_facts_have():
    for row in RULES:
        assert row.state in typing.get_args(lifecycle.State) and row.action in typing.get_args(lifecycle.Action)
        for fact, words in row.when.items():
            assert set(words.split("|")) <= set(WORDS[fact])


@pytest.mark.parametrize(
    ("fact", "word"),
    [
        ("install", "undeclared"),
        ("install", "forbidden"),
        ("disk", "wanted"),
        ("record", "wanted"),
        ("hardware", "differs"),
        ("hardware", "unread"),
        ("power", "on"),
        ("power", "moving"),
        ("bmc", "silent"),
        ("asked", "maintenance"),
        ("asked", "retiring"),
    ],
)
def test_no_installation_begins(fact, word):
    """Insert and eject begin one. A record alone stops no installation that has begun: a medium of ours is in."""
    for facts in ALL:
        if getattr(facts, fact) == word:
            assert rule(facts).action not in ("insert", "eject"), facts


@pytest.mark.parametrize(
    ("fact", "word"),
    [
        ("install", "undeclared"),
        ("install", "forbidden"),
        ("disk", "wanted"),
        ("power", "on"),
        ("power", "moving"),
        ("time", "over"),
        ("asked", "maintenance"),
        ("asked", "retiring"),
    ],
)
def test_nothing_destructive_goes_on(fact, word):
    for facts in ALL:
        if getattr(facts, fact) == word and rule(facts).action in DESTRUCTIVE:
            # time counts from the start of an installation: without a medium of ours there is none
            assert fact == "time" and facts.medium != "ours", facts


def test_a_machine_starts_from_our_medium_alone():
    for facts in ALL:
        if rule(facts).action in ("arm", "power_on"):
            assert facts.medium == "ours" and facts.power == "off" and facts.install == "allowed"
        if rule(facts).action == "power_on":
            assert facts.boot == "armed"


def test_only_what_says_so_itself_is_an_installed_ready_node():
    for facts in ALL:
        if rule(facts).state == "ready" and facts.install != "undeclared":
            assert facts.disk == "wanted"
