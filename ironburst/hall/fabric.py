"""The InfiniBand fabric: rails, bandwidth upwards, subnet managers, and the tree that Slurm places jobs by."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ironburst.hall.cabling import hca
from ironburst.hall.model import FABRIC, SPEEDS, Cable, Device, Hall, Violation

LONGEST = 60
"""characters of a switch's name in Slurm, before a number behind it"""


@dataclass(frozen=True)
class TreeSwitch:
    """A switch of Slurm's tree, or several that reach the same nodes. It has nodes, or switches below it."""

    name: str
    nodes: tuple[str, ...] = ()
    switches: tuple[str, ...] = ()


@functools.lru_cache(maxsize=8)
def links(hall: Hall) -> tuple[tuple[Device, str, Device, Cable], ...]:
    """(lower device, its port, upper switch, cable) of the fabric: node to leaf, leaf to spine, spine to core."""
    level = {device.name: _level(device) for device in hall.devices}
    found = []
    for cable in hall.cables:
        for low, high in ((cable.a, cable.b), (cable.b, cable.a)):
            upper = level.get(high.device, 0)
            if 0 < upper <= len(FABRIC) and level.get(low.device, upper) < upper:
                found.append((hall.device[low.device], low.port, hall.device[high.device], cable))
    return tuple(found)


def _level(device: Device) -> int:
    """0: a node; a switch of another network is above all."""
    return FABRIC.index(device.kind) + 1 if device.kind in FABRIC else len(FABRIC) + 1 if device.is_switch else 0


def rails(hall: Hall) -> Iterator[Violation]:
    """HAL-010: HCA n of every node is cabled to a leaf of rail n, where leaves have rails."""
    leaves = [device for device in hall.devices if device.kind == "leaf"]
    if not any(leaf.rail for leaf in leaves):
        return
    for node, port, leaf, cable in links(hall):
        number = hca(port)
        if node.is_switch or leaf.kind != "leaf" or number is None or number == leaf.rail:
            continue
        of_rail = [each.name for each in leaves if each.rail == number]
        text = f"is cabled to {leaf.name} of rail {leaf.rail or 'none'}, and HCA {number} belongs to rail {number}"
        numbers = {"hca": number, "rail": leaf.rail or 0}
        ways = (f"cable it to {' or '.join(of_rail[:3])}" if of_rail else f"give a leaf rail {number}",)
        yield Violation("HAL-010", cable.where, f"{node.name}/{port}", text, numbers, ways)


def oversubscription(hall: Hall) -> Iterator[Violation]:
    """HAL-011: each leaf has as much bandwidth upwards as the declared ratio asks for; a single tier has none."""
    down: dict[str, float] = defaultdict(float)
    up: dict[str, float] = defaultdict(float)
    for below, _, above, cable in links(hall):
        gb_s = SPEEDS[cable.speed].gb_s
        if below.kind == "gpu":
            down[above.name] += gb_s
        up[below.name] += gb_s
    for leaf in hall.devices:
        if leaf.kind != "leaf" or not down[leaf.name] or not any(each.kind == "spine" for each in hall.devices):
            continue
        to_nodes, to_spines = down[leaf.name], up[leaf.name]
        if to_nodes > to_spines * hall.oversubscription + 1e-6:
            ratio = f"{to_nodes / to_spines:.2g} to 1" if to_spines else "nothing upwards"
            text = (
                f"has {to_nodes:g} Gb/s to its nodes and {to_spines:g} Gb/s to spines, {ratio}, "
                f"and may have {hall.oversubscription:g} to 1"
            )
            numbers = {"down_gb_s": to_nodes, "up_gb_s": to_spines, "limit": hall.oversubscription}
            ways = ("add uplinks", "raise oversubscription, if that is meant")
            yield Violation("HAL-011", leaf.where, leaf.name, text, numbers, ways)


def subnet_manager(hall: Hall) -> Iterator[Violation]:
    """NET-005: exactly one of opensm's hosts, a switch and UFM is master, where InfiniBand's switches are declared."""
    if any(device.kind in FABRIC for device in hall.devices) and len(hall.subnet_managers) != 1:
        there = hall.subnet_managers
        text = f"has {len(there)} master subnet managers" + (f": {', '.join(there)}" if there else "")
        none = ("name opensm's hosts in subnet_managers", "set subnet_manager of one switch", "set ufm: true")
        ways = ("keep one of them",) if there else none
        where: tuple[str | int, ...] = ("subnet_managers",)
        yield Violation("NET-005", where, f"hall {hall.name}", text, {"masters": len(there)}, ways)


def tree(hall: Hall) -> tuple[TreeSwitch, ...]:
    """Slurm's tree, where a node is below one switch: leaves that the same nodes are cabled to (a rail each) are one
    switch of it, and so are spines above the same leaves. Only GPU nodes; those without a cable to a leaf are in none.
    """
    order = {device.name: n for n, device in enumerate(hall.devices)}
    above: dict[str, set[str]] = defaultdict(set)
    for below, _, switch, _ in links(hall):
        above[below.name].add(switch.name)
    below_of: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for device in hall.devices:
        if device.kind == "gpu" and above[device.name]:
            below_of[tuple(sorted(above[device.name], key=order.__getitem__))].append(device.name)
    taken: set[str] = set()
    called = {names: _called(names, taken) for names in below_of}
    groups = {name: names for names, name in called.items()}
    found = [TreeSwitch(called[names], nodes=tuple(nodes)) for names, nodes in below_of.items()]
    while groups:
        parents = _joined({name: {up for each in its for up in above[each]} for name, its in groups.items()})
        upper: dict[str, tuple[str, ...]] = {}
        for its, ups in parents:
            if ups:
                named = tuple(sorted(ups, key=order.__getitem__))
                name = _called(named, taken)
                upper[name] = named
                found.append(TreeSwitch(name, switches=tuple(its)))
        groups = upper
    return tuple(found)


def _called(switches: tuple[str, ...], taken: set[str]) -> str:
    """A name of its own: two that begin and end with the same leaf differ where a node lacks a cable between."""
    plain = switches[0] if len(switches) == 1 else f"{switches[0]}-{switches[-1]}"
    return name_once(plain, taken)


def name_once(plain: str, taken: set[str]) -> str:
    """`plain`, or with a number behind it where `taken`, which gets it, has it already: slurmctld starts with no name
    twice, and with none of more than 64 characters.
    """
    plain = plain[:LONGEST]
    name, number = plain, 1
    while name in taken:
        number += 1
        name = f"{plain}-{number}"
    taken.add(name)
    return name


def _joined(ups: Mapping[str, set[str]]) -> list[tuple[list[str], set[str]]]:
    """Those that share something above them, together: (names, all that is above)."""
    parts: list[tuple[list[str], set[str]]] = []
    for name, its in ups.items():
        names, all_of_them = [name], set(its)
        apart = []
        for part in parts:
            if part[1] & all_of_them:
                names, all_of_them = [*part[0], *names], all_of_them | part[1]
            else:
                apart.append(part)
        parts = [*apart, (names, all_of_them)]
    return parts
