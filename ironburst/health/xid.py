"""Xid and SXid messages of the kernel log, and what to do about each: data of xid_actions.csv with its exceptions.

An Xid without a row blocks the node, and so does any line of the kernel that speaks of an Xid and is not understood:
no source calls it harmless.
"""

import re
from typing import Dict, List, Mapping, NamedTuple, Optional, Tuple

from .findings import Finding, judged
from .reading import ESCAPE, shown

# Drivers before R450 say no "PCI:"; a GPU that is cut up by MIG adds its instances
LINE = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9A-Fa-f:.]+)((?: GPU-C?I:\w+)*)\): (\d+)(?:, ?(.*))?$")
SWITCH = re.compile(r"SXid \((?:PCI:)?([0-9A-Fa-f:.]+)\): (\d+), ?(.*)$")
SPOKEN_OF = re.compile(r"\bS?Xid\b|fallen off the bus")  # xid in small letters is NFS' and DHCP's
TIME = re.compile(r"^\[ *(\d+\.\d+)\]")
PROCESS = re.compile(r"pid='?[^,]*, name=[^,]*, ?")
FATAL = re.compile(r"(?<![-\w])Fatal\b")
# NVIDIA's action -> what the gate calls it. A word that is missing here is unknown, and blocks
ACTIONS = {
    "IGNORE": "ignore",
    "WORKFLOW_XID_45": "ignore",  # a consequence: of the Xid before it, or of a job that was ended
    "RESTART_APP": "restart-app",
    "PSHC_INFO": "review",
    "PSHC_LOW_LIFETIME": "review",
    "PSHC_ZERO_LIFETIME": "review",  # power smoothing is worn out: the GPU computes as before
    "XID_154": "unknown",  # by its text
    "RESET_GPU": "reset",
    "CHECK_UVM": "reset",
    "WORKFLOW_XID_48": "reset",
    "WORKFLOW_NVLINK_ERR": "reset",
    "WORKFLOW_NVLINK5_ERR": "unknown",  # by its text
    "RESTART_BM": "reboot",
    "RESTART_VM": "reboot",
    "BOOT_REATTEMPT_OR_ENABLE_ECC": "reboot",
    "CHECK_MECHANICALS": "replace",
    "UPDATE_SWFW": "contact",
    "CONTACT_SUPPORT": "contact",
    "": "unknown",
}
BLOCKING = ("reset", "reboot", "replace", "contact", "unknown")
# what Xid 154 says is to be done; the first that its text names
RECOVERY = {"node reboot": "reboot", "gpu reset": "reset", "drain and reset": "reset", "drain p2p": "reset"}


class Action(NamedTuple):
    """One row of xid_actions.csv."""

    xid: int
    name: str
    nvidia: str
    severity: str
    node_action: str
    exceptions: str
    notes: str


class Event(NamedTuple):
    """One Xid of the kernel log; seconds since boot, None where the line has no time. mig: it is of a MIG instance."""

    address: str
    xid: int
    text: str
    at_s: Optional[float]
    mig: bool


class SwitchEvent(NamedTuple):
    """One SXid of an NVSwitch: the words of all its lines."""

    address: str
    sxid: int
    texts: Tuple[str, ...]
    at_s: Optional[float]

    @property
    def is_fatal(self) -> bool:
        """Unless its lines say Non-fatal, and none says more."""
        said = " ".join(self.texts)
        return not re.match(r"Non-fatal\b", said) or bool(FATAL.search(said) or re.search(r"\bSeverity [1-9]", said))


class Log(NamedTuple):
    """What the kernel log says of GPUs and NVSwitches. unknown: lines that speak of an Xid and are not understood."""

    events: List[Event]
    switches: List[SwitchEvent]
    unknown: List[Tuple[str, Optional[float]]]


class Verdict(NamedTuple):
    """action: ignore, restart-app, review, reset, reboot, replace, contact, unknown."""

    action: str
    blocks: bool
    text: str


def decide(table: Mapping[int, Action], xid: int, text: str = "", gpu_model: str = "", mig: bool = False) -> Verdict:
    """What to do about one Xid on a GPU of this model (as the catalogue or nvidia-smi names it)."""
    row = table.get(xid)
    if row is None:
        return Verdict("unknown", True, f"Xid {xid} is not in the table: drain the node and look it up")
    what = f"Xid {xid}{' (' + row.name + ')' if row.name else ''}"
    action = ACTIONS.get(row.nvidia, "unknown")
    text = PROCESS.sub("", text).strip()
    if xid == 154:
        action = _recovery(text)
        return Verdict(action, action in BLOCKING, f"{what}: {text or 'no action is named'}; {action}")
    # The exceptions column, as far as it names a GPU: A100 needs a reboot where others need a reset
    if "A100" in gpu_model and (xid == 64 or (xid == 95 and not mig)):
        return Verdict("reboot", True, f"{what}: on A100 reboot the node")
    if row.nvidia == "WORKFLOW_NVLINK5_ERR":
        action = _nvlink5(text)
    if FATAL.search(text) and action not in BLOCKING:
        action = "reset"
    advice = row.node_action or row.notes or "look at the Xid before it"
    if action == "unknown" or row.nvidia == "WORKFLOW_NVLINK5_ERR":
        advice = f"{advice}: {shown(text) if text else 'it has no text'}"
    return Verdict(action, action in BLOCKING, f"{what}: {advice}")


def _recovery(text: str) -> str:
    """What Xid 154 asks for: the last state of "changed from 0x0 (None) to 0x1 (GPU Reset Required)"."""
    asked = text.rpartition(") to 0x")[2]
    named = [action for words, action in RECOVERY.items() if words in asked.lower()]
    return named[0] if named else "ignore" if "None" in asked else "unknown"


def _nvlink5(text: str) -> str:
    """By the message's own word. One that is not fatal asks for a reset only in a lossy receiver (NVIDIA's "action 2":
    the bit above the subcode, which R575 has moved).
    """
    if FATAL.search(text):
        return "reset"
    if not re.search(r"\bNonfatal\b", text):
        return "unknown"
    lossy = re.search(r"RLW_RXPIPE\b.*\((0x[0-9a-f]+) 0x0*[124] ", text)
    info = int(lossy.group(1), 16) if lossy else 0
    return "reset" if info & 0xFF == 0x86 or info & 0x7FF == 0x4C2 else "ignore"


def read(log: str) -> Log:
    """What a kernel log (dmesg, or journalctl -k) says, in its order. An SXid of several lines is one."""
    said = Log([], [], [])
    open_ones: Dict[Tuple[str, int], int] = {}  # address and number of an SXid -> its place in the list
    for line in ESCAPE.sub("", log).splitlines():
        gpu, switch = LINE.search(line), SWITCH.search(line)
        if gpu:
            address, instances, number, text = gpu.groups()
            said.events.append(Event(address, int(number), text or "", _seconds(line), bool(instances)))
        elif switch:
            key, text = (switch.group(1), int(switch.group(2))), switch.group(3)
            if key in open_ones and re.match(r"Severity |Data |Raw data ", text):
                event = said.switches[open_ones[key]]
                said.switches[open_ones[key]] = event._replace(texts=(*event.texts, text))
            else:
                open_ones[key] = len(said.switches)
                said.switches.append(SwitchEvent(*key, (text,), _seconds(line)))
        elif SPOKEN_OF.search(line):
            said.unknown.append((line, _seconds(line)))
    return said


def _seconds(line: str) -> Optional[float]:
    """Seconds since boot of a line of the log, if it has a time."""
    time = TIME.match(line)
    return float(time.group(1)) if time else None


def judge(
    log: str,
    table: Mapping[int, Action],
    gpu_model: str = "",
    handled_s: float = -1,
    uuids: Optional[Mapping[str, str]] = None,
) -> List[Finding]:
    """Findings of the kernel log since boot. Xids up to handled_s (seconds since boot) were dealt with by a person.
    uuids: of the GPUs by their addresses; an Xid that the reset or replacement of one GPU heals is about that GPU.
    """

    def is_handled(at_s: Optional[float]) -> bool:
        return at_s is not None and at_s <= handled_s

    said = read(log)
    problems: List[str] = []
    own: List[Finding] = []
    at = {_place(address): uuid for address, uuid in (uuids or {}).items()}
    for event in said.events:
        verdict = decide(table, event.xid, event.text, gpu_model, event.mig)
        if not verdict.blocks or is_handled(event.at_s):
            continue
        text = f"GPU {event.address}: {verdict.text} ({verdict.action})"
        uuid = at.get(_place(event.address))
        if uuid and _is_own(verdict.action, table.get(event.xid), event.text):
            own.append(Finding("xid", False, text, (uuid,)))
        else:
            problems.append(text)
    problems += [
        f"NVSwitch {event.address}: SXid {event.sxid}: {event.texts[0]}"
        for event in said.switches
        if event.is_fatal and not is_handled(event.at_s)
    ]
    problems += [
        f"the kernel speaks of an Xid in a line that is not understood: {shown(line)}"
        for line, at_s in said.unknown
        if not is_handled(at_s)
    ]
    own, problems = list(dict.fromkeys(own)), list(dict.fromkeys(problems))  # some come a hundred times
    if own and not problems:
        return own
    return own + judged("xid", problems, "no Xid since boot that needs anything but a restart of a job")


def _place(address: str) -> str:
    """Where a GPU is on the bus, however it is written: "0000:18:00" of the log, "00000000:18:00.0" of nvidia-smi."""
    domain, _, rest = address.lower().partition(":")
    return f"{domain.lstrip('0') or '0'}:{rest.split('.')[0]}"


def _is_own(action: str, row: Optional[Action], text: str) -> bool:
    """Not of an error of NVLink: its peers see it, too. Nor of Xid 154's other than a reset."""
    if row is None or row.nvidia.startswith("WORKFLOW_NVLINK") or "p2p" in text.lower():
        return False
    return action in ("reset", "replace", "contact")
