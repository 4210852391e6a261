"""A rented node's end and its metadata service, on real hosts: real systemd, Slurm, nftables and Docker, the role's own
programs and units. Its times are short by the launch's own user data.
"""

import json
import os
import secrets
import sys
import time
from pathlib import Path

import jinja2
import pytest

from ironburst.adapters.slurm.scheduler import Slurm
from lab.hosts import spec
from lab.hosts.host import SSH_OPTIONS
from lab.hosts.rootfs import ssh_key
from lab.packages import repository
from lab.site import Site
from lab.system import wait_for
from tests import sites

pytestmark = [pytest.mark.lab, pytest.mark.slow]
ROLES = Path(__file__).resolve().parents[2] / "playbooks/roles"
ROLE, CLOUD_ROLE, DATA_ROLE = ROLES / "slurm_node", ROLES / "cloud_node", ROLES / "data_sets"
BAKER, FOLDER, SECRET = "i-0000000000000baca", "node-image", "ironburst/lab/munge-key"
DEAD_MAN_S = 45
CONFIG = """
ClusterName=lab
SlurmctldHost=head(10.78.0.10)
AuthType=auth/munge
SlurmUser=slurm
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmctldLogFile=/var/log/slurm/slurmctld.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
MpiDefault=none
ReturnToService=1
SlurmctldParameters=enable_configless,idle_on_node_suspend,power_save_interval=1,power_save_min_interval=0
ResumeProgram=/bin/true
SuspendProgram=/bin/true
SuspendTime=INFINITE
ResumeTimeout=600
SuspendTimeout=5
NodeName=p5-[1-5] CPUs=2 RealMemory=100 State=CLOUD
PartitionName=burst Nodes=p5-[1-5] Default=YES MaxTime=60 SuspendTime=86400
"""
GATE = """[Unit]
Description=A gate that passes where the head says so
After=ironburst-join.service
[Service]
Type=oneshot
RemainAfterExit=yes
EnvironmentFile=/etc/ironburst/node.env
ExecStart=/bin/sh -c 'test $IRONBURST_NODE != p5-3 || { echo "gate: FAILED gpus: 7 of 8"; exit 1; }'
"""
LAUNCH = """
import json, sys
from ironburst.config.aws import policies
from ironburst.config.aws.data_models import DataSet
from lab.aws.testing import Clients, network
clients = Clients("http://10.78.0.1:5000")
if sys.argv[1] == "prepare":
    where = policies.Scope("aws", "us-east-1", "123456789012")
    rights = policies.node(where, ["aws-secretsmanager:" + sys.argv[2]], [DataSet(s3="training/imagenet")])
    iam, s3 = clients("iam"), clients("s3")
    iam.create_role(RoleName="node", AssumeRolePolicyDocument=json.dumps(policies.assumed_by_ec2()))
    iam.put_role_policy(RoleName="node", PolicyName="node", PolicyDocument=json.dumps(rights))
    s3.create_bucket(Bucket="training")
    for n in range(300):
        s3.put_object(Bucket="training", Key=f"imagenet/train/{n}", Body=str(n).encode() * 1000)
    s3.put_object(Bucket="training", Key="genomes/1", Body=b"somebody else's")
    iam.create_instance_profile(InstanceProfileName="node")
    iam.add_role_to_instance_profile(InstanceProfileName="node", RoleName="node")
    clients("secretsmanager").create_secret(Name=sys.argv[2], SecretString=sys.argv[3])
    print(json.dumps(network(clients())[1]))
elif sys.argv[1] == "launch":
    more = {"InstanceInitiatedShutdownBehavior": "terminate", "IamInstanceProfile": {"Name": "node"}}
    got = clients().run_instances(ImageId=sys.argv[2], InstanceType="p5.48xlarge", MinCount=1, MaxCount=1,
                                  SubnetId=sys.argv[3], UserData=sys.argv[4], **more)
    print(json.dumps(got["Instances"][0]["InstanceId"]))
elif sys.argv[1] == "end":
    clients().terminate_instances(InstanceIds=[sys.argv[2]])
else:
    seen = clients().describe_instances(InstanceIds=[sys.argv[2]])["Reservations"][0]["Instances"][0]
    print(json.dumps([seen["State"]["Name"], seen.get("StateReason", {}).get("Code", "")]))
"""
TCP = "timeout 5 /usr/bin/bash -c 'exec 3<>/dev/tcp/{}/80 && echo reached'"
METADATA, REPOSITORY = TCP.format("169.254.169.254"), TCP.format("10.78.0.1")


class Rented:
    """A head with a slurmctld, a cloud, and an image of rented nodes."""

    def __init__(self, site):
        self.site = site
        key = ["ssh", "-i", str(ssh_key(site.box.root)), *SSH_OPTIONS]
        self.slurm = Slurm([*site.box.net_prefix(), *key, "root@10.78.0.10"])

    def inside(self, *command):
        done = self.site.run([sys.executable, *command], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if done.stdout.strip() else None

    def control(self, *command):
        return self.inside("-m", "lab.aws.client", *command)

    def head(self):
        """Set up the head's Slurm; the munge key."""
        key = secrets.token_hex(48)
        install(self.site, "head", "slurmctld", "slurm-client", "munge")
        put(self.site, "head", {"/etc/slurm/slurm.conf": CONFIG, "/etc/slurm/cgroup.conf": "CgroupPlugin=disabled\n"})
        self.site.ssh("head", f"mkdir -p /var/spool/ironburst/leases; printf {key} > /etc/munge/munge.key")
        self.site.ssh("head", "systemctl restart munge slurmctld")
        return key

    def ready(self):
        command = [sys.executable, "-m", "lab.aws.client", "GET", "/lab/health"]
        return self.site.run(command, capture_output=True).returncode == 0

    def power_up(self, node, **more):
        """Power up in Slurm; the user data to launch it with."""
        said = {"ironburst": 1, "cluster": "lab", "nodes": [node], "conf_server": "10.78.0.10", "hard_limit_s": 3600}
        self.slurm.power_up([node])
        self.until(node, "POWERING_UP")
        return json.dumps(said | more)

    def node(self, name):
        return self.slurm.observe().node(name)

    def until(self, name, *states, seconds=90):
        wait_for(lambda: self.node(name).has(*states), seconds, f"{name} being {states}", pause=0.5)

    def busy(self, name):
        return self.node(name).has("ALLOCATED") or self.node(name).has("MIXED")

    def joined(self, name):
        def registered():
            node = self.node(name)
            return node.has("IDLE") and not node.has("POWERING_UP") and not node.has("POWERED_DOWN")

        wait_for(registered, 90, f"{name} to register", pause=0.5)


class Lab(Rented):
    """In AWS."""

    image = subnet = ""

    def launch(self, node, **more):
        """Power up in Slurm, then launch: the instance's id."""
        said = {"region": "us-east-1", "munge_key": f"aws-secretsmanager:{SECRET}", "dead_man_s": DEAD_MAN_S} | more
        return self.inside("-c", LAUNCH, "launch", self.image, self.subnet, self.power_up(node, **said))

    def state(self, instance):
        return self.inside("-c", LAUNCH, "state", instance)

    def gone(self, instance, seconds=90):
        wait_for(lambda: self.state(instance)[0] == "terminated", seconds, f"the end of {instance}", pause=0.5)
        return self.state(instance)[1]


def put(site, name, files):
    for path, text in files.items():
        site.ssh(name, f"mkdir -p {Path(path).parent} && cat > {path}", stdin=text)


def install(site, name, *packages):
    put(site, name, repository.client_files("debian"))
    fetch = "import urllib.request as u; u.urlretrieve('http://10.78.0.1/lab.gpg', '/usr/share/keyrings/lab.gpg')"
    site.ssh(name, ["python3", "-c", fetch])
    command = "DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends"
    site.ssh(name, f"apt-get update -qq && {command} {' '.join(packages)}", timeout=300)


def role_files(provider="aws"):
    """As the role puts them there, for a cloud's nodes."""

    def template(role, name, **values):
        environment = jinja2.Environment(trim_blocks=True, keep_trailing_newline=True, undefined=jinja2.StrictUndefined)
        return environment.from_string((role / "templates" / name).read_text()).render(values)

    needs = ["ironburst-gate.service", "munge.service", "ironburst-metadata.service", "ironburst-join.service"]
    needs.append("ironburst-data.service")
    units = ["ironburst-join.service", "ironburst-dead-man.service", "ironburst-join-failed.service"]
    values = {"slurm_node_rented": True, "slurm_node_report_boot": True, "slurm_node_needs": needs}
    slurmd = template(ROLE, "slurmd.service.j2", **values)
    store = provider if provider != "azure" else "aws"  # a node there is told no data set yet
    return {
        "/etc/systemd/system/slurmd.service.d/ironburst.conf": slurmd,
        "/etc/systemd/system/ironburst-dead-man.timer": template(
            CLOUD_ROLE, "ironburst-dead-man.timer.j2", cloud_node_dead_man_look=1
        ),
        "/etc/systemd/system/ironburst-gate.service": GATE,
        "/etc/systemd/system/munge.service.d/ironburst.conf": (ROLE / "files/munge.conf").read_text(),
        "/etc/ironburst/metadata.nft": (CLOUD_ROLE / "files/ironburst-metadata.nft").read_text(),
        "/etc/systemd/system/nftables.service.d/ironburst.conf": (CLOUD_ROLE / "files/nftables.conf").read_text(),
        "/etc/systemd/system/ironburst-metadata.service": (CLOUD_ROLE / "files/ironburst-metadata.service").read_text(),
        "/usr/local/sbin/ironburst_cloud.py": (CLOUD_ROLE / f"files/{provider}/ironburst_cloud.py").read_text(),
        "/usr/local/sbin/ironburst-join": (CLOUD_ROLE / "files/ironburst-join.py").read_text(),
        "/usr/local/sbin/ironburst-dead-man": (CLOUD_ROLE / "files/ironburst-dead-man.py").read_text(),
        "/usr/local/sbin/ironburst_bucket.py": (DATA_ROLE / f"files/{store}/ironburst_bucket.py").read_text(),
        "/usr/local/sbin/ironburst-data": (DATA_ROLE / "files/ironburst-data.py").read_text(),
        "/etc/systemd/system/ironburst-data.service": (DATA_ROLE / "files/ironburst-data.service").read_text(),
        **{f"/etc/systemd/system/{unit}": (CLOUD_ROLE / "files" / unit).read_text() for unit in units},
    }


@pytest.fixture(scope="module")
def lab():
    sites.need_lab()
    site = Site(f"t-node-{os.getpid()}")
    site.up(start=["head"], tied=True)
    try:
        site.spawn([sys.executable, "-m", "lab.aws", "--prefix", site.prefix, "--root", str(site.box.root)], "aws")
        lab = Lab(site)
        key = lab.head()
        site.start_host(spec.cloud(BAKER, "10.90.9.1", "p5.48xlarge"))
        site.wait([BAKER])
        packages = [
            "slurmd",
            "slurm-client",
            "munge",
            "nftables",
            "python3-boto3",
            "docker.io",
            "docker-cli",
            "iptables",
        ]
        install(site, BAKER, *packages)
        site.ssh(BAKER, "systemctl disable -q --now docker docker.socket containerd; rm -f /etc/munge/munge.key")
        site.ssh(BAKER, "useradd --uid 1500 --create-home --shell /bin/bash alice")  # as a directory service knows her
        put(site, BAKER, role_files())
        site.ssh(BAKER, "chmod 755 /usr/local/sbin/ironburst-*; systemctl daemon-reload")
        units = "ironburst-metadata ironburst-join ironburst-dead-man.timer munge ironburst-data slurmd"
        site.ssh(BAKER, f"systemctl enable -q {units}")
        site.bake_image(BAKER, FOLDER)
        site.destroy_host(BAKER)
        wait_for(lab.ready, 30, "the cloud")
        lab.image = lab.control("POST", "/lab/images", json.dumps({"name": "node", "folder": FOLDER}))["image_id"]
        lab.subnet = lab.inside("-c", LAUNCH, "prepare", SECRET, key)
        yield lab
    finally:
        site.down()


@pytest.fixture(scope="module")
def rented(lab):
    """A node that has joined, is looked after by nobody, and has a job: so it stays."""
    instance = lab.launch("p5-1")
    lab.joined("p5-1")
    lab.slurm.beat({"p5-1": 3600}, 1.0)
    script = f"#!/bin/bash\n{REPOSITORY}; {METADATA}; echo ended; exec sleep 600\n"
    sbatch = "cd /shared/alice && runuser -u alice -- sbatch --time=30 --output=metadata"
    lab.site.ssh("head", sbatch, stdin=script)
    wait_for(lambda: lab.busy("p5-1"), 60, "the job to start", pause=0.5)
    return instance


def reached(lab, instance, way):
    """Whether this way of asking reaches the metadata service; it must reach another server."""
    answers = [lab.site.ssh(instance, way.format(tcp), check=False, timeout=120) for tcp in (REPOSITORY, METADATA)]
    assert "reached" in answers[0].stdout, answers[0].stderr
    return "reached" in answers[1].stdout


def test_the_metadata_service_is_for_root_alone(lab, rented):
    assert reached(lab, rented, "{}")
    assert not reached(lab, rented, "runuser -u alice -- {}")
    assert not reached(lab, rented, "runuser -u alice -- unshare --user --map-root-user {}")  # as Apptainer does
    out = lab.site.dir / "shared/alice/metadata"
    wait_for(lambda: out.exists() and "ended" in out.read_text(), 30, "the job's answer", pause=0.2)
    assert out.read_text().count("reached") == 1


def test_containers_do_not_reach_it_either(lab, rented):
    """Root of a container on the host's own network is root: who may start one is an admin of the node anyway."""
    libraries = "lib lib64 usr/lib64 usr/lib/x86_64-linux-gnu/libc.so.6 usr/lib/x86_64-linux-gnu/libtinfo.so.6*"
    programs = "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2 usr/bin/bash usr/bin/timeout"
    lab.site.ssh(rented, "mount -t tmpfs tmpfs /var/lib/docker && systemctl start docker", timeout=120)
    lab.site.ssh(rented, f"cd / && tar -c {libraries} {programs} | docker import - tiny", timeout=120)
    run = "timeout 60 docker run --rm {options} tiny /usr/bin/{{}}"
    assert not reached(lab, rented, run.format(options="--network=bridge"))
    assert not reached(lab, rented, run.format(options="--network=host --user=1500"))
    assert reached(lab, rented, run.format(options="--network=host"))


def test_it_stays_so_when_the_distributions_firewall_is_read_again(lab, rented):
    for verb in ("start", "reload", "restart", "stop"):
        lab.site.ssh(rented, f"systemctl {verb} nftables")  # Debian's own: it flushes every table
        assert reached(lab, rented, "{}") and not reached(lab, rented, "runuser -u alice -- {}"), verb
    assert lab.busy("p5-1")


def test_a_heartbeat_survives_slurmctld_and_is_no_other_one(lab, rented):
    lab.slurm.beat({"p5-1": 3600, "p5-2": 300}, 7.0)
    said = "Comment=ironburst,at=7,left="
    show = "scontrol --oneliner show node "
    assert said + "3600" in lab.site.ssh(rented, show + "p5-1").stdout  # configless: the node asks for itself
    assert said + "300" in lab.site.ssh("head", show + "p5-2").stdout
    lab.site.ssh("head", "systemctl restart slurmctld")
    wait_for(lambda: said + "3600" in lab.site.ssh("head", show + "p5-1", check=False).stdout, 30, "slurmctld")


def test_a_busy_node_stays_and_ends_when_its_job_has(lab, rented):
    known = json.loads(lab.site.ssh(rented, "cat /run/ironburst/heartbeat.json").stdout)
    assert known["said"] == "Comment=ironburst,at=7,left=3600"

    # the node's uptime is this machine's
    wait_for(lambda: time.monotonic() > known["heard_s"] + DEAD_MAN_S + 3, 120, "the dead man's time", pause=0.5)
    assert lab.state(rented)[0] == "running"
    lab.site.ssh("head", "scancel --user=alice")
    assert lab.gone(rented) == "Client.InstanceInitiatedShutdown"
    assert "ironburst: it has no jobs, and no heartbeat" in lab.node("p5-1").reason


def test_a_node_that_hears_its_controller_stays_longer_than_the_dead_mans_time(lab):
    instance = lab.launch("p5-2")
    lab.joined("p5-2")
    began, beats = time.monotonic(), 0  # the node's uptime is this machine's
    while time.monotonic() < began + 2 * DEAD_MAN_S:
        beats += 1
        lab.slurm.beat({"p5-2": 3600}, 100.0 + beats)
        assert lab.site.ssh(instance, "true", check=False).returncode == 0
    assert lab.state(instance)[0] == "running"
    assert lab.gone(instance, 120) == "Client.InstanceInitiatedShutdown"


def data(source):
    return {"boot_s": 600, "data": {"imagenet": {"kind": "s3", "source": source, "path": "/data/imagenet"}}}


def test_a_node_has_its_data_before_it_takes_jobs_and_its_users_read_it_only(lab):
    instance = lab.launch("p5-4", dead_man_s=100_000, **data("training/imagenet"))
    lab.joined("p5-4")
    read = "find /data/imagenet -type f | wc -l; cat /data/imagenet/train/299"
    seen = lab.site.ssh(instance, f"runuser -u nobody -- sh -c '{read}'").stdout.split()
    assert seen == ["300", "299" * 1000]
    assert "Read-only file system" in lab.site.ssh(instance, "touch /data/imagenet/mine", check=False).stderr
    where = {"endpoint_url": "http://10.78.0.1:5000"}  # a unit has it in its environment, a login hasn't
    asked = "get_object(Bucket='training', Key='imagenet/train/1')"
    ask = f"python3 -c \"import boto3; boto3.client('s3', region_name='us-east-1', **{where}).{asked}\""

    root = lab.site.ssh(instance, ask, check=False)
    assert root.returncode == 0, root.stderr
    assert "Unable to locate credentials" in lab.site.ssh(instance, f"runuser -u nobody -- {ask}", check=False).stderr
    lab.inside("-c", LAUNCH, "end", instance)


@pytest.mark.parametrize(
    ("node", "more", "words"),
    [
        ("p5-3", {}, "ironburst-join: ironburst-gate failed: gate: FAILED gpus: 7 of 8"),
        (
            "p5-3",
            {"munge_key": "env:HOME"},
            "ironburst-join: ironburst-join failed: join: a rented node can only resolve",
        ),
        ("p5-5", data("training/genomes"), "data: s3://training/genomes/ can't be listed"),
    ],
    ids=["its gate fails", "it can't join", "its data is not for it"],
)
def test_a_node_that_can_not_come_says_why_and_ends_at_once(lab, node, more, words):
    if not lab.node(node).has("POWERED_DOWN"):
        lab.slurm.abandon([node], "again")
        lab.until(node, "POWERED_DOWN")
    instance = lab.launch(node, dead_man_s=100_000, **more)
    # a new role may be unknown for a minute
    wait_for(lambda: words in lab.site.host(instance).console(), 180, "its last words", pause=0.1)
    assert lab.gone(instance) == "Client.InstanceInitiatedShutdown"
