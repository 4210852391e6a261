"""kube-scheduler's queue as jobs of the policy: seen (what the cluster has), jobs, shape (nodes and what of each),
demands (where, and what no rented node can promise).
"""

from ironburst.adapters.kubernetes.queue.demands import demands_of
from ironburst.adapters.kubernetes.queue.jobs import Memo, job_of, jobs_of
from ironburst.adapters.kubernetes.queue.seen import KEPT, LIVE, Objects, kinds, unreadable
from ironburst.adapters.kubernetes.queue.shape import for_jobs

__all__ = ["KEPT", "LIVE", "Memo", "Objects", "demands_of", "for_jobs", "job_of", "jobs_of", "kinds", "unreadable"]
