"""`ironburst init`: a stack file from answers to questions (new_site), or beside a Slurm that runs already."""

from __future__ import annotations

import argparse
import ipaddress
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from ironburst import catalog
from ironburst.adapters.slurm.site import SlurmHost, SlurmSite, UnreadableSite, read
from ironburst.cli import Subparsers, init_from, new_site
from ironburst.cli.arguments import Keyed
from ironburst.cli.site_options import guarded
from ironburst.nodes import naming
from ironburst.nodes.ranges import compact
from ironburst.software import slurm_upgrade
from ironburst.system.bad_input import BadInput

SYSTEMS = ("ubuntu2404", "debian13", "debian12", "ubuntu2204", "rhel9")
RELEASES = slurm_upgrade.RELEASES[slurm_upgrade.RELEASES.index("21.08") :]
"""of Slurm, whose answers can be read"""
_Size = tuple[str, int, int, int]  # GPU type, GPUs, CPUs, MiB


def add_parser(subparsers: Subparsers) -> None:
    """The verb and its options."""
    parser = subparsers.add_parser(
        "init",
        help="a stack file from nothing, from a Slurm that runs already, or from another environment",
        description="Write a stack file: from nothing, or with --from-slurm beside a Slurm that runs already, whose "
        "nodes stay as they are (managed: false). What isn't given is asked for on a terminal. With --from: a new "
        "environment, with its name, references and cloud network; what is still the other's is marked in the file. "
        "Exit code 0: written, and valid; 2: bad input.",
        epilog="examples: ironburst init; ironburst init --yes --name hall1 --nodes 4 --platform dgx-h100 --addresses "
        "10.0.0.[11-14] --head 10.0.0.10 --region none; ironburst init --from-slurm answers --name prod",
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--from-slurm", type=Path, metavar="FOLDER", help="saved answers of a Slurm's --json")
    source.add_argument("--from", dest="from_stack", type=Path, metavar="STACK_FILE", help="of another environment")
    parser.add_argument("--name", help="of the stack; the file is Pulumi.NAME.yaml")
    parser.add_argument("--head", help="address of the scheduler's host, or of one that is there its name as well")
    parser.add_argument("--partition", help="of the GPU nodes (default: the one that has most of them, or home)")
    parser.add_argument(
        "--platform",
        action=Keyed,
        default=[],
        metavar="PLATFORM",
        help="what the nodes are; with --from-slurm TYPE=PLATFORM, what nodes with this gres type are",
    )
    parser.add_argument("--network", help="of the nodes, as in 10.0.0.0/22 (default: from their addresses)")
    parser.add_argument("--region", help="of AWS, as in us-east-1, or none: rent nothing")
    parser.add_argument("--rent", metavar="TYPE=NODES", help="EC2 type, and how many at most (default: home's GPU, 2)")
    parser.add_argument("--budget", metavar="USD", help="the most for rented nodes in a month")
    parser.add_argument("--wait", help="mean wait that jobs should have (default: 20m)")
    parser.add_argument("--os", help=f"system of the nodes (default: {SYSTEMS[0]}, or one that has this Slurm)")
    parser.add_argument("--driver", default="580", help="NVIDIA's branch (default: %(default)s)")
    parser.add_argument("--output", type=Path, help="default: stacks/Pulumi.NAME.yaml, or Pulumi.NAME.yaml")
    parser.add_argument("--force", action="store_true", help="replace a file that is there")
    new_site.add(parser)
    parser.set_defaults(func=run)


@guarded
def run(arguments: argparse.Namespace) -> int:
    """Write the file, and say what was left out."""
    if arguments.from_stack:
        _ask(arguments, "name", "name of the stack")
        return init_from.make(arguments.from_stack, arguments.name, arguments.output, arguments.force)
    if arguments.from_slurm is None:
        return new_site.run(arguments)
    try:
        site = read(arguments.from_slurm)
    except UnreadableSite as error:
        raise BadInput(str(error)) from None
    arguments.wait = arguments.wait or "20m"
    for key, words in (
        ("name", "name of the stack"),
        ("head", "address of slurmctld's host"),
        ("region", "region of AWS to rent in"),
        ("budget", "USD a month"),
    ):
        _ask(arguments, key, words)
    path = new_site.output(arguments, arguments.name)
    text, left_out = _text(arguments, site)
    new_site.write(path, text, left_out)
    print(f"{path}: valid; next: `ironburst lock {path}` and `ironburst slurm snippet {path}`")
    return 0


def _ask(arguments: argparse.Namespace, key: str, words: str) -> None:
    if getattr(arguments, key) is None:
        if arguments.yes or not sys.stdin.isatty():
            raise BadInput(f"--{key} is needed: {words}")
        setattr(arguments, key, input(f"{words}: ").strip())
    if key == "budget":
        try:
            arguments.budget = float(arguments.budget)
        except ValueError:
            raise BadInput(f"--{key}: {arguments.budget!r} is no number") from None


def _text(arguments: argparse.Namespace, site: SlurmSite) -> tuple[str, list[str]]:
    """The stack file, and sentences on what isn't in it."""
    there = [host for host in site.hosts if host.gpus and not host.cloud]
    if not there:
        raise BadInput(f"{arguments.from_slurm}: no node has GPUs in its Gres, so there is nothing to burst from")
    partition = arguments.partition or _most_nodes(there)
    home = [host for host in there if partition in host.partitions]
    if not home:
        known = ", ".join(sorted({name for host in there for name in host.partitions}))
        raise BadInput(f"--partition {partition}: no node with GPUs is in it; partitions with some: {known}")
    others = [host.name for host in there if host not in home]
    left_out = [f"not in partition {partition}, so left out: {compact(others)}"] if others else []
    groups: dict[_Size, list[SlurmHost]] = {}
    for host in home:
        groups.setdefault((host.gpu_type, host.gpus, host.cpus, host.memory_mb), []).append(host)
    chosen = dict(given.partition("=")[::2] for given in arguments.platform)
    platforms = {size: _platform(size, chosen) for size in groups}
    network = _given_network(arguments.network) if arguments.network else _network(home)
    kind, nodes = _rented(arguments, next(iter(platforms.values())))
    zones = _zones(arguments.region, kind)
    os, release = _slurm(site.release, arguments.os)
    older = f" # the head has {site.release}, which takes older slurmd" if release != site.release else ""
    pool = f"name: {_pool_name(kind)}, instance_type: {kind}, max_nodes: {nodes}, zones: {_listed(zones)}"
    lines = [
        f"# By `ironburst init --from-slurm`, {datetime.now(UTC):%Y-%m-%d}: Slurm and its nodes stay as they are",
        "config:",
        f"  aws:region: {arguments.region}",
        "  ironburst:cluster:",
        f"    name: {arguments.name}",
        f'    software: {{slurm: "{release}", os: {os}, driver: "{arguments.driver}"}}{older}',
        "    halls:",
        "      - name: hall-a",
        f"        cidr: {network}",
        "        nodes:",
        *(line for size, hosts in groups.items() for line in _nodes(size, hosts, platforms[size])),
        "    cloud:",
        f"      region: {arguments.region}",
        f"      network: {{cidr: {_vpc(network)}, zones: {_listed(zones)}}}",
        f"      pools: [{{{pool}}}]",
        *_accounts(site),
        f"    budget: {{usd_per_month: {arguments.budget:g}}}",
        "    scheduler:",
        "      managed: false",
        f'      head: "{arguments.head}"',
        f'      home_partition: "{partition}"',
        "      # the site's own munge key, which rented nodes join with. On a host that has it: aws secretsmanager",
        f"      # create-secret --name ironburst/{arguments.name}/munge-key --secret-binary fileb:///etc/munge/munge.key",
        f"      munge_key: aws-secretsmanager:ironburst/{arguments.name}/munge-key",
        f"    burst: {{wait_target: {arguments.wait}}}",
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


def _vpc(network: str) -> str:
    """A network for the cloud that isn't the hall's."""
    free = (ipaddress.IPv4Network(f"10.{n}.0.0/16") for n in range(90, 250))
    return str(next(each for each in free if not each.overlaps(ipaddress.IPv4Network(network, strict=False))))


def _rented(arguments: argparse.Namespace, platform: str) -> tuple[str, int]:
    if arguments.rent:
        kind, _, nodes = arguments.rent.partition("=")
        if not nodes.isdecimal():
            raise BadInput(f"--rent {arguments.rent}: write TYPE=NODES, as in p5.48xlarge=2")
        return kind, int(nodes)
    try:
        home = catalog.platform(platform)
    except catalog.Unknown as error:
        raise BadInput(f"--platform: {error}") from None
    like = [
        kind
        for kind in catalog.instance_types().values()
        if kind.gpu and kind.gpu.model == home.gpu.model and kind.gpu_count == home.gpu_count and kind.od_usd_per_hour
    ]
    if not like:
        raise BadInput(
            f"--rent TYPE=NODES is needed: EC2 sells nothing on demand with {home.gpu_count} x {home.gpu.model}"
        )
    return min(like, key=lambda kind: kind.od_usd_per_hour or 0.0).name, 2


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
