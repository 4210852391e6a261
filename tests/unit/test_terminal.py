"""Tables for people: laid out as rich lays them out, at a tenth of the time."""

import io
import random

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ironburst.system import terminal

WORDS = ("a", "job", "waits", "it is predicted to start", "x" * 30, "ätsch", "日本語", "over  two", "-")


def of_rich(titles, rows, columns, right):
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=True)
    for title in titles:
        made.add_column(title, justify="right" if title in right else "left", overflow="fold")
    for row in rows:
        made.add_row(*map(Text, row))
    out = io.StringIO()
    Console(file=out, width=columns - 2, force_terminal=False).print(made)
    return [f"  {line.rstrip()}" for line in out.getvalue().splitlines()]


def tables(seed):
    rng = random.Random(seed)
    for _ in range(10):
        titles = [f"t{n}" for n in range(rng.randint(1, 6))]
        yield titles, [[" ".join(rng.choices(WORDS, k=rng.choice((0, 1, 1, 2, 8)))) for _ in titles] for _ in range(4)]


@pytest.mark.parametrize("seed", range(8))
def test_it_is_laid_out_as_rich_does(seed):
    for titles, rows in tables(seed):
        ours = terminal.table(titles, rows, columns=terminal.UNLIMITED, colour=False, right=titles[:1])
        assert ours == of_rich(titles, rows, terminal.UNLIMITED, titles[:1])


@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize("seed", range(8))
def test_in_a_narrow_terminal_the_widest_columns_are_broken(seed, columns):
    """As many lines as rich's but one or two, none too long, nothing lost."""
    for titles, rows in tables(seed):
        ours = terminal.table(titles, rows, columns=columns, colour=False, right=titles[:1])
        theirs = of_rich(titles, rows, columns, titles[:1])
        assert max(map(cell_len, ours)) <= columns and abs(len(ours) - len(theirs)) <= 2
        assert sorted("".join(ours).replace(" ", "")) == sorted("".join(theirs).replace(" ", ""))


def test_states_have_colours_and_what_moves_the_cursor_moves_nothing():
    rows = [["1", "PENDING", "one\ttwo"], ["22", "IDLE+DRAIN", "up\x1b[2Jand\x07down"], ["3", "?", "two\nlines"]]
    lines = terminal.table(("job", "state", "why"), rows, columns=80, colour=True, right=("job",))
    assert "\x1b[33mPENDING   \x1b[0m" in lines[1] and "\x1b[33mIDLE+DRAIN\x1b[0m" in lines[2]
    assert "\x1b[2J" not in "".join(lines) and "\x07" not in "".join(lines) and len(lines) == 5
    plain = terminal.table(("job", "state", "why"), rows, columns=80, colour=False)
    assert "\x1b" not in "".join(plain) and plain[3:] == ["  3    ?           two", "                   lines"]
