"""The guard (ironburst.convergence.guard) of a declared node, as the options say."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from ironburst.cli import site_options
from ironburst.config.models import ClusterConfig, Nodes
from ironburst.config.scheduler_models import Kubernetes, Slurm
from ironburst.convergence import guard
from ironburst.nodes.naming import SCHEDULERS
from ironburst.ports.service import NodeService, SchedulerError
from ironburst.system.bad_input import BadInput
from ironburst.wiring.schedulers import slurm_prefix


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
    parser.add_argument(guard.FLAG, action="store_true", help=told)


def of(arguments: argparse.Namespace, config: ClusterConfig, nodes: Nodes) -> guard.Guard:
    """The guard of a declared cluster's nodes. Raises BadInput or SchedulerError."""
    if nodes.role != "gpu":
        raise BadInput(
            f"{arguments.node} is a {nodes.role} node: no drain makes it safe to go off, so it is left to its own BMC"
        )
    limit_s = site_options.duration("--drain-timeout", arguments.drain_timeout, "30m, 4h or 2d", least=0)
    every = [each for hall in config.halls for each in hall.nodes]
    return guard.Guard(
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
