"""`ironburst init --from STACK_FILE --name NEW`: a new environment from another one."""

from __future__ import annotations

import ipaddress
import re
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from ironburst.config import yaml_file
from ironburst.config.finding import KEY, ConfigError, path_of
from ironburst.config.models import ClusterConfig
from ironburst.config.stack import load_valid
from ironburst.config.valid import valid
from ironburst.initial.rooms import ROOMS
from ironburst.system import secrets
from ironburst.system.bad_input import BadInput

MARK = "# CHANGE: "
STILL = {
    "cidr": "the hall's own network",
    "bmc_cidr": "the hall's own network",
    "addresses": "the other environment's",
    "macs": "the other environment's machines",
    "serials": "the other environment's machines",
    "sha256": "the other environment's BMCs",
    "peer_address": "of this hall's VPN device",
    "gateway_id": "of this hall's link",
    "existing": "of this account",
    "image": "of this account and region",
    "key_name": "of this account",
    "capacity_reservation": "bought for the other environment",
    "capacity_reservation_group": "bought for the other environment",
    "capacity_block": "bought for the other environment",
    "usd_per_month": "as much as for the other one?",
    "notify": "the same people?",
    "preview": "subjects of this environment's tokens",
    "ca": "of this environment's controller",
    **{key: why for room in ROOMS.values() for key, why in room.OF_ACCOUNT.items()},
}
"""last key of what nobody but a person can know: why"""
ENCRYPTED = ("encryptionsalt", "encryptedkey", "secretsprovider")
_KEYS = ("cidr", "fabric_cidr")
_NETWORK = rf"cloud(s\[\d+\])?\.network\.({'|'.join(_KEYS)})$"
_REFERENCE = re.compile(f"(?:{'|'.join(secrets.SCHEMES)}):" + r"[^\"'\s,}\]]+")


def make(source: Path, name: str, output: Path | None, force: bool = False) -> tuple[list[str], list[str]]:
    """Write the stack file and its inventory; what is marked in it, and what is left to do. Raises BadInput."""
    config = valid(source)
    if name == config.name:
        raise BadInput(f"--name {name} is the other environment's: give a new one")
    path = output or source.with_name(f"Pulumi.{name}.yaml")
    if path.exists() and not force:
        raise BadInput(f"{path} is there already: give another --output, or --force to replace it")
    path.write_text(_text(source, config, name))
    try:
        load_valid(path, now=datetime.now(UTC))
    except ConfigError as error:
        path.unlink()
        raise BadInput(f"no stack file was written: {error.findings[0]}") from None
    made = _inventory(source, config.name, name)
    marked = [f"  line {n}: {line.strip()}" for n, line in enumerate(path.read_text().splitlines(), 1) if MARK in line]
    said = [f"{path}: valid; still the other environment's, marked with {MARK.strip()}", *marked]
    return said, [
        f"then: ironburst lock {path}; pulumi stack init {name} (its secrets provider with --secrets-provider)",
        f"for CI: put {name} beside {config.name} in .github/workflows/*.yml and .gitlab-ci.yml",
        *([f"inventory: {made}"] if made else [f"no inventory/{config.name}, so none was made: converge needs one"]),
    ]


def _text(source: Path, config: ClusterConfig, name: str) -> str:
    """The other's file, comments too, with its own name, secrets and cloud network; what only a person knows marked."""
    text = source.read_text()
    if re.search(r"^\s*secure:|\{\s*secure:", text, re.MULTILINE):
        raise BadInput(f"{source} has encrypted values, which are its own: init --from a copy without them")
    lines = text.splitlines()
    where = yaml_file.lines(source)
    marks: dict[int, list[str]] = {}
    for line_of, why in _marks(where):
        marks.setdefault(line_of, []).append(why)
    named = where[f"config.{KEY}.name"]
    networks = _free(config, where)
    out = []
    for n, line in enumerate(lines, 1):
        if line.startswith(ENCRYPTED):
            continue
        if n == where.get(f"config.{KEY}.allow"):
            raise BadInput(f"{source}:{n} has allowances, which are for its own plans: init --from a copy without them")
        if n == named:
            line = re.sub(rf"(name:\s*)(['\"]?){re.escape(config.name)}\2(?=\s|,|}}|$)", rf"\g<1>{name}", line, count=1)
        for old, new in networks.get(n, ()):
            line = line.replace(old, new, 1)
        before = line
        line = _REFERENCE.sub(lambda found: re.sub(rf"\b{re.escape(config.name)}\b", name, found[0]), line)
        kept = ["the other environment's secret"] if line == before and _REFERENCE.search(line) else []
        why = "; ".join([*marks.get(n, []), *kept])
        out.append(f"{line} {MARK}{why}" if why else line)
    if out and out[0].startswith("# yaml-language-server"):
        out.insert(1, f"# By `ironburst init --from {source.name}`, {datetime.now(UTC):%Y-%m-%d}")
    return "\n".join(out) + "\n"


def _marks(where: dict[str, int]) -> Iterator[tuple[int, str]]:
    """Line -> why it has to be looked at. The clouds' networks are chosen again."""
    for path, line in where.items():
        key = path.rsplit(".", 1)[-1]
        if key in STILL and not re.search(_NETWORK, path) and path.startswith("config."):
            yield line, f"{key}: {STILL[key]}"


def _free(config: ClusterConfig, where: dict[str, int]) -> dict[int, list[tuple[str, str]]]:
    """Line -> (old, new) of each cloud's own networks: new ones are as large, behind the old one and beside all
    others.
    """
    clouds = {path_of("cloud"): config.cloud} if config.cloud else {}
    clouds |= {path_of("other_clouds", n): cloud for n, cloud in enumerate(config.other_clouds)}
    olds = {f"{at}.network.{key}": getattr(cloud.network, key, None) for at, cloud in clouds.items() for key in _KEYS}
    own = {path: str(cidr) for path, cidr in olds.items() if cidr}
    taken = [ipaddress.IPv4Network(cidr) for hall in config.halls for cidr in (hall.cidr, hall.bmc_cidr) if cidr]
    taken += map(ipaddress.IPv4Network, own.values())
    found: dict[int, list[tuple[str, str]]] = {}
    for path, old in own.items():
        was = ipaddress.IPv4Network(old)
        room = ipaddress.IPv4Network("10.0.0.0/8").subnets(new_prefix=max(was.prefixlen, 9))
        behind = (net for net in room if net.network_address > was[-1])
        new = next((net for net in behind if not any(net.overlaps(other) for other in taken)), None)
        if new:
            taken.append(new)
            found.setdefault(where[path], []).append((old, str(new)))
    return found


def _inventory(source: Path, old: str, new: str) -> Path | None:
    """A copy of the other's inventory beside it, with its name in stack.yml; None: it has none."""
    there = source.resolve().parent.parent / "inventory" / old
    made = there.with_name(new)
    if not there.is_dir() or made.exists():
        return made if made.exists() else None
    shutil.copytree(there, made, symlinks=True)
    stack = made / "stack.yml"
    stack.write_text(re.sub(rf"\b{re.escape(old)}\b", new, stack.read_text()))
    return made
