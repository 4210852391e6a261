"""Karpenter's kinds as CustomResourceDefinitions, written for the fields that are used here and for what 1.14's own
ones refuse of them. Stand-ins: Karpenter itself isn't there.
"""

from tests.components.kueue_crds import ANY, CONDITION, TEXT, _keyed, _object

GROUP, VERSION = "karpenter.sh", "v1"
API = f"/apis/{GROUP}/{VERSION}"
LASTS = {**TEXT, "pattern": r"^([0-9]+(s|m|h))+$"}
ENDLESS = {**TEXT, "pattern": r"^(([0-9]+(s|m|h))+|Never)$"}
QUANTITY = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
    "pattern": r"^(\+|-)?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE](\+|-)?([0-9]+(\.[0-9]*)?|\.[0-9]+))?$",
}
QUANTITIES = {"type": "object", "additionalProperties": QUANTITY}
LABELS = {"type": "object", "additionalProperties": TEXT}
CLASS = _object(("group", "kind", "name"), group=TEXT, kind=TEXT, name={**TEXT, "minLength": 1})
REQUIREMENT = _object(
    ("key", "operator"),
    key={**TEXT, "maxLength": 316},
    operator={**TEXT, "enum": ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]},
    values={"type": "array", "items": TEXT},
)
TAINT = _object(
    ("key", "effect"), key=TEXT, value=TEXT, effect={**TEXT, "enum": ["NoSchedule", "PreferNoSchedule", "NoExecute"]}
)
REASONS = {"type": "array", "items": {**TEXT, "enum": ["Underutilized", "Empty", "Drifted"]}}
BUDGET = _object(("nodes",), nodes={**TEXT, "pattern": r"^((100|[0-9]{1,2})%|[0-9]+)$"}, reasons=REASONS)
NODE = _object(
    ("nodeClassRef", "requirements"),
    nodeClassRef=CLASS,
    expireAfter={**ENDLESS, "default": "720h"},
    terminationGracePeriod=LASTS,
    requirements={"type": "array", "maxItems": 100, "items": REQUIREMENT},
    taints={"type": "array", "items": TAINT},
)
DISRUPTION = _object(
    ("consolidateAfter",),
    consolidateAfter=ENDLESS,
    consolidationPolicy={**TEXT, "enum": ["WhenEmpty", "WhenEmptyOrUnderutilized"]},
    budgets={"type": "array", "maxItems": 50, "items": BUDGET},
)
TEMPLATE = _object(("spec",), metadata=_object(labels=LABELS, annotations=LABELS), spec=NODE)
SCHEMAS = {
    "NodePool": _object(("template",), template=TEMPLATE, disruption=DISRUPTION, limits=QUANTITIES),
    "NodeClaim": NODE,
}


def crds():
    """Both, with a status of their own."""
    return [_crd(kind, spec) for kind, spec in SCHEMAS.items()]


def _crd(kind, spec):
    status = _object(providerID=TEXT, nodeName=TEXT, conditions=_keyed("type", CONDITION, 32), capacity=ANY)
    schema = {"type": "object", "required": ["spec"], "properties": {"spec": spec, "status": status}}
    plural = f"{kind.lower()}s"
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "versions": [version],
        },
    }
