"""Taking nodes out of service and giving them back, through the scheduler. Somebody else's drain stays somebody
else's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ironburst.convergence.model import Options, Tools
from ironburst.service import NodeService, Occupancy, SchedulerError, SchedulerMissing

REASON = "ironburst converge"
REASON_LENGTH = 200


def is_ours(node: Occupancy | None) -> bool:
    return node is not None and node.drained and node.reason.startswith(REASON)


def reason(text: str) -> str:
    return f"{REASON}: {' '.join(text.split())}"[:REASON_LENGTH]


def patient(call: Callable[[], dict[str, Occupancy]], tools: Tools, options: Options) -> dict[str, Occupancy]:
    """The scheduler's answer; it may be restarting, so for a while a failure is asked again. Raises SchedulerError."""
    end = tools.clock() + options.settle
    while True:
        try:
            return call()
        except SchedulerMissing:
            raise
        except SchedulerError:
            if tools.clock() >= end:
                raise
            tools.pause(options.poll)


class Drains:
    """The nodes that one converge has taken out."""

    def __init__(self, service: NodeService, tools: Tools, options: Options):
        self._service, self._tools, self._options = service, tools, options
        self.foreign: set[str] = set()  # drained by others: never resumed here
        self.held: set[str] = set()  # drained by us, now or by an earlier converge

    def occupancy(self) -> dict[str, Occupancy]:
        return patient(self._service.occupancy, self._tools, self._options)

    def take(self, names: Sequence[str], nodes: Mapping[str, Occupancy], why: str) -> None:
        """Drain these nodes, but those that are drained already."""
        for name in names:
            node = nodes.get(name)
            if node is not None and node.drained:
                (self.held if is_ours(node) else self.foreign).add(name)
        due = [name for name in names if name not in self.foreign and name not in self.held]
        if due:
            self.held.update(due)  # before the call: a signal may come right after it
            self._service.drain(due, reason(why))

    def wait(self, names: Sequence[str]) -> list[str]:
        """Wait until nothing of a job is on them; returns those where the time ran out. They are drained all the
        while.
        """
        end, told = self._tools.clock() + self._options.drain_timeout, dict[str, str]()
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
            if self._tools.clock() >= end:
                return busy
            self._tools.pause(self._options.poll)

    def give_back(self, names: Sequence[str]) -> list[str]:
        """Resume those of `names` that we drained; returns those that stay drained by somebody else."""
        mine = [name for name in names if name in self.held]
        if mine:
            nodes = self.occupancy()  # somebody may have drained it for a reason of their own since
            still = [name for name in mine if name in nodes and is_ours(nodes[name])]
            if still:
                self._service.resume(still)
            self.held.difference_update(mine)
        return [name for name in names if name in self.foreign]

    def keep(self, name: str, why: str) -> None:
        """Leave a bad node drained, with the reason, for whoever repairs it."""
        if name in self.held:
            self._service.drain([name], reason(why))
            self.held.discard(name)
