"""What all waits for that disturbs a node: that the scheduler surely gives it no new job, and that its jobs have ended.
Anything but a clear answer refuses (docs/adr/0089).
"""

from __future__ import annotations

import argparse
import ipaddress
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from ironburst.cli import site_options
from ironburst.config.models import ClusterConfig, Nodes
from ironburst.config.scheduler_models import Kubernetes, Slurm
from ironburst.convergence.drains import reason
from ironburst.nodes import states as node_states
from ironburst.nodes.naming import SCHEDULERS
from ironburst.ports.service import NodeService, Occupancy, SchedulerError, SchedulerMissing
from ironburst.system.bad_input import BadInput
from ironburst.wiring.schedulers import slurm_prefix

POLL_S = 5.0
FLAG = "--no-scheduler-yet"
_FIRST = f"if it was never in service, give {FLAG}"


class Busy(Exception):
    """Its jobs did not end in time; it stays drained, and on."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """How the scheduler is reached, and how long jobs may take."""
    parser.add_argument(
        "--drain-timeout", default="1d", metavar="DURATION", help="how long its jobs may take (default: %(default)s)"
    )
    told = "what to put before Slurm's commands, such as 'ssh root@head' (default: $IRONBURST_SLURM_PREFIX, or nothing)"
    parser.add_argument("--slurm-prefix", default=None, metavar="COMMAND", help=told)
    told = "where a Kubernetes cluster is declared: the ClusterDocument (default: $IRONBURST_DOCUMENT)"
    parser.add_argument("--document", type=Path, default=None, help=told)
    told = "cut it off where its system does not end by itself, after 5 minutes"
    parser.add_argument("--force", action="store_true", help=told)
    told = "of a first installation: go on where the scheduler is not installed yet, or has no such node"
    parser.add_argument(FLAG, action="store_true", help=told)


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


def of(arguments: argparse.Namespace, config: ClusterConfig, nodes: Nodes) -> Guard:
    """The guard of a declared cluster's nodes. Raises BadInput or SchedulerError."""
    if nodes.role != "gpu":
        raise BadInput(
            f"{arguments.node} is a {nodes.role} node: no drain makes it safe to go off, so it is left to its own BMC"
        )
    limit_s = site_options.duration("--drain-timeout", arguments.drain_timeout, "30m, 4h or 2d", least=0)
    every = [each for hall in config.halls for each in hall.nodes]
    return Guard(
        _service(arguments, config, nodes),
        limit_s,
        lambda text: print(text, file=sys.stderr),
        others=_others(arguments, config, nodes),
        bridged=_cluster(arguments, config) if config.bridge else None,
        addresses={name: str(at) for each in every for name, at in zip(each.names, each.addresses, strict=False)},
        first=arguments.no_scheduler_yet,
    )


def _service(arguments: argparse.Namespace, config: ClusterConfig, nodes: Nodes) -> NodeService:
    if isinstance(config.scheduler_of(nodes), Kubernetes):
        return _cluster(arguments, config)
    return _slurm(arguments, config)


def _others(arguments: argparse.Namespace, config: ClusterConfig, nodes: Nodes) -> dict[str, NodeService]:
    """The site's schedulers that the nodes are not of, by what people call them."""
    own, found = config.scheduler_of(nodes), dict[str, NodeService]()
    for each in config.schedulers:
        if each is not own:
            side = _cluster if isinstance(each, Kubernetes) else _slurm
            found[SCHEDULERS[each.kind]] = side(arguments, config)
    return found


def _slurm(arguments: argparse.Namespace, config: ClusterConfig) -> NodeService:
    from ironburst.adapters.slurm.scheduler import Slurm as Adapter

    named = [each for each in config.schedulers if isinstance(each, Slurm) and each.managed]
    return Adapter(slurm_prefix(arguments.slurm_prefix), cluster=config.name if named else "")


def _cluster(arguments: argparse.Namespace, config: ClusterConfig) -> NodeService:
    from ironburst import document
    from ironburst.wiring.schedulers import nodes_of

    path = arguments.document or os.environ.get("IRONBURST_DOCUMENT")
    if not path:
        raise BadInput("a Kubernetes cluster is declared: give --document PATH or set IRONBURST_DOCUMENT")
    try:
        read = document.read(path)
    except document.DocumentError as error:
        raise SchedulerError(str(error)) from None
    if read.cluster != config.name:
        raise BadInput(f"--document {path} is of cluster {read.cluster}, and {config.name} is declared")
    return nodes_of(read)


def drained(node: str) -> str:
    """What is left to do with a node that `take` has drained."""
    return f"it is drained: `{gives_back(node)}` checks it and gives it back"


def gives_back(node: str) -> str:
    """The gate, and then the scheduler has it again. A host that is as before is skipped without --always, and stays
    drained.
    """
    return f"ironburst converge --always --limit {node}"
