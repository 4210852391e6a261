"""What rented nodes say, on its way home: it counts only as their lease's, and goes on by the journal of this host,
which keeps it while the log centre is away, and from which `ironburst-logs` sends it. docs/adr/0111.
"""

from __future__ import annotations

import json
import re
import socket
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

PATH = "/logs"
JOURNAL = Path("/run/systemd/journal/socket")
IDENTIFIER = "ironburst-rented"
"""of all of it: a node's line that calls itself sshd's is none of this host's sshd"""
BODY = 4_000_000
LINE = 32_000
"""bytes of a request, and characters of a line, as ironburst-logs has them"""
LATE_S, EARLY_S = 7 * 86400.0, 60.0
"""how old a line may be, and how far ahead; others get the time of their arrival"""
SEVERITIES = ("emerg", "alert", "crit", "err", "warning", "notice", "info", "debug")
_NO_HIGHER = 3  # err: journald shows emergencies to everybody who is logged in
_PROGRAM = re.compile(r"[^\x21-\x7e]")
_ID = re.compile(r"[0-9a-f]{32}")
Line: TypeAlias = dict[str, str]
"""fields of journald: MESSAGE, PRIORITY, SYSLOG_IDENTIFIER, and IRONBURST_NODE, _LEASE, _PROGRAM, _PID, _SEVERITY,
_TIME, _ID
"""


class MalformedLines(ValueError):
    """Not what ironburst-logs sends; the text is one sentence."""


def lines(body: bytes, node: str, lease: str, now_s: float) -> list[Line]:
    """Of a request, in the form of _bulk: whatever it says of node and lease, it is theirs. Raises MalformedLines."""
    try:
        rows = [json.loads(row) for row in body.decode().split("\n")[1::2] if row]
    except ValueError:
        raise MalformedLines("isn't in the form of Elasticsearch's _bulk") from None
    if not all(isinstance(row, dict) for row in rows):
        raise MalformedLines("isn't in the form of Elasticsearch's _bulk")
    return [_line(row, node, lease, now_s) for row in rows]


def _line(row: dict[str, Any], node: str, lease: str, now_s: float) -> Line:
    program = _PROGRAM.sub("", _text(row, "program"))[:64] or "unknown"
    pid, given, severity = _text(row, "pid"), _text(row, "id"), _text(row, "severity")
    severity = severity if severity in SEVERITIES else "info"
    return {
        "MESSAGE": f"{node} {program}: {_text(row, 'message')[:LINE]}",
        "PRIORITY": str(max(SEVERITIES.index(severity), _NO_HIGHER)),
        "SYSLOG_IDENTIFIER": IDENTIFIER,
        "IRONBURST_NODE": node,
        "IRONBURST_LEASE": lease,
        "IRONBURST_PROGRAM": program,
        "IRONBURST_PID": pid if pid.isdecimal() and len(pid) < 12 else "",
        "IRONBURST_SEVERITY": severity,
        "IRONBURST_TIME": _time(_text(row, "@timestamp"), now_s),
        # its own part of all ids: no line takes another's place
        "IRONBURST_ID": f"{lease}-{given}" if _ID.fullmatch(given) else f"{lease}-{time.monotonic_ns():x}",
    }


def _text(row: dict[str, Any], name: str) -> str:
    value = row.get(name)
    return value if isinstance(value, str) else ""


def _time(given: str, now_s: float) -> str:
    try:
        at = datetime.fromisoformat(given)
        at_s = at.timestamp() if at.tzinfo else float("inf")
    except (ValueError, OverflowError):
        at_s = float("inf")
    believed_s = at_s if -LATE_S <= at_s - now_s <= EARLY_S else now_s
    return datetime.fromtimestamp(believed_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def datagram(line: Line) -> bytes:
    """As journald takes it."""
    fields = []
    for name, value in line.items():
        data = value.encode(errors="replace")
        fields.append(name.encode() + b"\n" + len(data).to_bytes(8, "little") + data + b"\n")
    return b"".join(fields)


def write(written: list[Line], journal: Path = JOURNAL) -> None:
    """Into the journal; it waits for one that is busy. Raises OSError."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as way:
        way.settimeout(20)
        way.connect(str(journal))
        for line in written:
            way.send(datagram(line))
