"""The controller's files at one moment, as the page is made of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ironburst.controller.records import DecisionRow, EventRow
from ironburst.page.history import Picture

At = Callable[[float], str]  # writes a moment down
Usd = Mapping[str, Mapping[str, float]]  # by pool and account


@dataclass(frozen=True)
class Look:
    """The last look for drift: what `converge --check --receipt` wrote. `report` None: none can be read, and why."""

    report: dict[str, Any] | None
    where: str = ""
    why: str = ""


@dataclass(frozen=True)
class PageFiles:
    """The controller's files at one moment.

    `said`: as `status --json`; `tick_s`: when the queue and the nodes in it were last written; `wrong`: what can't be
    read, one sentence each; `spent`: of days (their name, USD by pool and account), the newest first.
    """

    said: dict[str, Any]
    tick_s: float | None
    wrong: Sequence[str]
    events: Sequence[EventRow]
    decisions: Sequence[DecisionRow]
    names: Mapping[int, str]  # how people call jobs
    why: Callable[[int], Sequence[str]]  # of a job: the sentence about it, then what was not done
    spent: Sequence[tuple[str, Usd]]
    pictures: Sequence[Picture]
    look: Look
    burn: Sequence[str] = ()  # what costs money now, in sentences
    links: Sequence[tuple[str, str]] = ()  # (name, URL) of what shows more
    late: str = ""  # that the controller is silent, as a sentence
