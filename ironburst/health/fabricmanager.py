"""Fabric manager: `systemctl status|show|is-active nvidia-fabricmanager`, its journal, /var/log/fabricmanager.log, or
the fabric's state as nvidia-smi has it (`-q`, or `--query-gpu=...fabric.state,fabric.status`). It must be running now,
and must have reported it without an error since.
"""

import re
from typing import Dict, List

from . import smi, smi_csv
from .expectation import Expectation, unusual_number
from .findings import Finding, Unreadable, bad, good, judged
from .reading import clean, ends_open, not_available, note, shown

# A journal line; "-o short-iso" has its own time
JOURNAL = re.compile(r"^(?:[A-Z][a-z]{2} [ \d]?\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\S+) \S+ (\S+?)(?:\[\d+\])?: (.*)$")
LOG = re.compile(r"^\[[A-Z][a-z]{2} [ \d]?\d \d{4} \d\d:\d\d:\d\d\] \[([A-Z]+) *\] \[tid \d+\] (.*)$")
TROUBLE = re.compile(
    r"\berrors?\b|fail|fatal|unable|couldn't|can't|cannot|don't match|doesn't match|mismatch|not match|timed? ?out|"
    r"degraded|\bdown\b|abort|NOTHING_TO_DO|exit code|status=[1-9]|killed|dumped|not supported|denied|exited, code|"
    r"exiting|terminat",
    re.IGNORECASE,
)
HARMLESS = re.compile(
    r"PIDFile= references a path below legacy|non-fatal error 0\b|code=exited, status=0/SUCCESS|"
    r"Error recovery (mode|is) "
)
STARTED = re.compile(
    r"Started (nvidia-fabricmanager\.service - )?NVIDIA fabric manager service|"
    r"Successfully configured all the available|Started \"Nvidia Fabric Manager\"",
    re.IGNORECASE,
)
BEGIN = re.compile(r"Starting (nvidia-fabricmanager\.service - )?NVIDIA fabric manager service", re.IGNORECASE)
STOPPED = re.compile(
    r"^(Stopp(ed|ing)|Deactivat)|: (Deactivated|Succeeded|Stopp)|Stopped \"Nvidia Fabric Manager\"", re.IGNORECASE
)
JOURNAL_UNIT = re.compile(
    r"^(systemd|nv-fabricmanager|nv-fabricmanage|nvidia-fabricmanager-start\.sh|nvlsm|fabricmanager|"
    r"nvidia-fabricmanager.*)$"
)
SERVICE_STATES = ("active", "inactive", "failed", "activating", "deactivating", "unknown", "reloading")
FABRIC_STATES = ("Completed", "In Progress", "Not Started")
SHOWN_WHEN_GOOD = {"LoadState": "loaded", "ActiveState": "active", "SubState": "running", "Result": "success"}
WHOLE_MESSAGE = re.compile(r"([.!>…\"]|NVL5\+? system|0/SUCCESS\))$")


def parse(text: str, expected: Expectation) -> List[Finding]:
    """Findings of any of these forms. Raises Unreadable."""
    lines = [line.rstrip() for line in clean(text)]
    while lines and not lines[-1]:
        lines.pop()
    first = next(line for line in lines if line)
    if "=NVSMI LOG=" in text or first.startswith(("<?xml", "<nvidia_smi_log")):
        return _from_smi(smi.parse(text, expected), text)
    if first.strip() in SERVICE_STATES:
        if len([line for line in lines if line]) != 1:
            raise Unreadable("more than the state is printed")
        return [Finding("fabric_manager", first.strip() == "active", f"the service is {first.strip()}")]
    if any(re.match(r"^(ActiveState|SubState|LoadState)=", line) for line in lines):
        return _show(lines)
    if re.match(r"^[^\w\s]? ?nvidia-fabricmanager\.service( - .*)?$", first):
        return _status(lines, ends_open(text))
    if JOURNAL.match(first) or first.startswith("-- "):
        return _journal(lines, ends_open(text))
    if LOG.match(first):
        return _log(lines, ends_open(text))
    if "fabric.st" in first or re.search(r"\b(Completed|In Progress|Not Started)\b", first):
        if "fabric.st" not in first and not expected.columns:
            return _bare(lines, expected)
        return _from_smi(smi_csv.parse(text, expected), text)
    if re.match(r"^\s*Fabric$", first):
        return _section(lines, expected)
    raise Unreadable(f"no form of the fabric manager's output begins with {shown(first)}")


def _from_smi(findings: List[Finding], text: str) -> List[Finding]:
    states = re.findall(r"(?m)^\s+State\s+: (.*?)\s*$|<state>(.*?)</state>", text)
    if "=NVSMI LOG=" in text or text.lstrip().startswith("<"):
        stated = sorted({in_text or in_xml for in_text, in_xml in states})
        if stated != ["Completed"]:
            return [*findings, bad("fabric", f"the fabric's state is {', '.join(stated) or 'not stated'}")]
        return [*findings, good("fabric", "the fabric is completed")]
    head, *rows = [[cell.strip() for cell in line.split(",")] for line in text.strip().splitlines()]
    if "fabric.state" not in head:
        return [*findings, bad("fabric", "the fabric's state is not asked for")]
    if any(not_available(row[head.index("fabric.state")]) for row in rows if len(row) == len(head)):
        return [*findings, bad("fabric", "the fabric's state is not available")]
    return [*findings, good("fabric", "the fabric is completed")]


def _bare(lines: List[str], expected: Expectation) -> List[Finding]:
    """--query-gpu=fabric.state[,fabric.status] --format=csv,noheader"""
    problems: List[str] = []
    for number, line in enumerate(lines):
        cells = [cell.strip() for cell in line.split(",")]
        if cells and cells[0] == str(number):
            cells = cells[1:]
        if cells[0] not in FABRIC_STATES or cells[1:] not in ([], ["Success"]):
            raise Unreadable(f"the fabric's state of GPU {number} is {line!r}")
        if cells[0] != "Completed":
            problems.append(f"GPU {number}: the fabric's state is {cells[0]}")
    if expected.gpus is not None and len(lines) != expected.gpus:
        problems.append(f"{len(lines)} of {expected.gpus} GPUs are listed")
    if len(lines) not in (1, 2, 4, 8, 16) and expected.gpus is None:
        problems.append(unusual_number(len(lines)))
    return judged("fabric", problems, f"the fabric is completed on {len(lines)} GPUs")


def _section(lines: List[str], expected: Expectation) -> List[Finding]:
    """nvidia-smi -q | grep -A 2 Fabric"""
    fabrics: List[Dict[str, str]] = []
    for line in lines:
        pair = re.match(r"^\s+(State|Status|CliqueId|ClusterUUID|Summary|Bandwidth)\s+: (.*)$", line)
        if re.match(r"^\s*Fabric$", line):
            fabrics.append({})
        elif pair and fabrics and pair.group(1) not in fabrics[-1]:
            fabrics[-1][pair.group(1)] = pair.group(2).strip()
            note(line, f"of the fabric of GPU {len(fabrics) - 1}")
        elif line.strip() not in ("--", "", "Health"):
            raise Unreadable(f"a line of the fabric's section is not understood: {shown(line)}")
    count = len(fabrics)
    lacking = [fabric for fabric in fabrics if not {"State", "Status"} <= set(fabric)]
    if not fabrics or lacking or (expected.gpus is not None and count != expected.gpus):
        raise Unreadable("the fabric's section is cut: each needs State and Status")
    pairs = {(fabric["State"], fabric["Status"]) for fabric in fabrics}
    wrong = pairs - {("Completed", "Success")}
    problems = [f"the fabric is {text}" for text in sorted(f"{state}, {status}" for state, status in wrong)]
    return judged("fabric", problems, f"the fabric is completed on {count} GPUs")


def _show(lines: List[str]) -> List[Finding]:
    values: Dict[str, str] = {}
    for line in lines:
        match = re.match(r"^([A-Z]\w+)=(.*)$", line)
        if not match or match.group(1) in values:
            raise Unreadable(f"systemctl show prints a line that is not understood: {shown(line)}")
        values[match.group(1)] = match.group(2)
        note(line, "a value of the service")
    for key, wanted in SHOWN_WHEN_GOOD.items():
        if key in values and values[key] != wanted:
            return [bad("fabric_manager", f"{key} is {values[key] or 'empty'}, not {wanted}")]
    if "ActiveState" not in values or "SubState" not in values:
        raise Unreadable("systemctl show says no ActiveState or no SubState")
    if values.get("MainPID") == "0" or not re.match(r"^\d*$", values.get("MainPID", "")):
        return [bad("fabric_manager", "the service has no process")]
    return [good("fabric_manager", "the service is active and running")]


def _status(lines: List[str], cut: bool) -> List[Finding]:
    values: Dict[str, str] = {}
    tree: List[str] = []
    log: List[str] = []
    blank = False
    for line in lines[1:]:
        entry = re.match(r"^ +([A-Z][A-Za-z ]*): (.*)$", line)
        if not line.strip():
            blank = True
        elif JOURNAL.match(line) and (blank or "CGroup" in values):
            log.append(line)
        elif re.match(r"^(Warning: .*(journal|permissions)|Hint: |Notice: )", line):
            if TROUBLE.search(line.replace("not be", "").replace("permissions", "")):
                raise Unreadable(f"systemctl prints a line that is not understood: {shown(line)}")
        elif re.match(r"^ +[├└│]|^ +[|`]-|^ +─?\d+ /", line):
            tree.append(line)
        elif entry and not blank:
            values.setdefault(entry.group(1), entry.group(2))
            note(line, "a value of the service")
        elif re.match(r"^ +(Drop-In: .*|/\S+|[\w.-]+\.conf)$", line) or re.match(r"^TriggeredBy: ", line):
            continue
        else:
            raise Unreadable(f"systemctl prints a line that is not understood: {shown(line)}")
    state = values.get("Active", "")
    match = re.match(r"^(\w+) \(([\w-]+)\)(?: (?:since|\(Result).*)?$", state)
    if not match:
        raise Unreadable(f"the service's state is {state!r}, which is not understood")
    if match.group(1, 2) != ("active", "running"):
        return [bad("fabric_manager", f"the service is {match.group(1)} ({match.group(2)})")]
    if not re.match(r"^active \(running\) since .*; .* ago$", state):
        raise Unreadable(f"the service's state is {state!r}, which is not understood")
    if not values.get("Loaded", "").startswith("loaded ("):
        return [bad("fabric_manager", f"the unit is not loaded: {values.get('Loaded', 'not stated')}")]
    if not re.match(r"^\d+ \(nv-fabricmanage", values.get("Main PID", "")):
        raise Unreadable(f"the main process is {values.get('Main PID', 'not stated')!r}, not nv-fabricmanager")
    pid = values["Main PID"].split()[0]
    if "CGroup" not in values or not any(re.search(r"\b%s \S*nv-fabricmanager\b" % pid, line) for line in tree):
        raise Unreadable("the output is cut: it does not list the running process")
    bad_process = [text for key, text in values.items() if key == "Process" and "status=0/SUCCESS" not in text]
    if bad_process:
        return [bad("fabric_manager", f"a start command did not succeed: {bad_process[0]}")]
    if log:
        _lines(log, cut, running=True)
    elif cut and not any(re.search(r"fabricmanager\.cfg|0x[0-9a-f]{16}$", line) for line in tree[-1:]):
        raise Unreadable("the output ends in the middle of a line")
    return [good("fabric_manager", "the service is active (running), and its last lines name no error")]


def _lines(lines: List[str], cut: bool, running: bool) -> None:
    """Raises Unreadable for a line of the journal since the last start that names trouble, or that is not a line of the
    journal."""
    messages = []
    for line in lines:
        match = JOURNAL.match(line)
        if not match:
            if line.startswith("-- ") or not line.strip():
                continue
            raise Unreadable(f"the journal has a line that is not understood: {shown(line)}")
        note(line, "a line of the journal")
        if not JOURNAL_UNIT.match(match.group(1)):
            raise Unreadable(f"the journal has a line of {match.group(1)}, which is not the fabric manager")
        messages.append(match.group(2))
    last = max([number for number, message in enumerate(messages) if BEGIN.search(message)] or [-1])
    since = messages[last + 1 :]
    for message in since:
        if STOPPED.search(message):
            raise Unreadable(f"the fabric manager has stopped: {shown(message)}")
        if TROUBLE.search(HARMLESS.sub("", message)):
            raise Unreadable(f"the fabric manager names trouble: {shown(message)}")
    if not running and not any(STARTED.search(message) for message in since):
        raise Unreadable("the journal does not say that the fabric manager has started")
    if running and last >= 0 and not any(STARTED.search(message) for message in since):
        raise Unreadable("the fabric manager has begun to start, and not said that it has")
    if cut and messages and not WHOLE_MESSAGE.search(messages[-1]):
        raise Unreadable("the output ends in the middle of a line")


def _journal(lines: List[str], cut: bool) -> List[Finding]:
    _lines(lines, cut, running=False)
    return [good("fabric_manager", "it has started, and named no error since")]


def _log(lines: List[str], cut: bool) -> List[Finding]:
    positive = False
    for line in lines:
        match = LOG.match(line)
        if not match:
            if not line or re.match(r"^Message (payload|header) details:", line) or re.match(r"^\s+\S", line):
                if TROUBLE.search(line):
                    raise Unreadable(f"the fabric manager names trouble: {shown(line)}")
                continue
            raise Unreadable(f"the log has a line that is not understood: {shown(line)}")
        note(line, "a line of its log")
        level, message = match.groups()
        if level not in ("INFO", "NOTICE", "DEBUG"):
            raise Unreadable(f"the fabric manager names trouble ({level}): {shown(message)}")
        if TROUBLE.search(HARMLESS.sub("", message)):
            raise Unreadable(f"the fabric manager names trouble: {shown(message)}")
        positive = positive or bool(
            re.search(r"successfully|multicast group \d+ is (allocated|freed)", message, re.IGNORECASE)
        )
    if not positive:
        raise Unreadable("the log never says that something succeeded")
    if cut and not WHOLE_MESSAGE.search(lines[-1]):
        raise Unreadable("the output ends in the middle of a line")
    return [good("fabric_manager", "its log names no error")]
