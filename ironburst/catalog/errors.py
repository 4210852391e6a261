"""What a lookup raises when the catalogue has no such row."""

import difflib
from collections.abc import Iterable, Mapping
from typing import TypeVar

Key = TypeVar("Key", str, int)
Row = TypeVar("Row")


class Unknown(LookupError):
    """`given` isn't in the catalogue. `kind` says what was looked up, `nearest` what may have been meant (or None)."""

    def __init__(self, kind: str, given: str, nearest: str | None) -> None:
        self.kind, self.given, self.nearest = kind, given, nearest
        hint = f"did you mean {nearest!r}?" if nearest else "the catalogue has nothing like it."
        super().__init__(f"Unknown {kind} {given!r}: {hint}")


def unknown(kind: str, given: str, allowed: Iterable[str]) -> Unknown:
    """The error for `given`, with the nearest of `allowed`, ignoring case."""
    names = {name.lower(): name for name in allowed}
    close = difflib.get_close_matches(given.lower(), names, n=1, cutoff=0.5)
    return Unknown(kind, given, names[close[0]] if close else None)


def look_up(kind: str, given: Key, rows: Mapping[Key, Row]) -> Row:
    """The row of that name; raises Unknown, which calls it a `kind`."""
    try:
        return rows[given]
    except KeyError:
        raise unknown(kind, str(given), map(str, rows)) from None
