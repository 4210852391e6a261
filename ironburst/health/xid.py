"""Xid messages of the kernel log, and what to do about each: data of xid_actions.csv with its exceptions.

An Xid without a row blocks the node: nobody has said that it is harmless.
"""

import re
from typing import List, Mapping, NamedTuple, Optional

from .findings import Finding, judged

LINE = re.compile(r"NVRM: Xid \(PCI:([0-9A-Fa-f:.]+)\): (\d+),? ?(.*)$")
SWITCH = re.compile(r"SXid \(PCI:([0-9A-Fa-f:.]+)\): (\d+), (Fatal|Non-fatal)?,? ?(.*)$")
TIME = re.compile(r"^\[ *(\d+\.\d+)\]")
# NVIDIA's r590 action -> what the gate calls it
ACTIONS = {
    "IGNORE": "ignore",
    "RESTART_APP": "restart-app",
    "RESET_GPU": "reset",
    "WORKFLOW_XID_48": "reset",
    "WORKFLOW_NVLINK_ERR": "reset",
    "RESTART_BM": "reboot",
    "RESTART_VM": "reboot",
    "BOOT_REATTEMPT_OR_ENABLE_ECC": "reboot",
    "CHECK_MECHANICALS": "replace",
    "CONTACT_SUPPORT": "contact",
    "": "none",
}
BLOCKING = ("drain", "reset", "reboot", "replace", "contact", "unknown")
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
    """One Xid of the kernel log; seconds since boot, None where the line has no time."""

    address: str
    xid: int
    text: str
    at_s: Optional[float]


class Verdict(NamedTuple):
    """action: ignore, none, restart-app, review, drain, reset, reboot, replace, contact, unknown."""

    action: str
    blocks: bool
    text: str


def decide(table: Mapping[int, Action], xid: int, text: str = "", gpu_model: str = "", mig: bool = False) -> Verdict:
    """What to do about one Xid on a GPU of this model (as the catalogue or nvidia-smi names it)."""
    row = table.get(xid)
    if row is None:
        return Verdict("unknown", True, f"Xid {xid} is not in the table: drain the node and look it up")
    what = f"Xid {xid}{' (' + row.name + ')' if row.name else ''}"
    action = ACTIONS.get(row.nvidia, "review")
    if xid == 154:
        named = [action for words, action in RECOVERY.items() if words in text.lower()]
        action = named[0] if named else "none" if "None" in text else "unknown"
        return Verdict(action, action in BLOCKING, f"{what}: {text.strip() or 'no action is named'}; {action}")
    # The exceptions column, as far as it names a GPU: A100 needs a reboot where others need a reset
    if "A100" in gpu_model and (xid == 64 or (xid == 95 and not mig)):
        return Verdict("reboot", True, f"{what}: on A100 reboot the node")
    advice = row.node_action or row.notes or "look at the Xid before it"
    return Verdict(action, action in BLOCKING, f"{what}: {advice}")


def events(log: str) -> List[Event]:
    """Xids of a kernel log (dmesg, or journalctl -k), in its order."""
    matches = ((line, LINE.search(line)) for line in log.splitlines())
    return [
        Event(match.group(1), int(match.group(2)), match.group(3), _seconds(line)) for line, match in matches if match
    ]


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

    problems: List[str] = []
    own: List[Finding] = []
    at = {_place(address): uuid for address, uuid in (uuids or {}).items()}
    for event in events(log):
        verdict = decide(table, event.xid, event.text, gpu_model)
        if not verdict.blocks or is_handled(event.at_s):
            continue
        text = f"GPU {event.address}: {verdict.text} ({verdict.action})"
        uuid = at.get(_place(event.address))
        if uuid and _is_own(verdict.action, table.get(event.xid), event.text):
            own.append(Finding("xid", False, text, (uuid,)))
        else:
            problems.append(text)
    for line in log.splitlines():
        match = SWITCH.search(line)
        if match and match.group(3) != "Non-fatal" and not is_handled(_seconds(line)):
            problems.append(f"NVSwitch {match.group(1)}: SXid {match.group(2)}: {match.group(4)}")
    if own and not problems:
        return own
    return own + judged("xid", problems, "no Xid since boot that needs anything but a restart of a job")


def _place(address: str) -> str:
    """Where a GPU is on the bus, however it is written: "0000:18:00" of the log, "00000000:18:00.0" of nvidia-smi."""
    domain, _, rest = address.lower().partition(":")
    return f"{domain.lstrip('0') or '0'}:{rest.split('.')[0]}"


def _is_own(action: str, row: Optional[Action], text: str) -> bool:
    """Not of an error of NVLink: its peers see it, too. Nor of Xid 154's other than a reset."""
    if row is None or row.nvidia == "WORKFLOW_NVLINK_ERR" or "p2p" in text.lower():
        return False
    return action in ("reset", "replace", "contact")
