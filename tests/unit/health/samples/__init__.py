"""Healthy outputs of the gate's tools, written after their formats, not captured; `python -m tests.unit.health.samples`
writes them to tests/unit/health/healthy. Identities, temperatures and bandwidths are made up.
"""

from __future__ import annotations

from tests.unit.health.samples.dcgm import dcgm_health, diag, diag_json, discovery
from tests.unit.health.samples.fabricmanager import fm_journal, fm_log, fm_status
from tests.unit.health.samples.links import ib_write_bw, ibstat, lspci, nccl
from tests.unit.health.samples.machines import BY, SPECS, Spec, branch
from tests.unit.health.samples.smi import csv, listing, nvlink, table, topo
from tests.unit.health.samples.smi_query import query, xml

# the node, the largest message, and busbw GB/s there
NCCL = (
    ("v100-sxm2", 2**33, 131.0),
    ("a100-sxm4-40gb", 2**33, 236.0),
    ("a100-sxm4-80gb", 2**34, 236.5),
    ("h100-sxm5", 2**34, 478.0),
    ("h200-sxm", 2**34, 481.0),
    ("b200", 2**34, 830.0),
    ("gb200", 2**33, 810.0),
    ("l40s", 2**30, 21.0),
    ("t4", 2**27, 5.0),
    ("rtxpro6000", 2**30, 40.0),
)
# name, ports, type of adapter, Gb/s, link layer, firmware
IBSTAT = (
    ("v100", 4, "MT4119", 100, "InfiniBand", "16.35.4030"),
    ("a100", 8, "MT4123", 200, "InfiniBand", "20.39.3004"),
    ("h100", 8, "MT4129", 400, "InfiniBand", "28.42.1000"),
    ("h200-roce", 8, "MT4129", 400, "Ethernet", "28.43.2566"),
    ("b300", 8, "MT4131", 800, "InfiniBand", "40.46.1006"),
    ("l40s-roce", 2, "MT4125", 100, "Ethernet", "22.41.1000"),
)
# the node, DCGM's version, level
DIAG = (
    ("p100-sxm2", "3.3.9", 1),
    ("v100-sxm2", "3.3.7", 2),
    ("a100-sxm4-80gb", "3.3.3", 3),
    ("h100-sxm5", "4.2.3", 3),
    ("b200", "4.4.2", 2),
    ("l40s", "4.2.3", 1),
    ("t4", "3.3.1", 2),
    ("rtxpro6000", "4.5.0", 3),
)
FM_SHOW = "Type=forking\nResult=success\nMainPID=2116\nLoadState=loaded\nActiveState=active\nSubState=running\n"
FM_FABRIC = """\
    Fabric
        State                             : Completed
        Status                            : Success
"""


def samples() -> dict[str, str]:
    """All samples: file name -> text."""
    return {**_of_nodes(), **_of_bandwidth(), **_of_services()}


def _of_nodes() -> dict[str, str]:
    """nvidia-smi and lspci: each node in some of the forms."""
    h100 = BY["h100-sxm5"]
    out = {}
    for position, spec in enumerate(SPECS):
        small = spec._replace(count=min(spec.count, 2)) if spec is not h100 else spec
        smi, (form, text) = f"nvidia-smi-{spec.slug}", _list_form(spec, position % 4)
        out[f"{smi}-table"] = table(spec)
        out[f"{smi}-{'q' if position % 2 else 'q-x'}"] = query(small) if position % 2 else xml(small)
        out[f"{smi}-{form}"] = text
        if spec.links and ("sxm" in spec.slug or spec.fabric):
            out[f"{smi}-nvlink"] = nvlink(spec)
        kind = ("plain", "n", "nn", "Dnn", "Dn", "vv")[position % 6]
        out[f"lspci-{spec.slug}-{kind}"] = lspci(spec, kind)
    out["nvidia-smi-h100-sxm5-q-x"] = xml(h100._replace(count=2))
    out["nvidia-smi-h100-sxm5-topo"] = topo(h100)
    out["lspci-h100-sxm5-vv"] = lspci(h100, "vv")
    return out


def _list_form(spec: Spec, number: int) -> tuple[str, str]:
    return (
        ("csv", csv(spec, header=True, units=True)),
        ("csv-nounits", csv(spec, header=True, units=False)),
        ("csv-noheader-nounits", csv(spec, header=False, units=False)),
        ("list", listing(spec)),
    )[number]


def _of_bandwidth() -> dict[str, str]:
    """nccl-tests and ib_write_bw."""
    out = {}
    for slug, top, busbw in NCCL:
        spec = BY[slug]._replace(count=4) if slug == "t4" else BY[slug]
        low, version = 2**20 if slug == "h100-sxm5" else 8, "2.17.8" if branch(spec) > 535 else ""
        out[f"nccl-tests-{slug}-all_reduce"] = nccl(spec, top, busbw, low=low, version=version)
    out["ib_write_bw-a100-hdr-gbits"] = ib_write_bw(197.0, "Gb/sec", False)
    out["ib_write_bw-h100-ndr-gbits-gpu"] = ib_write_bw(421.0, "Gb/sec", False, gpu=True)
    out["ib_write_bw-h100-ndr-all-sizes"] = ib_write_bw(395.0, "Gb/sec", True)
    out["ib_write_bw-v100-edr-megabytes"] = ib_write_bw(98.0, "MB/sec", False)
    out["ib_write_bw-h200-roce-mebibytes"] = ib_write_bw(390.0, "MiB/sec", True, "Ethernet")
    return out


def _of_services() -> dict[str, str]:
    """ibstat, dcgmi and the fabric manager."""
    return {
        **{f"ibstat-{name}": ibstat(*of_node) for name, *of_node in IBSTAT},
        **{f"dcgmi-{slug}-diag-r{level}": diag(BY[slug], version, level) for slug, version, level in DIAG},
        "dcgmi-h200-sxm-diag-json": diag_json(BY["h200-sxm"], "4.4.2"),
        "dcgmi-a100-pcie-diag-json": diag_json(BY["a100-pcie"], "3.3.9"),
        "dcgmi-h100-sxm5-discovery": discovery(BY["h100-sxm5"], 4),
        "dcgmi-gb300-discovery": discovery(BY["gb300"], 0),
        "dcgmi-h100-sxm5-health": dcgm_health(),
        "fabricmanager-a100-status": fm_status(False),
        "fabricmanager-h100-status": fm_status(True),
        "fabricmanager-h200-journal": fm_journal(True),
        "fabricmanager-h100-log": fm_log(),
        "fabricmanager-b200-active": "active\n",
        "fabricmanager-b300-show": FM_SHOW,
        "fabricmanager-gb200-fabric": FM_FABRIC * 4,
    }
