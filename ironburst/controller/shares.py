"""The teams' shares follow what is there: with nodes away, guarantees are less; what is idle is for work over quota.

The scheduler holds the numbers, also while the controller is away.
"""

from __future__ import annotations

from ironburst.controller.site import Site
from ironburst.ports import Observation, Quota, SchedulerError, TeamShare
from ironburst.shares.observed import quotas_now


def hold(site: Site, observation: Observation) -> None:
    """What each team may have now, to the scheduler. A failure to write it is reported, and stops nothing."""
    document = site.document
    shares = [TeamShare.of(share.model_dump()) for share in document.shares]
    if not shares:
        return
    home = document.scheduler.home_partition
    now, gpus = quotas_now(shares, home, observation.nodes, observation.jobs, observation.shares)
    _tell_what_is_missing(site, now)
    try:
        site.scheduler.limit(shares, now, gpus)
    except SchedulerError as error:
        site.tell("trouble", f"the teams' limits can't be brought to what is in service: {error}")


def _tell_what_is_missing(site: Site, now: dict[str, Quota]) -> None:
    missing = [f"{account} by {quota.short}" for account, quota in now.items() if quota.short]
    if missing:
        site.tell("trouble", f"nodes are away, so guarantees are less: {', '.join(missing)} GPUs")
