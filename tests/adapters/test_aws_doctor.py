"""Doctor against the lab's AWS: each check is seen ok, and made to fail."""

import json
import re
from pathlib import Path

import boto3
import pytest
import yaml

from ironburst import cli
from ironburst.config.load import KEY
from ironburst.doctor.aws import billing, capacity, identity, images, link, orphans, quotas, rights, secret, zones
from ironburst.doctor.aws import examine as aws
from lab.aws.cloud import ACCOUNT
from lab.aws.testing import REGION
from tests.adapters.aws_doctor_faults import BROKEN, by_transit, in_reservation, linked, of_no_state, own_key
from tests.doctor_account import IMAGE, LAB, P_ON_DEMAND, STACK, Made, spelled
from tests.lab_cloud import user

CHECKS = (identity, quotas, zones, images, rights, link, secret, billing, capacity, orphans)
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
    findings = list(aws.check(made.site(accounts=[ACCOUNT])))
    assert {finding.state for finding in findings} == {"ok"}, shown(findings)
    assert {finding.check for finding in findings} == {module.CHECK for module in CHECKS}
    assert "not to be shown" not in shown(findings)


def test_nothing_is_changed(made):
    made.cloud.calls.clear()
    list(aws.check(made.site()))
    asked = [(action, parameters) for action, parameters in made.cloud.calls]
    reading = re.compile(r"(Describe|Get|List|Simulate|Decode)[A-Z].*|AssumeRole")
    others = [(action, p) for action, p in asked if not reading.fullmatch(action) and "Associations" not in action]
    assert {(action, p.get("DryRun")) for action, p in others} == {("RunInstances", "true")}
    assert "GetSecretValue" not in {action for action, _ in asked}


def test_what_another_cluster_of_the_account_has_is_not_this_ones(made):
    gateway = made.ec2.create_transit_gateway()["TransitGateway"]["TransitGatewayId"]
    asked = {"TransitGatewayId": gateway, "VpcId": made.vpc, "SubnetIds": list(made.subnets.values())}
    made.ec2.create_transit_gateway_vpc_attachment(**asked, **spelled("transit-gateway-attachment", gateway))
    of_no_state(made)
    account = made.site().account

    def all_of(cluster):
        lists = ("fixed", "nat_gateways", "addresses", "vpns", "vpn_gateways", "routes")
        found = {name: getattr(account, name)(cluster) for name in lists}
        return found | {"attachments": account.attachments(cluster, gateway)}

    assert all(all_of("lab").values())
    assert not any(another := all_of("another").values()), another


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


def test_a_key_of_ones_own_that_who_launches_may_use_is_ok(made):
    key = own_key(made, capacity.SPOT_ROLE)
    first, *rest = [each for each in capacity.check(made.site()) if each.looked_at.startswith(capacity.DEFAULT_KEY)]
    assert (first.state, first.seen) == ("ok", f"a grant of {key} lets it use it")
    assert [each.state for each in rest] == ["unknown"] and "which sees no key's policy" in rest[0].seen
    may = {"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "kms:*", "Resource": key}}
    made.iam.put_role_policy(RoleName="lab-controller-0a1b2c3", PolicyName="key", PolicyDocument=json.dumps(may))
    found = [each for each in capacity.check(made.site()) if each.looked_at.startswith(capacity.DEFAULT_KEY)]
    assert {each.state for each in found} == {"ok"}, shown(found)


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
    findings = list(aws.check(made.site(session=nobody)))
    named = [each for each in findings if each.state == "ok"]
    assert [each.looked_at for each in named] == ["caller"], shown(findings)
    assert {each.state for each in findings} == {"ok", "unknown"}
    rights_named = {word for each in findings for word in re.findall(r"allow the caller (\S+)", each.todo)}
    needed = {"servicequotas:GetServiceQuota", "ec2:DescribeImages", "iam:ListRoles", "ce:ListCostAllocationTags"}
    assert needed <= rights_named, rights_named


def test_the_policy_of_the_page_is_enough(made, clients):
    (text,) = re.findall(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL)
    said = json.loads(text.replace("CONTROLLER_ROLE_ARN", made.controller))
    findings = list(aws.check(made.site(session=user(clients, "doctor", said))))
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


def test_without_a_document_launches_queues_and_fixed_nodes_are_unknown(made):
    findings = list(aws.check(made.site(published=False)))
    unknown = {each.looked_at for each in findings if each.state != "ok"}
    assert unknown == {"launches", "interruption queue", "instances of groups"}, shown(findings)


def test_without_credentials_one_line_says_so(made, monkeypatch):
    stranger = boto3.Session("AKIAXXXXXXXXXXXXXXXX", "x", region_name=REGION)
    (finding,) = aws.check(made.site(session=stranger))
    assert (finding.state, finding.check) == ("unknown", "credentials") and "AWS_PROFILE" in finding.todo


def test_without_a_network_one_line_says_so(made, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    (finding,) = aws.check(made.site())
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


@pytest.fixture
def stack(tmp_path):
    """The lab's, with prices of today."""
    path = tmp_path / "Pulumi.lab.yaml"
    whole = yaml.safe_load(STACK.read_text())
    whole["config"][KEY] = LAB
    path.write_text(yaml.safe_dump(whole))
    return str(path)


def test_prices_that_are_too_old_are_told_in_one_line(made):
    found = next(billing.check(made.site(change=lambda value: value["cloud"].pop("price"))))
    assert (found.state, found.looked_at) == ("warn", "prices")
    assert "on-demand prices of 2026-" in found.seen and "days old" in found.seen and "report --bill" in found.todo


def test_the_verb_says_ok_with_0_and_findings_with_3(made, published, stack, capsys):
    assert cli.main(["doctor", stack, "--aws", "--document", published]) == 0
    said = capsys.readouterr().out
    assert re.search(r"^\d+ ok$", said.splitlines()[-1]) and "->" not in said
    made.given("quotas")[P_ON_DEMAND] = 0
    assert cli.main(["doctor", stack, "--document", published]) == 3
    said = capsys.readouterr().out
    assert "fail     quotas: Running On-Demand P instances: 0 vCPUs" in said and "         -> ask for it" in said
    assert said.splitlines()[-1].endswith("1 fail")


def test_the_verb_as_json(made, published, stack, capsys, monkeypatch):
    monkeypatch.setenv("IRONBURST_DOCUMENT", published)
    made.given("cost tags").clear()
    assert cli.main(["doctor", stack, "--aws", "--json"]) == 3
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
