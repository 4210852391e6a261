"""What a node's power waits for: that the scheduler gives it no new job, and that its jobs have ended."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path

from ironburst.cli import site_options
from ironburst.cli.site_options import BadInput
from ironburst.config.models import ClusterConfig, Nodes
from ironburst.config.scheduler_models import Kubernetes
from ironburst.convergence.drains import reason
from ironburst.service import NodeService, SchedulerError, SchedulerMissing

POLL_S = 5.0


class Busy(Exception):
    """Its jobs did not end in time; it stays drained, and on."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """How the scheduler is reached, and how long jobs may take."""
    parser.add_argument(
        "--drain-timeout", default="1d", metavar="DURATION", help="how long its jobs may take (default: %(default)s)"
    )
    told = "what to put before Slurm's commands, such as 'ssh root@head' (default: $IRONBURST_SLURM_PREFIX, or nothing)"
    parser.add_argument("--slurm-prefix", default=None, metavar="COMMAND", help=told)
    told = "of a Kubernetes cluster: the ClusterDocument (default: $IRONBURST_DOCUMENT)"
    parser.add_argument("--document", type=Path, default=None, help=told)


class Guard:
    """Takes a node out of the scheduler's hands. `pause`: between two looks."""

    def __init__(
        self,
        service: NodeService,
        limit_s: float,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[], None] = lambda: time.sleep(POLL_S),
    ):
        self._service, self._limit_s, self._say, self._clock, self._pause = service, limit_s, say, clock, pause

    def take(self, node: str, why: str) -> bool:
        """Returns when nothing of a job is on it and none can come; True: it is drained. The drain is a converge's, so
        that a converge gives the node back. Raises Busy, or SchedulerError where it can't be known.
        """
        end, told = self._clock() + self._limit_s, ""
        while True:
            try:
                its = self._service.occupancy().get(node)
            except SchedulerMissing:
                self._say(f"{node}: there is no scheduler yet")
                return False
            if its is None:
                self._say(f"{node}: the scheduler does not know it")
                return False
            if not its.drained:
                self._service.drain([node], reason(f"node {why}"))
            elif not its.busy:
                return True
            jobs = ", ".join(map(str, its.jobs)) or "the scheduler"
            if jobs != told:
                self._say(f"{node}: drained, waits for {jobs}")
                told = jobs
            if self._clock() >= end:
                left = f"it stays drained, and its power as it is; `{gives_back(node)}` gives it back"
                raise Busy(f"{node}: its jobs ({jobs}) did not end in time: {left}")
            self._pause()


def of(arguments: argparse.Namespace, config: ClusterConfig, nodes: Nodes) -> Guard:
    """The guard of a declared cluster's nodes. Raises BadInput or SchedulerError."""
    if nodes.role != "gpu":
        raise BadInput(
            f"{arguments.node} is a {nodes.role} node: no drain makes it safe to go off, so it is left to its own BMC"
        )
    limit_s = site_options.duration("--drain-timeout", arguments.drain_timeout, "30m, 4h or 2d", least=0)
    return Guard(_service(arguments, config, nodes), limit_s, lambda text: print(text, file=sys.stderr))


def _service(arguments: argparse.Namespace, config: ClusterConfig, nodes: Nodes) -> NodeService:
    if not isinstance(config.scheduler_of(nodes), Kubernetes):
        from ironburst.adapters.slurm import Slurm

        given = arguments.slurm_prefix
        return Slurm(shlex.split(given if given is not None else os.environ.get("IRONBURST_SLURM_PREFIX", "")))
    from ironburst import document
    from ironburst.cli.scheduler import nodes_of

    path = arguments.document or os.environ.get("IRONBURST_DOCUMENT")
    if not path:
        raise BadInput("its nodes are Kubernetes': give --document PATH or set IRONBURST_DOCUMENT")
    try:
        return nodes_of(document.read(path))
    except document.DocumentError as error:
        raise SchedulerError(str(error)) from None


def drained(node: str) -> str:
    """What is left to do with a node that `take` has drained."""
    return f"it is drained: `{gives_back(node)}` checks it and gives it back"


def gives_back(node: str) -> str:
    """The gate, and then the scheduler has it again. A host that is as before is skipped without --always, and stays
    drained.
    """
    return f"ironburst converge --always --limit {node}"
