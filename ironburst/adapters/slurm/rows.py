"""The rows of Slurm's JSON from one look to the next: with 10,000 jobs most are printed as they were, and reading them
is most of a tick. With 100,000 the text is larger than memory should be, so it is read as it comes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

_SURROGATE = "\\ud"  # a JSON escape of U+D800 to U+DFFF; half of a pair is no text
_HEAD = 65536  # bytes in which the list begins, or the answer is read whole
# slurmctld writes it of a waiting job at each look of its own, and nobody reads it: without it a row stays as it was
_VOLATILE = b'"last_sched_evaluation"'


class Rows:
    """One command's answers. A row that is printed as it was at the last look is the same object as then: not to be
    written to.
    """

    def __init__(self, key: str, row: Callable[[Any], Any] = lambda raw: raw):
        """`key`: of the list; `row`: what is kept of each."""
        # as Slurm prints it (json-c, pretty): no string has a line break in it, so these lines are the list's own
        self._list = re.compile(rf'\A\{{\n( +)(?:.*\n\1)*?"{key}": ?\[\n( +)\{{\n'.encode())
        self._key, self._row = key, row
        self._known: dict[tuple[int, int], Any] = {}  # by their text's hash and length
        self.made = 0  # rows that were decoded since the start

    def read(self, text: Iterable[bytes]) -> Any:
        """The answer, of its text piece by piece. Raises ValueError."""
        pieces, head = iter(text), b""
        for piece in pieces:
            head += piece
            if len(head) >= _HEAD:
                break
        if not (begins := self._list.match(head)):
            return self._whole(b"".join((head, *pieces)))
        known, self._known = self._known, {}
        rows, lines = [], _Lines(begins[1], begins[2])
        for row in lines.rows(head[begins.end() :], pieces):
            which = hash(row), len(row)
            found = self._known.get(which) or known.get(which) or self._decoded(b"{" + row + b"}")
            self._known[which] = found
            rows.append(found)
        answer: Any = _read(head[: begins.end() - len(begins[2]) - 2] + b"]" + lines.rest)
        return answer | {self._key: rows}

    def forget(self) -> None:
        """Its rows: the next answer is another one."""
        self._known = {}

    def _decoded(self, text: bytes) -> Any:
        self.made += 1
        return self._row(_read(text))

    def _whole(self, text: bytes) -> Any:
        """An answer that looks otherwise: nothing of it is kept."""
        self._known, answer = {}, _read(text)
        if isinstance(answer, dict) and isinstance(rows := answer.get(self._key), list):
            self.made += len(rows)
            answer[self._key] = [self._row(raw) for raw in rows]
        return answer


class _Lines:
    """The rows of a list as lines. `list_indent`, `row_indent`: what stands before its bracket and their braces."""

    def __init__(self, list_indent: bytes, row_indent: bytes):
        self._between = b"\n%b},\n%b{\n" % (row_indent, row_indent)
        self._ends = b"\n%b}\n%b]" % (row_indent, list_indent)
        self.rest = b""  # of the answer, behind the list

    def rows(self, text: bytes, more: Iterator[bytes]) -> Iterator[bytes]:
        """Between their braces, without what is volatile. Raises ValueError where the text ends before its list."""
        while (end := text.find(self._ends)) < 0:
            *whole, text = text.split(self._between)
            yield from map(self._steady, whole)
            # of a piece that ends within a row's end the next one has the rest
            if not (piece := next(more, b"")):
                raise ValueError("it ends before its list does")
            text += piece
        yield from map(self._steady, text[:end].split(self._between))
        self.rest = b"".join((text[end + len(self._ends) :], *more))

    def _steady(self, row: bytes) -> bytes:
        if (at := row.find(_VOLATILE)) < 0:
            return row
        indent = row[row.rfind(b"\n", 0, at) + 1 : at]
        end = row.find(b'\n%b"' % indent, at)
        return row[:at] + row[end + 1 + len(indent) :] if end > 0 else row


def _read(text: bytes) -> Any:
    said = text.decode("utf-8", "replace")  # users name their jobs as they like, in any encoding
    answer = json.loads(said)
    return _storable(answer) if _SURROGATE in said.lower() else answer


def _storable(value: Any) -> Any:
    """Decoded JSON without halves of surrogate pairs, which no file or database takes."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_storable(key): _storable(each) for key, each in value.items()}
    return [_storable(each) for each in value] if isinstance(value, list) else value
