"""A decision about one job as a person would say it. Every number in it comes from the decision and the job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ironburst.burst import explain
from ironburst.burst.decision import Alternative, Infeasible, Wait

# why an alternative was not taken, by its code: said after "but", or by itself
WHY_NOT = {
    "soon": "home is soon enough",
    "limit": "it may still wait",
    "sooner": "home is sooner",
    "yet": "there is time for that yet",
    "spot": "it can still wait for spot",
    "late": "home is too late for it",
    "dearer": "it costs more",
    "closed": "it is closed for now",
    "max_nodes": "too few of the pool's nodes are free to rent",
    "cool_down": "the cloud refused it lately",
    "budget": "too little of the budget is left",
    "halted": "the renting is halted",
    "user_limit": "a person has limited what its user may have",
}
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_AT_HOME = frozenset(("home_soon", "home_sooner"))


@dataclass(frozen=True)
class Asked:
    """The job, as far as the sentence names it."""

    job: int | str  # as people call it
    nodes: int
    gpus: int  # a node
    time_limit_s: float | None


def sentence(asked: Asked, decided: Wait | Infeasible, at_s: float, clock: Callable[[float], str] = explain.at) -> str:
    """What was decided at `at_s`, and the best of what was not. `clock` writes a moment down."""
    limit = "no time limit" if asked.time_limit_s is None else explain.duration(asked.time_limit_s)
    job = f"Job {asked.job} ({explain.plural(asked.nodes * asked.gpus, 'GPU')}, {limit})"
    if isinstance(decided, Infeasible):
        return f"{job} can't be rented for: {decided.text}."
    best = decided.alternatives[0] if decided.alternatives else None
    if decided.code == "renting":
        cost = f" at about {explain.dollars(decided.usd)}" if decided.usd else ""
        ready = "" if decided.start_s is None else f", to start by {clock(decided.start_s)}"
        return f"{job} is rented for{cost}{ready}{_instead(best, decided, at_s)}: {decided.text}."
    at_home = decided.code in _AT_HOME
    if decided.start_s is None or not (at_home or best):
        return f"{job} waits: {decided.text}."
    here, many = _room(asked)
    if decided.start_s <= at_s:
        said = f"{job} can start at home now: {here} {'are' if many else 'is'} free there"
    else:
        said = f"{job} waits until {clock(decided.start_s)}: {here} {'free' if many else 'frees'} up at home by then"
    return f"{said}{_instead(best, decided, at_s)}{'' if at_home else _but(best)}."


def alternative(other: Alternative, decided: Wait, at_s: float) -> str:
    """One alternative by itself: "two p5.48xlarge (on-demand, pool p5):
    $661 more, 0.4 h sooner; home is soon enough".
    """
    where = f" ({other.market}, pool {other.pool})" if other.pool else ""
    more = _usd(other, decided) - decided.usd
    money = f"{explain.dollars(abs(more))} {'more' if more > 0 else 'less'}"
    if abs(more) < 0.005:
        money = "for the same money"
    sooner = _sooner_s(other, decided, at_s)
    time = "" if sooner is None else f", {_hours(abs(sooner))} {'sooner' if sooner >= 0 else 'later'}"
    return f"{_what(other)}{where}: {money}{time}; {WHY_NOT.get(other.why, other.why)}"


def _instead(best: Alternative | None, decided: Wait, at_s: float) -> str:
    """The best alternative as a clause."""
    if best is None:
        return ""
    sooner = _sooner_s(best, decided, at_s)
    if best.what == "home":
        time = "" if sooner is None else f" and start it {_hours(abs(sooner))} {'sooner' if sooner > 0 else 'later'}"
        return f"; waiting at home would save {explain.dollars(decided.usd - _usd(best, decided))}{time}"
    time = ""
    if sooner is not None:
        time = f" and save {_hours(sooner)}" if sooner > 0 else f" and start it {_hours(-sooner)} later"
    verb = "renting" if best.what == "rent" else "using"
    return f"; {verb} {_what(best)} now would cost about {explain.dollars(_usd(best, decided))}{time}"


def _usd(other: Alternative, decided: Wait) -> float:
    return other.usd(decided.run_s or 0.0)


def _but(best: Alternative | None) -> str:
    return f", but {WHY_NOT.get(best.why, best.why)}" if best else ""


def _what(other: Alternative) -> str:
    if other.what == "home":
        return "waiting at home"
    return f"{number(other.nodes)} {'rented ' if other.what == 'share' else ''}{other.instance_type}"


def _sooner_s(other: Alternative, decided: Wait, at_s: float) -> float | None:
    return None if decided.start_s is None else max(decided.start_s - at_s, 0.0) - other.in_s


def _room(asked: Asked) -> tuple[str, bool]:
    """What it needs at home, and whether that is many."""
    if asked.nodes > 1:
        return f"{number(asked.nodes)} nodes", True
    return (explain.plural(asked.gpus, "GPU"), asked.gpus > 1) if asked.gpus else ("a node with CPUs", False)


def number(count: int) -> str:
    """two; 13"""
    return _NUMBERS[count] if 0 <= count < len(_NUMBERS) else str(count)


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:,.1f} h" if seconds >= 180 else explain.duration(seconds)
