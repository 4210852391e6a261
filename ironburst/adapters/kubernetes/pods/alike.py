"""What decides where kube-scheduler starts a pod, as a short word: pods that share it fit on a node alike, or don't."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from ironburst.adapters.kubernetes.site import RENTED

Json = dict[str, Any]
_EVERY_PODS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")  # the API server gives them to all
_AS_THEY_ARE = ("schedulerName", "runtimeClassName", "hostNetwork", "resourceClaims", "nodeSelector")
_OWN = "(its own)"


def alike(spec: Json, labels: Mapping[str, str], asked: Mapping[str, float]) -> str:
    """By what it asks for, and what it insists on. Values of its own labels in selectors (job-name: train-7) say the
    same of each, and what a claim is called says nothing.
    """
    tolerations = [
        each
        for each in spec.get("tolerations") or ()
        if each.get("key") not in _EVERY_PODS and not (each.get("key") == RENTED and each.get("value"))
    ]
    spread = [
        each
        for each in spec.get("topologySpreadConstraints") or ()
        if each.get("whenUnsatisfiable") != "ScheduleAnyway"
    ]
    said = {
        "asks": sorted(asked.items()),
        "plain": {key: spec.get(key) for key in _AS_THEY_ARE},
        "affinity": _required(spec.get("affinity") or {}),
        "spread": spread,
        "tolerations": tolerations,
        "volumes": sorted(key for volume in spec.get("volumes") or () for key in volume if key != "name"),
        "ports": sorted(
            port["hostPort"] for each in spec["containers"] for port in each.get("ports") or () if port.get("hostPort")
        ),
    }
    text = json.dumps(_anonymous(said, labels), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _required(affinity: Json) -> Json:
    """Preferences keep no pod from a node."""
    key = "requiredDuringSchedulingIgnoredDuringExecution"
    return {kind: found for kind, of in sorted(affinity.items()) if (found := (of or {}).get(key))}


def _anonymous(value: Any, labels: Mapping[str, str]) -> Any:
    if isinstance(value, list):
        return [_anonymous(each, labels) for each in value]
    if not isinstance(value, dict):
        return value
    plain = value.get("matchLabels") or {}
    found = {key: _anonymous(each, labels) for key, each in value.items()}
    if plain:
        found["matchLabels"] = {key: _OWN if labels.get(key) == each else each for key, each in plain.items()}
    if value.get("operator") == "In" and labels.get(value.get("key", "")) in (value.get("values") or ()):
        found["values"] = _OWN
    return found
