"""Least privilege: the policies as pure functions, and as the cluster attaches them."""

import json
from dataclasses import replace

import pytest

from ironburst.config.aws import policies
from ironburst.config.aws.data_models import DataSet
from ironburst.config.load import ConfigError
from tests import pki
from tests.components.conftest import valid
from tests.unit.kubernetes_stack import BRIDGE, on_both

AUTHORITY = pki.issue("authority of hall-a", ca=True)
WHERE = policies.Scope("aws", "us-east-1", "123456789012")
POOLS = policies.Pools(
    names=["p5", "p4d"],
    instance_types=["p4d.24xlarge", "p5.48xlarge"],
    bought_arns=[],
    spot=True,
    queue_arns=["arn:aws:sqs:us-east-1:123456789012:q"],
    image_owners=["123456789012"],
)
NODE_ROLES = ["arn:aws:iam::123456789012:role/node"]
GROUP = "arn:aws:resource-groups:us-east-1:123456789012:group/training"


def statements(document):
    return {each["Sid"]: each for each in document["Statement"]}


def listed(value):
    return [value] if isinstance(value, str) else value


def attached(recording, name):
    return statements(json.loads(recording.one("RolePolicy", name).inputs["policy"]))


def test_no_statement_allows_every_action_and_only_looking_has_no_resource(cluster, value):
    recording = cluster(value)
    granted = [
        statement
        for policy in recording.all("RolePolicy")
        for statement in json.loads(policy.inputs["policy"])["Statement"]
    ]
    assert len(granted) == 14
    for statement in granted:
        assert statement["Effect"] == "Allow" and "NotAction" not in statement and "NotResource" not in statement
        assert not any("*" in action for action in listed(statement["Action"])), statement
        if "*" in listed(statement["Resource"]):
            assert all(action.startswith("ec2:Describe") for action in statement["Action"])


def test_a_node_reads_its_munge_key_and_nothing_else(cluster, value):
    assert attached(cluster(value), "lab-node") == {
        "JoinsWith": {
            "Sid": "JoinsWith",
            "Effect": "Allow",
            "Action": ["secretsmanager:GetSecretValue"],
            "Resource": ["arn:aws:secretsmanager:us-east-1:123456789012:secret:ironburst/lab/munge-key-??????"],
        }
    }


def test_nodes_of_two_schedulers_read_each_what_they_join_with(cluster, value):
    on_both(value)
    recording = cluster(value)
    reads = {name: attached(recording, name)["JoinsWith"]["Resource"] for name in ("lab-node", "lab-kubernetes-node")}
    secret = "arn:aws:secretsmanager:us-east-1:123456789012:secret:ironburst/lab/"
    assert reads == {"lab-node": [f"{secret}munge-key-??????"], "lab-kubernetes-node": [f"{secret}join-token-??????"]}
    passed = attached(recording, "lab-launch")["PassNodeRole"]["Resource"]
    assert [arn.rpartition(":")[2] for arn in passed] == ["lab-node", "lab-kubernetes-node"]  # each pool has its own
    writes = attached(recording, "lab-launch")
    assert any(f"{secret}join-token-??????" in listed(each["Resource"]) for each in writes.values())


def test_nodes_of_slurm_bridge_read_both_and_the_controller_writes_the_token(cluster, value):
    value["scheduler"]["bridge"] = dict(BRIDGE)
    value["software"] |= {"slurm": "25.11", "kubernetes": "1.35"}
    recording = cluster(value)
    secret = "arn:aws:secretsmanager:us-east-1:123456789012:secret:ironburst/lab/"
    assert attached(recording, "lab-node")["JoinsWith"]["Resource"] == [
        f"{secret}munge-key-??????",
        f"{secret}join-token-??????",
    ]
    assert attached(recording, "lab-launch")["JoinToken"]["Resource"] == [f"{secret}join-token-??????"]


@pytest.mark.parametrize(
    ("reference", "resource"),
    [
        ("aws-secretsmanager:a/b#key", "arn:aws:secretsmanager:us-east-1:123456789012:secret:a/b-??????"),
        (
            "aws-secretsmanager:arn:aws:secretsmanager:us-east-1:1:secret:x-Ab12Cd",
            "arn:aws:secretsmanager:us-east-1:1:secret:x-Ab12Cd",
        ),
    ],
)
def test_the_resource_of_a_secret(reference, resource):
    assert policies.node(WHERE, [reference])["Statement"][0]["Resource"] == [resource]


def test_a_key_outside_secrets_manager_gives_the_node_no_right_at_all(cluster, value):
    value["cloud"]["pools"] = []  # nobody could resolve it on a rented node
    value["scheduler"]["munge_key"] = "file:munge.key"
    assert [each.name for each in cluster(value).all("RolePolicy")] == ["lab-controller"]


def test_launching_is_limited_to_type_tags_and_the_pools_templates():
    by_sid = statements(policies.launching(WHERE, "lab", POOLS, NODE_ROLES))
    templates = "arn:aws:ec2:us-east-1:123456789012:launch-template/*"
    assert by_sid["LaunchInstances"]["Condition"]["ArnLike"] == {"ec2:LaunchTemplate": templates}
    assert by_sid["LaunchFrom"]["Resource"] == [templates]
    assert by_sid["LaunchFrom"]["Condition"] == {
        "StringEquals": {"ec2:ResourceTag/ironburst:cluster": "lab"},
        "Null": {"ec2:ResourceTag/ironburst:pool": "false"},
    }
    limits = by_sid["LaunchInstances"]["Condition"]["StringEquals"]
    assert limits == {
        "aws:RequestTag/ironburst:cluster": "lab",
        "aws:RequestTag/ironburst:pool": ["p5", "p4d"],
        "ec2:InstanceType": ["p4d.24xlarge", "p5.48xlarge"],
    }
    assert by_sid["LaunchInstances"]["Resource"] == ["arn:aws:ec2:us-east-1:123456789012:instance/*"]
    assert "aws:RequestTag/ironburst:pool" in by_sid["LaunchParts"]["Condition"]["StringEquals"]


def test_a_spot_request_is_allowed_where_a_pool_has_that_market():
    request = "arn:aws:ec2:us-east-1:123456789012:spot-instances-request/*"
    for spot in (True, False):
        by_sid = statements(policies.launching(WHERE, "lab", replace(POOLS, spot=spot), NODE_ROLES))
        assert ("LaunchWithin" in by_sid) is (request in by_sid["TagAtLaunch"]["Resource"]) is spot


def test_what_was_rented_can_be_ended_whatever_is_declared_now(cluster, value):
    """A pool that is declared no more still has nodes to give back."""
    by_sid = attached(cluster(value), "lab-controller")
    assert by_sid["EndRented"]["Condition"] == {
        "StringEquals": {"ec2:ResourceTag/ironburst:cluster": "lab"},
        "Null": {"ec2:ResourceTag/ironburst:lease": "false"},
    }
    before = cluster(value).one("RolePolicy", "lab-controller").inputs
    value["cloud"]["pools"] = []
    recording = cluster(value)
    assert recording.one("RolePolicy", "lab-controller").inputs == before
    assert recording.all("LaunchAccess") == []


def test_tags_are_written_at_launch_only():
    by_sid = statements(policies.launching(WHERE, "lab", POOLS, NODE_ROLES))
    assert by_sid["TagAtLaunch"]["Condition"] == {"StringEquals": {"ec2:CreateAction": "RunInstances"}}


def test_only_the_nodes_role_is_passed_on_and_only_to_ec2():
    passing = statements(policies.launching(WHERE, "lab", POOLS, NODE_ROLES))["PassNodeRole"]
    assert passing["Resource"] == NODE_ROLES
    assert passing["Condition"] == {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}}


def test_images_are_launched_of_declared_owners_only(cluster, value):
    def owners():
        return attached(cluster(value), "lab-launch")["LaunchImages"]["Condition"]

    assert owners() == {"StringEquals": {"ec2:Owner": ["123456789012"]}}
    value["cloud"].setdefault("images", {})["owners"] = ["999999999999", "123456789012", "amazon"]
    assert owners() == {"StringEquals": {"ec2:Owner": ["123456789012", "999999999999", "amazon"]}}


@pytest.mark.parametrize("owner", ["self", "99", "Amazon"])
def test_an_owner_is_an_account_or_one_of_two_words(value, owner):
    value["cloud"].setdefault("images", {})["owners"] = [owner]
    with pytest.raises(ConfigError, match="owners"):
        valid(value)


def test_fixed_nodes_have_a_role_without_any_right(cluster, value):
    recording = cluster(value)
    (instance,) = recording.all("ec2/instance:Instance")
    assert instance.inputs["iamInstanceProfile"] == recording.one("InstanceProfile", "lab-fixed").name
    assert [each.inputs["role"] for each in recording.all("RolePolicy")] == [
        "lab-controller",
        "lab-controller",
        "lab-node",
    ]


@pytest.mark.parametrize(
    ("bought", "named"),
    [
        ({"capacity_reservation": "cr-0a1b", "zones": ["us-east-1a"]}, ["cr-0a1b"]),
        ({"capacity_block": {"id": "cr-0a1b", "ends": "2099-01-01T11:30:00Z"}, "zones": ["us-east-1a"]}, ["cr-0a1b"]),
        ({"capacity_reservation_group": GROUP}, ["*"]),
        ({}, []),
    ],
)
def test_what_is_launched_into_and_beside_is_named(cluster, value, bought, named):
    """EC2 chooses a reservation of a group, so that pool needs the right to any."""
    pool = value["cloud"]["pools"][0]
    del pool["markets"]
    pool |= bought
    within = attached(cluster(value), "lab-launch").get("LaunchWithin", {"Resource": []})["Resource"]
    reservations = [each.rpartition("/")[2] for each in within if ":capacity-reservation/" in each]
    assert reservations == named and (GROUP in within) == ("capacity_reservation_group" in bought)


def test_what_a_template_names_is_launched_with_as_it_is_and_nowhere_listed(cluster, value):
    """Subnets, security group, key and placement groups: of an existing network, too, which has no tags of ours."""
    value["ssh"] = {"key_name": "ops"}
    by_sid = attached(cluster(value), "lab-launch")
    ec2 = "arn:aws:ec2:us-east-1:123456789012"
    kinds = ("subnet", "security-group", "key-pair", "placement-group")
    assert by_sid["LaunchAsThere"]["Resource"] == [f"{ec2}:{kind}/*" for kind in kinds]
    assert by_sid["LaunchAsThere"]["Condition"] == {"Bool": {"ec2:IsLaunchTemplateResource": "true"}}
    assert by_sid["PoolImages"]["Resource"] == ["arn:aws:ssm:us-east-1:123456789012:parameter/ironburst/lab/*/image"]


def test_the_controllers_policy_names_every_type_of_a_pool(cluster, value):
    types = ["g6e.12xlarge", "g6e.24xlarge"]
    value["cloud"]["pools"][0] |= {"instance_type": None, "instance_types": types, "zones": ["us-east-1a"]}
    by_sid = attached(cluster(value), "lab-launch")
    assert by_sid["LaunchInstances"]["Condition"]["StringEquals"]["ec2:InstanceType"] == types


def test_the_launching_policy_goes_before_the_pools(cluster, value):
    """A destroy takes it first, as its component's child: nothing is launched any more (docs/adr/0024)."""
    after = cluster(value).after["ironburst:components:LaunchAccess", "lab"]
    assert any("LaunchTemplate::burst-p5-us-east-1a" in urn for urn in after)


def test_the_controller_reads_the_queue_of_interruptions(cluster, value):
    by_sid = attached(cluster(value), "lab-launch")
    assert by_sid["Interruptions"]["Resource"] == ["arn:aws:mock:us-east-1:123456789012:lab-interruptions"]


S3_DATA = {"imagenet": {"s3": "training/imagenet"}, "genomes": {"fsx": "fs-0123456789abcdef0", "mount_name": "abcd"}}


def test_nodes_with_data_in_s3_have_a_role_of_their_own(cluster, value):
    value["cloud"]["data"] = S3_DATA
    value["cloud"]["pools"][0]["data"] = ["imagenet", "genomes"]
    value["cloud"]["groups"][0]["data"] = ["imagenet"]
    recording, group = cluster(value), value["cloud"]["groups"][0]["name"]
    assert set(attached(recording, "lab-node-p5")) == {"JoinsWith", "ListData0", "ReadData0"}
    assert attached(recording, "lab-node-p5")["ReadData0"]["Resource"] == ["arn:aws:s3:::training/imagenet/*"]
    assert set(attached(recording, f"lab-fixed-{group}")) == {"ListData0", "ReadData0"}
    (instance,) = recording.all("ec2/instance:Instance")
    assert instance.inputs["iamInstanceProfile"] == f"lab-fixed-{group}"
    templates = [each for each in recording.all("LaunchTemplate") if each.name.startswith("burst-")]
    assert {each.inputs["iamInstanceProfile"]["name"] for each in templates} == {"lab-node-p5"}
    passed = attached(recording, "lab-launch")["PassNodeRole"]["Resource"]
    assert passed == ["arn:aws:mock:us-east-1:123456789012:lab-node-p5"]  # no pool has the common one


def test_data_on_fsx_and_names_that_nobody_declared_give_no_right(cluster, value):
    before = [(each.name, each.inputs) for each in cluster(value).all("RolePolicy")]
    value["cloud"]["data"] = S3_DATA
    value["cloud"]["pools"][0]["data"] = ["genomes", "c4"]
    assert [(each.name, each.inputs) for each in cluster(value).all("RolePolicy")] == before


def test_the_region_of_a_key_is_that_of_its_bucket():
    key = "arn:aws:kms:eu-west-1:123456789012:key/0a1b2c3d-0000-4000-8000-000000000000"
    by_sid = statements(policies.node(WHERE, [], [DataSet(s3="far/away", kms_key=key)]))
    assert by_sid["DecryptData0"]["Resource"] == [key]
    assert by_sid["DecryptData0"]["Condition"] == {"StringLike": {"kms:ViaService": "s3.eu-west-1.amazonaws.com*"}}


def test_who_may_take_the_roles(cluster, value):
    recording = cluster(value)
    trust = {
        each.name: json.loads(each.inputs["assumeRolePolicy"])["Statement"] for each in recording.all("iam/role:Role")
    }
    assert set(trust) == {"lab-node", "lab-fixed", "lab-controller"}
    for name in ("lab-node", "lab-fixed"):
        assert [each["Principal"] for each in trust[name]] == [{"Service": "ec2.amazonaws.com"}]
    assert [each["Principal"] for each in trust["lab-controller"]] == [{"AWS": "arn:aws:iam::123456789012:root"}]


def test_a_declared_certificate_is_the_only_way_to_the_controllers_role(cluster, value):
    value["cloud"]["controller"] = {"ca": AUTHORITY.pem, "common_name": "head.hall-a"}
    recording = cluster(value)
    anchor = recording.one("rolesanywhere/trustAnchor:TrustAnchor").inputs
    assert anchor["source"]["sourceData"] == {"x509CertificateData": AUTHORITY.pem} and anchor["enabled"] is True
    profile = recording.one("rolesanywhere/profile:Profile").inputs
    role = "arn:aws:mock:us-east-1:123456789012:lab-controller"
    assert (profile["roleArns"], profile["enabled"], profile["durationSeconds"]) == ([role], True, 3600)
    (trust,) = json.loads(recording.one("iam/role:Role", "lab-controller").inputs["assumeRolePolicy"])["Statement"]
    assert trust["Principal"] == {"Service": "rolesanywhere.amazonaws.com"}
    assert trust["Condition"] == {
        "ArnEquals": {"aws:SourceArn": "arn:aws:mock:us-east-1:123456789012:lab-controller"},
        "StringEquals": {"aws:PrincipalTag/x509Subject/CN": "head.hall-a"},
    }


def test_ci_may_preview_with_whole_subjects_and_ask_only(cluster, value):
    subjects = ["repo:org/site:pull_request", "repo:org/site:environment:preview"]
    value["cloud"]["ci"] = {"issuer": "token.actions.githubusercontent.com", "preview": subjects}
    recording = cluster(value)
    (trust,) = json.loads(recording.one("iam/role:Role", "lab-preview").inputs["assumeRolePolicy"])["Statement"]
    provider = "arn:aws:iam::123456789012:oidc-provider/token.actions.githubusercontent.com"
    assert (trust["Principal"], trust["Action"]) == ({"Federated": provider}, "sts:AssumeRoleWithWebIdentity")
    issuer = "token.actions.githubusercontent.com"
    assert trust["Condition"] == {"StringEquals": {f"{issuer}:aud": "sts.amazonaws.com", f"{issuer}:sub": subjects}}
    (ask,) = attached(recording, "lab-preview").values()
    verbs = {action.partition(":")[2] for action in ask["Action"]}
    assert all(verb.startswith(("Describe", "List", "Get")) for verb in verbs)
    assert "DescribeVpnConnections" not in verbs  # EC2 shows the tunnels' keys with them


@pytest.mark.parametrize("subject", ["repo:org/*", "repo:org/site:?", "repo:org/site:${x}"])
def test_a_subject_has_no_wildcard(value, subject):
    value["cloud"]["ci"] = {"issuer": "gitlab.com", "preview": [subject]}
    with pytest.raises(ConfigError, match="preview"):
        valid(value)


def test_the_budget_alarm(cluster, value):
    budget = cluster(value).one("budgets/budget:Budget").inputs
    assert (budget["limitAmount"], budget["limitUnit"], budget["timeUnit"]) == ("2000.00", "USD", "MONTHLY")
    assert budget["costFilters"] == [{"name": "TagKeyValue", "values": ["user:ironburst:pool$p5"]}]
    expected = {("ACTUAL", 80), ("FORECASTED", 100), ("ACTUAL", 100)}
    assert {(each["notificationType"], each["threshold"]) for each in budget["notifications"]} == expected
    assert all(each["subscriberEmailAddresses"] == ["operators@example.org"] for each in budget["notifications"])


def test_nobody_to_notify_no_notification(cluster, value):
    value["budget"]["notify"] = []
    assert not cluster(value).one("budgets/budget:Budget").inputs["notifications"]


@pytest.mark.parametrize(("partition", "service"), [("aws", "ec2.amazonaws.com"), ("aws-cn", "ec2.amazonaws.com.cn")])
def test_ec2_has_another_name_in_china(partition, service):
    where = policies.Scope(partition, "cn-north-1", "123456789012")
    assert service in [each["Principal"]["Service"] for each in policies.assumed_by_ec2(partition)["Statement"]]
    pools = policies.Pools([], [], [], False, [], [])
    (passed,) = [
        each for each in policies.launching(where, "lab", pools, [])["Statement"] if each["Sid"] == "PassNodeRole"
    ]
    assert passed["Condition"]["StringEquals"]["iam:PassedToService"] == service
