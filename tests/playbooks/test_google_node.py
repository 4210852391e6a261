"""A rented node of Google Cloud: who it is, its secret, the notice that only it gets, and its end, disk and all, when
the controller is killed for ever. Its metadata server, Secret Manager and Compute Engine are the lab's (lab/google).
"""

import json
import signal

import pytest
from google.auth.credentials import AnonymousCredentials
from programs import PLAYBOOKS, load, notice_program

from ironburst.adapters.google.api import Api
from ironburst.adapters.google.cloud import Google
from ironburst.controller.notices import TAKEN_BACK
from ironburst.ports import LaunchRequest
from lab.google.iam import Binding
from lab.google.metadata import Metadata
from lab.google.secret_manager import SecretManager
from lab.google.server import Cloud
from lab.system import wait_for

FILES = PLAYBOOKS / "roles/cloud_node/files"
ZONE, KEY, EMAIL = "us-central1-a", "k" * 40, "ib-lab-nodes@lab-project.iam.gserviceaccount.com"
USER_DATA = {
    "ironburst": 1,
    "cluster": "lab",
    "nodes": ["a3-1", "a3-2"],
    "conf_server": "10.78.0.10",
    "munge_key": "google-secretmanager:lab-project/munge-key",
    "region": "us-central1",
    "dead_man_s": 1800,
    "hard_limit_s": 7200,
}
PLACE = {
    "machine_type": "a3-highgpu-8g",
    "network_interfaces": [{"subnetwork": "projects/lab-project/regions/us-central1/subnetworks/nodes"}],
    "boot_disk_type": "pd-balanced",
    "boot_disk_gb": 200,
    "service_account": EMAIL,
}
OURS = (
    'resource.type == "compute.googleapis.com/Instance" && '
    'resource.name.extract("/instances/{name}").startsWith("ib-lab--")'
)
READS = Binding(f"serviceAccount:{EMAIL}", frozenset({"secretmanager.versions.access"}))
ENDS = Binding(f"serviceAccount:{EMAIL}", frozenset({"compute.instances.delete"}), OURS)


class Node:
    """The project, with two machines of one launch. `me` is the one whose programs run."""

    def __init__(self, monkeypatch, root):
        self.root, self.world = root, Cloud(seed=3)
        self.world.images["ib-1"] = "ironburst-lab-a3"
        self.world.iam.bindings += [READS, ENDS]
        self.secrets = SecretManager(self.world.iam)
        self.secrets.held["projects/lab-project/secrets/munge-key"] = KEY.encode() + b"\n"
        self.launch()
        self.me = self.world.vms[min(self.world.vms, key=lambda n: self.world.vms[n].name)]
        self.metadata = Metadata(self.world, who=lambda _: self.me)
        self.environment = {
            "GCE_METADATA_HOST": self.metadata.host,
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE": self.world.url_of_api,
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER": self.secrets.url,
            "IRONBURST_JOIN_ROOT": str(root),
            "IRONBURST_JOIN_DEADLINE": "2",
            "IRONBURST_DEAD_MAN_ROOT": str(root),
            "IRONBURST_DEAD_MAN_CONSOLE": str(root / "console"),
            "IRONBURST_NOTICE_ROOT": str(root),
        }
        for name, value in self.environment.items():
            monkeypatch.setenv(name, value)

    def launch(self, token="t1", cluster="lab", user_data=USER_DATA):
        api = Api("lab-project", credentials=AnonymousCredentials(), endpoint=self.world.url_of_api)
        request = LaunchRequest(
            token=token,
            launch=f"l-{token}",
            cluster=cluster,
            pool="a3",
            zone=ZONE,
            market="on-demand",
            count=2,
            place=PLACE,
            image_id="projects/lab-project/global/images/ib-1",
            user_data=json.dumps(user_data),
        )
        Google(api, "us-central1", wait=lambda _: None).launch_all([request])

    def close(self):
        for server in (self.metadata, self.secrets):
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
    return load("roles/cloud_node/files/ironburst-join.py", "google")


# ---- who it is


def test_a_node_learns_its_name_from_its_machines_and_gets_the_key_with_its_own_credentials(node, join, tmp_path):
    assert join.main() == 0
    assert (tmp_path / "etc/munge/munge.key").read_text() == KEY
    assert (tmp_path / "etc/ironburst/node.env").read_text().startswith("IRONBURST_NODE=a3-1\n")
    address = node.me.raw["networkInterfaces"][0]["networkIP"]
    assert f"{address} a3-1\n" in (tmp_path / "etc/hosts").read_text()
    node.me = next(vm for vm in node.world.vms.values() if vm is not node.me)
    assert join.main() == 0
    assert (tmp_path / "etc/ironburst/node.env").read_text().startswith("IRONBURST_NODE=a3-2\n")


def test_an_instance_is_known_as_the_controller_knows_it(node, join):
    api = Api("lab-project", credentials=AnonymousCredentials(), endpoint=node.world.url_of_api)
    shown = {each.id: each.address for each in Google(api, "us-central1").instances("lab")}
    id, zone, address = join.cloud.instance()
    assert shown[id] == address and zone == ZONE and id.endswith("/" + node.me.raw["id"])


def test_a_key_that_is_no_text_is_taken_as_it_is(node, join, tmp_path):
    key = bytes(range(128, 256)) + b"\n"
    node.secrets.held["projects/lab-project/secrets/munge-key"] = key
    assert join.main() == 0
    assert (tmp_path / "etc/munge/munge.key").read_bytes() == key


def test_rights_that_are_not_there_yet_are_waited_for(node, join, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(join, "DEADLINE_S", 60.0)
    node.secrets.refusals = 1
    assert join.main() == 0
    assert "does not resolve yet: CloudError: HTTP 403 for GET" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("user_data", "sentence"),
    [
        (USER_DATA | {"munge_key": "aws-secretsmanager:x"}, "can only resolve google-secretmanager references"),
        (USER_DATA | {"munge_key": "google-secretmanager:lab-project/other"}, "does not resolve: CloudError: HTTP 404"),
        (USER_DATA | {"nodes": []}, "has no usable nodes for launch index"),
    ],
)
def test_what_can_not_join_says_why(node, join, tmp_path, capsys, user_data, sentence):
    next(each for each in node.me.raw["metadata"]["items"])["value"] = json.dumps(user_data)
    assert join.main() == 1
    assert sentence in capsys.readouterr().err and not (tmp_path / "etc").exists()


def test_somebody_elses_instance_is_never_ended(node, join, tmp_path):
    del node.me.raw["metadata"]
    assert join.main() == 1
    assert json.loads((tmp_path / "run/ironburst/dead-man.json").read_text()) == {"dead_man_s": None}


def test_what_answers_without_googles_header_is_not_believed(node, join, monkeypatch, capsys):
    """A proxy, or another cloud's service at the same address: EC2's is 401 or 404 for these paths."""
    monkeypatch.setattr(join.cloud, "SERVICE", node.secrets.url.rstrip("/"))
    assert join.main() == 1
    assert "the metadata service at" in capsys.readouterr().err


# ---- its end


def ended_by(node, monkeypatch, busy_until_s=0.0, beats_until_s=-1.0):
    """{machine: (seconds until it was gone or stopped, its last state)}, for as long as the hard limit and an hour,
    with a look of the real program a minute. The controller beats until `beats_until_s`.
    """
    program = load("roles/cloud_node/files/ironburst-dead-man.py", "google")
    machines = sorted(node.world.vms.values(), key=lambda vm: vm.name)
    folders = {vm.name: node.root / vm.name for vm in machines}
    ended, limits = {}, {key: USER_DATA[key] for key in ("dead_man_s", "hard_limit_s")}
    monkeypatch.setattr(program, "END_PAUSE_S", 0.0)
    monkeypatch.setattr(program, "working", lambda known: now_s < busy_until_s)

    def output(*command):
        if command[:2] == ("systemctl", "poweroff") and node.me.raw["status"] == "RUNNING":
            node.world.stops(node.me)
        beat = f" Comment=ironburst,at={int(now_s)},left=3600" if now_s <= beats_until_s else ""
        return f"NodeName=x State=IDLE+CLOUD{beat}" if command[:2] == ("scontrol", "--oneliner") else ""

    monkeypatch.setattr(program, "output", output)
    for look in range(int((USER_DATA["hard_limit_s"] + 3600) / 60)):
        now_s = look * 60.0
        for vm in machines:
            if vm.raw["status"] == "RUNNING" and vm.raw["id"] in node.world.vms:
                node.me = vm
                monkeypatch.setattr(program, "ROOT", folders[vm.name])
                program.look({"node": vm.name, **limits}, now_s)
            else:
                ended.setdefault(vm.name, (now_s, vm.raw["status"]))
        node.world.passes(60.0)
    return ended


@pytest.mark.parametrize(
    ("what", "limit_s"),
    [
        ({}, USER_DATA["dead_man_s"]),
        ({"beats_until_s": 1200.0}, 1200 + USER_DATA["dead_man_s"]),
        ({"busy_until_s": 1e9, "beats_until_s": 600.0}, 600 + USER_DATA["hard_limit_s"]),
        ({"busy_until_s": 2400.0}, 2400),
    ],
    ids=["never heard of it", "heard of it", "with a job", "with a job that ended"],
)
def test_a_controller_that_is_killed_for_ever_leaves_no_machine_and_no_disk(node, monkeypatch, what, limit_s):
    """Within the declared time, a look (60 s), and what a deletion takes (60 s)."""
    node.world.delays.delete_s = 60.0
    ended = ended_by(node, monkeypatch, **what)
    assert len(ended) == 2 and all(at_s <= limit_s + 120 for at_s, _ in ended.values()), ended
    assert node.world.vms == {} == node.world.disks


def test_a_node_without_the_right_is_off_and_its_disk_is_paid_for(node, monkeypatch):
    """What it would be with a shutdown only, and why the right is given: nobody takes the disk away."""
    node.world.iam.bindings.remove(ENDS)
    ended = ended_by(node, monkeypatch)
    assert {state for _, state in ended.values()} == {"TERMINATED"} and len(node.world.disks) == 2
    console = (node.root / "console").read_text()
    assert "the cloud doesn't end this instance: HTTP 403" in console and "compute.instances.delete" in console


def test_a_delete_that_is_lost_is_asked_again(node, monkeypatch):
    node.world.fault("instances.delete", status=503, times=2)
    ended_by(node, monkeypatch)
    assert node.world.vms == {} == node.world.disks


def test_a_node_can_not_end_another_clusters(node, join):
    """The condition is on the name's beginning; a node of its own cluster it could end."""
    node.launch("t2", cluster="lab-x")  # a name that begins as its own does
    mine, node.me = node.me, next(vm for vm in node.world.vms.values() if vm.name.startswith("ib-lab-x"))
    with pytest.raises(join.cloud.CloudError, match=r"compute\.instances\.delete"):
        join.cloud.end()
    node.me, node.world.delays.delete_s = mine, 60.0
    join.cloud.end()
    join.cloud.end()  # its end is under way


# ---- the notice


def notice(tmp_path):
    return notice_program(tmp_path, "a3-1", FILES / "google")


def waits(node):
    """Until the program has asked, and waits."""
    wait_for(lambda: node.metadata.waiting, 60, "the program's question")


@pytest.mark.parametrize("why", ["preempted", "maintenance"])
def test_a_notice_reaches_slurm_with_the_instance_in_its_reason(node, tmp_path, why):
    program, calls = notice(tmp_path)
    waits(node)
    if why == "preempted":
        node.world.preempt(node.me)
    else:
        node.me.maintenance = "TERMINATE_ON_HOST_MAINTENANCE"
    assert program.wait(20) == 0 and f"a3-1 is taken back: {why}" in program.stdout.read()
    id = f"{ZONE}/{node.me.name}/{node.me.raw['id']}"
    assert calls.read_text() == f"update nodename=a3-1 state=drain reason={TAKEN_BACK} ({why}): {id}\n"


def test_a_node_that_is_shut_down_first_asks_why(node, tmp_path, monkeypatch):
    """The soft off may come before the answer."""
    monkeypatch.setattr(node.metadata, "deaf", True)  # a request that waits gets no answer
    program, calls = notice(tmp_path)
    waits(node)
    node.world.preempt(node.me)
    program.send_signal(signal.SIGTERM)
    assert program.wait(20) == 0 and "(preempted)" in calls.read_text()


def test_a_node_that_is_only_shut_down_says_nothing(node, tmp_path):
    program, calls = notice(tmp_path)
    waits(node)
    program.send_signal(signal.SIGTERM)
    assert program.wait(20) == 0 and not calls.exists()
