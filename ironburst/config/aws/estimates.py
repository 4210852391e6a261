"""What a network in AWS, and a control plane of EKS, cost by the hour."""

from __future__ import annotations

from ironburst import catalog
from ironburst.config.aws import subnets
from ironburst.config.aws.models import AwsCloud
from ironburst.config.aws.network_models import ENDPOINTS, HallLink
from ironburst.config.estimate import HOURS_PER_MONTH, Estimate
from ironburst.config.models import ClusterConfig

# what a GB costs the VPC's account; behind a transit gateway its owner pays for the way on
WAY_OUT: dict[str, catalog.NetworkItem] = {
    "vpn": "internet-out",
    "direct-connect": "direct-connect-out",
    "transit-gateway": "transit-gateway-data",
}


def running(config: ClusterConfig) -> list[Estimate]:
    """What costs money all the time in AWS beside nodes."""
    if not (cloud := config.cloud_by_class(AwsCloud)):
        return []
    costs = [network(cloud)] if not cloud.network.existing else []
    return costs + ([eks(cloud)] if config.kubernetes and config.kubernetes.eks else [])


def network(cloud: AwsCloud) -> Estimate:
    """What the stack's own network costs by the hour, with the data to the hall where it is declared; of other data the
    price of a GB.
    """
    zones, links = len(subnets.zones_in_use(cloud)), cloud.network.links
    parts: list[tuple[str, int, list[catalog.NetworkItem]]] = []
    data: list[tuple[str, catalog.NetworkItem]] = []
    if cloud.network.egress == "nat" and zones:
        parts.append(("NAT gateway", zones, ["nat-gateway", "public-ipv4"]))
        data.append(("through NAT", "nat-gateway-data"))
    if cloud.network.egress == "endpoints" and zones:
        parts.append(("interface endpoint", zones * len(ENDPOINTS), ["interface-endpoint"]))
        data.append(("through an endpoint", "interface-endpoint-data"))
    for what, items, count in _link_parts(links):
        if count:
            parts.append((what, count, items))
    data += [(f"to {link.hall}", WAY_OUT[link.kind]) for link in links if link.gb_per_month is None]
    if zones > 1:
        data.append(("between zones, each way", "between-zones"))
    sums: list[tuple[float, catalog.NetworkPrice | None]] = []
    sums += [(count, catalog.network_price(item, cloud.region)) for _, count, items in parts for item in items]
    names = [f"{count} {name}{'s' if count > 1 else ''}" for name, count, _ in parts]
    for link in links:
        if link.gb_per_month:
            names.append(f"{link.gb_per_month:,g} GB a month to {link.hall}")
            price_of = catalog.network_price(WAY_OUT[link.kind], cloud.region)
            sums.append((link.gb_per_month / HOURS_PER_MONTH, price_of))
    per_gb = [(name, catalog.network_price(item, cloud.region)) for name, item in data]
    what = ", ".join(["network", *names]) if names else "network"
    known = [(count, found) for count, found in sums if found]
    if len(known) < len(sums) or not all(found for _, found in per_gb):
        return Estimate(what, None, None, remedy=f"the catalogue has no network prices of {cloud.region}")
    beside = ", ".join(f"{found.usd:g} USD a GB {name}" for name, found in per_gb if found)
    dates = [found.as_of for _, found in known if found.as_of]
    total = sum(count * found.usd for count, found in known)
    return Estimate(what, total, min(dates, default=None), beside=f"beside that {beside}" if beside else "")


def eks(cloud: AwsCloud) -> Estimate:
    """The control plane of a cluster in EKS; its nodes are the groups'."""
    what, region = "EKS control plane", cloud.region
    now, later = (catalog.network_price(item, region) for item in ("eks-control-plane", "eks-extended-support"))
    if not (now and later):
        return Estimate(what, None, None, remedy=f"the catalogue has no prices of EKS in {region}")
    beside = f"{later.usd:g} USD an hour once its version is in extended support"
    return Estimate(what, now.usd, now.as_of, beside=beside)


def _link_parts(links: list[HallLink]) -> list[tuple[str, list[catalog.NetworkItem], int]]:
    """(name, what is paid by the hour, how many) of what links the halls."""
    transit = len({link.gateway_id for link in links if link.kind == "transit-gateway"})
    return [
        ("VPN connection", ["vpn-connection"], sum(link.kind == "vpn" for link in links)),
        ("transit gateway attachment", ["transit-gateway-attachment"], transit),
    ]
