"""Notes on an import, and names that fit a declaration."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

FEW = 6


@dataclass(frozen=True)
class Note:
    """A sentence about some of NetBox's objects. `list`: declare (NetBox doesn't know it), look (it is taken over, but
    not just as it is there), left (it isn't taken over).
    """

    list: str
    of: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        more = f" and {len(self.of) - FEW} more" if len(self.of) > FEW else ""
        return f"{', '.join(self.of[:FEW])}{more}: {self.text}"


class Notes:
    """Collects notes; the same note on several objects is one."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], dict[str, None]] = {}

    def declare(self, of: str, text: str) -> None:
        """NetBox doesn't know it."""
        self._add("declare", of, text)

    def look(self, of: str, text: str) -> None:
        """It is taken over, but not just as it is there."""
        self._add("look", of, text)

    def left(self, of: str, text: str) -> None:
        """It isn't taken over."""
        self._add("left", of, text)

    def _add(self, which: str, of: str, text: str) -> None:
        self._found.setdefault((which, text), {})[of] = None

    def all(self) -> tuple[Note, ...]:
        """In the order of their first objects."""
        return tuple(Note(which, tuple(of), text) for (which, text), of in self._found.items())


class Names:
    """Names of one kind of things, each once."""

    def __init__(self, notes: Notes, what: str, label: bool = False) -> None:
        self._notes, self._what, self._label = notes, what, label
        self._taken: set[str] = set()

    def take(self, given: str, or_else: Iterable[str] = ()) -> str:
        """As it is declared: of a host or a rack small letters, digits and -, of a label . and _, too. `or_else`: what
        distinguishes it where the name is taken already.
        """
        cleaned = label if self._label else host
        base = cleaned(given)
        tries = [base, *(f"{cleaned(word)}-{base}" for word in or_else if word)]
        name = next((each for each in tries if each.lower() not in self._taken), "")
        number = 1
        while not name:
            number += 1
            name = "" if f"{base}-{number}".lower() in self._taken else f"{base}-{number}"
        self._taken.add(name.lower())
        if name != given:
            self._notes.look(f"{self._what} {given!r}", f"is {name} here")
        return name


def host(given: str) -> str:
    """A name of a host, rack or hall; a fully qualified one without its domain."""
    short = given.split(".")[0] if re.fullmatch(r"[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+", given) else given
    name = re.sub(r"[^a-z0-9]+", "-", short.lower()).strip("-")
    return (name if name[:1].isalpha() else f"x{name}")[:32].rstrip("-")


def label(given: str) -> str:
    """A name of a PDU or circuit."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", given).strip("-._") or "x"


def natural(name: str) -> tuple[tuple[int, int | str], ...]:
    """Sorts dgx2 before dgx10."""
    return tuple((0, int(part)) if part.isdecimal() else (1, part) for part in re.split(r"(\d+)", name))
