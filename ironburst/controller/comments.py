"""What the controller means to do with a job, shown where its user looks: beside the job in the scheduler.

A comment that isn't ours is never replaced: sites keep other things there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from ironburst.burst import Decision, explain
from ironburst.controller.site import Site
from ironburst.ports import Observation, SchedulerError

OURS = "ironburst: "
LONGEST = 160  # characters of a sentence
AT_ONCE = 25  # in a tick: each is a command on the head
EVERY_S = 300.0  # for the same thing in other figures


@dataclass
class Comments:
    """Of one process of the controller."""

    _said: dict[int, tuple[str, float]] = field(default_factory=dict, init=False)  # what of a job, and when

    def say(self, site: Site, observation: Observation, decision: Decision) -> None:
        """Show what was decided, the first jobs of the queue first. Trouble with it is no trouble: it is tried anew."""
        due: dict[int, str] = {}
        for job, code, text in _sentences(decision):
            shown = observation.comments.get(job, "")
            if shown == text or not (shown.startswith(OURS) or not shown) or not self._is_due(job, code, site.now):
                continue
            due[job] = text
            self._said[job] = code, site.now
            if len(due) == AT_ONCE:
                break
        there = {job.id for job in observation.jobs}
        self._said = {job: said for job, said in self._said.items() if job in there}
        if due:
            with suppress(SchedulerError):
                site.scheduler.comment(due)

    def _is_due(self, job: int, code: str, now_s: float) -> bool:
        before, at_s = self._said.get(job, ("", 0.0))
        return code != before or abs(now_s - at_s) >= EVERY_S


def _sentences(decision: Decision) -> Iterator[tuple[int, str, str]]:
    """(job, what, sentence). Not of an array's tasks (ids below 0): naming one makes Slurm split it off."""
    for wait in decision.waits:
        if wait.job > 0:
            by = f", by {explain.at(wait.start_s)}" if wait.code == "renting" and wait.start_s else ""
            said = wait.text.rpartition("; worth renting for, but ")[2] if wait.code == "halted" else wait.text
            yield wait.job, wait.code, _short(said.split("; ")[0] + by)
    for item in decision.infeasible:
        if item.job > 0:
            yield item.job, item.code, _short(item.text.rsplit("; but ", 1)[-1])


def _short(text: str) -> str:
    return OURS + (text if len(text) <= LONGEST else text[: LONGEST - 1] + "…")
