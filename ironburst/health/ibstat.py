"""ibstat: every port active and linked up at the rate of its peers.

Without a declaration every port that is listed must be active; with `links` that many must be, and the others may be
down. The tool prints no end, so that a missing device shows only as a gap in mlx5_0, mlx5_1 ... (a bond takes two
numbers) or by a declared number.
"""

import re
from typing import Dict, List, NamedTuple, Set, Tuple

from .expectation import Expectation
from .findings import Finding, Unreadable, judged
from .reading import clean, decimal, ends_open, note, shown, whole

DEVICE = re.compile(r"^CA '([A-Za-z0-9_]+)'$")
ENTRY = re.compile(r"^([A-Z][A-Za-z ]*): ?(.*)$")
CA_KEYS = ("Number of ports", "Firmware version", "Hardware version", "Node GUID", "System image GUID")
DEVICE_KEYS = ("CA type", *CA_KEYS)
PORT_KEYS = (
    *("State", "Physical state", "Rate", "Base lid", "LMC", "SM lid", "Capability mask", "Port GUID", "Link layer"),
)
STATES = ("Active", "Initializing", "Armed", "Down", "NoChange", "ActiveDefer")
PHYSICAL = (
    *("LinkUp", "Polling", "Disabled", "Sleep", "PortConfigurationTraining", "LinkErrorRecovery", "Phytest"),
    "No state change",
)
# Gb/s of a port: lanes times the speed of each, from SDR to XDR
RATES = (
    *(2.5, 5, 10, 14, 20, 25, 28, 30, 40, 50, 56, 60, 70, 80, 100, 112, 120, 168),
    *(200, 300, 400, 600, 800, 1200, 1600),
)
# Gb/s that an adapter of this type can
FASTEST = {"MT4113": 56, "MT4115": 100, "MT4119": 100, "MT4121": 100, "MT4123": 200, "MT4125": 100, "MT4127": 50}
FASTEST.update({"MT4129": 400, "MT4131": 800})


class Hca(NamedTuple):
    """One adapter: its own values, and those of its ports by number."""

    name: str
    values: Dict[str, str]
    ports: List[Tuple[int, Dict[str, str]]]


class HcaPort(NamedTuple):
    """One port of an adapter: "mlx5_0/1", the adapter's type, and the port's values by PORT_KEYS."""

    name: str
    ca_type: str
    values: Dict[str, str]

    @property
    def is_up(self) -> bool:
        """Whether it is active and linked up."""
        return self.values["State"] == "Active" and self.values["Physical state"] == "LinkUp"

    @property
    def rate_gb_s(self) -> float:
        """Gb/s; only of a port that _refuse_strange() has let through."""
        return float(self.values["Rate"].replace(" (FDR10)", ""))


def parse(text: str, expected: Expectation) -> List[Finding]:
    """Findings of `ibstat`. Raises Unreadable."""
    devices = _devices(text)
    ports = [port for device in devices for port in _ports(device)]
    if len({"CA type" in device.values for device in devices}) > 1:
        raise Unreadable("only some devices say their type")
    if len({device.values["Node GUID"] for device in devices}) != len(devices):
        raise Unreadable("two devices have the same node GUID")
    if expected.links is None:
        _refuse_gaps([device.name for device in devices])
    if ends_open(text) and ports[-1].values["Link layer"] not in ("InfiniBand", "Ethernet"):
        raise Unreadable("the output ends in the middle of a line")
    return _judge(ports, expected)


def _devices(text: str) -> List[Hca]:
    devices: List[Hca] = []
    for line in clean(text):
        told, indented = line.strip(), line.startswith((" ", "\t"))
        if not told:
            continue
        if devices:
            note(told, f"of {devices[-1].name}" + (f", port {devices[-1].ports[-1][0]}" if devices[-1].ports else ""))
        device, port, entry = DEVICE.match(told), re.match(r"^Port (\d+):$", told), ENTRY.match(told)
        if device and not indented:
            if any(device.group(1) == listed.name for listed in devices):
                raise Unreadable(f"{device.group(1)} is listed twice")
            devices.append(Hca(device.group(1), {}, []))
        elif port and devices:
            devices[-1].ports.append((int(port.group(1)), {}))
        elif not entry or not devices or not indented or not _keep(devices[-1], entry.group(1), entry.group(2).strip()):
            raise Unreadable(f"ibstat prints a line that is not understood: {shown(told)}")
    if not devices:
        raise Unreadable("no device is listed")
    return devices


def _keep(device: Hca, key: str, value: str) -> bool:
    """Add a value to the device, or to its last port. False for a key that is not known, or that it has already."""
    values = device.ports[-1][1] if device.ports else device.values
    if key in values or "N/A" in value or key not in (PORT_KEYS if device.ports else DEVICE_KEYS):
        return False
    values[key] = value
    return True


def _ports(device: Hca) -> List[HcaPort]:
    """The ports of a device that is told whole. Raises Unreadable."""
    name, values = device.name, device.values
    for key in CA_KEYS:
        if key not in values:
            raise Unreadable(f"{name} does not say its {key}")
    _refuse_bad_guid(values["Node GUID"], f"the node GUID of {name}")
    if not re.match(r"^\d+(\.\d+)+$", values["Firmware version"]):
        raise Unreadable(f"the firmware version of {name} is {values['Firmware version']!r}")
    count = whole(values["Number of ports"], f"the number of ports of {name}")
    if count != len(device.ports) or not device.ports:
        raise Unreadable(f"{name} lists {len(device.ports)} of {values['Number of ports']} ports")
    for number, of_port in device.ports:
        for key in PORT_KEYS:
            if key not in of_port:
                raise Unreadable(f"port {number} of {name} does not say its {key}")
    return [HcaPort(f"{name}/{number}", values.get("CA type", ""), of_port) for number, of_port in device.ports]


def _refuse_bad_guid(value: str, what: str) -> None:
    if not re.match(r"^0x[0-9a-f]{16}$", value) or not int(value, 16):
        raise Unreadable(f"{what} is {value!r}")


def _refuse_gaps(names: List[str]) -> None:
    numbers = sorted(int(name[5:]) for name in names if re.match(r"^mlx5_\d+$", name))
    allowed = 2 * len([name for name in names if "bond" in name])
    missing = sorted(set(range(numbers[-1] + 1)) - set(numbers)) if numbers else []
    if len(missing) > allowed:
        raise Unreadable(
            f"mlx5_{missing[0]} is missing in the sequence: say how many ports there should be with --links"
        )


def _refuse_strange(port: HcaPort) -> None:
    """Raises Unreadable for values that no port has."""
    values = port.values
    if values["State"] not in STATES or values["Physical state"] not in PHYSICAL:
        states = f"{values['State']!r} and {values['Physical state']!r}"
        raise Unreadable(f"port {port.name} is {states}, which is not understood")
    layer = values["Link layer"]
    if layer not in ("InfiniBand", "Ethernet"):
        raise Unreadable(f"the link layer of port {port.name} is {layer!r}, not InfiniBand or Ethernet")
    rate = decimal(re.sub(r"^40 \(FDR10\)$", "40", values["Rate"]), f"the rate of port {port.name}")
    if rate not in RATES:
        raise Unreadable(f"the rate of port {port.name} is {rate:g}, which no link has")
    if layer == "InfiniBand" or not re.match(r"^0x0{16}$", values["Port GUID"]):  # RoCE may have none
        _refuse_bad_guid(values["Port GUID"], f"the GUID of port {port.name}")
    if not re.match(r"^0x[0-9a-f]{8}$", values["Capability mask"]):
        raise Unreadable(f"the capability mask of port {port.name} is {values['Capability mask']!r}")
    for key in ("Base lid", "SM lid", "LMC"):
        whole(values[key], f"the {key} of port {port.name}")


def _judge(ports: List[HcaPort], expected: Expectation) -> List[Finding]:
    problems: List[str] = []
    active: List[HcaPort] = []
    for port in ports:
        _refuse_strange(port)
        if port.is_up:
            active.append(port)
            problems += _judge_active(port, expected)
        elif expected.links is None:
            problems.append(f"port {port.name} is {port.values['State']}, physically {port.values['Physical state']}")
    if expected.rate_gb_s is None:
        problems += _uneven_rates(active)
    if expected.links is not None and len(active) < expected.links:
        problems.append(f"{len(active)} of {expected.links} ports are active")
    if not active:
        problems.append("no port is active")
    return judged("links", problems, f"{len(active)} of {len(ports)} ports are active")


def _judge_active(port: HcaPort, expected: Expectation) -> List[str]:
    problems: List[str] = []
    name, rate = port.name, port.rate_gb_s
    no_lid = any(int(port.values[key]) in (0, 65535) for key in ("Base lid", "SM lid"))
    if port.values["Link layer"] == "InfiniBand" and no_lid:
        problems.append(f"port {name} has no LID or no subnet manager")
    if expected.rate_gb_s is not None and rate != expected.rate_gb_s:
        problems.append(f"port {name} runs at {rate:g} Gb/s, declared are {expected.rate_gb_s:g}")
    elif rate < FASTEST.get(port.ca_type, 0) / 4:
        problems.append(f"port {name} runs at {rate:g} Gb/s, its adapter ({port.ca_type}) can {FASTEST[port.ca_type]}")
    return problems


def _uneven_rates(ports: List[HcaPort]) -> List[str]:
    rates: Dict[Tuple[str, str], Set[float]] = {}
    for port in ports:
        rates.setdefault((port.ca_type, port.values["Link layer"]), set()).add(port.rate_gb_s)
    return [
        f"ports of the same adapter ({ca_type or 'of no type'}, {layer}) run at "
        f"{' and '.join('%g' % rate for rate in sorted(of_type))} Gb/s"
        for (ca_type, layer), of_type in sorted(rates.items())
        if len(of_type) > 1
    ]
