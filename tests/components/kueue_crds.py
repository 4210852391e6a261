"""Kueue's kinds as CustomResourceDefinitions, written for the fields that are used here and for what Kueue 0.19.2's own
ones refuse of them. Stand-ins: Kueue's webhooks and controller aren't there.
"""

GROUP, VERSION = "kueue.x-k8s.io", "v1beta2"
ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
TEXT, COUNT = {"type": "string"}, {"type": "integer", "format": "int32", "minimum": 0}
NAME = {**TEXT, "minLength": 1, "maxLength": 316}


def _object(required=(), **properties):
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


def _keyed(key, items, most):
    listed = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]}
    return {"type": "array", "maxItems": most, "items": items, **listed}


def _list(items, most):
    return {"type": "array", "maxItems": most, "items": items, "x-kubernetes-list-type": "atomic"}


CONDITION = _object(
    ("type", "status", "lastTransitionTime", "reason", "message"),
    type=TEXT,
    status={**TEXT, "enum": ["True", "False", "Unknown"]},
    lastTransitionTime={**TEXT, "format": "date-time"},
    reason={**TEXT, "minLength": 1, "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"},
    message=TEXT,
    observedGeneration={"type": "integer", "format": "int64", "minimum": 0},
)
TOLERATION = _object(key=TEXT, operator=TEXT, value=TEXT, effect=TEXT)
UPDATE = _object(
    ("name",),
    name=TEXT,
    nodeSelector={"type": "object", "additionalProperties": TEXT},
    tolerations=_list(TOLERATION, 8),
)
CHECK_STATE = _object(
    ("name", "state", "lastTransitionTime", "message"),
    name=NAME,
    state={**TEXT, "enum": ["Pending", "Ready", "Retry", "Rejected"]},
    lastTransitionTime={**TEXT, "format": "date-time"},
    message={**TEXT, "maxLength": 32768},
    requeueAfterSeconds=COUNT,
    retryCount=COUNT,
    podSetUpdates=_list(UPDATE, 18),
)
POD_SET = _object(("template",), name={**TEXT, "default": "main"}, count={**COUNT, "default": 1}, template=ANY)
SCHEMAS = {
    "Workload": (
        _object(
            podSets=_keyed("name", POD_SET, 18),
            queueName=TEXT,
            priority={"type": "integer", "format": "int32"},
            active={"type": "boolean", "default": True},
            maximumExecutionTimeSeconds={"type": "integer", "format": "int32", "minimum": 1},
        ),
        _object(
            conditions=_keyed("type", CONDITION, 16),
            admission=ANY,
            admissionChecks=_keyed("name", CHECK_STATE, 8),
            accumulatedPastExecutionTimeSeconds=COUNT,
            requeueState=ANY,
        ),
    ),
    "AdmissionCheck": (
        _object(
            ("controllerName",),
            controllerName={
                **NAME,
                "maxLength": 253,
                "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "field is immutable"}],
            },
        ),
        _object(conditions=_keyed("type", CONDITION, 16)),
    ),
    "ClusterQueue": (ANY, ANY),
    "Cohort": (ANY, ANY),
    "LocalQueue": (ANY, ANY),
    "ResourceFlavor": (ANY, ANY),
}


def crds():
    """Of all kinds that the adapter watches, and the one that the component makes."""
    return [_crd(kind, *schemas) for kind, schemas in SCHEMAS.items()]


def _crd(kind, spec, status):
    plural = f"{kind.lower()}s"
    schema = {"openAPIV3Schema": _object(spec=spec, status=status)}
    version = {"name": VERSION, "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced" if kind in ("Workload", "LocalQueue") else "Cluster",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "versions": [version],
        },
    }
