"""nvidia-smi topo -m: the matrix must be whole and symmetric, and the GPUs of an NVSwitch board must all reach each
other by NVLink.
"""

import re
from typing import List

from .report import Expectation, Finding, Unreadable, bad, clean, count_finding, good, in_sequence, shown

CELL = re.compile(r"^(X|SYS|NODE|PHB|PXB|PIX|NV\d{1,2}|C2C)$")
LEGEND = ("X ", "SYS", "NODE", "PHB", "PXB", "PIX", "NV#")


def looks_like(lines: List[str]) -> bool:
    return any(re.match(r"^\s+GPU0\s", _plain(line)) for line in lines[:3])


def _plain(line: str) -> str:
    return re.sub("\x1b\\[[0-9;]*m", "", line)  # the header is underlined on a terminal


def parse(text: str, expected: Expectation) -> List[Finding]:
    lines = [_plain(line).rstrip() for line in clean(text)]
    start = next(position for position, line in enumerate(lines) if re.match(r"^\s+GPU0\s", line))
    if any(line.strip() for line in lines[:start]):
        raise Unreadable(f"nvidia-smi topo prints a line that is not understood: {shown(lines[0])}")
    columns = re.findall(r"GPU\d+|NIC\d+|mlx5_\d+|bnxt_re\d+", lines[start])
    gpus = [name for name in columns if name.startswith("GPU")]
    in_sequence([int(name[3:]) for name in gpus], "GPU")
    rows = {}  # type: Dict[str, List[str]]
    position = start + 1
    while position < len(lines) and lines[position].strip():
        cells = lines[position].split()
        if (
            cells[0] not in columns
            or cells[0] in rows
            or not all(CELL.match(cell) for cell in cells[1 : len(columns) + 1])
        ):
            raise Unreadable(f"nvidia-smi topo prints a line that is not understood: {shown(lines[position])}")
        if len(cells) < len(columns) + 1:
            raise Unreadable(f"nvidia-smi topo prints a row that is cut: {shown(lines[position])}")
        rows[cells[0]] = cells[1 : len(columns) + 1]
        position += 1
    if list(rows) != columns and sorted(rows) != sorted(columns):
        raise Unreadable(f"nvidia-smi topo prints {len(rows)} rows for {len(columns)} columns")
    _legend(lines[position:], columns)
    for row in columns:
        for at, column in enumerate(columns):
            if (rows[row][at] == "X") != (row == column) or rows[row][at] != rows[column][columns.index(row)]:
                raise Unreadable(f"the matrix is not symmetric at {row} and {column}")
    pairs = {rows[one][columns.index(other)] for one in gpus for other in gpus if one != other}
    links = {pair for pair in pairs if pair.startswith("NV")}
    findings = [count_finding(len(gpus), expected, 8 if links and links == pairs else None)]
    if len(gpus) >= 8 and links and links != pairs and any(int(link[2:]) >= 6 for link in links):
        return findings + [bad("nvlink", f"only some GPUs reach each other by NVLink: {', '.join(sorted(pairs))}")]
    if len(gpus) >= 4 and len(links) > 1 and links == pairs and any(int(link[2:]) >= 6 for link in links):
        return findings + [bad("nvlink", f"the GPUs have different numbers of NVLinks: {', '.join(sorted(links))}")]
    return findings + [
        good("topology", f"{len(gpus)} GPUs reach each other by {', '.join(sorted(pairs)) or 'nothing else'}")
    ]


def _legend(lines: List[str], columns: List[str]) -> None:
    words = [line.strip() for line in lines if line.strip()]
    if not words or words[0] != "Legend:":
        raise Unreadable("nvidia-smi topo is cut: it has no legend")
    for key in LEGEND:
        if not any(re.match(re.escape(key.strip()) + r"\s+= \S", word) for word in words):
            raise Unreadable(f"the legend of nvidia-smi topo is cut: it does not explain {key.strip()}")
    nics = [name for name in columns if name.startswith("NIC")]
    if nics:
        for name in nics:
            if not any(re.match(name + r": \S+$", word) for word in words):
                raise Unreadable(f"the legend of nvidia-smi topo is cut: it does not name {name}")
    named = [word.split(": ")[1] for word in words if re.match(r"^NIC\d+: \S+$", word)]
    if len(set(named)) != len(named) or not all(re.search(r"\d(_?[a-z]\w*)?$", name) for name in named):
        raise Unreadable("the legend of nvidia-smi topo is cut: two NICs have one name, or one has none")
    for word in words[1:]:
        if not re.match(r"^(\S+\s+= \S.*|NIC Legend:|NIC\d+: \S+)$", word):
            raise Unreadable(f"nvidia-smi topo prints a line that is not understood: {shown(word)}")
