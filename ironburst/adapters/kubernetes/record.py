"""What the controller keeps in the cluster: the nodes that it asked for (a ConfigMap), and whose the site is (a Lease).

Every write is conditional on what was read (resourceVersion). The age of a claim is measured only by the API server's
clock: when the server wrote it down (managedFields), and when it answers (the Date of its answer).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from ironburst.adapters.kubernetes.client import ApiError, Client
from ironburst.adapters.kubernetes.nodes import NodesRecord
from ironburst.adapters.kubernetes.quantities import micro_time, moment
from ironburst.adapters.kubernetes.site import KubernetesSite
from ironburst.ports import Claim, SchedulerError, WrongShape

Json = dict[str, Any]
_TRIES = 5
_SAID = "ironburst.io/said"
_MOST_SAID = 240 * 1024  # bytes; all annotations of an object together may have 256 KiB
_KEY = "nodes"
_SKEW_S = 5.0  # two API servers' clocks may differ so much; one put back further begins the age anew


def read(client: Client, site: KubernetesSite) -> NodesRecord:
    """The record; an empty one before the first write. Raises SchedulerError."""
    found = _found(client, f"{site.record_path}/{site.object_name}")
    return _of(found) if found else NodesRecord()


def write(client: Client, site: KubernetesSite, changed: Callable[[NodesRecord], NodesRecord]) -> None:
    """Change the record; nothing is written where that changes nothing. Raises SchedulerError."""
    path = f"{site.record_path}/{site.object_name}"

    def once() -> None:
        found = _found(client, path)
        before = _of(found) if found else NodesRecord()
        after = changed(before)
        if after == before:
            return
        kept = {"up": sorted(after.up), "permits": sorted(after.permits), "given": dict(sorted(after.given.items()))}
        kept |= {"objects": dict(sorted(after.objects.items()))} if after.objects else {}
        data = {_KEY: json.dumps(kept)}
        if found:
            client.update(path, {**found, "data": {**(found.get("data") or {}), **data}})
        else:
            meta = {"name": site.object_name, "namespace": site.namespace}
            client.create(site.record_path, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data})

    _again(once)


def claim(
    client: Client, site: KubernetesSite, owner: str, said: str, stale_s: float, now: Callable[[], float] = time.time
) -> Claim:
    """Scheduler.claim. `now` is only what the Lease shows to people. Raises SchedulerError."""
    if len(said.encode()) > _MOST_SAID:
        raise SchedulerError(
            f"what the controller says of itself has {len(said.encode())} bytes, {_MOST_SAID} are the most"
        )
    before = Claim("", 0.0, "")

    def once() -> None:
        nonlocal before
        path = f"{site.claim_path}/{site.object_name}"
        try:
            answer = client.get(path)
        except ApiError as error:
            if error.status != 404:
                raise
            before = Claim("", 0.0, "")
            if owner:
                client.create(site.claim_path, _lease(site, owner, said, now()))
            return
        age_s = _age_s(answer.body, answer.at_s)
        before = Claim(_holder(answer.body), max(age_s, 0.0), _said(answer.body))
        if owner and (before.owner in ("", owner) or before.age_s > stale_s):
            client.update(path, _held(answer.body, owner, said or before.said, now()))
        elif age_s < -_SKEW_S:  # from the future: it is written anew, and ages from now on
            client.update(path, _held(answer.body, before.owner, before.said, now()))

    _again(once)
    return before


def _again(once: Callable[[], None]) -> None:
    """Read and write again where somebody else wrote in between."""
    for attempt in range(_TRIES):
        try:
            return once()
        except ApiError as error:
            if error.status != 409 or attempt == _TRIES - 1:
                raise
    return None


def _found(client: Client, path: str) -> Json | None:
    try:
        return client.get(path).body
    except ApiError as error:
        if error.status == 404:
            return None
        raise


def _of(found: Json) -> NodesRecord:
    try:
        kept = json.loads((found.get("data") or {}).get(_KEY) or "{}")
        given = {str(node): str(uid) for node, uid in kept.get("given", {}).items()}
        objects = {str(node): str(name) for node, name in kept.get("objects", {}).items()}
        return NodesRecord(frozenset(kept.get("up", ())), frozenset(kept.get("permits", ())), given, objects)
    except (ValueError, TypeError, AttributeError) as error:
        name = found["metadata"]["name"]
        raise WrongShape(
            f"the ConfigMap {name}, key {_KEY!r}, can't be read ({error}): mend it, or delete it"
        ) from None


# ---- the Lease


def _lease(site: KubernetesSite, owner: str, said: str, now_s: float) -> Json:
    meta = {"name": site.object_name, "namespace": site.namespace}
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": {}}
    return _held(lease, owner, said, now_s)


def _held(lease: Json, owner: str, said: str, now_s: float) -> Json:
    meta = {key: value for key, value in lease["metadata"].items() if key != "managedFields"}
    notes = {**(meta.get("annotations") or {}), _SAID: " ".join(said.split())}
    spec = {**(lease.get("spec") or {}), "holderIdentity": owner, "renewTime": micro_time(now_s)}
    return {**lease, "metadata": {**meta, "annotations": notes}, "spec": spec}


def _holder(lease: Json) -> str:
    return (lease.get("spec") or {}).get("holderIdentity") or ""


def _said(lease: Json) -> str:
    return (lease["metadata"].get("annotations") or {}).get(_SAID) or ""


def _age_s(lease: Json, at_s: float | None) -> float:
    """Since renewTime was written, by the server's clock; a server that doesn't say: by the writer's."""
    wrote = [
        moment(entry.get("time"))
        for entry in lease["metadata"].get("managedFields") or ()
        if "f:renewTime" in ((entry.get("fieldsV1") or {}).get("f:spec") or {})
    ]
    by_server = max((each for each in wrote if each is not None), default=None)
    written_s = by_server if by_server is not None else moment((lease.get("spec") or {}).get("renewTime"))
    if written_s is None or at_s is None:
        raise WrongShape(f"the Lease {lease['metadata']['name']} doesn't say when it was written: delete it")
    return at_s - written_s
