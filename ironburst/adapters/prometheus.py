"""Prometheus' HTTP API, as far as the controller asks it: instant queries."""

from __future__ import annotations

import http.client
import json
import math
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from typing import Any

from ironburst.ports.measured import MeasuredError, QueryRefused, Sample

_LARGEST = 32_000_000  # bytes of an answer
_REFUSED = (400, 422)  # a query that isn't understood, or would load too many samples


class Prometheus:
    """Measured (ironburst.ports.measured), by the URL of its root, such as http://10.0.0.10:9090."""

    def __init__(self, url: str, timeout_s: float = 10.0):
        self._url, self._timeout_s = url.rstrip("/"), timeout_s

    def query(self, expression: str, at_s: float) -> list[Sample]:
        """Raises MeasuredError or QueryRefused."""
        body = urllib.parse.urlencode({"query": expression, "time": f"{at_s:.3f}", "timeout": f"{self._timeout_s:g}s"})
        answer = self._answer(f"{self._url}/api/v1/query", body.encode())
        try:
            return list(_samples(answer["data"]["result"]))
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise MeasuredError(f"{self._url} doesn't answer as Prometheus does: {error!r}") from None

    def _answer(self, url: str, body: bytes) -> Any:
        try:
            with urllib.request.urlopen(url, body, self._timeout_s) as answer:  # a POST, as long expressions need
                return json.loads(answer.read(_LARGEST))
        except urllib.error.HTTPError as error:  # with Prometheus' own words in it, mostly
            with error:
                said = error.read(500).decode(errors="replace").strip()
            kind = QueryRefused if error.code in _REFUSED else MeasuredError
            raise kind(f"{self._url}: HTTP {error.code}: {said or error.reason}") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise MeasuredError(f"{self._url} gives no answer: {getattr(error, 'reason', None) or error}") from None


def _samples(result: list[Any]) -> Iterator[Sample]:
    for series in result:
        value = float(series["value"][1])
        if math.isfinite(value):
            yield Sample({str(name): str(text) for name, text in series["metric"].items()}, value)
