"""Pure functions over inputs and live objects, as the official plugin has them: what counts of a live object, what a
change replaces, who owns fields.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping
from typing import Any

from lab.kubernetes_plugin.api import Kind
from lab.provider.wire import Props, has_secret, rewrap, secret

INPUTS, API_VERSION, MANAGER = "__inputs", "__initialApiVersion", "__fieldManager"  # in the state, beside the object
AUTONAMED, PATCH_FORCE, PROPAGATION, OWN_MANAGER = (
    f"pulumi.com/{name}" for name in ("autonamed", "patchForce", "deletionPropagationPolicy", "patchFieldManager")
)
CREATOR = "pulumi-kubernetes"  # the manager of what was made by a POST
READ_ONLY = (
    *("creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "managedFields"),
    *("resourceVersion", "uid"),
)
ADOPTED = {
    ("kubectl", "Apply"),
    ("kubectl", "Update"),
    ("before-first-apply", "Update"),
    (CREATOR, "Update"),
    ("pulumi-kubernetes.exe", "Update"),
    ("pulumi-resource-kubernetes", "Update"),
}
"""managers whose fields become the resource's own at its first update"""
IDENTITY = ("metadata.name", "metadata.namespace")
REPLACING: Mapping[str, tuple[str, ...]] = {
    "RoleBinding": ("roleRef",),
    "ClusterRoleBinding": ("roleRef",),
    "Secret": ("type", "stringData", "data"),
    "ConfigMap": ("binaryData", "data"),
    "ResourceQuota": ("spec.scopes",),
    "StorageClass": ("parameters", "provisioner"),
}
"""kind -> paths that can't change in place (beside IDENTITY)"""
SPECIFIC = ("Secret", "ConfigMap")  # may be mutable, by a setting of the provider


def kind_of(token: str) -> Kind:
    """`kubernetes:core/v1:Namespace` -> v1, Namespace."""
    _, module, name = token.split(":")
    group, _, version = module.partition("/")
    return Kind(version if group == "core" else module, name)


def meta(thing: Props) -> Props:
    """Its metadata; empty where it has none."""
    found = thing.get("metadata")
    return found if isinstance(found, dict) else {}


def annotation(thing: Props, name: str) -> str:
    """Empty where it has none."""
    notes = meta(thing).get("annotations")
    return str(notes.get(name, "")) if isinstance(notes, dict) else ""


def id_of(thing: Props) -> str:
    """`namespace/name`, or `name` for what is in no namespace."""
    namespace, name = meta(thing).get("namespace"), meta(thing)["name"]
    return f"{namespace}/{name}" if namespace else str(name)


def split_id(rid: str) -> tuple[str, str]:
    """(namespace, name)."""
    namespace, slash, name = rid.partition("/")
    return (namespace, name) if slash else ("", rid)


def auto_name(logical: str, seed: bytes) -> str:
    """`<logical>-<8 hex>`, the same for the same seed."""
    return f"{logical}-{hashlib.sha256(seed + logical.encode()).hexdigest()[:8]}"


def normal(inputs: Props) -> Props:
    """Inputs without what only the server writes."""
    out = copy.deepcopy(inputs)
    for name in READ_ONLY:
        meta(out).pop(name, None)
    return out


def pruned(live: Any, shape: Any) -> Any:
    """What the live object has of the keys that were asked for. Of a list as many items as were asked for: one that was
    added behind them isn't seen (so it is in the official plugin).
    """
    if isinstance(live, dict) and isinstance(shape, dict):
        return {key: pruned(value, shape[key]) for key, value in live.items() if key in shape}
    if isinstance(live, list) and isinstance(shape, list):
        if not live or not shape or type(live[0]) is not type(shape[0]):
            return [] if not live or not shape else live
        return [pruned(value, asked) for value, asked in zip(live, shape, strict=False)]
    return live


def replacing(kind: str, settings: Props) -> frozenset[str]:
    """Paths without indexes that can't change in place."""
    mutable = kind in SPECIFIC and settings.get(f"enable{kind}Mutable") == "true"
    return frozenset(IDENTITY) | (frozenset() if mutable else frozenset(REPLACING.get(kind, ())))


def settled(live: Props) -> bool:
    """Whether controllers have done their part of it: the few kinds with such a part that aren't refused."""
    if live.get("kind") == "ResourceQuota":
        return (live.get("status") or {}).get("hard") == (live.get("spec") or {}).get("hard")
    if live.get("kind") == "Secret" and live.get("type") == "kubernetes.io/service-account-token":
        return bool(live.get("data"))
    return True


def checkpoint(inputs: Props, live: Props, marks: Props, manager: str) -> Props:
    """What is kept in the state: the object as it is, and what was asked for; `marks` has what is secret. What a
    Secret's `stringData` hides, its `data` hides, too.
    """
    out = rewrap(live, marks)
    if live.get("kind") == "Secret" and has_secret(marks.get("stringData")) and "data" in out:
        out["data"] = secret(live["data"])
    api_version = marks.get(API_VERSION) or inputs.get("apiVersion") or live.get("apiVersion")
    return {**out, INPUTS: rewrap(inputs, marks), API_VERSION: api_version, MANAGER: manager}


def split(state: Props) -> tuple[Props, Props]:
    """(what was asked for, the object) of a state without marks."""
    live = {key: value for key, value in state.items() if not key.startswith("__")}
    return state.get(INPUTS) or {}, live


def manager_of(state: Props, inputs: Props, seed: bytes) -> str:
    """The resource's field manager: of an annotation, else the state's, else a new one."""
    made = f"{CREATOR}-{hashlib.sha256(seed).hexdigest()[:8]}"
    return annotation(inputs, OWN_MANAGER) or state.get(MANAGER) or made


def forced(inputs: Props, live: Props | None, settings: Props, preview: bool) -> bool:
    """Whether an apply takes fields from other managers."""
    if annotation(inputs, PATCH_FORCE) == "true" or settings.get("enablePatchForce") == "true":
        return True
    managed = meta(live or {}).get("managedFields") or []
    if not live:
        return preview
    by_creator = any(each["operation"] == "Update" and each["manager"].startswith(CREATOR) for each in managed)
    return not managed or (preview and by_creator)


def taken_over(live: Props, manager: str) -> list[Props] | None:
    """The `managedFields` in which `manager` owns what it or a client without server-side apply wrote before; None if
    nothing is to be taken over.
    """
    entries: list[Props] = meta(live).get("managedFields") or []

    def adopted(each: Props) -> bool:
        return (each["manager"], each["operation"]) in ADOPTED and not each.get("subresource")

    if not any(map(adopted, entries)):
        return None
    mine = [each for each in entries if adopted(each) or (each["manager"], each["operation"]) == (manager, "Apply")]
    fields: Props = {}
    for each in mine:
        _merge(fields, each.get("fieldsV1") or {})
    whole = {**mine[0], "manager": manager, "operation": "Apply", "fieldsV1": fields}
    return [whole, *(each for each in entries if each not in mine)]


def _merge(into: Props, more: Props) -> None:
    for key, value in more.items():
        _merge(into.setdefault(key, {}), value)
