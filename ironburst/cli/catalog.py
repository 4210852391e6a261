"""`ironburst catalog platforms|gpus|instances|images`: what may be written in a stack file."""

from __future__ import annotations

import argparse
import json
import sys
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ironburst import catalog
from ironburst.catalog.aws.columns import of_gpu
from ironburst.cli import Subparsers
from ironburst.document.aws import LOGIN_USERS
from ironburst.nodes import naming
from ironburst.software.model import Os

Row = dict[str, Any]
PRICES: dict[str, catalog.Market] = {"usd_per_hour": "on-demand", "spot": "spot"}
"""column: the market"""


def add_parser(subparsers: Subparsers) -> None:
    """The verb and its options."""
    parser = subparsers.add_parser(
        "catalog",
        description="What may be written in a stack file. Exit code 0: something is listed; 2: nothing has that name.",
        epilog="example: ironburst catalog instances p5 --region eu-west-1",
    )
    parser.add_argument("what", choices=KINDS, help="; ".join(f"{kind}: {words}" for kind, (words, _) in KINDS.items()))
    parser.add_argument("name", nargs="?", default="", help="only those with this in their name")
    parser.add_argument("--region", help="of instances only those that this region offers, with its zones")
    parser.add_argument("--json", action="store_true", help="machine-readable; null is unknown")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    """List; the exit code."""
    try:
        region = catalog.region(arguments.region) if arguments.region else None
    except catalog.Unknown as error:
        print(f"ironburst: --region: {error}", file=sys.stderr)
        return 2
    every, wanted = KINDS[arguments.what][1](region), arguments.name.lower()
    rows = [row for row in every if wanted in str(next(iter(row.values()))).lower()]
    if arguments.json:
        print(json.dumps(rows, indent=1))
    elif rows:
        print("\n".join(aligned(rows)))
    else:
        where = f" in {region.region}" if region else ""
        said = f"nothing with {arguments.name!r}{where}; `ironburst catalog {arguments.what}` lists all"
        print(f"ironburst: {said}", file=sys.stderr)
    return 0 if rows else 2


def aligned(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """A table, its head first; what isn't known is a dash."""
    cells = [list(rows[0]), *([_cell(value) for value in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(value) or "-"
    return "-" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _platforms(_: catalog.Region | None) -> list[Row]:
    return [
        {
            "platform": slug,
            "gpus": each.gpu_count,
            "gpu": each.gpu_model,
            "rack_units": each.height_u,
            "max_power_w": each.max_power_w,
            "name": each.name,
        }
        for slug, each in sorted(catalog.platforms().items())
    ]


def _gpus(_: catalog.Region | None) -> list[Row]:
    return [
        {
            "gpu": model,
            "slurm_type": naming.gpu_type(model),
            "memory_gb": each.memory_gb,
            "architecture": each.architecture,
            "mig_instances": each.mig_max_instances,
            **of_gpu(each),
        }
        for model, each in catalog.gpus().items()
    ]


def _instances(region: catalog.Region | None) -> list[Row]:
    rows = []
    for name, each in sorted(catalog.instance_types(region.provider if region else "").items()):
        zones = each.zones(region.region) if region else ()
        if each.gpu is None or (region and each.regions and not zones):
            continue
        row = {
            "instance_type": name,
            "gpus": each.gpu_count,
            "gpu": each.gpu_model,
            "vcpus": each.vcpus,
            "memory_gib": None if each.memory_mib is None else each.memory_mib // 1024,
            **_links(each),
            **{key: _usd(each, market) for key, market in PRICES.items()},
            "prices_of": each.list_region or None,
        }
        rows.append(row | ({"zones": list(zones)} if region else {}))
    return rows


def _links(kind: catalog.InstanceType) -> Row:
    try:
        fabric, links = kind.fabric()
    except catalog.Unknown:
        return {"fabric": None, "links": None}
    return {"fabric": fabric, "links": links}


def _usd(kind: catalog.InstanceType, market: catalog.Market) -> float | None:
    listed = catalog.price(kind.name, market, kind.list_region)
    return listed.usd_per_hour if listed and not listed.most else None


def _images(_: catalog.Region | None) -> list[Row]:
    """What stock images may be of; which id one has differs by region and week, and is its publisher's."""
    return [{"os": os, "login_user": LOGIN_USERS[os.rstrip("0123456789")]} for os in typing.get_args(Os)]


KINDS: dict[str, tuple[str, Callable[[catalog.Region | None], list[Row]]]] = {
    "platforms": ("servers, for halls[].nodes[].platform", _platforms),
    "gpus": ("GPU models", _gpus),
    "instances": ("a cloud's types with NVIDIA GPUs, for cloud.pools[].instance_type", _instances),
    "images": ("systems that images may have, for software.os", _images),
}
