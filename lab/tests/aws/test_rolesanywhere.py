"""IAM Roles Anywhere of the lab's AWS: what AWS refuses is refused, and a session may what its role may."""

import json

import boto3
import pytest
from botocore.exceptions import ClientError

from lab.aws.testing import REGION, client, refused
from tests import pki
from tests.lab_cloud import user

CA = pki.issue("authority", ca=True)
HEAD = pki.issue("head", CA)
ACTIONS = ["sts:AssumeRole", "sts:TagSession", "sts:SetSourceIdentity"]


def trust(anchor, actions=ACTIONS, name="head"):
    return json.dumps(
        {
            "Version": "2012-10-17",
            "Statement": {
                "Effect": "Allow",
                "Principal": {"Service": "rolesanywhere.amazonaws.com"},
                "Action": actions,
                "Condition": {
                    "ArnEquals": {"aws:SourceArn": anchor},
                    "StringEquals": {"aws:PrincipalTag/x509Subject/CN": name},
                },
            },
        }
    )


def anchored(clients, pem, **more):
    source = {"sourceType": "CERTIFICATE_BUNDLE", "sourceData": {"x509CertificateData": pem}}
    return clients("rolesanywhere").create_trust_anchor(**({"name": "hall", "source": source, "enabled": True} | more))


@pytest.fixture
def site(cloud, clients):
    """What a session is asked with: anchor, role and profile, enabled."""
    anchor = anchored(clients, CA.pem)["trustAnchor"]["trustAnchorArn"]
    role = clients("iam").create_role(RoleName="controller", AssumeRolePolicyDocument=trust(anchor))["Role"]["Arn"]
    profile = clients("rolesanywhere").create_profile(name="hall", roleArns=[role], enabled=True)["profile"]
    return {"trustAnchorArn": anchor, "roleArn": role, "profileArn": profile["profileArn"]}


def why_not(server, site, who, **more):
    """What AWS answers to who gets no credentials."""
    with pytest.raises(PermissionError) as refused_one:
        pki.session(server.url, who, **(site | more))
    return str(refused_one.value)


def test_a_certificate_of_the_authority_gets_the_roles_credentials(server, clients, site):
    look = {"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "ec2:DescribeVpcs", "Resource": "*"}}
    clients("iam").put_role_policy(RoleName="controller", PolicyName="look", PolicyDocument=json.dumps(look))
    got = pki.session(server.url, HEAD, **site)
    session = boto3.Session(got["accessKeyId"], got["secretAccessKey"], got["sessionToken"], region_name=REGION)
    ec2 = client(server.url, session=session)
    assert ec2.describe_vpcs()["Vpcs"] and refused(ec2.describe_volumes)[0] == "UnauthorizedOperation"
    arn = client(server.url, "sts", session=session).get_caller_identity()["Arn"]
    assert arn.endswith(f"assumed-role/controller/{HEAD.certificate.serial_number:x}")


def test_a_chain_leads_to_the_authority(server, site):
    between = pki.issue("between", CA, ca=True)
    below = pki.issue("head", between)
    assert pki.session(server.url, below, chain=(between,), **site)["accessKeyId"]
    assert "Untrusted certificate" in why_not(server, site, below)


def test_who_gets_none(server, site):
    other = pki.issue("authority", ca=True)
    assert "Untrusted certificate" in why_not(server, site, pki.issue("head", other))
    assert "out of date" in why_not(server, site, pki.issue("head", CA, days=-1))
    assert "Digital Signature" in why_not(server, site, pki.issue("head", CA, digital_signature=False))
    assert "CA:false" in why_not(server, site, pki.issue("head", CA, ca=True))
    assert "Untrusted signature" in why_not(server, site, HEAD, key=other.key)
    assert "no policy allows sts:AssumeRole" in why_not(server, site, pki.issue("dgx01", CA))


def test_the_roles_trust_names_anchor_and_all_three_actions(server, clients, site):
    iam, role = clients("iam"), {"RoleName": "controller"}
    for actions in (ACTIONS[:1], ACTIONS[:2], ACTIONS[1:]):
        iam.update_assume_role_policy(**role, PolicyDocument=trust(site["trustAnchorArn"], actions))
        assert "Unable to assume role" in why_not(server, site, HEAD)
    second = anchored(clients, CA.pem)["trustAnchor"]["trustAnchorArn"]
    iam.update_assume_role_policy(**role, PolicyDocument=trust(second))
    assert "Unable to assume role" in why_not(server, site, HEAD)
    assert pki.session(server.url, HEAD, **site | {"trustAnchorArn": second})["accessKeyId"]


def test_anchor_and_profile_are_born_disabled(server, clients, site):
    anywhere = clients("rolesanywhere")
    anchor, profile = (site[key].rsplit("/", 1)[-1] for key in ("trustAnchorArn", "profileArn"))
    anywhere.disable_profile(profileId=profile)
    assert "disabled" in why_not(server, site, HEAD)
    anywhere.enable_profile(profileId=profile)
    anywhere.disable_trust_anchor(trustAnchorId=anchor)
    assert "disabled" in why_not(server, site, HEAD)
    source = {"sourceType": "CERTIFICATE_BUNDLE", "sourceData": {"x509CertificateData": CA.pem}}
    made = anywhere.create_trust_anchor(name="n", source=source)["trustAnchor"]
    assert made["enabled"] is False
    assert anywhere.create_profile(name="n", roleArns=[])["profile"]["enabled"] is False


def test_a_revoked_certificate_gets_none(server, clients, site):
    anywhere = clients("rolesanywhere")
    stolen, kept = pki.issue("head", CA), pki.issue("head", CA)
    data = pki.revocation_list(CA, stolen)
    anywhere.import_crl(name="hall", crlData=data, trustAnchorArn=site["trustAnchorArn"], enabled=True)
    assert "revoked" in why_not(server, site, stolen)
    assert pki.session(server.url, kept, **site)["accessKeyId"]


@pytest.mark.parametrize(
    ("certificate", "message"),
    [
        (HEAD.pem, "Incorrect basic constraints"),
        (pki.issue("a", ca=True, key_cert_sign=False).pem, "Incorrect key usage"),
        ("no PEM", "not a bundle"),
    ],
)
def test_what_is_no_authority_is_refused(cloud, clients, certificate, message):
    with pytest.raises(ClientError, match=message) as error:
        anchored(clients, certificate)
    assert error.value.response["Error"]["Code"] == "ValidationException"


def test_names_and_durations_are_those_of_the_service(cloud, clients):
    anywhere = clients("rolesanywhere")
    assert refused(anchored, clients, CA.pem, name="hall.a")[0] == "ValidationException"
    made = anywhere.create_profile(name="hall", roleArns=[])["profile"]
    assert made["durationSeconds"] == 3600
    assert refused(anywhere.get_profile, profileId="0" * 36)[0] == "ResourceNotFoundException"


def test_it_is_judged_by_iam(server, cloud, clients):
    stranger = client(server.url, "rolesanywhere", session=user(clients, "stranger"))
    assert refused(stranger.list_trust_anchors)[0] == "AccessDeniedException"
