"""How things are shown to people: tables that fit the terminal, and wrapped lines. Whoever reads by a program gets
whole lines, never wrapped.
"""

from __future__ import annotations

import itertools
import re
import shutil
import sys
from collections.abc import Iterable, Sequence

from rich.cells import cell_len, chop_cells

from ironburst.system import local_time

UNLIMITED = 100_000
_GREEN, _YELLOW, _RED, _DIM, _PLAIN = (f"\x1b[{code}m" for code in (32, 33, 31, 2, 0))
COLOURS = {
    "RUNNING": _GREEN,
    "IDLE": _GREEN,
    "ready": _GREEN,
    "PENDING": _YELLOW,
    "DRAIN": _YELLOW,
    "terminated": _RED,
    "DOWN": _RED,
    "FAIL": _RED,
}
"""of a cell that begins with a state, or has it behind a +"""
_CONTROL = dict.fromkeys((*range(32), 127))


def width() -> int:
    """Columns of the terminal; without one, lines are as long as they are."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else UNLIMITED


def table(
    titles: Sequence[str], rows: Sequence[Sequence[str]], *, columns: int, colour: bool, right: Sequence[str] = ()
) -> list[str]:
    """Lines of an aligned table, two spaces in; its last column is wrapped to that many columns, and the others when
    that isn't enough. `right`: titles of the columns that are set to the right.
    """
    told = [[local_time.local(cell) if "Z" in cell else cell for cell in row] for row in rows]
    widths = _widths([_widest(column) for column in zip(titles, *told, strict=True)], columns - 2)
    to_right = [title in right for title in titles]
    out = _lines(titles, widths, to_right, [_DIM if colour else ""] * len(titles))
    for row in told:
        if colour or not (line := _line(row, widths, to_right)):
            out += _lines(row, widths, to_right, map(_style, row) if colour else [""] * len(row))
        else:
            out.append(line)
    return out


def _line(cells: Sequence[str], widths: list[int], to_right: list[bool]) -> str:
    """Of a row that needs no care, as nearly all of a long table; empty: it does."""
    text = "".join(cells)
    if not text.isascii() or not text.isprintable():
        return ""
    each = zip(cells, widths, to_right, strict=True)
    if any(len(cell) > width for cell, width in zip(cells, widths, strict=True)):
        return ""
    return f"  {'  '.join([cell.rjust(width) if right else cell.ljust(width) for cell, width, right in each])}".rstrip()


def _widest(column: Sequence[str]) -> int:
    text = "".join(column)
    return max(map(len if text.isascii() and text.isprintable() else _length, column))


def _widths(wanted: list[int], columns: int) -> list[int]:
    """Of the columns, with two spaces between them; the widest ones lose first what there is no room for."""
    gaps = [2] * (len(wanted) - 1) + [0]
    widths = [width + gap for width, gap in zip(wanted, gaps, strict=True)]
    while (over := sum(widths) - columns) > 0 and (widest := max(widths)) > 3:
        most = min(over, widest - max((width for width in widths if width < widest), default=0))
        equal = [n for n, width in enumerate(widths) if width == widest]
        for left, n in zip(range(len(equal), 0, -1), equal, strict=True):
            less = min(most, round(over / left), widest - 3)
            widths[n], over = widest - less, over - less
    return [width - gap for width, gap in zip(widths, gaps, strict=True)]


def _lines(cells: Sequence[str], widths: list[int], to_right: list[bool], styles: Iterable[str]) -> list[str]:
    """Of one row."""
    parts = [
        [cell] if cell.isprintable() and _length(cell) <= width else _folded(cell, width)
        for cell, width in zip(cells, widths, strict=True)
    ]
    styled, out = [*styles], []
    for line in itertools.zip_longest(*parts, fillvalue=""):
        padded = [_padded(*each) for each in zip(line, widths, to_right, strict=True)]
        padded[-1] = padded[-1].rstrip()
        said = (
            f"{style}{cell}{_PLAIN}" if style and cell.strip() else cell
            for style, cell in zip(styled, padded, strict=True)
        )
        out.append(f"  {'  '.join(said).rstrip()}")
    return out


def _style(cell: str) -> str:
    words = set(cell.split(" ")[0].split("+"))
    return next((colour for word, colour in reversed(COLOURS.items()) if word in words), "")


def _padded(cell: str, width: int, to_right: bool) -> str:
    blanks = " " * (width - _length(cell))
    return blanks + cell if to_right else cell + blanks


def _length(text: str) -> int:
    """Columns that it takes; one that doesn't stand in a line of a table is broken anyway."""
    if text.isascii() and text.isprintable():
        return len(text)
    return cell_len(text) if text.isprintable() else max(map(cell_len, _broken(text)), default=0)


def _broken(text: str) -> list[str]:
    """Its own lines, without what moves the cursor."""
    return [line.translate(_CONTROL) for line in text.expandtabs().splitlines()] or [""]


def _folded(text: str, width: int) -> list[str]:
    """Broken at spaces, and inside of words that no line has room for."""
    lines: list[str] = []
    for line in _broken(text):
        now = ""
        for word in re.findall(r"\s*\S+\s*", line):
            if now and cell_len(now) + cell_len(word.rstrip()) > width:
                lines.append(now.rstrip())
                now = ""
            if cell_len(word.rstrip()) > width:
                *full, word = chop_cells(word, width)
                lines += full
            now += word
        lines.append(now.rstrip())
    return lines


def wrapped(lines: Sequence[str], columns: int) -> list[str]:
    """The lines, with moments in local time, broken at spaces to that many columns; what follows is set two spaces
    further in.
    """
    out: list[str] = []
    for line in map(local_time.local, lines):
        indent = line[: len(line) - len(line.lstrip())] + "  "
        now = ""
        for word in re.findall(r" *[^ ]+", line):
            if now and cell_len(now) + cell_len(word) > columns:
                out.append(now)
                now = indent + word.lstrip()
            else:
                now += word
            if cell_len(now) > columns:  # a word that no line has room for
                *full, now = chop_cells(now, columns)
                out += full
        out.append(now)
    return out
