"""nvidia-smi without options: the table. Every line must be understood, and the table must end as it does."""

import re
from typing import List

from .expectation import Expectation, driver_finding
from .findings import Finding, Unreadable
from .gpus import judge_all
from .models import VIRTUAL
from .reading import clean, in_sequence, is_error, not_available, note, shown
from .rules import UNIFIED, Facts

HEAD = re.compile(
    r"^\| NVIDIA-SMI (\S+) +(?:Driver|KMD) Version: (\S+) +(?:CUDA (?:UMD )?Version: (?:\d+\.\d+|N/A|Not Found) +)?\|$"
)
BORDER = re.compile(r"^[+|][-=+]+[+|]$")
TITLES = re.compile(r"^\| (GPU  Name|Fan  Temp|  +\|  +\| +MIG M\.)")
GPU_LINE = re.compile(
    r"^ +(\d+)  (\S.*?) +(On|Off|N/A|WDDM|TCC|MCDM)$"
)  # persistence mode, on Windows the driver's model
USE_LINE = re.compile(r"^ *(N/A|\d+%) +(\S+?)C? +(\S+) +(\S+) / +(\S+)$")
DATE = re.compile(r"^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}$")
MIG_ROW = re.compile(r"^\| +\d+ +\d+ +\d+ +\d+ +\| +\d+MiB / +\d+MiB +\| +\d+ +(\d+|N/A) +\|[ \d]+\|$")
MIG_ROW2 = re.compile(r"^\| +\| +\d+MiB / +\d+MiB +\| +\| +\|$")
PROCESS = re.compile(r"^\| +\d+ +(N/A +N/A|\d+ +\d+) +\d+ +[CGM](\+G)? +\S.*? +(\d+MiB|N/A) +\|$")
PROCESS_OLD = re.compile(r"^\| +\d+ +\d+ +[CGM](\+G)? +\S.*? +(\d+MiB|N/A) +\|$")
TITLES_GPUS_BEGIN = "MIG M."  # in the last line of titles, from R450 on
PROCESS_TITLES = re.compile(r"^\|  (GPU   GI|GPU       PID|      ID)")
NO_PROCESS = re.compile(r"^\|  No running processes found +\|$")
MIG_TITLES = re.compile(r"^\| +(GPU  GI|ID  ID|\|)")
NEEDS_ECC = re.compile(r"\b(P100|V100S?|T4G?|A100|A30|A10G?|A40|L4|L40S?|H100|H20|H200|GH200|B200|B300|GB200|GB300)\b")


def parse(text: str, expected: Expectation) -> List[Finding]:
    """Findings of the plain table. Raises Unreadable."""
    lines = [line.rstrip() for line in clean(text)]
    while lines and not lines[-1]:
        lines.pop()
    if not BORDER.match(lines[-1]) or not lines[-1].startswith("+-"):
        raise Unreadable("the table of nvidia-smi is cut: its last line is no border")
    head = next((HEAD.match(line) for line in lines if HEAD.match(line)), None)
    if not head:
        raise Unreadable("the table of nvidia-smi has no head that is understood")
    gpus = _Table(rows_of_a_gpu=3 if any(TITLES_GPUS_BEGIN in line for line in lines) else 2).read(lines)
    in_sequence([int(facts["index"]) for facts in gpus], "GPU")
    if head.group(1) != head.group(2) and not _is_wsl(*head.groups()):
        raise Unreadable(f"nvidia-smi {head.group(1)} does not belong to the driver {head.group(2)}")
    return [driver_finding(head.group(2), expected), *judge_all(gpus, expected)]


def _is_wsl(tool: str, driver: str) -> bool:
    """Whether these are a Linux nvidia-smi and the driver of the Windows around it, of one release or the next."""
    of_windows = re.match(r"^\d{3}\.\d\d$", driver)
    return bool(of_windows) and 0 <= int(driver[:3]) - int(tool[:3] if tool[:3].isdigit() else 0) < 5


class _Table:
    """The table's parts, line by line: before its head, titles, gpus, mig, processes."""

    def __init__(self, rows_of_a_gpu: int) -> None:
        self.rows_of_a_gpu = rows_of_a_gpu
        self.part = "before"
        self.gpus: List[Facts] = []
        self.rows: List[List[str]] = []
        self.processes = 0
        self.process_titles = False

    def read(self, lines: List[str]) -> List[Facts]:
        """The facts of the GPUs. Raises Unreadable for a line out of place, and for a table that is cut."""
        for line in lines:
            if BORDER.match(line):
                self._border()
            elif line.strip() and not (self.part == "before" and DATE.match(line)):
                self._line(line)
        if self.rows or self.part != "processes":
            raise Unreadable("the table of nvidia-smi is cut: it has no list of processes")
        if not self.process_titles or not self.processes:
            raise Unreadable("the list of processes is cut")
        return self.gpus

    def _border(self) -> None:
        if self.rows:
            for number, row in enumerate(self.rows):
                note(f"|{'|'.join(row)}|", f"row {number + 1} of GPU {len(self.gpus)}")
            self.gpus.append(_facts(self.rows, self.rows_of_a_gpu))
            self.rows = []

    def _line(self, line: str) -> None:
        if self.part == "before" and HEAD.match(line):
            self.part = "titles"
        elif self.part == "titles" and TITLES.match(line):
            self.part = "gpus" if TITLES_GPUS_BEGIN in line else "titles"
        elif re.match(r"^\| MIG devices: +\|$", line) and self.part == "gpus":
            self.part = "mig"
        elif re.match(r"^\| Processes: +", line) and self.part in ("gpus", "mig", "titles"):
            self.part = "processes"
            self.process_titles = "GPU Memory" in line  # the oldest form has its titles here
        elif self.part == "processes":
            self._process(line)
        elif self.part == "mig":
            _refuse_bad_mig(line)
        else:
            self.part = "gpus"
            self.rows.append(_cells(line))

    def _process(self, line: str) -> None:
        if PROCESS_TITLES.match(line):
            self.process_titles = True
            return
        none = NO_PROCESS.match(line)
        if not none and not PROCESS.match(line) and not PROCESS_OLD.match(line):
            raise _not_understood(line)
        if not none and is_error(line.strip("| ")):
            raise _not_understood(line)
        note(line, "a process, not judged" if not none else "no process")
        self.processes += 1


def _not_understood(line: str) -> Unreadable:
    return Unreadable(f"nvidia-smi prints a line that is not understood: {shown(line)}")


def _refuse_bad_mig(line: str) -> None:
    """Raises Unreadable for a MIG device with errors, and for a line that is none."""
    device = MIG_ROW.match(line)
    note(line, "a MIG device" if device else "a MIG device, second row")
    if device and device.group(1) not in ("0", "N/A"):
        raise Unreadable(f"a MIG device has {device.group(1)} uncorrected ECC errors")
    if not device and not MIG_ROW2.match(line) and not MIG_TITLES.match(line) and "No MIG devices found" not in line:
        raise _not_understood(line)


def _cells(line: str) -> List[str]:
    cells = line[1:-1].split("|")
    if not line.startswith("|") or not line.endswith("|") or len(cells) != 3:
        raise _not_understood(line)
    return cells


def _facts(rows: List[List[str]], height: int) -> Facts:
    """The facts of one GPU: two rows, three from R450 on."""
    if len(rows) != height:
        raise Unreadable(f"a GPU of the table has {len(rows)} rows, not {height}")
    first, second = GPU_LINE.match(rows[0][0].rstrip()), USE_LINE.match(rows[1][0].rstrip())
    bus = re.match(r"^ +(\S+) +(On|Off|N/A)$", rows[0][1].rstrip())
    memory = re.match(r"^ +(\d+MiB|N/A) / +(\d+MiB)$", rows[1][1].rstrip())
    use = re.match(r"^ +(\d+%|N/A) +(\S.*)$", rows[1][2].rstrip())
    if not first or not second or not bus or (not memory and not not_available(rows[1][1].strip())) or not use:
        both = f"{shown('|'.join(rows[0]))} and {shown('|'.join(rows[1]))}"
        raise Unreadable(f"nvidia-smi prints a GPU that is not understood: {both}")
    fan, temperature, state, draw, limit = second.groups()
    mode = use.group(2).strip()
    facts = {
        "index": first.group(1),
        "name": first.group(2),
        "pci.bus_id": bus.group(1),
        "temperature.gpu": temperature,
        "pstate": state,
        "power.draw": _unit(draw, "W"),
        "power.limit": _unit(limit, "W"),
        "utilization.gpu": _unit(use.group(1), "%"),
        "compute_mode": "Exclusive_Thread" if mode == "E. Thread" else mode,
    }
    if fan != "N/A":
        facts["fan.speed"] = _unit(fan, "%")
    mig = _mig_mode(rows, facts["index"])
    if mig != "N/A":
        facts["mig.mode.current"] = mig
    if memory:
        facts["memory.total"] = _unit(memory.group(2), "MiB")
        facts["memory.used"] = _unit(memory.group(1), "MiB")
    elif mig != "Enabled" and not UNIFIED.search(facts["name"]):
        raise Unreadable(f"GPU {facts['index']} shows no memory")
    facts.update(_ecc(rows[0][2].strip(), mig == "Enabled", facts["index"], facts["name"]))
    return facts


def _mig_mode(rows: List[List[str]], index: str) -> str:
    if len(rows) < 3:
        return "N/A"
    mode = rows[2][2].strip()
    if rows[2][0].strip() or rows[2][1].strip():
        raise Unreadable(f"nvidia-smi prints a line that is not understood: {shown('|'.join(rows[2]))}")
    if mode not in ("N/A", "Disabled", "Enabled"):
        known = "Enabled, Disabled or N/A (a star: it changes at a reset)"
        raise Unreadable(f"the MIG mode of GPU {index} is {mode!r}, not {known}")
    return mode


def _ecc(errors: str, mig: bool, index: str, name: str) -> Facts:
    """The column of volatile uncorrected errors: a number, Off, or what a GPU says that is cut up or counts none."""
    if errors == "Off":
        return {"ecc.mode.current": "Disabled"}
    if errors.isdigit():
        return {"ecc.mode.current": "Enabled", "ecc.errors.uncorrected.volatile.total": errors}
    if errors != "N/A" and not (errors == "On" and mig):
        raise Unreadable(f"the ECC errors of GPU {index} are {errors!r}, not a number")
    if not mig and not VIRTUAL.search(name) and NEEDS_ECC.search(name.replace("-", " ")):
        raise Unreadable(f"the ECC errors of GPU {index} are not available, and a {name} counts them")
    return {}


def _unit(value: str, unit: str) -> str:
    """ "50W" as "--query-gpu" says it, "50 W"."""
    return re.sub(unit + "$", " " + unit, value) if not not_available(value) else value
