"""The unmodified program on the lab's cloud and BMCs, through the pulumi CLI, on loopback: declare, again,
destroy.
"""

import base64
import json
import os

import boto3
import pytest
import yaml
from botocore import UNSIGNED
from botocore.exceptions import ClientError
from cryptography.hazmat.primitives.asymmetric import rsa

from ironburst import document
from lab.aws import leftovers
from lab.aws.cloud import Cloud
from lab.aws.testing import client, refused
from lab.bmc import Bmc
from lab.hosts.bmcs import machine_of
from lab.kubernetes.control_plane import ControlPlane
from tests import pki, planes
from tests.components.projects import ROOT, done, project
from tests.contract.emulator import MemoryPower
from tests.lab_cloud import allow_spot
from tests.unit.kubernetes_stack import on_kubernetes

IMAGE = "ami-0ba5e0000000000a1"


@pytest.fixture
def cloud():
    cloud = Cloud()
    cloud.register_image("base", IMAGE, root_gb=30)
    fields = (b"ssh-ed25519", bytes(32))
    encoded = base64.b64encode(b"".join(len(field).to_bytes(4) + field for field in fields))
    public = b"ssh-ed25519 " + encoded + b" lab"
    client(cloud.url).import_key_pair(KeyName="lab", PublicKeyMaterial=public)  # ssh.key_name of the stack
    yield cloud
    cloud.close()


@pytest.fixture
def bmcs():
    """node name -> its BMC's URL"""
    names = ("head", "dgx01", "dgx02")
    running = {name: Bmc(machine_of(name), MemoryPower(), "secret-of-the-test", port=0) for name in names}
    for bmc in running.values():
        bmc.__enter__()
    yield {name: bmc.url for name, bmc in running.items()}
    for bmc in running.values():
        bmc.__exit__()


@pytest.fixture
def engine(tmp_path, cloud, bmcs):
    """`engine("up", ...)` -> its finished process: the lab's stack, moved to loopback.
    `engine.declare(change)` changes the declaration.
    """
    run = project(tmp_path, "lab", TEST_BMC_PASSWORD="secret-of-the-test")
    stack = yaml.safe_load((ROOT / "stacks" / "Pulumi.lab.yaml").read_text())
    settings = stack["config"]
    settings["aws:endpoints"] = [dict.fromkeys(settings["aws:endpoints"][0], cloud.url)]
    hall = settings["ironburst:cluster"]["halls"][0]
    hall["bmc_cidr"] = "127.0.0.0/24"
    for nodes, names in zip(hall["nodes"], (["head"], ["dgx01", "dgx02"]), strict=True):
        nodes["bmc"] |= {"addresses": [bmcs[name] for name in names], "password": "env:TEST_BMC_PASSWORD"}

    def declare(change):
        change(settings["ironburst:cluster"])
        (tmp_path / "project/stacks/Pulumi.lab.yaml").write_text(yaml.safe_dump(stack))

    declare(lambda cluster: None)
    run.declare, run.settings = declare, settings
    return run


def root_disks(cloud, instance):
    """device -> size in GiB of an instance's volumes."""
    attached = [{"Name": "attachment.instance-id", "Values": [instance]}]
    volumes = client(cloud.url).describe_volumes(Filters=attached)["Volumes"]
    return {volume["Attachments"][0]["Device"]: volume["Size"] for volume in volumes}


def launched(cloud, template):
    """An instance of a pool's template, as the controller launches it."""
    answer = client(cloud.url).run_instances(
        ImageId=IMAGE, LaunchTemplate={"LaunchTemplateId": template}, MinCount=1, MaxCount=1
    )
    return answer["Instances"][0]["InstanceId"]


def failed(process):
    assert process.returncode == 1, process.stdout + process.stderr
    return process.stdout + process.stderr


def test_what_the_account_lacks_is_said_before_anything_is_made(engine, cloud):
    done(engine("stack", "init"))
    before = leftovers.leftovers(cloud.url)
    said = failed(engine("up", "--yes", "--skip-preview"))
    assert "aws iam create-service-linked-role --aws-service-name spot.amazonaws.com" in said
    assert leftovers.leftovers(cloud.url) == before
    allow_spot(client(cloud.url, "iam"))
    cloud.fault("DescribeInstanceTypeOfferings", "UnauthorizedOperation", status=403, times=-1)
    said = done(engine("preview"))
    assert "AWS could not be asked for the zones of instance types, so that isn't checked" in said


def bought(cloud):
    """The id of a capacity block for one node that has begun."""
    asked = {"InstanceType": "p5.48xlarge", "AvailabilityZone": "us-east-1a", "InstanceCount": 1}
    made = cloud.capacity.reserve(
        cloud.backend, asked, ReservationType="capacity-block", InstanceMatchCriteria="targeted"
    )
    return made["CapacityReservation"]["CapacityReservationId"]


def test_a_capacity_blocks_nodes_are_not_replaced_by_the_next_up(engine, cloud):
    block = {"id": bought(cloud), "ends": "2099-01-01T11:30:00Z"}

    def fixed_in_a_block(cluster):
        cluster["cloud"]["groups"][0] |= {"placement_group": False, "capacity_block": block}
        del cluster["cloud"]["pools"], cluster["budget"]

    engine.declare(fixed_in_a_block)
    done(engine("stack", "init"))
    done(engine("up", "--yes", "--skip-preview"))
    (fixed,) = cloud.instances()
    assert fixed.market == "capacity-block"
    done(engine("preview", "--expect-no-changes"))


@pytest.mark.slow
@planes.BUILT
def test_a_stack_of_kubernetes_is_declared_in_cloud_and_cluster(engine, cloud):
    plane = ControlPlane(f"t-declare-{os.getpid()}")
    kubeconfig = plane.up(tied=True)

    def of_the_lab(cluster):
        on_kubernetes(cluster)
        access = {"api_server": plane.layout().server, "admin_kubeconfig": f"file:{kubeconfig}"}
        cluster["scheduler"] |= access | {"ca": plane.layout().authority.read_text()}

    namespaces = "/api/v1/namespaces?labelSelector=pod-security.kubernetes.io/enforce=restricted"
    try:
        engine.declare(of_the_lab)
        allow_spot(client(cloud.url, "iam"))
        done(engine("stack", "init"))
        done(engine("up", "--yes", "--skip-preview"))
        (room,) = plane.api().call("GET", namespaces)["items"]
        assert room["metadata"]["name"] == "ironburst-system"
        read = json.loads(done(engine("stack", "output", "--json")))["cluster"]
        assert read["scheduler"]["kind"] == "kubernetes" and "admin_kubeconfig" not in read["scheduler"]
        done(engine("preview", "--expect-no-changes"))
        done(engine("destroy", "--yes", "--skip-preview"))
        assert plane.api().call("GET", namespaces)["items"] == []
    finally:
        plane.down()


def test_each_type_of_a_pool_is_launched_from_a_template_of_its_own(engine, cloud):
    types = ["g6e.12xlarge", "g6e.24xlarge"]

    def of_types(cluster):
        pool = cluster["cloud"]["pools"][0]
        del pool["instance_type"], cluster["cloud"]["groups"]
        pool |= {"instance_types": types, "markets": ["on-demand"], "zones": ["us-east-1a"]}

    engine.declare(of_types)
    done(engine("stack", "init"))
    assert "g6e.12xlarge or g6e.24xlarge: at worst 45.20 USD an hour" in done(engine("up", "--yes", "--skip-preview"))
    pool = document.parse(json.loads(done(engine("stack", "output", "--json")))["cluster"]).pool("p5")
    first, second = (pool.place("us-east-1a", name).place.launch_template_id for name in types)
    cloud.capacity["g6e.12xlarge", "us-east-1a", "on-demand"] = 0
    with pytest.raises(ClientError, match="InsufficientInstanceCapacity"):
        launched(cloud, first)
    launched(cloud, second)
    (instance,) = client(cloud.url).describe_instances()["Reservations"][0]["Instances"]
    assert instance["InstanceType"] == "g6e.24xlarge"
    assert len(instance["NetworkInterfaces"]) == 3  # its cards: an interface, and EFA on both


def test_a_head_in_the_hall_signs_in_with_its_certificate(engine, cloud):
    authority = pki.issue("authority of hall-a", ca=True, days=365)

    def without_nodes(cluster):
        del cluster["cloud"]["pools"], cluster["cloud"]["groups"], cluster["budget"]
        cluster["cloud"]["controller"] = {"ca": authority.pem, "common_name": "head.hall-a"}

    engine.declare(without_nodes)
    done(engine("stack", "init"))
    before = leftovers.leftovers(cloud.url)
    done(engine("up", "--yes", "--skip-preview"))
    arns = json.loads(done(engine("stack", "output", "--json")))["controller_sign_in"]
    asked = {name.replace("_arn", "Arn").replace("trust_anchor", "trustAnchor"): arn for name, arn in arns.items()}
    got = pki.session(cloud.url, pki.issue("head.hall-a", authority), **asked)
    session = boto3.Session(got["accessKeyId"], got["secretAccessKey"], got["sessionToken"], region_name="us-east-1")
    ec2 = client(cloud.url, session=session)
    assert ec2.describe_instances()["Reservations"] == []  # the controller's right, and not the others
    assert refused(ec2.describe_vpcs)[0] == "UnauthorizedOperation"
    done(engine("preview", "--expect-no-changes"))
    done(engine("destroy", "--yes", "--skip-preview"))
    assert leftovers.leftovers(cloud.url) == before


def test_ci_previews_and_is_refused_a_change(engine, cloud):
    issuer, subject = "token.actions.githubusercontent.com", "repo:org/site:pull_request"
    key = rsa.generate_private_key(65537, 2048)

    def with_ci(cluster):
        del cluster["cloud"]["pools"], cluster["cloud"]["groups"], cluster["budget"]
        cluster["cloud"]["ci"] = {"issuer": issuer, "preview": [subject]}

    engine.declare(with_ci)
    done(engine("stack", "init"))
    assert "aws iam create-open-id-connect-provider --url https://token.actions" in done(engine("preview"))
    iam = client(cloud.url, "iam")
    iam.create_open_id_connect_provider(Url=f"https://{issuer}", ClientIDList=["sts.amazonaws.com"])
    pki.issues(issuer, key)
    done(engine("up", "--yes", "--skip-preview"))
    role = json.loads(done(engine("stack", "output", "--json")))["preview_role_arn"]
    token = pki.token(key, iss=f"https://{issuer}", aud="sts.amazonaws.com", sub=subject)
    sts = client(cloud.url, "sts", signature_version=UNSIGNED)
    got = sts.assume_role_with_web_identity(RoleArn=role, RoleSessionName="ci", WebIdentityToken=token)["Credentials"]
    engine.settings["aws:accessKey"], engine.settings["aws:secretKey"] = got["AccessKeyId"], got["SecretAccessKey"]
    engine.settings["aws:token"] = got["SessionToken"]
    engine.declare(lambda cluster: cluster["cloud"]["network"].update(hall_link=None))
    planned = done(engine("preview"))
    assert "isn't checked" not in planned
    said = failed(engine("up", "--yes", "--skip-preview"))
    assert "assumed-role/" in said and "is not authorized to perform" in said
    assert client(cloud.url).describe_vpn_connections()["VpnConnections"][0]["State"] == "available"


def test_the_lab_is_declared_and_given_back(engine, cloud, tmp_path):
    allow_spot(client(cloud.url, "iam"))
    done(engine("stack", "init"))
    before = leftovers.leftovers(cloud.url)
    planned = done(engine("preview"))
    assert "at worst 165.12 USD an hour" in planned
    assert leftovers.leftovers(cloud.url) == before  # a preview makes nothing

    done(engine("up", "--yes", "--skip-preview"))
    exported = json.loads(done(engine("stack", "output", "--json")))
    parsed = document.parse(exported["cluster"])
    assert [host.name for host in parsed.hosts] == ["head", "dgx01", "dgx02", "fixed-1"]
    assert parsed.host("fixed-1").address.startswith("10.90.")
    assert {zone.zone for zone in parsed.pool("p5").zones} == {"us-east-1a", "us-east-1b"}
    shown = json.loads(done(engine("stack", "output", "--json", "--show-secrets")))["hall_tunnels"]
    assert [set(tunnel) for tunnel in shown] == [
        {"hall", "outside_address", "inside_address", "hall_inside_address", "asn", "preshared_key"}
    ] * 2
    assert all(all(tunnel.values()) for tunnel in shown) and exported["hall_tunnels"] == "[secret]"
    state = "".join(path.read_text() for path in (tmp_path / "state").rglob("*") if path.is_file())
    assert "fixed-1" in state and "secret-of-the-test" not in state
    assert not any(tunnel["preshared_key"] in state for tunnel in shown)

    assert root_disks(cloud, parsed.host("fixed-1").instance_id) == {"/dev/sda1": 200}
    rented = launched(cloud, parsed.pool("p5").zones[0].place.launch_template_id)
    assert root_disks(cloud, rented) == {"/dev/sda1": 30}, "its image's, and no second one"
    (view,) = [each for each in cloud.instances() if each.instance_id == rented]
    assert view.placement_group.startswith("burst-p5-us-east-1a-placement")
    client(cloud.url).terminate_instances(InstanceIds=[rented])

    done(engine("preview", "--expect-no-changes"))
    done(engine("destroy", "--yes", "--skip-preview"))
    assert leftovers.leftovers(cloud.url) == before
