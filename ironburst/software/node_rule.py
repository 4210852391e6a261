"""The rules of one node as one kind of function, whatever each of them has to know."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

from ironburst.software.model import Facts
from ironburst.software.state import NodeState

NodeRule = Callable[[NodeState, Facts, date | None], str | None]
"""(node, what the catalogue knows, today) -> what is wrong, or None."""


def of_node(rule: Callable[[NodeState], str | None]) -> NodeRule:
    """A rule that looks only at the node."""
    return lambda node, *_: rule(node)


def of_node_and_facts(rule: Callable[[NodeState, Facts], str | None]) -> NodeRule:
    """A rule that asks the catalogue, too."""
    return lambda node, facts, _: rule(node, facts)
