"""Taking nodes out of service and giving them back, through the scheduler.
Somebody else's drain stays somebody else's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ironburst.convergence.model import Options, Tools
from ironburst.ports.service import NodeService, Occupancy, SchedulerError, SchedulerMissing

REASON = "ironburst converge"
REASON_LENGTH = 200


def is_ours(node: Occupancy | None) -> bool:
    """Whether a converge has drained this node, now or earlier."""
    return node is not None and node.drained and node.reason.startswith(REASON)


def reason(text: str) -> str:
    """The reason that the scheduler keeps: one short line, by which `is_ours` knows our drains again."""
    return f"{REASON}: {' '.join(text.split())}"[:REASON_LENGTH]


def patient_occupancy(service: NodeService, tools: Tools, options: Options) -> dict[str, Occupancy]:
    """All nodes, by name; the scheduler may be restarting, so for a while a failure is asked again.

    Raises SchedulerError.
    """
    deadline = tools.clock() + options.scheduler_timeout
    while True:
        try:
            return service.occupancy()
        except SchedulerMissing:
            raise
        except SchedulerError:
            if tools.clock() >= deadline:
                raise
            tools.pause(options.poll)


class Drains:
    """The nodes that one converge has taken out. All methods raise SchedulerError."""

    def __init__(self, service: NodeService, tools: Tools, options: Options):
        self._service, self._tools, self._options = service, tools, options
        self.foreign: set[str] = set()  # drained by others: never resumed here
        self.ours: set[str] = set()  # drained by us, now or by an earlier converge

    def occupancy(self) -> dict[str, Occupancy]:
        """All nodes, by name; patient."""
        return patient_occupancy(self._service, self._tools, self._options)

    def take(self, names: Sequence[str], nodes: Mapping[str, Occupancy], why: str) -> None:
        """Drain these nodes, but those that are drained already."""
        for name in names:
            node = nodes.get(name)
            if node is not None and node.drained:
                (self.ours if is_ours(node) else self.foreign).add(name)
                if is_ours(node):  # whoever did it may have ended before the scheduler had moved what it can move
                    self._service.drain([name], node.reason)
        due = [name for name in names if name not in self.foreign and name not in self.ours]
        if due:
            self.ours.update(due)  # before the call: a signal may come right after it
            self._service.drain(due, reason(why))

    def wait(self, names: Sequence[str]) -> list[str]:
        """Wait until nothing of a job is on them; returns those where the time
        ran out. They are drained all the while.
        """
        deadline, told = self._tools.clock() + self._options.drain_timeout, dict[str, str]()
        while True:
            nodes = self.occupancy()
            busy = [name for name in names if name not in nodes or nodes[name].busy or not nodes[name].drained]
            for name in busy:
                if name in nodes and not nodes[name].drained:  # somebody resumed it while its jobs ended
                    self._service.drain([name], reason("drained again, for it was resumed meanwhile"))
                jobs = ", ".join(map(str, nodes[name].jobs)) if name in nodes and nodes[name].jobs else "the scheduler"
                if told.get(name) != jobs:
                    told[name] = jobs
                    self._tools.say(f"{name}: drained, waits for {'job ' if jobs[0].isdigit() else ''}{jobs}")
            if not busy:
                return []
            if self._tools.clock() >= deadline:
                return busy
            self._tools.pause(self._options.poll)

    def give_back(self, names: Sequence[str]) -> list[str]:
        """Resume those of `names` that we drained; returns those that stay drained by somebody else."""
        ours = [name for name in names if name in self.ours]
        if ours:
            nodes = self.occupancy()  # somebody may have drained it for a reason of their own since
            still = [name for name in ours if name in nodes and is_ours(nodes[name])]
            if still:
                self._service.resume(still)
            self.ours.difference_update(ours)
        return [name for name in names if name in self.foreign]

    def keep(self, name: str, why: str) -> None:
        """Leave a bad node drained, with the reason, for the person who repairs it."""
        if name in self.ours:
            self._service.drain([name], reason(why))
            self.ours.discard(name)
