"""Evicting the pods of one job, all or none, within their disruption budgets (PodDisruptionBudget).

The API server answers each eviction by itself, a dry run too: a budget that lets one pod go says yes to each of a gang,
and no to the second. So what it still allows (status.disruptionsAllowed) is compared with how many it would have to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ironburst.adapters.kubernetes.client import ApiError, Client, checked
from ironburst.adapters.kubernetes.views import PodView
from ironburst.ports import SchedulerError

Json = dict[str, Any]
_BUDGET = "DisruptionBudget"  # the cause in a refusal that a PodDisruptionBudget is the reason of


class Refused(SchedulerError):
    """Of one job, by a disruption budget."""


def evict(client: Client, job: str, there: Sequence[PodView]) -> None:
    """`there`: its pods that have a node. Raises Refused, before the first is evicted where that can be known, and
    SchedulerError.
    """
    if len(there) > 1:
        _each(client, job, there, dry=True)
        for namespace in sorted({pod.namespace for pod in there}):
            _compare(client, job, namespace, there)
    _each(client, job, there)


def _each(client: Client, job: str, there: Sequence[PodView], *, dry: bool = False) -> None:
    for n, pod in enumerate(there):
        options: Json = {"preconditions": {"uid": pod.uid}, **({"dryRun": ["All"]} if dry else {})}
        meta = {"name": pod.name, "namespace": pod.namespace}
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta, "deleteOptions": options}
        try:
            client.create(f"{_pods(pod.namespace)}/{checked(pod.name)}/eviction", body)
        except ApiError as error:
            if error.status == 404 or (error.status == 409 and not error.causes):
                continue  # it is gone, or another pod has its name
            if _BUDGET not in error.causes and error.status != 500:
                raise
            done = f" after {n} of its {len(there)} pods" if n and not dry else ""
            raise Refused(f"{job}{done}: {error}") from None


def _compare(client: Client, job: str, namespace: str, there: Sequence[PodView]) -> None:
    ours = {pod.uid for pod in there}
    path = f"/apis/policy/v1/namespaces/{checked(namespace)}/poddisruptionbudgets"
    for budget in client.get(path).body["items"] or ():
        selector = (budget.get("spec") or {}).get("selector")
        if selector is None:  # selects nothing; an empty one selects all
            continue
        selected = client.get(_pods(namespace), {"labelSelector": _text(selector)}).body["items"] or ()
        count = sum(raw["metadata"]["uid"] in ours and _counts(raw) for raw in selected)
        allowed = (budget.get("status") or {}).get("disruptionsAllowed") or 0
        if count > allowed:
            name = budget["metadata"]["name"]
            lets = f"the disruption budget {name} allows {allowed} of its pods to go, and all {count} would have to"
            raise Refused(f"{job}: {lets}, so none is evicted: a gang needs a maxUnavailable as large as itself")


def _counts(raw: Json) -> bool:
    """A budget counts pods that are ready; others go without it, as the dry run has said of each."""
    conditions = (raw.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _text(selector: Json) -> str:
    """A label selector as a query has it."""
    plain = [f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()]
    return ",".join([*plain, *map(_expression, selector.get("matchExpressions") or ())])


def _expression(of: Json) -> str:
    key, operator = str(of["key"]), of["operator"]
    if operator in ("Exists", "DoesNotExist"):
        return key if operator == "Exists" else f"!{key}"
    return f"{key} {operator.lower()} ({','.join(of.get('values') or ())})"


def _pods(namespace: str) -> str:
    return f"/api/v1/namespaces/{checked(namespace)}/pods"
