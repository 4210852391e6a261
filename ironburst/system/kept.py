"""What was made of things that stay the same objects from one look to the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Kept(Generic[T]):
    """A pure function of a value, which isn't asked again about one that is the same object as at the last look."""

    def __init__(self, function: Callable[..., T]):
        self._function = function
        self._now: dict[int | tuple[Any, ...], tuple[Any, T]] = {}
        self._before = self._now

    def __call__(self, value: Any, *more: Any) -> T:
        """What the function makes of it, or raises. `more`: what else it is given, hashable."""
        key = (id(value), *more) if more else id(value)
        found = self._now.get(key) or self._before.get(key)
        if found is None or found[0] is not value:
            found = (value, self._function(value, *more))
        self._now[key] = found
        return found[1]

    def look(self) -> None:
        """Another one begins: what wasn't asked about since the one before is forgotten."""
        self._before, self._now = self._now, {}
