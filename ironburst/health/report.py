"""What every parser of the gate shares: findings, what is expected, and small readers that refuse whatever they do not
understand.

Standard library and Python 3.6 only: the role node_health copies this package to the nodes.
"""

import functools
import re
from typing import List, NamedTuple, Optional, Sequence, Tuple

NOT_AVAILABLE = (
    "N/A",
    "[N/A]",
    "[Not Supported]",
    "Not Supported",
    "Requested functionality has been deprecated",
    "[Requested functionality has been deprecated]",
)
# What NVIDIA's tools put where a value should be, or between the lines, when something is wrong
ERROR_TEXT = re.compile(
    r"unknown error|ERR!|is lost|requires? reset|reset "
    r"required\]|insufficient permissions|function not found|failed|failure\b|fatal|"
    r"unable to|couldn't|could not|corrupt|no devices|mismatch|timed? ?out|segmentation|core dumped|killed|traceback|exception|"
    r"NVRM|xid|permission denied|not found|error",
    re.IGNORECASE,
)
MAX_TEXT = 64 << 20  # bytes: a capture is never larger


class Unreadable(ValueError):
    """Output that is not understood. The text is one sentence."""


class Finding(NamedTuple):
    """One check: passed or not, and one sentence."""

    check: str
    passed: bool
    text: str


class Model(NamedTuple):
    """A GPU model as the catalogue has it. Memory in GB as marketed; links: NVLinks a GPU; board: GPUs on a baseboard,
    if always that many.
    """

    name: str
    memory_gb: Optional[int] = None
    form_factor: str = ""
    links: Optional[int] = None
    board: Optional[int] = None
    pci_ids: Tuple[str, ...] = ()


class Threshold(NamedTuple):
    """One row of acceptance_thresholds.csv of kind gate. value in unit, at one message size (as the tool is given it,
    e.g. "16G").
    """

    id: str
    test: str
    platform: str
    gpu: str
    nodes: Optional[int]
    gpus: Optional[int]
    message_size: str
    metric: str
    op: str
    value: float
    unit: str


class Expectation(NamedTuple):
    """What is declared of the node that printed the output. None: not declared, so not judged."""

    gpu_model: Optional[str] = None
    gpus: Optional[int] = None
    driver: Optional[str] = None
    pcie_width: Optional[int] = None
    """lanes; declared where a board wires fewer than the GPU could use (AWS g4dn and g5: 8)"""
    accepted_uncorrectable: int = 0
    """historic uncorrectable errors (aggregate ECC, remapped rows, retired pages) a person has accepted, a GPU"""
    links: Optional[int] = None
    """RDMA ports that must be active; others may be down"""
    rate_gb_s: Optional[float] = None
    """Gb/s of each of these ports"""
    columns: Tuple[str, ...] = ()
    """names of the columns of a CSV without header"""
    threshold_id: Optional[str] = None
    platform: Optional[str] = None
    nodes: Optional[int] = None
    message_size: Optional[str] = None
    checked: bool = False
    """nccl-tests must have checked the data"""
    level: Optional[int] = None
    """DCGM diagnostic level that must have run"""
    models: Tuple[Model, ...] = ()
    thresholds: Tuple[Threshold, ...] = ()


def good(check: str, text: str) -> Finding:
    return Finding(check, True, text)


def bad(check: str, text: str) -> Finding:
    return Finding(check, False, text)


def shown(line: str) -> str:
    """A line as a sentence quotes it."""
    return repr(line if len(line) <= 120 else line[:117] + "...")


def clean(text: str) -> List[str]:
    """The lines of a capture, without carriage returns. Raises Unreadable for nothing, for bytes that are no text, and
    for too much.
    """
    if not text.strip():
        raise Unreadable("the output is empty")
    if len(text) > MAX_TEXT:
        raise Unreadable(f"the output is longer than {MAX_TEXT >> 20} MiB")
    broken = re.search("[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\ufffd\x7f]", text)
    if broken:
        raise Unreadable(f"the output holds a character that is no text ({broken.group(0)!r})")
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def ends_open(text: str) -> bool:
    """Whether the last line has no newline: it may have been cut."""
    return not text.endswith(("\n", "\r"))


def not_available(value: str) -> bool:
    return value in NOT_AVAILABLE or value.startswith("[Deprecated")


@functools.lru_cache(maxsize=65536)
def is_error(value: str) -> bool:
    """Whether a value is an error text instead of a value."""
    return bool(ERROR_TEXT.search(value)) and not not_available(value)


def whole(value: str, what: str) -> int:
    if not re.match(r"^\d+$", value):
        raise Unreadable(f"{what} is {value!r}, not a whole number")
    return int(value)


def decimal(value: str, what: str) -> float:
    if not re.match(r"^-?\d+(\.\d+)?$", value):
        raise Unreadable(f"{what} is {value!r}, not a number")
    return float(value)


def quantity(value: str, unit: str, what: str) -> float:
    """The number of "81559 MiB" when unit is "MiB". Raises Unreadable for another unit or none."""
    match = re.match(r"^(-?\d+(?:\.\d+)?) ?(\S+)$", value)
    if not match or match.group(2) != unit:
        raise Unreadable(f"{what} is {value!r}, not a number of {unit}")
    return float(match.group(1))


def in_sequence(indexes: Sequence[int], what: str) -> None:
    """Raises Unreadable unless the indexes are 0, 1, 2 ... in this order."""
    for position, index in enumerate(indexes):
        if index != position:
            raise Unreadable(f"{what} {position} is missing: {what} {index} stands in its place")


def count_finding(found: int, expected: Expectation, board: Optional[int] = None) -> Finding:
    """Whether this many GPUs can be all of a node's. Without a declared number an odd one, or an incomplete board, is
    not believed.
    """
    if expected.gpus is not None:
        return Finding("gpu_count", found == expected.gpus, f"{found} of {expected.gpus} GPUs")
    # Instances hold 1, 2, 4 or all GPUs of a board: anything else means that GPUs are missing
    usual = (1, 2, 4, 8, 16) if board else (1, 2, 4, 6, 8, 10, 12, 16, 20)
    if found not in usual:
        return bad(
            "gpu_count",
            f"{found} GPUs are no usual number: one is missing, or say how many there should be with --gpus",
        )
    return good("gpu_count", f"{found} GPUs, none missing in the sequence")


def driver_finding(version: str, expected: Expectation) -> Finding:
    if not re.match(r"^\d{3}\.\d{2,3}(\.\d{2})?$", version):
        raise Unreadable(f"the driver version is {version!r}, not a version")
    if expected.driver and version != expected.driver:
        return bad("driver", f"driver {version}, declared {expected.driver}")
    return good("driver", f"driver {version}")
