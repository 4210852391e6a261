"""What a cloud's store of secrets is to secrets.py: its references, and the way to what is behind them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


class Unanswered(Exception):
    """The store gives or takes nothing; the text says why, after "CALLED says", and never holds the secret."""


@dataclass(frozen=True)
class Store:
    """`provider`: of the cloud; `scheme`: the word before the colon; `form`: of what follows, a regular expression;
    `hint`: what to write. `get(name, region)` and `put(name, value, region)` raise Unanswered. `called`: for people.
    """

    provider: str
    scheme: str
    called: str
    form: str
    hint: str
    get: Callable[[str, str | None], str]
    put: Callable[[str, str, str | None], None]
