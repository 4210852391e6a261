"""Range expressions as Slurm and Ansible users write them: `dgx[01-04]`, `10.78.0.[11-12]`, `r[1,3-5]`."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

_PART = re.compile(r"\[([^\[\]]*)\]")
_ITEM = re.compile(r"^(\d+)(?:-(\d+))?$")
MOST = 10_000


class RangeError(ValueError):
    """An expression that does not expand; the text says what is wrong with it."""


def expand(expression: str) -> list[str]:
    """All names of an expression, in order. Leading zeros keep their width. Raises RangeError."""
    if brace := re.search(r"\{(\d+)\.\.(\d+)\}", expression):
        meant = expression.replace(brace[0], f"[{brace[1]}-{brace[2]}]")
        raise RangeError(f"{expression!r} is a range as shells write it; write {meant}")
    if round_ones := re.search(r"\((\d+)-(\d+)\)", expression):
        meant = expression.replace(round_ones[0], f"[{round_ones[1]}-{round_ones[2]}]")
        raise RangeError(f"{expression!r} has round brackets; write {meant}")
    literals = _PART.split(expression)
    texts, inner = literals[0::2], literals[1::2]
    if any("[" in text or "]" in text for text in texts):
        raise RangeError(f"{expression!r} has an unmatched bracket")
    choices = [_numbers(expression, part) for part in inner]
    size = 1
    for choice in choices:
        size *= len(choice)
    if size > MOST:
        raise RangeError(f"{expression!r} expands to {size} names; at most {MOST} are allowed")
    return [
        "".join(text + number for text, number in zip(texts, (*picked, ""), strict=True))
        for picked in itertools.product(*choices)
    ]


def _numbers(expression: str, part: str) -> list[str]:
    numbers: list[str] = []
    for item in part.split(","):
        match = _ITEM.match(item.strip())
        if not match:
            raise RangeError(f"{expression!r}: [{part}] is not a range; write [01-04] or [1,3-5]")
        first, last = match[1], match[2] or match[1]
        if int(last) < int(first):
            raise RangeError(f"{expression!r}: {item.strip()} runs backwards")
        if int(last) - int(first) >= MOST:
            raise RangeError(f"{expression!r}: {item.strip()} has more than {MOST} names")
        if len(first) != len(last) and (first.startswith("0") or last.startswith("0")):
            raise RangeError(
                f"{expression!r}: {item.strip()} mixes widths; write both ends with the same number of digits"
            )
        numbers += [str(n).zfill(len(first)) for n in range(int(first), int(last) + 1)]
    return numbers


def compact(names: Sequence[str]) -> str:
    """One expression for names, in their order: ["dgx01", "dgx02",
    "dgx04"] -> `dgx[01-02,04]`; what has no number stays a name.
    """
    parts: list[tuple[str, list[list[str]]]] = []
    for name in names:
        numbered = re.match(r"^(.*?)(\d+)$", name)
        head, number = (numbered[1], numbered[2]) if numbered else (name, "")
        last = parts[-1][1][-1][-1] if parts and parts[-1][0] == head and parts[-1][1] else ""
        if not number or not last:
            parts.append((head, [[number]] if number else []))
        elif len(number) == len(last) and int(number) == int(last) + 1:
            parts[-1][1][-1].append(number)
        else:
            parts[-1][1].append([number])
    return ",".join(_one(head, runs) for head, runs in parts)


def _one(head: str, runs: list[list[str]]) -> str:
    if not runs:
        return head
    if len(runs) == 1 and len(runs[0]) == 1:
        return head + runs[0][0]
    return f"{head}[{','.join(run[0] if len(run) == 1 else f'{run[0]}-{run[-1]}' for run in runs)}]"
