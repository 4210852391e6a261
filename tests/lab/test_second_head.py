"""Two heads as the role makes them, on real hosts: converged twice, then one dies with its host, and comes back.
Slurm's backup controller, slurmdbd's and the controller's standby go on; jobs don't notice.

Ledger and accounting are in Debian's PostgreSQL and MariaDB on a host of their own. The folder that both heads mount is
the lab's stand-in for a filer: one folder of this machine, bound. What NFS refuses and this doesn't: root is nobody by
default (exports(5), root_squash), locks are by host, attributes are cached for seconds (nfs(5), acregmin), and a server
that is gone hangs who reads. Nothing is rented here: leases in fail-overs are tests/faults/test_two_heads.py's.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from itertools import pairwise

import pytest

from ironburst import document
from ironburst.config import load
from ironburst.document import build
from lab import names
from lab.demo.inside import Inside
from lab.system import wait_for
from tests import sites, wheels
from tests.faults.test_two_heads import NEXT_TICK_S
from tests.playbooks import sample
from tests.unit.config.test_second_head import second_head

pytestmark = [pytest.mark.lab, pytest.mark.slow]
HEADS, NODE, DATABASES = ("head", "head2"), "dgx01", "db"
HALL = {**names.ADDRESSES, "head2": "10.78.0.9", DATABASES: "10.78.0.20"}
PASSWORD = "only-in-the-lab"
DECLARED = {
    "ledger": f"postgresql://ironburst@{HALL[DATABASES]}/ironburst",
    "ledger_password": "file:/etc/ironburst/ledger.password",  # not on the machine that converges
    "accounting": f"mysql://slurm@{HALL[DATABASES]}/slurm_acct",
    "accounting_password": "env:LAB_ACCOUNTING_PASSWORD",
}
COPIES = "/var/backups/ironburst/ledger"
# As a site's administrator of databases does it: an owner each, who comes by TCP with a password
SERVERS = f"""set -e
echo 'deb [trusted=yes] http://10.78.0.1/debian stable main' > /etc/apt/sources.list.d/lab.list
apt-get update -qq
export DEBIAN_FRONTEND=noninteractive
apt-get install -y -qq --no-install-recommends postgresql mariadb-server > /dev/null
cd /etc/postgresql/*/main
echo "listen_addresses = '*'" >> postgresql.conf
echo 'host ironburst ironburst 10.78.0.0/16 scram-sha-256' >> pg_hba.conf
cat > /etc/mysql/mariadb.conf.d/90-site.cnf <<END
[mariadbd]
bind-address=0.0.0.0
innodb_lock_wait_timeout=900
tcp_keepalive_time=10
tcp_keepalive_interval=5
tcp_keepalive_probes=3
END
systemctl restart postgresql mariadb
runuser -u postgres -- psql -q -c "CREATE ROLE ironburst LOGIN PASSWORD '{PASSWORD}'" \\
  -c 'CREATE DATABASE ironburst OWNER ironburst'
mariadb <<END
CREATE DATABASE slurm_acct;
CREATE USER slurm@'10.78.0.%' IDENTIFIED BY '{PASSWORD}';
GRANT ALL ON slurm_acct.* TO slurm@'10.78.0.%';
END
"""
# What the how-to asks for on each head: the filer's folder, the ledger's password; and the way into a cloud
PREPARED = f"""set -e
mkdir -p /srv/heads /shared/heads /srv/ironburst
groupadd --system ironburst
install -d /etc/ironburst
echo '{PASSWORD}' | install -m 0640 -g ironburst /dev/stdin /etc/ironburst/ledger.password
echo '/shared/heads /srv/heads none bind 0 0' >> /etc/fstab
mount /srv/heads
cat > /etc/ironburst/controller.env <<END
AWS_ENDPOINT_URL={names.AWS_ENDPOINT}
AWS_ACCESS_KEY_ID=lab
AWS_SECRET_ACCESS_KEY=lab
END
"""
# A job that writes the time each second, so often, or until it may end
BEATS = "i=0; while [ $((i += 1)) -le {seconds} ] && [ ! -e may-end ]; do date +%s; sleep 1; done >> {name}"
PROGRAM = "/opt/ironburst/.venv/bin/ironburst"
# What a restored dump is compared by
ACCOUNTS = "SELECT name FROM acct_table UNION SELECT user FROM lab_assoc_table UNION SELECT name FROM qos_table"


class Pair:
    """The site, and what is asked of it."""

    def __init__(self, site):
        self.site, self.inside = site, Inside(site)
        self.inside.env["LAB_ACCOUNTING_PASSWORD"] = PASSWORD
        self.inventory = site.dir / "run" / "inventory"
        self.jobs, self.settings = {}, {}

    def publish(self):
        """As `ironburst publish` does, and whoever copies the document to the heads."""
        declared = second_head(load.read_value(sample.LAB_STACK), **DECLARED)
        node = next(each for each in declared["halls"][0]["nodes"] if each["names"] == "head2")
        node |= {"macs": [names.mac_of("head2")], "serials": [names.serial_of("head2")]}
        observed = build.Observed(
            instances={"fixed-1": build.CloudInstance(id="i-0123456789abcdef0", address=sample.FIXED_ADDRESS)},
            pool_zones={"p5": sample.POOL_ZONES},
            notices={"p5": "http://10.78.0.1:5000/123456789012/p5"},
        )
        built = build.build(load.from_value(declared), observed)
        hosts = [host for host in built.hosts if host.name in (*HEADS, NODE)]
        scheduler = built.scheduler.model_copy(update={"munge_key": sites.munge_key(self.site)})
        burst = built.burst.model_copy(update={"tick_s": 10})
        document.publish(
            built.model_copy(update={"hosts": hosts, "scheduler": scheduler, "burst": burst}), self.inside.document
        )
        for head in HEADS:
            self.ssh(head, "cat > /srv/ironburst/lab.json", stdin=self.inside.document.read_text())

    def prepare(self, scratch):
        """Databases, folder, credentials; wheels, and the inventory that names them."""
        self.ssh(DATABASES, SERVERS, timeout=300)
        for head in HEADS:
            self.ssh(head, PREPARED)
        self.inside.spawn([sys.executable, "-m", "lab.aws", "--prefix", self.site.prefix], "aws")
        self.inside.run([sys.executable, "-c", "from lab.aws.client import wait_ready; wait_ready(60)"])
        folder = self.site.dir / "shared" / "wheels"
        folder.mkdir()
        wheel = wheels.build(scratch, folder)
        python = self.ssh("head", "python3 -c 'import sys; print(\"%d.%d\" % sys.version_info[:2])'").stdout.strip()
        fetch = ["download", "--quiet", "--only-binary=:all:", "--python-version", python, "--dest", str(folder)]
        subprocess.run([sys.executable, "-m", "pip", *fetch, f"{wheel}[postgresql]"], check=True, timeout=600)
        shutil.copytree(sample.REPOSITORY / "inventory" / "lab", self.inventory)
        self.settings |= {
            "slurm_head_controller_wheel": str(wheel),
            "slurm_head_controller_pip": ["--no-index", "--find-links", "/shared/wheels"],
        }
        self.set()

    def set(self, **more):
        """In the inventory, after lab.yml, whose values these come before."""
        self.settings |= more
        (self.inventory / "group_vars" / "all" / "test.yml").write_text(json.dumps(self.settings))

    def converge(self, *options, code=0):
        where = ("--document", str(self.inside.document), "--inventory", str(self.inventory))
        said = self.inside.run(self.inside.ironburst("converge", *where, "--json", *options), ok=(code,))
        return json.loads(said)["hosts"]

    def ssh(self, host, line, **more):
        return self.site.ssh(host, line, **more)

    def as_controller(self, head, verb):
        """What the product's command says on a head."""
        line = f"cd /; runuser -u ironburst -- env IRONBURST_DOCUMENT=/srv/ironburst/lab.json {PROGRAM} {verb}"
        return self.ssh(head, line).stdout

    def backups(self):
        """What the doctor finds wrong with each head's copies of the ledger."""
        where = ("--document", str(self.inside.document), "--inventory", str(self.inventory))
        said = self.inside.run(
            self.inside.ironburst("doctor", "stacks/Pulumi.lab.yaml", "--from", "hall", *where, "--json"), ok=(0, 3)
        )
        found = [each for each in json.loads(said)["findings"] if "ledger" in each["looked_at"]]
        return {each["looked_at"].split()[-1]: each["seen"] for each in found if each["state"] != "ok"}

    def alice(self, head, name, seconds, *options):
        """A job that writes the time each second."""
        script = "#!/bin/sh\n" + BEATS.format(seconds=seconds, name=name)
        line = f"runuser -u alice -- sbatch --parsable -t20 -D/shared/alice -o/dev/null {' '.join(options)}"
        self.jobs[name] = int(self.ssh(head, line, stdin=script).stdout)

    def beats(self, name):
        path = self.site.dir / "shared" / "alice" / name
        return [int(word) for word in path.read_text().split()] if path.exists() else []

    def queue(self, head):
        """{job: state}; nothing while no controller answers."""
        done = self.ssh(head, "timeout 50 squeue --noheader --format='%i %T'", check=False)
        return None if done.returncode else dict(line.split() for line in done.stdout.splitlines())

    def power_fails(self, name):
        """Nothing comes from it any more. Killing its processes alone would close their connections, which a host
        without power doesn't.
        """
        host = self.site.host(name)
        argv = [*self.site.box.enter_prefix(), "ip", "link", "set", host._veth(), "down"]
        subprocess.run(argv, check=True)
        host.off()

    def roles(self, head):
        """{head: (primary or backup, UP or DOWN)} as scontrol has it."""
        said = self.ssh(head, "timeout 50 scontrol ping", check=False).stdout
        return {host: (which, state) for which, host, state in re.findall(r"\((\w+)\) at (\w+) is (\w+)", said)}

    def told(self, head):
        """What the controller there has said, as systemd has it."""
        return self.ssh(head, "journalctl --quiet --output=cat --unit=ironburst", check=False).stdout

    def last_tick(self):
        """(who holds the ledger, when the last tick began, when it ended), by the database itself."""
        queries = (
            "SELECT application_name FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory'",
            "SELECT value FROM meta WHERE key = 'last_tick'",
        )
        said = [
            self.ssh(DATABASES, f'cd /; runuser -u postgres -- psql -qAt ironburst -c "{query}"', check=False).stdout
            for query in queries
        ]
        held = said[0].strip().removeprefix("ironburst on ")
        tick = json.loads(said[1].strip() or '{"at_s": 0.0, "took_s": 0.0}')
        return held, tick["at_s"], tick["at_s"] + tick["took_s"]


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    with sites.running(f"t-heads-{os.getpid()}", *HEADS, NODE, DATABASES, hall=HALL) as site:
        pair = Pair(site)
        pair.prepare(tmp_path_factory.mktemp("scratch"))
        pair.publish()
        first = pair.converge()
        assert {name: host["state"] for name, host in first.items()} == dict.fromkeys((*HEADS, NODE), "converged")
        yield pair


def converged(hosts):
    """{host: (state, tasks that changed something)}"""
    return {name: (host["state"], host["tasks"]) for name, host in hosts.items()}


def test_the_second_converge_changes_nothing(pair):
    assert converged(pair.converge("--always")) == dict.fromkeys((*HEADS, NODE), ("converged", []))
    assert converged(pair.converge()) == dict.fromkeys((*HEADS, NODE), ("unchanged", []))
    assert pair.roles("head") == {"head": ("primary", "UP"), "head2": ("backup", "UP")}


def test_one_controller_acts_and_the_other_one_waits(pair):
    wait_for(lambda: pair.last_tick()[1], 60, "a tick", pause=0.5)
    holder, *_ = pair.last_tick()
    (other,) = {*HEADS} - {holder}
    wait_for(lambda: "ironburst: waits: another controller holds the ledger" in pair.told(other), 60, "its word")
    assert all(pair.ssh(head, "systemctl is-active ironburst").stdout.strip() == "active" for head in HEADS)


def scraped(pair, head, at):
    """What Prometheus is told there."""
    read = f"import urllib.request; print(urllib.request.urlopen('http://{at}/metrics').read().decode())"
    return pair.ssh(head, f'python3 -c "{read}"').stdout


def failed(pair, head):
    """What node_exporter says of the copy's unit, as the alert UnitFailed reads it."""
    said = scraped(pair, head, f"{HALL[head]}:9100")
    return re.search(r'node_systemd_unit_state{name="ironburst-backup.service",state="failed"[^}]*} 1', said)


def test_each_head_copies_the_ledger_and_a_failure_shows(pair):
    for head in HEADS:
        shown = pair.ssh(head, "systemctl list-timers --no-legend ironburst-backup.timer").stdout
        assert "ironburst-backup.service" in shown
        pair.ssh(head, "systemctl start ironburst-backup", timeout=120)
        (copy,) = pair.ssh(head, f"ls {COPIES}").stdout.split()
        again = f"backup --restore {COPIES}/{copy} --ledger /tmp/again/ledger.sqlite"
        assert "is made of" in pair.as_controller(head, again)
    assert pair.backups() == {} and not any(failed(pair, head) for head in HEADS)
    pair.ssh(DATABASES, "systemctl stop postgresql")
    try:
        for head in HEADS:
            assert pair.ssh(head, "systemctl start ironburst-backup", check=False, timeout=120).returncode
            assert "can't be reached" in pair.ssh(head, "journalctl -q -o cat -u ironburst-backup").stdout
            assert len(pair.ssh(head, f"ls {COPIES}").stdout.split()) == 1
            wait_for(lambda head=head: failed(pair, head), 60, "the unit's state, as it is scraped", pause=1)
        assert pair.backups() == dict.fromkeys(HEADS, "the last one failed; the newest is 0 hours old")
    finally:
        pair.ssh(DATABASES, "systemctl start postgresql")
    for head in HEADS:
        pair.ssh(head, "systemctl start ironburst-backup", timeout=120)
    assert pair.backups() == {}


def test_an_old_copy_shows_in_status_and_metrics(pair):
    holder = wait_for(
        lambda: (its := pair.last_tick()[0]) in HEADS and its, 60, "a controller, after PostgreSQL was away"
    )
    old_s = time.time() - 3 * 86400
    pair.ssh(holder, f"touch -d @{old_s:.0f} {COPIES}/ledger-*")
    wait_for(lambda: pair.last_tick()[1] > old_s + 3 * 86400, 60, "a tick", pause=0.5)
    text = pair.as_controller(holder, "status")
    assert re.search(
        rf"the ledger was copied on {holder} 3 d .*ago: look at `systemctl status ironburst-backup` there", text
    ), text
    (said,) = re.findall(
        r"(?m)^ironburst_ledger_backup_timestamp_seconds (\S+)$", scraped(pair, holder, f"{HALL[holder]}:8643")
    )
    assert float(said) == pytest.approx(old_s, abs=1)
    assert pair.backups() == {holder: "the newest is 3 days old"}
    pair.ssh(holder, "systemctl start ironburst-backup", timeout=120)


def test_the_accounting_is_saved_from_where_it_is_and_restores(pair):
    for head in HEADS:
        pair.ssh(head, "systemctl start ironburst-slurm-backup", timeout=120)
        saved = pair.ssh(head, "zcat /var/backups/ironburst/slurm/*/slurm_acct.sql.gz", timeout=60).stdout
        pair.ssh(DATABASES, "mariadb -e 'CREATE OR REPLACE DATABASE again' && mariadb again", stdin=saved, timeout=120)
        was, now = (pair.ssh(DATABASES, f"mariadb -N {it} -e '{ACCOUNTS}'").stdout for it in ("slurm_acct", "again"))
        assert {"research", "alice", "ironburst"} <= {*was.split()} and now == was


def test_the_first_head_dies(pair):
    """Its host loses its power. The job that runs goes on, the one that waits starts by the other head."""
    wait_for(lambda: pair.last_tick()[0] in HEADS, 60, "a controller")
    pair.ssh("head2", "systemctl stop ironburst")
    wait_for(lambda: pair.last_tick()[0] == "head", 60, "the first head's turn", pause=0.5)
    pair.ssh("head2", "systemctl start ironburst")
    pair.alice("head", "goes-on", 1200, "--cpus-per-task=1", "--gres=gpu:1")
    wait_for(lambda: pair.beats("goes-on"), 90, "a job that runs", pause=0.5)
    pair.alice("head", "starts-later", 5, "--cpus-per-task=1", "--mem=50", "--begin=now+45")
    submitted_s, saved = time.time(), pair.site.dir / "shared" / "heads" / "slurmctld" / "job_state"
    # Slurm saves its jobs some seconds after it took them (SAVE_MAX_WAIT): what it took last dies with the head
    wait_for(lambda: saved.exists() and saved.stat().st_mtime > submitted_s, 60, "the jobs in Slurm's state", pause=0.1)
    before = pair.last_tick()[1]
    dead_s = time.time()
    pair.power_fails("head")
    wait_for(lambda: pair.last_tick()[0] == "head2", NEXT_TICK_S, "the second head's turn")
    turn_s = time.time() - dead_s
    # It asks Slurm, whose own daemons on head2 take over meanwhile
    _, began, ended = wait_for(lambda: (tick := pair.last_tick())[1] > dead_s and tick, 240, "a tick")
    print(f"died {dead_s - before:.0f} s after a tick began; the ledger after {turn_s:.0f} s")
    print(f"a tick began {began - dead_s:.0f} s after the death, and ended {ended - dead_s:.0f} s after it")
    wait_for(lambda: (pair.roles("head2").get("head2") == ("backup", "UP")) and pair.queue("head2"), 120, "a queue")
    wait_for(lambda: pair.beats("starts-later"), 180, "a job that head2 starts", pause=1)
    print(f"a job began {pair.beats('starts-later')[0] - dead_s:.0f} s after the death")
    pair.alice("head2", "new", 5, "--cpus-per-task=1", "--mem=50")
    wait_for(lambda: len(pair.beats("new")) == 5, 180, "a job that is submitted at head2", pause=1)

    def accounted():
        line = f"timeout 50 sacct -nXP -o State -j {pair.jobs['new']}"
        return pair.ssh("head2", line, check=False).stdout.strip() == "COMPLETED"

    wait_for(accounted, 120, "its account, by head2's slurmdbd", pause=1)
    assert ended - dead_s <= NEXT_TICK_S


def test_what_is_reached_is_converged_meanwhile(pair):
    """A setting that is gone from a node; and an account that is new, which head2 makes for the cluster."""
    pair.ssh(NODE, "rm /etc/security/limits.d/90-ironburst.conf")
    research = {"name": "research", "users": ["alice", "root"]}
    pair.set(slurm_head_accounts=[research, {"name": "physics", "users": ["alice"]}])
    hosts = pair.converge(code=4)
    assert hosts["head"]["state"] == "unreachable" and hosts["head"]["error"].startswith("Reach the host: ")
    assert hosts[NODE]["state"] == "converged" and len(hosts[NODE]["tasks"]) == 1, hosts[NODE]
    assert hosts["head2"]["tasks"] == ["slurm_head: Accounts", "slurm_head: Users of the accounts"], hosts["head2"]
    said = pair.ssh("head2", "sacctmgr -nP show associations account=physics format=Cluster,Account,User").stdout
    assert said.splitlines() == ["lab|physics|", "lab|physics|alice"]
    assert converged(pair.converge("--limit", f"head2,{NODE}")) == dict.fromkeys(("head2", NODE), ("unchanged", []))


def test_the_first_head_comes_back(pair):
    """Its slurmctld takes the queue back; its controller waits. What was submitted right before is there."""
    pair.alice("head2", "last", 5, "--cpus-per-task=1", "--mem=50", "--begin=now+60")
    pair.site.host("head").start()
    pair.site.host("head").wait(60)
    whole = {"head": ("primary", "UP"), "head2": ("backup", "UP")}
    wait_for(lambda: pair.roles(NODE) == whole, 120, "both heads", pause=1)
    wait_for(lambda: "waits: another controller holds the ledger" in pair.told("head"), 120, "its controller's word")
    assert pair.last_tick()[0] == "head2"
    wait_for(lambda: len(pair.beats("last")) == 5, 180, "the job of before", pause=1)
    (pair.site.dir / "shared" / "alice" / "may-end").touch()
    wait_for(lambda: pair.queue("head") == {}, 120, "the end of all jobs", pause=1)
    assert {name: len(pair.beats(name)) for name in ("starts-later", "new", "last")} == dict.fromkeys(
        ("starts-later", "new", "last"), 5
    )
    gaps = [after - before for before, after in pairwise(pair.beats("goes-on"))]
    assert max(gaps) < 15, "it never stood still"

    def accounts():
        line = f"sacct -nXPD -o JobID,State,Restarts -j {','.join(map(str, pair.jobs.values()))}"
        return sorted(pair.ssh("head", line).stdout.split())

    wanted = sorted(f"{job}|COMPLETED|0" for job in pair.jobs.values())
    wait_for(lambda: accounts() == wanted, 60, f"one account each: {wanted}", pause=1)
    changed = {name: tasks for name, (_, tasks) in converged(pair.converge()).items() if tasks}
    # the lab writes /etc/hosts anew at each start of a host
    assert changed == {"head": ["slurm_head: Names of nodes that may be rented lead nowhere, and need no resolver"]}
