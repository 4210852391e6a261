"""Spot under a deadline: windows of availability, what is paid on them, the published policies, and the best in
hindsight.

The rules are those of *Can't Be Late* (NSDI'24) for one instance: a launch, the first too, costs a changeover without
progress, billed at the new price; idle is free; an instance that goes during its changeover loses that part; decisions
are made where a tick begins; the last tick is billed to the minute of the end. Minutes are whole numbers.
"""

from __future__ import annotations

import csv
import io
import lzma
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

On = Literal["nothing", "spot", "on-demand"]
USD_PER_HOUR: dict[On, float] = {"nothing": 0.0, "on-demand": 3.06, "spot": 0.973}
WORK, TICK = 2880, 10  # minutes


class Window(NamedTuple):
    """A stretch of a zone's probes: whether spot can run, tick by tick from `start` of its series on."""

    series: str
    id: str
    start: int  # tick of the series
    there: np.ndarray


@dataclass(frozen=True)
class Setting:
    """Minutes to the deadline, of a changeover, and of work."""

    deadline: int
    changeover: int
    work: int = WORK

    @property
    def name(self) -> str:
        return f"{self.deadline / 60:g} h, {self.changeover} min"


SETTINGS = tuple(Setting(60 * hours, minutes) for hours in (52, 70) for minutes in (3, 12))


class State(NamedTuple):
    """What a policy sees where a tick begins. Minutes."""

    tick: int
    left: int  # to the deadline
    work: int  # to be done
    on: On
    changing: int  # of a changeover that isn't over
    there: bool


class Paid(NamedTuple):
    usd: float
    in_time: bool
    hours: dict[On, float]  # that were paid
    launches: int


Policy = Callable[[State], On]
Rule = Callable[[Setting], Policy]


def read(path: Path) -> list[Window]:
    """Rows of windows.csv.xz, in the order of the file."""
    with lzma.open(path) as file:
        rows = csv.DictReader(io.TextIOWrapper(file))
        return [
            Window(
                row["series"],
                row["start_id"],
                int(row["start_tick"]),
                np.frombuffer(row["spot_available"].encode(), np.uint8) == ord("1"),
            )
            for row in rows
        ]


def play(there: np.ndarray, setting: Setting, policy: Policy) -> Paid:
    """What a policy pays; behind the window's end no spot is there. Raises ValueError for spot where there is none."""
    on: On = "nothing"
    minute, work, changing, launches = 0, setting.work, 0, 0
    paid: dict[On, int] = dict.fromkeys(USD_PER_HOUR, 0)
    while work > 0:
        tick = minute // TICK
        is_there = tick < len(there) and bool(there[tick])
        if on == "spot" and not is_there:
            on, changing = "nothing", 0
        wanted = policy(State(tick, setting.deadline - minute, work, on, changing, is_there))
        if wanted == "spot" and not is_there:
            raise ValueError(f"tick {tick}: spot was chosen where there is none")
        if wanted != on:
            on, changing = wanted, 0 if wanted == "nothing" else setting.changeover
            launches += wanted != "nothing"
        used = TICK if on == "nothing" else min(TICK, changing + work)
        paid[on] += used
        minute += used
        if on != "nothing":
            work -= used - min(changing, used)
            changing -= min(changing, used)
        elif minute > setting.deadline + len(there) * TICK:
            break  # it would idle for ever
    usd = sum(USD_PER_HOUR[kind] * minutes / 60 for kind, minutes in paid.items())
    return Paid(usd, work <= 0 and minute <= setting.deadline, {kind: paid[kind] / 60 for kind in paid}, launches)


def greedy(setting: Setting) -> Policy:
    """Spot until it goes; waits for it while there is time; then on demand to the end."""
    changeover, to_the_end = setting.changeover, [False]

    def choose(state: State) -> On:
        if to_the_end[0]:
            return "on-demand"
        if state.on == "spot":
            return "spot"
        if state.there and state.left >= state.work + 2 * changeover:
            return "spot"
        if not state.there and state.left >= state.work + changeover + max(changeover, TICK):
            return "nothing"
        to_the_end[0] = True
        return "on-demand"

    return choose


def uniform_progress(setting: Setting) -> Policy:
    """*Can't Be Late*: on demand where it is behind an even progress, until it is ahead by two changeovers."""
    changeover, deadline, to_the_end = setting.changeover, setting.deadline, [False]

    def choose(state: State) -> On:
        done, minute = setting.work - state.work, deadline - state.left
        if to_the_end[0]:
            return "on-demand"
        if state.on == "spot":
            return "spot"
        enough = state.left >= state.work + 2 * changeover
        if state.on == "on-demand":
            ahead = done * deadline >= setting.work * (minute + 2 * changeover)
            return "spot" if state.there and ahead and enough else "on-demand"
        if enough and state.there:
            return "spot"
        if enough and done * deadline < setting.work * minute:
            return "on-demand"
        if enough and state.left >= state.work + changeover + max(changeover, TICK):
            return "nothing"
        to_the_end[0] = True
        return "on-demand"

    return choose


def optimum(there: np.ndarray, setting: Setting) -> float:
    """USD of the best in hindsight: backwards over ticks, by what runs, what is left of its changeover, and the work
    that is left.
    """
    work = np.arange(setting.work + 1)
    # of a changeover of at most two ticks this much is left where a tick begins
    changing = sorted({0, max(0, setting.changeover - TICK)})
    running: list[tuple[On, int]] = [(on, left) for on in ("spot", "on-demand") for left in changing]
    late = np.where(work > 0, np.inf, 0.0)
    after: dict[tuple[On, int], np.ndarray] = {("nothing", 0): late, **dict.fromkeys(running, late)}
    for tick in reversed(range(setting.deadline // TICK)):
        is_there = tick < len(there) and bool(there[tick])

        def runs(on: On, left: int, after: dict[tuple[On, int], np.ndarray] = after) -> np.ndarray:
            used = np.minimum(TICK, left + work)
            progress = np.maximum(0, used - left)
            later: np.ndarray = after[on, max(0, left - TICK)][work - progress]
            usd: np.ndarray = USD_PER_HOUR[on] * used / 60 + later
            return usd

        wait, demand = after["nothing", 0], runs("on-demand", setting.changeover)
        anew = np.minimum(wait, demand)
        if is_there:
            anew = np.minimum(anew, runs("spot", setting.changeover))
        before: dict[tuple[On, int], np.ndarray] = {("nothing", 0): anew}
        for on, left in running:
            if on == "spot" and not is_there:
                before[on, left] = anew
            else:
                before[on, left] = np.minimum(anew, runs(on, left))
        after = {key: np.where(work > 0, usd, 0.0) for key, usd in before.items()}
    return float(after["nothing", 0][setting.work])
