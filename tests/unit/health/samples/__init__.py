"""Healthy outputs of the gate's tools, written after their formats, not captured; `python -m tests.unit.health.samples`
writes them to tests/unit/health/healthy. Identities, temperatures and bandwidths are made up.
"""

from __future__ import annotations

from tests.unit.health.samples.dcgm import dcgm_health, diag, diag_json, discovery
from tests.unit.health.samples.fabricmanager import fm_journal, fm_log, fm_status
from tests.unit.health.samples.links import ib_write_bw, ibstat, lspci, nccl
from tests.unit.health.samples.machines import BY, SPECS, branch
from tests.unit.health.samples.smi import csv, listing, nvlink, query, table, topo, xml


def samples() -> dict[str, str]:
    """All samples: file name -> text."""
    out = {}
    for position, spec in enumerate(SPECS):
        out[f"nvidia-smi-{spec.slug}-table"] = table(spec)
        small = spec._replace(count=min(spec.count, 2)) if spec.slug != "h100-sxm5" else spec
        out[f"nvidia-smi-{spec.slug}-{'q' if position % 2 else 'q-x'}"] = query(small) if position % 2 else xml(small)
        form = (csv(spec, True, True), csv(spec, True, False), csv(spec, False, False), listing(spec))[position % 4]
        out[f"nvidia-smi-{spec.slug}-{('csv', 'csv-nounits', 'csv-noheader-nounits', 'list')[position % 4]}"] = form
        if spec.links and ("sxm" in spec.slug or spec.fabric):
            out[f"nvidia-smi-{spec.slug}-nvlink"] = nvlink(spec)
        kind = ("plain", "n", "nn", "Dnn", "Dn", "vv")[position % 6]
        out[f"lspci-{spec.slug}-{kind}"] = lspci(spec, kind)
    out["nvidia-smi-h100-sxm5-q-x"] = xml(BY["h100-sxm5"]._replace(count=2))
    out["nvidia-smi-h100-sxm5-topo"] = topo(BY["h100-sxm5"])
    out["lspci-h100-sxm5-vv"] = lspci(BY["h100-sxm5"], "vv")
    for slug, top, figure in (
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
    ):
        spec = BY[slug] if slug != "t4" else BY[slug]._replace(count=4)
        out[f"nccl-tests-{slug}-all_reduce"] = nccl(
            spec, top, figure, low=8 if slug != "h100-sxm5" else 2**20, version="2.17.8" if branch(spec) > 535 else ""
        )
    out["ib_write_bw-a100-hdr-gbits"] = ib_write_bw(197.0, "Gb/sec", False)
    out["ib_write_bw-h100-ndr-gbits-gpu"] = ib_write_bw(421.0, "Gb/sec", False, gpu=True)
    out["ib_write_bw-h100-ndr-all-sizes"] = ib_write_bw(395.0, "Gb/sec", True)
    out["ib_write_bw-v100-edr-megabytes"] = ib_write_bw(98.0, "MB/sec", False)
    out["ib_write_bw-h200-roce-mebibytes"] = ib_write_bw(390.0, "MiB/sec", True, "Ethernet")
    for slug, ports, ca, rate, layer, firmware in (
        ("v100", 4, "MT4119", 100, "InfiniBand", "16.35.4030"),
        ("a100", 8, "MT4123", 200, "InfiniBand", "20.39.3004"),
        ("h100", 8, "MT4129", 400, "InfiniBand", "28.42.1000"),
        ("h200-roce", 8, "MT4129", 400, "Ethernet", "28.43.2566"),
        ("b300", 8, "MT4131", 800, "InfiniBand", "40.46.1006"),
        ("l40s-roce", 2, "MT4125", 100, "Ethernet", "22.41.1000"),
    ):
        out[f"ibstat-{slug}"] = ibstat(ports, ca, rate, layer, firmware)
    for slug, version, level in (
        ("p100-sxm2", "3.3.9", 1),
        ("v100-sxm2", "3.3.7", 2),
        ("a100-sxm4-80gb", "3.3.3", 3),
        ("h100-sxm5", "4.2.3", 3),
        ("b200", "4.4.2", 2),
        ("l40s", "4.2.3", 1),
        ("t4", "3.3.1", 2),
        ("rtxpro6000", "4.5.0", 3),
    ):
        out[f"dcgmi-{slug}-diag-r{level}"] = diag(BY[slug], version, level)
    out["dcgmi-h200-sxm-diag-json"] = diag_json(BY["h200-sxm"], "4.4.2")
    out["dcgmi-a100-pcie-diag-json"] = diag_json(BY["a100-pcie"], "3.3.9")
    out["dcgmi-h100-sxm5-discovery"] = discovery(BY["h100-sxm5"], 4)
    out["dcgmi-gb300-discovery"] = discovery(BY["gb300"], 0)
    out["dcgmi-h100-sxm5-health"] = dcgm_health()
    out["fabricmanager-a100-status"] = fm_status(False)
    out["fabricmanager-h100-status"] = fm_status(True)
    out["fabricmanager-h200-journal"] = fm_journal(True)
    out["fabricmanager-h100-log"] = fm_log()
    out["fabricmanager-b200-active"] = "active\n"
    out["fabricmanager-b300-show"] = (
        "Type=forking\nResult=success\nMainPID=2116\nLoadState=loaded\nActiveState=active\nSubState=running\n"
    )
    out["fabricmanager-gb200-fabric"] = (
        "    Fabric\n        State                             : Completed\n        Status                            : Success\n"
        * 4
    )
    return out
