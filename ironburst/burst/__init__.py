"""The burst policy: which jobs of the queue are worth renting for. Pure: no clock, no I/O, no globals.

`decide(snapshot, policy) -> Decision` is a function of its arguments. Snapshots and decisions go to and from JSON with
`to_json` and `from_json`: the audit log, a bug report and a regression test are the same file.

- snapshot (with memory and resources) and policy go in, decision comes out; codec: all three as JSON
- decide: the passes of one decision, in order; sanitize: what in a snapshot can't be right; sides: two schedulers
- home: the queue placed on home's nodes (packing, holes); lateness: late jobs, by limits and runtimes (learned)
- eligibility: jobs that can't be rented for; offers: where a job can go, by expected cost; slots: what is rented
- renting: where a late job goes: reuse or launches, as refusals, headroom and commitments (the money: budget) allow
- handover: a job's way to rented nodes and back; unstarted: jobs that don't start there; drains: who drained a node
- by_slack: jobs with a deadline go to spot, on demand, or wait, by what spot did so far (spot, spot_table)
- release: which nodes are given back, by idle and idle_log; backoff: how long a place that refused isn't tried again
- orders: what a person halted or limited; user_limits: what one user's jobs may have
- answers: the message for each job, with its alternatives; explain and sentence: the words; unexplained: without them
- waits_kept: whether waits are still as wanted; frozen: what is made for each job
- mix, patterns: instances for many pending pods; not used by `decide`
"""

from ironburst.burst.budget import Budget
from ironburst.burst.codec import from_json, to_json
from ironburst.burst.decide import decide
from ironburst.burst.decision import (
    Alternative,
    Assign,
    Decision,
    Infeasible,
    Launch,
    Move,
    Narrow,
    Release,
    Wait,
    Widen,
)
from ironburst.burst.orders import Halt, UserLimit, signed
from ironburst.burst.policy import Policy
from ironburst.burst.resources import Resources
from ironburst.burst.snapshot import CoolDown, Job, Lease, Node, OtherType, Pool, Snapshot

__all__ = [
    "Alternative",
    "Assign",
    "Budget",
    "CoolDown",
    "Decision",
    "Halt",
    "Infeasible",
    "Job",
    "Launch",
    "Lease",
    "Move",
    "Narrow",
    "Node",
    "OtherType",
    "Policy",
    "Pool",
    "Release",
    "Resources",
    "Snapshot",
    "UserLimit",
    "Wait",
    "Widen",
    "decide",
    "from_json",
    "signed",
    "to_json",
]
