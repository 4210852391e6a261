"""Small readers of a tool's output that every parser uses. They refuse whatever they do not understand."""

import contextlib
import functools
import re
from typing import Iterator, List, NamedTuple, Sequence

from .findings import Unreadable

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
    r"unknown error|ERR!|is lost|requires? reset|reset required\]|insufficient permissions|function not found|"
    r"failed|failure\b|fatal|unable to|couldn't|could not|corrupt|no devices|mismatch|timed? ?out|segmentation|"
    r"core dumped|killed|traceback|exception|NVRM|xid|permission denied|not found|error",
    re.IGNORECASE,
)
# What says that the GPU itself is gone or ill: bad wherever it stands
LOST = re.compile(r"unknown error|ERR!|is lost|requires? reset|reset required\]|no devices|\bxid\b", re.IGNORECASE)
ESCAPE = re.compile("\x1b\\[[0-9;]*[A-Za-z]")
WHERE = r"(?:\(\S+\) ?)?(?:\[?[\w.+-]+@[^\n#$%>]{1,80}[#$%>]|bash-[\d.]+[#$]|[$%>\u276f])"
PROMPT = re.compile(rf"^{WHERE}\s*$")
BANNER = re.compile(
    r"^(=+$|== .* ==$|\*{25}$|NVIDIA Release |CUDA Version \d|Container image Copyright|Copyright \(c\)|"
    r"This container image|Various files include|GOVERNING TERMS|A copy of this license)"
)
BEFORE = re.compile(
    rf"^(?:{WHERE} *\S|(?:# ?)?(?:sudo )?(?:\S*/)?(?:nvidia-smi|dcgmi|ibstat|lspci)(?: +-?[\w=,.:/-]+)*\s*$|"
    rf"Defaulted container |{BANNER.pattern[1:]})"
)
OF_GPUS = re.compile(rf"^GPU|^\||{ERROR_TEXT.pattern}", re.IGNORECASE)  # no word of a banner: a tool's own line
MAX_TEXT = 64 << 20  # bytes: a capture is never larger


class Note(NamedTuple):
    """A part of an output, and what a parser has understood it as."""

    part: str
    meaning: str


_listeners: List[List[Note]] = []


@contextlib.contextmanager
def noting() -> Iterator[List[Note]]:
    """Collect what the parsers understand meanwhile (`--explain`)."""
    notes: List[Note] = []
    _listeners.append(notes)
    try:
        yield notes
    finally:
        _listeners.remove(notes)


def note(part: str, meaning: str) -> None:
    """Say what a part of the output was understood as, to who listens."""
    for notes in _listeners:
        notes.append(Note(part.strip(), meaning))


def shown(line: str) -> str:
    """A line as a sentence quotes it."""
    return repr(line if len(line) <= 120 else line[:117] + "...")


def clean(text: str) -> List[str]:
    """The lines of a capture, without carriage returns.
    Raises Unreadable for nothing, for bytes that are no text, and for too much.
    """
    if not text.strip():
        raise Unreadable("the output is empty")
    if len(text) > MAX_TEXT:
        raise Unreadable(f"the output is longer than {MAX_TEXT >> 20} MiB")
    broken = re.search("[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\ufffd\x7f]", text)
    if broken:
        raise Unreadable(f"the output holds a character that is no text ({broken.group(0)!r})")
    foreign = re.search("[^\x00-\x7f]", text) and re.search(r"(?![0-9])\d", text)  # the first is ten times as fast
    if foreign:
        raise Unreadable(f"the output has digits of another script ({foreign.group()!r}): run the tool with LC_ALL=C")
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def captured(text: str) -> str:
    """A capture without what is the terminal's and not the tool's: colours, and the shell's prompt with the command
    before and with nothing behind; and without what kubectl and NVIDIA's images say before it.
    """
    lines = ESCAPE.sub("", text.lstrip("\ufeff")).splitlines(keepends=True)
    start = 0
    while start < len(lines) and (not lines[start].strip() or BEFORE.match(lines[start])):
        is_banner = BANNER.match(lines[start])
        start += 1
        while is_banner and start < len(lines) and lines[start].strip() and not OF_GPUS.search(lines[start]):
            start += 1
    end = len(lines)
    while end > start and (not lines[end - 1].strip() or PROMPT.match(lines[end - 1])):
        end -= 1
    kept = end if any(PROMPT.match(line) for line in lines[end:]) else len(lines)
    return "".join(lines[start:kept])


def ends_open(text: str) -> bool:
    """Whether the last line has no newline: it may have been cut."""
    return not text.endswith(("\n", "\r"))


def not_available(value: str) -> bool:
    """Whether NVIDIA's tools say so that this GPU or driver has no such value."""
    return value in NOT_AVAILABLE or value.startswith("[Deprecated")


@functools.lru_cache(maxsize=65536)
def is_error(value: str) -> bool:
    """Whether a value is an error text instead of a value."""
    return bool(ERROR_TEXT.search(value)) and not not_available(value)


@functools.lru_cache(maxsize=65536)
def is_lost(value: str) -> bool:
    """Whether a value says so that the GPU is lost, of whatever field it is."""
    return bool(LOST.search(value)) and not not_available(value)


def whole(value: str, what: str) -> int:
    """The whole number `value`. `what` names it in the sentence of Unreadable."""
    if not re.match(r"^\d+$", value):
        raise Unreadable(f"{what} is {value!r}, not a whole number")
    return int(value)


def decimal(value: str, what: str) -> float:
    """The number `value`, without an exponent. `what` names it in the sentence of Unreadable."""
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
