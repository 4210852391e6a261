"""Are the cables where they are declared? What ibnetdiscover and LLDP saw, against the cable plan. Pure.

A port that isn't seen proves little (its host may be off); a port seen at another place is a cable in the wrong hole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ironburst.hall.cabling import hca
from ironburst.hall.model import End, Hall

Link = tuple[End, End]
"""A cable's two ends, the smaller one first. As seen, a node's port has the HCA's or the interface's own name."""


class Unreadable(ValueError):
    """What was given is not what these tools print; the text says where."""


@dataclass(frozen=True)
class Difference:
    """One cable that isn't as declared. `ends` are the declared ones (seen ones of an undeclared cable)."""

    kind: Literal["swapped", "elsewhere", "not seen", "not declared"]
    ends: tuple[End, ...]
    sentence: str


# ---- what the tools print

_DEVICE = re.compile(r'(Switch|Ca|Rt)\s+\d+\s+"[^"]+"\s+#\s+"([^"]*)"')
_LINK = re.compile(r'\[(\d+)\](?:\([0-9a-fA-F]+\))?\s+"[^"]+"\[(\d+)\](?:\([0-9a-fA-F]+\))?.*?#.*?"([^"]*)"')
_HCA = re.compile(r"mlx\d+_\d+$|HCA-|hfi\d+_|ibp")
# Quantum switches have a port for their own aggregation unit (SHARP); no cable goes there
_INSIDE = "Aggregation Node"


def ibnetdiscover(text: str) -> frozenset[Link]:
    """The links of a fabric, as `ibnetdiscover` prints them (rdma-core; seen with Debian's 44.0). A node's HCA is
    named by its description, "dgx01 mlx5_0", which the driver's service sets; a switch by its host name
    ("MF0;leaf1:MQM9700/U1" is leaf1).

    Raises Unreadable.
    """
    links: set[Link] = set()
    device: tuple[str, str] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if named := _DEVICE.match(line):
            device = (named[1], named[2])
        elif line.startswith("["):
            linked = _LINK.match(line)
            if not linked or not device:
                raise Unreadable(f"line {number} is no link of ibnetdiscover: {line[:60]!r}")
            if _INSIDE in device[1] or _INSIDE in linked[3] or device[0] == "Ca":
                continue  # each link of a switch is printed there; back-to-back HCAs aren't a fabric
            links.add(_sorted(_end(device[1], linked[1]), _end(linked[3], linked[2])))
    if device is None:
        raise Unreadable('no device in it: give the output of ibnetdiscover, with lines such as: Switch 64 "S-…" # "…"')
    return frozenset(links)


def _end(description: str, port: str) -> End:
    if description.startswith("MF0;"):
        return End(_short(description[4:].split(":")[0]), port)
    host, _, hca = description.partition(" ")
    return End(_short(host), hca) if hca else End(_short(description), port)


def _short(name: str) -> str:
    """Without its domain, as names are declared; addresses stay."""
    return name if re.fullmatch(r"[0-9.]+", name) else name.split(".")[0]


def lldp(host: str, text: str) -> frozenset[Link]:
    """The neighbours of `host`, as `lldpctl -f json` prints them there (lldpd; seen with Debian's 1.0.16): one
    interface is an object, several are a list of objects. Raises Unreadable.
    """
    try:
        found = json.loads(text)["lldp"].get("interface", [])
        interfaces = [found] if isinstance(found, Mapping) else found
        named = [(name, said) for each in interfaces for name, said in each.items()]
        return frozenset(_sorted(End(host, name), _neighbour(said)) for name, said in named if "chassis" in said)
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration):
        raise Unreadable(f"what {host} sees is not the JSON of: lldpctl -f json") from None


def _neighbour(said: Mapping[str, Any]) -> End:
    """Its name is a key, or it sends none and is known by its id; a port whose id is a MAC is known by its
    description.
    """
    chassis, port = said["chassis"], said["port"]
    name = chassis["id"]["value"] if "id" in chassis and "value" in chassis["id"] else next(iter(chassis))
    own = port["id"]
    return End(_short(name), port["descr"] if own["type"] == "mac" and "descr" in port else own["value"])


def _sorted(one: End, other: End) -> Link:
    return (one, other) if _order(one) <= _order(other) else (other, one)


def _order(end: End) -> tuple[str, str]:
    return end.device, end.port


def _orders(link: Link) -> tuple[tuple[str, str], tuple[str, str]]:
    return _order(link[0]), _order(link[1])


# ---- the names that are declared


def declared(hall: Hall) -> frozenset[Link]:
    """The cables of the plan."""
    return frozenset(_sorted(cable.a, cable.b) for cable in hall.cables)


def as_declared(links: Iterable[Link], hall: Hall, hcas: Sequence[str] = ()) -> frozenset[Link]:
    """Seen links with declared ports: HCA n of a node is ib<n>, in the order of `hcas`, or mlx5_0, mlx5_1, ... without
    it; "Ethernet1/7" of a switch is 7, where no declared cable names it otherwise. Raises Unreadable for an HCA that
    is none of them.
    """
    named = {end for cable in hall.cables for end in (cable.a, cable.b)}

    def port(end: End) -> End:
        device = hall.device.get(end.device)
        if device is None or end in named:
            return end
        if device.is_switch:
            number = re.search(r"(\d+)$", end.port)
            return End(end.device, number[1]) if number else end
        if not any(hca(each.port) for each in named if each.device == end.device) or not _HCA.match(end.port):
            return end
        known = list(hcas) or [f"mlx5_{n}" for n in range(device.hcas or 0)]
        if end.port not in known:
            raise Unreadable(
                f"{end.device} has {end.port} in the fabric, and its {device.hcas or 0} HCAs are taken to be "
                f"{', '.join(known) or 'none'}: give their names in the order of ib1, ib2, ... with --hcas"
            )
        return End(end.device, f"ib{known.index(end.port) + 1}")

    return frozenset(_sorted(port(one), port(other)) for one, other in links)


# ---- compared


def compare(
    declared: Iterable[Link], seen: Collection[Link], seen_from: Collection[str] | None = None
) -> list[Difference]:
    """Every declared cable that is seen elsewhere or not at all, then every seen one that nobody declared.

    `seen_from`: the devices that told `seen` (LLDP: each host its own ports); None: all of the fabric. Only cables of
    those are compared.
    """
    plan = {_sorted(*link) for link in declared}
    if seen_from is not None:
        plan = {link for link in plan if any(end.device in seen_from for end in link)}
    peer = {end: other for link in seen for end, other in (link, link[::-1])}
    planned = {end: other for link in plan for end, other in (link, link[::-1])}
    differences = list(_crossed(sorted(plan - set(seen), key=_orders), planned, peer))
    told = {end for difference in differences for end in difference.ends}
    devices = {end.device for end in planned}
    for one, other in sorted(seen, key=_orders):
        if {one, other} & planned.keys() or {one, other} & told or not {one.device, other.device} & devices:
            continue
        said = f"{one} to {other} is seen and not declared: declare the cable, or take it out"
        differences.append(Difference("not declared", (one, other), said))
    return differences


def _crossed(missing: list[Link], planned: Mapping[End, End], peer: Mapping[End, End]) -> Iterator[Difference]:
    """Each missing cable once; two that have changed places are one difference."""
    done: set[End] = set()
    for one, other in missing:
        if one in done or other in done:
            continue
        there, here = peer.get(one), peer.get(other)
        if there is None and here is None:
            said = f"{one} to {other} is not seen: not plugged in, a dead link, or one of them is off"
            yield Difference("not seen", (one, other), said)
            continue
        twin = planned.get(there) if there else None
        if twin and there and peer.get(twin) == other:
            done |= {one, other, twin, there}
            said = (
                f"{one} and {twin} are swapped: {one} is at {there}, {twin} at {other}. Swap the two plugs at "
                f"{other.device if other.device == there.device else f'{other.device} and {there.device}'}, "
                "or declare it so"
            )
            yield Difference("swapped", (one, other, twin, there), said)
            continue
        at = " and ".join(
            f"{end} is at {place}" if place else f"{end} sees nobody" for end, place in ((one, there), (other, here))
        )
        yield Difference("elsewhere", (one, other), f"{one} to {other} is elsewhere: {at}")
