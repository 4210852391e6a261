"""nvidia-smi: which form of output it is, and the two list forms (`-L`, `nvlink -s`). The other forms have modules of
their own.

Understood: the plain table, `-q` (whole or by `-d SECTION`), `-q -x`, `-L`, `nvlink -s` (or `--status`), `topo -m`, and
`--query-gpu=... --format=csv`, with or without header and units. Anything else is refused.
"""

import re
from typing import List, Tuple

from . import smi_csv, smi_query, smi_table, smi_topo
from .gpus import NAME, UUID, board_of, find_models, model_name_matches
from .report import (
    Expectation,
    Finding,
    Unreadable,
    bad,
    clean,
    count_finding,
    decimal,
    ends_open,
    good,
    in_sequence,
    shown,
)

LIST = re.compile(r"^GPU (\d+): (\S.*?) \(UUID: (GPU-[^)]*)\)$")
LIST_MIG = re.compile(r"^  MIG (\S+) +Device +(\d+): \(UUID: (MIG-[0-9A-Za-z/-]+)\)$")
LINK = re.compile(r"^\s+Link (\d+): (\S.*)$")


def parse(text: str, expected: Expectation) -> List[Finding]:
    """Findings of one output of nvidia-smi. Raises Unreadable."""
    lines = clean(text)
    first = next(line for line in lines if line.strip()).strip()
    if first.startswith("<"):
        return smi_query.parse_xml(text, expected)
    if any("=NVSMI LOG=" in line for line in lines[:20]):
        return smi_query.parse_text(text, expected)
    if any("NVIDIA-SMI" in line and "Version:" in line for line in lines[:10]):
        return smi_table.parse(text, expected)
    if smi_topo.looks_like(lines):
        return smi_topo.parse(text, expected)
    if re.match(r"^GPU \d+: ", first):
        links = any(LINK.match(line) for line in lines)
        return _nvlink(text, expected) if links else _list(text, expected)
    return smi_csv.parse(text, expected)


def _gpu_line(line: str) -> Tuple[int, str, str]:
    match = LIST.match(line.rstrip())
    if not match or not UUID.match(match.group(3)) or not NAME.match(match.group(2)):
        raise Unreadable(f"nvidia-smi prints a line that is not understood: {shown(line)}")
    return int(match.group(1)), match.group(2), match.group(3)


def _gpus(found: List[Tuple[int, str, str]], expected: Expectation) -> List[Finding]:
    in_sequence([index for index, _, _ in found], "GPU")
    if len({uuid for _, _, uuid in found}) != len(found):
        raise Unreadable("one GPU is listed twice (the same UUID)")
    names = sorted({name for _, name, _ in found})
    findings = [count_finding(len(found), expected, board_of(names[0], expected.models) if len(names) == 1 else None)]
    if expected.gpu_model:
        known = [model for model in expected.models if model.name == expected.gpu_model]
        memory = (known[0].memory_gb or 0) * 1024.0 if known else 0.0
        wrong = [name for name in names if not model_name_matches(expected.gpu_model, name, memory)]
        findings.append(
            bad("gpu_model", f"{wrong[0]} is listed, declared is {expected.gpu_model}")
            if wrong
            else good("gpu_model", f"all are {expected.gpu_model}")
        )
    elif len(names) > 1:
        findings.append(bad("gpu_model", f"the GPUs differ: {', '.join(names)}"))
    return findings


def _list(text: str, expected: Expectation) -> List[Finding]:
    found, migs = [], set()
    for line in clean(text):
        if not line.strip():
            continue
        mig = LIST_MIG.match(line.rstrip())
        if mig and found:
            if mig.group(3) in migs:
                raise Unreadable(f"the MIG device {mig.group(3)} is listed twice")
            migs.add(mig.group(3))
            continue
        found.append(_gpu_line(line))
    return _gpus(found, expected)


def _nvlink(text: str, expected: Expectation) -> List[Finding]:
    gpus = []  # type: List[Tuple[int, str, str]]
    links = {}  # type: Dict[int, List[Tuple[int, str]]]
    for line in clean(text):
        if not line.strip():
            continue
        link = LINK.match(line.rstrip())
        if link and gpus:
            links[gpus[-1][0]].append((int(link.group(1)), link.group(2)))
        else:
            gpus.append(_gpu_line(line))
            links[gpus[-1][0]] = []
    findings = _gpus(gpus, expected)
    speeds, problems = {}, []  # type: ignore
    for index, name, _ in gpus:
        in_sequence([number for number, _ in links[index]], f"link of GPU {index}")
        down = [
            number
            for number, value in links[index]
            if re.match(r"^<?(inactive|disabled|down)>?$", value, re.IGNORECASE)
        ]
        problems += [f"GPU {index}: link {number} is inactive" for number in down]
        for number, value in links[index]:
            if number in down:
                continue
            match = re.match(r"^(\d+(?:\.\d+)?) GB/s$", value)
            if not match or not 10 <= decimal(match.group(1), "the speed") <= 200:
                raise Unreadable(f"link {number} of GPU {index} is {value!r}, not a speed in GB/s that an NVLink has")
            speeds.setdefault(name, set()).add(value)
        models = {
            model.links for model in find_models(name, expected.models) if model.links and "SXM" in model.form_factor
        }
        if len(models) == 1 and len(links[index]) != list(models)[0]:
            problems.append(f"GPU {index}: {len(links[index])} of {list(models)[0]} NVLinks are listed")
        elif not links[index]:
            problems.append(f"GPU {index}: no NVLink is listed")
    problems += [
        f"the links of {name} run at different speeds: {', '.join(sorted(found))}"
        for name, found in speeds.items()
        if len(found) > 1
    ]
    counts = {len(links[index]) for index, _, _ in gpus}
    if len(counts) > 1 and len({name for _, name, _ in gpus}) == 1:
        problems.append(
            f"the GPUs have different numbers of links: {', '.join(str(count) for count in sorted(counts))}"
        )
    total = sum(len(found) for found in links.values())
    if ends_open(text) and not text.endswith(("GB/s", "GB/s ")):
        raise Unreadable("the output ends in the middle of a line")
    return findings + ([bad("nvlink", problem) for problem in problems] or [good("nvlink", f"{total} NVLinks are up")])
