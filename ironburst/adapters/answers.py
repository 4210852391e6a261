"""Reading the answers of a cloud's API."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ironburst.ports import OutcomeUnknown

_LONGEST = 1500  # characters: Azure's on a quota, with the link where more is asked for, have some 1,000


def read(what: str, parse: Callable[[Mapping[str, Any]], Any], raw: Mapping[str, Any]) -> Any:
    """`parse(raw)`; an answer of another shape is none: OutcomeUnknown. `what`: the call."""
    try:
        return parse(raw)
    except (KeyError, ValueError, TypeError, AttributeError, IndexError) as error:
        raise OutcomeUnknown(
            f"{what}: an answer of a shape that isn't known ({type(error).__name__}: {error})"
        ) from None


def shortened(text: str) -> str:
    """The beginning of a cloud's message: some list all that there would be instead."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."
