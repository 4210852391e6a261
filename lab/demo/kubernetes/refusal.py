"""Step 5: a gang that the cloud refuses in every zone, while home is full. The API must answer all the while, and
nothing may stay behind.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from ironburst import document
from ironburst.controller.ledger import Ledger
from lab.demo.inside import Boxed
from lab.demo.kubernetes import pods
from lab.demo.kubernetes.world import Cluster
from lab.demo.refusal import LIMIT_S, NODES, Refusal, instances, refused, sell_nothing
from lab.system import LabError

FULL, GANG = "full-home", "refused-gang"


def run(inside: Boxed, cluster: Cluster, ledger: Ledger, say: Callable[[str], None]) -> Refusal:
    """Fill home, submit the gang, wait for the refusal in every zone, delete both, wait until all is as before.
    LabError if one of these doesn't come.
    """
    published = document.read(inside.document)
    result = Refusal(frozenset(place.zone for pool in published.pools for place in pool.zones))
    result.asked = ("the API server", "list", "create")
    before, began = instances(inside), time.time()
    sell_nothing(inside, published)
    cluster.submit(pods.manifest(FULL, NODES, 8, 3600, 3600))

    def full() -> bool:
        return sum(pod.ran and pod.ended is None for pod in cluster.record.of(FULL)) == NODES

    _until(result, cluster, full, "home is full")
    cluster.submit(pods.manifest(GANG, NODES, 8, 60, 120))
    say(f"{FULL} fills home; {GANG} is a gang of {NODES}, and no zone has capacity for it")

    def everywhere() -> bool:
        result.refused = refused(ledger.events(began), [room.no_capacity for room in inside.cloud.rooms])
        return result.refused >= result.zones

    _until(result, cluster, everywhere, "the cloud refused the gang in every zone")
    say(f"refused: {', '.join(sorted(result.refused))}")
    for name in (FULL, GANG):
        cluster.cancel(name)

    def quiet() -> bool:
        jobs = {job["metadata"]["name"] for job in cluster.jobs()} & {FULL, GANG}
        leases = tuple(f"lease {lease.node}" for lease in ledger.leases())
        result.left = (*sorted(jobs), *leases, *cluster.not_as_before())
        return not result.left

    _until(result, cluster, quiet, "both jobs and every lease have ended, and every node is as it was")
    result.rented = len(instances(inside) - before)
    say(result.text())
    return result


def _until(result: Refusal, cluster: Cluster, seen: Callable[[], bool], what: str) -> None:
    """Ask the API server, again and again, as a user does, until something is seen."""
    end, probe = time.monotonic() + LIMIT_S, pods.manifest("probe", 1, 1, 1, 60)
    while not seen():
        if time.monotonic() > end:
            raise LabError(f"within {LIMIT_S} s it did not come about that {what}: {result.text()}; see controller.log")
        at = [time.monotonic()]
        for ask in (cluster.pods, lambda: cluster.submit(probe, dry=True)):
            ask()
            at.append(time.monotonic())
        result.looks_s.append(at[1] - at[0])
        result.submits_s.append(at[2] - at[1])
        time.sleep(0.2)
