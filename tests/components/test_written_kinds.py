"""Objects of other projects' kinds have only fields that these kinds have, of their types. crd_fields.csv: facts."""

import csv
from pathlib import Path

import pytest

from components import gpu_charts, karpenter
from ironburst.config.gpu_support_models import GpuSupport
from ironburst.config.karpenter_models import KarpenterPool
from ironburst.shares import TeamShare, kueue, quotas
from tests.components import karpenter_crds, kueue_crds

LINES = (Path(__file__).parent / "crd_fields.csv").read_text().splitlines()
ROWS = list(csv.DictReader(line for line in LINES if not line.startswith("#")))
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "quantity": (str, int)}
POOL = {"name": "g6e", "instance_type": "g6e.12xlarge", "max_nodes": 8, "max_run": "12h", "node_class": "gpu"}
SHARES = [TeamShare("vision", 8, nodes=("own-1",), most=16), TeamShare("nlp", 4, over_quota=False)]


def written():
    """(kind, spec) of all that is written or printed."""
    for more in ({}, {"market": "spot", "zones": ["us-east-1a"], "taint_gpus": True, "labels": {"team": "a"}}):
        yield "NodePool", karpenter.spec("lab", KarpenterPool(**POOL, **more))
    given = {"rented_gpus": 24, "check": "ironburst-lab", "others": ["vpc.amazonaws.com/efa"]}
    for each in kueue.objects(SHARES, 16, {"vision": 8}, quotas(SHARES, 16, []), **given):
        assert each["apiVersion"] == f"{kueue_crds.GROUP}/{kueue_crds.VERSION}"
        yield each["kind"], each["spec"]
    declared = GpuSupport(network_operator=True, rdma_resource="rdma_shared_device_a", pull_secrets=["regcred"])
    yield "NicClusterPolicy", gpu_charts.nic_cluster_policy(declared)


def unknown(value, known, path=""):
    """Paths of a spec that aren't known, or are of another type there."""
    kind = known.get(path)
    if path and (kind is None or not isinstance(value, TYPES[kind]) or (kind == "integer" and value is True)):
        yield path
    elif isinstance(value, dict):
        for key, each in value.items():
            free = f"{path}.*" in known
            yield from unknown(each, known, f"{path}.*" if free else f"{path}.{key}".lstrip("."))
    elif isinstance(value, list) and any(at.startswith(f"{path}[]") for at in known):
        for each in value:
            for key, inner in each.items():
                yield from unknown(inner, known, f"{path}[].{key}")


@pytest.mark.parametrize("kind", sorted({kind for kind, _ in written()}))
def test_what_is_written_is_a_field_of_its_kind(kind):
    known = {row["path"]: row["type"] for row in ROWS if row["kind"] == kind}
    assert known
    for spec in (spec for each, spec in written() if each == kind):
        assert list(unknown(spec, known)) == []


def test_another_field_would_be_found():
    known = {row["path"]: row["type"] for row in ROWS if row["kind"] == "ClusterQueue"}
    spec = {"cohort": "old", "resourceGroups": [{"flavors": [{"topologyName": "x"}]}], "fairSharing": {"weight": 1.5}}
    assert list(unknown(spec, known)) == ["cohort", "resourceGroups[].flavors[].topologyName", "fairSharing.weight"]


def test_the_stand_ins_of_kinds_have_no_other_fields():
    """Those that refuse, in the lab: what they take, the real ones have."""
    for module, kind in ((karpenter_crds, "NodePool"), (kueue_crds, "AdmissionCheck")):
        (crd,) = [each for each in module.crds() if each["spec"]["names"]["kind"] == kind]
        schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        known = {row["path"] for row in ROWS if row["kind"] == kind}
        assert set(schema.get("properties", ())) <= known
