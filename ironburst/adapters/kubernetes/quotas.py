"""The ResourceQuotas of the teams' namespaces, as far as they change with what is in service.

Who applies `ironburst shares --for kubernetes` makes them; the controller may change two of each namespace, by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ironburst.adapters.kubernetes.client import ApiError, Client, checked
from ironburst.ports import Quota, SchedulerError
from ironburst.shares import kubernetes

Json = dict[str, Any]


def write(client: Client, now: Mapping[str, Quota]) -> None:
    """Each is read, and written where it says something else. Raises the first failure, after all were tried."""
    failed: list[SchedulerError] = []
    for (namespace, name), hard in kubernetes.live(now).items():

        def changed(raw: Json, hard: Json = hard) -> Json | None:
            return None if raw["spec"].get("hard") == hard else {"spec": {"hard": hard}}

        try:
            client.change(f"/api/v1/namespaces/{checked(namespace)}/resourcequotas/{name}", changed)
        except ApiError as error:
            missing = f"namespace {namespace} has no ResourceQuota {name}: apply `ironburst shares --for kubernetes`"
            failed.append(SchedulerError(missing) if error.status == 404 else error)
        except SchedulerError as error:
            failed.append(error)
            break  # nobody answers: the others wouldn't either
    if failed:
        raise failed[0]
