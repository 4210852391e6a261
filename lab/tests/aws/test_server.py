"""The daemon in a real box: an instance is a host, the host reads its own metadata, and the end of one is the end of
the other.
"""

import json
import os
import subprocess
import sys
import textwrap
import uuid

import pytest

from lab.site import Site
from lab.system import wait_for
from tests.lab_cloud import TRUSTS_EC2

ON_THE_HOST = """
import json, os, socket, urllib.request
BASE = "http://169.254.169.254/latest/"
def read(path, method="GET", **headers):
    names = {key.replace("_", "-"): value for key, value in headers.items()}
    request = urllib.request.Request(BASE + path, method=method, headers=names)
    return urllib.request.urlopen(request, timeout=5).read().decode()
token = read("api/token", "PUT", X_aws_ec2_metadata_token_ttl_seconds="60")
get = lambda path: read(path, X_aws_ec2_metadata_token=token)
credentials = json.loads(get("meta-data/iam/security-credentials/node"))
print(json.dumps({"id": get("meta-data/instance-id"), "data": get("user-data"),
                  "index": get("meta-data/ami-launch-index"),
                  "key": credentials["AccessKeyId"], "name": socket.gethostname()}))
"""
IN_THE_NET = """
import json, sys
from lab.aws.testing import Clients, network
TRUSTS_EC2 = '''{trusts}'''
clients = Clients("http://10.78.0.1:5000")
if sys.argv[1] == "launch":
    iam = clients("iam")
    iam.create_service_linked_role(AWSServiceName="spot.amazonaws.com")
    iam.create_role(RoleName="node", AssumeRolePolicyDocument=TRUSTS_EC2)
    iam.create_instance_profile(InstanceProfileName="node")
    iam.add_role_to_instance_profile(InstanceProfileName="node", RoleName="node")
    got = clients().run_instances(ImageId=sys.argv[2], InstanceType="p5.48xlarge", MinCount=2, MaxCount=2,
                                  SubnetId=network(clients())[1], UserData='{"ironburst": 1}',
                                  IamInstanceProfile={"Name": "node"},
                                  InstanceMarketOptions={"MarketType": "spot"})["Instances"]
    print(json.dumps([(i["InstanceId"], i["PrivateIpAddress"]) for i in got]))
else:
    clients().terminate_instances(InstanceIds=sys.argv[2:])
""".replace("{trusts}", TRUSTS_EC2)

# slow: make test has the same of Google's (tests/lab/test_other_clouds_node.py)
pytestmark = [
    pytest.mark.lab,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: boots hosts in a lab"),
]


@pytest.fixture(scope="module")
def site():
    site = Site("t" + uuid.uuid4().hex[:8])
    site.up(start=[])
    try:
        site.spawn([sys.executable, "-m", "lab.aws", "--prefix", site.prefix, "--root", str(site.box.root)], "aws")
        yield site
    finally:
        site.down()


def inside(site, *command):
    done = site.run([sys.executable, *command], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) if done.stdout.strip() else None


def control(site, *command):
    return inside(site, "-m", "lab.aws.client", *command)


def answers(site):
    return site.run([sys.executable, "-m", "lab.aws.client", "GET", "/lab/health"], capture_output=True).returncode == 0


def test_an_instance_is_a_host(site):
    wait_for(lambda: answers(site), 30, "the daemon")
    image = control(site, "POST", "/lab/images", '{"name": "base"}')["image_id"]
    (first, address), (second, _) = inside(site, "-c", IN_THE_NET, "launch", image)
    wait_for(lambda: {i["state"] for i in control(site, "GET", "/lab/instances")} == {"running"}, 30, "both hosts")
    site.wait([first, second], 60)
    told = json.loads(site.host(first).ssh(["python3", "-c", textwrap.dedent(ON_THE_HOST)]).stdout)
    assert told.pop("key").startswith("ASIA")
    assert told == {"id": first, "data": '{"ironburst": 1}', "index": "0", "name": "ip-" + address.replace(".", "-")}
    assert "AWS_ENDPOINT_URL=http://10.78.0.1:5000" in site.ssh(first, "systemd-run --quiet --wait --pipe env").stdout
    assert control(site, "GET", "/lab/leftovers")["hosts"] == sorted([first, second])
    control(site, "POST", "/lab/interrupt", json.dumps({"instance_id": first, "notice_s": 0.2}))
    inside(site, "-c", IN_THE_NET, "end", second)
    wait_for(lambda: control(site, "GET", "/lab/hosts") == [], 20, "the end of both hosts")
    assert not {first, second} & {h.name for h in site.hosts()}
    left = control(site, "GET", "/lab/leftovers")
    assert sorted(left) == ["VPCs", "instance profiles", "roles", "subnets"]


def test_a_second_daemon_says_what_is_wrong(site):
    wait_for(lambda: answers(site), 30, "the daemon")
    done = subprocess.run(
        [*site.box.enter_prefix(), sys.executable, "-m", "lab.aws", "--prefix", site.prefix],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1 and "10.78.0.1:5000" in done.stderr and done.stderr.count("\n") == 1
