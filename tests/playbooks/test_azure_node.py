"""A rented node of Azure: who it is, its secret, and the notice that only it gets. Its metadata service and Key Vault
are the lab's (lab/azure). Its end is tests/adapters/test_azure_reaper.py's.

Shapes: Azure's pages "Azure Instance Metadata Service", "Scheduled Events for Linux VMs", "User Data for Azure Virtual
Machine"; `az keyvault secret set --encoding base64` tags what it stores with file-encoding (azure-cli issue 11084).
"""

import base64
import json
import signal
import time
from email.utils import formatdate

import pytest
from programs import PLAYBOOKS, load, notice_program

from ironburst.adapters.azure.api import Api
from ironburst.adapters.azure.cloud import Azure
from ironburst.controller.notices import TAKEN_BACK
from ironburst.ports import LaunchRequest
from lab.azure.key_vault import KeyVault
from lab.azure.metadata import Metadata
from lab.azure.server import Cloud
from lab.azure.world import Size
from lab.system import wait_for
from tests.contract.cloud_benches import AnyToken

FILES = PLAYBOOKS / "roles/cloud_node/files"
KEY, VAULT = "k" * 40, "https://vault.azure.net"
USER_DATA = {
    "ironburst": 1,
    "cluster": "lab",
    "nodes": ["nd-1", "nd-2"],
    "conf_server": "10.78.0.10",
    "munge_key": "azure-keyvault:ib-lab/munge-key",
    "region": "eastus",
    "dead_man_s": 1800,
    "hard_limit_s": 7200,
}
SIZE = "Standard_ND96isr_H100_v5"


class Node:
    """The subscription, with two machines of one launch. `me` is the one whose programs run."""

    def __init__(self, monkeypatch, root):
        self.root, self.world = root, Cloud(seed=3)
        self.world.sizes[SIZE] = Size()
        within = f"/subscriptions/{self.world.subscription}/resourceGroups/ib-lab/providers"
        image = f"{within}/Microsoft.Compute/galleries/ironburst/images/nd/versions/1.0.0"
        raw = {"id": image, "name": "1.0.0", "location": "eastus", "properties": {"provisioningState": "Succeeded"}}
        self.world.images[image.lower()] = raw
        self.place = {
            "vm_size": SIZE,
            "subnet_id": f"{within}/Microsoft.Network/virtualNetworks/nodes/subnets/nd",
            "os_disk_type": "Premium_LRS",
            "os_disk_gb": 200,
            "ssh_public_key": "ssh-ed25519 AAAAC3Nz ironburst",
            "identity_id": f"{within}/Microsoft.ManagedIdentity/userAssignedIdentities/nodes",
        }
        api = Api(self.world.subscription, credential=AnyToken(), endpoint=self.world.url)
        self.azure = Azure(api, "eastus", wait=lambda _: None)
        request = LaunchRequest(
            token="ib-t1",
            launch="l-1",
            cluster="lab",
            pool="nd",
            zone="eastus-1",
            market="on-demand",
            count=2,
            place=self.place,
            image_id=image,
            user_data=json.dumps(USER_DATA),
        )
        (answer,) = self.azure.launch_all([request])
        assert isinstance(answer, list), answer
        self.me = self.world.named("-0$")[0]
        self.metadata = Metadata(self.world, who=lambda _: self.me)
        self.vaults = KeyVault(lambda token: self.metadata.tokens.get(token, ("", ""))[0] == VAULT)
        self.vaults.held["ib-lab/munge-key"] = f"{KEY}\n"
        self.environment = {
            "AZURE_POD_IDENTITY_AUTHORITY_HOST": self.metadata.url,
            "AZURE_KEYVAULT_URL": self.vaults.url,
            "IRONBURST_JOIN_ROOT": str(root),
            "IRONBURST_JOIN_DEADLINE": "2",
            "IRONBURST_NOTICE_ROOT": str(root),
        }
        for name, value in self.environment.items():
            monkeypatch.setenv(name, value)

    def close(self):
        for server in (self.metadata, self.vaults):
            server.shutdown()
            server.server_close()
        self.world.close()


@pytest.fixture
def node(monkeypatch, tmp_path):
    node = Node(monkeypatch, tmp_path)
    yield node
    node.close()
    assert node.world.wrong == []


@pytest.fixture
def join(node):
    return load("roles/cloud_node/files/ironburst-join.py", "azure")


# ---- who it is


def test_a_node_learns_its_name_from_its_machines_and_gets_the_key_with_its_identity(node, join, tmp_path):
    assert join.main() == 0
    assert (tmp_path / "etc/munge/munge.key").read_text() == KEY
    assert (tmp_path / "etc/ironburst/node.env").read_text().startswith("IRONBURST_NODE=nd-1\n")
    node.me = node.world.named("-1$")[0]
    assert join.main() == 0
    assert (tmp_path / "etc/ironburst/node.env").read_text().startswith("IRONBURST_NODE=nd-2\n")
    assert {identity for _, identity in node.metadata.tokens.values()} == {node.place["identity_id"].lower()}


def test_an_instance_is_known_as_the_controller_knows_it(node, join):
    node.me.raw["location"] = "eastus"
    shown = {each.id: each for each in node.azure.instances("lab")}
    id, zone, address = join.cloud.instance()
    assert (shown[id].address, shown[id].zone) == (address, zone) == (address, "eastus-1")


def test_a_key_that_is_no_text_is_taken_as_it_is(node, join, tmp_path):
    key = bytes(range(128, 256)) + b"\n"
    node.vaults.held["ib-lab/munge-key"] = base64.b64encode(key).decode(), {"file-encoding": "base64"}
    assert join.main() == 0
    assert (tmp_path / "etc/munge/munge.key").read_bytes() == key


def test_rights_that_are_not_there_yet_are_waited_for(node, join, capsys, monkeypatch):
    monkeypatch.setattr(join, "DEADLINE_S", 60.0)
    node.vaults.refusals = 1
    assert join.main() == 0
    assert "does not resolve yet: CloudError: HTTP 403 for GET" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("user_data", "sentence"),
    [
        (USER_DATA | {"munge_key": "aws-secretsmanager:x"}, "can only resolve azure-keyvault references"),
        (USER_DATA | {"munge_key": "azure-keyvault:ib-lab/other"}, "does not resolve: CloudError: HTTP 404"),
        (USER_DATA | {"nodes": []}, "has no usable nodes for launch index"),
    ],
)
def test_what_can_not_join_says_why(node, join, tmp_path, capsys, user_data, sentence):
    node.me.user_data = base64.b64encode(json.dumps(user_data).encode()).decode()
    assert join.main() == 1
    assert sentence in capsys.readouterr().err and not (tmp_path / "etc").exists()


def test_a_machine_without_an_identity_says_so(node, join, capsys):
    del node.me.raw["identity"]
    assert join.main() == 1
    assert "does not resolve: HTTPError: HTTP Error 400" in capsys.readouterr().err


@pytest.mark.parametrize("user_data", ["", "I2Nsb3VkLWNvbmZpZwo="])
def test_somebody_elses_machine_is_never_ended(node, join, tmp_path, user_data):
    node.me.user_data = user_data
    assert join.main() == 1
    assert json.loads((tmp_path / "run/ironburst/dead-man.json").read_text()) == {"dead_man_s": None}


def test_what_answers_otherwise_is_not_believed(node, join, monkeypatch, capsys):
    """Another cloud's service at the same address has no such path; a portal's page is no JSON."""
    monkeypatch.setattr(node.metadata, "answer", lambda *_: (200, {"compute": "<html>"}))
    assert join.main() == 1
    assert "isn't Azure's metadata service" in capsys.readouterr().err


def test_no_proxy_is_asked_for_the_metadata_service(node, join, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert join.cloud.launch()[1] == "0"


# ---- the notice


@pytest.fixture
def notice(node, tmp_path):
    """The program as its unit starts it, that has asked once, and the file with what it tells Slurm."""
    (tmp_path / "ironburst_cloud.py").write_text(  # as it is, but for its pause
        (FILES / "azure/ironburst_cloud.py").read_text().replace("LOOK_S = 1.0", "LOOK_S = 0.1")
    )
    program, calls = notice_program(tmp_path, "nd-1", tmp_path)
    looks(node, 1)
    yield program, calls
    program.kill()
    program.wait()


def looks(node, count):
    """Until the program has looked so often."""
    wait_for(lambda: node.metadata.asked_for_events >= count, 60, "the program's looks")


@pytest.mark.parametrize(
    ("kind", "in_s", "why"),
    [
        ("Preempt", 30, "preempted"),
        ("Terminate", 300, "terminated"),
        ("Redeploy", 600, "redeploy"),
        ("Reboot", 0, "reboot"),
    ],
)
def test_a_notice_reaches_slurm_with_the_machine_in_its_reason(node, notice, kind, in_s, why):
    program, calls = notice
    begins = formatdate(time.time() + in_s, usegmt=True) if in_s else ""
    node.metadata.schedule(kind, node.me, begins, "Scheduled" if in_s else "Started")
    assert program.wait(60) == 0 and f"nd-1 is taken back: {why}" in program.stdout.read()
    id = f"{node.me.group.lower()}/{node.me.name}/{node.me.properties['vmId']}"
    assert calls.read_text() == f"update nodename=nd-1 state=drain reason={TAKEN_BACK} ({why}): {id}\n"


def test_what_is_no_notice_for_this_machine_is_none(node, notice):
    """Of another machine of its scale set; some seconds of pause; a host that is repaired in a week."""
    program, calls = notice
    week = formatdate(time.time() + 7 * 86_400, usegmt=True)
    node.metadata.schedule("Preempt", node.world.named("-1$")[0])
    node.metadata.schedule("Freeze", node.me)
    node.metadata.schedule("Redeploy", node.me, week)
    looks(node, node.metadata.asked_for_events + 3)
    assert program.poll() is None and not calls.exists()
    node.metadata.schedule("Preempt", node.me)
    assert program.wait(60) == 0 and "(preempted)" in calls.read_text()


def test_a_node_that_is_only_shut_down_says_nothing(node, notice):
    program, calls = notice
    program.send_signal(signal.SIGTERM)
    assert program.wait(60) == 0 and not calls.exists()


def test_a_service_that_stutters_is_asked_again(node, notice, monkeypatch):
    program, calls = notice
    real, before = node.metadata.answer, node.metadata.asked_for_events

    def answer(vm, path, asked):
        status, said = real(vm, path, asked)
        return (429, {}) if node.metadata.asked_for_events == before + 2 else (status, said)

    monkeypatch.setattr(node.metadata, "answer", answer)
    looks(node, before + 3)
    node.metadata.schedule("Preempt", node.me)
    assert program.wait(60) == 0 and "(preempted)" in calls.read_text()
