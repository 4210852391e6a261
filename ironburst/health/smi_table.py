"""nvidia-smi without options: the table. Every line must be understood, and the table must end as it does."""

import re
from typing import Dict, List, Optional

from .gpus import judge_all
from .report import Expectation, Finding, Unreadable, clean, driver_finding, in_sequence, is_error, not_available, shown

HEAD = re.compile(r"^\| NVIDIA-SMI (\S+) +(?:Driver|KMD) Version: (\S+) +CUDA (?:UMD )?Version: (\d+\.\d+|N/A) +\|$")
BORDER = re.compile(r"^[+|][-=+]+[+|]$")
TITLES = re.compile(r"^\| (GPU  Name|Fan  Temp|  +\|  +\| +MIG M\.)")
GPU_LINE = re.compile(r"^ +(\d+)  (\S.*?) +(On|Off)$")
USE_LINE = re.compile(r"^ *(N/A|\d+%) +(\S+?)C? +(\S+) +(\S+) / +(\S+)$")
DATE = re.compile(r"^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}$")
MIG_ROW = re.compile(r"^\| +\d+ +\d+ +\d+ +\d+ +\| +\d+MiB / +\d+MiB +\| +\d+ +(\d+|N/A) +\|[ \d]+\|$")
MIG_ROW2 = re.compile(r"^\| +\| +\d+MiB / +\d+MiB +\| +\| +\|$")
PROCESS = re.compile(r"^\| +\d+ +(N/A +N/A|\d+ +\d+) +\d+ +[CGM](\+G)? +\S.*? +(\d+MiB|N/A) \|$")
PROCESS_OLD = re.compile(r"^\| +\d+ +\d+ +[CGM](\+G)? +\S.*? +(\d+MiB|N/A) \|$")
COMPUTE = {
    "Default": "Default",
    "E. Process": "E. Process",
    "Prohibited": "Prohibited",
    "E. Thread": "Exclusive_Thread",
}


def parse(text: str, expected: Expectation) -> List[Finding]:
    lines = [line.rstrip() for line in clean(text)]
    while lines and not lines[-1]:
        lines.pop()
    if not BORDER.match(lines[-1]) or not lines[-1].startswith("+-"):
        raise Unreadable("the table of nvidia-smi is cut: its last line is no border")
    head = next((HEAD.match(line) for line in lines if HEAD.match(line)), None)
    if not head:
        raise Unreadable("the table of nvidia-smi has no head that is understood")
    height = 3 if any("MIG M." in line for line in lines) else 2
    part, gpus, pending = "before", [], None  # type: ignore
    processes, process_titles = 0, False
    for line in lines:
        if not line.strip() or (part == "before" and DATE.match(line)) or BORDER.match(line):
            if BORDER.match(line) and pending:
                gpus.append(_finish(pending, height))
                pending = None
            continue
        if part == "before" and HEAD.match(line):
            part = "titles"
        elif part == "titles" and TITLES.match(line):
            part = "titles" if "MIG M." not in line else "gpus"
        elif re.match(r"^\| MIG devices: +\|$", line) and part == "gpus":
            part = "mig"
        elif re.match(r"^\| Processes: +", line) and part in ("gpus", "mig", "titles"):
            part = "processes"
            process_titles = "GPU Memory" in line  # the oldest form has its titles here
        elif part == "processes":
            if re.match(r"^\|  (GPU   GI|GPU       PID|      ID)", line):
                process_titles = True
            elif (
                re.match(r"^\|  No running processes found +\|$", line)
                or PROCESS.match(line)
                or PROCESS_OLD.match(line)
            ):
                if is_error(line.strip("| ")) and "No running" not in line:
                    raise Unreadable(f"nvidia-smi prints a line that is not understood: {shown(line)}")
                processes += 1
            else:
                raise Unreadable(f"nvidia-smi prints a line that is not understood: {shown(line)}")
        elif part == "mig":
            row = MIG_ROW.match(line)
            if row and row.group(1) not in ("0", "N/A"):
                raise Unreadable(f"a MIG device has {row.group(1)} uncorrected ECC errors")
            if (
                not row
                and not MIG_ROW2.match(line)
                and not re.match(r"^\| +(GPU  GI|ID  ID|\|)", line)
                and "No MIG devices found" not in line
            ):
                raise Unreadable(f"nvidia-smi prints a line that is not understood: {shown(line)}")
        else:
            part = "gpus"
            pending = (pending or []) + [_cells(line)]
    if pending or part != "processes":
        raise Unreadable("the table of nvidia-smi is cut: it has no list of processes")
    if not process_titles or not processes:
        raise Unreadable("the list of processes is cut")
    in_sequence([int(facts["index"]) for facts in gpus], "GPU")
    if head.group(1) != head.group(2):
        raise Unreadable(f"nvidia-smi {head.group(1)} does not belong to the driver {head.group(2)}")
    return [driver_finding(head.group(2), expected)] + judge_all(gpus, expected)


def _cells(line: str) -> List[str]:
    cells = line[1:-1].split("|")
    if not line.startswith("|") or not line.endswith("|") or len(cells) != 3:
        raise Unreadable(f"nvidia-smi prints a line that is not understood: {shown(line)}")
    return cells


def _finish(rows: List[List[str]], height: int) -> Dict[str, str]:
    """The facts of one GPU: two rows, three from R450 on."""
    if len(rows) != height:
        raise Unreadable(f"a GPU of the table has {len(rows)} rows, not {height}")
    first, second = GPU_LINE.match(rows[0][0].rstrip()), USE_LINE.match(rows[1][0].rstrip())
    bus = re.match(r"^ +(\S+) +(On|Off|N/A)$", rows[0][1].rstrip())
    memory = re.match(r"^ +(\d+MiB|N/A) / +(\d+MiB)$", rows[1][1].rstrip())
    use = re.match(r"^ +(\d+%|N/A) +(\S.*)$", rows[1][2].rstrip())
    if not first or not second or not bus or (not memory and rows[1][1].strip() != "N/A") or not use:
        raise Unreadable(
            f"nvidia-smi prints a GPU that is not understood: {shown('|'.join(rows[0]))} and {shown('|'.join(rows[1]))}"
        )
    fan, temperature, state, draw, limit = second.groups()
    facts = {
        "index": first.group(1),
        "name": first.group(2),
        "pci.bus_id": bus.group(1),
        "temperature.gpu": temperature,
        "pstate": state,
        "power.draw": _unit(draw, "W"),
        "power.limit": _unit(limit, "W"),
        "utilization.gpu": _unit(use.group(1), "%"),
        "compute_mode": COMPUTE.get(use.group(2).strip(), use.group(2).strip()),
    }
    if fan != "N/A":
        facts["fan.speed"] = _unit(fan, "%")
    mig = rows[2][2].strip() if len(rows) == 3 else "N/A"
    if len(rows) == 3 and (rows[2][0].strip() or rows[2][1].strip()):
        raise Unreadable(f"nvidia-smi prints a line that is not understood: {shown('|'.join(rows[2]))}")
    if mig not in ("N/A", "Disabled", "Enabled"):
        raise Unreadable(
            f"the MIG mode of GPU {facts['index']} is {mig!r}, not Enabled, Disabled or N/A (a star: it changes at a reset)"
        )
    if mig != "N/A":
        facts["mig.mode.current"] = mig
    if memory:
        facts["memory.total"] = _unit(memory.group(2), "MiB")
        facts["memory.used"] = _unit(memory.group(1), "MiB")
    elif mig != "Enabled":
        raise Unreadable(f"GPU {facts['index']} shows no memory")
    ecc = rows[0][2].strip()
    if ecc == "Off":
        facts["ecc.mode.current"] = "Disabled"
    elif ecc.isdigit():
        facts.update({"ecc.mode.current": "Enabled", "ecc.errors.uncorrected.volatile.total": ecc})
    elif not (ecc == "N/A" or (ecc == "On" and mig == "Enabled")):
        raise Unreadable(f"the ECC errors of GPU {facts['index']} are {ecc!r}, not a number")
    elif ecc == "N/A" and mig != "Enabled" and _needs_ecc(facts["name"]):
        raise Unreadable(f"the ECC errors of GPU {facts['index']} are not available, and a {facts['name']} counts them")
    return facts


def _needs_ecc(name: str) -> Optional[str]:
    match = re.search(
        r"\b(P100|V100S?|T4G?|A100|A30|A10G?|A40|L4|L40S?|H100|H20|H200|GH200|B200|B300|GB200|GB300)\b",
        name.replace("-", " "),
    )
    return match.group(0) if match else None


def _unit(value: str, unit: str) -> str:
    """ "50W" as "--query-gpu" says it, "50 W"."""
    return re.sub(unit + "$", " " + unit, value) if not not_available(value) else value
