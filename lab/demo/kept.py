"""What stays of a demo: its report, and the logs of one that failed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from lab.demo import report, summary


def write(folder: Path, result: summary.Summary, title: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "summary.json").write_text(json.dumps(summary.as_json(result), indent=1) + "\n")
    (folder / "index.html").write_text(report.page(result.history, title))
    return folder


def keep_logs(lab: Path) -> None:
    """The end of each log, before the lab goes away."""
    folder = lab / "report" / "log"
    folder.mkdir(parents=True, exist_ok=True)
    for log in [*lab.glob("log/*.log"), *lab.glob("kubernetes/log/*.log"), *lab.glob("instances/*.console")]:
        (folder / log.name).write_bytes(log.read_bytes()[-200_000:])
    print(f"demo: the logs are in {folder}", file=sys.stderr)
