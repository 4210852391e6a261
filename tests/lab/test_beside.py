"""A Slurm that was set up by hand, without ironburst, gets rented nodes by the printed lines and one script: jobs of
its own users, who change nothing, run on them. Nodes that aren't managed are never contacted.
"""

import json
import os
import re
import shlex
import sys
import time
from datetime import UTC, datetime, timedelta

import pytest
import yaml

from ironburst.adapters.pulumi import Pulumi
from ironburst.document import read
from lab import names
from lab.demo import aws, burst, converge, declare, giveback, service
from lab.demo.cloud import control
from lab.pulumi import binary
from lab.site import Site
from lab.system import CHECKOUT, wait_for
from tests import sites

pytestmark = [pytest.mark.lab, pytest.mark.slow]
STACK, NODES, PLATFORM = "lab-beside", ("dgx01", "dgx02"), "generic-hgx-h100-8-gpu"
STACK_FILE = CHECKOUT / "stacks" / f"Pulumi.{STACK}.yaml"
# As its administrator wrote it. These hosts have no cgroup controllers, and this machine's CPUs
SLURM_CONF = f"""\
ClusterName=campus
SlurmctldHost=head({names.ADDRESSES["head"]})
SlurmUser=slurm
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
SlurmdParameters=config_overrides
ReturnToService=1
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=localhost
AccountingStorageEnforce=associations
AccountingStorageTRES=gres/gpu
NodeName=dgx01 NodeAddr={names.ADDRESSES["dgx01"]} CPUs=16 RealMemory=1000 Gres=gpu:h100:8
NodeName=dgx02 NodeAddr={names.ADDRESSES["dgx02"]} CPUs=16 RealMemory=1000 Gres=gpu:h100:8
PartitionName=gpu Nodes=dgx01,dgx02 Default=YES DefaultTime=30 MaxTime=1440 DefMemPerCPU=50
"""
SLURMDBD_CONF = """\
DbdHost=localhost
SlurmUser=slurm
StorageType=accounting_storage/mysql
StorageLoc=campus
StorageUser=slurm
LogFile=/var/log/slurm/slurmdbd.log
"""
GRES_CONF = "NodeName=dgx[01-02] Name=gpu Type=h100 File=/dev/nvidia[0-7]\n"
DATABASE = "create database campus; create user slurm@localhost; grant all on campus.* to slurm@localhost"
SQL = f"mariadb -e '{DATABASE}'"
SAVED = {
    "nodes": "scontrol show node --json",
    "partitions": "scontrol show partition --json",
    "sinfo": "sinfo --json",
    "accounts": "sacctmgr show account --json",
}


def install(*packages):
    return (
        "echo 'deb [trusted=yes] http://10.78.0.1/debian stable main' > /etc/apt/sources.list.d/campus.list; "
        "apt-get update -qq; export DEBIAN_FRONTEND=noninteractive; "
        f"apt-get install -y -qq --no-install-recommends {' '.join(packages)} > /dev/null"
    )


def put(site, host, path, text, owner="root", mode="0644"):
    site.ssh(host, f"install -D -o {owner} -m {mode} /dev/stdin {path}", stdin=text)


@pytest.fixture(scope="module")
def inside():
    sites.need_lab()
    site = Site(f"t-beside-{os.getpid()}")
    try:
        inside = declare.start_world(site, print, cloud=aws.Aws((aws.MUNGE_SECRET, "beside", aws.KEY_PAIR)))
        inside.stack = STACK
        yield inside
    finally:
        site.down()
    assert not any(site.box.leftovers().values())


@pytest.fixture(scope="module")
def campus(inside):
    """Head and two nodes, by hand."""
    site = inside.site
    for node in NODES:
        site.ssh(node, f"touch {' '.join(f'/dev/nvidia{n}' for n in range(8))}")
    key = ""
    for host in ("head", *NODES):  # settings first: a slurmd without any waits 90 s for them while it is installed
        put(site, host, "/etc/slurm/slurm.conf", SLURM_CONF)
        put(site, host, "/etc/slurm/gres.conf", GRES_CONF)
        put(site, host, "/etc/slurm/cgroup.conf", "CgroupPlugin=disabled\n")
        wanted = ("slurmctld", "slurmdbd", "mariadb-server") if host == "head" else ("slurmd",)
        site.ssh(host, install(*wanted, "slurm-client", "munge"), timeout=300)
        key = key or site.ssh(host, "base64 -w 0 /etc/munge/munge.key").stdout  # as Debian's package made it
        site.ssh(host, "base64 -d > /etc/munge/munge.key; systemctl restart munge", stdin=key)
    inside.run([sys.executable, "-c", PUT_SECRET, aws.MUNGE_SECRET], stdin=key)
    put(site, "head", "/etc/slurm/slurmdbd.conf", SLURMDBD_CONF, "slurm", "0600")
    site.ssh("head", f"systemctl restart mariadb; {SQL}; systemctl restart slurmdbd")
    answers = "sacctmgr -i add cluster campus > /dev/null 2>&1; sacctmgr -n show cluster | grep campus"
    wait_for(lambda: site.ssh("head", answers, check=False).stdout, 30, "slurmdbd", pause=0.5)
    site.ssh("head", "systemctl restart slurmctld")
    site.ssh("head", "sacctmgr -i add account physics && sacctmgr -i add user alice account=physics", check=False)
    for node in NODES:
        site.ssh(node, "systemctl restart slurmd")
    idle = "sinfo -h -N -o '%N %t'"
    wanted = [f"{node} idle" for node in NODES]
    wait_for(lambda: site.ssh("head", idle, check=False).stdout.split("\n")[:-1] == wanted, 60, "two nodes", pause=0.5)
    return site


# As `aws secretsmanager put-secret-value --secret-binary` does
PUT_SECRET = (
    "import base64, boto3, sys; client = boto3.client('secretsmanager');"
    "client.put_secret_value(SecretId=sys.argv[1], SecretBinary=base64.b64decode(sys.stdin.read()))"
)


def logins(site, host):
    """How many ssh sessions were opened there, this one among them."""
    said = "journalctl -q -o cat -t sshd -t sshd-session | grep -c '^Accepted '"
    return int(site.ssh(host, said, check=False).stdout)


def submit(head, gpus, seconds):
    line = f"sbatch --parsable -N 1 --gres=gpu:{gpus} -c 1 --time=10 --wrap 'hostname; sleep {seconds}'"
    return int(head.alice(line))


def report(inside, head, ledger):
    """Of the jobs, by `sacct` as it is: GPU-hours as sacct's own lines have them, dollars as the ledger's lease has."""
    begin = f"{datetime.now(UTC) - timedelta(days=1):%Y-%m-%dT%H:%MZ}"
    asked = ["report", *burst.arguments(inside), "--slurm-prefix", shlex.join(inside.head_prefix())]
    asked = inside.ironburst(*asked, "--from", begin, "--by", "pool")
    columns = (
        "--noheader --parsable2 -o ElapsedRaw,AllocTRES,NodeList,State,JobIDRaw,JobID,Submit,Start,End,User,Account"
    )
    text = head.root(f"SLURM_TIME_FORMAT=%s sacct --allusers --allocations --duplicates {columns}")
    print(text, inside.run(asked), sep="\n")
    said = json.loads(inside.run([*asked, "--json"]))
    by_hand = dict.fromkeys(("home", "p5"), 0.0)
    for elapsed, tres, nodes, *_ in (line.split("|") for line in text.splitlines()):
        gpus = int(re.search(r"gres/gpu=(\d+)", tres)[1])
        by_hand["p5" if nodes.startswith("p5") else "home"] += gpus * int(elapsed) / 3600
    rows = {row["name"]: row for row in said["rows"]}
    assert rows["home"]["gpu_hours"]["home"] == pytest.approx(by_hand["home"]) and by_hand["home"] > 0.8
    assert rows["p5"]["gpu_hours"]["rented"] == pytest.approx(by_hand["p5"]) and by_hand["p5"] > 0
    assert rows["p5"]["usd"]["home"] == 0 and rows["home"]["usd"]["home"] is None, "nobody has said what home costs"
    spent = sum(lease.usd(time.time()) for lease in ledger.leases(open_only=False))
    assert said["total"]["usd"]["rented"] == pytest.approx(spent, abs=0.001) and spent > 0
    assert said["total"]["jobs"] == 3 and said["bought"]["jobs"] == 1


def test_init_reads_what_is_there(campus, inside, tmp_path):
    for name, command in SAVED.items():
        (tmp_path / f"{name}.json").write_text(campus.ssh("head", command).stdout)
    path = tmp_path / "Pulumi.new.yaml"
    where = [
        "--name",
        "beside",
        "--head",
        names.ADDRESSES["head"],
        "--region",
        "us-east-1",
        "--budget",
        "2000",
        "--platform",
        f"h100={PLATFORM}",
        "--output",
        str(path),
    ]
    inside.run(inside.ironburst("init", "--from-slurm", str(tmp_path), *where))
    written, declared = (yaml.safe_load(each.read_text())["config"]["ironburst:cluster"] for each in (path, STACK_FILE))
    assert written["halls"][0]["nodes"] == declared["halls"][0]["nodes"]
    for key in ("managed", "head", "home_partition"):
        assert written["scheduler"][key] == declared["scheduler"][key]


def test_the_snippet_is_enough(campus, inside, tmp_path):
    site = campus
    pulumi = declare.declare(inside, binary.path(), print)
    assert isinstance(pulumi, Pulumi)
    assert read(inside.document).managed_hosts == []
    folder = site.dir / "shared" / "snippet"
    inside.run(inside.ironburst("slurm", "snippet", str(STACK_FILE), "--folder", str(folder)))
    before = {node: logins(site, node) for node in NODES}

    lines = {name: (folder / name).read_text() for name in ("slurm.conf", "gres.conf")}
    put(site, "head", "/etc/slurm/slurm.conf", SLURM_CONF + lines["slurm.conf"].replace("GresTypes=gpu\n", ""))
    put(site, "head", "/etc/slurm/gres.conf", GRES_CONF + lines["gres.conf"])
    looked = ["doctor", str(STACK_FILE), "--slurm", "--slurm-prefix", shlex.join(inside.head_prefix())]
    assert "fail     slurm.conf: ResumeProgram" in inside.run(inside.ironburst(*looked), ok=(3,))
    print(site.ssh("head", "sh /shared/snippet/install.sh && sh /shared/snippet/install.sh").stdout)
    drain = "scontrol update nodename=p5-1,p5-2 state=drain reason='no lease'"
    site.ssh("head", "systemctl restart slurmctld")
    wait_for(lambda: site.ssh("head", drain, check=False).returncode == 0, 30, "slurmctld", pause=0.5)

    print(inside.run(inside.ironburst(*looked)))
    converge.bake(inside, "p5", aws.AWS, print)
    for market in ("spot", "on-demand"):
        place = {"instance_type": aws.AWS.instance_type, "zone": "us-east-1a", "market": market}
        control(inside, "POST", "/lab/capacity", **place, count=2)
    service.install(inside)
    service.start(inside, "controller")
    ledger = wait_for(lambda: burst.open_ledger(inside), 60, f"the controller (see {site.log('controller')})")
    head = burst.Head(inside)
    jobs = [submit(head, 8, 200), submit(head, 8, 200), submit(head, 8, 5)]

    def ended():
        queue = head.queue()
        return all(burst.over(queue.get(job)) for job in jobs) and not ledger.leases()

    wait_for(ended, 300, f"three jobs (see {site.log('controller')})", pause=0.5)
    print(*(f"{event.kind} {event.job}: {event.text}" for event in ledger.events()), sep="\n")
    print(*(f"{row.job} {row.code}: {row.text}" for row in ledger.decisions()), sep="\n")
    accounted = json.loads(head.root(f"sacct -X --json -j {','.join(map(str, jobs))}"))["jobs"]
    assert {job["job_id"]: job["state"]["current"] for job in accounted} == {job: ["COMPLETED"] for job in jobs}
    assert {job["nodes"] for job in accounted} == {*NODES, "p5-1"}
    assert [lease.node for lease in ledger.leases(open_only=False)] == ["p5-1"]
    report(inside, head, ledger)
    # this look itself
    assert {node: logins(site, node) - before[node] for node in NODES} == dict.fromkeys(NODES, 1)
    inside.run([*inside.head_prefix(), "systemctl stop ironburst"])
    left = giveback.give_back(inside, pulumi, ledger, print)
    assert not any(left.values())
