"""What is in the way of renting for a job now, with its sentence: thousands of waiting jobs share one refusal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ironburst.burst import explain
from ironburst.burst.headroom import Charge, Headroom, named
from ironburst.burst.orders import Halt
from ironburst.burst.snapshot import CoolDown, Node, Pool
from ironburst.nodes import states as node_states

CODES = frozenset(("max_nodes", "cool_down", "closed", "budget", "halted", "user_limit"))


@dataclass(frozen=True)
class Obstacle:
    """Why an offer is closed for now."""

    code: str  # of CODES
    text: str
    look_again_s: float | None = None


@dataclass(frozen=True)
class Refusal:
    """What is in the way of the cheapest offers, in their order."""

    obstacles: tuple[Obstacle, ...]

    @cached_property
    def codes(self) -> tuple[str, ...]:
        """Of the obstacles."""
        return tuple(obstacle.code for obstacle in self.obstacles)

    @cached_property
    def text(self) -> str:
        """All of them in one sentence."""
        return "; ".join(obstacle.text for obstacle in self.obstacles)

    @cached_property
    def look_again_s(self) -> float | None:
        """When the first of them may be gone; None: when something changes."""
        moments = [obstacle.look_again_s for obstacle in self.obstacles if obstacle.look_again_s is not None]
        return min(moments, default=None)


def too_few_names(pool: Pool, free: int, needs: int, others: Mapping[str, Sequence[str]]) -> Obstacle:
    """The number of its nodes that can be launched; the job needs more. `others`: what keeps the rest, with their
    names.
    """
    text = f"{free} of its {explain.plural(len(pool.nodes), 'node')} free to rent, it needs {needs}"
    why = "; ".join(f"{len(names)} {words}" for words, names in others.items())
    return Obstacle("max_nodes", f"pool {pool.name} has {text}" + (f" ({why})" if why else ""))


def not_launchable(node: Node | None, refused_s: float | None = None) -> str:
    """Why a node of a pool that nobody rents can't be launched now, in words behind its number. `refused_s`: when the
    cloud refused its last launch; None: it didn't.
    """
    if node is None:
        return "that the scheduler doesn't know"
    if node.held_by_person:
        return f"held by a person ({node.reason})" if node.reason else "held by a person"
    if node_states.reserved(node.states):
        return "reserved"
    if node_states.moving(node.states):
        why = "given back" if refused_s is None else f"refused by the cloud at {explain.at(refused_s)}"
        return f"{why} and being powered down by the scheduler"
    if node.has("DOWN"):
        return "down"
    return "not rented, and not yet off and drained in the scheduler"


def halted(halt: Halt) -> Refusal:
    """A person has paused or stopped the renting."""
    return Refusal((Obstacle("halted", halt.text, halt.until_s),))


def all_zones_closed(offer: str, cool_downs: Sequence[CoolDown]) -> Obstacle:
    """Each zone of an offer refused lately, or its pool has none. `offer`: its name for people."""
    ends = [cool_down.until_s for cool_down in cool_downs if cool_down.until_s is not None]
    where = explain.listed(map(_closed, cool_downs)) or "every zone: none is declared"
    return Obstacle("cool_down", f"{offer} is closed in {where}", min(ends, default=None))


def dearer_closed(count: int, obstacles: Sequence[Obstacle]) -> Obstacle:
    """The number of further offers, none of them open, in one clause."""
    text = f"{explain.plural(count, 'dearer offer')} beside them: closed, too"
    return Obstacle("closed", text, Refusal(tuple(obstacles)).look_again_s)


def over_budget(headroom: Headroom, asked: Sequence[Charge], what: str) -> Obstacle | None:
    """The ceiling that can't pay for `what` beside all that is promised, and until when. None: there is money."""
    if (short := headroom.short(asked)) is None:
        return None
    ceiling, needed, left = short
    spent, aside = ceiling.spent_usd, ceiling.usd - ceiling.spent_usd - left
    text = (
        f"{what} would set aside {explain.usd(needed)}, and {explain.usd(max(left, 0.0))} of {named(ceiling)} is left "
        f"({explain.usd(spent)} spent, {explain.usd(aside)} set aside) until {explain.at(ceiling.to_s)}"
    )
    return Obstacle("budget", text, ceiling.to_s)


def _closed(cool_down: CoolDown) -> str:
    until = "a person reopens it" if cool_down.until_s is None else explain.at(cool_down.until_s)
    return f"{cool_down.zone} until {until} ({cool_down.reason})"
