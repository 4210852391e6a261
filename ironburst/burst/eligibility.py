"""Why a job can't be rented for: what no wait cures (the job's own nature, the pool's declared limits)."""

from __future__ import annotations

from ironburst.burst import explain
from ironburst.burst.policy import Policy
from ironburst.burst.snapshot import Job, Pool

Reason = tuple[str, str]  # code, text


def not_startable(job: Job, now_s: float) -> Reason | None:
    """Why no node would help it now: it isn't allowed to start anywhere."""
    if job.held:
        return "held", "it is held; it isn't looked at until it is released"
    if job.dependency or job.reason in ("Dependency", "DependencyNeverSatisfied"):
        return "dependency", f"it depends on other jobs ({job.dependency or job.reason})"
    if job.eligible_s is not None and job.eligible_s > now_s:
        return "begin", f"it isn't to begin before {explain.at(job.eligible_s)}"
    return None


def not_rentable(job: Job) -> Reason | None:
    """Why no pool can take it, whatever is declared."""
    if job.each.gpus == 0:
        return "no_gpu", "it asks for no GPU, and only GPU nodes are rented"
    if job.time_limit_s is None:
        return "no_time_limit", "it has no finite time limit, so its cost has no limit either: submit it with --time"
    if job.array_tasks:
        return "array", f"it is a job array with tasks {job.array_tasks} still together, and arrays aren't rented for"
    if job.demands:
        return "demands", f"it insists on {job.demands}, which a rented node can't promise"
    return None


def not_in_pool(job: Job, pool: Pool) -> Reason | None:
    """Why this pool can't take it, as the pool is declared."""
    if job.gpu_type and job.gpu_type != pool.gpu_type:
        return "gpu_type", f"it asks for GPUs of type {job.gpu_type}, pool {pool.name} has {pool.gpu_type}"
    if not job.each.within(pool.each):
        for what, name in (("GPUs", "gpus"), ("CPUs", "cpus"), ("MiB of memory", "memory_mb")):
            needs, has = getattr(job.each, name), getattr(pool.each, name)
            if needs > has:
                return "too_large", f"it needs {needs} {what} per node, a node of pool {pool.name} has {has}"
    if job.nodes > len(pool.nodes):
        return "too_many_nodes", f"it needs {job.nodes} nodes together, pool {pool.name} has max_nodes {len(pool.nodes)}"
    if job.time_limit_s is not None and job.time_limit_s > pool.max_run_s:
        limit, most = explain.duration(job.time_limit_s), explain.duration(pool.max_run_s)
        return "too_long", f"its time limit {limit} is over pool {pool.name}'s max_run {most}"
    if pool.obstacle:
        return "pool", f"pool {pool.name}: {pool.obstacle}"
    return None


def not_on_market(job: Job, pool: Pool, market: str, policy: Policy) -> Reason | None:
    """Why this market of the pool can't take it."""
    if market == "spot":
        if not job.batch:
            return "spot_interactive", "spot is not for salloc and srun"
        if not job.requeue:
            return "spot_no_requeue", "spot is only for jobs that may be requeued"
        if job.nodes > policy.spot_max_nodes:
            return "spot_gang", f"spot is for jobs of at most {explain.plural(policy.spot_max_nodes, 'node')}"
    if pool.usd_per_hour.get(market) is None:
        return "no_price", f"the {market} price of {pool.instance_type} is unknown: declare it under cloud.price"
    return None
