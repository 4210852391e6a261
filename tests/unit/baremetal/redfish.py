"""Redfish documents of every maker's shape, in memory, and what a damaged or hostile BMC makes of them."""

import copy
import json
from dataclasses import replace

from ironburst.baremetal import documents, inventory
from lab.bmc.documents import documents as documents_of
from lab.bmc.machine import Machine
from lab.bmc.shapes import expanded
from lab.bmc.vendors import VENDORS

MACHINE = Machine("dgx01", "LAB-DGX01", "8b1e7f0e-0000-4000-8000-00000000000b", ("52:54:00:4e:00:0b",))
SERVERS = {
    "HGX H100": {},
    "HGX H200": {"gpu_model": "NVIDIA H200"},
    "HGX B200": {"gpu_model": "NVIDIA B200", "height_u": 10},
    "HGX A100": {"gpu_model": "NVIDIA A100-SXM4-80GB", "height_u": 6, "memory_gib": 1024},
    "8 PCIe GPUs": {"gpu_model": "NVIDIA L40S", "height_u": 4, "memory_gib": 512, "psus": 4, "hcas": 2},
    "4 PCIe GPUs": {"gpu_model": "NVIDIA H100 NVL", "gpus": 4, "height_u": 2, "memory_gib": 512, "psus": 2, "hcas": 1},
    "head node": {"gpus": 0, "height_u": 1, "memory_gib": 256, "psus": 2, "hcas": 1},
}
TRAYS = {
    "nvidia-gb200": {"GB200 tray": {"gpu_model": "NVIDIA GB200", "gpus": 4}},
    "nvidia-gh200": {"GH200 node": {"gpu_model": "NVIDIA GH200 96GB HBM3", "gpus": 2}},
    "supermicro-gb300": {"GB300 tray": {"gpu_model": "NVIDIA GB300", "gpus": 4}},
}
"""vendor: its only server"""
for trays in TRAYS.values():
    for tray in trays.values():
        tray |= {"height_u": 1, "memory_gib": 960, "dimms": 2, "psus": 0, "hcas": 4}
GONE = object()
VALUES = {
    "removed": GONE,
    "null": None,
    "number": 7,
    "text": "x",
    "true": True,
    "list": [],
    "object": {},
    "huge text": "A" * 100_000,
    "huge number": 10**300,
    "below zero": -1,
    "junk": [None, 1, "x", {}, [], {"@odata.id": 7}],
    "deep": json.loads("[" * 90 + "]" * 90),
    "control characters": "\x00\x1b[31m\ud800 x",
    "a link to the root": {"@odata.id": "/redfish/v1"},
    "a link to itself": "itself",
    "a link off the BMC": {"@odata.id": "https://evil.example/redfish/v1/Systems"},
    "a link without a scheme": {"@odata.id": "//evil.example/redfish/v1"},
    "a link out of Redfish": {"@odata.id": "/redfish/../cgi-bin/reset"},
    "ten thousand members": [{"@odata.id": f"/redfish/v1/x/{n}"} for n in range(10_000)],
}


def served(machine):
    """The documents of a machine, as JSON gives them back."""
    return json.loads(json.dumps(documents_of(machine, True, {}, [])))


def servers(vendor):
    """What this vendor's BMCs are in, by name."""
    return TRAYS.get(vendor, SERVERS)


def machine(vendor, server="HGX H100", **changes):
    return replace(MACHINE, vendor=vendor, **(SERVERS | servers(vendor))[server], **changes)


def getter(docs, vendor, asked=None):
    """documents.Get over a dict; fails for a path that no BMC should be asked for."""

    def get(path):
        assert path.startswith("/redfish/v1"), path
        if asked is not None:
            asked.append(path)
        plain, _, expand = path.partition("$expand")
        return expanded(docs, plain.rstrip("?&"), vendor) if expand else docs.get(path)

    return get


def read(docs, vendor, **options):
    return inventory.hardware(documents.read(getter(docs, vendor), **options))


def mutations(docs):
    """(what, the damaged documents): each property of one document of each kind, each bad value."""
    kinds = {}
    for path, document in docs.items():
        kinds.setdefault(document.get("@odata.type"), path)
    for path in kinds.values():
        for name in docs[path]:
            for label, value in VALUES.items():
                damaged = dict(docs)
                document = copy.deepcopy(docs[path])
                if value is GONE:
                    del document[name]
                else:
                    document[name] = {"@odata.id": path} if value == "itself" else value
                damaged[path] = document
                yield f"{path} {name} {label}", damaged
    for label, value in VALUES.items():
        if value is not GONE:
            for path in kinds.values():
                yield f"{path} whole {label}", docs | {path: value}


__all__ = ["SERVERS", "VENDORS", "getter", "machine", "mutations", "read", "served", "servers"]
