"""Kueue beside the API server in memory: what its CRDs and its webhook refuse of an answer, and what its controller
does with one, as it was recorded (tests/adapters/kubernetes/kueue_recorded.json). A stand-in: no scheduler of its own;
which flavor a workload gets is the test's hand.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path

from tests.fakes.kube_api import RESOURCES, KubeApi, Refusal, _time
from tests.fakes.kube_objects import node

RECORDED = json.loads((Path(__file__).parents[1] / "adapters/kubernetes/kueue_recorded.json").read_text())
API = "kueue.x-k8s.io/v1beta2"
WORKLOADS, QUEUES, FLAVORS, CHECKS = (
    f"{API} {plural}" for plural in ("workloads", "clusterqueues", "resourceflavors", "admissionchecks")
)
LOCAL_QUEUES = f"{API} localqueues"
CHECK = "ironburst-lab"
KINDS = {
    WORKLOADS: ("Workload", True, ("metadata.name",)),
    QUEUES: ("ClusterQueue", False, ("metadata.name",)),
    FLAVORS: ("ResourceFlavor", False, ("metadata.name",)),
    CHECKS: ("AdmissionCheck", False, ("metadata.name",)),
    f"{API} cohorts": ("Cohort", False, ("metadata.name",)),
    LOCAL_QUEUES: ("LocalQueue", True, ("metadata.name",)),
    "v1 events": ("Event", True, ("metadata.name",)),
}


class KueueApi(KubeApi):
    """With a node of 8 GPUs, the recorded ClusterQueue team-a (home: 8 GPUs, then cloud), its flavors and our check."""

    resources = {**RESOURCES, **KINDS}  # noqa: RUF012

    def __init__(self, **more):
        super().__init__(**more)
        for resource, objects in ((QUEUES, [RECORDED["queue"]]), (FLAVORS, RECORDED["flavors"])):
            for each in objects:
                self.put(resource, copy.deepcopy(each))
        check = copy.deepcopy(RECORDED["check"])
        del check["status"]
        self.put(CHECKS, check)
        self.reserve("home", 8)
        self.put("v1 nodes", node("home-1", labels={"ironburst.io/site": "home"}))

    def write(self, key, new, manager):
        if key[0] == WORKLOADS:
            self._webhook(self._found(key), new)
        return super().write(key, new, manager)

    def _webhook(self, old, new):
        before = {each["name"]: each for each in old["status"].get("admissionChecks") or ()}
        sets = {each["name"] for each in new["spec"]["podSets"]}
        for each in new["status"].get("admissionChecks") or ():
            was = before.get(each["name"], {})
            for update in each.get("podSetUpdates") or ():
                if len(update.get("tolerations") or ()) > 8:
                    raise Refusal(422, "Invalid", "podSetUpdates[0].tolerations: Too many: must have at most 8 items")
                if update["name"] not in sets:
                    raise Refusal(403, "Forbidden", f"podSetUpdates[0].name: Unsupported value: {update['name']!r}")
            if was.get("state") == each["state"] == "Ready" and was.get("podSetUpdates") != each.get("podSetUpdates"):
                raise Refusal(403, "Forbidden", "status.admissionChecks[0].podSetUpdates: field is immutable")
            if {"name", "state", "message", "lastTransitionTime"} - each.keys():
                raise Refusal(422, "Invalid", "status.admissionChecks[0]: a required field is missing")

    # ---- the test's hands
    def submit(self, name, recorded="held", *, count=1, **spec):
        """A workload as it was recorded in that state, of a Job of this name."""
        raw = copy.deepcopy(RECORDED["workloads"][recorded])
        raw["metadata"] |= {"name": f"job-{name}", "uid": f"uid-{name}"}
        raw["metadata"]["ownerReferences"][0] |= {"name": name, "uid": f"job-uid-{name}"}
        raw["spec"] |= spec
        raw["spec"]["podSets"][0]["count"] = count
        for given in (raw.get("status", {}).get("admission") or {}).get("podSetAssignments", ()):
            given["count"] = count
        return self.put(WORKLOADS, raw)

    def state(self, name):
        """Of our check; None: Kueue doesn't ask."""
        found = self.get(WORKLOADS, "team-a", f"job-{name}")["status"].get("admissionChecks") or ()
        return next((each for each in found if each["name"] == CHECK), None)

    def reserve(self, flavor, gpus):
        """GPUs of a flavor that team-a has reserved, as its ClusterQueue says."""

        def change(raw):
            (found,) = [each for each in raw["status"]["flavorsReservation"] if each["name"] == flavor]
            (its,) = [each for each in found["resources"] if each["name"] == "nvidia.com/gpu"]
            its["total"] = str(gpus)

        self.edit(QUEUES, "", "team-a", change)

    def evict(self, name):
        """The first step after Retry: the check is Pending again, and the quota is still there."""

        def change(raw):
            entry = next(each for each in raw["status"]["admissionChecks"] if each["name"] == CHECK)
            assert entry["state"] == "Retry"
            kept = {"name": CHECK, "retryCount": entry.get("retryCount", 0) + 1}
            message = "Reset to Pending after eviction. Previously: Retry"
            at = _time(self.now())
            raw["status"]["admissionChecks"] = [
                kept | {"state": "Pending", "message": message, "lastTransitionTime": at}
            ]
            raw["status"]["conditions"] += [_condition("Evicted", "AdmissionCheck", at)]

        self.edit(WORKLOADS, "team-a", f"job-{name}", change)

    def held_again(self, name):
        """The last step: quota of the cloud again, and nothing of the eviction but a count."""

        def change(raw):
            raw["status"]["conditions"] = [each for each in raw["status"]["conditions"] if each["type"] != "Evicted"]

        self.edit(WORKLOADS, "team-a", f"job-{name}", change)


def _condition(kind, reason, at):
    return {"type": kind, "status": "True", "reason": reason, "message": reason, "lastTransitionTime": at}
