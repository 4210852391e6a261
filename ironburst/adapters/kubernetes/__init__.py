"""Kubernetes as the scheduler (ironburst.ports.Scheduler), with kube-scheduler as the queue: docs/adr/0033.

No verb uses it yet: the stack file has Slurm alone as its scheduler.
"""

from __future__ import annotations

from ironburst.adapters.kubernetes.client import Access, Client
from ironburst.adapters.kubernetes.scheduler import Kubernetes
from ironburst.adapters.kubernetes.site import Pool, Site
from ironburst.ports import Scheduler

__all__ = ["Access", "Kubernetes", "Pool", "Site", "connect"]


def connect(access: Access, site: Site) -> Scheduler:
    """A cluster. Raises SchedulerError where it can't be reached or the credentials are refused at all; what it knows
    is asked for by the first `observe`.
    """
    return Kubernetes(Client(access), site)
