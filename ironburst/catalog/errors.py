"""What a lookup raises when the catalogue has no such row."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from ironburst.system.near import nearest, suggested

Key = TypeVar("Key", str, int)
Row = TypeVar("Row")


class Unknown(LookupError):
    """`given` isn't in the catalogue. `kind` says what was looked up, `near` what may have been meant, best first."""

    def __init__(self, kind: str, given: str, near: Sequence[str] = ()) -> None:
        self.kind, self.given, self.near = kind, given, tuple(near)
        super().__init__(f"Unknown {kind} {given!r}: {suggested(near) or 'the catalogue has nothing like it.'}")


def unknown(kind: str, given: str, allowed: Iterable[str]) -> Unknown:
    """The error for `given`, with the nearest of `allowed`."""
    return Unknown(kind, given, nearest(given, allowed))


def look_up(kind: str, given: Key, rows: Mapping[Key, Row]) -> Row:
    """The row of that name; raises Unknown, which calls it a `kind`."""
    try:
        return rows[given]
    except KeyError:
        raise unknown(kind, str(given), map(str, rows)) from None


def known(names: Iterable[str], look_up: Callable[[str], Row]) -> Iterator[Row]:
    """What `look_up` finds, without those names that it doesn't know."""
    for name in names:
        try:
            yield look_up(name)
        except Unknown:
            continue
