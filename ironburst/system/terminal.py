"""How things are shown to people: tables that fit the terminal, and wrapped lines. Whoever reads by a program gets
whole lines, never wrapped.
"""

from __future__ import annotations

import io
import re
import shutil
import sys
from collections.abc import Sequence

from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ironburst.system import local_time

UNLIMITED = 100_000
COLOURS = {
    "RUNNING": "green",
    "IDLE": "green",
    "ready": "green",
    "PENDING": "yellow",
    "DRAIN": "yellow",
    "terminated": "red",
    "DOWN": "red",
    "FAIL": "red",
}
"""of a cell that begins with a state, or has it behind a +"""


def width() -> int:
    """Columns of the terminal; without one, lines are as long as they are."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else UNLIMITED


def table(
    titles: Sequence[str], rows: Sequence[Sequence[str]], *, columns: int, colour: bool, right: Sequence[str] = ()
) -> list[str]:
    """Lines of an aligned table, two spaces in; its last column is wrapped to that many columns, and the others when
    that isn't enough. `right`: titles of the columns that are set to the right.
    """
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=True, header_style="dim")
    for title in titles:
        made.add_column(title, justify="right" if title in right else "left", overflow="fold")
    for row in rows:
        made.add_row(*(Text(local_time.local(cell), style=_style(cell)) for cell in row))
    out = io.StringIO()
    Console(file=out, width=columns - 2, force_terminal=colour, color_system="standard" if colour else None).print(made)
    return [f"  {line.rstrip()}" for line in out.getvalue().splitlines()]


def _style(cell: str) -> str:
    words = set(cell.split(" ")[0].split("+"))
    return next((colour for word, colour in reversed(COLOURS.items()) if word in words), "")


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
