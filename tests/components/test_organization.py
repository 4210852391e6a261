"""What the account's owners ask of every role: the real SDK's registrations, with all kinds of roles that there are."""

import json

import pytest

from tests.pki import issue
from tests.unit.kubernetes_stack import on_eks

BOUNDARY, PATH = "arn:aws:iam::123456789012:policy/boundaries/gpu", "/ironburst/lab/"
OF_IAM = ("iam/role:Role", "iam/instanceProfile:InstanceProfile", "iam/policy:Policy")


@pytest.fixture
def everything(value):
    """All roles: of nodes with data, of the controller with a certificate, of CI."""
    cloud = value["cloud"]
    cloud["controller"] = {"ca": issue("authority", ca=True).pem, "common_name": "head.hall-a"}
    cloud["ci"] = {"issuer": "gitlab.com", "preview": ["project_path:org/site:ref_type:branch:ref:main"]}
    cloud["data"] = {"imagenet": {"s3": "training/imagenet"}}
    cloud["pools"][0]["data"] = cloud["groups"][0]["data"] = ["imagenet"]
    return value


def test_every_role_has_the_boundary_and_the_path(cluster, everything):
    everything["cloud"]["iam"] = {"permissions_boundary": BOUNDARY, "path": PATH}
    recording = cluster(everything)
    roles = recording.all("iam/role:Role")
    assert {role.name for role in roles} == {
        *("lab-controller", "lab-fixed", "lab-node", "lab-node-p5", "lab-preview", "lab-fixed-fixed")
    }
    assert {role.inputs["permissionsBoundary"] for role in roles} == {BOUNDARY}
    made = [each for kind in OF_IAM for each in recording.all(kind)]
    assert len(made) == 6 + 4 + 1 and {each.inputs["path"] for each in made} == {PATH}


def test_the_roles_of_eks_have_them_too(cluster, value):
    on_eks(value)
    value["cloud"]["iam"] = {"permissions_boundary": BOUNDARY, "path": PATH}
    roles = {role.name: role.inputs for role in cluster(value).all("iam/role:Role")}
    assert {"lab-eks", "lab-fixed-eks", "lab-controller"} <= set(roles)
    assert {(role["permissionsBoundary"], role["path"]) for role in roles.values()} == {(BOUNDARY, PATH)}


def test_nothing_declared_changes_nothing(cluster, everything):
    before = [
        (each.token, each.name, json.dumps(each.inputs, sort_keys=True)) for each in cluster(everything).resources
    ]
    everything["cloud"]["iam"] = {}
    after = cluster(everything)
    assert sorted(before) == sorted(
        (each.token, each.name, json.dumps(each.inputs, sort_keys=True)) for each in after.resources
    )
    for kind in OF_IAM:
        assert not any({"path", "permissionsBoundary"} & set(each.inputs) for each in after.all(kind))


def test_everything_that_can_be_tagged_has_the_organizations_tags(cluster, everything):
    """Of the real SDK's own kinds: whatever takes tags, and what a template gives to what it launches."""
    asked = {"CostCenter": "4711", "owner": "platform"}
    everything["cloud"]["tags"] = asked
    recording = cluster(everything)
    tagged = [each for each in recording.resources if each.token.startswith("aws:") and "tags" in each.inputs]
    kinds = {each.token.rpartition(":")[2] for each in tagged}
    assert {"Vpc", "Instance", "LaunchTemplate", "Role", "Queue", "EventRule", "Budget", "TrustAnchor"} <= kinds
    for each in tagged:
        assert asked.items() <= each.inputs["tags"].items(), each.name
        assert each.inputs["tags"].get("ironburst:cluster") == "lab", each.name
    for template in recording.all("LaunchTemplate"):
        given = {each["resourceType"]: each["tags"] for each in template.inputs["tagSpecifications"]}
        # a spot request's only where it is one: a launch on demand fails with them
        assert set(given) == {"instance", "volume", "network-interface"}
        assert all(asked.items() <= tags.items() for tags in given.values())
    for pool in recording.result["pools"]:
        assert [zone["place"]["tags"] for zone in pool["zones"]] == [asked] * len(pool["zones"])
