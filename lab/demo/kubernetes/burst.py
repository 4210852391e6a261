"""Step 3: the trace is submitted as Jobs, and the controller rents for what is worth it, through its faults."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from ironburst.adapters.kubernetes.gangs import Gang
from ironburst.controller.ledger import Ledger
from lab.demo import rights
from lab.demo.burst import Faults, Submitted, arguments, open_ledger, refused_first, sell, take_back, tell
from lab.demo.inside import Boxed
from lab.demo.kubernetes import pods
from lab.demo.kubernetes.trials import Moment, Trial, on_node
from lab.demo.kubernetes.world import Cluster
from lab.system import LabError, wait_for

LIMIT_S = 420
Say = Callable[[str], None]


def start_controller(inside: Boxed) -> None:
    """`ironburst run`, with the kubeconfig that the document names and the role that the declaration made."""
    settings = [f"AWS_CONFIG_FILE={inside.aws_config}", f"AWS_PROFILE={rights.PROFILE}"]
    nobodys = ["env", "-u", "AWS_ACCESS_KEY_ID", "-u", "AWS_SECRET_ACCESS_KEY", *settings]
    inside.spawn([*nobodys, *inside.ironburst("run", *arguments(inside))], "controller")


def id_of(job: dict[str, Any]) -> int:
    """What the controller calls a Job of ours."""
    return Gang(f"job {job['metadata']['uid']}", "", (), 1).id


def finished(job: dict[str, Any]) -> bool:
    """Complete or Failed for good."""
    conditions = job.get("status", {}).get("conditions") or ()
    return any(each["type"] in ("Complete", "Failed") and each["status"] == "True" for each in conditions)


def run(inside: Boxed, cluster: Cluster, say: Say, trials: Sequence[Trial]) -> tuple[Submitted, Faults]:
    """Submit the slice, let the controller work, take one spot instance back; returns when all jobs and leases have
    ended.
    """
    sell(inside)
    start_controller(inside)
    ledger = wait_for(lambda: open_ledger(inside), 30, f"the controller (see {inside.log('controller')})")
    say("the controller runs: as a user of the cluster with its rights alone, and under its own role in AWS")
    jobs, faults, told = pods.jobs(), refused_first(inside), set[str]()
    hour = f"{3600 / pods.COMPRESSION:.0f} s"
    say(f"{len(jobs)} jobs of the Philly trace (CC-BY-4.0), one hour of it in {hour}, as Jobs of {pods.NAMESPACE}")
    submitted, todo = Submitted(began=time.time()), list(jobs)
    while True:
        now = time.time() - submitted.began
        if now > LIMIT_S:
            raise LabError(f"the burst did not end within {LIMIT_S} s: {_unfinished(cluster, ledger)}")
        try:
            while todo and todo[0].submit_s <= now:
                submitted.ids[todo[0].name] = id_of(cluster.submit(pods.of(todo[0])))
                todo.pop(0)
            there = cluster.jobs()
        except LabError:  # as a user does: again
            there = []
        tell(ledger, told, submitted, say)
        if faults.interrupted is None:
            faults.interrupted = _interrupt_one(inside, cluster, ledger, say)
        for trial in trials:
            trial.look(Moment(cluster, ledger, faults.interrupted))
        if not todo and len(there) == len(jobs) and all(map(finished, there)) and not ledger.leases():
            if missed := [trial.what for trial in trials if not trial.done]:
                raise LabError(f"it was not met: {', '.join(missed)}; there was no moment for it")
            say("every job has ended and every lease is given back")
            return submitted, faults
        time.sleep(0.3)


def _interrupt_one(inside: Boxed, cluster: Cluster, ledger: Ledger, say: Say) -> str | None:
    """Take back the first spot instance on which a pod has been running."""
    for lease in ledger.leases():
        ready = lease.market == "spot" and lease.state == "ready"
        if ready and lease.instance_id and (there := on_node(cluster, lease.node)):
            take_back(inside, lease, f"while {', '.join(there)} runs on it", say)
            return lease.instance_id
    return None


def _unfinished(cluster: Cluster, ledger: Ledger) -> str:
    jobs = [f"job {job['metadata']['name']}" for job in cluster.jobs() if not finished(job)]
    leases = [f"lease {lease.node} {lease.state}" for lease in ledger.leases()]
    return f"{', '.join(jobs + leases) or 'nothing is left'}; see controller.log"
