"""Who may take our roles, and who may send to the queue: through boto3 to the lab's AWS, which enforces both."""

import json

import pytest

from ironburst.config.aws import policies
from lab.aws.testing import Clients, client, refused
from tests import pki
from tests.lab_cloud import assumed, clients, server, user

__all__ = ["clients", "server"]

from tests.components.rights_account import IMAGE, P5, WHERE, Site, refuses


@pytest.fixture(scope="module")
def site(server, clients):
    return Site(server, clients)


def launched(site, profile):
    """An instance of this profile."""
    made = site.ec2.run_instances(
        MinCount=1,
        MaxCount=1,
        ImageId=IMAGE,
        InstanceType=P5,
        SubnetId=site.subnet,
        IamInstanceProfile={"Name": profile},
    )
    return site.cloud.instance_at(made["Instances"][0]["PrivateIpAddress"])


def test_the_nodes_role_is_for_instances_alone(site):
    trust = json.dumps(policies.assumed_by_ec2())
    site.role("trust-node", trust)
    view = launched(site, "trust-node")
    assert site.cloud.credentials(view)["Code"] == "Success"
    assert refused(assumed, site.clients, view.role_arn)[0] == "AccessDenied"
    site.iam.update_assume_role_policy(RoleName="trust-node", PolicyDocument=json.dumps(EMPTY))
    assert site.cloud.credentials(view) is None


def test_the_controllers_role_is_for_whom_the_account_lets_take_it(site):
    arn = site.role("trust-controller", json.dumps(policies.assumed_within(WHERE)))
    may = {"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": arn}}
    head, stranger = user(site.clients, "head", may), user(site.clients, "stranger")
    assert assumed(Clients(site.cloud.url, head), arn)
    assert refused(assumed, Clients(site.cloud.url, stranger), arn)[0] == "AccessDenied"
    assert site.cloud.credentials(launched(site, "trust-controller")) is None
    site.iam.update_assume_role_policy(RoleName="trust-controller", PolicyDocument=json.dumps(EMPTY))
    assert refused(assumed, Clients(site.cloud.url, head), arn)[0] == "AccessDenied"


def test_the_controllers_role_is_for_one_certificate_where_that_is_declared(site):
    anywhere, authority = site.clients("rolesanywhere"), pki.issue("authority", ca=True)
    source = {"sourceType": "CERTIFICATE_BUNDLE", "sourceData": {"x509CertificateData": authority.pem}}
    anchors = [
        anywhere.create_trust_anchor(name=name, source=source, enabled=True)["trustAnchor"]["trustAnchorArn"]
        for name in ("ours", "theirs")
    ]
    role = site.role("trust-certificate", json.dumps(policies.assumed_with_certificate(anchors[0], "head.hall-a")))
    profile = anywhere.create_profile(name="ours", roleArns=[role], enabled=True)["profile"]["profileArn"]

    def signs_in(name, anchor=anchors[0]):
        asked = {"trustAnchorArn": anchor, "profileArn": profile, "roleArn": role}
        return pki.session(site.cloud.url, pki.issue(name, authority), **asked)

    assert signs_in("head.hall-a")["accessKeyId"]
    for refused_one in (lambda: signs_in("dgx01.hall-a"), lambda: signs_in("head.hall-a", anchors[1])):
        with pytest.raises(PermissionError, match="Unable to assume role"):
            refused_one()
    may = {"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": role}}
    insider = Clients(site.cloud.url, user(site.clients, "insider", may))
    assert refused(assumed, insider, role)[0] == "AccessDenied"


EMPTY = {
    "Version": "2012-10-17",
    "Statement": {"Effect": "Deny", "Principal": {"AWS": WHERE.account}, "Action": "sts:AssumeRole"},
}


def test_only_the_pools_event_rules_send_to_its_queue(site):
    events, sqs = site.clients("events"), site.clients("sqs")
    queue = site.make_queue("policy")
    arn = WHERE.arn("sqs", "policy")
    pattern = json.dumps({"source": ["test"]})
    rules = {name: events.put_rule(Name=name, EventPattern=pattern)["RuleArn"] for name in ("ours", "theirs")}

    def arrived():
        for name in rules:
            events.put_targets(Rule=name, Targets=[{"Id": "1", "Arn": arn}])
        events.put_events(Entries=[{"Source": "test", "DetailType": "x", "Detail": "{}"}])
        return len(sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10).get("Messages", []))

    assert arrived() == 0
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"Policy": json.dumps(policies.queue(arn, [rules["ours"]]))})
    assert arrived() == 1
    nobody = client(site.cloud.url, "sqs", session=user(site.clients, "nobody"))
    refuses(lambda: nobody.send_message(QueueUrl=queue, MessageBody="forged"))
