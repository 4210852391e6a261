"""Why a job can't be rented for: what no wait cures (the job's own nature, the pool's declared limits)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from operator import is_

from ironburst.burst import explain
from ironburst.burst.policy import Policy
from ironburst.burst.snapshot import Job, Node, Pool, Snapshot
from ironburst.nodes.gpus import NodeGpu, least
from ironburst.nodes.naming import FIRST_POD_JOB

Reason = tuple[str, str]  # code, text

# Words of Slurm's (src/common/job_state_reason.c; 23.02 to 26.05 share all that are here) for a pending job that no
# node starts, owned or rented. Not among them: what a node more may cure, or what only home's own size says (Resources,
# Priority, ReqNodeNotAvail, Reservation, PartitionNodeLimit, PartitionTimeLimit, ...).
_NO_NODE_HELPS = {
    "Licenses": ("licences_taken", "it waits for licences that other jobs have"),
    "JobArrayTaskLimit": ("array_limit", "as many tasks of its array run as may run at a time"),
}
# its account, user or QOS is at a limit: AssocGrpGRES, QOSMaxGRESPerUser, MaxGRESPerAccount, ...
_OWN_SHARE = re.compile(r"Assoc.*|QOS.*|Max.+Per(Account|User)|AccountingPolicy")
# until a person changes something: the job, its account, the partition
_REFUSED = frozenset(
    (
        "AccountNotAllowed",
        "BadConstraints",
        "BurstBufferOperation",
        "Constraints",
        "DeadLine",
        "InvalidAccount",
        "InvalidQOS",
        "PartitionDown",
        "PartitionInactive",
        "QOSNotAllowed",
        "ReservationDeleted",
        "ReservationInvalid",
    )
)
# words that say it only by what stands behind them: ReqNodeNotAvail is also a node that is down, PartitionConfig also a
# job that is larger than home
_REFUSED_BEHIND = {"ReqNodeNotAvail": "maintenance", "PartitionConfig": "permitted"}
_TURN = frozenset(("", "None", "Priority", "Resources"))  # it waits for its turn, as most jobs do
# what Slurm says of home, and of the partition without nodes, to a job that is larger than home
_LARGER = frozenset(("BadConstraints", "PartitionDown"))
# the annotation: ironburst.adapters.kubernetes.site.TIME_LIMIT
_POD_LIMITS = (
    "give it activeDeadlineSeconds (in Kueue's queue the label kueue.x-k8s.io/max-exec-time-seconds), or what serves "
    "the annotation ironburst.io/time-limit on its pods or their namespace"
)


def not_startable(job: Job, now_s: float) -> Reason | None:
    """Why no node would help it now: it isn't allowed to start anywhere."""
    if job.held and job.reason_word == "Nominated":
        return (
            "held",
            f"the scheduler makes room for it ({job.reason}): that is believed for a while, then it is rented for",
        )
    if job.held:
        return "held", f"it is held{job.held_by}; it isn't looked at until it is released"
    if job.dependency or job.reason in ("Dependency", "DependencyNeverSatisfied"):
        return "dependency", f"it depends on other jobs ({job.dependency or job.reason})"
    if job.eligible_s is not None and job.eligible_s > now_s:
        return "begin", f"it isn't to begin before {explain.at(job.eligible_s)}"
    if job.reason in _TURN:
        return None
    if refused(job):
        return "refused", f"the scheduler doesn't start it, at home or rented ({job.reason})"
    if _OWN_SHARE.fullmatch(job.reason_word):
        return "share", f"its account, user or QOS has its whole share in use ({job.reason}), at home and rented alike"
    return _NO_NODE_HELPS.get(job.reason_word)


def refused(job: Job) -> bool:
    """The scheduler won't start it before a person changes something, or a maintenance is over."""
    word = job.reason_word
    if job.larger_than_home and word in _LARGER:
        return False
    return word in _REFUSED or (word in _REFUSED_BEHIND and _REFUSED_BEHIND[word] in job.reason)


def not_rentable(job: Job, policy: Policy) -> Reason | None:
    """Why no pool can take it, whatever pools are declared."""
    if job.each.gpus == 0:
        return "no_gpu", "it asks for no GPU, and only GPU nodes are rented"
    if job.time_limit_s is None:
        todo = _POD_LIMITS if job.id >= FIRST_POD_JOB else "submit it with --time"
        return "no_time_limit", f"it has no finite time limit, so its cost has no limit either: {todo}"
    if job.demands:
        return "demands", f"it insists on {job.demands}, which a rented node can't promise"
    if policy.accounts and job.account not in policy.accounts:
        charged = f"account {job.account} isn't" if job.account else "it is charged to no account, which isn't"
        return "not_opted_in", f"{charged} among those whose jobs may leave home (burst.accounts)"
    if policy.folders is not None and (folder := _missing_folder(job, policy.folders)):
        has = " and ".join(policy.folders) or "none"
        return "folder", f"it works in {folder}, and of home's file systems rented nodes have {has}"
    return None


def _missing_folder(job: Job, there: tuple[str, ...]) -> str | None:
    """One of its folders that no rented node has. Slurm would run it in /tmp instead, without its files."""
    tops = tuple(top.rstrip("/") + "/" for top in there)
    return next((folder for folder in job.folders if not f"{folder}/".startswith(tops)), None)


def meant(job: Job, nodes: Iterable[Node]) -> tuple[NodeGpu, ...]:
    """The GPUs that it could be given at home, where it asks for GPUs without a type: such as these, or better, are
    meant. Of nodes that are large enough; where none is, of all in its partitions.
    """
    if job.gpu_type and not job.gpu_by_place:
        return ()
    its = [
        each for each in nodes if each.gpu and each.name not in job.excluded and {*each.partitions} & {*job.partitions}
    ]
    fitting = [each for each in its if job.each.within(each.total)]
    return tuple(dict.fromkeys(each.gpu for each in fitting or its if each.gpu))


def _lesser(job: Job, pool: Pool, at_home: tuple[NodeGpu, ...]) -> Reason | None:
    """The pool's GPUs are less than each that it could be given at home."""
    together = job.each.gpus > 1
    if not at_home or pool.gpu is None or pool.untyped or any(pool.gpu.as_good_as(each, together) for each in at_home):
        return None
    home = least(at_home)
    means = f"it asks for GPUs without a type, which means at least {home} here"
    has = f"pool {pool.name} has {pool.gpu}{pool.gpu.lacks(home, together)}"
    return "lesser_gpu", f"{means}: {has}; name them if they will do (--gres=gpu:{pool.gpu_type}:{job.each.gpus})"


def not_in_pool(job: Job, pool: Pool, at_home: tuple[NodeGpu, ...], however_long: bool = False) -> Reason | None:
    """Why this pool can't take it, as the pool is declared (`however_long`: were it short enough). `at_home`: the GPUs
    that it means (`meant`).
    """
    if pool.account and job.account != pool.account:
        charged = f"it is charged to {job.account}" if job.account else "it is charged to no account"
        return "account", f"{charged}, and pool {pool.name} is for account {pool.account} alone"
    if job.gpu_type and job.gpu_type != pool.gpu_type:
        return "gpu_type", f"it asks for GPUs of type {job.gpu_type}, pool {pool.name} has {pool.gpu_type}"
    if not job.each.within(pool.each):
        for what, name in (("GPUs", "gpus"), ("CPUs", "cpus"), ("MiB of memory", "memory_mb")):
            needs, has = getattr(job.each, name), getattr(pool.each, name)
            if needs > has:
                return "too_large", f"it needs {needs} {what} per node, a node of pool {pool.name} has {has}"
    if job.nodes > len(pool.nodes):
        needs = f"it needs {job.nodes} nodes together"
        return "too_many_nodes", f"{needs}, pool {pool.name} has max_nodes {len(pool.nodes)}"
    if reason := _lesser(job, pool, at_home):
        return reason
    if job.time_limit_s is not None and job.least_limit_s > pool.max_run_s and not however_long:
        limit, most = explain.duration(job.time_limit_s), explain.duration(pool.max_run_s)
        if pool.ends_s is not None:
            ends = f"pool {pool.name}'s capacity, which ends at {explain.at(pool.ends_s)}"
            return "outlives", f"with its time limit {limit} it would outlive {ends}"
        return "too_long", f"its time limit {limit} is over pool {pool.name}'s max_run {most}"
    for what, name in (("data", "data set"), ("licences", "licence")):
        if missing := [needed for needed in getattr(job, what) if needed not in getattr(pool, what)]:
            return what, f"it needs the {name} {missing[0]}, which pool {pool.name} doesn't reach"
    if job.fabric and job.fabric != pool.fabric:
        return "fabric", f"it must be on the fabric {job.fabric}, pool {pool.name} is on {pool.fabric or 'another'}"
    if pool.obstacle:
        return "pool", f"pool {pool.name}: {pool.obstacle}"
    return None


def until_their_ends(snapshot: Snapshot) -> Snapshot:
    """The snapshot with a `max_run_s` of each pool that is as long as its capacity still leaves after a boot."""
    if not [pool for pool in snapshot.pools if pool.ends_s is not None]:
        return snapshot
    pools = tuple(_until_its_end(pool, snapshot.now_s) for pool in snapshot.pools)
    unchanged = all(map(is_, pools, snapshot.pools))
    return snapshot if unchanged else replace(snapshot, pools=pools)


def _until_its_end(pool: Pool, now_s: float) -> Pool:
    if pool.ends_s is None:
        return pool
    left_s = pool.ends_s - now_s - pool.boot_s
    return replace(pool, max_run_s=left_s) if left_s < pool.max_run_s else replace(pool, ends_s=None)


def in_time(job: Job, pool: Pool, now_s: float, boot: bool = True) -> bool:
    """Whether it would end by its deadline there, with a boot before it or at once."""
    if job.deadline_s is None:
        return True
    return now_s + (pool.boot_s if boot else 0.0) + job.needs_s <= job.deadline_s


def not_in_time(job: Job, pool: Pool, now_s: float) -> Reason | None:
    """Why a new node of the pool is too late for it."""
    if in_time(job, pool, now_s):
        return None
    ends, deadline = explain.at(now_s + pool.boot_s + job.needs_s), explain.at(job.deadline_s or 0.0)
    return "deadline", f"in pool {pool.name} it would end at {ends}, after its deadline {deadline}"


def spot_failed(job: Job, policy: Policy) -> bool:
    """Spot was taken from under it so often that it brings it to no end. What else started it again (preemption at
    home, an administrator's requeue, a failed node) says nothing of spot.
    """
    return job.spot_losses >= policy.spot_restarts and not moves(job, policy)


def moves(job: Job, policy: Policy) -> bool:
    """Whether it goes between spot and on demand: it saves its work, may be started again, and has to end by a time."""
    declared = policy.deadline_moves is not None and job.saves_s is not None
    known = job.deadline_s is not None and job.time_limit_s is not None
    return declared and known and job.batch and job.requeue


def not_on_market(job: Job, pool: Pool, market: str, policy: Policy) -> Reason | None:
    """Why this market of the pool can't take it."""
    if market == "spot":
        if not job.batch:
            return "spot_interactive", "spot is not for salloc and srun"
        if not job.requeue:
            return "spot_no_requeue", "spot is only for jobs that may be requeued"
        if job.nodes > policy.spot_max_nodes:
            return "spot_gang", f"spot is for jobs of at most {explain.plural(policy.spot_max_nodes, 'node')}"
        if spot_failed(job, policy):
            return (
                "spot_restarts",
                f"spot nodes were taken from it {explain.plural(job.spot_losses, 'time')}, spot is not for it",
            )
    if pool.usd_per_hour.get(market) is None:
        return "no_price", f"the {market} price of {pool.instance_type} is unknown: declare it under price of its cloud"
    return None
