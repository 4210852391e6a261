"""What was measured: the time series of a site, asked in Prometheus' query language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol


class MeasuredError(Exception):
    """No answer that can be used; ask again later. The text is one sentence."""


class QueryRefused(MeasuredError):
    """The answer to this query is no; another one may be answered."""


class Sample(NamedTuple):
    """One series of an instant query's answer."""

    labels: Mapping[str, str]
    value: float


class Measured(Protocol):
    """Safe to use from another thread than the tick's."""

    def query(self, expression: str, at_s: float) -> list[Sample]:
        """An instant query's answer at that moment. Raises MeasuredError or QueryRefused."""
