"""Step 7: the hall is watched. A GPU of it breaks (a stand-in's: the exporter of the lab reports Xid 79), Prometheus on
the head pages for it, and a job that ran there has its figures.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from ironburst import document
from ironburst.controller.ledger import Ledger
from ironburst.controller.records import RunRow
from lab.demo.burst import Head, arguments
from lab.demo.inside import Inside
from lab.system import wait_for

NODE, GPU, XID = "dgx02", "0", "79"
ALERT = "GpuLost"
GPU_FILE = "/etc/lab-gpu.json"
BROKEN = {"gpus": {GPU: {"xid": XID}}}
ASK = "import sys, urllib.request as web; print(web.urlopen(sys.argv[1], timeout=10).read().decode())"
ALERTMANAGER = "http://127.0.0.1:9093"
LIMIT_S = 180


@dataclass(frozen=True)
class Watched:
    """What the monitoring of the lab showed."""

    targets: dict[str, str] = field(default_factory=dict)
    """{job/node: up or down}"""
    alert: str = ""
    """its summary"""
    do: str = ""
    alert_s: float = 0.0
    """from the fault to when the alert began to fire"""
    job: tuple[str, ...] = ()
    """what `ironburst job` says of a job"""

    def good(self) -> bool:
        """Every target up, the page there, a job with figures."""
        return bool(self.targets) and set(self.targets.values()) == {"up"} and bool(self.alert) and bool(self.job)

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"good": self.good()}

    def text(self) -> str:
        up = sum(health == "up" for health in self.targets.values())
        return f"{up} of {len(self.targets)} targets up; {self.alert or 'NO ALERT'} ({self.alert_s:.0f} s after)"


def breaks(inside: Inside) -> float:
    """The GPU reports an Xid from now on; the time. Slurm and the health gate know nothing of it."""
    inside.site.host(NODE).ssh(f"cat > {GPU_FILE}", stdin=json.dumps(BROKEN) + "\n")
    return time.time()


def run(inside: Inside, ledger: Ledger, broke_s: float, say: Callable[[str], None]) -> Watched:
    """Wait for targets, alert and figures; the GPU is well again afterwards. LabError if one of these doesn't come."""
    head, prometheus = Head(inside), document.read(inside.document).monitoring.url

    def asked(url: str) -> Any:
        return json.loads(head.root(f"python3 -c '{ASK}' '{url}'"))

    def targets() -> dict[str, str]:
        found = asked(f"{prometheus}/api/v1/targets?state=active")["data"]["activeTargets"]
        return {_named(each["labels"]): each["health"] for each in found}

    wait_for(lambda: set(targets().values()) == {"up"}, LIMIT_S, f"every target of {prometheus} up", pause=1)
    seen = targets()
    say(f"Prometheus on the head scrapes {', '.join(sorted(seen))}; the DCGM exporters are stand-ins")

    def page() -> dict[str, Any] | None:
        firing = asked(f"{ALERTMANAGER}/api/v2/alerts?active=true")
        return next((each for each in firing if _is_ours(each["labels"])), None)

    wait_for(lambda: page() is not None, LIMIT_S, f"{ALERT} of {NODE} at Alertmanager", pause=1)
    alert = page() or {}
    told, after_s = alert["annotations"], datetime.fromisoformat(alert["startsAt"]).timestamp() - broke_s
    say(f"page, {after_s:.0f} s after GPU {GPU} of {NODE} reported Xid {XID}: {told['summary']}. {told['do']}")
    inside.site.host(NODE).ssh(f"rm {GPU_FILE}")

    def measured() -> list[RunRow]:
        return [run for run in ledger.runs_between(0.0, time.time()) if run.figures]

    wait_for(measured, LIMIT_S, "a job's figures in the ledger", pause=1)
    longest = max(measured(), key=lambda run: (run.end_s or 0.0) - run.start_s)
    lines = tuple(inside.run(inside.ironburst("job", str(longest.job), *arguments(inside))).rstrip().splitlines())
    say(f"$ ironburst job {longest.job}")
    for line in lines:
        say(f"  {line}")
    return Watched(seen, told["summary"], told["do"], round(after_s, 1), lines)


def _named(labels: dict[str, str]) -> str:
    return "/".join(filter(None, (labels["job"], labels.get("node"))))


def _is_ours(labels: dict[str, str]) -> bool:
    return labels["alertname"] == ALERT and labels.get("node") == NODE
