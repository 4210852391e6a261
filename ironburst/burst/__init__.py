"""The burst policy: what of the queue is worth renting for. Pure: no clock, no I/O, no globals.

`decide(snapshot, policy) -> Decision` is a function of its arguments. Snapshots and decisions go to and from JSON with
`to_json` and `from_json`: the audit log, a bug report and a regression test are the same file.
"""

from ironburst.burst.codec import from_json, to_json
from ironburst.burst.decide import decide
from ironburst.burst.decision import Alternative, Assign, Decision, Infeasible, Launch, Narrow, Release, Wait, Widen
from ironburst.burst.policy import Policy
from ironburst.burst.snapshot import Budget, CoolDown, Job, Lease, Node, Pool, Resources, Snapshot

__all__ = [
    "Alternative",
    "Assign",
    "Budget",
    "CoolDown",
    "Decision",
    "Infeasible",
    "Job",
    "Launch",
    "Lease",
    "Narrow",
    "Node",
    "Policy",
    "Pool",
    "Release",
    "Resources",
    "Snapshot",
    "Wait",
    "Widen",
    "decide",
    "from_json",
    "to_json",
]
