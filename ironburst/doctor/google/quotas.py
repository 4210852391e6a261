"""Quotas of Compute Engine: GPUs by model and market, GPUs of the whole project, disks.

Metrics are those of the API's own list (Quota.metric, v1 of 2026-11). H200, B200, GB200, RTX PRO 6000 and H100 on
demand have none there: their quotas are in Cloud Quotas, which isn't asked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from ironburst import catalog
from ironburst.catalog.google.machine_types import machine_type
from ironburst.doctor.checks import CheckResult, answered
from ironburst.doctor.google.project import Quota
from ironburst.doctor.google.site import GoogleSite, Nodes
from ironburst.doctor.rented import markets_of, most

CHECK = "quotas"
METRICS = {
    ("A100 SXM4 40GB", "on-demand"): "NVIDIA_A100_GPUS",
    ("A100 SXM4 40GB", "spot"): "PREEMPTIBLE_NVIDIA_A100_GPUS",
    ("A100 SXM4 80GB", "on-demand"): "NVIDIA_A100_80GB_GPUS",
    ("A100 SXM4 80GB", "spot"): "PREEMPTIBLE_NVIDIA_A100_80GB_GPUS",
    ("L4", "on-demand"): "NVIDIA_L4_GPUS",
    ("L4", "spot"): "PREEMPTIBLE_NVIDIA_L4_GPUS",
    ("H100 SXM5 80GB", "spot"): "PREEMPTIBLE_NVIDIA_H100_GPUS",
}
"""(GPU, market): the region's metric, in GPUs"""
ALL_GPUS, DISKS = "GPUS_ALL_REGIONS", "SSD_TOTAL_GB"
LIST = "https://console.cloud.google.com/iam-admin/quotas"


def check(site: GoogleSite) -> Iterator[CheckResult]:
    """Of groups and pools at their most. What runs in a reservation has its quota already."""
    yield from answered(CHECK, site.cloud.region, _against(site))


def _against(site: GoogleSite) -> Iterator[CheckResult]:
    known = site.project.quotas()
    wanted = needs(site)
    for (model, market), gpus in wanted.items():
        what, metric = f"{gpus} x {model}, {market}", METRICS.get((model, market))
        if metric is None:
            todo = f"look whether the project may have {gpus}: {LIST} (Compute Engine API, {site.cloud.region})"
            yield CheckResult(CHECK, what, "unknown", "Compute Engine has no metric for these", todo)
        else:
            yield _one(site, what, metric, gpus, known)
    if wanted:
        together = sum(wanted.values())
        yield _one(site, f"{together} GPUs in all", ALL_GPUS, together, known)
    if disks := _disks_gb(site):
        yield _one(site, f"{disks} GB of root disks", DISKS, disks, known)


def needs(site: GoogleSite) -> dict[tuple[str, str], int]:
    """(GPU, market): how many GPUs may run at once. A pool may have all of its nodes in any of its markets."""
    wanted: dict[tuple[str, str], int] = {}
    for _, nodes in site.nodes:
        if nodes.reserved:
            continue
        for market in markets_of(nodes):
            for model, gpus in _gpus(nodes).items():
                wanted[model, market] = wanted.get((model, market), 0) + gpus * most(nodes)
    return wanted


def _gpus(nodes: Nodes) -> dict[str, int]:
    """Of one node, by model; of several types the most."""
    found: dict[str, int] = {}
    for kind in catalog.known(nodes.types, machine_type):
        model = kind.gpu_model or ""
        found[model] = max(found.get(model, 0), math.ceil(kind.gpu_count * (kind.gpu_fraction or 1)))
    return found


def _disks_gb(site: GoogleSite) -> int:
    """Of persistent disks; hyperdisks have quotas of their own."""
    return sum(
        nodes.root_disk_gb * most(nodes)
        for _, nodes in site.nodes
        if nodes.root_disk_type != "hyperdisk-balanced"
        and not any(kind.hyperdisk_only for kind in catalog.known(nodes.types, machine_type))
    )


def _one(site: GoogleSite, what: str, metric: str, needed: int, known: Mapping[str, Quota]) -> CheckResult:
    quota = known.get(metric)
    where = "the project" if metric == ALL_GPUS else site.cloud.region
    ask = f"ask for {needed} of {metric} in {where}: {LIST}"
    if quota is None:
        return CheckResult(CHECK, what, "unknown", f"{metric} isn't among the quotas of {where}", ask)
    seen = f"{metric} is {quota.limit:g}, of which {quota.usage:g} are in use"
    if quota.limit < needed:
        return CheckResult(CHECK, what, "fail", f"{seen}, and {needed} may be wanted", ask)
    if quota.limit - quota.usage < needed:
        return CheckResult(CHECK, what, "warn", f"{seen}, unless those are this cluster's own", ask)
    return CheckResult(CHECK, what, "ok", seen)
