"""Pages of NetBox's REST API ({count, next, previous, results}) as objects whose values are looked at when they are
read. NetBox 3.3 to 4.6: its serializers (netbox/dcim/api/serializers_/) and pagination (netbox/api/pagination.py).
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ironburst.hall.seen import NotUnderstood

_OBJECT = re.compile(r"/api/(.+)/(\d+)/?$")
WHOLE = "fetch whole objects, without brief, fields or omit"


@dataclass(frozen=True)
class Thing:
    """One object. `where`: its file and which one it is. Every method raises NotUnderstood for a value of another
    form; what NetBox leaves out of a whole object is never asked for.
    """

    where: str
    id: int
    values: Mapping[str, Any]

    def get(self, *keys: str) -> Any:
        """Under the first of the keys that is there: newer releases call some otherwise."""
        for key in keys:
            if key in self.values:
                return self.values[key]
        raise NotUnderstood(f"{self.where} has no {keys[0]}: {WHOLE}")

    def text(self, key: str) -> str:
        """Empty: none."""
        value = self.values.get(key)
        if value is not None and not isinstance(value, str):
            raise self.wrong(key, value, "a text")
        return clean(value or "")

    def number(self, key: str) -> float | None:
        """NetBox's decimals are JSON numbers; other programs write them as texts."""
        return self._number(key, self.get(key))

    def number_if(self, key: str) -> float | None:
        """The same of a key that came with a newer release."""
        return self._number(key, self.values.get(key))

    def _number(self, key: str, value: Any) -> float | None:
        if value is None or value == "":
            return None
        try:
            number = math.nan if isinstance(value, bool) else float(value)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            raise self.wrong(key, value, "a number")
        return number

    def choice(self, key: str) -> str:
        """{value, label}; empty: none."""
        value = self.values.get(key)
        if isinstance(value, dict):
            value = value.get("value")
        if value is not None and not isinstance(value, str):
            raise self.wrong(key, self.values[key], "one of NetBox's choices, {value, label}")
        return clean(value or "")

    def ref(self, *keys: str) -> int | None:
        """Id of a related object; None: none."""
        value = self.get(*keys)
        number = value.get("id") if isinstance(value, dict) else value
        if value is not None and (not isinstance(number, int) or isinstance(number, bool)):
            raise self.wrong(keys[0], value, "an object with its id")
        return number

    def of(self, *keys: str) -> Thing:
        """The related object, as far as it is given there. It must be there."""
        number, value = self.ref(*keys), self.get(*keys)
        if number is None or not isinstance(value, dict):
            raise self.wrong(keys[0], value, "an object with its id")
        return Thing(f"{self.where}, {keys[0]},", number, value)

    def every(self, key: str) -> list[Mapping[str, Any]]:
        """A list of objects."""
        value = self.get(key)
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            raise self.wrong(key, value, "a list of objects")
        return value

    def wrong(self, key: str, value: Any, allowed: str) -> NotUnderstood:
        """A sentence about one value."""
        shown = json.dumps(value)
        return NotUnderstood(f"{self.where} has {key} {shown[:60]}{'…' * (len(shown) > 60)}, where {allowed} belongs")


def clean(text: str) -> str:
    """In one line, without what ends a comment of YAML's, or what no terminal shows."""
    return " ".join(re.sub(r"[^ -~\u00a0-\u2027\u2030-\ud7ff\ue000-\ufefe]+", " ", text).split())


Things = Mapping[str, Mapping[int, Thing]]
"""endpoint (dcim/racks): id: object"""


def read(files: Mapping[str, str]) -> Things:
    """Of files by their names. What an object is its own URL says, not the file's name. Raises NotUnderstood, also
    where a page is missing.
    """
    found: dict[str, dict[int, Thing]] = defaultdict(dict)
    counts: dict[str, int] = {}
    after: dict[str, list[str | None]] = defaultdict(list)
    for file, text in files.items():
        page = _page(file, text)
        endpoint = ""
        for endpoint, thing in _things(file, page["results"]):
            found[endpoint][thing.id] = thing
        if endpoint:
            after[endpoint].append(page.get("next"))
            counts[endpoint] = max(counts.get(endpoint, 0), page["count"] or 0)
    for endpoint, its in found.items():
        missing = counts[endpoint] - len(its)
        following = next((url for url in after[endpoint] if url), "")
        # pages that go by ids (`start`) count nothing: the last one says that nothing follows
        if missing > 0 or (not counts[endpoint] and None not in after[endpoint]):
            count = f"of {counts[endpoint]} objects {len(its)}" if counts[endpoint] else "the last page isn't"
            verb = "are there" if counts[endpoint] else "there"
            more = f" (one of them: {following})" if following else ""
            raise NotUnderstood(f"{endpoint}: {count} {verb}: fetch every page, as `next` says{more}")
    return found


def _page(file: str, text: str) -> dict[str, Any]:
    try:
        page = json.loads(text)
    except (ValueError, RecursionError) as error:
        at = f", line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise NotUnderstood(f"{file} is no JSON{at}: save what NetBox's REST API answers") from None
    if isinstance(page, dict) and isinstance(page.get("detail"), str) and "results" not in page:
        raise NotUnderstood(f"{file} is NetBox's refusal: {page['detail'][:200]}")
    if not isinstance(page, dict) or not isinstance(page.get("results"), list):
        raise NotUnderstood(f"{file} has no `results`: save the answer of a list, as of /api/dcim/racks/")
    count = page.setdefault("count", None)
    if count is not None and (not isinstance(count, int) or isinstance(count, bool)):
        raise NotUnderstood(f"{file} has `count` {json.dumps(count)[:60]}, where a number belongs")
    if not isinstance(page.get("next"), str | None):
        raise NotUnderstood(f"{file} has `next` {json.dumps(page['next'])[:60]}, where a URL belongs")
    return page


def _things(file: str, results: list[Any]) -> Iterator[tuple[str, Thing]]:
    for n, values in enumerate(results, 1):
        url = values.get("url") if isinstance(values, dict) else None
        match = _OBJECT.search(url) if isinstance(url, str) else None
        if not match:
            raise NotUnderstood(f"{file}, object {n} of `results`, has no url of NetBox's: {WHOLE}")
        endpoint, number = match[1], int(match[2])
        name = next((values[key] for key in ("name", "display", "model") if isinstance(values.get(key), str)), "")
        shown = f" ({clean(name[:60])})" if name else ""
        yield endpoint, Thing(f"{file}: {endpoint}/{number}{shown}", number, values)
