"""What the controller means to do with a job, and then where it is and what that costs, shown where its user looks:
beside the job in the scheduler, which keeps the last sentence in its accounting.

A sentence of ours that isn't true any more is replaced or taken away. A comment that isn't ours is never replaced:
sites keep other things there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from ironburst.burst import Decision, Infeasible, Job, Wait, explain
from ironburst.controller import idle_gpus
from ironburst.controller.records import LeaseRow
from ironburst.controller.site import Site
from ironburst.nodes import naming
from ironburst.ports import Observation, SchedulerError

OURS = "ironburst: "
ON = "on "  # how a sentence begins that is about where a job is; others are about one that waits
_HOURLY = re.compile(r", rented at \$([0-9,]+\.[0-9]{2}) an hour \(estimate\)(; .*)?")
LONGEST = 160  # characters of a sentence
AT_ONCE = 25  # in a tick: each is a command on the head
EVERY_S = 300.0  # for the same thing in other figures


def usd_per_hour(comment: str, on: Sequence[str]) -> float | None:
    """What a job costs while it is on these nodes, by its comment; None: that says of no rented node, or of others,
    where it was before.
    """
    where = f"{OURS}{ON}{explain.listed(on)}"
    found = _HOURLY.fullmatch(comment.removeprefix(where)) if comment.startswith(where) else None
    return float(found[1].replace(",", "")) if found else None


@dataclass
class Comments:
    """Of one process of the controller."""

    _said: dict[str, tuple[str, float]] = field(default_factory=dict, init=False)  # what of a job, and when

    def say(self, site: Site, observation: Observation, decision: Decision) -> None:
        """Show what is so: of the jobs on nodes, then of the queue, the first ones first. Trouble with it is no
        trouble: it is tried again.
        """
        due: dict[str, str] = {}
        together = _together(observation)
        for called, shown, code, text in _sentences(site, observation, decision, together):
            if shown == text or not (shown.startswith(OURS) or not shown) or not self._is_due(called, code, site.now):
                continue
            due[called] = text
            self._said[called] = code, site.now
            if len(due) == AT_ONCE:  # of a large queue most sentences needn't be made
                break
        self._said = {called: said for called, said in self._said.items() if called in together}
        if due:
            with suppress(SchedulerError):
                site.scheduler.comment(due)

    def _is_due(self, called: str, code: str, now_s: float) -> bool:
        before, at_s = self._said.get(called, ("", 0.0))
        return code != before or abs(now_s - at_s) >= EVERY_S


def _together(observation: Observation) -> dict[str, list[Job]]:
    """Jobs that are shown a comment, by what they are called; tasks that wait together are called as one."""
    together: dict[str, list[Job]] = {}
    for job in observation.jobs:
        called = observation.together.get(job.id, job.called or naming.called(job.id))
        if job.state == "COMPLETING":  # it has ended, and takes none; one that was put back shows a part of its nodes
            continue
        if called and naming.scheduler_of(job.id) == "slurm":  # no others are shown a comment
            together.setdefault(called, []).append(job)
    return together


def _sentences(
    site: Site, observation: Observation, decision: Decision, together: Mapping[str, list[Job]]
) -> Iterator[tuple[str, str, str, str]]:
    """(called, what is shown, code, what is so) of each."""
    items: tuple[Wait | Infeasible, ...] = (*decision.waits, *decision.infeasible)
    decided = {item.job: item for item in items}
    turn = {job: n for n, job in enumerate(decided)}
    leases = {lease.node: lease for lease in site.ledger.leases()}
    idle = dict(idle_gpus.idle(site.ledger))
    for called, jobs in sorted(together.items(), key=lambda item: turn.get(item[1][0].id, -1)):
        first, shown = jobs[0], observation.comments.get(jobs[0].id, "")
        code, text = _where(first, observation, leases) if first.on else _waits(jobs, decided)
        if first.on and (words := idle.get(first.id)):
            code, text = f"{code}{words}", f"{text}; {words}"
        elif first.on and not shown and not _HOURLY.search(text):
            text = ""  # at home, and never said of
        yield called, shown, code, text


def _where(job: Job, observation: Observation, leases: Mapping[str, LeaseRow]) -> tuple[str, str]:
    """True from the moment at which it gets its nodes, and after its end, too. A node that it shares costs it the part
    of its GPUs.
    """
    names, usd = explain.listed(job.on), 0.0
    for name in job.on:
        node = observation.node(name)
        if name not in leases or node is None:
            return ON, f"{OURS}{ON}{names}"
        usd += leases[name].usd_per_hour * min(job.takes(node.total).gpus / max(node.total.gpus, 1), 1.0)
    return ON, f"{OURS}{ON}{names}, rented at {explain.usd(usd)} an hour (estimate)"


def _waits(jobs: list[Job], decided: Mapping[int, Wait | Infeasible]) -> tuple[str, str]:
    """Of several the first of each kind. Empty: nobody has decided anything, so what was said is of before."""
    known = [(job.called, item.code, _of(item)) for job in jobs if (item := decided.get(job.id))]
    if not known:
        return "", ""
    if len(jobs) == 1:
        return known[0][1], _short(known[0][2])
    firsts = {code: (called, text) for called, code, text in reversed(known)}
    said = []
    for code in dict.fromkeys(code for _, code, _ in known):
        called, text = firsts[code]
        others = sum(each == code for _, each, _ in known) - 1
        said.append(f"{called}{f' and {others} more' if others else ''}: {_short(text, '')}")
    return ",".join(firsts), OURS + "; ".join(said)


def _of(said: Wait | Infeasible) -> str:
    if isinstance(said, Infeasible):
        return said.text.rsplit("; but ", 1)[-1]
    by = f", by {explain.at(said.start_s)}" if said.code == "renting" and said.start_s else ""
    text = said.text.rpartition("; worth renting for, but ")[2] if said.code == "halted" else said.text
    return text.split("; ")[0] + by


def _short(text: str, ours: str = OURS) -> str:
    return ours + (text if len(text) <= LONGEST else text[: LONGEST - 1] + "…")
