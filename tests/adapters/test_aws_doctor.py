"""Doctor against the lab's AWS: each check is seen ok, and made to fail."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import boto3
import pytest
from moto.iam.models import iam_backends

from ironburst import cli
from ironburst.doctor import aws, billing, capacity, identity, images, link, quotas, rights, secret, zones
from lab.aws.cloud import ACCOUNT
from lab.aws.testing import REGION
from tests.doctor_account import GROUPS_IMAGE, IMAGE, P5_SPOT, P_ON_DEMAND, SECRET, STACK, STANDARD, Made, spelled
from tests.lab_cloud import user

CHECKS = (identity, quotas, zones, images, rights, link, secret, billing, capacity)
NOBODY = {
    "Version": "2012-10-17",
    "Statement": {"Effect": "Deny", "Principal": {"AWS": ACCOUNT}, "Action": "sts:AssumeRole"},
}
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "doctor.md"


@pytest.fixture
def made(cloud, clients, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", cloud.url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "lab")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "lab")
    return Made(cloud, clients)


def shown(findings):
    return "\n".join(f"{each.state} {each.check}: {each.looked_at}: {each.seen} -> {each.todo}" for each in findings)


def test_an_account_in_order_is_ok_in_every_check(made):
    findings = list(aws.examine(made.site(accounts=[ACCOUNT])))
    assert {finding.state for finding in findings} == {"ok"}, shown(findings)
    assert {finding.check for finding in findings} == {module.CHECK for module in CHECKS}
    assert "not to be shown" not in shown(findings)


def test_nothing_is_changed(made):
    made.cloud.calls.clear()
    list(aws.examine(made.site()))
    asked = [(action, parameters) for action, parameters in made.cloud.calls]
    reading = re.compile(r"(Describe|Get|List|Simulate|Decode)[A-Z].*|AssumeRole")
    others = [(action, p) for action, p in asked if not reading.fullmatch(action) and "Associations" not in action]
    assert {(action, p.get("DryRun")) for action, p in others} == {("RunInstances", "true")}
    assert "GetSecretValue" not in {action for action, _ in asked}


def pool(**changes):
    return lambda value: value["cloud"]["pools"][0].update(changes)


def reserved(made, *, count=3, zone="us-east-1a", kind="p5.48xlarge", ends=None):
    asked = {"InstanceType": kind, "AvailabilityZone": zone, "InstanceCount": count, "InstancePlatform": "Linux/UNIX"}
    held = made.ec2.create_capacity_reservation(**asked)["CapacityReservation"]["CapacityReservationId"]
    if ends:
        made.given("reservations")[held]["EndDate"] = ends
    return held


def in_reservation(**of):
    """A pool on demand in one zone, in a reservation of `of`."""

    def change(made):
        held = reserved(made, **of)
        return pool(markets=["on-demand"], zones=["us-east-1a"], capacity_reservation=held)

    return change


def block(made):
    """The fixed group in what is no capacity block."""
    ends = "2027-01-01T00:00:00Z"
    held = reserved(made, count=1)
    return lambda value: value["cloud"]["groups"][0].update(
        placement_group=False, capacity_block={"id": held, "ends": ends}
    )


def ami(image_id=IMAGE, **changes):
    return lambda made: vars(made.cloud.backend.amis[image_id]).update(changes)


def nat_of_somebody(made):
    made.given("quotas")["L-FE5A380F"] = 1
    address = made.ec2.allocate_address(Domain="vpc")["AllocationId"]
    made.ec2.create_nat_gateway(SubnetId=made.subnets["us-east-1a"], AllocationId=address)


def not_offered(made):
    """A zone of the region that has no p4de."""
    rows = made.ec2.describe_instance_type_offerings(
        LocationType="availability-zone", Filters=[{"Name": "instance-type", "Values": ["p4de.24xlarge"]}]
    )["InstanceTypeOfferings"]
    every = {f"us-east-1{letter}" for letter in "abcdef"}
    zone = min(every - {row["Location"] for row in rows})

    def change(value):
        value["cloud"]["network"]["zones"] = ["us-east-1a", "us-east-1b", zone]
        pool(instance_type="p4de.24xlarge", zones=[zone])(value)

    return change


def under_a_key(made):
    made.clients("secretsmanager").update_secret(SecretId=SECRET, KmsKeyId="arn:aws:kms:us-east-1:123456789012:key/1")


def forget_spot_role(made):
    roles = iam_backends[ACCOUNT]["aws"].roles
    for key in [key for key, role in roles.items() if role.name == capacity.SPOT_ROLE]:
        del roles[key]


def linked(state="", *, of_another=False):
    """A Direct Connect instead of the VPN, with the association of the cluster's gateway."""
    gateway = "0a1b2c3d-4e5f-6789-abcd-ef0123456789"

    def change(made):
        row = {"associationId": "1", "directConnectGatewayId": gateway, "associationState": state}
        rows = made.given("direct-connect-associations")
        if state:
            rows["1"] = row | {"associatedGateway": {"id": "vgw-0" if of_another else made.gateway}}
        wanted = {"kind": "direct-connect", "hall": "hall-a", "gateway_id": gateway}
        return lambda value: value["cloud"]["network"].update(hall_link=wanted)

    return change


def by_transit(site, gateway_id):
    """A site whose link is a transit gateway."""
    (declared,) = site.cloud.network.links
    network = site.cloud.network.model_copy(
        update={"hall_link": declared.model_copy(update={"gateway_id": gateway_id})}
    )
    return replace(site, cloud=site.cloud.model_copy(update={"network": network}))


def delete(service, call, **asked):
    return lambda made: getattr(made.clients(service), call)(**asked) and None


QUOTA = "request-service-quota-increase --region us-east-1 --service-code ec2 --quota-code"
BROKEN = {
    # what is broken (it may change the declaration): the check, the state, what is seen, what is to do
    "quota of P": (
        lambda made: made.given("quotas").update({P_ON_DEMAND: 384}),
        quotas,
        "fail",
        "384 vCPUs; this stack may run 768 (group fixed 192, pool p5 576)",
        f"{QUOTA} L-417A185B --desired-value 768",
    ),
    "quota of spot": (
        lambda made: made.given("quotas").pop(P5_SPOT) and None,
        quotas,
        "fail",
        "0 vCPUs; this stack may run 576",
        f"{QUOTA} L-C4BD4855 --desired-value 576",
    ),
    "quota of a build": (
        lambda made: made.given("quotas").pop(STANDARD) and None,
        quotas,
        "fail",
        "5 vCPUs; this stack may run 8 (a build 8)",
        f"{QUOTA} L-1216C47A --desired-value 8",
    ),
    "spot of P6": (
        lambda made: pool(instance_type="p6-b200.48xlarge"),
        quotas,
        "unknown",
        "isn't known here",
        "us-east-1.console.aws.amazon.com/servicequotas",
    ),
    "addresses": (
        lambda made: [made.ec2.allocate_address(Domain="vpc") for _ in range(4)] and None,
        quotas,
        "fail",
        "5; others use 4, this stack 2",
        "L-0263D0A3 --desired-value 6",
    ),
    "VPCs": (
        lambda made: made.given("quotas").update({"L-F678F1CE": 1}),
        quotas,
        "fail",
        "1; others use 1, this stack 1",
        "--service-code vpc --quota-code L-F678F1CE --desired-value 2",
    ),
    "NAT gateways": (nat_of_somebody, quotas, "fail", "1; others use 1, this stack 1", "L-FE5A380F --desired-value 2"),
    "zone not opted in": (
        lambda made: made.given("zones").update({"us-east-1b": {"OptInStatus": "not-opted-in"}}),
        zones,
        "fail",
        "has not opted in",
        "leave us-east-1b out",
    ),
    "zone impaired": (
        lambda made: made.given("zones").update({"us-east-1b": {"State": "impaired"}}),
        zones,
        "warn",
        "impaired",
        "health.aws.amazon.com",
    ),
    "zone unknown": (
        lambda made: lambda value: value["cloud"]["network"].update(zones=["us-east-1a", "us-east-1b", "us-east-1z"]),
        zones,
        "fail",
        "no such zone in us-east-1",
        "us-east-1a, us-east-1b",
    ),
    "not offered": (not_offered, zones, "fail", "doesn't offer it there", "use us-east-1"),
    "no image": (
        delete("ssm", "delete_parameter", Name="/ironburst/lab/p5/image"),
        images,
        "fail",
        "no SSM parameter /ironburst/lab/p5/image",
        "ironburst image p5",
    ),
    "image gone": (
        delete("ec2", "deregister_image", ImageId=IMAGE),
        images,
        "fail",
        "no such image",
        "ironburst image p5",
    ),
    "image pending": (ami(state="pending"), images, "fail", "it is pending", "wait"),
    "image of a stranger": (
        ami(owner_id="999999999999"),
        images,
        "fail",
        "its owner is 999999999999",
        "cloud.images.owners",
    ),
    "image of arm64": (
        ami(architecture="arm64"),
        images,
        "fail",
        "it is of arm64; p5.48xlarge is x86_64",
        "ironburst image p5",
    ),
    "image without ENA": (ami(ena_support=False), images, "fail", "EnaSupport", "ironburst image p5"),
    "image by UEFI alone": (
        lambda made: ami(boot_mode="uefi")(made) or pool(instance_type="p4d.24xlarge"),
        images,
        "fail",
        "it boots by uefi; p4d.24xlarge by legacy-bios",
        "ironburst image p5",
    ),
    "image without a root volume": (
        ami(root_device_name="/dev/xvda"),
        images,
        "fail",
        "/dev/xvda (ebs) is no EBS volume",
        "ironburst image p5",
    ),
    "image deprecated": (
        ami(deprecation_time="2026-01-01T00:00:00.000Z"),
        images,
        "warn",
        "deprecated it on 2026-01-01",
        "ironburst image p5",
    ),
    "disk of a group": (
        lambda made: lambda value: value["cloud"]["groups"][0].update(root_disk_gb=4),
        images,
        "fail",
        "4 GiB are declared",
        "write 8 or more",
    ),
    "disk of a pool": (
        lambda made: pool(root_disk_gb=300),
        images,
        "warn",
        "300 GiB are declared as root_disk_gb, the image's root volume has 200",
        "ironburst image p5",
    ),
    "group's image gone": (
        delete("ec2", "deregister_image", ImageId=GROUPS_IMAGE),
        images,
        "fail",
        "no such image",
        "share it with this account",
    ),
    "no right to end": (
        lambda made: made.policy("controller", "controller", ["EndRented"]),
        rights,
        "fail",
        "implicitDeny, says IAM's simulator",
        "pulumi up",
    ),
    "no right to launch": (
        lambda made: made.policy("controller", "launch", ["LaunchInstances"]),
        rights,
        "fail",
        "IAM was asked for ec2:RunInstances on arn:aws:ec2:us-east-1:123456789012:instance/*",
        "pulumi up",
    ),
    "no controller": (
        delete("iam", "untag_role", RoleName="lab-controller-0a1b2c3", TagKeys=["ironburst:cluster"]),
        rights,
        "fail",
        "there is none with this cluster's tag",
        "pulumi up",
    ),
    "template gone": (
        delete("ec2", "delete_launch_template", LaunchTemplateName="p5-us-east-1b"),
        rights,
        "fail",
        "InvalidLaunchTemplate",
        "pulumi up",
    ),
    "key pair gone": (
        delete("ec2", "delete_key_pair", KeyName="lab"),
        rights,
        "fail",
        "InvalidKeyPair.NotFound",
        "pulumi up",
    ),
    "tunnels down": (
        lambda made: made.hall(0, []),
        link,
        "fail",
        "IPSEC IS DOWN",
        "pulumi stack output hall_tunnels --show-secrets",
    ),
    "one tunnel": (lambda made: made.hall(1, ["10.78.0.0/21"]), link, "warn", "one tunnel is up", "hall-link.md"),
    "no route by BGP": (lambda made: made.hall(2, []), link, "fail", "no route came from the hall by BGP", "announce"),
    "another route": (
        lambda made: made.hall(2, ["10.79.0.0/21"]),
        link,
        "fail",
        "no route of lab-routes-us-east-1a covers 10.78.0.0/21",
        "announce 10.78.0.0/21",
    ),
    "no VPN": (
        lambda made: made.ec2.delete_vpn_connection(VpnConnectionId=made.vpn) and None,
        link,
        "fail",
        "no VPN connection lab-hall-hall-a",
        "pulumi up",
    ),
    "Direct Connect pending": (linked("associating"), link, "fail", "associating", "who accepts and ends them"),
    "Direct Connect of another": (
        linked("associated", of_another=True),
        link,
        "fail",
        "is not at gateway 0a1b2c3d",
        "let the gateway's owner accept it",
    ),
    "Direct Connect not associated": (linked(), link, "fail", "is not at gateway", "pulumi up"),
    "secret gone": (
        delete("secretsmanager", "delete_secret", SecretId=SECRET, ForceDeleteWithoutRecovery=True),
        secret,
        "fail",
        "there is none in us-east-1",
        "create-secret --region us-east-1 --name ironburst/lab/munge-key",
    ),
    "secret deleted": (
        delete("secretsmanager", "delete_secret", SecretId=SECRET),
        secret,
        "fail",
        "it is deleted",
        "restore-secret",
    ),
    "secret not readable": (
        lambda made: made.iam.delete_role_policy(RoleName="lab-node-0a1b2c3", PolicyName="node") and None,
        secret,
        "fail",
        "implicitDeny",
        "pulumi up",
    ),
    "secret under a key": (under_a_key, secret, "unknown", "whose key policy the simulator doesn't see", "kms:Decrypt"),
    "tag inactive": (
        lambda made: made.given("cost tags").update({"ironburst:pool": "Inactive"}),
        billing,
        "fail",
        "Inactive",
        "TagKey=ironburst:pool,Status=Active",
    ),
    "tag not seen": (
        lambda made: made.given("cost tags").clear(),
        billing,
        "warn",
        "has seen no resource with it",
        "a day after",
    ),
    "member account": (
        lambda made: made.given("cost tags").update(member=True),
        billing,
        "unknown",
        "only its payer account is",
        "aws ce list-cost-allocation-tags",
    ),
    "no budget": (
        delete("budgets", "delete_budget", AccountId=ACCOUNT, BudgetName="lab-rented-0a1b2c3"),
        billing,
        "fail",
        "there is no budget lab-rented",
        "pulumi up",
    ),
    "no spot role": (
        forget_spot_role,
        capacity,
        "fail",
        "lacks it",
        "create-service-linked-role --aws-service-name spot.amazonaws.com",
    ),
    "queue gone": (
        lambda made: made.clients("sqs").delete_queue(QueueUrl=made.queue) and None,
        capacity,
        "fail",
        "isn't there",
        "pulumi up",
    ),
    "rule disabled": (
        delete("events", "disable_rule", Name="lab-interruptions"),
        capacity,
        "fail",
        "rule lab-interruptions is disabled",
        "aws events enable-rule --region us-east-1 --name lab-interruptions",
    ),
    "rule without target": (
        delete("events", "remove_targets", Rule="lab-interruptions", Ids=["1"]),
        capacity,
        "fail",
        "no event rule sends to it",
        "pulumi up",
    ),
    "no reservation": (
        lambda made: pool(markets=["on-demand"], capacity_reservation="cr-0123456789abcdef0"),
        capacity,
        "fail",
        "no such reservation in us-east-1",
        "leave it out",
    ),
    "reservation too small": (
        in_reservation(count=2),
        capacity,
        "warn",
        "2 instances are reserved, 3 declared",
        "declare 2",
    ),
    "reservation of another type": (
        in_reservation(kind="p4d.24xlarge"),
        capacity,
        "fail",
        "it is for p4d.24xlarge",
        "declare the type",
    ),
    "reservation elsewhere": (
        in_reservation(zone="us-east-1b"),
        capacity,
        "fail",
        "it lies in us-east-1b",
        "declare us-east-1b",
    ),
    "reservation that ends": (
        in_reservation(ends=datetime(2027, 1, 1, tzinfo=UTC)),
        capacity,
        "warn",
        "2027-01-01T00:00Z, and nothing is declared",
        "capacity_ends",
    ),
    "no block": (block, capacity, "fail", "it is of kind default", "capacity_reservation"),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_each_check_finds_what_is_broken_and_says_what_to_do(made, broken):
    breaks, module, state, seen, todo = BROKEN[broken]
    change = breaks(made) or (lambda value: None)
    findings = list(module.check(made.site(change=change)))
    wrong = [each for each in findings if each.state != "ok"]
    assert any(each.state == state and seen in each.seen and todo in each.todo for each in wrong), shown(findings)
    assert {each.state for each in wrong} <= {state, "unknown"}, shown(findings)


def test_a_reservation_in_order_and_an_association_are_ok(made):
    change = in_reservation()(made)
    assert {each.state for each in capacity.check(made.site(change=change))} == {"ok"}
    change = linked("associated")(made)
    assert {each.state for each in link.check(made.site(change=change))} == {"ok"}


def test_a_transit_gateway_has_to_be_attached(made):
    gateway = made.ec2.create_transit_gateway()["TransitGateway"]["TransitGatewayId"]
    first, *_ = link.check(by_transit(made.site(), gateway))
    assert first.state == "fail" and f"is not at gateway {gateway}" in first.seen
    asked = {"TransitGatewayId": gateway, "VpcId": made.vpc, "SubnetIds": list(made.subnets.values())}
    own = spelled("transit-gateway-attachment", gateway)
    attached = made.ec2.create_transit_gateway_vpc_attachment(**asked, **own)["TransitGatewayVpcAttachment"]
    first, *_ = link.check(by_transit(made.site(), gateway))
    assert first.state == "ok"
    id = attached["TransitGatewayAttachmentId"]
    made.cloud.backend.transit_gateway_attachments[id].state = "pendingAcceptance"
    first, *_ = link.check(by_transit(made.site(), gateway))
    assert (first.state, first.seen) == ("fail", "pendingAcceptance") and "accepts" in first.todo


def test_another_account_than_the_declared_one_is_seen(made):
    (finding, *_) = identity.check(made.site(accounts=["999999999999"]))
    assert finding.state == "fail" and "999999999999" in finding.seen and "AWS_PROFILE" in finding.todo


def test_a_region_that_takes_no_credentials_of_ours_is_not_enabled(made):
    made.cloud.fault("DescribeRegions", "AuthFailure", status=401)
    caller, region = identity.check(made.site())
    assert (caller.state, region.state) == ("ok", "fail") and "enable-region" in region.todo


def test_who_may_nothing_gets_no_ok_but_its_own_name(made, clients):
    nobody = user(clients, "nobody")
    findings = list(aws.examine(made.site(session=nobody)))
    named = [each for each in findings if each.state == "ok"]
    assert [each.looked_at for each in named] == ["caller"], shown(findings)
    assert {each.state for each in findings} == {"ok", "unknown"}
    rights_named = {word for each in findings for word in re.findall(r"allow the caller (\S+)", each.todo)}
    needed = {"servicequotas:GetServiceQuota", "ec2:DescribeImages", "iam:ListRoles", "ce:ListCostAllocationTags"}
    assert needed <= rights_named, rights_named


def test_the_policy_of_the_page_is_enough(made, clients):
    (text,) = re.findall(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL)
    said = json.loads(text.replace("CONTROLLER_ROLE_ARN", made.controller))
    findings = list(aws.examine(made.site(session=user(clients, "doctor", said))))
    assert {each.state for each in findings} == {"ok"}, shown(findings)


def test_who_may_not_act_as_the_controller_learns_that_the_launch_is_not_shown(made, clients):
    may = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
    not_that = {"Effect": "Deny", "Action": "sts:AssumeRole", "Resource": "*"}
    somebody = user(clients, "somebody", may | {"Statement": [*may["Statement"], not_that]})
    launches = [each for each in rights.check(made.site(session=somebody)) if each.looked_at.startswith("launch")]
    assert len(launches) == 4 and {each.state for each in launches} == {"unknown"}
    assert all("lacks sts:AssumeRole" in each.seen and "sts:AssumeRole" in each.todo for each in launches)


def test_an_image_that_is_gone_fails_also_for_who_may_not_act_as_the_controller(made, clients):
    made.ec2.deregister_image(ImageId=IMAGE)
    made.iam.update_assume_role_policy(RoleName="lab-controller-0a1b2c3", PolicyDocument=json.dumps(NOBODY))
    launches = [each for each in rights.check(made.site()) if each.looked_at.startswith("launch")]
    assert {each.state for each in launches} == {"fail"} and "InvalidAMIID.NotFound" in launches[0].seen


def test_without_a_document_launches_and_queues_are_unknown(made):
    findings = list(aws.examine(made.site(published=False)))
    unknown = {each.looked_at for each in findings if each.state != "ok"}
    assert unknown == {"launches", "interruption queue"}, shown(findings)


def test_without_credentials_one_line_says_so(made, monkeypatch):
    stranger = boto3.Session("AKIAXXXXXXXXXXXXXXXX", "x", region_name=REGION)
    (finding,) = aws.examine(made.site(session=stranger))
    assert (finding.state, finding.check) == ("unknown", "credentials") and "AWS_PROFILE" in finding.todo


def test_without_a_network_one_line_says_so(made, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    (finding,) = aws.examine(made.site())
    assert finding.state == "unknown" and "no answer of sts" in finding.seen and "network" in finding.todo


def test_other_clusters_of_the_account_are_not_taken_for_ours(made):
    assert made.site().account.role("lab", "controller") == made.controller
    assert made.site().account.role("lab2", "controller") is None
    made.ec2.create_vpc(CidrBlock="10.99.0.0/16", **spelled("vpc", "vpc"))
    before = made.site().account.in_use("lab")
    assert made.site().account.in_use("other").vpcs == before.vpcs + 2


# ---- the verb
@pytest.fixture
def published(made, tmp_path):
    path = tmp_path / "lab.json"
    path.write_text(made.document().model_dump_json())
    return str(path)


def test_the_verb_says_ok_with_0_and_findings_with_3(made, published, capsys):
    assert cli.main(["doctor", str(STACK), "--aws", "--document", published]) == 0
    said = capsys.readouterr().out
    assert re.search(r"^\d+ ok$", said.splitlines()[-1]) and "->" not in said
    made.given("quotas")[P_ON_DEMAND] = 0
    assert cli.main(["doctor", str(STACK), "--document", published]) == 3
    said = capsys.readouterr().out
    assert "fail     quotas: Running On-Demand P instances: 0 vCPUs" in said and "         -> ask for it" in said
    assert said.splitlines()[-1].endswith("1 fail")


def test_the_verb_as_json(made, published, capsys, monkeypatch):
    monkeypatch.setenv("IRONBURST_DOCUMENT", published)
    made.given("cost tags").clear()
    assert cli.main(["doctor", str(STACK), "--aws", "--json"]) == 3
    said = json.loads(capsys.readouterr().out)
    assert said["ok"] is False and set(said["findings"][0]) == {"check", "looked_at", "state", "seen", "todo"}
    assert [each["check"] for each in said["findings"] if each["state"] != "ok"] == ["billing"]


def test_bad_input_is_one_sentence(made, published, tmp_path, capsys):
    stack = tmp_path / "Pulumi.other.yaml"
    stack.write_text(STACK.read_text().replace("name: lab\n", "name: other\n", 1))
    assert cli.main(["doctor", str(stack), "--document", published]) == 2
    assert "is the document of lab" in capsys.readouterr().err
    stack.write_text("config: {}\n")
    assert cli.main(["doctor", str(stack)]) == 2
    assert "has no key" in capsys.readouterr().err
