"""The rows of Slurm's JSON from one look to the next: with 10,000 jobs most are printed as they were, and reading them
is most of a tick.
"""

from __future__ import annotations

import json
import re
from typing import Any

_SURROGATE = "\\ud"  # a JSON escape of U+D800 to U+DFFF; half of a pair is no text


class Rows:
    """One command's answers. A row that is printed as it was at the last look is the same object as then: not to be
    written to.
    """

    def __init__(self, key: str):
        """`key`: of the list."""
        # as Slurm prints it (json-c, pretty): no string has a line break in it, so these lines are the list's own
        self._list = re.compile(rf'\A\{{\n( +)(?:.*\n\1)*?"{key}": ?\[\n( +)\{{\n')
        self._key = key
        self._known: dict[tuple[int, int], Any] = {}  # by their text's hash and length

    def read(self, text: str) -> Any:
        """The answer. Raises ValueError."""
        known, self._known = self._known, {}
        begins = self._list.match(text)
        ends = f"\n{begins[2]}}}\n{begins[1]}]" if begins else ""
        if not begins or (end := text.find(ends, begins.end())) < 0:
            return _read(text)
        rows = []
        for row in text[begins.end() : end].split(f"\n{begins[2]}}},\n{begins[2]}{{\n"):
            which = hash(row), len(row)
            found = self._known[which] = self._known.get(which) or known.get(which) or _read(f"{{{row}}}")
            rows.append(found)
        rest = text[end + len(ends) :]
        return _read(text[: begins.end() - len(begins[2]) - 2] + "]" + rest) | {self._key: rows}


def _read(text: str) -> Any:
    answer = json.loads(text)
    return _storable(answer) if _SURROGATE in text.lower() else answer


def _storable(value: Any) -> Any:
    """Decoded JSON without halves of surrogate pairs, which no file or database takes."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_storable(key): _storable(each) for key, each in value.items()}
    return [_storable(each) for each in value] if isinstance(value, list) else value
