"""The verb `image`: its options, its key, and builds that a killed one left; against the lab's cloud."""

import base64
import json
import signal
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from ironburst.cli import image as cli
from ironburst.cli import main
from ironburst.convergence.ports import HostResult, PlaybookRun
from ironburst.ports import CloudError
from lab.aws.testing import live
from tests.adapters.bakes import BASE, P5, changing, cloud, images, made_images, nothing_left, parameter, server, world

__all__ = ["cloud", "images", "server", "world"]


@pytest.fixture
def verb(world, server, tmp_path, monkeypatch):
    """Runs `ironburst image p5 ...`; the playbook is a stand-in that returns `verb.play`."""
    for name, value in {
        "AWS_ENDPOINT_URL": server.url,
        "AWS_ACCESS_KEY_ID": "lab",
        "AWS_SECRET_ACCESS_KEY": "lab",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("ironburst.baking.images.ssh_answers", lambda address: True)
    path = tmp_path / "document.json"
    path.write_text(world.document.model_dump_json())
    given = SimpleNamespace(variables=None, play=PlaybookRun("image.yml", 0, {"image-p5": HostResult(ok=3, changed=2)}))

    class Ansible:
        def __init__(self, inventory, document):
            assert document == path

        def play(self, playbook, *, variables, on_event):
            given.variables = variables
            (instance,) = live(world.ec2)
            wanted = {"InstanceId": instance["InstanceId"], "Attribute": "userData"}
            encoded = world.ec2.describe_instance_attribute(**wanted)["UserData"]["Value"]
            given.user_data = json.loads(base64.b64decode(encoded).decode().removeprefix("#cloud-config\n"))
            given.known_hosts = Path(variables["image_known_hosts"]).read_text()
            given.address = instance["PrivateIpAddress"]
            key = Path(variables["ansible_ssh_private_key_file"])
            given.key, given.key_mode = key, key.stat().st_mode & 0o777
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # ansible-runner leaves handlers of its own behind
            return given.play

    monkeypatch.setattr(cli, "Ansible", Ansible)
    defaults = {"--document": str(path), "--base-image": BASE, "--inventory": "inventory/lab"}

    def call(pool="p5", **changed):
        options = defaults | {f"--{key.replace('_', '-')}": value for key, value in changed.items()}
        return main(["image", pool, *(word for pair in options.items() for word in pair), "--json"])

    given.call = call
    return given


def test_the_command(verb, world, tmp_path, capsys):
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    before = signal.getsignal(signal.SIGINT)
    assert verb.call(ssh_key=str(key), user="rocky") == 0
    out = json.loads(capsys.readouterr().out)
    assert out["image"] == parameter(world) and out["parameter"] == "/ironburst/lab/p5/image"
    assert set(out["seconds"]) == {"instance", "playbook", "image"}
    assert verb.variables.pop("image_address").startswith("10.90.")
    assert not Path(verb.variables.pop("image_known_hosts")).exists()  # gone with the build
    assert verb.variables == {"image_pool": "p5", "image_user": "rocky", "ansible_ssh_private_key_file": str(key)}
    assert verb.user_data["ssh_authorized_keys"] == [key.with_suffix(".pub").read_text().strip()]
    assert signal.getsignal(signal.SIGINT) is before


def test_a_build_has_a_key_of_its_own_that_nobody_keeps(verb, world):
    """And its host keys are those of its console, before Ansible goes there."""
    assert verb.call() == 0
    assert verb.user_data["ssh_authorized_keys"][0].startswith("ssh-ed25519 ") and verb.key_mode == 0o600
    assert not verb.key.exists()
    address, kind, encoded = verb.known_hosts.split()
    assert (address, kind) == (verb.address, "ssh-ed25519") and len(base64.b64decode(encoded)) == 51
    assert verb.variables["image_user"] == "root"  # of a document that names no system
    assert world.ec2.describe_key_pairs()["KeyPairs"] == []


def test_a_build_that_a_killed_bake_left_is_ended_by_the_next_one(world, images, monkeypatch):
    """Killed between its stop and its image: nothing on the instance ends it."""
    launched = []

    def killed(address):
        left = live(world.ec2)[0]["InstanceId"]
        images.stop(left)
        launched.append(left)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("ironburst.baking.images._Bake.clean_up", lambda self: True)
        with pytest.raises(KeyboardInterrupt):
            world.run(killed)
    tags = [{"Key": "ironburst:cluster", "Value": "lab"}, {"Key": "ironburst:lease", "Value": "l1"}]
    rented = {"TagSpecifications": [{"ResourceType": "instance", "Tags": tags}]}
    (other,) = world.ec2.run_instances(ImageId=BASE, InstanceType=P5, MinCount=1, MaxCount=1, **rented)["Instances"]
    world.run()
    (left,) = launched
    assert left in existing(world)  # perhaps somebody's who bakes at this moment
    monkeypatch.setattr("ironburst.baking.choice.ABANDONED_S", 0.0)
    world.run()
    assert existing(world) == {other["InstanceId"]}
    assert f"{left} ended: a build of pool p5, stopped, that somebody left 0 hours ago" in world.said


def existing(world):
    """Ids of the instances that cost something."""
    found = [each for r in world.ec2.describe_instances()["Reservations"] for each in r["Instances"]]
    return {each["InstanceId"] for each in found if each["State"]["Name"] not in ("shutting-down", "terminated")}


def test_builds_that_can_not_be_looked_for_stop_no_bake(world, images, monkeypatch):
    def refuse(cluster):
        raise CloudError("DescribeInstances: no", "UnauthorizedOperation")

    monkeypatch.setattr(images, "builds", refuse)
    assert world.run().image == made_images(world)[0]["ImageId"]
    assert any("could not be looked for" in text for text in world.said)


def test_a_build_whose_owner_is_gone_ends_itself(verb):
    assert verb.call() == 0
    (command,) = verb.user_data["runcmd"]
    assert command[-2:] == ["systemctl", "poweroff"] and "--on-active=10800" in command


def test_the_command_fails_with_the_playbook_s_error(verb, world, capsys):
    verb.play = PlaybookRun(
        "image.yml", 2, {"image-p5": HostResult(failed=1, error="Install the packages: no such package")}
    )
    assert verb.call() == 3
    assert (
        capsys.readouterr().err.splitlines()[-1]
        == "image: playbooks/image.yml ended with 2: Install the packages: no such package"
    )
    assert nothing_left(world)


@pytest.mark.parametrize(
    ("pool", "changed", "said"),
    [
        ("p6", {}, "image: cluster lab has no pool 'p6'; its pools are: p5"),
        (
            "p5",
            {"base_image": "debian"},
            "image: --base-image 'debian': must be an image id, ami- and 8 or 17 hexadecimal digits",
        ),
        (
            "p5",
            {"base_image": "ami-0bbbbbbbbbbbbbbbb"},
            "image: --base-image ami-0bbbbbbbbbbbbbbbb is not in us-east-1, or not shared",
        ),
        ("p5", {"inventory": "inventory/moon"}, "image: inventory/moon is no inventory of this repository"),
        ("p5", {"ssh_key": "/nonexistent"}, "image: --ssh-key /nonexistent: there is no such file"),
        ("p5", {"document": "/nonexistent"}, "image: there is no ClusterDocument at /nonexistent"),
    ],
)
def test_bad_input_starts_nothing(verb, world, capsys, pool, changed, said):
    assert verb.call(pool, **changed) == 2
    err = capsys.readouterr().err
    assert err.startswith(said) and err.count("\n") == 1
    assert changing(world) == []
