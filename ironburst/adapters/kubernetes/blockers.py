"""Who holds quota of the cloud that nothing is ever rented for, while others wait for it: said to a person, and in the
cluster as Events of the workloads, his and theirs. Pure.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from ironburst.adapters.kubernetes.kueue_views import GROUP, VERSION, WorkloadView
from ironburst.adapters.kubernetes.quantities import micro_time
from ironburst.adapters.kubernetes.site import TIME_LIMIT
from ironburst.adapters.kubernetes.workloads import Queued, called
from ironburst.ports import Job

Json = dict[str, Any]
REASON = "HoldsQuota"
_MOST = 20  # workloads behind one that an Event is written of


class Blocker(NamedTuple):
    """`behind`: those that wait for its quota, by Kueue's own words."""

    holder: WorkloadView
    behind: tuple[WorkloadView, ...]
    message: str

    @property
    def told(self) -> tuple[WorkloadView, ...]:
        """Whose users are to know."""
        return (self.holder, *self.behind[:_MOST])


def blockers(seen: Queued, jobs: Iterable[Job]) -> list[Blocker]:
    """`jobs`: as `workloads.jobs_of` has them."""
    waiting = [each for each in seen.workloads.values() if each.reserved_s is None and each.active and each.said]
    if not waiting:
        return []
    keys, found = {gang.id: gang.key for gang in seen.gangs[0]}, []
    for job in jobs:
        now = seen.known.get(keys.get(job.id, ""))
        if now is None or not job.pending or job.held or not (job.demands or job.time_limit_s is None):
            continue
        flavors = sorted(seen.cloud(now))
        words = re.compile(rf"in flavor ({'|'.join(map(re.escape, flavors))})(,|$)")
        if behind := sorted((each for each in waiting if words.search(each.said)), key=called):
            found.append(Blocker(now, tuple(behind), _message(job, flavors, behind)))
    return found


def _message(job: Job, flavors: list[str], behind: list[WorkloadView]) -> str:
    why = f"it insists on {job.demands}" if job.demands else "it has no time limit"
    todo = f"give it one, or its LocalQueue or namespace the annotation {TIME_LIMIT}"
    more = f" and {len(behind) - 3} more" if len(behind) > 3 else ""
    return (
        f"workload {job.name} holds quota of flavor {', '.join(flavors)}, and nothing is rented for it: {why}. "
        f"{', '.join(map(called, behind[:3]))}{more} wait for that quota: {'delete it' if job.demands else todo}"
    )


def event(of: WorkloadView, blocker: Blocker, now_s: float) -> Json:
    """An Event (v1) of a workload. Its name is the same each time, so the cluster keeps one as long as it keeps any."""
    space, _, name = of.key.partition("/")
    mark = hashlib.sha256(f"{of.uid} {blocker.holder.uid}".encode()).hexdigest()[:16]
    at = micro_time(now_s).partition(".")[0] + "Z"
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.{mark}", "namespace": space},
        "involvedObject": {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": "Workload",
            "namespace": space,
            "name": name,
            "uid": of.uid,
        },
        "type": "Warning",
        "reason": REASON,
        "message": blocker.message[:1024],
        "source": {"component": "ironburst"},
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }
