"""Shares as Kueue has them (kueue.x-k8s.io/v1beta2): a ClusterQueue a team, and one Cohort with what is nobody's.

A guarantee is a nominalQuota: lent out while it is idle, and reclaimed from the team that borrows it. Kueue decides
which workload is over quota, so users name no priority class; their queue is called `gpus` in each namespace. CPUs and
memory aren't shared out, but Kueue admits no workload that asks for what its queue doesn't name: they have a flavor
without an end.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ironburst.shares.kubernetes import GPU, LABELS, TEAM, quantity
from ironburst.shares.model import Quota, TeamShare
from ironburst.shares.quota import guarantees

API = "kueue.x-k8s.io/v1beta2"
COHORT = "ironburst"
SHARED, ENDLESS, RENTED = "ironburst-shared", "ironburst-endless", "ironburst-rented"
QUEUE = "gpus"
PLENTY = {"cpu": "1M", "memory": "1Ei", "ephemeral-storage": "1Ei", "hugepages-2Mi": "1Ei"}

Json = dict[str, Any]


def objects(
    shares: Sequence[TeamShare],
    gpus: int,
    own_gpus: Mapping[str, int],
    now: Mapping[str, Quota],
    rented_gpus: int = 0,
    check: str = "",
    others: Sequence[str] = (),
) -> list[Json]:
    """All that is applied, in this order. `gpus`: of the shared nodes in service; `own_gpus`: {account: GPUs of its own
    nodes}; `now`: as ironburst.shares.quotas says (its guarantees are written; what goes over quota, Kueue decides);
    `rented_gpus`: of all pools at most, which are asked for by the AdmissionCheck `check`; no name: Kueue knows nothing
    of them; `others`: extended resources that pods ask for beside GPUs (vpc.amazonaws.com/efa, rdma/ib), without a
    limit: Kueue starts nothing that asks for what its queue doesn't have.

    The shared nodes' flavor names no label: a team's own nodes and rented ones have taints. Nor does that of rented
    ones: the answer says where.
    """
    rest = gpus - sum(quota.guaranteed for quota in now.values())
    nobodys = {SHARED: {GPU: {"nominalQuota": quantity(rest)}}}
    found = [_flavor(SHARED), _flavor(ENDLESS)]
    if check:
        nobodys[RENTED] = {GPU: {"nominalQuota": quantity(rented_gpus)}}
        found.append(_flavor(RENTED))
    found += [_flavor(_own(share), share.account) for share in shares if share.nodes]
    found.append(_object("Cohort", COHORT, {"resourceGroups": [_group(nobodys)]}))
    for share in shares:
        found.append(_object("ClusterQueue", share.account, _queue(share, own_gpus, now[share.account], check, others)))
        found.append(_object("LocalQueue", QUEUE, {"clusterQueue": share.account}, share.account))
    return found


def live(shares: Sequence[TeamShare], gpus: int) -> dict[tuple[str, str], Json]:
    """{(plural of the kind, name): quota of the shared GPUs} of those objects that follow what is there. `gpus`: of the
    shared nodes. What is lent out is reclaimed by Kueue, what runs within a guarantee that gets less goes on.
    """
    sure = guarantees(shares, gpus)
    queues = {("clusterqueues", share.account): _shared(share, sure[share.account]) for share in shares}
    return {("cohorts", COHORT): {"nominalQuota": quantity(gpus - sum(sure.values()))}, **queues}


def changed(spec: Json, quota: Json) -> Json | None:
    """The groups of a queue or cohort with this quota of the shared GPUs; None: they have it. KeyError where they don't
    have the flavor.
    """
    groups = copy.deepcopy(spec.get("resourceGroups") or [])
    for resource in _of_shared(groups):
        said = {key: value for key, value in resource.items() if key in ("nominalQuota", "borrowingLimit")}
        if said == quota:
            return None
        for key in said:
            del resource[key]
        resource.update(quota)
        return {"resourceGroups": groups}
    raise KeyError(SHARED)


def _of_shared(groups: Sequence[Json]) -> Iterator[Json]:
    for group in groups:
        for flavor in group["flavors"]:
            yield from (each for each in flavor["resources"] if (flavor["name"], each["name"]) == (SHARED, GPU))


def _shared(share: TeamShare, guaranteed: int) -> Json:
    """A team's quota of the shared GPUs."""
    quota: Json = {"nominalQuota": quantity(guaranteed)}
    if not share.over_quota:
        quota["borrowingLimit"] = "0"
    elif share.most is not None:
        quota["borrowingLimit"] = quantity(max(share.most - guaranteed, 0))
    return quota


def _queue(share: TeamShare, own_gpus: Mapping[str, int], quota: Quota, check: str, others: Sequence[str]) -> Json:
    plenty = {**PLENTY, **dict.fromkeys(others, "1M")}
    flavors = {SHARED: {GPU: _shared(share, quota.guaranteed)}}
    if share.nodes:  # asked first; lent to nobody, and nothing is borrowed of it
        own = {"nominalQuota": quantity(own_gpus[share.account]), "borrowingLimit": "0", "lendingLimit": "0"}
        flavors = {_own(share): {GPU: own}, **flavors}
    preempt, asked = "TryNextFlavor", {}
    if check:  # last: and a guarantee is taken back at home, not rented for (tried with Kueue 0.19.2)
        # of each flavor: Kueue has no sum
        limit = {} if share.most is None else {"borrowingLimit": quantity(share.most)}
        flavors[RENTED] = {GPU: {"nominalQuota": "0", **limit}}
        asked = {"admissionChecksStrategy": {"admissionChecks": [{"name": check, "onFlavors": [RENTED]}]}}
        preempt = "MayStopSearch"
    return {
        **asked,
        "cohortName": COHORT,
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": share.account}},
        "queueingStrategy": "BestEffortFIFO",
        "resourceGroups": [
            _group(flavors),
            _group({ENDLESS: {name: {"nominalQuota": most} for name, most in plenty.items()}}),
        ],
        # its guarantee is taken back from borrowers of whatever priority; nothing else ends anybody's work
        "preemption": {
            "reclaimWithinCohort": "Any",
            "borrowWithinCohort": {"policy": "Never"},
            "withinClusterQueue": "Never",
        },
        "flavorFungibility": {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": preempt},
        "fairSharing": {"weight": str(share.weight)},
    }


def _own(share: TeamShare) -> str:
    return f"ironburst-own-{share.account}"


def _flavor(name: str, team: str = "") -> Json:
    """Of any node, or of one team's own."""
    if not team:
        return _object("ResourceFlavor", name, {})
    toleration = {"key": TEAM, "operator": "Equal", "value": team, "effect": "NoSchedule"}
    return _object("ResourceFlavor", name, {"nodeLabels": {TEAM: team}, "tolerations": [toleration]})


def _group(flavors: Mapping[str, Mapping[str, Json]]) -> Json:
    resources = list(next(iter(flavors.values())))
    return {
        "coveredResources": resources,
        "flavors": [
            {"name": flavor, "resources": [{"name": resource, **quota} for resource, quota in quotas.items()]}
            for flavor, quotas in flavors.items()
        ],
    }


def _object(kind: str, name: str, spec: Json, namespace: str = "") -> Json:
    metadata: Json = {"name": name, "labels": LABELS}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": API, "kind": kind, "metadata": metadata, "spec": spec}
