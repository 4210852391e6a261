"""A company's account: its organization refuses roles without the boundary and launches without a cost centre, whoever
asks, and whoever does `up` has the printed rights alone. Through the pulumi CLI, against the lab's AWS.
"""

import json

import pytest

from ironburst.config import load
from ironburst.config.aws import sizes, up_policies
from lab.aws import leftovers
from lab.aws.organization import no_launch_without, no_role_without
from lab.aws.testing import Clients, client, refused
from tests.components.projects import done
from tests.components.test_declare import bmcs, cloud, engine, failed
from tests.lab_cloud import allow_spot, assumed

__all__ = ["bmcs", "cloud", "engine"]
BOUNDARY, PATH = "arn:aws:iam::123456789012:policy/security/gpu", "/ironburst/"
TRUST = json.dumps({"Statement": {"Effect": "Allow", "Principal": {"AWS": "123456789012"}, "Action": "sts:AssumeRole"}})
ALSO = ("transit-gateway", "vpn")  # the lab has a vpn, too
ANYTHING = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}


def declared(cluster):
    cluster["cloud"] |= {"iam": {"permissions_boundary": BOUNDARY, "path": PATH}, "tags": {"CostCenter": "4711"}}


def organize(cloud):
    """The account is a company's."""
    iam = client(cloud.url, "iam")
    allow_spot(iam)
    iam.create_policy(PolicyName="gpu", Path="/security/", PolicyDocument=json.dumps(ANYTHING))
    iam.create_role(RoleName="deployer", AssumeRolePolicyDocument=TRUST)
    cloud.organization += [no_role_without(BOUNDARY), no_launch_without("CostCenter")]


def deploys(cloud, settings):
    """A session of a role with the printed rights of these settings of a stack, which get its keys."""
    iam, config = client(cloud.url, "iam"), load.from_value(settings["ironburst:cluster"])
    for name, policy in up_policies.policies_of(config, config.cloud, sizes.where(config.cloud)).items():
        assert sizes.size(policy) <= 6_144
        made = iam.create_policy(PolicyName=name, PolicyDocument=json.dumps(policy))["Policy"]["Arn"]
        iam.attach_role_policy(RoleName="deployer", PolicyArn=made)
    session = assumed(Clients(cloud.url), iam.get_role(RoleName="deployer")["Role"]["Arn"])
    keys = session.get_credentials()
    settings |= {"aws:accessKey": keys.access_key, "aws:secretKey": keys.secret_key, "aws:token": keys.token}
    return Clients(cloud.url, session)


@pytest.fixture
def company(engine, cloud):
    """`company(change)`: a session of a role with the printed rights of the declaration so changed."""
    organize(cloud)

    def deployer(change):
        engine.declare(change)
        mine = deploys(cloud, engine.settings)
        engine.declare(lambda cluster: None)
        return mine

    return deployer


def test_what_is_not_declared_ends_in_the_organizations_own_sentence(engine, company):
    """The administrator's `up`, too."""
    assert company
    done(engine("stack", "init"))
    said = failed(engine("up", "--yes", "--skip-preview"))
    lines = [line for line in said.splitlines() if "is not authorized to perform: iam:CreateRole" in line]
    assert lines and all("with an explicit deny in a service control policy" in line for line in lines)


def test_a_role_with_the_printed_rights_declares_the_lab_and_gives_it_back(engine, cloud, company):
    before = leftovers.leftovers(cloud.url)
    mine = company(declared)
    done(engine("stack", "init"))
    done(engine("up", "--yes", "--skip-preview"))
    iam = client(cloud.url, "iam")
    made = [role for role in iam.list_roles()["Roles"] if role["RoleName"].startswith("lab-")]
    assert {role["Path"] for role in made} == {PATH} and len(made) == 3
    for role in made:
        got = iam.get_role(RoleName=role["RoleName"])["Role"]
        assert got["PermissionsBoundary"]["PermissionsBoundaryArn"] == BOUNDARY
    (fixed,) = client(cloud.url).describe_instances()["Reservations"][0]["Instances"]
    assert {"Key": "CostCenter", "Value": "4711"} in fixed["Tags"]
    done(engine("preview", "--expect-no-changes"))
    # the way to more than it has
    own, role = mine("iam"), made[0]["RoleName"]
    everything = json.dumps(ANYTHING)
    data = {"InstanceType": "p5.48xlarge"}
    made_by_others = client(cloud.url).create_launch_template(LaunchTemplateName="theirs", LaunchTemplateData=data)
    theirs = made_by_others["LaunchTemplate"]["LaunchTemplateId"]
    for call, asked in (
        (own.create_role, {"RoleName": "lab-x", "Path": PATH, "AssumeRolePolicyDocument": TRUST}),
        (
            own.create_role,
            {"RoleName": "lab-x", "AssumeRolePolicyDocument": TRUST, "PermissionsBoundary": BOUNDARY},
        ),
        (own.delete_role_permissions_boundary, {"RoleName": role}),
        (own.put_role_permissions_boundary, {"RoleName": role, "PermissionsBoundary": f"{BOUNDARY}2"}),
        (own.put_role_policy, {"RoleName": "deployer", "PolicyName": "x", "PolicyDocument": everything}),
        (own.create_policy_version, {"PolicyArn": BOUNDARY, "PolicyDocument": everything, "SetAsDefault": True}),
        (own.attach_role_policy, {"RoleName": role, "PolicyArn": BOUNDARY}),
        # another team's template, whose instances may have any role
        (mine("ec2").create_launch_template_version, {"LaunchTemplateId": theirs, "LaunchTemplateData": {}}),
        (mine("ec2").delete_vpc, {"VpcId": client(cloud.url).create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]}),
    ):
        assert refused(call, **asked)[0] in ("AccessDenied", "UnauthorizedOperation"), asked
    for vpc in client(cloud.url).describe_vpcs(Filters=[{"Name": "cidr", "Values": ["10.1.0.0/16"]}])["Vpcs"]:
        client(cloud.url).delete_vpc(VpcId=vpc["VpcId"])
    client(cloud.url).delete_launch_template(LaunchTemplateId=theirs)
    done(engine("destroy", "--yes", "--skip-preview"))
    after = leftovers.leftovers(cloud.url)
    assert {kind: set(names) - {"up-roles", "up-resources"} for kind, names in after.items()} == {
        kind: set(names) for kind, names in before.items()
    }


@pytest.mark.parametrize("kind", ["direct-connect", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ALSO)])
def test_the_printed_rights_are_enough_for_a_link_to_a_hall(engine, cloud, company, kind):
    engine.settings["aws:endpoints"][0]["directconnect"] = cloud.url

    def linked(cluster):
        declared(cluster)
        cluster["cloud"]["network"]["hall_link"] = {"kind": kind, "hall": "hall-a", **far_end(cloud, kind)}

    company(linked)
    before = leftovers.leftovers(cloud.url)
    done(engine("stack", "init"))
    done(engine("up", "--yes", "--skip-preview"))
    done(engine("preview", "--expect-no-changes"))
    done(engine("destroy", "--yes", "--skip-preview"))
    assert leftovers.leftovers(cloud.url) == before


def far_end(cloud, kind):
    """What somebody else has made: a network team's gateway, or the hall's router."""
    if kind == "transit-gateway":
        return {"gateway_id": client(cloud.url).create_transit_gateway()["TransitGateway"]["TransitGatewayId"]}
    if kind == "direct-connect":
        made = client(cloud.url, "directconnect").create_direct_connect_gateway(directConnectGatewayName="hall-a")
        return {"gateway_id": made["directConnectGateway"]["directConnectGatewayId"]}
    return {"peer_address": "203.0.113.10", "peer_asn": 65010}
