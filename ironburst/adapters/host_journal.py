"""Journals of hosts, by ssh, and this host's own, in which `ironburst receive` keeps what rented nodes said."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from ironburst.adapters import remote
from ironburst.convergence.ports import Connection, RemoteProgram
from ironburst.ports.logs import LogLine, LogQuery, LogsError

SEVERITIES = ("emerg", "alert", "crit", "err", "warning", "notice", "info", "debug")
Run = Callable[..., "subprocess.CompletedProcess[str]"]
"""subprocess.run, or what stands for it"""


def _command(query: LogQuery, count: int, *matches: str) -> list[str]:
    times = [f"--since=@{query.from_s:.3f}", f"--until=@{query.to_s:.3f}"]
    return ["journalctl", "--quiet", "--no-pager", "--all", "--output=json", *times, f"--lines={count}", *matches]


def lines(
    connections: Mapping[str, Connection], query: LogQuery, count: int, secret: Callable[[str], str]
) -> list[LogLine]:
    """Of these hosts. Raises LogsError where none of them answers; `secret`: what is behind a reference."""
    text = f"import subprocess, sys\nsys.exit(subprocess.run({_command(query, count)!r}).returncode)\n"
    answers = remote.ask({host: RemoteProgram(way, text) for host, way in connections.items()}, secret=secret)
    wrong = {host: answer.error for host, answer in answers.items() if answer.error}
    if len(wrong) == len(answers):
        raise LogsError("; ".join(f"{host}: {error}" for host, error in sorted(wrong.items())))
    return [line for host, answer in answers.items() if not answer.error for line in _read(answer.output, host)]


def relayed(query: LogQuery, count: int, run: Run) -> list[LogLine]:
    """What rented nodes said, by this host's journal. Raises LogsError."""
    nodes = [f"IRONBURST_NODE={host}" for host in query.hosts]  # one field: any of them
    matches = [f"IRONBURST_LEASE={query.lease}"] if query.lease else nodes
    command = _command(query, count, "_SYSTEMD_UNIT=ironburst-receive.service", *matches)
    try:
        done = run(command, capture_output=True, text=True, errors="replace", timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LogsError(f"this host's journal can't be read: {error}") from None
    if done.returncode:
        said = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        raise LogsError(f"this host's journal can't be read: {said[0]}")
    return _read(done.stdout, "")


def _read(output: str, host: str) -> list[LogLine]:
    """Of journalctl's JSON, by its time; `host`: whose; empty: what each says that came from elsewhere."""
    found = []
    for row in output.splitlines():
        try:
            entry = {name: _text(value) for name, value in json.loads(row).items()}
            found.append(_own(entry, host) if host else _relayed(entry))
        except (ValueError, LookupError, TypeError):
            continue
    return found


def _own(entry: Mapping[str, str], host: str) -> LogLine:
    return LogLine(
        at_s=int(entry["__REALTIME_TIMESTAMP"]) / 1e6,
        host=host,
        program=entry.get("SYSLOG_IDENTIFIER") or entry.get("_COMM", ""),
        severity=SEVERITIES[int(entry.get("PRIORITY") or 6) & 7],
        message=entry.get("MESSAGE", ""),
    )


def _relayed(entry: Mapping[str, str]) -> LogLine:
    """As ironburst.monitoring.log_relay wrote it."""
    node, program = entry["IRONBURST_NODE"], entry["IRONBURST_PROGRAM"]
    return LogLine(
        at_s=datetime.fromisoformat(entry["IRONBURST_TIME"]).timestamp(),
        host=node,
        program=program,
        severity=entry["IRONBURST_SEVERITY"],
        message=entry["MESSAGE"].removeprefix(f"{node} {program}: "),
        lease=entry["IRONBURST_LEASE"],
        id=entry["IRONBURST_ID"],
    )


def _text(value: Any) -> str:
    """Of a field: a text, bytes as numbers, or several of either."""
    if isinstance(value, list):
        if value and all(isinstance(each, int) for each in value):
            return bytes(value).decode(errors="replace")
        return _text(value[0]) if value else ""
    return value if isinstance(value, str) else ""
