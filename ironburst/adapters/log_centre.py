"""Log centres, as `ironburst logs` asks them: Elasticsearch's search, which OpenSearch has, too, and VictoriaLogs'."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from ironburst.ports.logs import LogCentre, LogLine, LogQuery, LogsError

INDICES = "ironburst-logs-*"
MOST = 10_000
"""lines of an answer: what Elasticsearch gives at most (index.max_result_window)"""
_LARGEST = 400_000_000  # bytes of one
Ask = Callable[[str, bytes], bytes]
"""(path, body) -> the answer to a POST. Raises LogsError"""


def way(url: str, user: str = "", password: str = "", ca: str = "", timeout_s: float = 20.0) -> Ask:
    """`ca`: PEM of who signed its certificate; empty: the system's own authorities."""
    headers = {"Content-Type": "application/json"}
    if user:
        headers["Authorization"] = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
    context = ssl.create_default_context(cadata=ca or None) if url.startswith("https:") else None

    def ask(path: str, body: bytes) -> bytes:
        kind = {} if body.startswith(b"{") else {"Content-Type": "application/x-www-form-urlencoded"}
        try:
            request = urllib.request.Request(url + path, body, headers | kind)
            with urllib.request.urlopen(request, timeout=timeout_s, context=context) as answer:
                return bytes(answer.read(_LARGEST))
        except urllib.error.HTTPError as error:
            with error:
                why = error.read(300).decode(errors="replace").strip()
            raise LogsError(f"{url} refuses: HTTP {error.code}: {why or error.reason}") from None
        except (OSError, http.client.HTTPException) as error:
            raise LogsError(f"{url} gives no answer: {getattr(error, 'reason', None) or error}") from None

    return ask


class Elasticsearch:
    """LogCentre (ironburst.ports.logs)."""

    def __init__(self, ask: Ask):
        self._ask = ask

    def newest(self, query: LogQuery, count: int) -> list[LogLine]:
        """Raises LogsError."""
        times = {"gte": _iso(query.from_s), "lte": _iso(query.to_s)}
        whose = {"term": {"lease": query.lease}} if query.lease else {"terms": {"host": list(query.hosts)}}
        body = {
            "size": min(count, MOST),
            "query": {"bool": {"filter": [whose, {"range": {"@timestamp": times}}]}},
            "sort": [{"@timestamp": {"order": "desc", "unmapped_type": "date_nanos"}}, {"_doc": "desc"}],
            "track_total_hits": False,
        }
        path = f"/{INDICES}/_search?ignore_unavailable=true&allow_no_indices=true"
        answer = self._ask(path, json.dumps(body).encode())
        try:
            return _lines([hit["_source"] for hit in json.loads(answer)["hits"]["hits"]][::-1], "message")
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise LogsError(f"the log centre doesn't answer as Elasticsearch does: {error!r}") from None


class VictoriaLogs:
    """LogCentre (ironburst.ports.logs)."""

    def __init__(self, ask: Ask):
        self._ask = ask

    def newest(self, query: LogQuery, count: int) -> list[LogLine]:
        """Raises LogsError."""
        hosts = ", ".join(json.dumps(host) for host in query.hosts)
        whose = f"lease:={json.dumps(query.lease)}" if query.lease else f"host:in({hosts})"
        times = f"_time:[{_iso(query.from_s)}, {_iso(query.to_s)}]"
        asked = {"query": f"{times} {whose} | sort by (_time desc) limit {min(count, MOST)}"}
        answer = self._ask("/select/logsql/query", urllib.parse.urlencode(asked).encode())
        try:
            rows = [json.loads(row) for row in answer.splitlines()]
            found = _lines([row | {"@timestamp": row["_time"]} for row in rows][::-1], "_msg")
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise LogsError(f"the log centre doesn't answer as VictoriaLogs does: {error!r}") from None
        seen = dict[str, LogLine]()
        for n, line in enumerate(found):  # it keeps what was sent twice
            seen.setdefault(line.id or str(n), line)
        return list(seen.values())


KINDS: Mapping[str, Callable[[Ask], LogCentre]] = {
    "elasticsearch": Elasticsearch,
    "victorialogs": VictoriaLogs,
}


def _iso(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _lines(rows: Iterable[Mapping[str, Any]], message: str) -> list[LogLine]:
    return [
        LogLine(
            at_s=datetime.fromisoformat(row["@timestamp"]).timestamp(),
            host=str(row.get("host", "")),
            program=str(row.get("program", "")),
            severity=str(row.get("severity", "")),
            message=str(row.get(message, "")),
            lease=str(row.get("lease", "")),
            id=str(row.get("id", "")),
        )
        for row in rows
    ]
