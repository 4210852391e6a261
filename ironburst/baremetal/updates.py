"""An update of one component's firmware: what is known of it, and one table of what is done next. Pure.

The table looks at what the BMC says now, and at a note that was written before anything was sent. So it can be asked
again after any crash, and nothing is sent a second time as long as the first may still be at work.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from ironburst.baremetal import rule_table
from ironburst.baremetal.firmware import FirmwareComparison, Minimum, rows
from ironburst.baremetal.hardware import Component
from ironburst.baremetal.said import dig, text
from ironburst.config.firmware_versions import compare

Phase = Literal["runs", "waits", "done", "failed"]
State = Literal["reached", "below", "updating", "waits", "failed", "unsure", "refused", "no image"]
Action = Literal["", "look", "send", "start"]
"""look: the BMC is asked again, later; send: the image, once; start: the machine, once, where that is asked for"""

WAITING = frozenset({"Suspended", "Pending"})
FAILED = frozenset({"Exception", "Killed", "Cancelled"})
"""`TaskState`; one that isn't known goes on"""


@dataclass(frozen=True)
class Image:
    """What a component is updated with; `version`: what it has then."""

    uri: str
    sha256: str
    version: str


@dataclass(frozen=True)
class WantedFirmware:
    """A declared minimum, and what reaches it; `image` None: nothing is declared."""

    minimum: Minimum
    image: Image | None


@dataclass(frozen=True)
class Task:
    """One of a BMC's tasks. `image`: the URI that it was asked to fetch, where it says so."""

    path: str
    monitor: str | None
    phase: Phase
    image: str | None = None


@dataclass(frozen=True)
class UpdateNote:
    """What is remembered of an update; it is written before it is sent. Times are in seconds since 1970: `at`, of what
    was learned last; `started`, when the machine was asked to start. `others`: the tasks that there were before;
    `ended`: how its task ended, where that was seen.
    """

    before: str
    at_least: str
    uri: str
    sha256: str
    sent: float
    at: float
    others: tuple[str, ...] = ()
    task: str | None = None
    ended: Literal["", "done", "failed"] = ""
    started: float | None = None


@dataclass(frozen=True)
class ComponentFacts:
    """What is known of one component, each fact one word. `task`: of this update; `other`: an update that isn't known
    to be this one, and hasn't ended; `staged`: the new version is listed as waiting; `start`: of the machine, since;
    `time`: whether what was learned last may not be shown yet.
    """

    task: Literal["none", "runs", "waits", "done", "failed"] = "none"
    other: Literal["none", "runs", "waits"] = "none"
    note: Literal["none", "sent", "done", "failed"] = "none"
    version: Literal["reached", "below", "moved", "unread"] = "below"
    staged: Literal["yes", "no"] = "no"
    start: Literal["not asked", "asked", "long ago"] = "not asked"
    time: Literal["short", "enough"] = "enough"


class UpdateRule(NamedTuple):
    """One row: where all facts of `when` hold (each one word, or several with a bar between), the component is in
    `state`, `action` is next; `why` is shown to people.
    """

    when: dict[str, str]
    state: State
    action: Action
    why: str


STAGED = "what was sent waits for the machine's next start, or has come to nothing"
# The first row that holds counts. `send` is in the last one alone: behind every doubt.
RULES: tuple[UpdateRule, ...] = (
    UpdateRule({"task": "runs"}, "updating", "look", "its BMC is at it"),
    UpdateRule({"version": "reached"}, "reached", "", "it has the version"),
    UpdateRule(
        {"task": "waits", "start": "not asked"}, "waits", "start", "its update waits for the machine's next start"
    ),
    UpdateRule({"task": "waits", "start": "asked"}, "updating", "look", "the machine starts"),
    UpdateRule({"task": "waits"}, "failed", "", "the machine was to start, and its update waits all the same"),
    UpdateRule({"task": "failed"}, "failed", "", "its BMC says that the update has failed"),
    UpdateRule({"note": "failed"}, "failed", "", "its BMC said that the update has failed"),
    UpdateRule({"other": "runs"}, "updating", "look", "its BMC has an unfinished task, which may be another update"),
    UpdateRule({"other": "waits"}, "waits", "", "its BMC has a task that waits, which may be another update"),
    UpdateRule({"start": "asked"}, "updating", "look", "the machine starts"),
    UpdateRule({"start": "long ago"}, "failed", "", "the machine was to start, and its version is no other"),
    UpdateRule({"note": "sent|done", "time": "short"}, "updating", "look", "its version is not shown yet"),
    UpdateRule(
        {"note": "sent|done", "version": "moved"}, "failed", "", "it came out as another version, which is too low"
    ),
    UpdateRule({"note": "done"}, "waits", "start", STAGED),
    UpdateRule({"task": "done"}, "waits", "start", STAGED),
    UpdateRule(
        {"staged": "yes"}, "waits", "start", "the new version is staged, and waits for the machine's next start"
    ),
    UpdateRule({"note": "none", "version": "unread"}, "updating", "look", "its BMC doesn't say its version"),
    UpdateRule({"note": "sent"}, "unsure", "", "it was sent, and its BMC shows neither a task nor another version"),
    UpdateRule({}, "below", "send", "it is below its minimum"),
)


def rule(known: ComponentFacts) -> UpdateRule:
    """The row that holds."""
    return rule_table.first(RULES, known)


# ---- what a BMC says


def task(body: dict[str, Any], path: str) -> Task | None:
    """A Task document; None: it is none, or of something that is no update."""
    state = text(body, "TaskState")
    if state is None:
        return None
    target = text(body, "Payload/TargetUri")
    if target and "updateservice" not in target.lower():
        return None
    phase: Phase = "runs"
    if state in WAITING:
        phase = "waits"
    elif state in FAILED:
        phase = "failed"
    elif state == "Completed":
        phase = "failed" if text(body, "TaskStatus") == "Critical" else "done"
    monitor = text(body, "TaskMonitor", "TaskMonitor/@odata.id")
    return Task(path, monitor and monitor.rstrip("/"), phase, _asked(body))


def _asked(body: dict[str, Any]) -> str | None:
    sent = dig(body, "Payload/JsonBody")
    try:
        sent = json.loads(sent) if isinstance(sent, str) else sent
    except ValueError:
        return None
    found = dig(sent, "ImageURI")
    return found if isinstance(found, str) else None


# ---- components


def key(component: Component, every: Iterable[Component]) -> str:
    """By what a component is found again: its name, where no other has it, for Dell's Ids change with the version."""
    same = [each for each in every if each.name == component.name]
    return component.name if len(same) == 1 else component.id


@dataclass(frozen=True)
class NeededUpdate:
    """A component that is not known to have its minimum."""

    key: str
    row: FirmwareComparison
    image: Image | None


def needs(
    wanted: Sequence[WantedFirmware], components: Sequence[Component], noted: Iterable[str] = ()
) -> Iterator[NeededUpdate]:
    """In the order of the declaration, those below their minimum; and those that are `noted` and haven't reached it."""
    every = frozenset(noted)
    for each in wanted:
        for row in rows([each.minimum], components):
            if row.component:
                name = key(row.component, components)
                if row.order == "below" or (name in every and row.order != "reached"):
                    yield NeededUpdate(name, row, each.image)


def found(name: str, components: Sequence[Component]) -> Component | None:
    """The component with this key."""
    return next((each for each in components if key(each, components) == name), None)


# ---- facts


@dataclass(frozen=True)
class Seen:
    """One look at a BMC: its tasks, what is installed, and what is listed as staged."""

    tasks: tuple[Task, ...]
    components: tuple[Component, ...]
    staged: tuple[Component, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """Of every task."""
        return tuple(each.path for each in self.tasks)


@dataclass(frozen=True)
class Limits:
    """In seconds: what was learned may be shown that much later (`settle`); the machine's start takes no longer."""

    settle: float = 180.0
    start: float = 3600.0


def own(seen: Seen, note: UpdateNote | None, image: Image, ignored: frozenset[str] = frozenset()) -> Task | None:
    """The task of this update, by what the BMC answered, or as a new one of which nothing else is reported. Without a
    note (it was lost, or somebody else's) by the image. `ignored`: ended ones that somebody has looked at.
    """
    listed = [each for each in seen.tasks if each.path not in ignored]
    if note is None:
        return next((each for each in reversed(listed) if each.image == image.uri), None)
    if note.task is not None:
        return next((each for each in listed if note.task in (each.path, each.monitor)), None)
    new = [each for each in listed if each.path not in note.others and each.image in (None, note.uri)]
    return new[-1] if new else None


def facts(
    need: NeededUpdate, seen: Seen, note: UpdateNote | None, mine: Task | None, now: float, quiet: float, limits: Limits
) -> ComponentFacts:
    """`quiet`: when the BMC was silent for the last time."""
    component = found(need.key, seen.components)
    version = component.version if component else None
    others = [each.phase for each in seen.tasks if each != mine and each.phase in ("runs", "waits")]
    at_least = need.row.minimum.at_least
    state: Literal["reached", "below", "moved", "unread"] = "unread"
    order = compare(version, at_least) if version else "not comparable"
    if order == "reached":
        state = "reached"
    elif version and note and version != note.before:
        state = "moved"
    elif order == "below":
        state = "below"
    start: Literal["not asked", "asked", "long ago"] = "not asked"
    if note and note.started is not None:
        start = "asked" if now - note.started < limits.start else "long ago"
    return ComponentFacts(
        task=mine.phase if mine else "none",
        other="runs" if "runs" in others else "waits" if others else "none",
        note="none" if note is None else note.ended or "sent",
        version=state,
        staged="yes" if any(_stages(each, component, at_least) for each in seen.staged) else "no",
        start=start,
        time="short" if note and now - max(note.at, quiet) < limits.settle else "enough",
    )


def _stages(staged: Component, component: Component | None, at_least: str) -> bool:
    """NVIDIA's HGX_FW_BMC_0_pending beside HGX_FW_BMC_0."""
    same = component is not None and component.id.lower() in staged.id.lower()
    return same and staged.version is not None and compare(staged.version, at_least) == "reached"
