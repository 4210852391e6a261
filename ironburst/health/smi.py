"""nvidia-smi: which form of output it is, and the two list forms (`-L`, `nvlink -s`).
The other forms have modules of their own.

Understood: the plain table, `-q` (whole or by `-d SECTION`), `-q -x`, `-L`, `nvlink -s` (or `--status`), `topo -m`, and
`--query-gpu=... --format=csv`, with or without header and units. Anything else is refused.
"""

import re
from typing import Dict, List, NamedTuple, Sequence, Set

from . import smi_csv, smi_query, smi_table, smi_topo
from .expectation import Expectation, count_finding
from .findings import Finding, Unreadable, bad, judged
from .models import NAME, UUID, board_of, find_models, named_as_declared, refuse_others
from .reading import clean, decimal, ends_open, in_sequence, note, shown

LIST = re.compile(r"^GPU (\d+): (\S.*?) \(UUID: (GPU-[^)]*)\)$")
LIST_MIG = re.compile(r"^  MIG (\S+) +Device +(\d+): \(UUID: (MIG-[0-9A-Za-z/-]+)\)$")
LINK = re.compile(r"^\s+Link (\d+): (\S.*)$")
MIG_LINKS = "Nvlink queries are not supported for Devices in MIG mode"
NO_LINKS = re.compile(
    r"^(NVML: ?Unable to retrieve NVLink information as all links are inactive|Device does not .*NVLink)$",
    re.IGNORECASE,
)
LINK_DOWN = re.compile(r"^<?(inactive|disabled|down)>?$", re.IGNORECASE)


class Listed(NamedTuple):
    """A GPU as `-L` names it."""

    number: int
    name: str
    uuid: str


class NvLink(NamedTuple):
    """One NVLink of a GPU: a speed in GB/s, or that it is down."""

    number: int
    value: str


def parse(text: str, expected: Expectation) -> List[Finding]:
    """Findings of one output of nvidia-smi. Raises Unreadable."""
    refuse_others(text)
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
        links = any(LINK.match(line) or MIG_LINKS in line or NO_LINKS.match(line.strip()) for line in lines)
        return _nvlink(text, expected) if links else _list(text, expected)
    return smi_csv.parse(text, expected)


def _listed(line: str) -> Listed:
    match = LIST.match(line.rstrip())
    if not match or not UUID.match(match.group(3)) or not NAME.match(match.group(2)):
        raise Unreadable(f"nvidia-smi prints a line that is not understood: {shown(line)}")
    note(line, f"GPU {match.group(1)}")
    return Listed(int(match.group(1)), match.group(2), match.group(3))


def _judge_listed(gpus: Sequence[Listed], expected: Expectation) -> List[Finding]:
    in_sequence([gpu.number for gpu in gpus], "GPU")
    if len({gpu.uuid for gpu in gpus}) != len(gpus):
        raise Unreadable("one GPU is listed twice (the same UUID)")
    names = sorted({gpu.name for gpu in gpus})
    findings = [count_finding(len(gpus), expected, board_of(names, expected.models))]
    findings += named_as_declared(names, expected)
    if not expected.gpu_model and len(names) > 1:
        findings.append(bad("gpu_model", f"the GPUs differ: {', '.join(names)}"))
    return findings


def _list(text: str, expected: Expectation) -> List[Finding]:
    gpus: List[Listed] = []
    migs: Set[str] = set()
    for line in clean(text):
        if not line.strip():
            continue
        mig = LIST_MIG.match(line.rstrip())
        if mig and gpus:
            if mig.group(3) in migs:
                raise Unreadable(f"the MIG device {mig.group(3)} is listed twice")
            migs.add(mig.group(3))
            note(line, f"a MIG device of GPU {gpus[-1].number}")
        else:
            gpus.append(_listed(line))
    return _judge_listed(gpus, expected)


def _nvlink(text: str, expected: Expectation) -> List[Finding]:
    gpus: List[Listed] = []
    links: Dict[int, List[NvLink]] = {}
    said: Dict[int, str] = {}  # what stands in the place of a GPU's links
    for line in clean(text):
        if not line.strip():
            continue
        link, told = LINK.match(line.rstrip()), line.strip()
        if link and gpus and gpus[-1].number not in said:
            links[gpus[-1].number].append(NvLink(int(link.group(1)), link.group(2)))
            note(line, f"link {link.group(1)} of GPU {gpus[-1].number}")
        elif gpus and not links[gpus[-1].number] and (told == MIG_LINKS or NO_LINKS.match(told)):
            said[gpus[-1].number] = told
            note(line, f"why GPU {gpus[-1].number} lists no link")
        else:
            gpus.append(_listed(line))
            links[gpus[-1].number] = []
    findings = _judge_listed(gpus, expected)
    problems: List[str] = []
    speeds: Dict[str, Set[str]] = {}
    for gpu in gpus:
        if gpu.number in said:
            problems += _judge_silent(gpu, said[gpu.number], expected)
            continue
        in_sequence([link.number for link in links[gpu.number]], f"link of GPU {gpu.number}")
        problems += _judge_links(gpu, links[gpu.number], expected)
        up = {link.value for link in links[gpu.number] if not LINK_DOWN.match(link.value)}
        speeds.setdefault(gpu.name, set()).update(up)
    problems += [
        f"the links of {name} run at different speeds: {', '.join(sorted(values))}"
        for name, values in speeds.items()
        if len(values) > 1
    ]
    counts = sorted({len(of_gpu) for number, of_gpu in links.items() if number not in said})
    if len(counts) > 1 and len({gpu.name for gpu in gpus}) == 1:
        problems.append(f"the GPUs have different numbers of links: {', '.join(str(count) for count in counts)}")
    if ends_open(text) and not text.rstrip(" ").endswith(("GB/s", *said.values())):
        raise Unreadable("the output ends in the middle of a line")
    cut_up = [number for number, line in said.items() if line == MIG_LINKS]
    text = f"{sum(len(of_gpu) for of_gpu in links.values())} NVLinks are up"
    text += f"; {len(cut_up)} GPUs are cut up by MIG and have none" if cut_up else ""
    return findings + judged("nvlink", problems, text)


def _judge_silent(gpu: Listed, said: str, expected: Expectation) -> List[str]:
    """What is wrong with a GPU that lists no link, and says why."""
    models = find_models(gpu.name, expected.models)
    if said == MIG_LINKS:
        return [] if expected.mig else [f"GPU {gpu.number}: it is in MIG mode, and has no NVLink; MIG is not declared"]
    if any("PCIe" not in model.form_factor for model in models):
        return [f"GPU {gpu.number}: {said}"]
    known = models or re.search(r"\b(GeForce|RTX|Quadro)\b", gpu.name)
    return [] if known else [f"GPU {gpu.number}: {said}; whether a {gpu.name} has NVLinks is not known"]


def _judge_links(gpu: Listed, links: Sequence[NvLink], expected: Expectation) -> List[str]:
    """What is wrong with the links of one GPU. Raises Unreadable for a speed that no NVLink has."""
    down = [link for link in links if LINK_DOWN.match(link.value)]
    problems = [f"GPU {gpu.number}: link {link.number} is inactive" for link in down]
    for number, value in [link for link in links if link not in down]:
        match = re.match(r"^(\d+(?:\.\d+)?) GB/s$", value)
        if not match or not 10 <= decimal(match.group(1), "the speed") <= 200:
            raise Unreadable(f"link {number} of GPU {gpu.number} is {value!r}, not a speed in GB/s that an NVLink has")
    boards = [model for model in find_models(gpu.name, expected.models) if "SXM" in model.form_factor]
    wanted = {model.links for model in boards if model.links}
    if len(wanted) == 1 and {len(links)} != wanted:
        problems.append(f"GPU {gpu.number}: {len(links)} of {wanted.pop()} NVLinks are listed")
    elif not links:
        problems.append(f"GPU {gpu.number}: no NVLink is listed")
    return problems
