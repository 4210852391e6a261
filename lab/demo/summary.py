"""The demo's result as a person and as a program read it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from ironburst.document import ClusterDocument
from lab.demo import trace
from lab.demo.burst import Faults
from lab.demo.history import History
from lab.demo.refusal import Refusal
from lab.demo.training import Training
from lab.demo.watch import Watched


@dataclass
class Summary:
    engine: str
    scheduler: str = "Slurm"
    seconds: dict[str, float] = field(default_factory=dict)
    converge: dict[str, Any] = field(default_factory=dict)
    history: History | None = None
    faults: dict[str, dict[str, Any]] = field(default_factory=dict)
    training: Training | None = None
    """the job that was interrupted and went on; None until it was submitted, and with pods"""
    watched: Watched | None = None
    """what the lab's Prometheus showed; None until it was looked, and with pods"""
    refused: Refusal | None = None
    """the gang that the cloud had no capacity for; None until it was submitted"""
    figures: dict[str, Any] = field(default_factory=dict)
    """how quickly the controller acted, and what the demo took of the machine"""
    leftovers: dict[str, int] | None = None
    """kind: how many; None until it was looked"""
    kept: bool = False
    """the lab stays up: neither refused nor given back yet"""

    def good(self) -> bool:
        """Every job done once, both faults and the refused gang met and survived, the hall watched, the second converge
        changed nothing, and nothing left; of a lab that is kept, what was told of these.
        """
        jobs = self.history.jobs if self.history else ()
        unchanged = all(host["changed"] == host["failed"] == 0 for host in self.converge.get("second", {}).values())
        clean = self.leftovers is not None and not any(self.leftovers.values())
        safe = bool(jobs) and not any(job.fate == "lost" for job in jobs) and self.history.run_twice == 0
        survived = all(fault["survived"] for fault in self.faults.values())
        survived = survived and all(part is None or part.good() for part in (self.training, self.watched))
        ended = clean and self.refused is not None and self.refused.good()
        return safe and unchanged and survived and (self.kept or ended)


def facts(document: ClusterDocument, engine: str, compression: float, cloud: str) -> dict[str, str]:
    """Lines for the head of the report: what was real, and how old the prices are. `cloud`: its stand-in."""
    ages = [f"{pool.instance_type}: {pool.price_as_of or 'declared'}" for pool in document.pools]
    changed = f"CC-BY-4.0, changed: a slice, time divided by {compression:g}"
    return {
        "Engine": engine,
        "Input": f"{len(trace.jobs())} jobs of the Microsoft Philly trace ({changed})",
        "Real": "Slurm, systemd hosts, ssh, Ansible, Redfish, opensm, the Pulumi protocol and program",
        "Stand-ins": f"{cloud}, GPUs and NVIDIA packages (stubs), the fabric (ibsim), shared files (bind mount); "
        "the work of the trace's jobs is a sleep",
        "Prices of": "; ".join(ages) + f"; seen on {date.today()}; every sum is an estimate",
    }


def faults(history: History, injected: Faults) -> dict[str, dict[str, Any]]:
    """What was injected, whether the controller met it, and whether every job still ended well."""
    well = not any(job.fate == "lost" for job in history.jobs) and history.run_twice == 0
    code = injected.refusals_expected.partition(" ")[0]
    texts = [mark.text for mark in history.marks if mark.kind == "fault"]
    refused = sum(text.startswith("refused") and code in text for text in texts)
    interrupted = sum(text.startswith("interrupted") for text in texts)
    return {
        code: {
            "injected": injected.refusals_expected,
            "met": refused,
            "survived": well and refused > 0,
        },
        "spot interruption": {
            "injected": injected.interrupted,
            "met": interrupted,
            "survived": well and interrupted > 0,
        },
    }


def by_fate(history: History) -> dict[str, dict[str, float]]:
    """Jobs, GPU-hours and dollars of each fate; a lease's price goes to the rented jobs together."""
    rows = {}
    for fate in ("home", "waited", "rented"):
        jobs = [job for job in history.jobs if job.fate == fate]
        usd = history.spent_usd if fate == "rented" else 0.0
        rows[fate] = {
            "jobs": len(jobs),
            "gpu_hours": round(sum(job.gpu_hours for job in jobs), 3),
            "usd": round(usd, 2),
        }
    return rows


def as_json(result: Summary) -> dict[str, Any]:
    history = result.history
    assert history
    leases = [
        {
            "node": lease.node,
            "type": lease.type,
            "zone": lease.zone,
            "market": lease.market,
            "from": lease.start,
            "to": lease.end,
            "usd": lease.usd,
            "ended": lease.ended,
        }
        for lease in history.leases
    ]
    jobs = by_fate(history) | {"lost": sum(job.fate == "lost" for job in history.jobs), "run_twice": history.run_twice}
    return {
        "engine": result.engine,
        "seconds": result.seconds,
        "converge": result.converge,
        "jobs": jobs,
        "leases": leases,
        "spent_usd": round(history.spent_usd, 4),
        "faults": result.faults,
        "training": result.training.as_json() if result.training else None,
        "watched": result.watched.as_json() if result.watched else None,
        "refused": result.refused.as_json() if result.refused else None,
        "figures": result.figures,
        "leftovers": result.leftovers,
        "kept": result.kept,
        "good": result.good(),
    }


def text(result: Summary, page: Path) -> str:
    data = as_json(result)
    lines = ["", "Summary", f"  engine      {result.engine}"]
    for fate, row in by_fate(result.history).items() if result.history else []:
        lines.append(f"  {fate:11} {row['jobs']:2} jobs, {row['gpu_hours']:.3f} GPU-hours, ${row['usd']:.2f}")
    lines.append(f"  lost        {data['jobs']['lost']}, run twice {data['jobs']['run_twice']}")
    if result.converge:
        first, second = (result.converge.get(run, {}) for run in ("first", "second"))
        changed = sum(host["changed"] for host in second.values())
        lines.append(f"  converged   {len(first)} hosts; the second run changed {changed}")
    for name, fault in result.faults.items():
        missed = "NOT survived" if fault["met"] else "did not happen: nothing is shown of it"
        lines.append(f"  fault       {name}: {'survived' if fault['survived'] else missed}")
    if result.training:
        met = "survived" if result.training.good() else "NOT survived"
        lines.append(f"  trained     {met}: {result.training.text()}")
    if result.watched:
        lines.append(f"  watched     {'well' if result.watched.good() else 'NOT well'}: {result.watched.text()}")
    if result.refused:
        lines.append(
            f"  refused     {'survived' if result.refused.good() else 'NOT survived'}: {result.refused.text()}"
        )
    if not result.kept:
        lines.append(f"  leftovers   {sum((result.leftovers or {}).values())}")
    quick = result.figures
    lines.append(
        f"  rent        requested {quick['rent_to_request_s']} s after it was decided; a tick is {quick['tick_s']:g} s"
    )
    lines.append(f"  joined      jobs ran {quick['joined_to_running_s']} s after their nodes had joined")
    if "boot_to_accepted_s" in quick:
        longest = sorted(quick["boot_path_s"].items(), key=lambda pair: -pair[1])[:3]
        named = ", ".join(f"{unit.removesuffix('.service')} {seconds:.1f} s" for unit, seconds in longest)
        accepted = f"accepted by {result.scheduler} {quick['boot_to_accepted_s']} s after it began"
        lines.append(f"  boot        {accepted}; on the critical path {named}")
    lines.append(
        f"  machine     at peak {quick['disk_peak_mb']:,.0f} MB of disk, {quick['memory_peak_mb']:,.0f} MB of memory"
    )
    lines += [f"  {name:11} {seconds:6.1f} s" for name, seconds in result.seconds.items()]
    lines.append(f"  total       {sum(result.seconds.values()):6.1f} s")
    lines.append(f"  report      {page}")
    return "\n".join(lines)
