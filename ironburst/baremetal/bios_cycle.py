"""Brings settings of a BIOS into force: the machine off, they are set, a start into the firmware's setup, read back.

Every step is decided by what the BMC says then, so that a run that was killed is gone on with by the next one. The
start goes into the setup, where no system runs: what is on the disk is started by nobody who only sets a BIOS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from ironburst.baremetal import bios
from ironburst.baremetal.bios import Bios
from ironburst.baremetal.cycle import SETTLE_LOOKS, ConsoleError
from ironburst.config.bios_models import Setting

TRIES = 6
"""an action whose effect a BMC does not show is done this often: it may be busy with a self-test for a while"""
STARTS = 2
"""some take the settings at the second start alone"""
SETTLED_LOOKS = 90
"""at a started machine after which what neither waits nor is in force was dropped. A quarter of an hour: what is in
force is shown late, when a self-test that has terabytes of memory to look at is over
"""
SETTLE_S, LOOK_S = 1.0, 10.0
"""between two looks: at something that takes a moment, and at a machine that starts"""
Outcome = Literal["in force", "waits", "dropped", "not taken"]
"""waits: no start into the setup was to be had, and the machine was off; not taken: no start took it, and it waits"""


class SaidNo(ConsoleError):
    """A BMC that refused what was asked of it, and would do so again."""


class NotShown(ConsoleError):
    """A BMC that accepts what is asked of it, and does not show it."""


@dataclass(frozen=True)
class BiosView:
    """What a BMC shows; `setup`: the next start, or every one, is into the firmware's setup."""

    power: Literal["on", "off", "moving"]
    setup: bool
    bios: Bios


class Console(Protocol):
    """A node's BMC, as its BIOS is set. Every method raises ConsoleError, and may be called again."""

    def look(self) -> BiosView:
        """What it shows now."""

    def set(self, settings: Mapping[str, Setting]) -> None:
        """These are to be in force from the next start on."""

    def to_setup(self) -> bool:
        """The next starts are into the setup, or the next one where there is no more; False: it offers none."""

    def usual(self) -> None:
        """The next start is the usual one again."""

    def power_on(self) -> None:
        """Power on."""

    def power_off(self, clean: bool) -> None:
        """Off; `clean`: a system may run, and gets its time to end."""


class Setter:
    """One node. `take`: returns when nothing of a job is on it and none can come; `pause` waits that many seconds;
    `start_looks`: how many looks one start may take; `say`: what goes on, in a few words; `passing`: errors after which
    a BMC is asked again.
    """

    def __init__(
        self,
        declared: Mapping[str, Setting],
        console: Console,
        *,
        take: Callable[[], None],
        pause: Callable[[float], None],
        start_looks: int,
        say: Callable[[str], None],
        passing: tuple[type[ConsoleError], ...],
    ):
        self._declared, self._console, self._take, self._pause = declared, console, take, pause
        self._start_looks, self._say, self._passing = start_looks, say, passing
        self._in_setup = False

    def run(self) -> tuple[Outcome, BiosView]:
        """What became of it, and the last look. The machine's power is as it was before. Raises ConsoleError, and what
        `take` raises.
        """
        view = self._seen(lambda each: each.power != "moving")
        if not self._wanted(view) and not view.setup:
            return "in force", view
        was_on = view.power == "on" and not view.setup
        if view.power != "off":
            self._take()
            view = self._seen(lambda each: each.power != "moving")
        outcome: Outcome = "in force"
        if self._wanted(view):
            try:
                outcome = self._start(view, was_on)
            except (SaidNo, NotShown):  # it answers, so what was on needn't stay off
                self._put_back(was_on)
                raise
        return outcome, self._put_back(was_on)

    def _start(self, view: BiosView, was_on: bool) -> Outcome:
        # an earlier run's start may be writing them right now
        began = view.power == "on" and view.setup and self._waits(view)
        for _ in range(STARTS):
            if not began:
                self._off()
                self._set(self._wanted(view))
                self._in_setup = self._to_setup()
                if not self._in_setup and not was_on:
                    return "waits"
                self._say("starts into its setup" if self._in_setup else "starts its system: its BMC offers no setup")
                self._until(self._console.power_on, lambda each: each.power == "on")
            began = False
            view = self._started()
            if not self._wanted(view):
                return "in force"
            if not self._waits(view):
                return "dropped"
        return "not taken"

    def _started(self) -> BiosView:
        """The look at a machine that has started once its settings are in force, were dropped, or its time is over."""
        view: BiosView | None = None
        failure: ConsoleError | None = None
        dropped = 0
        for _ in range(self._start_looks):
            try:
                view = self._console.look()
            except self._passing as error:
                failure = error
            else:
                dropped = 0 if self._waits(view) else dropped + 1
                if not self._wanted(view) or dropped == SETTLED_LOOKS:
                    return view
            self._pause(LOOK_S)
        if view is None and failure:
            raise failure
        assert view
        return view

    def _put_back(self, was_on: bool) -> BiosView:
        """Out of the setup, the next start as usual, and the power as it was."""
        view = self._seen(lambda each: each.power != "moving")
        if view.power == "on" and (view.setup or self._in_setup):
            self._off()
        if view.setup:
            self._until(self._console.usual, lambda each: not each.setup)
        if was_on and self._seen(lambda each: each.power != "moving").power == "off":
            self._until(self._console.power_on, lambda each: each.power == "on")
        return self._seen(lambda _: True)

    # ---- what is shown counts, and not the answer

    def _wanted(self, view: BiosView) -> dict[str, Setting]:
        """What is declared and not in force."""
        rows = bios.rows(self._declared, view.bios)
        return {row.name: row.declared for row in rows if row.order != "in force"}

    def _waits(self, view: BiosView) -> bool:
        return any(view.bios.waits(name, value) for name, value in self._declared.items())

    def _set(self, wanted: Mapping[str, Setting]) -> None:
        """Also what waits already: a Dell's settings wait for ever without the job that this makes."""
        self._say(f"sets {', '.join(wanted)}")
        answered = False

        def act() -> None:
            nonlocal answered
            answered = False
            self._console.set(wanted)
            answered = True

        def is_set(view: BiosView) -> bool:
            if view.bios.waiting is None:  # what waits is never shown, so the answer has to do
                return answered
            return all(view.bios.waits(name, value) for name, value in self._wanted(view).items())

        self._until(act, is_set)

    def _off(self) -> None:
        view = self._seen(lambda each: each.power != "moving")
        if view.power != "off":
            clean = not (self._in_setup and view.setup)  # else a system may run all the same
            if clean:  # it may have been given back since
                self._take()
            self._until(lambda: self._console.power_off(clean), lambda each: each.power == "off")

    def _to_setup(self) -> bool:
        offered = True

        def act() -> None:
            nonlocal offered
            offered = self._console.to_setup()

        try:
            self._until(act, lambda view: view.setup or not offered)
        except NotShown:
            return False
        return offered

    def _until(self, act: Callable[[], object], shown: Callable[[BiosView], bool]) -> None:
        """Acts, and looks until it is shown; again, if it never is."""
        failure: ConsoleError | None = None
        for _ in range(TRIES):
            failure = None
            try:
                act()
            except ConsoleError as error:  # it may have been done all the same
                failure = error
            view = self._seen(shown)
            if shown(view):
                return
            if isinstance(failure, SaidNo):
                break
        raise failure or NotShown(f"its BMC accepted that {TRIES} times, and does not show it")

    def _seen(self, shown: Callable[[BiosView], bool]) -> BiosView:
        """The first look at which it is shown, else the last one. Raises ConsoleError where there was none."""
        view: BiosView | None = None
        failure: ConsoleError | None = None
        for look in range(SETTLE_LOOKS):
            if look:
                self._pause(SETTLE_S)
            try:
                view = self._console.look()
            except self._passing as error:
                failure = error
            else:
                if shown(view):
                    return view
        if view is None:
            raise failure or ConsoleError("was never looked at")
        return view
