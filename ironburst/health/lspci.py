"""lspci: the GPUs are on the bus, have fallen off it nowhere, and have all their lanes where the long form (-vv, as
root) shows them.

Understood: plain, -n, -nn, with or without -D, -d and -k, and -v to -vvv; of all devices or only NVIDIA's (`lspci |
grep -i nvidia`). A lower link *speed* is how an idle GPU saves power; a lower *width* is a bad contact.
"""

import re
from typing import List, NamedTuple, Optional, Tuple

from .gpus import EIGHT_LANES
from .report import ERROR_TEXT, Expectation, Finding, Unreadable, bad, clean, count_finding, ends_open, good, shown

ADDRESS = r"((?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-1][0-9a-f]\.[0-7])"
LONG = re.compile("^" + ADDRESS + r" (\S.*?)(?: \[([0-9a-f]{4})\])?: (\S.*)$")
NUMERIC = re.compile(
    "^"
    + ADDRESS
    + r" (?:\"?)([0-9a-f]{4}): ([0-9a-f]{4}):([0-9a-f]{4})((?: \(rev [0-9a-f]{2}\))?(?: \(prog-if [0-9a-f]{2}(?: \[.*\])?\))?)$"
)
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
DRIVERS = ("nvidia",)


class Device(NamedTuple):
    address: str
    kind: str
    """class, 4 hexadecimal digits, or the words where they are not known"""
    nvidia: bool
    device: Optional[str]
    text: str
    details: Tuple[str, ...]


def parse(text: str, expected: Expectation) -> List[Finding]:
    devices = _devices(text)
    gpus = [device for device in devices if device.nvidia and device.kind in GPU_CLASSES]
    if not gpus:
        raise Unreadable("no NVIDIA GPU is on the bus")
    compute = [device for device in gpus if device.kind == "0302"] or gpus
    switches = [
        device for device in devices if device.nvidia and (device.device in NVSWITCH or "NVSwitch" in device.text)
    ]
    ids = {device.device for device in compute if device.device}
    texts = {re.sub(r"\(rev .*", "", device.text) for device in compute}
    known = [model for model in expected.models if ids and ids <= set(model.pci_ids)]
    board = known[0].board if len(known) == 1 else (8 if switches else None)
    findings = [count_finding(len(compute), expected, board)]
    if switches and expected.gpus is None and len(compute) not in (8, 16):
        findings.append(bad("gpu_count", f"{len(compute)} GPUs stand beside {len(switches)} NVSwitches, a board has 8"))
    kinds = {device.device for device in switches}
    if len(kinds) == 1 and kinds <= set(NVSWITCH) and len(switches) not in NVSWITCH[list(kinds)[0] or ""]:
        findings.append(
            bad(
                "nvswitch",
                f"{len(switches)} NVSwitches are on the bus, a board has {NVSWITCH[list(kinds)[0] or ''][0]}",
            )
        )
    if len(ids) > 1 or (not ids and len(texts) > 1):
        findings.append(bad("gpu_model", f"the GPUs differ: {', '.join(sorted(ids or texts))}"))
    if expected.gpu_model and known and expected.gpu_model not in [model.name for model in known]:
        findings.append(bad("gpu_model", f"the GPUs are {known[0].name}, declared is {expected.gpu_model}"))
    problems = []
    for device in devices:
        if device.nvidia or device.kind == "0207":
            problems += _link(device, device in gpus, expected)
    problems += _uneven(compute)
    last = text.rstrip(" ").split("\n")[-1].strip()
    seen = [line for device in devices[:-1] for line in device.details]
    if devices[-1].details and ends_open(text) and last not in seen and not re.search(r"[ ,]nvidia$", last):
        problems.append("the output ends in the middle of a line")
    return findings + (
        [bad("pcie", problem) for problem in problems]
        or [good("pcie", f"nothing is wrong with {len(compute)} GPUs on the bus")]
    )


def _devices(text: str) -> List[Device]:
    found = []  # type: List[Tuple[str, str, bool, Optional[str], str, List[str]]]
    lines = clean(text)
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        if "Unknown header type" in line:
            raise Unreadable(f"a device answers no more: {shown(line.strip())}")
        if line.startswith(("\t", "    ", "        ")):
            if not found:
                raise Unreadable("the output begins within a device")
            found[-1][5].append(line.strip())
            continue
        numeric, words = NUMERIC.match(line.rstrip()), LONG.match(line.rstrip())
        if numeric:
            address, kind, vendor, device, tail = numeric.groups()
            if vendor == "ffff" or (kind == "0302" and vendor != "10de"):
                raise Unreadable(f"lspci prints a line that is not understood: {shown(line)}")
            found.append((address, kind, vendor == "10de", device, tail.strip() or "", []))
        elif words and CLASS_WORD.match(words.group(2)):
            address, name, code, rest = words.groups()
            ids = re.search(r"\[([0-9a-f]{4}):([0-9a-f]{4})\]", rest)
            nvidia = ids.group(1) == "10de" if ids else rest.startswith("NVIDIA")
            named = rest.startswith("NVIDIA")
            if (
                nvidia != named
                or (code and name in CLASSES and CLASSES[name] != code)
                or (code in BY_CODE and BY_CODE[code] != name)
            ):
                raise Unreadable(f"lspci prints a line that is not understood: {shown(line)}")
            if ERROR_TEXT.search(name) or (not nvidia and (name == "3D controller" or "NVSwitch" in rest)):
                raise Unreadable(f"lspci prints a line that is not understood: {shown(line)}")
            if code and not ids and not name.startswith(("Generic", "Class", "Unassigned")):
                raise Unreadable(f"lspci prints a line that is cut: {shown(line)}")
            if (
                nvidia
                and name in ("3D controller", "VGA compatible controller", "Bridge")
                and not re.search(r"\(rev [0-9a-f]{2}\)", rest)
            ):
                raise Unreadable(f"lspci prints a line that is cut: {shown(line)}")
            found.append((address, code or CLASSES.get(name, name), nvidia, ids.group(2) if ids else None, rest, []))
        else:
            raise Unreadable(f"lspci prints a line that is not understood: {shown(line)}")
        if (
            ends_open(text)
            and number == len(lines) - 1
            and not re.search(r"(\(rev [0-9a-f]{2}\)|\[[0-9a-f]{4}:[0-9a-f]{4}\]|\(prog-if .*\))$", line.rstrip())
        ):
            raise Unreadable("the output ends in the middle of a line")
    addresses = [entry[0] for entry in found]
    if len(set(addresses)) != len(addresses):
        raise Unreadable("a device is listed twice")
    if len({len(address.split(":")) for address in addresses}) > 1:
        raise Unreadable("two forms of addresses are mixed up")
    if addresses != sorted(addresses, key=lambda address: [int(part, 16) for part in re.split("[:.]", address)]):
        raise Unreadable("the devices are not in the order of their addresses")
    if len({bool(entry[5]) for entry in found if entry[2] and entry[1] in GPU_CLASSES}) > 1:
        raise Unreadable("only some GPUs are described: the output is cut")
    return [
        Device(address, kind, nvidia, device, rest, tuple(details))
        for address, kind, nvidia, device, rest, details in found
    ]


def _eight_lanes(device: Device) -> bool:
    return device.device in ("1eb8", "2237") or EIGHT_LANES.search(device.text) is not None


def _link(device: Device, gpu: bool, expected: Expectation) -> List[str]:
    """What is wrong with one device, by its head and its details."""
    who = f"{device.address}"
    if re.search(r"\(rev ff\)", device.text):
        return [f"{who} has fallen off the bus (rev ff)"]
    if not device.details:
        return []
    details = "\n".join(device.details)
    if "<access denied>" in details:
        return [f"the link of {who} can't be judged: lspci was not run as root"]
    found = []
    driver = re.search(r"(?m)^Kernel driver in use: (\S+)$", details)
    if gpu and (not driver or driver.group(1) not in DRIVERS):
        found.append(f"{who} has the driver {driver.group(1) if driver else 'none'}, not nvidia")
    capable = re.search(r"(?m)^LnkCap:\s.*Speed ([\d.]+|unknown)(?:GT/s)?, Width x(\d+)", details)
    state = re.search(
        r"(?m)^LnkSta:\s*Speed ([\d.]+|unknown)(GT/s)?(?: \((?:ok|downgraded)\))?, Width x(\d+)(?: \((ok|downgraded|strange|"
        r"overdriven)\))?,?( .*)?$",
        details,
    )
    long = "LnkCap:" in details or "LnkSta:" in details or re.search(r"(?m)^Control: I/O", details) is not None
    if gpu and long:
        if not capable or not state or not state.group(2):
            return found + [f"{who} does not show its link"]
        wanted = expected.pcie_width or min(int(capable.group(2)), 8 if _eight_lanes(device) else 32)
        if int(state.group(3)) < wanted:
            found.append(f"{who} has {state.group(3)} of {wanted} PCIe lanes")
        elif state.group(4) == "downgraded" and int(state.group(3)) == int(capable.group(2)):
            raise Unreadable(f"the width of {who} is called downgraded, and is not")
        if float(state.group(1)) > float(capable.group(1)) or float(state.group(1)) not in (2.5, 5, 8, 16, 32, 64):
            raise Unreadable(f"the speed of {who} is {state.group(1)} GT/s of {capable.group(1)}")
    elif capable and state and int(state.group(3)) < int(capable.group(2)):
        found.append(f"{who} has {state.group(3)} of {capable.group(2)} PCIe lanes")
    if gpu and re.search(r"(?m)^DevSta:.* FatalErr\+", details):
        found.append(f"{who} has seen a fatal PCIe error")
    if gpu and re.search(r"(?m)^Control: .*(Mem-|BusMaster-)", details):
        found.append(f"{who} is not enabled (memory or bus mastering is off)")
    if re.search(r"(?im)unknown error|\bNVRM\b|\bxid\b|traceback|permission denied", details):
        found.append(f"an error text stands in the details of {who}")
    return found


def _uneven(gpus: List[Device]) -> List[str]:
    keys = {}  # type: Dict[str, int]
    for device in gpus:
        for key in {
            line.split(":")[0]
            for line in device.details
            if re.match(r"^(LnkCap|LnkSta|DevSta|Control|Kernel driver in use|Subsystem|NUMA node)\b", line)
        }:
            keys[key] = keys.get(key, 0) + 1
    return [f"only {count} of {len(gpus)} GPUs show {key}" for key, count in sorted(keys.items()) if count != len(gpus)]
