"""How often is a BMC asked? python -m benchmarks.bmcs [--vendor VENDOR] [--urls]

Requests of one node's operations as Pulumi does them (check, create, diff, read), as a stand-in of each maker's BMC
logs them (lab/bmc), with nothing more declared than a node has, and with everything that makes one ask for more.
`rounds` is the longest chain of answers that wait for each other: times what one takes, that is the time of a node.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pulumi.provider.experimental import provider as sdk

from ironburst.adapters.redfish.reading import AT_ONCE
from ironburst.baremetal import documents
from lab.bmc import Bmc, Machine
from lab.bmc.alone import Flag
from lab.bmc.documents import documents as documents_of
from lab.bmc.shapes import expanded
from lab.bmc.vendors import VENDORS
from providers.baremetal.provider import BaremetalProvider
from providers.baremetal.values import plain, values

MOST_REQUESTS = 30
"""in one operation on a BMC that gives whole lists ($expand), by docs/adr/0119. Where one doesn't, each part of the
machine costs a request, whoever reads it (some 100 of a node with 8 GPUs)
"""
NODES, NODES_AT_ONCE, ANSWER_S, MOST_S = 200, 32, 0.2, 60.0
"""so many BMCs, of which PULUMI_PARALLEL of ci/ are read at once, that take so long for an answer: so long in all"""
PASSWORD = "LAB_BMC_PASSWORD"
MACHINE = Machine("dgx01", "LAB-DGX01", "8b1e7f0e-0000-4000-8000-00000000000b", ("52:54:00:4e:00:0b",))
ANSWERED_FOR = ("power_redundancy", "power_supplies", "drives", "memory_minimum", "gpu_lanes")
"""mismatches of healthy machines of some makers"""
DECLARED: dict[str, Any] = {
    "name": "dgx01",
    "bmcUsername": "admin",
    "passwordRef": f"env:{PASSWORD}",
    "serial": "LAB-DGX01",
    "macs": ["52:54:00:4e:00:0b"],
    "gpuModel": "H100 SXM5 80GB",
    "gpuCount": 8,
    "allowed": dict.fromkeys(ANSWERED_FOR, "2099-12-31"),
}
EVERYTHING: dict[str, Any] = {
    "bios": {"BootMode": "Bios"},
    "firmware": [{"component": "BIOS", "atLeast": "0.1", "source": "a bulletin", "asOf": "2026-11-01"}],
    "install": {
        "mark": "CHG-1",
        "medium": "http://10.0.0.5/media/dgx01.iso",
        "hostAddress": "127.0.0.1",
        "knownHosts": os.devnull,
    },
}
Request = tuple[str, str]
"""method, path"""


def gives_lists(vendor: str) -> bool:
    """Whether this maker's BMC gives whole lists, and not in small pages."""
    its = VENDORS[vendor]
    return its.expand == "right" and (its.page is None or its.page >= 8)


def requests(vendor: str, declared: dict[str, Any]) -> dict[str, list[Request]]:
    """What each operation on one node asks of its BMC: {operation: requests}."""
    os.environ.setdefault(PASSWORD, "correct-horse-4711")
    urn = "urn:pulumi:dev::ironburst::baremetal:index:Node::dgx01"
    asked: dict[str, list[Request]] = {}
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "requests.jsonl"
        with Bmc(replace(MACHINE, vendor=vendor), Flag(), os.environ[PASSWORD], port=0, log=log) as bmc:

            def done(operation: str, answer: Any) -> Any:
                result = asyncio.run(answer)
                lines = log.read_text().splitlines() if log.exists() else []
                new = lines[sum(map(len, asked.values())) :]
                asked[operation] = [(each["method"], each["path"]) for each in map(json.loads, new)]
                return result

            provider = BaremetalProvider(_nobody)
            given = values(DECLARED | {"bmcAddress": bmc.url} | declared)
            done("check", provider.check(sdk.CheckRequest(urn, {}, given, b"")))
            state = done("create", provider.create(sdk.CreateRequest(urn, given, 0, False))).properties
            done("diff", provider.diff(sdk.DiffRequest(urn, "dgx01", state, given, [])))
            now = done("read", provider.read(sdk.ReadRequest(urn, "dgx01", state, given))).properties
            assert plain(now)["reachable"], "its BMC can't be read"
    return asked


def rounds(vendor: str, at_once: int = AT_ONCE) -> int:
    """How many answers of one reading come after each other, with so many requests in the BMC at once."""
    served = documents_of(replace(MACHINE, vendor=vendor), True, {}, [])
    asked = [3]  # the root, the login and its end

    def get(path: str) -> Any:
        place, _, expand = path.partition("$expand")
        return expanded(served, place.rstrip("?&"), vendor) if expand else served.get(path)

    def several(paths: Sequence[str]) -> list[Any]:
        asked.append(math.ceil(len(paths) / at_once))
        return [get(path) for path in paths]

    documents.read(get, several=several)
    return sum(asked)


def seconds(vendor: str) -> float:
    """What a refresh of NODES slow BMCs takes at least: their answers alone."""
    return math.ceil(NODES / NODES_AT_ONCE) * rounds(vendor) * ANSWER_S


def misses(vendors: Sequence[str] = tuple(VENDORS)) -> list[str]:
    """What of docs/adr/0119 doesn't hold, in sentences: for a gate. Some seconds for each maker."""
    found = [
        f"{vendor}: {operation} asks {len(its)} times, {MOST_REQUESTS} are allowed"
        for vendor in filter(gives_lists, vendors)
        for operation, its in requests(vendor, EVERYTHING).items()
        if len(its) > MOST_REQUESTS
    ]
    slow = {vendor: seconds(vendor) for vendor in vendors}
    found += [f"{vendor}: {NODES} BMCs take {took:.0f} s" for vendor, took in slow.items() if took > MOST_S]
    return found


async def _nobody(urn: str, message: str) -> None:
    """Warnings."""


def main(argv: Sequence[str] | None = None) -> int:
    """Print a row for each maker. Exit codes: 0, 1 more is asked than ADR 119 allows."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bmcs", description="How often is a BMC asked?")
    parser.add_argument("--vendor", choices=sorted(VENDORS), action="append", help="default: all")
    parser.add_argument("--urls", action="store_true", help="what is asked for in a refresh, too")
    given = parser.parse_args(argv)
    print("| BMC | gives whole lists | requests at up / refresh | with all declared | rounds | 200 at 200 ms, s |")
    print("|---|---|---|---|---|---|")
    for vendor in given.vendor or sorted(VENDORS):
        least, most = requests(vendor, {}), requests(vendor, EVERYTHING)
        counts = [f"{len(each['create'])} / {len(each['read'])}" for each in (least, most)]
        lists = "yes" if gives_lists(vendor) else "no"
        print(f"| {vendor} | {lists} | {counts[0]} | {counts[1]} | {rounds(vendor)} | {seconds(vendor):.0f} |")
        if given.urls:
            print("".join(f"{method} {path}\n" for method, path in most["read"]))
    found = misses(given.vendor or sorted(VENDORS))
    print("".join(f"{each}\n" for each in found), end="", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
