"""ibstat: every port active and linked up at the rate of its peers.

Without a declaration every port that is listed must be active; with `links` so many must be, and the others may be
down. The tool prints no end, so that a missing device shows only as a gap in mlx5_0, mlx5_1 ... (a bond takes two
numbers) or by a declared number.
"""

import re
from typing import Dict, List, NamedTuple, Tuple

from .report import Expectation, Finding, Unreadable, bad, clean, decimal, ends_open, good, shown, whole

DEVICE = re.compile(r"^CA '([A-Za-z0-9_]+)'$")
ENTRY = re.compile(r"^([A-Z][A-Za-z ]*): ?(.*)$")
CA_KEYS = ("Number of ports", "Firmware version", "Hardware version", "Node GUID", "System image GUID")
PORT_KEYS = (
    "State",
    "Physical state",
    "Rate",
    "Base lid",
    "LMC",
    "SM lid",
    "Capability mask",
    "Port GUID",
    "Link layer",
)
STATES = ("Active", "Initializing", "Armed", "Down", "NoChange", "ActiveDefer")
PHYSICAL = (
    "LinkUp",
    "Polling",
    "Disabled",
    "Sleep",
    "PortConfigurationTraining",
    "LinkErrorRecovery",
    "Phytest",
    "No state change",
)
RATES = (
    2.5,
    5,
    10,
    14,
    20,
    25,
    28,
    30,
    40,
    50,
    56,
    60,
    70,
    80,
    100,
    112,
    120,
    168,
    200,
    300,
    400,
    600,
    800,
    1200,
    1600,
)
FASTEST = {
    "MT4113": 56,
    "MT4115": 100,
    "MT4119": 100,
    "MT4121": 100,
    "MT4123": 200,
    "MT4125": 100,
    "MT4127": 50,
    "MT4129": 400,
    "MT4131": 800,
}


class Port(NamedTuple):
    name: str
    ca_type: str
    values: Dict[str, str]


def parse(text: str, expected: Expectation) -> List[Finding]:
    devices = _devices(text)
    ports, guids = [], []  # type: Tuple[List[Port], List[str]]
    for name, ca, found in devices:
        for key in CA_KEYS:
            if key not in ca:
                raise Unreadable(f"{name} does not say its {key}")
        guids.append(_guid(ca["Node GUID"], f"the node GUID of {name}"))
        if not re.match(r"^\d+(\.\d+)+$", ca["Firmware version"]):
            raise Unreadable(f"the firmware version of {name} is {ca['Firmware version']!r}")
        if whole(ca["Number of ports"], f"the number of ports of {name}") != len(found) or not found:
            raise Unreadable(f"{name} lists {len(found)} of {ca['Number of ports']} ports")
        for number, values in found:
            for key in PORT_KEYS:
                if key not in values:
                    raise Unreadable(f"port {number} of {name} does not say its {key}")
            ports.append(Port(f"{name}/{number}", ca.get("CA type", ""), values))
    if len({"CA type" in ca for _, ca, _ in devices}) > 1:
        raise Unreadable("only some devices say their type")
    if len(set(guids)) != len(guids):
        raise Unreadable("two devices have the same node GUID")
    if expected.links is None:
        _gaps([name for name, _, _ in devices])
    if ends_open(text) and ports[-1].values["Link layer"] not in ("InfiniBand", "Ethernet"):
        raise Unreadable("the output ends in the middle of a line")
    return _judge(ports, expected)


def _devices(text: str) -> List[Tuple[str, Dict[str, str], List[Tuple[int, Dict[str, str]]]]]:
    devices = []  # type: List[Tuple[str, Dict[str, str], List[Tuple[int, Dict[str, str]]]]]
    for line in clean(text):
        device, port, entry = (
            DEVICE.match(line.strip()),
            re.match(r"^Port (\d+):$", line.strip()),
            ENTRY.match(line.strip()),
        )
        if not line.strip():
            continue
        if device and not line.startswith((" ", "\t")):
            if any(device.group(1) == name for name, _, _ in devices):
                raise Unreadable(f"{device.group(1)} is listed twice")
            devices.append((device.group(1), {}, []))
        elif port and devices:
            devices[-1][2].append((int(port.group(1)), {}))
        elif entry and devices and line.startswith((" ", "\t")):
            key, value = entry.group(1), entry.group(2).strip()
            known, values = (
                (PORT_KEYS, devices[-1][2][-1][1]) if devices[-1][2] else (("CA type",) + CA_KEYS, devices[-1][1])
            )
            if key not in known or key in values:
                raise Unreadable(f"ibstat prints a line that is not understood: {shown(line.strip())}")
            values[key] = value
        else:
            raise Unreadable(f"ibstat prints a line that is not understood: {shown(line.strip())}")
    if not devices:
        raise Unreadable("no device is listed")
    return devices


def _guid(value: str, what: str) -> str:
    if not re.match(r"^0x[0-9a-f]{16}$", value) or not int(value, 16):
        raise Unreadable(f"{what} is {value!r}")
    return value


def _gaps(names: List[str]) -> None:
    numbers = sorted(int(name[5:]) for name in names if re.match(r"^mlx5_\d+$", name))
    allowed = 2 * len([name for name in names if "bond" in name])
    missing = sorted(set(range(numbers[-1] + 1)) - set(numbers)) if numbers else []
    if len(missing) > allowed:
        raise Unreadable(
            f"mlx5_{missing[0]} is missing in the sequence: say how many ports there should be with --links"
        )


def _judge(ports: List[Port], expected: Expectation) -> List[Finding]:
    problems, active = [], []
    for port in ports:
        values = port.values
        if values["State"] not in STATES or values["Physical state"] not in PHYSICAL:
            raise Unreadable(
                f"port {port.name} is {values['State']!r} and {values['Physical state']!r}, which is not understood"
            )
        if values["Link layer"] not in ("InfiniBand", "Ethernet"):
            raise Unreadable(
                f"the link layer of port {port.name} is {values['Link layer']!r}, not InfiniBand or Ethernet"
            )
        rate = decimal(values["Rate"], f"the rate of port {port.name}")
        if rate not in RATES:
            raise Unreadable(f"the rate of port {port.name} is {rate:g}, which no link has")
        if values["Link layer"] == "InfiniBand" or not re.match(
            r"^0x0{16}$", values["Port GUID"]
        ):  # RoCE may have none
            _guid(values["Port GUID"], f"the GUID of port {port.name}")
        if not re.match(r"^0x[0-9a-f]{8}$", values["Capability mask"]):
            raise Unreadable(f"the capability mask of port {port.name} is {values['Capability mask']!r}")
        lids = [whole(values[key], f"the {key} of port {port.name}") for key in ("Base lid", "SM lid", "LMC")]
        up = values["State"] == "Active" and values["Physical state"] == "LinkUp"
        if not up:
            if expected.links is None:
                problems.append(f"port {port.name} is {values['State']}, physically {values['Physical state']}")
            continue
        active.append(port)
        if values["Link layer"] == "InfiniBand" and (lids[0] in (0, 65535) or lids[1] in (0, 65535)):
            problems.append(f"port {port.name} has no LID or no subnet manager")
        if expected.rate_gb_s is not None and rate != expected.rate_gb_s:
            problems.append(f"port {port.name} runs at {rate:g} Gb/s, declared are {expected.rate_gb_s:g}")
        elif rate < FASTEST.get(port.ca_type, 0) / 4:
            problems.append(
                f"port {port.name} runs at {rate:g} Gb/s, its adapter ({port.ca_type}) can {FASTEST[port.ca_type]}"
            )
    if expected.rate_gb_s is None:
        for kind in sorted({(port.ca_type, port.values["Link layer"]) for port in active}):
            rates = sorted(
                {float(port.values["Rate"]) for port in active if (port.ca_type, port.values["Link layer"]) == kind}
            )
            if len(rates) > 1:
                problems.append(
                    f"ports of the same adapter ({kind[0] or 'of no type'}, {kind[1]}) run at "
                    f"{' and '.join('%g' % rate for rate in rates)} Gb/s"
                )
    if expected.links is not None and len(active) < expected.links:
        problems.append(f"{len(active)} of {expected.links} ports are active")
    if not active:
        problems.append("no port is active")
    return [bad("links", problem) for problem in problems] or [
        good("links", f"{len(active)} of {len(ports)} ports are active")
    ]
