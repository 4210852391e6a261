"""The kind of the node-readiness-controller as a CustomResourceDefinition, written for the fields that are used here
and for what its own one (0.5) refuses of them. A stand-in: its webhook (no two rules with one taint for the same nodes)
and its controller aren't there.
"""

GROUP, VERSION = "readiness.node.x-k8s.io", "v1alpha1"
TEXT = {"type": "string"}
SAME = {"rule": "self == oldSelf", "message": "it is immutable"}
PREFIX = {
    "rule": "self.key.startsWith('readiness.k8s.io/')",
    "message": "taint key must start with 'readiness.k8s.io/'",
}
SELECTS = {"rule": "has(self.matchLabels) && size(self.matchLabels) > 0", "message": "nodeSelector must not be empty"}
STATUS = {**TEXT, "enum": ["True", "False", "Unknown"]}
LABELS = {"type": "object", "additionalProperties": TEXT}


def _object(required, rules=(), **properties):
    listed = {"x-kubernetes-validations": list(rules)} if rules else {}
    return {"type": "object", "required": list(required), "properties": properties, **listed}


CONDITION = _object(("type", "requiredStatus"), type={**TEXT, "minLength": 1, "maxLength": 316}, requiredStatus=STATUS)
SPEC = _object(
    ("conditions", "enforcementMode", "nodeSelector", "taint"),
    conditions={"type": "array", "minItems": 1, "maxItems": 32, "items": CONDITION, "x-kubernetes-validations": [SAME]},
    enforcementMode={**TEXT, "enum": ["bootstrap-only", "continuous"], "x-kubernetes-validations": [SAME]},
    nodeSelector=_object((), (SAME, SELECTS), matchLabels={**LABELS, "maxProperties": 64}),
    taint=_object(("key", "effect"), (SAME, PREFIX), key={**TEXT, "maxLength": 253}, value=TEXT, effect=TEXT),
    dryRun={"type": "boolean"},
)


def crd(version=VERSION):
    """With one version."""
    schema = {"openAPIV3Schema": _object((), spec=SPEC)}
    names = {"kind": "NodeReadinessRule", "plural": "nodereadinessrules", "singular": "nodereadinessrule"}
    served = {"name": version, "served": True, "storage": True, "schema": schema}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"nodereadinessrules.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Cluster", "names": names, "versions": [served]},
    }
