"""The command blocks of a page, as a test plays them: read from the page itself, so that the page can't rot.

A fence's language says what it is. `sh` is commands; `console` is commands behind "$ " with what they print between
them; anything else (`yaml`, `text`, `python` ...) is there to be read. A block that no test can run has its reason in
the line above it, which no reader sees:

    <!-- not run: it launches instances in an AWS account -->
"""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

TUTORIALS = Path(__file__).parents[1] / "docs" / "tutorial"
_FENCE = re.compile(r"( *)(`{3,}|~{3,}) *([\w-]*).*")
_NOT_RUN = re.compile(r" *<!-- not run: (.+?) -->\s*")
COMMANDS = ("sh", "console")


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    page: Path
    line: int  # of its opening fence, from 1
    language: str  # "" where the fence names none
    text: str
    not_run: str | None = None  # why no test runs it

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"

    @property
    def commands(self) -> str:
        """What a shell is to run: of `console` the lines behind "$ ", and behind "> ", which continue them."""
        if self.language != "console":
            return self.text
        return "".join(f"{line[2:]}\n" for line in self.text.splitlines() if line.startswith(("$ ", "> ")))

    @property
    def printed(self) -> list[str]:
        """The lines of `console` that the commands print."""
        lines = self.text.splitlines() if self.language == "console" else []
        return [line for line in lines if not line.startswith(("$ ", "> "))]


def fenced(page: Path) -> list[Block]:
    """All fenced blocks of a page, in its order; ValueError where a fence isn't closed."""
    found: list[Block] = []
    lines = page.read_text().splitlines()
    at, reason = 0, None
    while at < len(lines):
        if fence := _FENCE.fullmatch(lines[at]):
            indent, marks, language = fence.groups()
            ends = (row for row in range(at + 1, len(lines)) if lines[row].strip() == marks)
            end = next(ends, None)
            if end is None:
                raise ValueError(f"{page.name}:{at + 1}: this block is never closed")
            text = "".join(f"{line.removeprefix(indent)}\n" for line in lines[at + 1 : end])
            found.append(Block(page, at + 1, language, text, reason))
            at, reason = end, None
        elif said := _NOT_RUN.fullmatch(lines[at]):
            reason = said[1]
        elif lines[at].strip():
            reason = None
        at += 1
    return found


def blocks(page: Path) -> list[Block]:
    """The command blocks of a page; ValueError for a block that doesn't say what it is."""
    found = fenced(page)
    if unsaid := [str(block) for block in found if not block.language]:
        raise ValueError(f"{', '.join(unsaid)}: say what the block is: ```sh, ```console, ```text, ```yaml ...")
    return [block for block in found if block.language in COMMANDS]


def tutorial(name: str) -> list[Block]:
    """The command blocks of docs/tutorial/NAME. `test_every_tutorial_is_played` looks for this call."""
    return blocks(TUTORIALS / name)


@dataclass
class Shell:
    """A terminal in which blocks run one after the other: folder and exported variables stay, as for a reader."""

    folder: Path
    env: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    limit_s: float = 120
    seen: list[str] = field(default_factory=list)  # what was run, and what was left out with its reason

    def run(self, block: Block) -> str:
        """Runs a block to its end, or leaves it out by its reason. What it printed; AssertionError where it failed."""
        if block.not_run:
            self.seen.append(f"{block}: not run: {block.not_run}")
            return ""
        read, write = os.pipe()
        # -e, and -o pipefail: a reader would stop at the first error. What it exports goes to the next block
        script = f"set -eo pipefail\n{block.commands}\nset +x; {{ pwd; env -0; }} >&{write}\n"
        with os.fdopen(read, "rb") as after:
            try:
                ran = subprocess.run(
                    ["bash", "-c", script],
                    cwd=self.folder,
                    env=self.env,
                    pass_fds=[write],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    timeout=self.limit_s,
                )
            finally:
                os.close(write)
            left = after.read() if ran.returncode == 0 else b""
        assert ran.returncode == 0, f"{block} failed with {ran.returncode}:\n{block.commands}\n{ran.stdout}"
        missing = [line for line in block.printed if line.strip() and line != "..." and line not in ran.stdout]
        assert not missing, f"{block} doesn't print {missing}; it prints:\n{ran.stdout}"
        where, _, variables = left.partition(b"\n")
        self.folder = Path(os.fsdecode(where))
        self.env = dict(os.fsdecode(pair).split("=", 1) for pair in variables.split(b"\0") if pair)
        self.seen.append(f"{block}: run")
        return ran.stdout
