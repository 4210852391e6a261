"""The filters of lists, as far as they are AIP-160: (field = "value") (field:*), all of which must hold."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lab.google.description import Wrong

_TERM = re.compile(r'\(?\s*([A-Za-z][\w.-]*)\s*(=|!=|:)\s*("(?:[^"\\]|\\.)*"|[\w.:/*-]+)\s*\)?')


def holds(filter: str, resource: Mapping[str, Any]) -> bool:
    """Raises Wrong for a filter that this stand-in doesn't know: it is never taken for one that finds all."""
    at, all_hold = 0, True
    while at < len(filter.rstrip()):
        term = _TERM.match(filter, at)
        if term is None:
            raise Wrong(f"Invalid value for field 'filter': '{filter}'. Invalid list filter expression.")
        field, operator, wanted = term.groups()
        all_hold = _term(resource, field, operator, wanted.strip('"')) and all_hold
        at = term.end()
        at += len(filter[at:]) - len(filter[at:].lstrip())
        if filter[at:].startswith("AND "):
            at += 4
    return all_hold


def _term(resource: Mapping[str, Any], field: str, operator: str, wanted: str) -> bool:
    value: Any = resource
    for part in field.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    if operator == ":" and wanted == "*":
        return value is not None
    same = value is not None and str(value).lower() == wanted.lower()
    return not same if operator == "!=" else same
