"""`ironburst shares`: what each team has of the owned GPUs, and what the scheduler is given for it."""

from __future__ import annotations

import argparse
import json
import shlex
from typing import Any

import yaml

from ironburst import catalog
from ironburst.cli import Subparsers, site_options
from ironburst.document import ClusterDocument
from ironburst.nodes import naming
from ironburst.shares import Quota, TeamShare, kubernetes, kueue, quotas, slurm
from ironburst.system.bad_input import BadInput


def add_parser(subparsers: Subparsers) -> None:
    """The verb's arguments and help."""
    parser = subparsers.add_parser(
        "shares",
        description="What the declared shares give each team. With --for, the objects or commands that a scheduler is "
        "told them by: kubernetes and kueue as YAML for `kubectl apply --server-side -f -`, slurm as the commands for "
        "an empty accounting database (the role slurm_head runs those that are missing by itself). "
        "Exit codes: 0 done, 2 bad input.",
        epilog="example: ironburst shares --for kubernetes | kubectl apply --server-side -f -",
    )
    parser.add_argument("--document", metavar="PATH", help="the published ClusterDocument; default: IRONBURST_DOCUMENT")
    parser.add_argument(
        "--for", dest="scheduler", choices=("slurm", "kubernetes", "kueue"), help="print what it is told"
    )
    parser.add_argument(
        "--gpus", type=int, metavar="N", help="of the shared nodes in service; default: all that are declared"
    )
    parser.add_argument("--json", action="store_true", help="the table as JSON")
    parser.set_defaults(func=run)


@site_options.guarded
def run(arguments: argparse.Namespace) -> int:
    """Print the table, or the scheduler's settings."""
    print(said(arguments), end="")
    return 0


def said(arguments: argparse.Namespace) -> str:
    """What the verb prints. Raises BadInput or DocumentError."""
    document = site_options.read_document(arguments)
    shares = [TeamShare.of(share.model_dump()) for share in document.shares]
    if not shares:
        raise BadInput("the document declares no `shares`: whoever comes first has the owned GPUs")
    there, own = gpus_of(document)
    gpus = there if arguments.gpus is None else arguments.gpus
    if not 0 <= gpus <= there:
        raise BadInput(f"--gpus is {gpus}, and the shared nodes have {there}: give a number up to that")
    now = quotas(shares, gpus, [])
    if arguments.scheduler == "slurm":
        return "".join(shlex.join(line) + "\n" for line in slurm.changes(document.cluster, shares, own, {}, {}))
    if arguments.scheduler == "kubernetes":
        beside = "".join(f"# {shlex.join(line)}\n" for line in kubernetes.node_commands(shares))
        return beside + yaml.safe_dump_all(kubernetes.objects(shares, own, now), sort_keys=False)
    if arguments.scheduler == "kueue":
        beside = "".join(f"# {shlex.join(line)}\n" for line in kubernetes.node_commands(shares))
        rented = sum(len(pool.nodes) * pool.gpu.count for pool in document.pools)
        check = naming.cluster_object(document.cluster) if document.scheduler.queue == "kueue" else ""
        found = kueue.objects(shares, gpus, own, now, rented, check, pod_resources(document))
        return beside + yaml.safe_dump_all(found, sort_keys=False)
    rows = [_row(share, own, now[share.account]) for share in shares]
    return json.dumps(rows) + "\n" if arguments.json else _table(rows)


def pod_resources(document: ClusterDocument) -> list[str]:
    """Extended resources beside GPUs that some node offers to pods."""
    links = [(each.fabric, each.fabric_links) for each in document.hosts]
    links += [(each.fabric, each.fabric_links) for each in document.pools]
    return sorted(
        {*document.scheduler.home_resources, *(name for each in links for name in catalog.pod_resources(*each))}
    )


def gpus_of(document: ClusterDocument) -> tuple[int, dict[str, int]]:
    """GPUs of the shared nodes, and {account: GPUs of its own nodes}."""
    each = {host.name: host.gpu.count for host in document.hosts if host.gpu and host.kind == "bare_metal"}
    own = {share.account: sum(each.get(node, 0) for node in share.nodes) for share in document.shares}
    return sum(each.values()) - sum(own.values()), own


def _row(share: TeamShare, own: dict[str, int], quota: Quota) -> dict[str, Any]:
    return {
        "account": share.account,
        "guaranteed_gpus": quota.guaranteed,
        "short_gpus": quota.short,
        "over_quota_gpus": quota.over,
        "weight": share.weight,
        "own_gpus": own[share.account],
    }


def _table(rows: list[dict[str, Any]]) -> str:
    heads = ("account", "guaranteed", "less than promised", "over quota, if idle", "weight", "own nodes' GPUs")
    lines = [heads, *(tuple(str(value) for value in row.values()) for row in rows)]
    widths = [max(len(line[n]) for line in lines) for n in range(len(heads))]
    return "".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() + "\n" for line in lines
    )
