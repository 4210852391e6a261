"""The text of a stack file, of what was answered, with comments where the reader will write next. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from ironburst import catalog
from ironburst.config.types import duration_text
from ironburst.initial import rooms
from ironburst.initial.answers import Given, hall
from ironburst.initial.aws import HOSTED
from ironburst.nodes.ranges import compact

PROFILE = "training-2026"
"""whose versions are taken where nothing else says one"""
OLDEST = "23.11"
"""Slurm that a new site begins with"""


@dataclass(frozen=True)
class NewSite:
    """What was answered, the driver's branch, and the day."""

    given: Given
    driver: str
    day: date


def network(given: Given) -> str:
    """The smallest one, from a /24 on, with all the addresses that were given."""
    addresses = [ipaddress.IPv4Address(each) for each in given.get("addresses", [])]
    head = given.get("head")
    if head and given["managed"] == "yes":
        addresses.append(ipaddress.IPv4Address(head))
    found = ipaddress.IPv4Network(f"{addresses[0]}/24", strict=False)
    while not all(address in found for address in addresses):
        found = found.supernet()
    return str(found)


def next_step(given: Given, path: Path) -> str:
    """What a person does then."""
    lock = f"`ironburst lock {path}`"
    if given["scheduler"] == "slurm" and given["managed"] == "no":
        return f"{lock} and `ironburst slurm snippet {path}`"
    return f"{lock}, then docs/tutorial/first-hall.md"


def text(site: NewSite) -> str:
    """The whole file."""
    given = site.given
    room = rooms.of(given)
    region = room.settings(given) if given["region"] else []
    lines = [
        "# yaml-language-server: $schema=schema.json",
        f"# By `ironburst init`, {site.day}; every key is in docs/reference/config.md",
        "config:",
        *region,
        "  ironburst:cluster:",
        f"    name: {given['name']}",
        f"    software: {{{_software(site)}}}",
        *(_hall(given) if hall(given) else []),
        *(room.cloud(given) if given["region"] else []),
        *_scheduler(given),
    ]
    if given["region"]:
        lines.append(
            f"    burst: {{wait_target: {duration_text(given['wait'])}}} # the mean; the others follow from it"
        )
    return "\n".join(lines) + "\n"


def _software(site: NewSite) -> str:
    given = site.given
    keys = {"driver": f'"{site.driver}"', "os": given["os"]}
    if given["scheduler"] == "slurm":
        keys["slurm"] = f'"{given.get("slurm") or _release(given["os"])}"'
    else:
        keys |= {"kubernetes": f'"{catalog.profile(PROFILE)["kubernetes"]}"', "container_runtime": "containerd"}
    return ", ".join(f"{key}: {value}" for key, value in keys.items())


def _release(os: str) -> str:
    """The distribution's own Slurm where it is new enough; else one of SchedMD's, which is built."""
    own = catalog.software_extra()["slurm_packages"]["distribution"]["releases"].get(os, ())
    return next((str(each) for each in own if str(each) >= OLDEST), str(catalog.profile(PROFILE)["slurm"]))


def _hall(given: Given) -> Iterator[str]:
    managed = given["managed"] == "yes"
    yield "    halls:"
    yield "      - name: hall-a"
    yield f"        cidr: {given['network']}"
    if managed:
        yield "        # bmc_cidr: 10.0.8.0/24        # with bmc of the nodes: Pulumi verifies them, and powers them on"
        yield "        # racks: [{name: r01, units: 42}]   # with rack and units of the nodes"
    yield "        nodes:"
    if managed:
        yield "          - names: head"
        yield "            role: head"
        yield f"            addresses: {given['head']}"
    if not given["nodes"]:
        return
    yield f"          - names: {_listed(given['names'])}"
    yield f"            platform: {given['platform']}"
    yield f"            addresses: {_listed(given['addresses'])}"
    if managed:
        links = catalog.platform(given["platform"]).fabric_links or 0
        yield f"            infiniband_links: {links} # compute HCAs a node; 0: no InfiniBand"
        yield '            # bmc: {addresses: "https://10.0.8.[11-14]", username: admin, password: "env:BMC_PASSWORD"}'
    else:
        yield "            managed: false # the policy knows them, nothing else touches them"
    if given["scheduler"] == "slurm":
        yield "            # slurm: {cpus: 112, memory_mb: 2000000}   # as `slurmd -C` says them on a node"


def _listed(names: Sequence[str]) -> str:
    parts = re.findall(r"(?:[^,\[]|\[[^\]]*\])+", compact(names))
    return parts[0] if len(parts) == 1 else "[" + ", ".join(f'"{part}"' for part in parts) + "]"


def _scheduler(given: Given) -> Iterator[str]:
    name, managed = given["name"], given["managed"] == "yes"
    room = rooms.of(given)
    there = room.secrets(given) if given["region"] else "file:/etc/ironburst/"
    between = "/" if there.endswith("/") else "-"  # some stores have no folders
    yield "    scheduler:"
    if given["scheduler"] == "slurm":
        if not managed:
            yield "      managed: false # Slurm stays as it is"
            yield f'      home_partition: "{given["partition"]}"'
        yield f"      head: {'head' if managed else given['head']}"
        if given["region"]:
            yield from room.munge_key_hint(given)
        yield f"      munge_key: {there}{name}{between}munge-key"
        return
    yield "      kind: kubernetes"
    if given["hosted"]:
        yield HOSTED
    elif managed:
        yield "      control_plane: {head: head} # cni: the pod network; none: you install one"
    else:
        yield f"      api_server: {given['api_server']}"
        yield f"      cluster_dns: {given['cluster_dns']}"
        yield "      ca: |"
        yield from (f"        {line}" for line in given["ca"].strip().splitlines())
    yield "      kubeconfig: file:/etc/ironburst/kubeconfig # how the controller gets in, on its host"
    if not given["hosted"]:
        yield f"      join_token: {room.secrets(given)}{name}{between}join-token # the secret is there before, empty"
