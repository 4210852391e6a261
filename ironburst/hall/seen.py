"""The declared cabling against what the network itself says: ibnetdiscover's output, and lldpctl's JSON."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ironburst.hall.cabling import hca
from ironburst.hall.model import SPEEDS, End, Finding, Hall

Links = Mapping[End, End]
"""every end that was seen, with what is at the other end of its cable; both directions"""

_DEVICE = re.compile(r'^(Switch|Ca|Rt)\s+\d+\s+"([^"]+)"\s+# "([^"]*)"')
_PORT = re.compile(r'^\[(\d+)\](?:\([^)]*\))?\s+"([^"]+)"\[(\d+)\]')


class NotUnderstood(ValueError):
    """The output isn't what the tool prints; the text is one sentence."""


def ibnetdiscover(text: str, hall: Hall, hcas: Sequence[str] = ()) -> Links:
    """Of the output of `ibnetdiscover`. A switch is known by its description (leaf1, MF0;leaf1:MQM9700/U1), an HCA by
    its host's name before the first blank (`dgx01 mlx5_0`). HCA n is the nth of `hcas`; without them, the nth of its
    host in the order of their numbers, if all of them are seen, for one that isn't plugged in isn't there at all.
    Raises NotUnderstood.
    """
    called: dict[str, str] = {}
    ports: list[tuple[str, str, str, str]] = []
    for line in text.splitlines():
        if found := _DEVICE.match(line):
            device = found[2]
            called[device] = found[3]
        elif called and (found := _PORT.match(line)):
            ports.append((device, found[1], found[2], found[3]))
    if not called:
        raise NotUnderstood("no switch and no HCA in it: give what `ibnetdiscover` prints as root on the fabric")
    hosts: dict[str, list[str]] = defaultdict(list)
    for device, description in called.items():
        if device.startswith("H-"):
            hosts[_host(description)].append(device)
    numbers = {device: n for host, its in hosts.items() for device, n in _hcas(host, its, called, hall, hcas)}

    def end(device: str, port: str) -> End:
        description = called.get(device, device)
        if not device.startswith("H-"):
            return End(_switch(description, hall), port)
        return End(_host(description), f"ib{numbers[device]}")

    return {end(device, port): end(other, at) for device, port, other, at in ports}


def _host(description: str) -> str:
    return description.split(" ")[0].split(".")[0]


def _hcas(
    host: str, devices: Sequence[str], called: Mapping[str, str], hall: Hall, hcas: Sequence[str]
) -> Iterator[tuple[str, int]]:
    """(HCA, its number from 1) of one host."""
    declared = hall.device[host].hcas if host in hall.device else None
    names = {device: called[device].partition(" ")[2] for device in devices}
    order = sorted(devices, key=lambda device: _numbers(called[device]))
    for n, device in enumerate(order, 1):
        number = re.search(r"_(\d+)$", names[device])
        if hcas and names[device] in hcas:
            yield device, list(hcas).index(names[device]) + 1
        elif not hcas and (declared is None or len(order) == declared):
            yield device, n
        elif not hcas and number and declared is not None and int(number[1]) < declared:
            yield device, int(number[1]) + 1
        elif declared is not None:
            raise NotUnderstood(
                f"{host} has {names[device] or device} in the fabric, and {declared} HCAs are declared of it: give "
                "their names in the order of ib1, ib2, ... with --hcas"
            )


def _numbers(description: str) -> tuple[list[int], str]:
    """mlx5_3 stands before mlx5_10."""
    return [int(number) for number in re.findall(r"\d+", description.partition(" ")[2])], description


def _switch(description: str, hall: Hall) -> str:
    words = re.split(r"[;:/ ]", description)
    return next((word for word in (description, *words) if word in hall.device), description)


def lldp(host: str, text: str) -> Links:
    """Of `lldpctl -f json` on `host`: the neighbour of each interface, its port by its last number (swp9, Ethernet1/9).
    Raises NotUnderstood.
    """
    try:
        interfaces = json.loads(text)["lldp"].get("interface", [])
    except (ValueError, KeyError, TypeError, AttributeError):
        raise NotUnderstood("it isn't the output of `lldpctl -f json`") from None
    found: dict[End, End] = {}
    for name, about in _named(interfaces):
        for name_or_id, said in _named(about.get("chassis", {})):
            chassis = _value(said) if name_or_id == "id" else name_or_id  # it sends no name
            port = _port(about.get("port", {}))
            number = re.findall(r"\d+", port)
            here, there = End(host, name), End(chassis.split(".")[0], number[-1] if number else port)
            found |= {here: there, there: here}
    return found


def _port(port: Mapping[str, Any]) -> str:
    """Its id, or its description where the id is a MAC address."""
    own, said = port.get("id"), _value(port.get("descr"))
    is_mac = isinstance(own, dict) and own.get("type") == "mac"
    return (said or _value(own)) if is_mac else (_value(own) or said)


def _named(value: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """lldpctl writes {name: ...} for one and [{name: ...}, ...] for several."""
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, dict):
            yield from ((str(name), about) for name, about in each.items() if isinstance(about, dict))


def _value(value: Any) -> str:
    if isinstance(value, list):
        return _value(value[0]) if value else ""
    return str(value.get("value", "")) if isinstance(value, dict) else str(value or "")


def compared(hall: Hall, links: Links, network: str, asked: Iterable[str] | None = None) -> list[Finding]:
    """HAL-013: each declared cable of this network (infiniband, ethernet) is where it was declared. Two that stand in
    each other's place are one finding. `asked`: devices all of whose links were seen; None: every one in `links`.
    """
    names = {end.device for end in links} if asked is None else set(asked)
    found: list[Finding] = []
    declared = [cable for cable in hall.cables if SPEEDS[cable.speed].network == network]
    swapped: set[End] = set()
    partner = {cable.a: cable.b for cable in declared} | {cable.b: cable.a for cable in declared}
    for cable in declared:
        here, there = (cable.a, cable.b) if cable.a.device in names else (cable.b, cable.a)
        seen = links.get(here)
        if seen == there or here in swapped or here.device not in names:
            continue
        other = partner.get(seen) if seen else None
        if seen is None:
            wrong, ways = f"is declared at {there} and has no link", ["look at its cable and both ports"]
        elif other is not None and links.get(other) == there:
            swapped.add(other)
            wrong = f"and {other} are swapped: it is at {seen}, and {other} at {there}"
            ways = [f"swap them at {seen.device}"]
        else:
            wrong, ways = f"is declared at {there} and is at {seen}", [f"move it to {there}", "declare it so"]
        found.append(Finding("HAL-013", cable.where, str(here), wrong, {}, tuple(ways)))
    known = {end for cable in declared for end in (cable.a, cable.b)}
    return found + list(_undeclared(hall, links, known))


def _undeclared(hall: Hall, links: Links, known: Iterable[End]) -> Iterator[Finding]:
    told: set[End] = set()
    for here, there in links.items():
        ours = here.device in hall.device and (hca(here.port) or hall.device[here.device].is_switch)
        if ours and here not in known and there not in known and there not in told:
            told.add(here)
            text = f"has a link to {there}, and no cable is declared there"
            yield Finding("HAL-013", ("cables",), str(here), text, {}, ("declare it",), "warning")
