"""A stack file beside a Slurm that runs already, of its saved answers. Slurm and its nodes stay as they are."""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from ironburst import catalog
from ironburst.adapters.slurm.site import SlurmHost, SlurmSite
from ironburst.initial.aws import SECRETS, own_munge_key_hint, region_line, rented
from ironburst.nodes import naming
from ironburst.nodes.ranges import compact
from ironburst.software import slurm_upgrade
from ironburst.system.bad_input import BadInput

SYSTEMS = ("ubuntu2404", "debian13", "debian12", "ubuntu2204", "rhel9")
RELEASES = slurm_upgrade.RELEASES[slurm_upgrade.RELEASES.index("21.08") :]
"""of Slurm, whose answers can be read"""
_Size = tuple[str, int, int, int]  # GPU type, GPUs, CPUs, MiB


class SiteOptions(Protocol):
    """What was given beside the answers, as the verb's options have it; None: nothing."""

    from_slurm: Path
    name: str
    head: str
    region: str
    budget: float
    wait: str
    driver: str
    platform: list[str]
    partition: str | None
    network: str | None
    rent: str | None
    os: str | None


def text(wanted: SiteOptions, site: SlurmSite) -> tuple[str, list[str]]:
    """The stack file, and sentences on what isn't in it."""
    there = [host for host in site.hosts if host.gpus and not host.cloud]
    if not there:
        raise BadInput(f"{wanted.from_slurm}: no node has GPUs in its Gres, so there is nothing to burst from")
    partition = wanted.partition or _most_nodes(there)
    home = [host for host in there if partition in host.partitions]
    if not home:
        known = ", ".join(sorted({name for host in there for name in host.partitions}))
        raise BadInput(f"--partition {partition}: no node with GPUs is in it; partitions with some: {known}")
    others = [host.name for host in there if host not in home]
    left_out = [f"not in partition {partition}, so left out: {compact(others)}"] if others else []
    groups: dict[_Size, list[SlurmHost]] = {}
    for host in home:
        groups.setdefault((host.gpu_type, host.gpus, host.cpus, host.memory_mb), []).append(host)
    chosen = dict(given.partition("=")[::2] for given in wanted.platform)
    platforms = {size: _platform(size, chosen) for size in groups}
    network = _given_network(wanted.network) if wanted.network else _network(home)
    kind, nodes = rented(wanted.rent, next(iter(platforms.values())))
    zones = _zones(wanted.region, kind)
    os, release = _slurm(site.release, wanted.os)
    older = f" # the head has {site.release}, which takes older slurmd" if release != site.release else ""
    pool = f"name: {_pool_name(kind)}, instance_type: {kind}, max_nodes: {nodes}, zones: {_listed(zones)}"
    lines = [
        f"# By `ironburst init --from-slurm`, {datetime.now(UTC):%Y-%m-%d}: Slurm and its nodes stay as they are",
        "config:",
        region_line(wanted.region),
        "  ironburst:cluster:",
        f"    name: {wanted.name}",
        f'    software: {{slurm: "{release}", os: {os}, driver: "{wanted.driver}"}}{older}',
        "    halls:",
        "      - name: hall-a",
        f"        cidr: {network}",
        "        nodes:",
        *(line for size, hosts in groups.items() for line in _nodes(size, hosts, platforms[size])),
        "    cloud:",
        f"      region: {wanted.region}",
        f"      network: {{cidr: {_cloud_network(network)}, zones: {_listed(zones)}}}",
        f"      pools: [{{{pool}}}]",
        *_accounts(site),
        f"    budget: {{usd_per_month: {wanted.budget:g}}}",
        "    scheduler:",
        "      managed: false",
        f'      head: "{wanted.head}"',
        f'      home_partition: "{partition}"',
        *own_munge_key_hint(wanted.name),
        f"      munge_key: {SECRETS}/{wanted.name}/munge-key",
        f"    burst: {{wait_target: {wanted.wait}}}",
    ]
    return "\n".join(lines) + "\n", left_out


def _most_nodes(hosts: Sequence[SlurmHost]) -> str:
    counted = Counter(name for host in hosts for name in host.partitions if name)
    if not counted:
        raise BadInput("no node with GPUs is in a partition: save `scontrol show node --json`, or give --partition")
    return counted.most_common(1)[0][0]


def _nodes(size: _Size, hosts: Sequence[SlurmHost], platform: str) -> Iterator[str]:
    _, _, cpus, memory_mb = size
    names = ", ".join(f'"{name}"' for name in _ranges([host.name for host in hosts]))
    yield f"          - names: [{names}]"
    yield f"            platform: {platform}"
    yield "            managed: false"
    yield f"            slurm: {{cpus: {cpus}, memory_mb: {memory_mb}}}"


def _ranges(names: Sequence[str]) -> list[str]:
    return re.findall(r"(?:[^,\[]|\[[^\]]*\])+", compact(sorted(names)))


def _platform(size: _Size, chosen: dict[str, str]) -> str:
    """The platform with these GPUs. Raises BadInput where that isn't sure."""
    type, count, *_ = size
    if type in chosen:
        return chosen[type]
    fits = {
        slug: each
        for slug, each in catalog.platforms().items()
        if each.gpu_count == count and (not type or naming.gpu_type(each.gpu.model) == type)
    }
    what = f"{count} x {type or 'GPUs of no type'}"
    ask = f"say which with --platform {type}=PLATFORM (`ironburst catalog platforms` lists them)"
    if not fits:
        raise BadInput(f"no platform of the catalogue has {what}: {ask}; its GPUs are taken for what nodes have")
    if len({each.gpu.model for each in fits.values()}) > 1:
        raise BadInput(f"{what} may be {', '.join(sorted(fits)[:6])}: {ask}")
    return min(fits, key=lambda slug: (not slug.startswith("generic"), slug))


def _given_network(given: str) -> str:
    try:
        return str(ipaddress.IPv4Network(given))
    except ValueError:
        raise BadInput(f"--network: {given!r} is not an IPv4 network; write for example 10.0.0.0/22") from None


def _network(hosts: Sequence[SlurmHost]) -> str:
    """The smallest network with all their addresses. Raises BadInput where they are names."""
    try:
        addresses = [ipaddress.IPv4Address(host.address) for host in hosts]
    except ValueError:
        raise BadInput("--network is needed: Slurm knows the nodes by names, not by addresses") from None
    network = ipaddress.IPv4Network(f"{addresses[0]}/24", strict=False)
    while not all(address in network for address in addresses):
        network = network.supernet()
    return str(network)


def _cloud_network(network: str) -> str:
    """A network for the cloud that isn't the hall's."""
    free = (ipaddress.IPv4Network(f"10.{n}.0.0/16") for n in range(90, 250))
    return str(next(each for each in free if not each.overlaps(ipaddress.IPv4Network(network, strict=False))))


def _slurm(release: str, wanted: str | None) -> tuple[str, str]:
    """System and Slurm of rented nodes: slurmctld takes older ones than itself. Raises BadInput."""
    if release not in RELEASES:
        what = f"Slurm {release} isn't known" if release else "the answers don't say Slurm's release"
        raise BadInput(f"{what}: this reads answers of {RELEASES[0]} to {RELEASES[-1]}")
    packages = catalog.software_extra()["slurm_packages"]
    for each in (release, *reversed(slurm_upgrade.reads(release))):
        for os in [wanted] if wanted else SYSTEMS:
            if each in [*packages["distribution"]["releases"].get(os, ()), *packages["schedmd"]["releases"]]:
                return os, each
    systems = wanted or ", ".join(SYSTEMS)
    raise BadInput(f"Slurm {release}: no packages of it, or of those before that it takes, are known for {systems}")


def _zones(region: str, kind: str) -> list[str]:
    try:
        return list(catalog.instance_type(kind).zones(region))[:1] or [f"{region}a"]
    except catalog.Unknown as error:
        raise BadInput(f"--rent: {error}") from None


def _pool_name(kind: str) -> str:
    return re.sub(r"[^a-z0-9]", "", kind.split(".")[0])


def _listed(values: Sequence[str]) -> str:
    return f"[{', '.join(values)}]"


def _accounts(site: SlurmSite) -> list[str]:
    known = [name for name in site.accounts if name != "root"]
    if not known:
        return []
    return [f"    # accounts of this Slurm, each of which may have a ceiling (budget.accounts): {', '.join(known)}"]
