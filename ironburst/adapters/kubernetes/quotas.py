"""The teams' quotas, as far as they change with what is in service: ResourceQuotas of their namespaces, or their queues
of Kueue. Who applies `ironburst shares --for` makes them; the controller may change only these, by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ironburst.adapters.kubernetes.client import ApiError, Client, checked
from ironburst.ports import Quota, SchedulerError, TeamShare
from ironburst.shares import kubernetes, kueue

Json = dict[str, Any]
_Patch = Callable[[Json], Json | None]


def write(client: Client, now: Mapping[str, Quota]) -> None:
    """ResourceQuotas. Each is read, and written where it says something else. Raises the first failure, after all were
    tried.
    """
    changes: dict[str, tuple[_Patch, str]] = {}
    for (namespace, name), hard in kubernetes.live(now).items():
        missing = f"namespace {namespace} has no ResourceQuota {name}: apply `ironburst shares --for kubernetes`"
        path = f"/api/v1/namespaces/{checked(namespace)}/resourcequotas/{name}"
        changes[path] = partial(_limits, hard=hard), missing
    _write(client, changes)


def write_queues(client: Client, shares: Sequence[TeamShare], gpus: int) -> None:
    """ClusterQueues and their Cohort, likewise. `gpus`: of the shared nodes, that are there."""
    changes: dict[str, tuple[_Patch, str]] = {}
    for (plural, name), quota in kueue.live(shares, gpus).items():
        missing = f"Kueue has no {plural}/{name} with flavor {kueue.SHARED}: apply `ironburst shares --for kueue`"
        changes[f"/apis/{kueue.API}/{plural}/{checked(name)}"] = (
            partial(_nominal, quota=quota, missing=missing),
            missing,
        )
    _write(client, changes)


def _limits(raw: Json, *, hard: Json) -> Json | None:
    return None if raw["spec"].get("hard") == hard else {"spec": {"hard": hard}}


def _nominal(raw: Json, *, quota: Json, missing: str) -> Json | None:
    try:
        spec = kueue.changed(raw["spec"], quota)
    except KeyError:
        raise ApiError(missing, 404) from None
    return {"spec": spec} if spec else None


def _write(client: Client, changes: Mapping[str, tuple[_Patch, str]]) -> None:
    failed: list[SchedulerError] = []
    for path, (patch, missing) in changes.items():
        try:
            client.change(path, patch)
        except ApiError as error:
            failed.append(SchedulerError(missing) if error.status == 404 else error)
        except SchedulerError as error:
            failed.append(error)
            break  # nobody answers: the others wouldn't either
    if failed:
        raise failed[0]
