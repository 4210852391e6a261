"""The join program of rented nodes against a metadata service and a Secrets Manager of its own."""

import base64
import http.server
import json
import stat
import threading
from pathlib import Path

import pytest
import yaml
from programs import PLAYBOOKS, load

PROGRAM = Path(__file__).resolve().parents[2] / "playbooks/roles/cloud_node/files/ironburst-join.py"
KEY = "k" * 40
USER_DATA = {
    "ironburst": 1,
    "cluster": "lab",
    "nodes": ["p5-1", "p5-2"],
    "conf_server": "10.78.0.10",
    "munge_key": "aws-secretsmanager:ironburst/lab/munge-key",
    "region": "us-east-1",
}


class Cloud:
    """IMDSv2 and Secrets Manager on one port of the loopback."""

    def __init__(self):
        self.user_data, self.index, self.secret = json.dumps(USER_DATA), "1", KEY
        self.asked_without_token, self.refusals = 0, 0
        self.instance = {
            "instance-id": "i-0abc",
            "placement/availability-zone": "us-east-1a",
            "local-ipv4": "10.90.1.4",
        }
        cloud = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self, text, status=200):
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            def do_PUT(self):
                self.answer(
                    "a-token" if self.path == "/latest/api/token" else "",
                    200 if self.path == "/latest/api/token" else 404,
                )

            def do_GET(self):
                if self.headers.get("X-aws-ec2-metadata-token") != "a-token":
                    cloud.asked_without_token += 1
                    return self.answer("", 401)
                paths = {"/latest/user-data": cloud.user_data, "/latest/meta-data/ami-launch-index": cloud.index}
                paths |= {f"/latest/meta-data/{path}": text for path, text in cloud.instance.items()}
                text = paths.get(self.path)
                return self.answer(text or "", 404 if text is None else 200)

            def do_POST(self):
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if cloud.refusals:
                    cloud.refusals -= 1
                    return self.answer(json.dumps({"__type": "AccessDeniedException", "message": "not yet"}), 400)
                if asked["SecretId"] != "ironburst/lab/munge-key" or cloud.secret is None:
                    return self.answer(
                        json.dumps({"__type": "ResourceNotFoundException", "message": "no such secret"}), 400
                    )
                binary = isinstance(cloud.secret, bytes)
                held = base64.b64encode(cloud.secret).decode() if binary else cloud.secret
                kind = "SecretBinary" if binary else "SecretString"
                return self.answer(json.dumps({"Name": asked["SecretId"], kind: held}))

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def cloud(monkeypatch):
    cloud = Cloud()
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", cloud.url)
    monkeypatch.setenv("AWS_ENDPOINT_URL", cloud.url)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "lab")
    yield cloud
    cloud.server.shutdown()
    cloud.server.server_close()


@pytest.fixture
def join(cloud, monkeypatch, tmp_path):
    monkeypatch.setenv("IRONBURST_JOIN_ROOT", str(tmp_path))
    monkeypatch.setenv("IRONBURST_JOIN_DEADLINE", "2")
    return load(PROGRAM.relative_to(PLAYBOOKS))


def test_a_node_learns_its_name_and_gets_the_key(cloud, join, tmp_path, capsys):
    assert join.main() == 0
    key = tmp_path / "etc/munge/munge.key"
    assert key.read_text() == KEY and stat.S_IMODE(key.stat().st_mode) == 0o400
    assert (
        tmp_path / "etc/ironburst/node.env"
    ).read_text() == "IRONBURST_NODE=p5-2\nIRONBURST_CONF_SERVER=10.78.0.10\n"
    assert cloud.asked_without_token == 0
    assert KEY not in "".join(capsys.readouterr())


def test_the_host_has_the_nodes_name_which_leads_to_its_address_and_knows_its_head(cloud, join, tmp_path):
    """/etc/hosts as Debian's cloud images have it: torchrun compares what its own name leads to."""
    (tmp_path / "etc").mkdir()
    theirs = "127.0.1.1 ip-10-90-1-4.ec2.internal ip-10-90-1-4\n127.0.0.1 localhost\n"
    (tmp_path / "etc/hosts").write_text(theirs)
    cloud.user_data = json.dumps(USER_DATA | {"hosts": {"login01": "10.78.0.13", "head": "10.78.0.10"}})
    assert join.main() == 0
    ours = "10.90.1.4 p5-2\n10.78.0.10 head\n10.78.0.13 login01\n"
    expected = f"{join.BEGIN}\n{ours}{join.END}\n{theirs}"
    assert (tmp_path / "etc/hosts").read_text() == expected
    assert (tmp_path / "etc/hostname").read_text() == "p5-2\n"
    assert "preserve_hostname: true" in (tmp_path / "etc/cloud/cloud.cfg.d/90-ironburst-names.cfg").read_text()
    # the next boot of the same disk is somebody else at another address
    cloud.index, cloud.instance["local-ipv4"] = "0", "10.90.1.9"
    assert join.main() == 0
    assert (tmp_path / "etc/hosts").read_text() == expected.replace("10.90.1.4 p5-2", "10.90.1.9 p5-1")


@pytest.mark.parametrize("hosts", [["head"], {"head": "10.78.0.10\n6.6.6.6 github.com"}, {"a b": "10.78.0.10"}])
def test_names_that_would_write_more_than_a_line_are_refused(cloud, join, tmp_path, capsys, hosts):
    cloud.user_data = json.dumps(USER_DATA | {"hosts": hosts})
    assert join.main() == 1
    assert "as hosts, which are no names with an address each" in capsys.readouterr().err
    assert not (tmp_path / "etc/hosts").exists()


def test_a_key_that_munge_made_itself_is_no_text(cloud, join, tmp_path):
    """mungekey and Debian's package make random bytes; Secrets Manager holds them as SecretBinary."""
    cloud.secret = bytes(range(128, 256)) + b"\n"
    assert join.main() == 0
    assert (tmp_path / "etc/munge/munge.key").read_bytes() == cloud.secret


def test_joining_again_replaces_what_is_there(cloud, join, tmp_path):
    assert join.main() == 0
    cloud.secret = "n" * 40
    assert join.main() == 0
    assert (tmp_path / "etc/munge/munge.key").read_text() == "n" * 40


def test_a_key_that_is_refused_at_first_is_asked_for_again(cloud, join, tmp_path, capsys, monkeypatch):
    """A role that has just been attached may be unknown for some seconds."""
    monkeypatch.setattr(join, "DEADLINE_S", 60.0)
    cloud.refusals = 1
    assert join.main() == 0
    assert (tmp_path / "etc/munge/munge.key").read_text() == KEY
    assert "does not resolve yet: ClientError: An error occurred (AccessDeniedException)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"index": "2"}, "no usable nodes for launch index 2"),
        ({"user_data": json.dumps(USER_DATA | {"conf_server": "a b"})}, "as conf_server, which is no host name"),
        ({"user_data": json.dumps(USER_DATA | {"munge_key": None})}, "has None as munge_key, which is no text"),
        ({"user_data": json.dumps(USER_DATA | {"region": 7})}, "has 7 as region"),
        (
            {"user_data": json.dumps(USER_DATA | {"scheduler": "nomad"})},
            "the scheduler 'nomad', and this image knows slurm, kubernetes, slurm-bridge",
        ),
        ({"user_data": json.dumps(USER_DATA | {"scheduler": ["slurm"]})}, "the scheduler ['slurm'], and this image"),
        ({"user_data": "#!/bin/sh"}, "the user data is not JSON"),
        ({"user_data": "{}"}, "has no `ironburst: 1`"),
        ({"user_data": json.dumps(USER_DATA | {"ironburst": 2})}, "has no `ironburst: 1`"),
        ({"user_data": json.dumps(USER_DATA | {"nodes": ["p5-1", "x\nEVIL=1"]})}, "which is no host name"),
        (
            {"user_data": json.dumps(USER_DATA | {"munge_key": "env:HOME"})},
            "can only resolve aws-secretsmanager references",
        ),
        ({"user_data": None}, "answers 404"),
        ({"secret": None}, "does not resolve: ResourceNotFoundException"),
        ({"secret": "short"}, "has 5 bytes; munge wants 32 or more"),
    ],
)
def test_what_can_not_join_says_why_and_touches_nothing(cloud, join, tmp_path, capsys, change, sentence):
    for name, value in change.items():
        setattr(cloud, name, value)
    assert join.main() == 1
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "etc").exists()


def declared(root):
    return json.loads((root / "run/ironburst/dead-man.json").read_text())


def test_what_the_launch_declares_reaches_the_dead_mans_switch(cloud, join, tmp_path):
    cloud.user_data = json.dumps(USER_DATA | {"dead_man_s": 900, "hard_limit_s": 7200})
    assert join.main() == 0
    expected = {"node": "p5-2", "scheduler": "slurm", "dead_man_s": 900, "hard_limit_s": 7200}
    assert declared(tmp_path) == expected


def test_a_launch_of_a_controller_that_does_not_beat_yet_has_no_switch(cloud, join, tmp_path):
    assert join.main() == 0
    assert declared(tmp_path)["dead_man_s"] is None


@pytest.mark.parametrize("user_data", [None, "#!/bin/sh", "[]", "{}"])
def test_somebody_elses_instance_is_never_ended(cloud, join, tmp_path, user_data):
    """One that bakes an image, or that a person launched to look at one."""
    cloud.user_data = user_data
    assert join.main() == 1
    assert declared(tmp_path) == {"dead_man_s": None}


def test_a_node_of_ours_that_can_not_join_may_be_ended(cloud, join, tmp_path):
    cloud.user_data, cloud.secret = json.dumps(USER_DATA | {"dead_man_s": 900, "hard_limit_s": 7200}), None
    assert join.main() == 1
    assert declared(tmp_path)["dead_man_s"] == 900


def test_no_metadata_service_is_given_up_at_the_deadline(cloud, join, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(join.cloud, "SERVICE", "http://127.0.0.1:9")
    assert join.main() == 1
    assert "did not answer in 2 s" in capsys.readouterr().err


# ---- a node of Kubernetes
TOKEN = "abcdef.0123456789abcdef"
CA = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
OF_KUBERNETES = {
    "ironburst": 1,
    "scheduler": "kubernetes",
    "cluster": "lab",
    "nodes": ["p5-1", "p5-2"],
    "region": "us-east-1",
    "api_server": "https://10.78.0.5:6443",
    "ca": CA,
    "join_token": "aws-secretsmanager:ironburst/lab/munge-key",
    "labels": {"ironburst.io/site": "cloud-us-east-1a", "node.kubernetes.io/instance-type": "p5.48xlarge"},
}


@pytest.fixture
def kubernetes(cloud, tmp_path):
    (tmp_path / "usr/local/sbin").mkdir(parents=True)
    (tmp_path / "usr/local/sbin/ironburst-kubelet").touch()
    cloud.user_data, cloud.secret = json.dumps(OF_KUBERNETES), TOKEN + "\n"
    return cloud


def test_a_node_of_kubernetes_learns_its_cluster_and_gets_the_token(kubernetes, join, tmp_path, capsys):
    assert join.main() == 0
    bootstrap = tmp_path / "etc/kubernetes/bootstrap-kubelet.conf"
    config = yaml.safe_load(bootstrap.read_text())
    assert config["users"][0]["user"] == {"token": TOKEN} and stat.S_IMODE(bootstrap.stat().st_mode) == 0o600
    cluster = {"server": "https://10.78.0.5:6443", "certificate-authority": "/etc/ironburst/cluster-ca.crt"}
    assert config["clusters"][0]["cluster"] == cluster
    assert (tmp_path / "etc/ironburst/cluster-ca.crt").read_text() == CA
    assert json.loads((tmp_path / "etc/ironburst/cluster.json").read_text()) == {
        "node": "p5-2",
        "api_server": "https://10.78.0.5:6443",
    }
    assert (tmp_path / "etc/ironburst/node.env").read_text() == (
        "IRONBURST_NODE=p5-2\nIRONBURST_NODE_LABELS="
        "ironburst.io/site=cloud-us-east-1a,node.kubernetes.io/instance-type=p5.48xlarge\n"
    )
    assert declared(tmp_path)["scheduler"] == "kubernetes"
    assert not (tmp_path / "etc/munge").exists() and TOKEN not in "".join(capsys.readouterr())
    holders = [path for path in tmp_path.rglob("*") if path.is_file() and TOKEN in path.read_text()]
    assert holders == [bootstrap]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"api_server": "http://10.78.0.5:6443"}, "as api_server, which is no https URL of a server"),
        ({"api_server": "https://10.78.0.5:6443/x y"}, "as api_server, which is no https URL of a server"),
        ({"ca": ""}, "has '' as ca"),
        ({"ca": "MIIB"}, "has no certificate as ca"),
        ({"labels": None}, "has None among its labels"),
        ({"labels": {"a": "b,c=d"}}, "has 'a=b,c=d' among its labels, which is no label of a node"),
        ({"labels": {"a": "b\nEVIL=1"}}, "among its labels, which is no label of a node"),
        ({"join_token": "file:/etc/token"}, "can only resolve aws-secretsmanager references"),
        ({"join_token": None}, "has None as join_token"),
    ],
)
def test_what_a_launch_for_kubernetes_lacks_is_said(kubernetes, join, tmp_path, capsys, change, sentence):
    kubernetes.user_data = json.dumps(OF_KUBERNETES | change)
    assert join.main() == 1
    assert sentence in capsys.readouterr().err and not (tmp_path / "etc").exists()


@pytest.mark.parametrize("held", ["", KEY, "{}", "abcdef.0123456789abcde"])
def test_a_secret_that_is_no_token_is_not_shown(kubernetes, join, tmp_path, capsys, held):
    kubernetes.secret = held
    assert join.main() == 1
    error = capsys.readouterr().err
    assert "holds no bootstrap token" in error and (not held or held not in error)
    assert not (tmp_path / "etc").exists()


def test_an_image_of_slurm_does_not_join_kubernetes(kubernetes, join, tmp_path, capsys):
    (tmp_path / "usr/local/sbin/ironburst-kubelet").unlink()
    assert join.main() == 1
    assert "this image was baked for Slurm: bake the image anew" in capsys.readouterr().err


# ---- a node of both, by slurm-bridge
@pytest.fixture
def bridged(kubernetes, tmp_path, monkeypatch, join):
    """Its two secrets are one here, as the stand-in of Secrets Manager has one."""
    installed = tmp_path / "etc/systemd/system/slurmd.service.d/ironburst.conf"
    installed.parent.mkdir(parents=True)
    installed.touch()
    of_slurm = {"conf_server": "10.78.0.10", "munge_key": "aws-secretsmanager:ironburst/lab/munge"}
    kubernetes.user_data = json.dumps(OF_KUBERNETES | of_slurm | {"scheduler": "slurm-bridge"})
    held = {"munge key": KEY.encode(), "bootstrap token": TOKEN.encode()}
    monkeypatch.setattr(join, "secret", lambda what, *_: held[what])
    return kubernetes


def test_a_node_of_both_learns_head_and_cluster(bridged, join, tmp_path):
    assert join.main() == 0
    env = (tmp_path / "etc/ironburst/node.env").read_text().splitlines()
    assert env[:2] == ["IRONBURST_NODE=p5-2", "IRONBURST_CONF_SERVER=10.78.0.10"]
    assert env[2:] == [
        "IRONBURST_NODE_LABELS=ironburst.io/site=cloud-us-east-1a,node.kubernetes.io/instance-type=p5.48xlarge"
    ]
    assert (tmp_path / "etc/munge/munge.key").read_text() == KEY
    assert TOKEN in (tmp_path / "etc/kubernetes/bootstrap-kubelet.conf").read_text()
    assert declared(tmp_path)["scheduler"] == "slurm-bridge"


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        (
            "etc/systemd/system/slurmd.service.d/ironburst.conf",
            "this image was baked for Kubernetes: bake the image anew",
        ),
        ("usr/local/sbin/ironburst-kubelet", "this image was baked for Slurm: bake the image anew"),
    ],
)
def test_an_image_of_one_side_alone_joins_neither(bridged, join, tmp_path, capsys, missing, words):
    (tmp_path / missing).unlink()
    assert join.main() == 1
    assert words in capsys.readouterr().err
    assert not (tmp_path / "etc/munge").exists() and not (tmp_path / "etc/kubernetes").exists()


@pytest.fixture
def eks(kubernetes, tmp_path):
    (tmp_path / "usr/local/sbin/ironburst-eks").touch()
    said = {key: value for key, value in OF_KUBERNETES.items() if key != "join_token"}
    kubernetes.user_data, kubernetes.secret = json.dumps(said | {"eks": "ironburst-lab"}), None
    return kubernetes


def test_a_node_of_eks_learns_its_instance_and_signs_in_by_its_role(eks, join, tmp_path):
    assert join.main() == 0
    config = yaml.safe_load((tmp_path / "etc/kubernetes/kubelet.conf").read_text())
    assert config["users"][0]["user"]["exec"]["command"] == "/usr/local/sbin/ironburst-eks"
    assert not (tmp_path / "etc/kubernetes/bootstrap-kubelet.conf").exists()
    known = {"node": "i-0abc", "api_server": "https://10.78.0.5:6443", "eks": "ironburst-lab", "region": "us-east-1"}
    assert json.loads((tmp_path / "etc/ironburst/cluster.json").read_text()) == known
    labels = ["ironburst.io/node=p5-2", "ironburst.io/site=cloud-us-east-1a"]
    labels.append("node.kubernetes.io/instance-type=p5.48xlarge")
    assert (tmp_path / "etc/ironburst/node.env").read_text().splitlines() == [
        "IRONBURST_NODE=i-0abc",
        f"IRONBURST_NODE_LABELS={','.join(labels)}",
        "IRONBURST_PROVIDER_ID=aws:///us-east-1a/i-0abc",
        "IRONBURST_NODE_IP=10.90.1.4",
    ]
    assert declared(tmp_path)["node"] == "p5-2"


def test_an_image_of_another_cluster_does_not_join_eks(eks, join, tmp_path, capsys):
    (tmp_path / "usr/local/sbin/ironburst-eks").unlink()
    assert join.main() == 1
    assert "this image was baked for another cluster: bake the image anew" in capsys.readouterr().err
    assert not (tmp_path / "etc").exists()


def test_an_instance_that_does_not_learn_its_id_is_no_node(eks, join, tmp_path, capsys):
    del eks.instance["instance-id"]
    assert join.main() == 1
    assert "did not say which instance this is" in capsys.readouterr().err and not (tmp_path / "etc").exists()


# ---- data sets
DATA = {"imagenet": {"kind": "s3", "source": "training/imagenet", "path": "/data/imagenet"}}


def told_data(root):
    return json.loads((root / "etc/ironburst/data.json").read_text())


def test_what_the_launch_says_of_data_sets_reaches_their_program(cloud, join, tmp_path):
    (tmp_path / "usr/local/sbin").mkdir(parents=True)
    (tmp_path / "usr/local/sbin/ironburst-data").touch()
    cloud.user_data = json.dumps(USER_DATA | {"boot_s": 900, "data": DATA})
    assert join.main() == 0
    assert told_data(tmp_path) == {"region": "us-east-1", "seconds": 780, "sets": DATA}


def test_a_launch_without_data_sets_has_none(cloud, join, tmp_path):
    assert join.main() == 0
    assert told_data(tmp_path)["sets"] == {}


def test_an_image_that_can_not_bring_its_data_does_not_join(cloud, join, tmp_path, capsys):
    """Its pool had none when it was baked: a job would look for its files in vain."""
    cloud.user_data = json.dumps(USER_DATA | {"boot_s": 900, "data": DATA})
    assert join.main() == 1
    assert "names data sets (imagenet), and this image can't bring any: bake the image anew" in capsys.readouterr().err
    assert not (tmp_path / "etc").exists()


# ---- where metrics are pushed to


AGENT = {"scrape_configs": [{"job_name": "dcgm"}], "remote_write": [{"metadata_config": {"send": False}}]}


def test_the_baked_agent_learns_its_receiver(cloud, join, tmp_path):
    join.write(tmp_path / "etc/ironburst/agent.json", json.dumps(AGENT).encode(), 0o644)
    assert join.main() == 0
    assert not (tmp_path / "run/ironburst/agent.json").exists(), "a launch without a receiver starts no agent"
    cloud.user_data = json.dumps(USER_DATA | {"receiver": "10.78.0.10:8644"})
    assert join.main() == 0
    told = json.loads((tmp_path / "run/ironburst/agent.json").read_text())
    assert told["remote_write"] == [{"url": "http://10.78.0.10:8644/api/v1/write", "metadata_config": {"send": False}}]
    assert told["scrape_configs"] == AGENT["scrape_configs"]


@pytest.mark.parametrize(
    ("agent", "receiver"),
    [(None, "10.78.0.10:8644"), ("{}", "10.78.0.10:8644"), (json.dumps(AGENT), "x/y"), (json.dumps(AGENT), 7)],
)
def test_a_node_without_metrics_is_a_node(cloud, join, tmp_path, capsys, agent, receiver):
    """Such as one of an image that was baked before."""
    if agent:
        join.write(tmp_path / "etc/ironburst/agent.json", agent.encode(), 0o644)
    cloud.user_data = json.dumps(USER_DATA | {"receiver": receiver})
    assert join.main() == 0
    assert "its metrics are not pushed to" in capsys.readouterr().err
    assert not (tmp_path / "run/ironburst/agent.json").exists()
