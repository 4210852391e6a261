"""What the aws stand-in refuses, plans, hides and keeps; over gRPC, against lab.aws."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import grpc
import pytest
from pulumi import _types
from pulumi.runtime.proto import provider_pb2 as pb
from pulumi.runtime.proto import status_pb2

from lab.aws import clock, iam_late
from lab.aws.cloud import Cloud
from lab.aws.testing import Clients
from lab.aws_plugin.harness import Engine, config
from lab.aws_plugin.resources import RESOURCES
from lab.aws_plugin.schema import args_class, registry
from lab.aws_plugin.state import same
from lab.provider.changes import changes, replaces
from lab.provider.fence import in_lab
from lab.provider.harness import Held, Refused, urn_of
from lab.provider.schema import elements, is_policy
from lab.provider.wire import SECRET, SIG, UNKNOWN, is_secret, plain, rewrap, secret
from lab.system import wait_for
from tests.lab_cloud import TRUSTS_EC2

VPC, SUBNET, TEMPLATE = "aws:ec2/vpc:Vpc", "aws:ec2/subnet:Subnet", "aws:ec2/launchTemplate:LaunchTemplate"
INSTANCE, PARAMETER, GROUP = (
    "aws:ec2/instance:Instance",
    "aws:ssm/parameter:Parameter",
    "aws:ec2/placementGroup:PlacementGroup",
)
ROLE = "aws:iam/role:Role"


@dataclass
class Boot:
    """What the lab's hosts do at boot: come up, fail, or hang until `go` is set."""

    error: str = ""
    go: threading.Event = field(default_factory=threading.Event)

    def __call__(self, view: Any) -> None:
        if self.error:
            raise RuntimeError(self.error)
        if not self.go.wait(20):
            raise RuntimeError("the test never let the host boot")


@dataclass
class Lab:
    engine: Engine
    cloud: Cloud
    boot: Boot
    aws: Clients
    image: str

    @property
    def ec2(self) -> Any:
        return self.aws("ec2")


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    boot = Boot()
    boot.go.set()
    cloud = Cloud(seed=1, on_launch=boot, on_terminate=lambda view: None)
    # Nothing of the environment may be used: neither credentials, nor a proxy, nor another endpoint.
    engine = Engine(
        config(cloud.url, defaultTags={"tags": {"team": "hpc"}}),
        HTTP_PROXY="http://127.0.0.1:9",
        AWS_PROFILE="nobody",
        AWS_ENDPOINT_URL="http://127.0.0.1:9",
    )
    try:
        yield Lab(engine, cloud, boot, Clients(cloud.url), cloud.register_image("/images/one"))
    finally:
        engine.close()
        cloud.close()


@pytest.fixture(scope="module")
def bare() -> Iterator[Engine]:
    """A plugin that nobody has configured."""
    engine = Engine()
    yield engine
    engine.close()


def failures(call: Any, *args: Any) -> dict[str, str]:
    with pytest.raises(Refused) as caught:
        call(*args)
    return caught.value.failures


# ---- the fence
def test_it_says_that_it_is_a_stand_in(bare: Engine) -> None:
    from google.protobuf import empty_pb2

    assert bare.stub.GetPluginInfo(empty_pb2.Empty()).version == "7.51.1+ironburst.lab.stand.in"


@pytest.mark.parametrize(
    "url",
    [
        "https://ec2.us-east-1.amazonaws.com",
        "http://10.79.0.1:5000",
        "http://localhost:5000",
        "http://example.org",
        "http://10.78.0.1.example.org",
        "http://10.78.0.1@203.0.113.1",
        "ftp://127.0.0.1",
        "10.78.0.1:5000",
        "",
    ],
)
def test_an_endpoint_outside_the_lab_is_refused(url: str, bare: Engine) -> None:
    assert not in_lab(url)
    assert "outside the lab" in failures(bare.check_config, config(url))["endpoints[0].ec2"]
    with pytest.raises(grpc.RpcError, match="outside the lab"):
        bare.configure(config(url))


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:5000", "http://10.78.0.1:5000", "https://[::1]:1", "http://10.78.255.9"]
)
def test_the_labs_own_addresses_pass(url: str, bare: Engine) -> None:
    assert bare.check_config(config(url)) is None, "refused: it would raise"


def test_without_endpoints_one_sentence_says_what_to_set(bare: Engine) -> None:
    reasons = failures(bare.check_config, {"region": "us-east-1"})
    assert list(reasons) == ["endpoints"]
    assert "aws:endpoints is not set" in reasons["endpoints"] and "http://10.78.0.1:5000" in reasons["endpoints"]
    with pytest.raises(grpc.RpcError, match="aws:endpoints is not set"):
        bare.configure({"region": "us-east-1"})


def test_settings_that_it_does_not_know_or_implement_are_refused(bare: Engine) -> None:
    url = "http://127.0.0.1:1"
    reasons = failures(bare.check_config, config(url, profile="prod", regoin="x", endpoints=[{"ec2": url, "ec3": url}]))
    assert set(reasons) == {"profile", "regoin", "endpoints[0].ec3"}
    assert "not implemented" in reasons["profile"] and "unknown" in reasons["regoin"]
    assert "region" in failures(bare.check_config, config(url, region=""))


def test_a_service_without_endpoint_is_refused_when_used(lab: Lab) -> None:
    engine = Engine(config(lab.cloud.url, endpoints=[{"ec2": lab.cloud.url}]))
    try:
        with pytest.raises(grpc.RpcError, match="no entry 'sqs'"):
            engine.create("aws:sqs/queue:Queue", "q", {})
    finally:
        engine.close()


# ---- what Check refuses
def test_a_misspelt_nested_key_is_refused_with_its_path(lab: Lab) -> None:
    nics = [{"interfaceTyp": "efa", "deviceIndex": 0}, {"interfaceType": "efa-only", "network_card_index": 1}]
    reasons = failures(
        lab.engine.preview, TEMPLATE, "t", {"networkInterfaces": nics, "metadataOptions": {"http_tokenz": "required"}}
    )
    assert set(reasons) == {
        "networkInterfaces[0].interfaceTyp",
        "networkInterfaces[1].network_card_index",
        "metadataOptions.http_tokenz",
    }
    assert all("unknown" in reason for reason in reasons.values())


def test_a_known_input_that_is_not_implemented_is_refused_too(lab: Lab) -> None:
    reasons = failures(
        lab.engine.preview,
        TEMPLATE,
        "t",
        {"networkInterfaces": [{"ipv6AddressCount": 1}], "hibernationOptions": {"configured": True}},
    )
    assert set(reasons) == {"networkInterfaces[0].ipv6AddressCount", "hibernationOptions"}
    assert all("not implemented" in reason for reason in reasons.values())


def test_required_inputs_and_objects(lab: Lab) -> None:
    assert "required" in failures(lab.engine.preview, SUBNET, "s", {"cidrBlock": "10.90.0.0/24"})["vpcId"]
    assert (
        "must be an object"
        in failures(lab.engine.preview, INSTANCE, "i", {"ami": "a", "launchTemplate": "lt-1"})["launchTemplate"]
    )
    assert set(failures(lab.engine.preview, INSTANCE, "i", {})) == {"ami", "instanceType"}
    beside = {"networkInterfaces": [{"deviceIndex": 0}], "vpcSecurityGroupIds": ["sg-1"]}
    assert set(failures(lab.engine.preview, TEMPLATE, "t", beside)) == {"vpcSecurityGroupIds"}


@pytest.mark.parametrize(
    ("token", "said"),
    [
        ("aws:s3/bucket:Bucket", "not implemented"),
        ("aws:ec2/vcp:Vcp", "no resource of pulumi-aws"),
        ("aws:ec2/capacityBlockReservation:CapacityBlockReservation", "buys capacity"),
    ],
)
def test_a_kind_that_it_lacks_is_refused_in_the_preview(token: str, said: str, lab: Lab) -> None:
    with pytest.raises(grpc.RpcError, match=said):
        lab.engine.preview(token, "x", {})


def test_what_would_restart_a_node_is_refused_at_preview(lab: Lab) -> None:
    node = Held(urn_of(INSTANCE, "n"), "i-1", {"ami": "ami-1", "instanceType": "p5.48xlarge"}, {})
    assert (
        "under its jobs"
        in failures(lab.engine.diff, node, {"ami": "ami-1", "instanceType": "p4d.24xlarge"})["instanceType"]
    )


@pytest.mark.parametrize("token", RESOURCES)
def test_every_implemented_input_is_one_of_the_sdk(token: str) -> None:
    """Also watches that the SDK's private tables are as the stand-in needs them."""

    def walk(cls: type, tree: dict, path: str) -> None:
        types = _types.input_type_types(cls)
        assert set(tree) <= set(types), path
        for key, below in tree.items():
            inner = elements(types[key])
            assert bool(below) == bool(inner and not is_policy(types[key])), f"{path}.{key}"
            if below:
                walk(inner[0], below, f"{path}.{key}")

    spec = RESOURCES[token]
    assert len(registry()) > 1000 and token in registry()
    walk(args_class(token), spec.tree, token)
    rules = {r.split("?")[0].split(".")[0] for r in spec.replacing} - {"region"}
    assert rules <= set(spec.tree)


# ---- preview
def test_a_preview_with_unknowns_makes_no_call(lab: Lab) -> None:
    before = len(lab.cloud.calls)
    out = lab.engine.preview(
        TEMPLATE,
        "t",
        {
            "instanceType": "p5.48xlarge",
            "networkInterfaces": [{"subnetId": UNKNOWN, "securityGroups": [UNKNOWN], "deviceIndex": 0}],
            "tags": UNKNOWN,
        },
    )
    assert out["networkInterfaces"][0]["subnetId"] == UNKNOWN and out["tagsAll"] == UNKNOWN
    assert "latestVersion" not in out and "arn" not in out  # missing: unknown to the program
    assert lab.engine.preview(PARAMETER, "p", {"type": "String", "value": UNKNOWN})["value"] == secret(UNKNOWN)
    assert lab.engine.preview(SUBNET, "s", {"vpcId": UNKNOWN, "cidrBlock": "10.90.1.0/24"})["vpcId"] == UNKNOWN
    assert len(lab.cloud.calls) == before


def test_an_update_preview_keeps_what_stays(lab: Lab) -> None:
    held = lab.engine.create(PARAMETER, "p", {"type": "String", "value": "one"})
    before = len(lab.cloud.calls)
    planned = lab.engine.update(held, {"type": "String", "value": "two"}, preview=True).outputs
    assert (planned["arn"], planned["version"], plain(planned["value"])) == (held.outputs["arn"], UNKNOWN, "two")
    planned = lab.engine.update(held, {"type": "String", "value": "one", "tags": {"k": "v"}}, preview=True).outputs
    assert planned["version"] == held.outputs["version"]  # tags make no new version
    assert len(lab.cloud.calls) == before
    lab.engine.delete(held)


def test_an_unknown_for_a_replacing_input_plans_a_replacement(lab: Lab) -> None:
    held = Held(
        urn_of(SUBNET, "s"), "subnet-1", {"vpcId": "vpc-1", "cidrBlock": "10.90.1.0/24", "tagsAll": {"team": "hpc"}}, {}
    )
    assert lab.engine.diff(held, {"vpcId": UNKNOWN, "cidrBlock": "10.90.1.0/24"}).replaces == ["vpcId"]


def test_names_are_made_once(lab: Lab) -> None:
    urn, seed = urn_of(GROUP, "gpus"), bytes(range(32))
    planned = lab.engine.check(urn, {"strategy": "cluster"}, seed=seed)
    held = lab.engine.create(GROUP, "gpus", {"strategy": "cluster"}, seed=seed)
    assert held.inputs["name"] == planned["name"] == held.id
    assert held.id.startswith("gpus-") and len(held.id) == len("gpus-") + 7
    again = lab.engine.diff(held, {"strategy": "cluster"})  # another seed, and the old name stays
    assert again.changes == again.DIFF_NONE
    replaced = lab.engine.check(urn, {"strategy": "spread"})  # a replacement: no olds
    assert replaced["name"] != held.id
    assert not lab.engine.diff(held, {"strategy": "spread"}).deleteBeforeReplace
    named = lab.engine.create(GROUP, "named", {"strategy": "cluster", "name": "fixed"})
    # two can't have one name
    assert lab.engine.diff(named, {"strategy": "spread", "name": "fixed"}).deleteBeforeReplace
    for each in (held, named):
        lab.engine.delete(each)


def test_detailed_differences_name_the_leaf(lab: Lab) -> None:
    held = lab.engine.create(
        TEMPLATE, "t", {"networkInterfaces": [{"deviceIndex": 0, "interfaceType": "efa"}], "tags": {"a.b": "1"}}
    )
    news = {"networkInterfaces": [{"deviceIndex": 0, "interfaceType": "efa-only"}], "tags": {}, "name": "other"}
    detail = {path: each.kind for path, each in lab.engine.diff(held, news).detailedDiff.items()}
    kinds = pb.PropertyDiff
    assert detail["networkInterfaces[0].interfaceType"] == kinds.UPDATE
    assert detail['tags["a.b"]'] == kinds.DELETE or detail["tags"] == kinds.ADD
    assert detail["name"] == kinds.UPDATE_REPLACE
    lab.engine.delete(held)


# ---- secrets
def test_secrets_stay_secret(lab: Lab) -> None:
    # always a secret, asked or not
    held = lab.engine.create(PARAMETER, "hush", {"type": "SecureString", "value": "s3cret"})
    for props in (held.inputs, held.outputs):
        assert props["value"] == {SIG: SECRET, "value": "s3cret"}
    fresh = lab.engine.read(held)
    assert is_secret(fresh.inputs["value"]) and is_secret(fresh.outputs["value"])
    held = lab.engine.update(held, {"type": "SecureString", "value": secret("other"), "description": secret("hidden")})
    assert plain(held.outputs["value"]) == "other" and is_secret(held.outputs["description"])
    assert is_secret(lab.engine.read(held).inputs["description"])
    assert "s3cret" not in json.dumps({k: v for k, v in held.outputs.items() if k != "value"})
    lab.engine.delete(held)


def test_a_secret_inside_a_list_or_a_map_stays_secret(lab: Lab) -> None:
    held = lab.engine.create(VPC, "v", {"cidrBlock": "10.95.0.0/16", "tags": secret({"a": "b"})})
    assert is_secret(held.outputs["tags"]) and is_secret(lab.engine.read(held).inputs["tags"])
    assert lab.ec2.describe_vpcs(VpcIds=[held.id])["Vpcs"][0]["Tags"]
    lab.engine.delete(held)
    assert rewrap([1, 2], [1, secret(2)]) == secret([1, 2])
    assert rewrap({"a": {"b": 1}, "c": 2}, {"a": {"b": secret(1)}}) == {"a": {"b": secret(1)}, "c": 2}


# ---- default tags, drift, getting
def test_default_tags(lab: Lab) -> None:
    held = lab.engine.create(VPC, "v", {"cidrBlock": "10.95.0.0/16", "tags": {"own": "1"}})
    assert held.outputs["tagsAll"] == {"team": "hpc", "own": "1"} and held.outputs["tags"] == {"own": "1"}
    tags = {t["Key"]: t["Value"] for t in lab.ec2.describe_vpcs(VpcIds=[held.id])["Vpcs"][0]["Tags"]}
    assert tags == {"team": "hpc", "own": "1"}
    lab.engine.delete(held)


def test_drift_shows_in_the_inputs(lab: Lab) -> None:
    news = {"cidrBlock": "10.95.0.0/16", "enableDnsHostnames": True, "tags": {"own": "1"}}
    held = lab.engine.create(VPC, "v", news)
    lab.ec2.modify_vpc_attribute(VpcId=held.id, EnableDnsHostnames={"Value": False})
    lab.ec2.create_tags(Resources=[held.id], Tags=[{"Key": "stray", "Value": "x"}])
    fresh = lab.engine.read(held)
    assert fresh.inputs["enableDnsHostnames"] is False and fresh.inputs["tags"] == {"own": "1", "stray": "x"}
    moved = lab.engine.diff(fresh, news)
    assert set(moved.diffs) == {"enableDnsHostnames", "tags", "tagsAll"} and not moved.replaces
    healed = lab.engine.update(fresh, news)
    assert lab.engine.read(healed).inputs == held.inputs
    lab.ec2.delete_vpc(VpcId=held.id)
    assert lab.engine.read(healed) is None


def test_get_by_id(lab: Lab) -> None:
    held = lab.engine.create(VPC, "v", {"cidrBlock": "10.95.0.0/16"})
    existing = lab.engine.get(VPC, "existing", held.id)
    assert (existing.inputs["cidrBlock"], existing.outputs["arn"]) == ("10.95.0.0/16", held.outputs["arn"])
    lab.engine.delete(held)
    assert lab.engine.get(VPC, "existing", held.id) is None


def test_region_is_an_input_and_a_change_of_it_replaces(lab: Lab) -> None:
    held = lab.engine.create(VPC, "west", {"cidrBlock": "10.95.0.0/16", "region": "us-west-2"})
    assert held.outputs["region"] == "us-west-2" and ":us-west-2:" in held.outputs["arn"]
    assert held.id not in [v["VpcId"] for v in lab.ec2.describe_vpcs()["Vpcs"]]
    assert lab.engine.diff(held, {"cidrBlock": "10.95.0.0/16"}).replaces == ["region"]
    lab.engine.delete(held)


def test_a_policy_may_be_an_object(lab: Lab) -> None:
    policy = {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "ec2.amazonaws.com"}}],
    }
    held = lab.engine.create(ROLE, "r", {"assumeRolePolicy": policy})
    assert json.loads(held.outputs["assumeRolePolicy"]) == policy
    reasons = failures(lab.engine.preview, ROLE, "r", {"assumeRolePolicy": {**policy, "Statements": []}})
    assert set(reasons) == {"assumeRolePolicy.Statements"}
    lab.engine.delete(held)


# ---- failures and waits
def test_a_refusal_of_aws_is_one_sentence_with_its_code(lab: Lab) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        lab.engine.create(SUBNET, "s", {"vpcId": "vpc-0123456789abcdef0", "cidrBlock": "10.90.1.0/24"})
    said = caught.value.details()
    assert said.startswith(
        "aws:ec2/subnet:Subnet 's': CreateSubnet was refused by the lab's AWS: InvalidVpcID.NotFound:"
    )
    assert "\n" not in said


def test_a_half_made_resource_keeps_its_id_and_the_next_update_goes_on(lab: Lab) -> None:
    fault = lab.cloud.fault("ModifyVpcAttribute", "UnauthorizedOperation", status=403)
    news = {"cidrBlock": "10.95.0.0/16", "enableDnsHostnames": True}
    with pytest.raises(grpc.RpcError) as caught:
        lab.engine.create(VPC, "v", news)
    assert fault.hits == 1
    raw = dict(caught.value.trailing_metadata())["grpc-status-details-bin"]
    detail = pb.ErrorResourceInitFailed()
    assert status_pb2.Status.FromString(raw).details[0].Unpack(detail) and detail.id.startswith("vpc-")
    assert "UnauthorizedOperation" in detail.reasons[0]
    inputs = lab.engine.check(urn_of(VPC, "v"), news)
    held = lab.engine.update(Held(urn_of(VPC, "v"), detail.id, inputs, inputs), news)
    assert held.outputs["enableDnsHostnames"] is True
    assert (
        lab.ec2.describe_vpc_attribute(VpcId=held.id, Attribute="enableDnsHostnames")["EnableDnsHostnames"]["Value"]
        is True
    )
    lab.engine.delete(held)


def test_creating_an_instance_waits_until_it_runs(lab: Lab) -> None:
    lab.boot.go.clear()
    with ThreadPoolExecutor(1) as pool:
        made = pool.submit(lab.engine.create, INSTANCE, "slow", {"ami": lab.image, "instanceType": "t3.micro"})
        try:
            assert not made.done()
        finally:
            lab.boot.go.set()
        held = made.result(timeout=30)
    assert held.outputs["instanceState"] == "running"
    lab.engine.delete(held)
    states = [
        i["State"]["Name"]
        for r in lab.ec2.describe_instances(InstanceIds=[held.id])["Reservations"]
        for i in r["Instances"]
    ]
    assert states == ["terminated"] and lab.engine.read(held) is None


def test_an_instance_waits_until_ec2_knows_its_new_profile(lab: Lab) -> None:
    iam = lab.aws("iam")
    iam.create_role(RoleName="late", AssumeRolePolicyDocument=TRUSTS_EC2)
    iam_late.late(3600.0)
    try:
        iam.create_instance_profile(InstanceProfileName="late")
        iam.add_role_to_instance_profile(InstanceProfileName="late", RoleName="late")
        asked = {"ami": lab.image, "instanceType": "t3.micro", "iamInstanceProfile": "late"}

        def tries() -> int:
            return len([action for action, _ in lab.cloud.calls if action == "RunInstances"])

        before = tries()
        with ThreadPoolExecutor(1) as pool:
            made = pool.submit(lab.engine.create, INSTANCE, "late", asked)
            wait_for(lambda: tries() > before + 1, 30, "another try")
            assert not made.done()
            lab.cloud.pass_by(3600.0)
            lab.engine.delete(made.result(timeout=30))
    finally:
        iam_late.late()
        clock.reset()


def test_an_instance_that_dies_at_boot_says_why(lab: Lab) -> None:
    lab.boot.error = "no such kernel"
    try:
        with pytest.raises(grpc.RpcError, match="no such kernel"):
            lab.engine.create(INSTANCE, "dead", {"ami": lab.image, "instanceType": "t3.micro"})
    finally:
        lab.boot.error = ""


def test_cancel_ends_a_wait_and_keeps_the_instance(lab: Lab) -> None:
    from google.protobuf import empty_pb2

    engine = Engine(config(lab.cloud.url))
    lab.boot.go.clear()
    try:
        engine.stub.Cancel(empty_pb2.Empty())
        with pytest.raises(grpc.RpcError, match="cancelled while waiting") as caught:
            engine.create(INSTANCE, "slow", {"ami": lab.image, "instanceType": "t3.micro"})
        assert "i-" in caught.value.details()
    finally:
        lab.boot.go.set()
        engine.close()


# ---- functions
def test_functions(lab: Lab) -> None:
    call = lab.engine.invoke
    assert call("aws:index/getCallerIdentity:getCallerIdentity", {})["accountId"] == "123456789012"
    assert {"us-east-1a", "us-east-1b"} <= set(
        call("aws:index/getAvailabilityZones:getAvailabilityZones", {"state": "available"})["names"]
    )
    assert call("aws:index/getRegion:getRegion", {})["region"] == "us-east-1"
    assert call("aws:index/getPartition:getPartition", {})["partition"] == "aws"
    lab.aws("ssm").put_parameter(Name="/img", Type="String", Value="ami-1")
    parameter = call("aws:ssm/getParameter:getParameter", {"name": "/img"})
    assert parameter["value"] == secret("ami-1") and parameter["version"] == 1
    name = lab.ec2.describe_images(ImageIds=[lab.image])["Images"][0]["Name"]
    assert (
        call("aws:ec2/getAmi:getAmi", {"mostRecent": True, "filters": [{"name": "name", "values": [name]}]})["id"]
        == lab.image
    )
    with pytest.raises(grpc.RpcError, match="no image matches"):
        call("aws:ec2/getAmi:getAmi", {"filters": [{"name": "name", "values": ["nothing"]}]})
    statements = [
        {
            "actions": ["ec2:*"],
            "resources": ["*"],
            "conditions": [{"test": "StringEquals", "variable": "aws:x", "values": ["1"]}],
        }
    ]
    policy = json.loads(call("aws:iam/getPolicyDocument:getPolicyDocument", {"statements": statements})["json"])
    assert policy["Statement"] == [
        {"Effect": "Allow", "Action": "ec2:*", "Resource": "*", "Condition": {"StringEquals": {"aws:x": "1"}}}
    ]


def test_a_bucket_and_its_objects(lab: Lab) -> None:
    s3 = lab.aws("s3")
    s3.create_bucket(Bucket="far", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    for key in ("imagenet/a", "imagenet/b", "imagenet-21k/a"):
        s3.put_object(Bucket="far", Key=key, Body=b"x")
    assert lab.engine.invoke("aws:s3/getBucket:getBucket", {"bucket": "far"})["bucketRegion"] == "eu-west-1"
    asked = {"bucket": "far", "prefix": "imagenet/", "region": "eu-west-1"}
    objects = "aws:s3/getObjects:getObjects"
    assert lab.engine.invoke(objects, asked)["keys"] == ["imagenet/a", "imagenet/b"]
    assert lab.engine.invoke(objects, asked | {"maxKeys": 1})["keys"] == ["imagenet/a"]
    assert lab.engine.invoke(objects, asked | {"prefix": "none/"})["keys"] == []
    with pytest.raises(grpc.RpcError, match="404"):
        lab.engine.invoke("aws:s3/getBucket:getBucket", {"bucket": "none-at-all"})


def test_functions_refuse_what_they_do_not_know(lab: Lab) -> None:
    assert set(failures(lab.engine.invoke, "aws:index/getRegion:getRegion", {"regoin": "x"})) == {"regoin"}
    with pytest.raises(grpc.RpcError, match="not implemented"):
        lab.engine.invoke("aws:ec2/getVpc:getVpc", {})
    with pytest.raises(grpc.RpcError, match="actionz"):
        lab.engine.invoke("aws:iam/getPolicyDocument:getPolicyDocument", {"statements": [{"actionz": ["x"]}]})


# ---- pure parts
@pytest.mark.parametrize(
    ("asked", "seen", "alike"),
    [
        (True, "true", True),
        ("true", True, True),
        ("false", True, False),
        ("20000", "20000.0", True),
        (1, 2, False),
        ("a", "b", False),
        ('{"a": 1, "b": [2]}', '{"b":[2],"a":1}', True),
        ('{"a": 1}', '{"a": 2}', False),
        (["a", "b"], ["b", "a"], True),
        (["a", "a"], ["a", "b"], False),
        ({"a": 1}, {"a": 1, "b": 2}, True),
        ({"a": 1}, {}, False),
        ([], None, True),
        (0, None, False),
        ("", None, False),
        ([{"a": "1"}], [{"a": 1, "z": 0}], True),
    ],
)
def test_same(asked: Any, seen: Any, alike: bool) -> None:
    assert same(asked, seen) is alike


def test_changes_and_replacements() -> None:
    assert changes({"a": [1, {"b": 2}], "c": 1}, {"a": [1, {"b": 3}], "d": {}}) == {
        "a[1].b": "update",
        "c": "delete",
        "d": "add",
    }
    rules = frozenset({"launchTemplate", "root.encrypted"})
    assert replaces("launchTemplate.version", rules) and replaces("root.encrypted", rules)
    assert not replaces("root.volumeSize", rules) and not replaces("launchTemplateX", rules)
