"""Karpenter's NodePools and NodeClaims (ironburst.ports.karpenter): docs/adr/0045.

Two lists a tick, of one stack's objects: each is what the API server has at that moment, never a copy that lags.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from ironburst.adapters.kubernetes.client import ApiError, Client, checked
from ironburst.adapters.kubernetes.quantities import moment, quantity, seconds
from ironburst.kubernetes_rights import KARPENTER
from ironburst.nodes.naming import CLUSTER_LABEL
from ironburst.ports import SchedulerError, WrongShape
from ironburst.ports.karpenter import NodeClaim, NodePools, Size

Json = dict[str, Any]
_API = f"/apis/{KARPENTER}/v1"
_POOL, _MARKET, _TYPE = f"{KARPENTER}/nodepool", f"{KARPENTER}/capacity-type", "node.kubernetes.io/instance-type"
_GPUS, _CPUS, _NODES = "nvidia.com/gpu", "cpu", "nodes"
_PAGE = "500"
_DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?")


class Karpenter:
    """Of one cluster. All methods raise SchedulerError."""

    def __init__(self, client: Client):
        self._client = client

    def look(self, cluster: str, sizes: Mapping[str, Size]) -> NodePools:
        """The NodePools first: a claim that comes in between is seen all the same."""
        pools = self._listed("nodepools", cluster)
        limits = {name: _nodes(raw, sizes[name]) for raw in pools if (name := raw["metadata"]["name"]) in sizes}
        return NodePools(tuple(_claim(raw) for raw in self._listed("nodeclaims", cluster)), limits)

    def limit(self, node_pool: str, size: Size, nodes: int) -> None:
        """By GPUs and CPUs, which Karpenter counts while it decides, and by nodes, which it counts whatever a node says
        that it has (docs/adr/0045).
        """
        said = {_GPUS: nodes * size.gpus, _CPUS: nodes * size.cpus, _NODES: nodes}
        limits = {name: str(value) for name, value in said.items()}
        try:
            self._client.patch(f"{_API}/nodepools/{checked(node_pool)}", {"spec": {"limits": limits}})
        except ApiError as error:
            if error.status == 404:
                raise SchedulerError(f"the cluster has no NodePool {node_pool}: run `pulumi up`") from None
            raise

    def _listed(self, resource: str, cluster: str) -> list[Json]:
        query, found = {"labelSelector": f"{CLUSTER_LABEL}={cluster}", "limit": _PAGE}, list[Json]()
        while True:
            page = self._client.get(f"{_API}/{resource}", query).body
            found += page.get("items") or ()
            if not (rest := (page.get("metadata") or {}).get("continue")):
                return found
            query["continue"] = rest


def _claim(raw: Json) -> NodeClaim:
    try:
        meta, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
        labels, created_s = meta.get("labels") or {}, seconds(meta["creationTimestamp"])
        return NodeClaim(
            uid=meta["uid"],
            name=meta["name"],
            node_pool=labels.get(_POOL, ""),
            instance_type=labels.get(_TYPE, ""),
            market=labels.get(_MARKET, ""),
            created_s=created_s,
            launched=bool(status.get("providerID")),
            deleting_s=moment(meta.get("deletionTimestamp")),
            expires_s=created_s + _lasts(spec.get("expireAfter")),
            grace_s=_lasts(spec.get("terminationGracePeriod")),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise WrongShape(f"a NodeClaim can't be read: {type(error).__name__}: {error}") from None


def _lasts(text: str | None) -> float:
    """Seconds of a duration as Go writes it (`36h0m0s`); infinite: without an end. Raises ValueError."""
    if text is None or text == "Never":
        return math.inf
    match = _DURATION.fullmatch(text)
    if not match or not text:
        raise ValueError(f"{text!r} is no duration")
    hours, minutes, rest = (float(part or 0) for part in match.groups())
    return hours * 3600 + minutes * 60 + rest


def _nodes(raw: Json, size: Size) -> int | None:
    """How many nodes its limits let a NodePool have at most; None: any number."""
    limits = (raw.get("spec") or {}).get("limits") or {}
    try:
        counts = [
            math.floor(quantity(limits[name]) / each)
            for name, each in ((_GPUS, size.gpus), (_CPUS, size.cpus), (_NODES, 1))
            if name in limits
        ]
    except ValueError as error:
        raise WrongShape(f"the limits of NodePool {raw['metadata']['name']} can't be read: {error}") from None
    return min(counts, default=None)
