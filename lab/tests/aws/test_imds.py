"""The metadata service: by source address, version 2 only; and boto3 on a "host" gets its role's credentials from
it.
"""

import dataclasses
import http.client
import json
import os
import subprocess
import sys
import threading

import pytest

from lab.aws.cloud import Cloud
from lab.aws.imds import Imds, tree
from lab.aws.testing import Clients, network
from lab.aws.view import InstanceView
from tests.lab_cloud import TRUSTS_EC2

A = InstanceView(
    instance_id="i-a",
    instance_type="p5.48xlarge",
    zone="us-east-1a",
    address="127.0.0.2",
    launch_index=3,
    image_id="ami-1",
    image_folder="p5",
    market="spot",
    state="running",
    subnet_id="subnet-1",
    placement_group="gang",
    role_arn="arn:aws:iam::123456789012:role/x/node",
    tags={"pool": "p5", "Name": "n"},
    user_data='{"ironburst": 1}',
    spot_action=None,
    client_token=None,
    tags_in_metadata=True,
)
B = dataclasses.replace(
    A, instance_id="i-b", address="127.0.0.3", tags_in_metadata=False, user_data=None, placement_group="", role_arn=None
)


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def serving(*args, **kwargs):
    server = Imds(("127.0.0.1", 0), *args, **kwargs)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    return server


@pytest.fixture
def imds():
    hosts = {h.address: h for h in (A, B)}
    server = serving(hosts.get, credentials=lambda view: {"Code": "Success"}, clock=Clock())
    server.hosts = hosts
    yield server
    server.shutdown()
    server.server_close()


def ask(imds, path, source="127.0.0.2", method="GET", **headers):
    link = http.client.HTTPConnection("127.0.0.1", imds.server_address[1], source_address=(source, 0), timeout=5)
    link.request(method, path, headers={k.replace("_", "-"): v for k, v in headers.items()})
    reply = link.getresponse()
    return reply.status, reply.read().decode()


def token(imds, source="127.0.0.2", ttl="60", **headers):
    return ask(imds, "/latest/api/token", source, "PUT", X_aws_ec2_metadata_token_ttl_seconds=ttl, **headers)


def get(imds, path, source="127.0.0.2"):
    return ask(imds, f"/latest/{path}", source, X_aws_ec2_metadata_token=token(imds, source)[1])


def test_nothing_without_a_token(imds):
    assert ask(imds, "/latest/meta-data/instance-id")[0] == 401
    assert ask(imds, "/latest/meta-data/instance-id", X_aws_ec2_metadata_token="made-up")[0] == 401


def test_a_token_is_for_one_host_and_a_time(imds):
    held = token(imds, ttl="10")[1]
    assert ask(imds, "/latest/meta-data/instance-id", X_aws_ec2_metadata_token=held) == (200, "i-a")
    assert ask(imds, "/latest/meta-data/instance-id", "127.0.0.3", X_aws_ec2_metadata_token=held)[0] == 401
    imds.clock.now = 10.5
    assert ask(imds, "/latest/meta-data/instance-id", X_aws_ec2_metadata_token=held)[0] == 401


@pytest.mark.parametrize("ttl", ["", "0", "21601", "x"])
def test_a_bad_ttl(imds, ttl):
    assert token(imds, ttl=ttl)[0] == 400


def test_strangers_proxies_and_a_switched_off_service(imds):
    assert token(imds, "127.0.0.9")[0] == 404 and ask(imds, "/latest/meta-data/", "127.0.0.9")[0] == 401
    assert token(imds, X_Forwarded_For="10.0.0.1")[0] == 403
    imds.hosts["127.0.0.2"] = dataclasses.replace(A, metadata_enabled=False)
    assert token(imds)[0] == 403


def test_each_host_reads_its_own(imds):
    for path, text in tree(A, "us-east-1", {"Code": "Success"}).items():
        assert get(imds, path) == (200, text)
    assert get(imds, "meta-data/ami-launch-index") == (200, "3") and get(imds, "user-data") == (200, '{"ironburst": 1}')
    assert get(imds, "meta-data/iam/security-credentials/") == (200, "node")  # the role's name without its path
    assert get(imds, "meta-data/instance-id", "127.0.0.3") == (200, "i-b")
    assert get(imds, "meta-data/tags/instance") == (200, "Name\npool")
    assert get(imds, "meta-data/tags/instance", "127.0.0.3")[0] == 404  # not switched on
    assert get(imds, "user-data", "127.0.0.3")[0] == 404
    assert get(imds, "meta-data/iam/security-credentials/", "127.0.0.3")[0] == 404
    assert "placement/" in get(imds, "meta-data/")[1].splitlines()
    assert get(imds, "meta-data/none-such")[0] == 404


def test_the_spot_warning_appears(imds):
    assert get(imds, "meta-data/spot/instance-action")[0] == 404
    imds.hosts["127.0.0.2"] = dataclasses.replace(
        A, spot_action=json.dumps({"action": "terminate", "time": "2026-11-21T10:00:00Z"})
    )
    assert json.loads(get(imds, "meta-data/spot/instance-action")[1])["action"] == "terminate"


ON_THE_NODE = """
import boto3, json
session = boto3.Session(region_name="us-east-1")
credentials = session.get_credentials()
secret = session.client("secretsmanager").get_secret_value(SecretId="ironburst/lab/munge-key")
print(json.dumps({"key": credentials.get_frozen_credentials().access_key, "method": credentials.method,
                  "arn": session.client("sts").get_caller_identity()["Arn"], "secret": secret["SecretString"]}))
"""

READS_THE_KEY = {
    "Version": "2012-10-17",
    "Statement": {
        "Effect": "Allow",
        "Action": "secretsmanager:GetSecretValue",
        "Resource": "arn:aws:secretsmanager:us-east-1:123456789012:secret:ironburst/lab/munge-key-??????",
    },
}


def test_boto3_on_a_node_reads_a_secret_with_its_roles_credentials():
    """As ironburst-join.service does: nothing but AWS_ENDPOINT_URL and the metadata service."""
    cloud = Cloud(seed=1)
    try:
        clients = Clients(cloud.url)
        clients("secretsmanager").create_secret(Name="ironburst/lab/munge-key", SecretString="c2VjcmV0")
        role = clients("iam").create_role(RoleName="node", AssumeRolePolicyDocument=TRUSTS_EC2)["Role"]["Arn"]
        clients("iam").put_role_policy(RoleName="node", PolicyName="key", PolicyDocument=json.dumps(READS_THE_KEY))
        clients("iam").create_instance_profile(InstanceProfileName="node")
        clients("iam").add_role_to_instance_profile(InstanceProfileName="node", RoleName="node")
        instance = clients().run_instances(
            ImageId=cloud.register_image(""),
            InstanceType="p5.48xlarge",
            MinCount=1,
            MaxCount=1,
            SubnetId=network(clients())[1],
            IamInstanceProfile={"Name": "node"},
        )["Instances"][0]
        view = cloud.instance_at(instance["PrivateIpAddress"])
        assert view.role_arn == role
        imds = serving(lambda address: view, credentials=cloud.credentials)  # every source is this one instance
        try:
            clean = {k: v for k, v in os.environ.items() if not k.startswith("AWS_") and "proxy" not in k.lower()}
            env = clean | {
                "AWS_ENDPOINT_URL": cloud.url,
                "HOME": "/nonexistent",
                "AWS_EC2_METADATA_SERVICE_ENDPOINT": f"http://127.0.0.1:{imds.server_address[1]}/",
            }
            done = subprocess.run(
                [sys.executable, "-c", ON_THE_NODE], env=env, capture_output=True, text=True, timeout=30
            )
        finally:
            imds.shutdown()
            imds.server_close()
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        assert told["secret"] == "c2VjcmV0" and told["method"] == "iam-role" and told["key"].startswith("ASIA")
        assert told["arn"] == f"arn:aws:sts::123456789012:assumed-role/node/{instance['InstanceId']}"
    finally:
        cloud.close()
