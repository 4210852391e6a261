"""A cluster of EKS: who may sign in, where its nodes' rights come from, and that nobody else's instance is a node."""

import copy
import json

import pytest

from ironburst import kubernetes_rights
from ironburst.document import parse
from tests.components.conftest import EKS_CA
from tests.unit.kubernetes_stack import on_eks

SERVER = "https://ABCD.gr7.us-east-1.eks.amazonaws.com"


@pytest.fixture
def declared(value):
    value = copy.deepcopy(value)
    on_eks(value)
    value["scheduler"]["eks"] = {"admins": ["arn:aws:iam::123456789012:role/team/platform"]}
    return value


def test_the_control_plane_lies_in_two_zones_and_is_private(cluster, declared):
    declared["cloud"]["network"]["zones"].append("us-east-1c")
    made = cluster(declared).one("eks/cluster:Cluster").inputs
    assert (made["name"], made["version"]) == ("ironburst-lab", "1.36")
    vpc = made["vpcConfig"]
    assert vpc["subnetIds"] == ["lab-private-us-east-1a-id", "lab-private-us-east-1b-id"]
    assert (vpc["endpointPrivateAccess"], vpc["endpointPublicAccess"]) == (True, False)
    assert "publicAccessCidrs" not in vpc and vpc["securityGroupIds"] == ["lab-nodes-id"]
    assert made["accessConfig"]["authenticationMode"] == "API"


def test_networks_are_let_in_from_the_internet_where_they_are_declared(cluster, declared):
    declared["scheduler"]["eks"]["public_access"] = ["203.0.113.0/24"]
    vpc = cluster(declared).one("eks/cluster:Cluster").inputs["vpcConfig"]
    assert vpc["endpointPublicAccess"] and vpc["publicAccessCidrs"] == ["203.0.113.0/24"]


def test_its_policy_goes_after_the_cluster_which_needs_it_to_tidy_up(cluster, declared):
    after = cluster(declared).after["aws:eks/cluster:Cluster", "lab-eks"]
    assert any("rolePolicyAttachment" in urn and urn.endswith("::lab-eks") for urn in after)


def test_nodes_sign_in_by_their_instances_ids_and_the_controller_as_its_user(cluster, declared):
    entries = {each.name: each.inputs for each in cluster(declared).all("eks/accessEntry:AccessEntry")}
    assert set(entries) == {"lab-eks-controller", "lab-eks-fixed-eks", "lab-eks-platform"}
    nodes, controller = entries["lab-eks-fixed-eks"], entries["lab-eks-controller"]
    assert nodes["type"] == "EC2" and "userName" not in nodes and "kubernetesGroups" not in nodes
    assert (controller["type"], controller["userName"]) == ("STANDARD", "ironburst-controller")
    (right,) = cluster(declared).all("eks/accessPolicyAssociation:AccessPolicyAssociation")
    assert right.inputs["principalArn"] == "arn:aws:iam::123456789012:role/team/platform"
    assert right.inputs["policyArn"] == "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"


def test_ci_looks_and_is_no_admin(cluster, declared):
    """Its role is a pull request's code."""
    declared["cloud"]["ci"] = {"issuer": "gitlab.com", "preview": ["project_path:org/site:ref_type:branch:ref:x"]}
    recording = cluster(declared)
    (role,) = [each for each in recording.all("iam/role:Role") if each.name == "lab-preview"]
    entry = recording.one("AccessEntry", "lab-eks-preview").inputs
    assert entry["type"] == "STANDARD" and "userName" not in entry and "kubernetesGroups" not in entry
    rights = recording.all("AccessPolicyAssociation")
    mine = [each.inputs["policyArn"].rpartition("/")[2] for each in rights if each.name == "lab-eks-preview"]
    assert mine == ["AmazonEKSViewPolicy"], role


def test_its_nodes_have_a_role_of_their_own(cluster, declared):
    recording = cluster(declared)
    attached = {each.inputs["policyArn"] for each in recording.all("RolePolicyAttachment") if "fixed-eks" in each.name}
    assert attached == {
        "arn:aws:iam::aws:policy/AmazonEKS_CNI_Policy",
        "arn:aws:iam::aws:policy/AmazonEC2ContainerRegistryPullOnly",
    }
    for instance in recording.all("ec2/instance:Instance"):
        assert instance.inputs["iamInstanceProfile"] == "lab-fixed-eks"
        assert instance.inputs["tags"]["kubernetes.io/cluster/ironburst-lab"] == "owned"
    # EC2 refuses such a tag where the metadata service shows tags
    (template,) = recording.all("LaunchTemplate")
    assert template.inputs["metadataOptions"]["instanceMetadataTags"] == "disabled"


def test_the_controller_hands_out_no_token_and_approves_no_certificate(cluster, declared):
    recording = cluster(declared)
    rules = recording.one("v1:ClusterRole").inputs["rules"]
    assert rules == kubernetes_rights.rendered(kubernetes_rights.cluster("pods", "ironburst-lab", certificates=False))
    assert "certificates.k8s.io" not in [group for rule in rules for group in rule["apiGroups"]]
    assert [each.inputs["metadata"]["namespace"] for each in recording.all("v1:Role")] == ["ironburst-system"]
    policies = [each.name for each in recording.all("v1:ValidatingAdmissionPolicy")]
    assert policies == ["lab-nodes", "lab-pods"]


def test_no_other_instance_is_a_node(cluster, declared):
    recording = cluster(declared)
    policy = recording.one("v1:ValidatingAdmissionPolicy", "lab-nodes").inputs["spec"]
    ids = sorted(f"{each.name}-id" for each in recording.all("ec2/instance:Instance"))
    assert ids and [each["expression"] for each in policy["validations"]] == [
        f"object.metadata.name in [{', '.join(repr(name) for name in ids)}]"
    ]
    assert not [each for each in recording.all("v1:ClusterRoleBinding") if each.name == "lab-bootstrap"]


def test_pulumi_signs_in_by_its_own_credentials_and_the_controllers_rights_are_its_users(cluster, declared):
    recording = cluster(declared)
    kubeconfig = json.loads(recording.one("pulumi:providers:kubernetes").inputs["kubeconfig"])
    sign_in = kubeconfig["users"][0]["user"]["exec"]
    assert sign_in["command"] == "aws" and "ironburst-lab" in sign_in["args"]
    binding = recording.one("v1:ClusterRoleBinding", "lab-controller").inputs
    assert [(each["kind"], each["name"]) for each in binding["subjects"]] == [("User", "ironburst-controller")]


def test_the_document_has_what_aws_made(cluster, declared):
    document = parse(cluster(declared).result)
    its = document.scheduler
    assert (its.eks, its.api_server, its.ca, its.cluster_dns) == ("ironburst-lab", SERVER, EKS_CA, "172.20.0.10")
    assert its.join_token == "" and all("kubernetes_node" in host.roles for host in document.hosts)
    assert all(host.instance_id for host in document.hosts)


@pytest.fixture
def renting(declared):
    """With a burst pool."""
    pool = {"name": "p5", "instance_type": "p5.48xlarge", "max_nodes": 2, "zones": ["us-east-1a"]}
    declared["cloud"]["pools"] = [pool]
    return declared


def test_rented_nodes_join_by_a_role_of_their_own_that_reads_no_secret(cluster, renting):
    recording = cluster(renting)
    entries = {each.name: each.inputs for each in recording.all("eks/accessEntry:AccessEntry")}
    assert entries["lab-eks-node"]["type"] == "EC2"
    assert not [each for each in recording.all("iam/rolePolicy:RolePolicy") if each.name == "lab-node"]
    attached = {each.inputs["policyArn"].rpartition("/")[2] for each in recording.all("RolePolicyAttachment")}
    assert attached == {"AmazonEKSClusterPolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryPullOnly"}
    template = next(each.inputs for each in recording.all("LaunchTemplate") if each.name.startswith("burst-p5"))
    assert template["metadataOptions"]["instanceMetadataTags"] == "disabled"
    tags = {key for each in template["tagSpecifications"] for key in each["tags"]}
    assert "kubernetes.io/cluster/ironburst-lab" in tags


def test_rented_nodes_may_come_behind_the_taint_that_the_controller_takes_away(cluster, renting):
    policy = cluster(renting).one("v1:ValidatingAdmissionPolicy", "lab-nodes").inputs["spec"]
    (rule,) = policy["validations"]
    assert "t.key == 'ironburst.io/not-ready' && t.effect == 'NoSchedule'" in rule["expression"]


def test_the_control_plane_is_in_the_estimate(cluster, declared):
    (said,) = [line for line in cluster(declared).logged if line.startswith("EKS control plane")]
    assert "0.10 USD an hour, 73 USD a month" in said and "0.6 USD an hour once its version" in said


def test_without_eks_there_is_none(cluster, value):
    assert not [each for each in cluster(value).resources if each.token.startswith("aws:eks/")]
    (template,) = {
        each.inputs["metadataOptions"]["instanceMetadataTags"] for each in cluster(value).all("LaunchTemplate")
    }
    assert template == "enabled"
