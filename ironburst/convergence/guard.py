"""What all waits for that disturbs a node: that the scheduler surely gives it no new job, and that its jobs have ended.
Anything but a clear answer refuses (docs/adr/0089).
"""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from ironburst.convergence.drains import reason
from ironburst.nodes import states as node_states
from ironburst.ports.service import NodeService, Occupancy, SchedulerError, SchedulerMissing

POLL_S = 5.0
FLAG = "--no-scheduler-yet"
_FIRST = f"if it was never in service, give {FLAG}"


class Busy(Exception):
    """Its jobs did not end in time; it stays drained, and on."""


class Guard:
    """Takes a node out of the scheduler's hands. `others`: the site's other schedulers, by what they are called;
    `bridged`: the cluster whose pods wait in this one's queue; `addresses`: declared ones, by node; `first`: the node
    may be unknown; `pause`: between two looks.
    """

    def __init__(
        self,
        service: NodeService,
        limit_s: float,
        say: Callable[[str], None],
        *,
        others: Mapping[str, NodeService] | None = None,
        bridged: NodeService | None = None,
        addresses: Mapping[str, str] | None = None,
        first: bool = False,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[], None] = lambda: time.sleep(POLL_S),
    ):
        self._service, self._limit_s, self._say, self._clock, self._pause = service, limit_s, say, clock, pause
        self._others, self._bridged = dict(others or {}), bridged
        self._addresses, self._first = dict(addresses or {}), first

    def take(self, node: str, why: str) -> bool:
        """Returns when nothing of a job is on it and none can come; True: it is drained; False: no scheduler knows it,
        which `first` allows. The drain is a converge's, so that a converge gives the node back. Raises Busy, or
        SchedulerError where it can't be known.
        """
        end, told = self._clock() + self._limit_s, ""
        while True:
            self._nobody_elses(node)
            its = self._its(node)
            if its is None:
                self._say(f"{node}: no scheduler knows it yet ({FLAG})")
                return False
            if not its.drained:
                self._service.drain([node], reason(f"node {why}"))
            elif not (its := self._with_pods(its)).busy:
                return True
            jobs = ", ".join(map(str, its.jobs)) or "the scheduler"
            if jobs != told:
                self._say(f"{node}: drained, waits for {jobs}")
                told = jobs
            if self._clock() >= end:
                left = f"it stays drained, and its power as it is; `{gives_back(node)}` gives it back"
                raise Busy(f"{node}: its jobs ({jobs}) did not end in time: {left}")
            self._pause()

    def _its(self, node: str) -> Occupancy | None:
        """What its scheduler says of it, which says whether it is busy; None: it is surely not known, and need not be.
        Raises SchedulerError.
        """
        nodes = self._asked(node, self._service)
        its = nodes.get(node)
        if its is None:
            if alias := self._alias(node, nodes):
                raise SchedulerError(f"{node}: the scheduler calls it {alias}: give it the declared name there")
            if not self._first:
                has = f"it has {', '.join(sorted(nodes)[:5]) or 'no node at all'}"
                raise SchedulerError(
                    f"{node}: the scheduler does not list it ({has}), so nobody says whether jobs run on it: ask the "
                    f"right one (--slurm-prefix, --document), or, {_FIRST}"
                )
            return None
        declared = self._addresses.get(node)
        if declared and _ip(its.address) not in (None, _ip(declared)):
            raise SchedulerError(
                f"{node}: the scheduler's node of this name is at {its.address}, declared is {declared}: another "
                "cluster or another machine answers for it"
            )
        never = self._first and node_states.unregistered(its.states)
        if not (its.says_whether_busy or its.busy or never):
            states = "+".join(sorted(its.states)) or "no state"
            raise SchedulerError(f"{node}: the scheduler says {states}, which is not whether jobs run on it; {_FIRST}")
        return its

    def _with_pods(self, its: Occupancy) -> Occupancy:
        """A job of slurm-bridge has ended before its pod has, and pods may be there that Slurm has never seen."""
        there = self._asked(its.name, self._bridged).get(its.name) if self._bridged else None
        return replace(its, jobs=(*its.jobs, *there.jobs)) if there else its

    def _asked(self, node: str, service: NodeService) -> Mapping[str, Occupancy]:
        try:
            return service.occupancy()
        except SchedulerMissing as error:
            if self._first:
                return {}
            raise SchedulerError(
                f"{node}: {error}, so nobody says whether jobs run on it: put the scheduler's commands on the PATH of "
                f"a shell that is not a login's, or give --slurm-prefix; {_FIRST}"
            ) from None
        except SchedulerError as error:
            raise SchedulerError(f"{node}: whether jobs run on it isn't known: {error}") from None

    def _nobody_elses(self, node: str) -> None:
        """A node is of one scheduler; what another one runs there would be cut off all the same."""
        for called, other in self._others.items():
            nodes = self._asked(node, other)
            name = node if node in nodes else self._alias(node, nodes)
            if name and (nodes[name].busy or not nodes[name].drained):
                jobs = ", ".join(map(str, nodes[name].jobs))
                runs = f", and {jobs} run on it" if jobs else ""
                raise SchedulerError(
                    f"{node}: {called} has it too, as {name}{runs}: a node is of one scheduler, so drain it there "
                    "or take it out of the other"
                )

    def _alias(self, node: str, nodes: Mapping[str, Occupancy]) -> str | None:
        """Another name by which a scheduler has this machine."""
        declared, short = _ip(self._addresses.get(node, "")), node.partition(".")[0].lower()
        for name, each in nodes.items():
            if name != node and name not in self._addresses and name.partition(".")[0].lower() == short:
                return name
            if name != node and declared and _ip(each.address) == declared:
                return name
        return None


def _ip(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(address)
    except ValueError:
        return None


def drained(node: str) -> str:
    """What is left to do with a node that `take` has drained."""
    return f"it is drained: `{gives_back(node)}` checks it and gives it back"


def gives_back(node: str) -> str:
    """The gate, and then the scheduler has it again. A host that is as before is skipped without --always, and stays
    drained.
    """
    return f"ironburst converge --always --limit {node}"
