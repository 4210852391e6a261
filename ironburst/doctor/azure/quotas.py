"""Quotas, which Azure counts in vCPUs: of a family of sizes, of all of a region, of all spot machines of a region."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ironburst import catalog
from ironburst.catalog.azure.sizes import size
from ironburst.doctor.azure.site import AzureSite, Nodes
from ironburst.doctor.azure.subscription import CoreQuota, SizeFacts
from ironburst.doctor.checks import CheckResult, answered
from ironburst.doctor.rented import markets_of, most

CHECK = "quotas"
ALL, SPOT = "cores", "lowprioritycores"
NAMES = {ALL: "the region's vCPUs", SPOT: "the region's spot vCPUs"}


def check(site: AzureSite) -> Iterator[CheckResult]:
    """Of groups and pools at their most. A family is the one that the region says a size has."""
    yield from answered(CHECK, site.cloud.region, _against(site))


def _against(site: AzureSite) -> Iterator[CheckResult]:
    quotas = site.subscription.quotas()
    for name, needed in needs(site, site.subscription.sizes()).items():
        yield _one(site, name, needed, quotas)


def needs(site: AzureSite, sizes: Mapping[str, SizeFacts]) -> dict[str, int]:
    """CoreQuota: how many vCPUs may run at once. A pool may have all of its nodes in any of its markets."""
    wanted: dict[str, int] = {}
    for _, nodes in site.nodes:
        for market in markets_of(nodes):
            if nodes.reserved:  # what runs in a reservation has had its quota since that was made
                continue
            for name, vcpus in _vcpus(nodes, sizes).items():
                for quota in (SPOT,) if market == "spot" else (name, ALL):
                    wanted[quota] = wanted.get(quota, 0) + vcpus * most(nodes)
    return wanted


def _vcpus(nodes: Nodes, sizes: Mapping[str, SizeFacts]) -> dict[str, int]:
    """Of one node, by family; of several sizes of a family the most."""
    found: dict[str, int] = {}
    for kind in catalog.known(nodes.types, size):
        facts = sizes.get(kind.name.lower())
        family = facts.family if facts else kind.family
        found[family] = max(found.get(family, 0), facts.vcpus if facts else kind.vcpus or 0)
    return found


def _one(site: AzureSite, name: str, needed: int, known: Mapping[str, CoreQuota]) -> CheckResult:
    what = NAMES.get(name, name)
    ask = f"ask for {needed} vCPUs of {what} in {site.cloud.region}: https://portal.azure.com/#view/Microsoft_Azure_Capacity"
    quota = known.get(name)
    if quota is None:
        return CheckResult(CHECK, what, "unknown", f"{name} isn't among the quotas of {site.cloud.region}", ask)
    seen = f"{quota.limit} vCPUs, of which {quota.usage} are in use"
    if quota.limit < needed:
        return CheckResult(CHECK, what, "fail", f"{seen}, and {needed} may be wanted", ask)
    if quota.limit - quota.usage < needed:
        return CheckResult(CHECK, what, "warn", f"{seen}, unless those are this cluster's own", ask)
    return CheckResult(CHECK, what, "ok", seen)
