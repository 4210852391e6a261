"""Takes one node's components to their minimums: one after the other, each sent once, until one is not reached."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from ironburst.baremetal.cycle import ConsoleError
from ironburst.baremetal.firmware import rows
from ironburst.baremetal.hardware import Component
from ironburst.baremetal.updates import (
    ComponentFacts,
    Image,
    Limits,
    NeededUpdate,
    Seen,
    State,
    Task,
    UpdateNote,
    UpdateRule,
    WantedFirmware,
    facts,
    found,
    key,
    needs,
    own,
    rule,
)

TRIES = 3
"""a BMC is asked so often that is silent before anything was sent"""
LATER_TRIES = 30
"""so often an image is offered that the BMC does not take now"""


class Silent(ConsoleError):
    """A BMC that doesn't answer now, or not with all that is needed: it is asked again."""


@dataclass(frozen=True)
class UpdateAnswer:
    """What came of sending an image. later, refused: surely nothing was begun; lost: it may have been."""

    kind: Literal["taken", "later", "refused", "lost"]
    task: str | None = None
    why: str = ""


class Service(Protocol):
    """A node's BMC, as an update uses it. Every method raises ConsoleError."""

    def look(self, task: str | None) -> Seen:
        """What it shows now; `task`: one that it may not list. Raises Silent."""

    def send(self, component: Component, image: Image, about_to: Callable[[], None]) -> UpdateAnswer:
        """Once, whatever happens; `about_to` is called right before."""

    def start(self) -> None:
        """Restart the machine, or switch it on; once, whatever happens."""


class Notes(Protocol):
    """What is remembered of one node's updates, by component; kept before a call returns."""

    def all(self) -> Mapping[str, UpdateNote]:
        """Every one."""

    def put(self, key: str, note: UpdateNote) -> None:
        """In the place of what there was."""

    def drop(self, key: str) -> None:
        """It has ended."""


@dataclass(frozen=True)
class Result:
    """Where a component stands, and why, without the node's name."""

    key: str
    before: str | None
    state: State
    why: str


@dataclass(frozen=True)
class How:
    """`check`: why an image can't be had, or is another one. `take`: returns when the node is idle, and stays so.
    `clock`: seconds since 1970; `limit_s`: for one component. `start`: the machine may be started; `again`: the last
    step that came to nothing is done once more, for somebody has looked; `stop`: nothing is begun any more.
    """

    check: Callable[[Image], str | None]
    take: Callable[[], None]
    clock: Callable[[], float]
    pause: Callable[[], None]
    say: Callable[[str], None]
    limit_s: float
    start: bool = False
    again: bool = False
    stop: Callable[[], bool] = lambda: False
    limits: Limits = field(default_factory=Limits)


def update(wanted: Sequence[WantedFirmware], service: Service, notes: Notes, how: How) -> list[Result]:
    """One result for each component that was not as declared; it ends with the first that isn't reached. Raises
    ConsoleError, and what `take` raises.
    """
    results: list[Result] = []
    while not how.stop():
        seen = _first_look(service, how)
        done = {each.key for each in results}
        for name in [name for name in notes.all() if _reached(wanted, seen, name)]:
            notes.drop(name)
        left = [each for each in needs(wanted, seen.components, notes.all()) if each.key not in done]
        with_image = [each for each in left if each.image]
        if not with_image:
            return results + [_without(each) for each in left]
        results.append(_One(with_image[0], service, notes, how).to_its_end())
        if results[-1].state != "reached":
            return results
    return results


def _reached(wanted: Sequence[WantedFirmware], seen: Seen, name: str) -> bool:
    every = [row for each in wanted for row in rows([each.minimum], seen.components)]
    orders = {row.order for row in every if row.component and key(row.component, seen.components) == name}
    return orders == {"reached"}


def _without(need: NeededUpdate) -> Result:
    version = need.row.component.version if need.row.component else None
    return Result(need.key, version, "no image", "it is below its minimum, and no image is declared")


def _first_look(service: Service, how: How) -> Seen:
    for _ in range(TRIES - 1):
        try:
            return service.look(None)
        except Silent:
            how.pause()
    return service.look(None)


class _One:
    """One component, from where it stands to its end."""

    def __init__(self, need: NeededUpdate, service: Service, notes: Notes, how: How) -> None:
        assert need.image and need.row.component
        self._need, self._image, self._before = need, need.image, need.row.component.version
        self._service, self._notes, self._how = service, notes, how
        self._end, self._quiet = how.clock() + how.limit_s, 0.0
        self._refusals, self._again = 0, how.again
        self._taken: set[str] = set()
        self._ignored: frozenset[str] = frozenset()

    def to_its_end(self) -> Result:
        """Looks and acts until the next step is not ours, or the time is over."""
        silent = 0
        while True:
            note = self._notes.all().get(self._need.key)
            try:
                seen = self._service.look(note.task if note else None)
            except Silent as error:
                self._quiet, silent = self._how.clock(), silent + 1
                if note is None and silent >= TRIES:
                    raise
                if self._over(note):
                    return self._result("updating", f"{error}; the time is over")
                self._how.pause()
                continue
            silent = 0
            note, mine = self._noted(seen, note)
            known = self._facts(seen, note, mine)
            row = rule(known)
            if self._forgotten(row, known, seen, note):
                continue
            if row.action == "look":
                if self._over(note):
                    return self._result("updating", f"{row.why}; the time is over")
                self._how.pause()
            elif not row.action:
                if row.state == "reached":
                    self._notes.drop(self._need.key)
                return self._result(row.state, row.why)
            elif ended := self._act(row, seen, note):
                return ended

    def _over(self, note: UpdateNote | None) -> bool:
        """A machine that starts has its own time."""
        starts = note and note.started is not None and self._how.clock() - note.started < self._how.limits.start
        return not starts and self._how.clock() > self._end

    def _facts(self, seen: Seen, note: UpdateNote | None, mine: Task | None) -> ComponentFacts:
        return facts(self._need, seen, note, mine, self._how.clock(), self._quiet, self._how.limits)

    def _noted(self, seen: Seen, note: UpdateNote | None) -> tuple[UpdateNote | None, Task | None]:
        """The note with what this look tells of its task. One of an earlier image, which is installed by now, goes."""
        if note and note.sha256 != self._image.sha256:
            now = found(self._need.key, seen.components)
            if now and now.version not in (None, note.before):
                self._notes.drop(self._need.key)
                note = None
        mine = own(seen, note, self._image, self._ignored)
        if mine is None:
            return note, None
        its = note or self._new_note(seen)
        ended = mine.phase if mine.phase in ("done", "failed") else its.ended
        its = replace(its, ended=ended, task=its.task or mine.path)
        if its != note:
            its = replace(its, at=self._how.clock())
            self._notes.put(self._need.key, its)
        return its, mine

    def _new_note(self, seen: Seen) -> UpdateNote:
        now, minimum = self._how.clock(), self._need.row.minimum
        version = getattr(found(self._need.key, seen.components), "version", None) or ""
        return UpdateNote(version, minimum.at_least, self._image.uri, self._image.sha256, now, now, seen.paths)

    def _forgotten(self, row: UpdateRule, known: ComponentFacts, seen: Seen, note: UpdateNote | None) -> bool:
        """The last step that came to nothing, the start or the sending, is forgotten, once, where somebody says so and
        nothing of it is at work.
        """
        idle = known.other == "none" and known.task not in ("runs", "waits") and known.staged == "no"
        if not self._again or not idle or row.state not in ("failed", "unsure", "waits"):
            return False
        self._again = False
        if note and note.started is not None:
            self._notes.put(self._need.key, replace(note, started=None))
        else:
            self._ignored = frozenset(seen.paths)
            self._notes.drop(self._need.key)
        return True

    def _act(self, row: UpdateRule, seen: Seen, note: UpdateNote | None) -> Result | None:
        if row.action == "start" and not self._how.start:
            return self._result(row.state, row.why)
        if row.action == "send" and (why := self._how.check(self._image)):
            return self._result("refused", why)
        if row.action not in self._taken:  # its jobs may take a day: after them it is looked at again
            self._how.take()
            self._taken.add(row.action)
            self._end = self._how.clock() + self._how.limit_s
            return None
        if row.action == "start":
            self._start(note or self._new_note(seen))
            return None
        if self._how.stop():
            return self._result("below", "it was not begun, for another node of its rack was not reached")
        return self._send(seen)

    def _send(self, seen: Seen) -> Result | None:
        component = found(self._need.key, seen.components)
        if component is None:
            return self._result("failed", "its BMC doesn't list it any more")
        note, key = self._new_note(seen), self._need.key
        self._how.say(f"{key} {component.version}: {self._image.version} is sent")
        answer = self._service.send(component, self._image, lambda: self._notes.put(key, note))
        if answer.kind == "taken":
            self._notes.put(key, replace(note, task=answer.task, at=self._how.clock()))
        elif answer.kind == "lost":
            self._how.say(f"{key}: {answer.why}; its BMC is asked what became of it")
        else:
            self._notes.drop(key)
            self._refusals += 1
            if answer.kind == "refused" or self._refusals > LATER_TRIES or self._over(None):
                return self._result("refused", answer.why)
            self._how.pause()
        return None

    def _start(self, note: UpdateNote) -> None:
        """Noted first: a machine that writes firmware in its self-test must never be started a second time."""
        now = self._how.clock()
        self._notes.put(self._need.key, replace(note, started=now, at=now))
        self._how.say(f"{self._need.key}: starts the machine")
        try:
            self._service.start()
        except ConsoleError as error:  # it may have been done all the same
            self._how.say(f"{self._need.key}: {error}")

    def _result(self, state: State, why: str) -> Result:
        return Result(self._need.key, self._before, state, why)
