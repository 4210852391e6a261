"""`ironburst init --from STACK_FILE --name NEW`: a new environment from another one."""

from __future__ import annotations

import ipaddress
import re
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from ironburst.config import yaml_file
from ironburst.config.finding import KEY, ConfigError
from ironburst.config.models import ClusterConfig
from ironburst.config.stack import load_valid
from ironburst.config.valid import valid
from ironburst.initial.aws import OF_ACCOUNT
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
    **OF_ACCOUNT,
}
"""last key of what nobody but a person can know: why"""
ENCRYPTED = ("encryptionsalt", "encryptedkey", "secretsprovider")
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
    network = _free(config)
    out = []
    for n, line in enumerate(lines, 1):
        if line.startswith(ENCRYPTED):
            continue
        if n == where.get(f"config.{KEY}.allow"):
            raise BadInput(f"{source}:{n} has allowances, which are for its own plans: init --from a copy without them")
        if n == named:
            line = re.sub(rf"(name:\s*)(['\"]?){re.escape(config.name)}\2(?=\s|,|}}|$)", rf"\g<1>{name}", line, count=1)
        if network and config.cloud and n == where.get(f"config.{KEY}.cloud.network.cidr"):
            line = line.replace(str(config.cloud.network.cidr), network, 1)
        before = line
        line = _REFERENCE.sub(lambda found: re.sub(rf"\b{re.escape(config.name)}\b", name, found[0]), line)
        kept = ["the other environment's secret"] if line == before and _REFERENCE.search(line) else []
        why = "; ".join([*marks.get(n, []), *kept])
        out.append(f"{line} {MARK}{why}" if why else line)
    if out and out[0].startswith("# yaml-language-server"):
        out.insert(1, f"# By `ironburst init --from {source.name}`, {datetime.now(UTC):%Y-%m-%d}")
    return "\n".join(out) + "\n"


def _marks(where: dict[str, int]) -> Iterator[tuple[int, str]]:
    """Line -> why it has to be looked at. The cloud's network is chosen again."""
    for path, line in where.items():
        key = path.rsplit(".", 1)[-1]
        if key in STILL and not path.endswith("cloud.network.cidr") and path.startswith("config."):
            yield line, f"{key}: {STILL[key]}"


def _free(config: ClusterConfig) -> str | None:
    """A network for the cloud, as large as the other's and beside it and the halls'; None: it has none of its own."""
    if not config.cloud or not config.cloud.network.cidr:
        return None
    taken = [ipaddress.IPv4Network(config.cloud.network.cidr)]
    taken += [ipaddress.IPv4Network(cidr) for hall in config.halls for cidr in (hall.cidr, hall.bmc_cidr) if cidr]
    ours = ipaddress.IPv4Network("10.0.0.0/8")
    free = (net for net in ours.subnets(new_prefix=max(taken[0].prefixlen, 9)) if net.network_address > taken[0][-1])
    found = next((net for net in free if not any(net.overlaps(other) for other in taken)), None)
    return str(found) if found else None


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
