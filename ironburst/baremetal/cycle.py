"""Takes a node through its life cycle, one look and one action at a time, until there is nothing to do but wait."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from ironburst.baremetal.lifecycle import Action, LifecycleRule, NodeFacts, State, rule

Power = Literal["on", "off", "moving"]
TRIES = 3
"""an action whose effect a BMC does not show is done this often"""
SETTLE_LOOKS = 20
"""how many looks what was asked may take to be shown: BMCs answer a reset or an insertion before it is done"""


class ConsoleError(Exception):
    """A BMC that did not do what was asked of it; the text is one sentence."""


@dataclass(frozen=True)
class Panel:
    """What a BMC shows: the power, the URL of the medium in it (None: none), and whether the next start is from it."""

    power: Power
    medium: str | None
    armed: bool


class Console(Protocol):
    """A node's BMC, as an installation uses it. Every method raises ConsoleError, and may be called again."""

    def look(self) -> Panel:
        """What it shows now."""

    def insert(self, url: str) -> None:
        """Put the medium in, or name what is to be loaded over HTTP."""

    def eject(self) -> None:
        """Take out whatever medium there is."""

    def arm(self, url: str) -> None:
        """The next start, once, is from the medium."""

    def disarm(self) -> None:
        """The start is the usual one again, and no medium is in it."""

    def power_on(self) -> None:
        """Power on; a machine that is on stays on."""


@dataclass(frozen=True)
class WantedInstall:
    """The installation that is wanted of one node: its mark, and the URL of its medium, which holds the mark."""

    mark: str
    medium: str
    allowed: bool


@dataclass(frozen=True)
class Standing:
    """Where a node stands, and why. `installed`: the mark by which its host reported that it is; None: not reported."""

    state: State
    why: str
    installed: str | None = None


def advance(
    wanted: WantedInstall | None, known: NodeFacts, console: Console, installed: str | None, pause: Callable[[], None]
) -> Standing:
    """Act until the next step is not ours: at once, or after some looks. `known`: the facts that do not change
    meanwhile (asked, hardware, record, time); `installed`: what the host reported right before; `pause`: between two
    looks at something that takes a moment. Raises ConsoleError.
    """
    done: dict[Action, int] = {}
    last: Action = ""
    failure: ConsoleError | None = None
    ended: LifecycleRule | None = None
    while True:
        row = _settled(wanted, known, console, installed, last, pause)
        if ended and row != ended:  # what has failed is put away by now, and stays the answer
            return Standing(ended.state, ended.why, installed)
        if not row.action:
            return Standing(row.state, row.why, installed)
        ended = row if row.state == "failed" else None
        last = row.action
        done[last] = done.get(last, 0) + 1
        if done[last] > TRIES:
            if failure:
                raise failure
            return Standing("failed", f"{row.why}: its BMC accepted that {TRIES} times, and does not show it")
        failure = None
        try:
            _do(last, console, wanted)
        except ConsoleError as error:  # it may have been done all the same: the next look says so
            failure = error


def standing(wanted: WantedInstall | None, known: NodeFacts, console: Console, installed: str | None) -> Standing:
    """Where the node stands; nothing is done. Raises ConsoleError."""
    row = rule(facts(wanted, known, console.look(), installed))
    return Standing(row.state, row.why, installed)


def seen(
    wanted: WantedInstall | None, known: NodeFacts, panel: Panel, installed: str | None, *, act: bool
) -> Standing | None:
    """Where the node stands by what its BMC showed a moment ago; None: to `act` there is something to do, or to wait
    for.
    """
    row = rule(facts(wanted, known, panel, installed))
    return None if act and (row.action or panel.power == "moving") else Standing(row.state, row.why, installed)


def _settled(
    wanted: WantedInstall | None,
    known: NodeFacts,
    console: Console,
    installed: str | None,
    last: Action,
    pause: Callable[[], None],
) -> LifecycleRule:
    """The row that holds once the BMC shows the effect of the `last` action, or had its time for it."""
    looks = 0
    while True:
        panel = console.look()
        row = rule(facts(wanted, known, panel, installed))
        looks += 1
        starting = last == "power_on" and panel.power != "on"  # what is shown of the next start may be used up by now
        if looks == SETTLE_LOOKS or not (panel.power == "moving" or starting or (row.action and row.action == last)):
            return row
        pause()


def facts(wanted: WantedInstall | None, known: NodeFacts, panel: Panel, installed: str | None) -> NodeFacts:
    """The known facts with those of this look."""
    medium: Literal["ours", "other", "none"] = "none"
    if panel.medium:
        # some BMCs show the last part of the URL alone
        ours = (wanted.medium, wanted.medium.rsplit("/", 1)[-1]) if wanted else ()
        medium = "ours" if panel.medium in ours else "other"
    disk: Literal["wanted", "other", "unknown"] = "unknown"
    if installed is not None:
        disk = "wanted" if wanted and installed == wanted.mark else "other"
    install: Literal["undeclared", "forbidden", "allowed"] = "undeclared"
    if wanted:
        install = "allowed" if wanted.allowed else "forbidden"
    return replace(
        known,
        install=install,
        disk=disk,
        medium=medium,
        boot="armed" if panel.armed else "usual",
        power=panel.power,
    )


def _do(action: Action, console: Console, wanted: WantedInstall | None) -> None:
    if action == "insert" and wanted:
        console.insert(wanted.medium)
    elif action == "arm" and wanted:
        console.arm(wanted.medium)
    elif action == "eject":
        console.eject()
    elif action == "disarm":
        console.disarm()
    elif action == "power_on":
        console.power_on()
