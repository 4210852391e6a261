"""What the declaration can cost at worst. Every figure is an estimate from prices that have a date."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date

from ironburst import catalog
from ironburst.config.aws import subnets
from ironburst.config.aws.models import AwsCloud, AwsGroup, AwsPool
from ironburst.config.aws.network_models import ENDPOINTS, HallLink
from ironburst.config.models import ClusterConfig
from ironburst.config.prices import at_worst, oldest, price
from ironburst.system import local_time

HOURS_PER_MONTH = 730
# what a GB costs the VPC's account; behind a transit gateway its owner pays for the way on
WAY_OUT: dict[str, catalog.NetworkItem] = {
    "vpn": "internet-out",
    "direct-connect": "direct-connect-out",
    "transit-gateway": "transit-gateway-data",
}


@dataclass(frozen=True)
class Estimate:
    """USD per hour with every declared node running;
    None where a price isn't known. `as_of`: the oldest list price in it. `beside`: what isn't in the sum.
    """

    what: str
    usd_per_hour: float | None
    as_of: date | None
    beside: str = ""
    remedy: str = "give one under cloud.price"

    @property
    def usd_per_month(self) -> float | None:
        """None where the hour's isn't known."""
        return None if self.usd_per_hour is None else self.usd_per_hour * HOURS_PER_MONTH

    def told(self, today: date | None = None) -> str:
        """For people now: with the age of its prices. `str` is the same on every day, for what is kept."""
        dated = f"list prices of {self.as_of}"
        return str(self).replace(dated, f"list prices of {local_time.prices_of(self.as_of, today)}", 1)

    def __str__(self) -> str:
        if self.usd_per_hour is None:
            return f"{self.what}: price unknown, so no estimate; {self.remedy}"
        dated = f", list prices of {self.as_of}" if self.as_of else ", declared prices"
        hour, month = f"{self.usd_per_hour:,.2f} USD an hour", f"{self.usd_per_month:,.0f} USD a month"
        beside = f"; {self.beside}" if self.beside else ""
        return f"{self.what}: at worst {hour}, {month} (estimate{dated}){beside}"


def fixed(config: ClusterConfig) -> list[Estimate]:
    """What costs money all the time, whether or not anything is rented."""
    cloud = config.cloud
    if not cloud:
        return []
    costs = [group(cloud, each) for each in cloud.groups]
    costs += [network(cloud)] if not cloud.network.existing else []
    costs += [eks(cloud)] if config.kubernetes and config.kubernetes.eks else []
    return costs


def pool(cloud: AwsCloud, declared: AwsPool) -> Estimate:
    """Every node of the pool rented all the time, of its dearest type in its dearest market."""
    what = f"burst pool {declared.name}, {declared.max_nodes} x {' or '.join(declared.types)}"
    if declared.capacity_block:
        what += f" in capacity block {declared.capacity_block.id}, paid for when it was bought"
    offers = [(name, market) for name in declared.types for market in declared.markets]
    dated = oldest(price(cloud, *each) for each in offers)
    filled = "beside that each launch pays for each GB of its image that is filled in at a rate"
    beside = filled if declared.root_disk_init_mb_s else ""
    worst = _estimate(what, [at_worst(cloud, *each) for each in offers], declared.max_nodes)
    return replace(worst, as_of=dated, beside=beside)


def group(cloud: AwsCloud, declared: AwsGroup) -> Estimate:
    """The fixed nodes at the on-demand price (a reservation or a capacity block is paid for apart, and differently)."""
    what = f"fixed group {declared.name}, {declared.count} x {declared.instance_type}"
    return _estimate(what, [price(cloud, declared.instance_type, "on-demand")], declared.count)


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


def _estimate(what: str, prices: list[catalog.Price | None], nodes: int) -> Estimate:
    known = [given for given in prices if given is not None]
    if len(known) < len(prices):
        return Estimate(what, None, None)
    return Estimate(what, max(each.usd_per_hour for each in known) * nodes, oldest(known))
