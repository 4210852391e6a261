"""What a lookup raises when the catalogue has no such row."""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

Key = TypeVar("Key", str, int)
Row = TypeVar("Row")
MOST = 3
"""names that are suggested at most"""


class Unknown(LookupError):
    """`given` isn't in the catalogue. `kind` says what was looked up, `near` what may have been meant, best first."""

    def __init__(self, kind: str, given: str, near: Sequence[str] = ()) -> None:
        self.kind, self.given, self.near = kind, given, tuple(near)
        super().__init__(f"Unknown {kind} {given!r}: {suggested(near) or 'the catalogue has nothing like it.'}")


def suggested(near: Sequence[str]) -> str:
    """`did you mean 'a', 'b' or 'c'?`; empty without any."""
    if not near:
        return ""
    *others, last = map(repr, near)
    return f"did you mean {', '.join(others)} or {last}?" if others else f"did you mean {last}?"


def nearest(given: str, allowed: Iterable[str]) -> list[str]:
    """What may have been meant: the same but for case, blanks and punctuation, else what begins with it, else what has
    all its words (hgx-h100 in generic-hgx-h100-8-gpu), else what is written much like it. Best first, MOST at most.
    """
    names = {_plain(name): name for name in allowed}
    wanted = _plain(given)
    if wanted in names:
        return [names[wanted]]
    longer = [name for plain, name in names.items() if wanted and plain.startswith(wanted)]
    longer = longer or [name for name in names.values() if wanted and _words(given) <= _words(name)]
    if longer:
        return sorted(longer, key=lambda name: (len(name), name))[:MOST]
    close = difflib.get_close_matches(wanted, names, n=MOST, cutoff=0.6)
    best = [difflib.SequenceMatcher(None, wanted, plain).ratio() for plain in close]
    return [names[plain] for plain, ratio in zip(close, best, strict=True) if ratio > best[0] - 0.03]


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _words(name: str) -> set[str]:
    return set(re.split(r"[^a-z0-9]+", name.lower().strip()))


def unknown(kind: str, given: str, allowed: Iterable[str]) -> Unknown:
    """The error for `given`, with the nearest of `allowed`."""
    return Unknown(kind, given, nearest(given, allowed))


def look_up(kind: str, given: Key, rows: Mapping[Key, Row]) -> Row:
    """The row of that name; raises Unknown, which calls it a `kind`."""
    try:
        return rows[given]
    except KeyError:
        raise unknown(kind, str(given), map(str, rows)) from None
