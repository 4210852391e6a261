"""From Slurm's accounting, the controller's ledger and the submit folder to one History."""

from __future__ import annotations

from pathlib import Path

from ironburst.controller.ledger import Ledger
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
    leases = [
        LeaseHistory(
            x.node,
            x.instance_type,
            x.zone,
            x.market,
            (x.from_s or x.made_s) - began,
            (x.to_s or x.changed_s) - began,
            round(x.usd(x.to_s or x.changed_s), 4),
            x.end_reason,
        )
        for x in ledger.leases(open_only=False)
        if x.from_s is not None
    ]
    names = {id: name for name, id in submitted.ids.items()}
    marks = [
        Mark(d.at_s - began, "wait", f"{names.get(d.job, d.job)}: {d.text}")
        for d in ledger.decisions()
        if d.kind == "wait"
    ]
    marks += [Mark(e.at_s - began, MARKS.get(e.kind, "other"), f"{e.kind}: {e.text}") for e in ledger.events(began - 5)]
    return History(
        home_gpus=sum(host.gpu.count for host in home if host.gpu),
        gpus_per_node=trace.GPUS_PER_NODE,
        jobs=tuple(jobs),
        leases=tuple(leases),
        marks=tuple(sorted(marks, key=lambda mark: mark.at)),
        run_twice=sum(_lines(shared / f"runs-{job.name}") > 1 for job in trace.jobs()),
        budget_usd=document.budget.usd_per_month if document.budget else 0.0,
        facts=facts,
    )


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
