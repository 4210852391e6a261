"""From Slurm's accounting, the controller's ledger and the submit folder to one History."""

from __future__ import annotations

from pathlib import Path

from ironburst.controller.ledger import Ledger
from ironburst.controller.records import LeaseRow
from ironburst.document import ClusterDocument
from lab.demo import trace
from lab.demo.burst import Head, Submitted
from lab.demo.history import History, JobHistory, LeaseHistory, Mark, Run

OWNER = 1500  # alice
FIELDS = "JobIDRaw,JobName,State,Submit,Start,End,NodeList"
MARKS = {
    "rent": "rent",
    "launched": "rent",
    "widened": "rent",
    "release": "release",
    "terminated": "release",
    "refused": "fault",
    "interrupted": "fault",
    "requeued": "fault",
    "unknown": "fault",
    "given_up": "fault",
    "trouble": "fault",
}


def history(
    head: Head, ledger: Ledger, document: ClusterDocument, submitted: Submitted, shared: Path, facts: dict[str, str]
) -> History:
    began = submitted.began
    rented = {node for pool in document.pools for node in pool.nodes}
    home = [host for host in document.hosts if host.gpu and host.partition == document.scheduler.home_partition]
    runs = _runs(head, began, rented)
    results = {job.name: check_result(shared, job, submitted.ids.get(job.name)) for job in trace.jobs()}
    jobs = []
    for job in trace.jobs():
        id = submitted.ids[job.name]
        submit, mine = runs.get(id, (job.submit_s, ()))
        # a decision that stood for longer than the one tick in which a job comes and starts
        waited = any(decision.kind == "wait" and decision.last_s > decision.at_s for decision in ledger.decisions(id))
        done = bool(mine) and mine[-1].state == "COMPLETED" and results[job.name] == ""
        fate = "lost" if not done else "rented" if mine[-1].rented else "waited" if waited else "home"
        jobs.append(JobHistory(id, job.name, job.gpus, job.nodes, submit, mine, fate))
    return History(
        home_gpus=sum(host.gpu.count for host in home if host.gpu),
        gpus_per_node=trace.GPUS_PER_NODE,
        jobs=tuple(jobs),
        leases=leases_of(ledger, began),
        marks=marks_of(ledger, submitted),
        run_twice=sum(_lines(shared / f"runs-{job.name}") > 1 for job in trace.jobs()),
        budget_usd=document.budget.usd_per_month if document.budget else 0.0,
        facts=facts,
    )


def leases_of(ledger: Ledger, began: float) -> tuple[LeaseHistory, ...]:
    """Every lease that was paid for."""
    return tuple(_lease(lease, began) for lease in ledger.leases(open_only=False) if lease.from_s is not None)


def _lease(lease: LeaseRow, began: float) -> LeaseHistory:
    end = lease.to_s or lease.changed_s
    return LeaseHistory(
        node=lease.node,
        type=lease.instance_type,
        zone=lease.zone,
        market=lease.market,
        start=(lease.from_s or lease.made_s) - began,
        end=end - began,
        usd=round(lease.usd(end), 4),
        ended=lease.end_reason,
    )


def marks_of(ledger: Ledger, submitted: Submitted) -> tuple[Mark, ...]:
    """Every wait that was decided, and every event, by time."""
    began, names = submitted.began, {id: name for name, id in submitted.ids.items()}
    waits = [decision for decision in ledger.decisions() if decision.kind == "wait"]
    marks = [Mark(wait.at_s - began, "wait", f"{names.get(wait.job, wait.job)}: {wait.text}") for wait in waits]
    marks += [
        Mark(event.at_s - began, MARKS.get(event.kind, "other"), f"{event.kind}: {event.text}")
        for event in ledger.events(began - 5)
    ]
    return tuple(sorted(marks, key=lambda mark: mark.at))


def check_result(shared: Path, job: trace.TraceJob, id: int | None) -> str:
    """Empty if the job's result is in the submit folder, right, and its user's; else what is wrong with it."""
    path = shared / f"result-{job.name}"
    try:
        text, checksum = path.read_text().splitlines()
    except (OSError, ValueError):
        return f"{path.name} is not there, or is cut off"
    if trace.checksum(text) != checksum:
        return f"{path.name} does not match its checksum"
    if f"job={id} " not in text:
        return f"{path.name} is of another job"
    owner = path.stat().st_uid
    return "" if owner == OWNER else f"{path.name} belongs to user {owner}, not to {OWNER}"


def _runs(head: Head, began: float, rented: set[str]) -> dict[int, tuple[float, tuple[Run, ...]]]:
    """Submit time and every start of each job, requeued ones too, from sacct."""
    jobs: dict[int, tuple[float, list[Run]]] = {}
    text = head.root(f"SLURM_TIME_FORMAT=%s sacct -a -D -X -n -P -S now-1hours -o {FIELDS}")
    for line in text.splitlines():
        id, _, state, submit, start, end, nodes = line.split("|")
        first, runs = jobs.setdefault(int(id), (float(submit) - began, []))
        if start.isdigit() and nodes not in ("", "None assigned"):
            names = tuple(head.root(f"scontrol show hostnames {nodes}").split())
            stop = float(end) - began if end.isdigit() else float(start) - began
            runs.append(Run(float(start) - began, stop, names, names[0] in rented, state.split()[0]))
        jobs[int(id)] = (min(first, float(submit) - began), runs)
    return {id: (submit, tuple(sorted(runs, key=lambda run: run.start))) for id, (submit, runs) in jobs.items()}


def _lines(path: Path) -> int:
    return len(path.read_text().splitlines()) if path.exists() else 0
