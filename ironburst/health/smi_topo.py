"""nvidia-smi topo -m: the matrix must be whole and symmetric, the GPUs of an NVSwitch board must all reach each other
by NVLink, and those of a declared SXM board by all the links that its GPUs have.
"""

import re
from typing import Dict, List, Sequence, Set

from .expectation import Expectation, count_finding
from .findings import Finding, Unreadable, bad, good, judged
from .models import declared_model, nvlinks
from .reading import clean, in_sequence, note, shown

CELL = re.compile(r"^(X|SYS|NODE|PHB|PXB|PIX|NV\d{1,2}|C2C)$")
LEGEND = ("X ", "SYS", "NODE", "PHB", "PXB", "PIX", "NV#")


def looks_like(lines: List[str]) -> bool:
    """Whether these are the lines of `topo -m`."""
    return any(re.match(r"^\s+GPU0\s", _plain(line)) for line in lines[:3])


def _plain(line: str) -> str:
    return re.sub("\x1b\\[[0-9;]*m", "", line)  # the header is underlined on a terminal


def parse(text: str, expected: Expectation) -> List[Finding]:
    """Findings of `nvidia-smi topo -m`. Raises Unreadable."""
    lines = [_plain(line).rstrip() for line in clean(text)]
    start = next(position for position, line in enumerate(lines) if re.match(r"^\s+GPU0\s", line))
    if any(line.strip() for line in lines[:start]):
        raise Unreadable(f"nvidia-smi topo prints a line that is not understood: {shown(lines[0])}")
    head, affinity, _ = lines[start].partition("CPU Affinity")
    columns = head.split()  # GPU0, NIC0; before R510 a NIC's own name: mlx5_0, mlx4_0, ibp12s0
    if not affinity or len(set(columns)) != len(columns):
        raise Unreadable(f"the head of nvidia-smi topo is cut: {shown(lines[start])}")
    gpus = [name for name in columns if re.match(r"^GPU\d+$", name)]
    in_sequence([int(name[3:]) for name in gpus], "GPU")
    end = next((number for number in range(start + 1, len(lines)) if not lines[number].strip()), len(lines))
    matrix = _matrix(lines[start + 1 : end], columns)
    _legend(lines[end:], columns)
    for row in columns:
        for column in columns:
            if (matrix[row][column] == "X") != (row == column) or matrix[row][column] != matrix[column][row]:
                raise Unreadable(f"the matrix is not symmetric at {row} and {column}")
    ways = {gpu: [matrix[gpu][other] for other in gpus if other != gpu] for gpu in gpus}
    return _judge(gpus, {way for of_gpu in ways.values() for way in of_gpu}, expected) + _judge_model(ways, expected)


def _matrix(lines: Sequence[str], columns: Sequence[str]) -> Dict[str, Dict[str, str]]:
    """Row -> column -> how they reach each other. Raises Unreadable."""
    rows: Dict[str, Dict[str, str]] = {}
    for line in lines:
        name, cells = line.split()[0], line.split()[1 : len(columns) + 1]
        if name not in columns or name in rows or not all(CELL.match(cell) for cell in cells):
            raise Unreadable(f"nvidia-smi topo prints a line that is not understood: {shown(line)}")
        if len(cells) < len(columns):
            raise Unreadable(f"nvidia-smi topo prints a row that is cut: {shown(line)}")
        rows[name] = dict(zip(columns, cells))
        note(line, f"how {name} reaches the others")
    if sorted(rows) != sorted(columns):
        raise Unreadable(f"nvidia-smi topo prints {len(rows)} rows for {len(columns)} columns")
    return rows


def _judge(gpus: Sequence[str], ways: Set[str], expected: Expectation) -> List[Finding]:
    """`ways`: how the GPUs reach each other."""
    links = {way for way in ways if way.startswith("NV")}
    findings = [count_finding(len(gpus), expected, 8 if links and links == ways else None)]
    switched = any(int(link[2:]) >= 6 for link in links)
    if len(gpus) >= 8 and switched and links != ways:
        return [*findings, bad("nvlink", f"only some GPUs reach each other by NVLink: {', '.join(sorted(ways))}")]
    if len(gpus) >= 4 and switched and links == ways and len(links) > 1:
        return [*findings, bad("nvlink", f"the GPUs have different numbers of NVLinks: {', '.join(sorted(links))}")]
    text = f"{len(gpus)} GPUs reach each other by {', '.join(sorted(ways)) or 'nothing else'}"
    return [*findings, good("topology", text)]


def _judge_model(ways: Dict[str, List[str]], expected: Expectation) -> List[Finding]:
    """The NVLinks of each GPU against those of the declared model. `ways`: how it reaches the others."""
    model = declared_model(expected.gpu_model, expected.models)
    if model is None:
        return []
    needed = nvlinks(model, len(ways))
    if not needed or expected.mig:
        return [good("nvlink", f"not judged here: {model.name} needs none" if not expected.mig else "not judged: MIG")]
    switched = f"NV{needed}"  # to a switch, and so to every other
    problems: List[str] = []
    for gpu, of_gpu in ways.items():
        links = sum(int(way[2:]) for way in of_gpu if way.startswith("NV"))
        meshed = links == needed or len(ways) < 4 or needed < 12  # a part of a board, or a mesh of V100
        if not links:
            problems.append(f"{gpu} reaches no other by NVLink, a {model.name} has {needed}")
        elif set(of_gpu) != {switched} and not (meshed and len(ways) < 8):
            problems.append(f"{gpu} reaches the others by {', '.join(of_gpu)}, a {model.name} has {needed} NVLinks")
    return judged("nvlink", problems, f"each GPU has the NVLinks of a {model.name}")


def _legend(lines: List[str], columns: List[str]) -> None:
    words = [line.strip() for line in lines if line.strip()]
    if not words or words[0] != "Legend:":
        raise Unreadable("nvidia-smi topo is cut: it has no legend")
    for key in LEGEND:
        if not any(re.match(re.escape(key.strip()) + r"\s+= \S", word) for word in words):
            raise Unreadable(f"the legend of nvidia-smi topo is cut: it does not explain {key.strip()}")
    for name in columns:
        if name.startswith("NIC") and not any(re.match(name + r": \S+$", word) for word in words):
            raise Unreadable(f"the legend of nvidia-smi topo is cut: it does not name {name}")
    named = [word.split(": ")[1] for word in words if re.match(r"^NIC\d+: \S+$", word)]
    if len(set(named)) != len(named) or not all(re.search(r"\d(_?[a-z]\w*)?$", name) for name in named):
        raise Unreadable("the legend of nvidia-smi topo is cut: two NICs have one name, or one has none")
    for word in words[1:]:
        if not re.match(r"^(\S+\s+= \S.*|NIC Legend:|NIC\d+: \S+)$", word):
            raise Unreadable(f"nvidia-smi topo prints a line that is not understood: {shown(word)}")
