"""What the commands that play a trace share: options, reading it, a progress bar, the folder of --out."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Any, TextIO

from ironburst.cli import waiting
from ironburst.nodes.naming import SCHEDULERS
from ironburst.replay import traces
from ironburst.replay.formats import TraceError
from ironburst.replay.traces import Trace
from ironburst.system.bad_input import BadInput


def add_inputs(parser: argparse.ArgumentParser, config_help: str, trace_help: str | None = None) -> None:
    """TRACE, --config and --scheduler."""
    parser.add_argument("trace", type=Path, metavar="TRACE", help=trace_help)
    parser.add_argument("--config", type=Path, required=True, metavar="STACK_FILE", help=config_help)
    parser.add_argument(
        "--scheduler", choices=tuple(SCHEDULERS), help="whose queue the trace is, where the stack file has both"
    )


def add_outputs(parser: argparse.ArgumentParser, name: str) -> None:
    """--out, and --json."""
    add_out(parser, name)
    parser.add_argument("--json", action="store_true", help="machine-readable")


def add_out(parser: argparse.ArgumentParser, name: str) -> None:
    """--out, for what `write` writes."""
    files = f"{name}.html (what is printed, with the pictures), {name}.json and {name}.svg"
    parser.add_argument("--out", type=Path, metavar="DIR", help=f"write {files} there")


def read(path: Path) -> Trace:
    """The trace in this file. Raises BadInput."""
    try:
        with waiting.told("reading the trace"):
            return traces.read(path)
    except TraceError as error:
        raise BadInput(str(error)) from None


def bar(stream: TextIO, what: str) -> Callable[[int, int], None] | None:
    """A progress bar on a terminal; none otherwise."""
    if not stream.isatty():
        return None
    shown = -1

    def tell(done: int, of: int) -> None:
        nonlocal shown
        if (part := 100 * done // max(of, 1)) > shown:
            shown = part
            end = "\n" if part >= 100 else ""
            print(f"\r{'#' * (part // 4):25} {part:3}% of {of:,} {what}", end=end, file=stream, flush=True)

    return tell


def make(folder: Path | None) -> None:
    """The folder of --out, before the work whose result it is for. Raises BadInput."""
    if folder:
        with _writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()  # it may be written to


def write(folder: Path, name: str, said: dict[str, Any], svg: str, lines: Sequence[str]) -> None:
    """NAME.json, NAME.svg, and both as a page, NAME.html: `lines` are what is printed. Raises BadInput."""
    text = "\n".join(lines)
    page = (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>ironburst {name}: {escape(lines[0])}</title>\n'
        f'<body style="font-family: sans-serif; margin: 2em"><h1>ironburst {name}</h1>\n'
        f'<pre style="white-space: pre-wrap">{escape(text)}</pre>\n{svg}</body></html>\n'
    )
    with _writing(folder):
        (folder / f"{name}.html").write_text(page)
        (folder / f"{name}.json").write_text(json.dumps(said, indent=1) + "\n")
        (folder / f"{name}.svg").write_text(svg)


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = f"can't be written ({error.strerror}); give a folder that may be written to"
        raise BadInput(f"--out {folder}: {why}") from None
