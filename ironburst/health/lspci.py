"""lspci: the GPUs are on the bus, have fallen off it nowhere, and have all their lanes where
the long form (-vv, as root) shows them.

Understood: plain, -n, -nn, with or without -D, -d and -k, and -v to -vvv; of all devices or only NVIDIA's (`lspci |
grep -i nvidia`). A lower link *speed* is how an idle GPU saves power; a lower *width* is a bad contact.
"""

import re
from typing import Dict, List, Match, NamedTuple, Optional, Sequence, Tuple

from .expectation import Expectation, count_finding
from .findings import Finding, Unreadable, bad, good, judged
from .models import WIRED_NARROW, numbered_as_declared, refuse_others, wanted_lanes
from .reading import ERROR_TEXT, clean, ends_open, note, shown

NVIDIA_DEVICES = ("lspci", "-Dn", "-d", "10de:")  # what the gate asks: gpus_on_bus() reads the answer
ADDRESS = r"((?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-1][0-9a-f]\.[0-7])"
WORDS = re.compile("^" + ADDRESS + r" (\S.*?)(?: \[([0-9a-f]{4})\])?: (\S.*)$")
NUMBERS = re.compile(
    "^" + ADDRESS + r" (?:\"?)([0-9a-f]{4}): ([0-9a-f]{4}):([0-9a-f]{4})"
    r"((?: \(rev [0-9a-f]{2}\))?(?: \(prog-if [0-9a-f]{2}(?: \[.*\])?\))?)$"
)
WHOLE_END = re.compile(r"(\(rev [0-9a-f]{2}\)|\[[0-9a-f]{4}:[0-9a-f]{4}\]|\(prog-if .*\))$")
CLASSES = {
    "3D controller": "0302",
    "VGA compatible controller": "0300",
    "Bridge": "0680",
    "Infiniband controller": "0207",
    "Ethernet controller": "0200",
    "Display controller": "0380",
}
BY_CODE = {"0302": "3D controller", "0300": "VGA compatible controller"}
CLASS_WORD = re.compile(r"^[A-Z0-9][A-Za-z0-9 /.,()-]{2,48}$")
GPU_CLASSES = ("0302", "0300")
NVSWITCH = {"1ac2": (6, 12), "1af1": (6, 12), "22a3": (4,)}  # device id -> how many stand on a board, or on two
NARROW_IDS = ("1eb8", "2237", "26b9")  # WIRED_NARROW: T4, A10G, L40S
SPEEDS = (2.5, 5, 8, 16, 32, 64)  # GT/s
LINK_CAPABLE = re.compile(r"(?m)^LnkCap:\s.*Speed ([\d.]+|unknown)(?:GT/s)?, Width x(\d+)")
LINK_STATE = re.compile(
    r"(?m)^LnkSta:\s*Speed ([\d.]+|unknown)(GT/s)?(?: \((?:ok|downgraded)\))?, Width x(\d+)"
    r"(?: \((ok|downgraded|strange|overdriven)\))?,?( .*)?$"
)


class PciDevice(NamedTuple):
    """One PCI device. kind: its class as 4 hexadecimal digits, or the words where they are not known; device: its id, 4
    hexadecimal digits, where it is shown; details: the lines of the long form.
    """

    address: str
    kind: str
    nvidia: bool
    device: Optional[str]
    text: str
    details: Tuple[str, ...]

    @property
    def is_gpu(self) -> bool:
        """Whether this is a GPU of NVIDIA; its NVSwitches, audio and USB functions are of other classes."""
        return self.nvidia and self.kind in GPU_CLASSES


def gpus_on_bus(text: str) -> List[PciDevice]:
    """The GPUs in the output of NVIDIA_DEVICES; none is an answer, too. Raises Unreadable."""
    for line in text.splitlines():
        numbers = NUMBERS.match(line)
        if not numbers or numbers.group(3) != "10de" or numbers.group(1).count(":") != 2:
            raise Unreadable(f"lspci prints a line that is not understood: {shown(line)}")
    return [device for device in _devices(text) if device.is_gpu]


def parse(text: str, expected: Expectation) -> List[Finding]:
    """Findings of one output of lspci. Raises Unreadable."""
    devices = _devices(text)
    gpus = [device for device in devices if device.is_gpu]
    if not gpus:
        refuse_others(text)
        raise Unreadable("no NVIDIA GPU is on the bus")
    compute = [device for device in gpus if device.kind == "0302"] or gpus
    problems: List[str] = []
    for device in devices:
        if device.nvidia or device.kind == "0207":
            problems += _link(device, expected)
    problems += _uneven(compute)
    last = text.rstrip(" ").split("\n")[-1].strip()
    seen = [line for device in devices[:-1] for line in device.details]
    if devices[-1].details and ends_open(text) and last not in seen and not re.search(r"[ ,]nvidia$", last):
        problems.append("the output ends in the middle of a line")
    pcie = judged("pcie", problems, f"nothing is wrong with {len(compute)} GPUs on the bus")
    return _counts(devices, compute, expected) + pcie


def _counts(devices: Sequence[PciDevice], compute: Sequence[PciDevice], expected: Expectation) -> List[Finding]:
    """Whether the right number of GPUs and NVSwitches of the right model is there."""
    switches = [
        device for device in devices if device.nvidia and (device.device in NVSWITCH or "NVSwitch" in device.text)
    ]
    ids = {device.device for device in compute if device.device}
    texts = {re.sub(r"\(rev .*", "", device.text) for device in compute}
    models = [model for model in expected.models if ids and ids <= set(model.pci_ids)]
    board = models[0].board if len(models) == 1 else (8 if switches else None)
    findings = [count_finding(len(compute), expected, board)]
    if switches and expected.gpus is None and len(compute) not in (8, 16):
        findings.append(bad("gpu_count", f"{len(compute)} GPUs stand beside {len(switches)} NVSwitches, a board has 8"))
    switch_ids = {device.device for device in switches}
    usual = NVSWITCH.get(switch_ids.pop() or "") if len(switch_ids) == 1 else None
    if usual and len(switches) not in usual:
        findings.append(bad("nvswitch", f"{len(switches)} NVSwitches are on the bus, a board has {usual[0]}"))
    if len(ids) > 1 or (not ids and len(texts) > 1):
        findings.append(bad("gpu_model", f"the GPUs differ: {', '.join(sorted(ids or texts))}"))
    if expected.pcie_width is not None and any("LnkSta:" in line for gpu in compute for line in gpu.details):
        findings.append(good("pcie_width", "judged with each GPU's link"))
    return findings + numbered_as_declared({device_id for device_id in ids if device_id}, expected)


def _devices(text: str) -> List[PciDevice]:
    """The devices of any form that is understood. Raises Unreadable."""
    heads: List[PciDevice] = []
    details: List[List[str]] = []
    lines = clean(text)
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        if "Unknown header type" in line:
            raise Unreadable(f"a device answers no more: {shown(line.strip())}")
        if line.startswith(("\t", "    ")):
            if not heads:
                raise Unreadable("the output begins within a device")
            details[-1].append(line.strip())
            note(line, f"of {heads[-1].address}")
            continue
        heads.append(_device(line))
        note(line, "a GPU of NVIDIA" if heads[-1].is_gpu else "another device")
        details.append([])
        if ends_open(text) and number == len(lines) - 1 and not WHOLE_END.search(line.rstrip()):
            raise Unreadable("the output ends in the middle of a line")
    devices = [head._replace(details=tuple(described)) for head, described in zip(heads, details)]
    _refuse_disorder(devices)
    return devices


def _device(line: str) -> PciDevice:
    """The head line of a device, as numbers (-n) or as words. Raises Unreadable."""
    numbers, words = NUMBERS.match(line.rstrip()), WORDS.match(line.rstrip())
    if numbers:
        address, kind, vendor, device, tail = numbers.groups()
        if vendor != "ffff" and (kind != "0302" or vendor == "10de"):
            return PciDevice(address, kind, vendor == "10de", device, tail.strip(), ())
    elif words and CLASS_WORD.match(words.group(2)):
        return _device_of_words(line, words)
    raise Unreadable(f"lspci prints a line that is not understood: {shown(line)}")


def _device_of_words(line: str, words: Match[str]) -> PciDevice:
    address, name, code, text = words.groups()
    ids = re.search(r"\[([0-9a-f]{4}):([0-9a-f]{4})\]", text)
    named = text.startswith("NVIDIA")
    nvidia = ids.group(1) == "10de" if ids else named
    other_code = code and CLASSES.get(name, code) != code
    other_name = code and BY_CODE.get(code, name) != name
    foreign = not nvidia and (name == "3D controller" or "NVSwitch" in text)
    if nvidia != named or other_code or other_name or ERROR_TEXT.search(name) or foreign:
        raise Unreadable(f"lspci prints a line that is not understood: {shown(line)}")
    needs_ids = code and not name.startswith(("Generic", "Class", "Unassigned"))
    needs_revision = nvidia and name in ("3D controller", "VGA compatible controller", "Bridge")
    if (needs_ids and not ids) or (needs_revision and not re.search(r"\(rev [0-9a-f]{2}\)", text)):
        raise Unreadable(f"lspci prints a line that is cut: {shown(line)}")
    return PciDevice(address, code or CLASSES.get(name, name), nvidia, ids.group(2) if ids else None, text, ())


def _refuse_disorder(devices: Sequence[PciDevice]) -> None:
    """Raises Unreadable for a list that lspci does not print so: one that was mixed up or cut."""
    addresses = [device.address for device in devices]
    if len(set(addresses)) != len(addresses):
        raise Unreadable("a device is listed twice")
    if len({len(address.split(":")) for address in addresses}) > 1:
        raise Unreadable("two forms of addresses are mixed up")
    if addresses != sorted(addresses, key=lambda address: [int(part, 16) for part in re.split("[:.]", address)]):
        raise Unreadable("the devices are not in the order of their addresses")
    if len({bool(device.details) for device in devices if device.is_gpu}) > 1:
        raise Unreadable("only some GPUs are described: the output is cut")


def _link(device: PciDevice, expected: Expectation) -> List[str]:
    """What is wrong with one device, by its head and its details."""
    who = device.address
    if re.search(r"\(rev ff\)", device.text):
        return [f"{who} has fallen off the bus (rev ff)"]
    if not device.details:
        return []
    details = "\n".join(device.details)
    if "<access denied>" in details:
        return [f"the link of {who} can't be judged: lspci was not run as root"]
    problems: List[str] = []
    driver = re.search(r"(?m)^Kernel driver in use: (\S+)$", details)
    if device.is_gpu and (not driver or driver.group(1) != "nvidia"):
        problems.append(f"{who} has the driver {driver.group(1) if driver else 'none'}, not nvidia")
    capable, state = LINK_CAPABLE.search(details), LINK_STATE.search(details)
    long = "LnkCap:" in details or "LnkSta:" in details or re.search(r"(?m)^Control: I/O", details) is not None
    if device.is_gpu and long:
        if not capable or not state or not state.group(2):
            return [*problems, f"{who} does not show its link"]
        problems += _gpu_link(device, capable, state, expected)
    elif capable and state and int(state.group(3)) < int(capable.group(2)):
        problems.append(f"{who} has {state.group(3)} of {capable.group(2)} PCIe lanes")
    if device.is_gpu and re.search(r"(?m)^DevSta:.* FatalErr\+", details):
        problems.append(f"{who} has seen a fatal PCIe error")
    if device.is_gpu and re.search(r"(?m)^Control: .*(Mem-|BusMaster-)", details):
        problems.append(f"{who} is not enabled (memory or bus mastering is off)")
    if re.search(r"(?im)unknown error|\bNVRM\b|\bxid\b|traceback|permission denied", details):
        problems.append(f"an error text stands in the details of {who}")
    return problems


def _gpu_link(device: PciDevice, capable: Match[str], state: Match[str], expected: Expectation) -> List[str]:
    """What is wrong with a GPU's lanes. Raises Unreadable for a width or speed that contradicts itself."""
    who, lanes, most = device.address, int(state.group(3)), int(capable.group(2))
    narrow = device.device in NARROW_IDS or WIRED_NARROW.search(device.text) is not None
    wanted = wanted_lanes(expected.pcie_width, most, narrow)
    if lanes >= wanted and state.group(4) == "downgraded" and lanes == most:
        raise Unreadable(f"the width of {who} is called downgraded, and is not")
    if float(state.group(1)) > float(capable.group(1)) or float(state.group(1)) not in SPEEDS:
        raise Unreadable(f"the speed of {who} is {state.group(1)} GT/s of {capable.group(1)}")
    return [f"{who} has {lanes} of {wanted} PCIe lanes"] if lanes < wanted else []


def _uneven(gpus: Sequence[PciDevice]) -> List[str]:
    """What only some of the GPUs show."""
    shown_by: Dict[str, int] = {}
    key_form = re.compile(r"^(LnkCap|LnkSta|DevSta|Control|Kernel driver in use|Subsystem|NUMA node)\b")
    for device in gpus:
        for key in {line.split(":")[0] for line in device.details if key_form.match(line)}:
            shown_by[key] = shown_by.get(key, 0) + 1
    counts = sorted(shown_by.items())
    return [f"only {count} of {len(gpus)} GPUs show {key}" for key, count in counts if count != len(gpus)]
