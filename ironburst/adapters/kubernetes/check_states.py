"""What our check answers, as patches of a Workload's status. Pure.

What Kueue and its API refuse (0.19.2, tried):
- A merge patch takes the place of the whole list of checks, other controllers' entries too: each patch is made from
  what was read, and is conditional on its resourceVersion. Server-side apply isn't an alternative: Kueue applies all
  entries under its own name as well, so that what we leave out stays (podSetUpdates of an answer that is over).
- podSetUpdates of a Ready check can't be changed (its webhook). A new answer begins with Retry.
- More than 8 tolerations for one pod set are refused, and a name that is no pod set's.
- A node selector that says otherwise than the pods' own or their flavor's isn't refused: the job *fails*, for good.
- Rejected ends a workload for good; "not now" is Pending, which holds it, or Retry, which gives the quota back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ironburst.adapters.kubernetes import taints
from ironburst.adapters.kubernetes.kueue_views import READY, RETRY
from ironburst.adapters.kubernetes.quantities import micro_time
from ironburst.adapters.kubernetes.site import SITE_KEY

Json = dict[str, Any]
MOST_TOLERATIONS = 8  # of one pod set
_KEPT = ("name", "retryCount")  # of the entry before: Kueue counts its retries


def ready(sets: Sequence[str], site: str, values: Sequence[str]) -> Json:
    """Its pods may start on the nodes of this pool whose taint has one of these values, and nowhere else."""
    tolerations = [taints.toleration(value) for value in values]
    updates = [{"name": name, "nodeSelector": {SITE_KEY: site}, "tolerations": tolerations} for name in sets]
    return {"state": READY, "message": f"rented nodes of {site}", "podSetUpdates": updates}


def retry(message: str) -> Json:
    """Its quota goes back, its pods end, and Kueue puts it into the queue again at once."""
    return {"state": RETRY, "message": message}


def patch(raw: Json, check: str, answer: Json, now_s: float) -> Json:
    """Of the Workload as it was read, whose entry `check` has to be there."""
    entries = raw["status"]["admissionChecks"]
    answered = []
    for entry in entries:
        if entry["name"] == check:
            kept = {key: entry[key] for key in _KEPT if key in entry}
            entry = {**kept, **answer, "lastTransitionTime": micro_time(now_s)}
        answered.append(entry)
    return {"status": {"admissionChecks": answered}}


def active(raw: Json, now_s: float) -> Json | None:
    """Of an AdmissionCheck: somebody answers. None: it says so already."""
    found: list[Json] = (raw.get("status") or {}).get("conditions") or []
    if any(each["type"] == "Active" and each["status"] == "True" for each in found):
        return None
    mine = {
        "type": "Active",
        "status": "True",
        "reason": "Answered",
        "message": "ironburst's controller answers",
        "lastTransitionTime": micro_time(now_s),
        "observedGeneration": raw["metadata"].get("generation", 1),
    }
    return {"status": {"conditions": [*(each for each in found if each["type"] != "Active"), mine]}}
