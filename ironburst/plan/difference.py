"""What differs between two environments, in config, lock and images; what always does (names, addresses) is counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ironburst.config.models import ClusterConfig
from ironburst.software.lock import Locked
from ironburst.system import secrets

ORDER = ("image", "lock", "software", "budget", "cloud", "scheduler", "burst", "nodes")
"""sections, those that change most for a job first; others come behind, in their own order"""
OWN = {"name", "names", "addresses", "macs", "serials", "node_objects", "cidr", "bmc_cidr", "peer_address", "peer_asn"}
OWN |= {"gateway_id", "key_name", "existing", "units", "rack", "racks", "sha256", "ca", "notify", "allow", "issuer"}
OWN |= {
    "hall",
    "halls",
    "zones",
    "zone",
    "image",
    "capacity_reservation",
    "capacity_reservation_group",
    "subnet_managers",
    *("project", "billing_account", "reservation", "calendar_reservation", "interconnects"),
    *("subscription", "tenant", "key_vault", "ssh_public_key", "principal", "circuit"),
}
"""keys whose values are an environment's own"""


@dataclass(frozen=True)
class Difference:
    """`left`, `right`: what each has; None: it has no such thing. `own`: it is each environment's own, as it should."""

    section: str
    where: str
    left: Any
    right: Any
    own: bool = False


def difference(left: ClusterConfig, right: ClusterConfig) -> list[Difference]:
    """Of two declarations."""
    several = len({cloud.provider for config in (left, right) for cloud in config.clouds}) > 1
    return _sorted([_of(*each) for each in _apart(_shaped(left, several), _shaped(right, several))])


def of_locks(left: Mapping[str, Locked] | None, right: Mapping[str, Locked] | None) -> list[Difference]:
    """Of two locks: groups of the same role and GPU are compared with each other; None: there is no lock."""
    if left is None or right is None:
        there = ["none" if each is None else "there" for each in (left, right)]
        return [] if left is right else [Difference("lock", "lock file", there[0], there[1])]
    a, b = _by_kind(left), _by_kind(right)
    both = [kind for kind in a if kind in b]  # a kind that one lacks is a difference of the config
    return [
        Difference("lock", f"{kind}: {key}", a[kind][key], b[kind].get(key))
        for kind in both
        for key in a[kind]
        if a[kind][key] != b[kind].get(key)
    ]


def of_images(left: Mapping[str, str], right: Mapping[str, str]) -> list[Difference]:
    """Pool -> image id, of both. Ids are each account's own, so that both have one is no difference."""
    pools = sorted(left.keys() | right.keys())
    ids = [(pool, left.get(pool, "none"), right.get(pool, "none")) for pool in pools]
    return [Difference("image", f"pool {pool}", a, b, own="none" not in (a, b)) for pool, a, b in ids]


def _sorted(found: list[Difference]) -> list[Difference]:
    rank = {section: n for n, section in enumerate(ORDER)}
    return sorted(found, key=lambda each: rank.get(each.section, len(ORDER)))


def _shaped(config: ClusterConfig, several: bool) -> dict[str, Any]:
    """Plain data, with the owned nodes by role and platform: which there are matters, not where they stand, and with
    `several` the clouds by provider, whichever is first.
    """
    said = config.model_dump(mode="json", exclude={"other_clouds", "other_schedulers"})
    clouds = {each.provider: each.model_dump(mode="json") | {"secrets": len(each.secrets)} for each in config.clouds}
    said["cloud"] = clouds if several else next(iter(clouds.values()), None)
    said["other_schedulers"] = {each.kind: each.model_dump(mode="json") for each in config.other_schedulers}
    nodes: dict[str, Any] = {}
    for group in (group for hall in said.pop("halls") for group in hall["nodes"]):
        kind = f"{group['platform'] or group['role']}"
        there = nodes.setdefault(kind, group | {"count": 0})
        there["count"] += len(group["names"])
    return said | {"nodes": nodes}


def _apart(left: Any, right: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """(`cloud.pools.p5.max_nodes`, 1, 8). Items of lists go by their name; what one side lacks is one difference."""
    if left == right:
        return
    left, right = _named(left), _named(right)
    if isinstance(left, dict) and isinstance(right, dict):
        for key in dict.fromkeys([*left, *right]):
            yield from _apart(left.get(key), right.get(key), f"{path}.{key}".lstrip("."))
    else:
        yield path, left, right


def _named(value: Any) -> Any:
    """A list of things with names as a mapping; an empty list is an empty mapping to those."""
    if isinstance(value, list) and all(isinstance(each, dict) and "name" in each for each in value):
        return {each["name"]: each for each in value}
    return value


def _of(path: str, left: Any, right: Any) -> Difference:
    section, _, where = path.partition(".")
    if _refers(left) or _refers(right):  # a reference isn't the secret, and still no business of whoever reads this
        return Difference(section, where, _reference(left), _reference(right), own=True)
    own = bool(OWN & set(path.split(".")))
    return Difference(section, where or section, _short(left), _short(right), own)


def _refers(given: Any) -> bool:
    scheme, colon, _ = str(given).partition(":")
    return bool(colon) and scheme in secrets.SCHEMES


def _reference(given: Any) -> str:
    return "none" if given is None else "a reference"


def _short(given: Any) -> Any:
    return ("there" if given else None) if isinstance(given, dict) else given


def _by_kind(lock: Mapping[str, Locked]) -> dict[str, dict[str, Any]]:
    kinds: dict[str, dict[str, Any]] = {}
    for name, group in lock.items():
        place = "rented" if name.startswith("pool/") else "fixed" if name.startswith("group/") else "owned"
        gpu = group.about.get("gpu")
        kinds.setdefault(f"{place} {gpu or 'head'}", dict(_facts(group)))
    return kinds


def _facts(group: Locked) -> Iterator[tuple[str, Any]]:
    yield "os", group.about.get("os")
    yield from ((key, value) for key, value in vars(group.software).items() if key != "packages")
