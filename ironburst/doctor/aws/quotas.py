"""Service quotas: vCPUs by family and market against what the stack may run, and what its network takes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ironburst import catalog
from ironburst.config.aws import subnets
from ironburst.config.aws.models import AwsGroup, AwsPool
from ironburst.doctor.aws.site import AwsSite, markets_of
from ironburst.doctor.checks import CheckResult, answered
from ironburst.doctor.rented import most

CHECK = "quotas"


class Code(NamedTuple):
    """A quota: the service's code and its own."""

    service: str
    code: str


# families (the letters and generation of a type's name) -> the codes by market. All of EC2, in vCPUs; from the pages
# "On-Demand Instance quotas" and "Spot Instance quotas" of EC2's user guide. P6 has no spot quota there (2026-11).
FAMILIES: tuple[tuple[str, dict[str, str]], ...] = (
    (r"p[234]", {"on-demand": "L-417A185B", "spot": "L-7212CCBC"}),
    (r"p5", {"on-demand": "L-417A185B", "spot": "L-C4BD4855"}),
    (r"p\d+", {"on-demand": "L-417A185B"}),
    (r"(g|gr|vt)\d+", {"on-demand": "L-DB2E81BA", "spot": "L-3819A6DF"}),
    (r"[acdhimrtz]\d+", {"on-demand": "L-1216C47A", "spot": "L-34B43A08"}),
)
INTERFACES, GP3_TIB = Code("vpc", "L-DF5E4CA3"), Code("ebs", "L-7A658B76")
ADDRESSES, VPCS, NAT_GATEWAYS = Code("ec2", "L-0263D0A3"), Code("vpc", "L-F678F1CE"), Code("vpc", "L-FE5A380F")


def code_of(instance_type: str, market: str) -> str | None:
    """The vCPU quota that an instance counts against; None: not known."""
    family = re.match(r"[a-z]+\d+", instance_type)
    for pattern, codes in FAMILIES if family else ():
        if re.fullmatch(pattern, family[0] if family else ""):
            return codes.get(market)
    return None


@dataclass(frozen=True)
class VcpuNeed:
    """vCPUs of some nodes in one market."""

    who: str
    market: str
    code: str | None
    vcpus: int | None  # None: the catalogue doesn't know the type's


def needs(site: AwsSite) -> Iterator[VcpuNeed]:
    """Of groups and pools at their most. A capacity block has quotas of its own and counts against none of these; a
    capacity reservation counts as on-demand, used or not.
    """
    for who, nodes in site.nodes:
        for market in markets_of(nodes):
            if market != "capacity-block":
                yield from _of(who, nodes, market)


def _of(who: str, nodes: AwsGroup | AwsPool, market: str) -> Iterator[VcpuNeed]:
    """Of several types, the largest of each quota."""
    sizes: dict[str | None, list[int | None]] = {}
    for name in nodes.types:
        sizes.setdefault(code_of(name, market), []).append(catalog.instance_type(name).vcpus)
    for code, vcpus in sizes.items():
        known = [each for each in vcpus if each is not None]
        whole = most(nodes) * max(known) if len(known) == len(vcpus) else None
        yield VcpuNeed(who, market, code, whole)


def check(site: AwsSite) -> Iterator[CheckResult]:
    """A quota a finding."""
    wanted = list(needs(site))
    by_code: dict[str, list[VcpuNeed]] = {}
    for need in wanted:
        if need.code is None or need.vcpus is None:
            seen = "which quota of EC2 these count against isn't known here"
            todo = f"look at it: {_console(site.cloud.region, 'ec2')}"
            yield CheckResult(CHECK, f"{need.market} vCPUs of {need.who}", "unknown", seen, todo)
        else:
            by_code.setdefault(need.code, []).append(need)
    build = site.cloud.images.build_type
    if build and site.cloud.pools:
        yield from answered(CHECK, f"vCPUs of the build type {build}", _add_build(site, build, by_code))
    for code, those in by_code.items():
        yield from answered(CHECK, f"EC2 quota {code}", _one(site, code, those))
    yield from answered(CHECK, "network interfaces and disks", _parts(site))
    if not site.cloud.network.existing:
        yield from answered(CHECK, "VPCs, Elastic IPs and NAT gateways", _network(site))


def _parts(site: AwsSite) -> Iterator[CheckResult]:
    """What every node brings along: its network interfaces, and its root disk."""
    used = site.account.in_use(site.name)
    interfaces, gib = 0, 0
    for _, nodes in site.nodes:
        interfaces += most(nodes) * max(_interfaces(name) for name in nodes.types)
        gib += most(nodes) * nodes.root_disk_gb
    yield from _count(site, INTERFACES, used.interfaces, interfaces, "")
    yield from _count(site, GP3_TIB, math.ceil(used.gp3_gib / 1024), math.ceil(gib / 1024), "")


def _add_build(site: AwsSite, build: str, by_code: dict[str, list[VcpuNeed]]) -> Iterator[CheckResult]:
    """One at a time is baked on it."""
    facts, code = site.account.types([build]).get(build), code_of(build, "on-demand")
    if facts and code:
        by_code.setdefault(code, []).append(VcpuNeed("a build", "on-demand", code, facts.vcpus))
        return
    seen = f"{site.cloud.region} has none" if not facts else "which quota it counts against isn't known here"
    todo = f"choose another cloud.images.build_type, or look at {_console(site.cloud.region, 'ec2')}"
    yield CheckResult(CHECK, f"vCPUs of the build type {build}", "fail" if not facts else "unknown", seen, todo)


def _one(site: AwsSite, code: str, those: list[VcpuNeed]) -> Iterator[CheckResult]:
    """Of one vCPU quota."""
    quota, need = site.account.quota("ec2", code), sum(each.vcpus or 0 for each in those)
    who = ", ".join(f"{each.who} {each.vcpus}" for each in those)
    seen = f"{quota.value:.0f} vCPUs; this stack may run {need} ({who}), what else the account runs counts too"
    if quota.value >= need:
        yield CheckResult(CHECK, quota.name, "ok", seen)
    else:
        yield CheckResult(CHECK, quota.name, "fail", seen, increase(site.cloud.region, Code("ec2", code), need))


def _interfaces(instance_type: str) -> int:
    """One at least, where its cards aren't known."""
    try:
        return len(catalog.network_interfaces(instance_type))
    except catalog.Unknown:
        return 1


def _network(site: AwsSite) -> Iterator[CheckResult]:
    """A VPC; an address and a NAT gateway in each zone with nodes, where they go out by NAT."""
    zones = subnets.zones_in_use(site.cloud) if site.cloud.network.egress == "nat" else []
    used = site.account.in_use(site.name)
    counted = [(VPCS, used.vpcs, 1, "")]
    if zones:
        counted.append((ADDRESSES, used.addresses, len(zones), ""))
    counted += [(NAT_GATEWAYS, used.nat_gateways.get(zone, 0), 1, f", {zone}") for zone in zones]
    for code, others, need, where in counted:
        looked_at = f"{code.service} quota {code.code}{where}"
        yield from answered(CHECK, looked_at, _count(site, code, others, need, where))


def _count(site: AwsSite, code: Code, used: int, need: int, where: str) -> Iterator[CheckResult]:
    quota = site.account.quota(*code)
    seen = f"{quota.value:.0f}; others use {used}, this stack {need}"
    if quota.value >= used + need:
        yield CheckResult(CHECK, quota.name + where, "ok", seen)
    else:
        yield CheckResult(CHECK, quota.name + where, "fail", seen, increase(site.cloud.region, code, used + need))


def increase(region: str, code: Code, value: float) -> str:
    """How to ask for more."""
    return (
        f"ask for it (hours to days): aws service-quotas request-service-quota-increase --region {region} "
        f"--service-code {code.service} --quota-code {code.code} --desired-value {value:.0f}"
    )


def _console(region: str, service: str) -> str:
    return f"https://{region}.console.aws.amazon.com/servicequotas/home/services/{service}/quotas"
