"""What many nodes of a hall have at once is one event of the hall: a cooling or feed incident, a leaf switch, the file
server (docs/adr/0092). It is reported once. Nodes that still work (slower) go on, and are drained last; what the
event drained is given back when it is over. A drain of any other cause, and of a single node, is left to people.

The nodes' gates say their causes in the reasons of their drains, and the answers go there (ironburst.health.shared).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace

from ironburst.burst import Node, explain
from ironburst.controller.ledger import Ledger
from ironburst.controller.site import Site
from ironburst.document import ClusterDocument, HallDocument
from ironburst.health import shared
from ironburst.health.shared import CAUSES, Said
from ironburst.ports import Observation, SchedulerError

_KEY = "hall_events"
_AT_ONCE_S = 3600.0  # what nodes have within it, they have at once
_FEWEST = 2
# A node is told to go on for so long, and then looks anew: else nobody would see whether the cause is over
_SLICE_S = 1800.0
# So long fewer nodes fail before it is over: three looks of the gate (slurm_head_health_interval)
_SETTLED_S = 900.0


@dataclass(frozen=True)
class _Event:
    since_s: float
    causes: tuple[str, ...]
    members: tuple[str, ...] = ()  # that it drained
    fewer_s: float | None = None  # since when too few of them fail
    last: bool = False  # nodes that work all the same are drained, too
    over: bool = False  # it is kept for members that are drained yet


@dataclass(frozen=True)
class _Kept:
    drained: dict[str, float] = field(default_factory=dict)  # since when each is, for the hall's causes alone
    going_on: dict[str, float] = field(default_factory=dict)  # until when each was told to
    events: dict[str, _Event] = field(default_factory=dict)  # by hall


def look(site: Site, observation: Observation) -> None:
    """Once in a tick."""
    kept, halls = _read(site.ledger), _halls(site.document)
    nodes = {node.name: node for node in observation.nodes}
    now = _Kept(going_on={name: until_s for name, until_s in kept.going_on.items() if until_s > site.now})
    go_on: dict[str, str] = {}
    back: list[str] = []
    with site.ledger.transaction():
        for name, its in halls.items():
            before = kept.events.get(name)
            said = {each: said for each in its if (said := _said(nodes.get(each)))}
            blind = any(map(observation.unseen, its))  # the scheduler gave no answer: it stays as it was
            still = [each for each in its if each in kept.drained] if blind else said
            now.drained.update({each: kept.drained.get(each, site.now) for each in still})
            declared = site.document.halls.get(name, HallDocument())
            hall = _Hall(site, name, declared, its, said, now)
            event = before if blind else hall.event(before)
            if event:
                now.events[name] = event
            if event and not blind:
                told, ready = hall.answers(event, nodes)
                go_on |= told
                back += ready
        if now != kept:
            site.ledger.note(_KEY, json.dumps(asdict(now)))
    if go_on or back:
        try:
            _answer(site, nodes, go_on, back)
        except SchedulerError as error:  # each is asked again at the next tick
            site.tell("trouble", str(error))


def said(ledger: Ledger, document: ClusterDocument) -> list[str]:
    """The events of now, for people."""
    halls = _halls(document)
    return [
        f"hall {name}: {_what(event.causes)} on many of its {len(halls[name])} nodes since {explain.at(event.since_s)}"
        for name, event in _read(ledger).events.items()
        if name in halls and not event.over
    ]


@dataclass(frozen=True)
class _Hall:
    """`nodes`: its own, all; `said`: by those that are drained with the hall's causes alone."""

    site: Site
    name: str
    declared: HallDocument
    nodes: list[str]
    said: Mapping[str, Said]
    now: _Kept

    def event(self, before: _Event | None) -> _Event | None:
        """As it is now; None: it has none."""
        old = self._members(before) if before and before.over else ()
        fresh = {each for each in self.said if each not in old and self.now.drained[each] > self.site.now - _AT_ONCE_S}
        count = {cause: sum(cause in self.said[each].causes for each in fresh) for cause in CAUSES}
        tripped = tuple(cause for cause in CAUSES if count[cause] >= self._trips)
        if before and not before.over:
            return self._goes_on(replace(before, causes=_together(before.causes, tripped)))
        if tripped:
            of_it = [each for each in self.said if each in fresh and _of(tripped, self.said[each])]
            self.site.event("needs_a_person", self._opened(of_it, tripped))
            causes = _together(tripped, before.causes if before and old else ())
            return _Event(self.site.now, causes, (*old, *of_it))
        return replace(before, members=old) if before and old else None

    def answers(self, event: _Event, nodes: Mapping[str, Node]) -> tuple[dict[str, str], list[str]]:
        """Reasons for which nodes may go on, and nodes to resume."""
        go_on: dict[str, str] = {}
        back: list[str] = []
        end_s = event.since_s + self.declared.drain_after_s
        for each in event.members:
            said = self.said[each]
            works = not event.over and self.site.now < end_s and _work(said.causes) == said.causes
            if not _answers(nodes[each]):
                continue
            if said.ready and (event.over or works):
                back.append(each)
            elif works and not said.ready and (said.until is None or said.until <= self.site.now):
                until_s = math.ceil(min(self.site.now + _SLICE_S, end_s))
                self.now.going_on[each] = until_s
                go_on[each] = shared.work_until(said, until_s)
        return go_on, back

    def _goes_on(self, event: _Event) -> _Event | None:
        now_s = self.site.now
        event = replace(event, members=self._members(event))
        failing = [each for each in event.members if not self.said[each].ready]
        few = len({*failing, *self.now.going_on} & set(self.nodes)) < self._trips
        event = replace(event, fewer_s=(event.fewer_s or now_s) if few else None)
        if event.fewer_s is not None and now_s - event.fewer_s >= _SETTLED_S:
            rest = f"; left to a person, for they fail yet: {explain.listed(failing)}" if failing else ""
            self.site.event("hall", f"hall {self.name}: its event is over ({_what(event.causes)}){rest}")
            return replace(event, over=True) if event.members else None
        work, after_s = _work(event.causes), self.declared.drain_after_s
        if work and not event.last and now_s >= event.since_s + after_s:
            text = f"hall {self.name}: {_what(work)} for {explain.duration(after_s)} now: nodes that have it"
            self.site.event("needs_a_person", f"{text} are drained from now on; they come back when it is over")
            event = replace(event, last=True)
        return event

    def _members(self, event: _Event) -> tuple[str, ...]:
        """Those that are drained yet, and for nothing else; of a new one not those that were before it came."""
        from_s = math.inf if event.over else event.since_s - _AT_ONCE_S
        return tuple(
            each
            for each, said in self.said.items()
            if _of(event.causes, said) and (each in event.members or self.now.drained[each] > from_s)
        )

    @property
    def _trips(self) -> int:
        return max(_FEWEST, math.floor(self.declared.breaker_share * len(self.nodes)) + 1)

    def _opened(self, of_it: list[str], causes: tuple[str, ...]) -> str:
        what = f"hall {self.name}: {_what(causes)} on {len(of_it)} of its {len(self.nodes)} nodes at once"
        text = f"{what}, so it is the hall's: {explain.listed(of_it)}"
        if _work(causes):
            text += f"; they go on, and are drained if it lasts for {explain.duration(self.declared.drain_after_s)}"
        if "throttle" in causes:
            text += f"; `ironburst hall cap WATTS --hall {self.name}` caps them now"
        if _work(causes) != causes:
            text += "; drained ones come back by themselves when it is over"
        return text


def _what(causes: tuple[str, ...]) -> str:
    return " and ".join(CAUSES[cause].words for cause in causes)


def _work(causes: tuple[str, ...]) -> tuple[str, ...]:
    """Those with which nodes work all the same."""
    return tuple(cause for cause in causes if CAUSES[cause].works)


def _together(*causes: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(cause for cause in CAUSES if any(cause in each for each in causes))


def _of(causes: tuple[str, ...], said: Said) -> bool:
    """Whether nothing else is wrong with the node."""
    return set(said.causes) <= set(causes)


def _said(node: Node | None) -> Said | None:
    return shared.read(node.reason) if node is not None and node.has("DRAIN") else None


def _answers(node: Node) -> bool:
    return not (node.has("DOWN") or node.has("NOT_RESPONDING"))


def _answer(site: Site, seen: Mapping[str, Node], go_on: Mapping[str, str], back: list[str]) -> None:
    """Into drains that are as they were, for a person may have come."""
    nodes = {node.name: node for node in site.scheduler.observe().nodes}

    def same(name: str) -> bool:
        node = nodes.get(name)
        return node is not None and node.has("DRAIN") and _answers(node) and node.reason == seen[name].reason

    for name, reason in go_on.items():
        if same(name):
            site.scheduler.drain([name], reason)
    if resumed := [name for name in back if same(name)]:
        site.scheduler.resume(resumed)
        site.event(
            "hall", f"{explain.listed(resumed)}: resumed, for the drain was the hall's event, and the gate passes"
        )


def _halls(document: ClusterDocument) -> dict[str, list[str]]:
    """The GPU nodes of each that Slurm has; Kubernetes' gates lift by themselves what they say."""
    halls: dict[str, list[str]] = {}
    for host in document.managed_hosts:
        if host.hall and host.role == "gpu" and document.scheduler_of(host).kind == "slurm":
            halls.setdefault(host.hall, []).append(host.name)
    return halls


def _read(ledger: Ledger) -> _Kept:
    kept = json.loads(ledger.noted(_KEY) or "{}")
    events = {
        hall: _Event(**{**row, "causes": tuple(row["causes"]), "members": tuple(row["members"])})
        for hall, row in kept.get("events", {}).items()
    }
    return _Kept(kept.get("drained", {}), kept.get("going_on", {}), events)
