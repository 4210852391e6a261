"""Node selectors and affinity, as kube-scheduler reads them, compared with the labels that a pool's nodes will have."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ironburst.adapters.kubernetes.site import HOSTNAME_KEY, SITE_KEY, KubernetesPool, KubernetesSite

Json = dict[str, Any]
# labels that tell GPUs apart: of feature discovery, EC2, the cloud's own (gke-accelerator), a site's own, and our pools
_OF_GPUS = re.compile(
    rf"gpu[.-](product|memory|family|compute|type|model|name)|accelerator|instance-(type|family|gpu)|^{SITE_KEY}$"
)


def labels_of(pool: KubernetesPool) -> dict[str, str]:
    """Labels of a node of the pool, but its host name."""
    return {"kubernetes.io/os": "linux", "beta.kubernetes.io/os": "linux", SITE_KEY: pool.partition, **pool.labels}


def pools_for(spec: Json, site: KubernetesSite) -> frozenset[str]:
    """Partitions with at least one node that a pod's nodeSelector and required node affinity allow."""
    selector = spec.get("nodeSelector") or {}
    required = _required(spec) or None
    if not selector and not required:
        return frozenset(pool.partition for pool in site.pools)
    return frozenset(pool.partition for pool in site.pools if _allows(selector, required, pool))


def requires(spec: Json) -> bool:
    """Whether it has required node affinity."""
    return bool(_required(spec))


class Spread(NamedTuple):
    """What required topology spread leaves and asks for."""

    pools: frozenset[str]  # partitions
    most_per_node: int  # pods of a kind; 0: no bound
    keys: tuple[str, ...]  # that its own kind is spread over, but the node's name
    demands: tuple[str, ...]  # what can't be promised


def spread_over(spec: Json, labels: Mapping[str, str], pools: frozenset[str], site: KubernetesSite) -> Spread:
    """Of a pod. On a new node, or in a new zone, there is none of its kind yet: the first may always start there."""
    most, keys, demands = 0, list[str](), list[str]()
    for each in spec.get("topologySpreadConstraints") or ():
        key, skew, selector = str(each["topologyKey"]), int(each.get("maxSkew") or 1), each.get("labelSelector")
        if each.get("whenUnsatisfiable") == "ScheduleAnyway":
            continue
        if selector is not None and not selects(selector, labels):
            demands.append(f"topology spread ({key}) among other pods than its own kind")
        elif key == HOSTNAME_KEY:
            most = min(most or skew, skew)
        else:
            having = frozenset(pool.partition for pool in site.pools if key in labels_of(pool))
            pools, keys = pools & having, [*keys, key]
            demands += [] if having else [f"topology spread ({key}), a label that no pool declares"]
    return Spread(pools, most, tuple(keys), tuple(demands))


def chooses_gpu(spec: Json) -> bool:
    """Whether it says which GPUs it takes. That they are there at all (gpu.present), or in which zone, is no choice."""
    terms = _required(spec).get("nodeSelectorTerms") or ()
    keys = [str(each["key"]) for term in terms for each in term.get("matchExpressions") or ()]
    return any(_OF_GPUS.search(key) for key in [*(spec.get("nodeSelector") or {}), *keys])


def _required(spec: Json) -> Json:
    """Node affinity that a pod requires; empty: none."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required: Json = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    return required


def reached_from(node_affinity: Json | None, site: KubernetesSite) -> frozenset[str] | None:
    """Partitions from whose nodes a volume with this node affinity is reached; None: from everywhere."""
    if not (required := (node_affinity or {}).get("required")):
        return None
    return frozenset(pool.partition for pool in site.pools if _allows({}, required, pool))


def said(node_affinity: Json | None) -> str:
    """What a volume's node affinity asks of nodes: topology.kubernetes.io/zone us-east-1a."""
    terms = ((node_affinity or {}).get("required") or {}).get("nodeSelectorTerms") or ()
    each = [of for term in terms for of in term.get("matchExpressions") or ()]
    return ", ".join(f"{of['key']} {' or '.join(map(str, of.get('values') or ()))}".strip() for of in each)


def _allows(selector: Mapping[str, str], required: Json | None, pool: KubernetesPool) -> bool:
    """Whether one of the pool's nodes would do; they differ in their names only."""
    named = any(HOSTNAME_KEY in str(part) or "metadata.name" in str(part) for part in (selector, required))
    labels = labels_of(pool)
    for name in pool.nodes if named else pool.nodes[:1]:
        mine = {HOSTNAME_KEY: name, **labels}
        if all(mine.get(key) == value for key, value in selector.items()) and _terms(required, mine, name):
            return True
    return False


def _terms(required: Json | None, labels: Mapping[str, str], name: str) -> bool:
    """One of the terms is enough, and all of its expressions are needed; an empty term allows nothing."""
    if required is None:
        return True
    for term in required.get("nodeSelectorTerms") or ():
        expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
        fits = all(matches(each, labels) for each in expressions)
        if (expressions or fields) and fits and all(matches(each, {"metadata.name": name}) for each in fields):
            return True
    return False


def matches(expression: Json, labels: Mapping[str, str]) -> bool:
    """One requirement of a node or label selector. Raises ValueError for an operator that isn't known."""
    key, operator, values = expression["key"], expression["operator"], expression.get("values") or []
    has = labels.get(key)
    if operator == "In":
        return has in values
    if operator == "NotIn":
        return has not in values
    if operator == "Exists":
        return has is not None
    if operator == "DoesNotExist":
        return has is None
    if operator in ("Gt", "Lt"):
        try:
            mine, theirs = int(has or ""), int(values[0])
        except ValueError:
            return False
        return mine > theirs if operator == "Gt" else mine < theirs
    raise ValueError(f"operator {operator!r} of {key}")


def selects(selector: Json | None, labels: Mapping[str, str]) -> bool:
    """Whether a label selector selects what has these labels; none selects nothing."""
    if selector is None:
        return False
    plain = all(labels.get(key) == value for key, value in (selector.get("matchLabels") or {}).items())
    return plain and all(matches(each, labels) for each in selector.get("matchExpressions") or ())


def own_terms(affinity: Json | None, labels: Mapping[str, str]) -> tuple[list[tuple[str, Json]], list[str]]:
    """Required terms of a podAffinity or podAntiAffinity: (topology key, label selector) of those that mean the pod's
    own kind, and the topology keys of those that mean others.
    """
    own: list[tuple[str, Json]] = []
    others: list[str] = []
    terms: Sequence[Json] = (affinity or {}).get("requiredDuringSchedulingIgnoredDuringExecution") or ()
    for term in terms:
        here, key = not term.get("namespaces") and term.get("namespaceSelector") is None, str(term.get("topologyKey"))
        if here and _keyed(term, labels):
            own.append((key, term.get("labelSelector") or {}))
        else:
            others.append(key)
    return own, others


def _keyed(term: Json, labels: Mapping[str, str]) -> bool:
    """matchLabelKeys compares with the pod itself: its own kind has the same values by definition."""
    return selects(term.get("labelSelector"), labels) and not term.get("mismatchLabelKeys")
