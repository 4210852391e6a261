"""dcgmi of DCGM 3 and 4: which form of output it is, and `discovery -l`, `health -c`,
`nvlink -s`. The diagnostic has a module of its own.
"""

import re
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from . import dcgmi_diag
from .expectation import Expectation, count_finding
from .findings import Finding, Unreadable, bad, good, judged
from .models import NAME, UUID, declared_model, named_as_declared, nvlinks
from .reading import ERROR_TEXT, clean, in_sequence, note, shown, whole

BORDER = dcgmi_diag.BORDER
BUS_ID = re.compile(r"^[0-9A-F]{8}:[0-9A-F]{2}:[0-9A-F]{2}\.0$")
COUNT = re.compile(r"^(\d+) (GPU|NvSwitch|Switch|ConnectX|CPU|CPU Core)(?:s|es)? found(?: \((?:Active|All)\))?\.$")
NOT_ALL = "Note: Use -a flag to show all GPUs"  # DCGM 4.5 on: some are lost, or kept out of use
TITLES = re.compile(r"^\| (GPU ID|Switch ID|ConnectX|CPU ID|[A-Z]\w+ ID)\s*\|(.*\|)?$")
OVERALL = ("Healthy", "Warning", "Failure")


def parse(text: str, expected: Expectation) -> List[Finding]:
    """Findings of one output of dcgmi. Raises Unreadable."""
    lines = [line.rstrip() for line in clean(text)]
    while lines and not lines[-1]:
        lines.pop()
    first = next(line for line in lines if line)
    if re.match(r"^Successfully ran diagnostic for group\.$", first) and "{" in text[:200]:
        return _json(text.split("\n", text[: text.index("{")].count("\n"))[-1], expected)
    if first.startswith("{"):
        return _json(text, expected)
    if COUNT.match(first):
        return _discovery(lines, expected)
    if any("NvLink Link Status" in line for line in lines[:3]):
        return _nvlink(lines, expected)
    if any("Health Monitor Report" in line for line in lines[:4]):
        return _health(lines)
    return dcgmi_diag.parse_table(lines, expected)


def _json(text: str, expected: Expectation) -> List[Finding]:
    data = dcgmi_diag.decoded(text)
    if "Overall Health" in str(data.get("body", "")) or "Health Monitor Report" in str(data.get("header", "")):
        return _health_json(data)
    return dcgmi_diag.parse_json(data, expected)


def _health_json(data: Dict[str, Any]) -> List[Finding]:
    body = data.get("body")
    overall = body.get("Overall Health") if isinstance(body, dict) else None
    value = overall.get("value") if isinstance(overall, dict) else None
    if not isinstance(overall, dict) or value not in OVERALL:
        raise Unreadable(f"the overall health is {value!r}")
    return [Finding("dcgm_health", value == "Healthy" and not overall.get("children"), f"DCGM's watches say {value}")]


def _health(lines: Sequence[str]) -> List[Finding]:
    if not BORDER.match(lines[-1]):
        raise Unreadable("the health report is cut: its last line is no border")
    overall: List[str] = []
    watches: List[str] = []
    for line in lines:
        note(line, "a watch")
        match = re.match(r"^\|\s*Overall Health\s*[:|]\s*(.*?)\s*\|$", line)
        if match:
            overall.append(match.group(1))
        elif line and not BORDER.match(line) and not re.match(r"^\|? ?Health Monitor Report *\|?$", line):
            watches.append(line)
    if len(overall) != 1 or overall[0] not in OVERALL:
        raise Unreadable(f"the overall health is {', '.join(overall) or 'not stated'}")
    healthy_watch = re.compile(r"^\|[^|]*\|?\s*(Healthy)?\s*\|$")
    wrong = [line for line in watches if not healthy_watch.match(line) or ERROR_TEXT.search(line)]
    if overall[0] != "Healthy" or wrong:
        return [bad("dcgm_health", f"DCGM's watches say {overall[0]}{': ' + shown(wrong[0]) if wrong else ''}")]
    return [good("dcgm_health", "DCGM's watches say Healthy")]


class Discovered(NamedTuple):
    """One GPU of `discovery -l`: its id, and Name, PCI Bus ID and Device UUID as far as they are shown."""

    number: int
    told: Dict[str, str]


class _Discovery:
    """The tables of `discovery -l`, line by line. kind: the one that is being read, "" before the first."""

    def __init__(self) -> None:
        self.kind = ""
        self.announced: Dict[str, int] = {}
        self.rows: Dict[str, int] = {}
        self.borders: Dict[str, int] = {}
        self.gpus: List[Discovered] = []

    def read(self, line: str) -> None:
        """One line. Raises Unreadable for one that is not understood, or out of place."""
        count = COUNT.match(line)
        note(line, f"a row of the {self.kind or 'first'} table")
        if count:
            self.kind = count.group(2)
            self.announced[self.kind] = int(count.group(1))
            self.rows.setdefault(self.kind, 0)
            self.borders[self.kind] = 0
        elif self.kind and BORDER.match(line):
            self.borders[self.kind] += 1
        elif line.startswith(NOT_ALL):
            raise Unreadable(
                "DCGM knows of GPUs that are not active, and does not list them: ask dcgmi discovery -l -a"
            )
        elif not line or TITLES.match(line):
            return
        elif self.kind == "GPU":
            self._gpu(line)
        elif self.kind and re.match(r"^\| \S.*\|$", line) and not ERROR_TEXT.search(line):
            self.rows[self.kind] += 1 if re.match(r"^\| \d+ ", line) else 0
        else:
            raise Unreadable(f"dcgmi discovery prints a line that is not understood: {shown(line)}")

    def _gpu(self, line: str) -> None:
        match = re.match(r"^\| (\d*) *\| (Status|Name|PCI Bus ID|Device UUID): (.*?) *\|$", line)
        if match and match.group(2) == "Status":  # with -a, of one that is not active
            raise Unreadable(f"GPU {match.group(1)} is {match.group(3)}, as DCGM says")
        if not match:
            raise Unreadable(f"dcgmi discovery prints a line that is not understood: {shown(line)}")
        number, key, value = match.groups()
        if key == "Name":
            self.gpus.append(Discovered(whole(number, "the id of a GPU"), {}))
        if not self.gpus or key in self.gpus[-1].told:
            raise Unreadable(f"dcgmi discovery prints a line out of place: {shown(line)}")
        self.gpus[-1].told[key] = value


def _discovery(lines: Sequence[str], expected: Expectation) -> List[Finding]:
    if not BORDER.match(lines[-1]):
        raise Unreadable("the list of dcgmi discovery is cut: its last line is no border")
    tables = _Discovery()
    for line in lines:
        tables.read(line)
    gpus, announced = tables.gpus, tables.announced
    in_sequence([gpu.number for gpu in gpus], "GPU")
    if len(gpus) != announced.get("GPU"):
        raise Unreadable(f"{len(gpus)} of {announced.get('GPU')} GPUs are listed")
    for number, told in gpus:
        if not NAME.match(told["Name"]) or not UUID.match(told.get("Device UUID", "")):
            raise Unreadable(f"GPU {number} is not understood")
        if not BUS_ID.match(told.get("PCI Bus ID", "")):
            raise Unreadable(f"the bus id of GPU {number} is {told.get('PCI Bus ID', 'not stated')!r}")
    if len({told["Device UUID"] for _, told in gpus}) != len(gpus):
        raise Unreadable("one GPU is listed twice")
    if not {"NvSwitch", "Switch"} & set(announced) or min(tables.borders.values()) < 2:
        raise Unreadable("the list of dcgmi discovery is cut: a table is missing")
    for kind in ("NvSwitch", "Switch"):
        if kind in announced and tables.rows[kind] != announced[kind]:
            raise Unreadable(f"{tables.rows[kind]} of {announced[kind]} NVSwitches are listed")
    names = sorted({told["Name"] for _, told in gpus})
    differ = [bad("gpu_model", f"the GPUs differ: {', '.join(names)}")] if len(names) > 1 else []
    return [count_finding(len(gpus), expected), *named_as_declared(names, expected), *differ]


def _nvlink(lines: Sequence[str], expected: Expectation) -> List[Finding]:
    links: Dict[Tuple[str, int], List[str]] = {}
    part, keyed = "", False
    current: Optional[List[str]] = None
    for line in lines:
        note(line, f"of {part or 'the list'}")
        who = re.match(r"^\s+(gpuId|physicalId|nvSwitchId) (\d+):$", line)
        title = re.match(r"^\|\s+NvLink Link Status\s+\|$", line) or re.match(r"^\s+No NvSwitches found\.$", line)
        if not line or BORDER.match(line) or title:
            continue
        if re.match(r"^(GPUs|NvSwitches):$", line):
            part = line[:-1]
        elif who:
            current = links[part, int(who.group(2))] = []
        elif re.match(r"^\s+[UDX_]( [UDX_])*$", line) and current is not None:
            current += line.split()
        elif re.match(r"^\s+Link Entities: \S", line) and current:
            continue
        elif line.startswith("Key: Up=U"):
            keyed = True
        else:
            raise Unreadable(f"dcgmi nvlink prints a line that is not understood: {shown(line)}")
    gpus = [number for kind, number in links if kind == "GPUs"]
    if not keyed or not gpus or not all(links.values()):
        raise Unreadable("the list of NVLinks is cut")
    in_sequence(gpus, "GPU")
    problems: List[str] = []
    needed = nvlinks(declared_model(expected.gpu_model, expected.models), len(gpus))
    for (kind, number), states in links.items():
        if kind == "GPUs" and expected.mig and "U" not in states:
            continue  # cut up
        if kind == "GPUs" and needed and states.count("U") != needed:
            problems.append(f"{states.count('U')} of {needed} links of GPU {number} are up")
            continue
        down = [state for state in states if state in "DX"]
        if down or "U" not in states:
            problems.append(f"{len(down) or 'all'} links of {kind[:-1]} {number} are not up")
    if len({len(states) for (kind, _), states in links.items() if kind == "GPUs"}) > 1:
        problems.append("the GPUs have different numbers of links")
    return [count_finding(len(gpus), expected), *judged("nvlink", problems, "all links are up")]
