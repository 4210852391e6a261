"""How often is a BMC asked? python -m benchmarks.bmcs [--vendor VENDOR ...] [--urls] [--json]

Requests of one node's operations as Pulumi does them (check, diff, create, read), with everything declared that makes
one ask for more, in each maker's shape of BMC (lab/bmc/vendors.py): as the stand-in logs them. Where a BMC offers
$expand, MOST_REQUESTS are enough; without it every part costs a request, whatever reads them.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pulumi.provider.experimental import provider as sdk

from ironburst.baremetal import documents
from lab.bmc import Bmc, Machine
from lab.bmc.documents import documents as documents_of
from providers.baremetal.provider import BaremetalProvider
from providers.baremetal.values import plain, values

MOST_REQUESTS = 30
"""in one operation, of a BMC that offers $expand: what ADR 119 promises"""
PASSWORD = "LAB_BMC_PASSWORD"
MACHINE = Machine("dgx01", "LAB-DGX01", "8b1e7f0e-0000-4000-8000-00000000000b", ("52:54:00:4e:00:0b",))
DECLARED: dict[str, Any] = {
    "name": "dgx01",
    "bmcUsername": "admin",
    "passwordRef": f"env:{PASSWORD}",
    "serial": "LAB-DGX01",
    "macs": ["52:54:00:4e:00:0b"],
    "gpuModel": "H100 SXM5 80GB",
    "gpuCount": 8,
    "allowed": dict.fromkeys(("power_redundancy", "power_supplies", "drives", "memory_minimum"), "2099-12-31"),
}
BIOS = {"bios": {"BootMode": "Bios"}}
FIRMWARE = {"firmware": [{"component": "BIOS", "atLeast": "0.1", "source": "a bulletin", "asOf": "2026-11-01"}]}
INSTALL = {
    "install": {
        "mark": "CHG-1",
        "medium": "http://10.0.0.5/media/dgx01.iso",
        "hostAddress": "127.0.0.1",
        "knownHosts": "/dev/null",
    }
}
Request = tuple[str, str]
"""method, path"""


def offers_expand(vendor: str) -> bool:
    """Whether this maker's BMC gives whole lists."""
    root = documents_of(Machine(**(vars(MACHINE) | {"vendor": vendor})), True, {}, [])["/redfish/v1"]
    return bool(documents._offered(root))


def requests(vendor: str, declared: dict[str, Any]) -> dict[str, list[Request]]:
    """What each operation on one node asks of its BMC: {operation: requests}."""
    with _served(vendor) as (bmc, log):
        provider = BaremetalProvider(_nobody)
        given = values(DECLARED | {"bmcAddress": bmc.url} | declared)
        urn = "urn:pulumi:dev::ironburst::baremetal:index:Node::dgx01"
        asked: dict[str, list[Request]] = {}

        def done(operation: str, answer: Any) -> Any:
            lines = log.read_text().splitlines() if log.exists() else []
            known = sum(map(len, asked.values()))
            asked[operation] = [(each["method"], each["path"]) for each in map(json.loads, lines[known:])]
            return answer

        run = asyncio.run
        done("check", run(provider.check(sdk.CheckRequest(urn, {}, given, b""))))
        state = done("create", run(provider.create(sdk.CreateRequest(urn, given, 0, False)))).properties
        done("diff", run(provider.diff(sdk.DiffRequest(urn, "dgx01", state, given, []))))
        done("read", run(provider.read(sdk.ReadRequest(urn, "dgx01", state, given))))
        assert plain(state)["reachable"]
        return asked


async def _nobody(urn: str, message: str) -> None:
    """Warnings."""


@contextmanager
def _served(vendor: str) -> Iterator[tuple[Bmc, Path]]:
    from lab.bmc.alone import Flag

    os.environ.setdefault(PASSWORD, "correct-horse-4711")
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "requests.jsonl"
        machine = Machine(**(vars(MACHINE) | {"vendor": vendor}))
        with Bmc(machine, Flag(), os.environ[PASSWORD], port=0, log=log) as bmc:
            yield bmc, log
