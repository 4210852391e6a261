"""The declared cabling against what the network itself says: ibnetdiscover's output, and lldpctl's JSON."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ironburst.hall import switch_ports
from ironburst.hall.cabling import hca
from ironburst.hall.model import SPEEDS, Cable, End, Hall, Violation

_DEVICE = re.compile(r'^(Switch|Ca|Rt)\s+\d+\s+"([^"]+)"\s+# "([^"]*)"')
_PORT = re.compile(
    r'^\[(\d+)\](?:\[ext \d+\])?(?:\([^)]*\))?\s+"([^"]+)"\[(\d+)\].*?(?:\b(\d+x(?:[SDQFEHNX]DR|FDR10))\b.*)?$'
)
_LANE_GB_S = {"SDR": 2.5, "DDR": 5, "QDR": 10, "FDR10": 10, "FDR": 14, "EDR": 25, "HDR": 50, "NDR": 100, "XDR": 200}
_AGGREGATION = re.compile(r"\bAggregation Node\b", re.IGNORECASE)
"""a switch's own, for SHARP: no cable is there"""
_UNNAMED = re.compile(r"\s*$|MT\d+\b|.*Mellanox Technologies|(localhost|\(none\)|none|ubuntu|debian|rocky|linux)(?!\w)")
"""descriptions that an HCA or its host has before somebody names it"""


class NotUnderstood(ValueError):
    """The output isn't what the tool prints; the text is one sentence."""


class Links(dict[End, End]):
    """Every end that was seen, with what is at the other end of its cable; both directions. `speed`: how each link runs
    (4xNDR, empty: not understood); None: the tool doesn't say. `unclear`: what is in doubt about an end.
    """

    def __init__(self, links: Mapping[End, End] | None = None) -> None:
        super().__init__(links or {})
        self.speed: dict[End, str] | None = None
        self.unclear: dict[End, Violation] = {}

    def add(self, here: End, there: End) -> None:
        """Both directions. A port that is reported at two others is in doubt."""
        for one, other in ((here, there), (there, here)):
            if (before := self.setdefault(one, other)) != other:
                text = f"is at {before} and at {other}, as the network says, and a port has one cable"
                ways = ("look what is between them", "ask again in two minutes: one may be out of date")
                self.unclear[one] = Violation("HAL-013", ("cables",), str(one), text, {}, ways)

    def doubt(self, here: End, text: str, way: str) -> None:
        """What is at the other end isn't known."""
        self.unclear[here] = Violation("HAL-013", ("cables",), str(here), text, {}, (way,), "warning")


def merged(several: Iterable[Links]) -> Links:
    """What several hosts see of one network."""
    found = Links()
    for links in several:
        for here, there in links.items():
            found.add(here, there)
        found.unclear |= links.unclear
    return found


def ibnetdiscover(text: str, hall: Hall, hcas: Sequence[str] = ()) -> Links:
    """Of the output of `ibnetdiscover`. A switch is known by its description (leaf1, MF0;leaf1:MQM9700/U1), an HCA by
    its host's name before the first blank (`dgx01 mlx5_0`). HCA n is the nth of `hcas`; without them, the nth of its
    host in the order of their numbers, if all of them are seen, for one that isn't plugged in isn't there at all.
    Raises NotUnderstood.
    """
    called, ports = _sections(text)
    same = Counter(called.values())
    hosts: dict[str, list[str]] = defaultdict(list)
    for device, description in called.items():
        if device.startswith("H-") and not _is_unnamed(description, hall):
            hosts[_host(description)].append(device)
    names = {device: name for host, its in hosts.items() for device, name in _hcas(host, its, called, hall, hcas)}

    def end(device: str, port: str) -> End:
        description = called[device]
        if device in names:
            return End(_host(description), names[device])
        if device.startswith("H-") or same[description] > 1:
            return End(f"{device} ({' '.join(description.split())})", port)
        return End(_switch(description, hall), port)

    found = Links()
    found.speed = {}
    for (device, port), (other, at, speed) in ports.items():
        here = end(device, port)
        found.add(here, end(other, at))
        found.speed[here] = speed
        found.speed.setdefault(found[here], speed)
        if other.startswith("H-") and other not in names:
            what = f"is at an HCA that names no host ({other}, {' '.join(called[other].split()) or 'no description'})"
            found.doubt(
                here, f"{what}, so whose it is can't be told", "set its node description (rdma-ndd on its host)"
            )
    if all(speed.endswith("SDR") for speed in found.speed.values()):
        found.speed = None  # ibsim knows nothing faster, and no fabric with HCAs of today is all SDR
    return found


Ports = dict[tuple[str, str], tuple[str, str, str]]


def _sections(text: str) -> tuple[dict[str, str], Ports]:
    """{device: its description} and {(device, port): (device, port, speed) at the other end}, without aggregation
    nodes. Raises NotUnderstood, also where not all of the fabric is described.
    """
    called: dict[str, str] = {}
    ports: Ports = {}
    device = None
    for n, line in enumerate(text.splitlines(), 1):
        if found := _DEVICE.match(line):
            device = found[2]
            called[device] = found[3]
        elif device and (found := _PORT.match(line)):
            ports[device, found[1]] = found[2], found[3], found[4] or ""
        elif re.match(r"\[|(Switch|Ca|Rt)\s", line):
            raise NotUnderstood(f"line {n} isn't as `ibnetdiscover` prints it: {line.strip()[:80]}")
        elif not line.strip():
            device = None
    if not called:
        raise NotUnderstood("no switch and no HCA in it: give what `ibnetdiscover` prints as root on the fabric")
    own = {device for device, description in called.items() if _AGGREGATION.search(description)}
    own |= {found[1] for found in re.finditer(r'^\[\d+\].*?"(H-[^"]+)".*"[^"]*Aggregation Node"', text, re.MULTILINE)}
    kept = {here: there for here, there in ports.items() if own.isdisjoint((here[0], there[0]))}
    for (device, port), (other, at, _) in kept.items():
        if other not in called:
            raise NotUnderstood(
                f"it is cut, or of a part of the fabric: {called[device]} [{port}] names {other} [{at}], which isn't "
                "described: give all that `ibnetdiscover` prints"
            )
    return {device: description for device, description in called.items() if device not in own}, kept


def _is_unnamed(description: str, hall: Hall) -> bool:
    return _host(description) not in hall.device and bool(_UNNAMED.match(description))


def _host(description: str) -> str:
    return description.split(" ")[0].split(".")[0]


def _hcas(
    host: str, devices: Sequence[str], called: Mapping[str, str], hall: Hall, hcas: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """(HCA, its port: ib1, ib2, ...) of one host; with `hcas`, the others keep their own names: they are of another
    network (storage).
    """
    declared = hall.device[host].hcas if host in hall.device else None
    names = {device: called[device].partition(" ")[2] for device in devices}
    order = sorted(devices, key=lambda device: _numbers(called[device]))
    for n, device in enumerate(order, 1):
        number = re.search(r"_(\d+)$", names[device])
        if hcas:
            yield device, f"ib{list(hcas).index(names[device]) + 1}" if names[device] in hcas else names[device]
        elif declared is None or len(order) == declared:
            yield device, f"ib{n}"
        elif number and int(number[1]) < declared:
            yield device, f"ib{int(number[1]) + 1}"
        else:
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


def lldp(host: str, text: str, hall: Hall | None = None) -> Links:
    """Of `lldpctl -f json` on `host`: the neighbour of each interface. A switch's port is its number, 9 of swp9, 9/1 of
    swp9s1; its own name where that doesn't distinguish two. Of several neighbours those of the hall count. Raises
    NotUnderstood.
    """
    try:
        interfaces = json.loads(text)["lldp"].get("interface", [])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise NotUnderstood("it isn't the output of `lldpctl -f json`") from None
    devices = hall.device if hall else {}
    at: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
    for name, about in _named(interfaces):
        if host in devices and devices[host].is_switch:
            name = switch_ports.number(name)
        for name_or_id, said in _named(about.get("chassis", {})):
            chassis = _value(said) if name_or_id == "id" else name_or_id  # it sends no name
            at[name].append((chassis.split(".")[0], _port(about.get("port", {})), _value(said.get("descr"))))
    found = Links()
    numbers = _port_numbers({each for its in at.values() for each in its})
    nodes = {name for name, device in devices.items() if not device.is_switch}
    for name, its in at.items():
        for device, port, system in [each for each in its if each[0] in devices] or its:
            found.add(End(host, name), End(device, port if device in nodes else numbers[device, port, system]))
    return found


def _port_numbers(seen: Iterable[tuple[str, str, str]]) -> dict[tuple[str, str, str], str]:
    """Of each (switch, its own name of a port, system description) the number; the name, where two have one number."""
    numbers = {each: switch_ports.number(each[1], each[2]) for each in seen}
    same: dict[tuple[str, str], set[str]] = defaultdict(set)
    for (device, name, _), number in numbers.items():
        same[device, number].add(name)
    return {each: each[1] if len(same[each[0], number]) > 1 else number for each, number in numbers.items()}


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


def compared(hall: Hall, links: Mapping[End, End], network: str, asked: Iterable[str] | None = None) -> list[Violation]:
    """HAL-013: each declared cable of this network (infiniband, ethernet) is where it was declared, and as fast. Two
    that stand in each other's place are one finding, and so is a device without any link. `asked`: devices all of whose
    links were seen; None: every one.
    """
    declared = [cable for cable in hall.cables if SPEEDS[cable.speed].network == network]
    partner = {cable.a: cable.b for cable in declared} | {cable.b: cable.a for cable in declared}
    seen = _as_declared(hall, links, partner)
    names = set(hall.device) if asked is None else set(asked)
    linked = {end.device for end in seen}
    judged = [cable for cable in declared if names & {cable.a.device, cable.b.device}]
    dead = _without_a_link(judged, seen)
    found = [_dead(hall, device, count) for device, count in dead.items()]
    swapped: set[End] = set()
    told: set[str] = set()
    unrated: list[Cable] = []
    for cable in judged:
        a_first = cable.a.device in names and (asked is not None or cable.a.device in linked)
        here, there = (cable.a, cable.b) if a_first else (cable.b, cable.a)
        at = seen.get(here)
        doubts = [seen.unclear[end] for end in (here, there, at) if end in seen.unclear]
        if here in swapped or (at is None and dead.keys() & {here.device, there.device}):
            continue
        if doubts:
            found += [doubt for doubt in doubts if str(doubt) not in told]
            told |= {str(doubt) for doubt in doubts}
        elif at == there:
            runs = [] if seen.speed is None else [seen.speed.get(end, "") for end in (cable.a, cable.b)]
            found += _slow(cable, runs) if all(runs) and runs else []
            unrated += [] if all(runs) else [cable]
        else:
            other = partner.get(at) if at else None
            if other is not None and seen.get(other) == there:
                swapped.add(other)
            found.append(_elsewhere(cable, here, there, at, other if other in swapped else None))
    if unrated:
        text = f"and {len(unrated) - 1} more links run at a speed that isn't understood, so it isn't judged"
        found.append(Violation("HAL-013", unrated[0].where, str(unrated[0].a), text, {}, (), "warning"))
    return found + list(_undeclared(hall, seen, partner))


def _without_a_link(cables: Iterable[Cable], seen: Links) -> dict[str, int]:
    """Devices with several cables, none of which has a link, and how many."""
    counts: Counter[str] = Counter()
    alive = {end.device for end in seen}
    for cable in cables:
        for end, other in ((cable.a, cable.b), (cable.b, cable.a)):
            counts[end.device] += 1
            alive |= {end.device} if other in seen.unclear else set()
    return {device: count for device, count in counts.items() if count > 1 and device not in alive}


def _dead(hall: Hall, name: str, count: int) -> Violation:
    device = hall.device.get(name)
    text = f"isn't there: none of its {count} cables has a link"
    ways = ("look at its power", "see that its subnet manager and drivers run")
    return Violation("HAL-013", device.where if device else ("cables",), name, text, {"cables": count}, ways)


def _elsewhere(cable: Cable, here: End, there: End, at: End | None, other: End | None) -> Violation:
    """`other`: what is in its place, and is declared where it is."""
    if at is None:
        wrong, ways = f"is declared at {there} and has no link", ["look at its cable and both ports"]
    elif other is not None:
        wrong = f"and {other} are swapped: it is at {at}, and {other} at {there}"
        ways = [f"swap them at {at.device}"]
    else:
        wrong, ways = f"is declared at {there} and is at {at}", [f"move it to {there}", "declare it so"]
    return Violation("HAL-013", cable.where, str(here), wrong, {}, tuple(ways))


def _slow(cable: Cable, runs: Iterable[str]) -> Iterator[Violation]:
    """A link below its declared speed. `runs`: as each end says it, 4xNDR."""
    wanted = SPEEDS[cable.speed].gb_s
    gb_s, said = min((int(run.partition("x")[0]) * _LANE_GB_S[run.partition("x")[2]], run) for run in runs)
    if gb_s < wanted:
        text = f"runs at {said}, {gb_s:g} Gb/s, to {cable.b}, and {cable.speed}, {wanted:g} Gb/s, is declared"
        ways = ("look at its cable and what both ports are set to", "declare it so")
        yield Violation("HAL-013", cable.where, str(cable.a), text, {"gb_s": gb_s, "declared_gb_s": wanted}, ways)


def _as_declared(hall: Hall, links: Mapping[End, End], partner: Mapping[End, End]) -> Links:
    """With switches' ports as the declaration has them: it may name them in several ways, and a port that is declared
    as a whole is any part of it. Where parts may have been counted through, whose port is which can't be told.
    """
    exact = {(end.device, switch_ports.declared(end.port)): end for end in partner if end.device in hall.device}
    split = {end.device for end in partner if "/" in switch_ports.declared(end.port)}
    parts = Counter((end.device, switch_ports.whole(end.port)) for end in links)

    def ours(end: End, other: End) -> End:
        if end in partner or end.device not in hall.device or not hall.device[end.device].is_switch:
            return end
        place = end.device, switch_ports.whole(end.port)
        of_whole = None if end.device in split else exact.get(place)
        if of_whole and parts[place] > 1 and partner.get(other) != of_whole:
            of_whole = None
        return exact.get((end.device, end.port)) or of_whole or end

    found = Links()
    given = links if isinstance(links, Links) else Links(links)
    for here, there in given.items():
        found.add(ours(here, there), ours(there, here))
        meant = partner.get(here)
        if meant and there.device == meant.device and there.device not in split and _may_be(meant.port, there.port):
            text = (
                f"is at {there}, part of a split port, and {meant} is declared: the same, if parts are counted through"
            )
            found.doubt(here, text, f"declare parts as {there.device}/PORT/PART")
    found.unclear |= {ours(end, given.get(end, end)): doubt for end, doubt in given.unclear.items()}
    found.speed = None if given.speed is None else {ours(end, given[end]): run for end, run in given.speed.items()}
    return found


def _may_be(number: str, port: str) -> bool:
    """Whether the part `port` has this number where the parts of all ports are counted through."""
    whole, _, part = port.partition("/")
    if not (part.isdecimal() and whole.isdecimal() and number.isdecimal()) or whole == number:
        return False
    return any(
        int(number) in ((int(whole) - 1) * n + int(part), (int(whole) - 1) * n + int(part) + 1) for n in (2, 4, 8)
    )


def _undeclared(hall: Hall, links: Links, known: Mapping[End, End]) -> Iterator[Violation]:
    told: set[End] = set()
    for here, there in links.items():
        ours = here.device in hall.device and (hca(here.port) or hall.device[here.device].is_switch)
        if ours and here not in known and there not in known and there not in told:
            told.add(here)
            text = f"has a link to {there}, and no cable is declared there"
            yield Violation("HAL-013", ("cables",), str(here), text, {}, ("declare it",), "warning")
