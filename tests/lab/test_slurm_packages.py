"""Slurm by SchedMD's packages on a head and a node of each system: a job runs, a second converge changes nothing, and a
head that is rebuilt takes up its queue and its accounting. The packages are SchedMD's own (lab/packages/schedmd.py,
schedmd_rpms.py); the gate is a stand-in: no GPU is needed here.
"""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from ironburst import catalog
from ironburst.adapters.slurm import build as slurm_build
from ironburst.software import packages
from lab import names
from lab.demo.inside import Inside
from lab.hosts import cache, systems
from lab.hosts.spec import bare_metal
from lab.packages import apt_repository, rpm_repository, schedmd, schedmd_rpms
from lab.system import wait_for
from tests import sites
from tests.playbooks import sample

pytestmark = [pytest.mark.lab, pytest.mark.slow]
# Debian 13 has Slurm 24.11 of its own, the others an older one
SYSTEMS = ("debian12", "debian13", "ubuntu2204", "ubuntu2404", "rhel9", "rhel10")
CHOSEN = [name for name in SYSTEMS if name in os.environ.get("LAB_SYSTEMS", " ".join(SYSTEMS)).split()]
NEWER = os.environ.get("LAB_SLURM_TARBALL", "")
UID = 64031  # not Debian's own
HOSTS = ("head", "dgx01")
GATE = {
    "/etc/systemd/system/ironburst-gate.service": "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\n",
    **dict.fromkeys((f"/usr/local/sbin/ironburst-{name}" for name in ("prolog", "epilog", "health")), "#!/bin/sh\n"),
}


@pytest.fixture(scope="module", params=CHOSEN)
def system(request):
    return request.param


@pytest.fixture(scope="module")
def site(system):
    with sites.running(f"t-slurm-{os.getpid()}", hall={}) as site:
        known = {name: names.ADDRESSES[name] for name in HOSTS}
        for name in HOSTS:
            site.start_host(bare_metal(name, system=system, hosts=known, files={}))
        assert set(site.wait(HOSTS, 180).values()) == {"running"}
        for path, text in GATE.items():  # STAND-IN of the role node_health
            site.ssh("dgx01", f"cat > {path} && chmod 755 {path}", stdin=text)
        devices = " ".join(f"/dev/nvidia{number}" for number in range(8))
        site.ssh("dgx01", f"touch {devices}")
        yield site


@pytest.fixture(scope="module")
def inside(site, system):
    inside = Inside(site)
    publish(inside, system, "24.11")
    return inside


def publish(inside, system, release):
    """The lab's head and a node, with SchedMD's packages."""
    document = sample.lab_document(munge_key=sites.munge_key(inside.site), names=HOSTS).model_dump(mode="json")
    facts = catalog.software_facts()
    for host in document["hosts"]:
        role = "slurm_head" if host["name"] == "head" else "slurm_node"
        wanted = packages.slurm_packages(system, role, release, "schedmd", facts)
        specs = {each: [] for each in packages.ROLES} | {role: [packages.spec(each, system) for each in wanted]}
        host["software"] |= {"slurm": release, "slurm_packages": "schedmd", "packages": specs, "container_runtimes": []}
        host |= {"os": system, "roles": ["base", role], "mig": None}
    document |= {"pools": [], "serial": 1}
    document["scheduler"]["slurm_uid"] = UID
    inside.document.write_text(json.dumps(document))


@pytest.fixture(scope="module")
def play(inside, system):
    box = inside.site.box
    if systems.of(system).family == "rhel":
        values = {"base_dnf_repositories": [*rpm_repository.serve(box, system), *schedmd_rpms.serve(box, system)]}
    else:
        values = {"base_apt_repositories": [*apt_repository.serve(box, system), *schedmd.serve(box, system)]}

    def run(*options, ok=True, **more):
        """Of one run: (changed tasks by host, output)."""
        given = ["-e", json.dumps(values | more), *options]
        command = inside.argv("ansible-playbook", "-i", "inventory/lab", "tests/lab/slurm.yml", *given)
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        said = done.stdout + done.stderr
        assert not ok or done.returncode == 0, said[-6000:]
        recap = re.findall(r"^(\w+) +: ok=\d+ +changed=(\d+)", said.rpartition("PLAY RECAP")[2], re.MULTILINE)
        return {host: int(changed) for host, changed in recap}, said

    run.values = values
    return run


@pytest.fixture(scope="module")
def applied(play):
    return play()[0]


def alice(site, line):
    return site.ssh("head", f"cd /shared && runuser -u alice -- {line}", timeout=60).stdout.strip()


HELD = {  # what prints the packages of Slurm that stay as they are
    "debian": "dpkg-query -W -f='${Package} ${db:Status-Want}\\n' 'slurm*' | grep ' hold$' | cut -d' ' -f1",
    "rhel": "dnf -q versionlock list | sed 's/-0:.*//'",
}
WANTED = {
    "debian": {
        "head": {"slurm-smd", "slurm-smd-client", "slurm-smd-slurmctld", "slurm-smd-slurmdbd"},
        "dgx01": {"slurm-smd", "slurm-smd-client", "slurm-smd-slurmd", "slurm-smd-libnss-slurm"},
    },
    "rhel": {"head": {"slurm", "slurm-slurmctld", "slurm-slurmdbd"}, "dgx01": {"slurm", "slurm-slurmd"}},
}


def test_head_and_node_are_set_up(site, applied, system):
    assert applied["head"] > 10 and applied["dgx01"] > 5
    for name in HOSTS:
        assert site.ssh(name, "getent passwd slurm").stdout.startswith(f"slurm:x:{UID}:{UID}:")
        family = systems.of(system).family
        assert set(site.ssh(name, HELD[family]).stdout.split()) == WANTED[family][name]
        assert site.ssh(name, "sinfo --version").stdout == f"slurm {schedmd.VERSION}\n"
    owners = site.ssh("head", "stat -c '%n %U' /var/lib/slurm/slurmctld /var/log/slurm").stdout
    assert owners.count(" slurm") == 2


def test_a_user_runs_a_job(site, applied):
    wait_for(lambda: "idle" in site.ssh("head", "sinfo -h -o %T").stdout, 60, "the node", pause=0.5)
    assert alice(site, "srun -A research --time=1 hostname") == "dgx01"


def test_a_second_converge_changes_nothing(play, applied):
    changed, said = play()
    assert changed == {"head": 0, "dgx01": 0}, re.findall(r"TASK \[([^\n]*)\][^\n]*\nchanged", said)


def seen(site, command, wanted):
    wait_for(lambda: wanted in site.ssh("head", command).stdout, 60, f"{wanted} in {command}", pause=0.5)


def test_a_rebuilt_head_takes_up_its_queue_and_its_accounting(site, play, applied):
    submit = "sbatch --parsable -A research -o /dev/null"
    done = alice(site, f"{submit} --time=1 --wrap true")
    seen(site, f"sacct -nX -j {done} -o state", "COMPLETED")
    waiting = alice(site, f"{submit} --hold --wrap true")
    running = alice(site, f"{submit} --time=9 --wrap 'sleep 400'")
    seen(site, f"squeue -h -j {running} -o %T", "RUNNING")
    # slurmctld writes its state some seconds after a change; a backup has what is written
    site.ssh("head", f"touch /run/submitted; scontrol update jobid={waiting} comment=saved")
    seen(site, "find /var/lib/slurm/slurmctld/job_state -newer /run/submitted", "job_state")
    site.ssh("head", "systemctl start ironburst-slurm-backup.service", timeout=60)
    kept = site.ssh("head", "ls -d /var/backups/ironburst/slurm/*Z").stdout.split()[-1]
    # what a new machine doesn't have: the state, the database
    lost = "rm -rf /var/lib/slurm/slurmctld && mariadb -e 'DROP DATABASE slurm_acct'"
    site.ssh("head", f"systemctl stop slurmctld slurmdbd && {lost}")
    play("--limit", "head", slurm_head_restore=kept)
    queue = site.ssh("head", "squeue -h -o '%i %T'").stdout.splitlines()
    assert sorted(queue) == sorted([f"{waiting} PENDING", f"{running} RUNNING"])
    assert site.ssh("head", f"sacct -nX -P -j {done} -o state,user").stdout.strip() == "COMPLETED|alice"
    assert play("--limit", "head", slurm_head_restore=kept)[0] == {"head": 0}
    site.ssh("head", f"scancel {waiting} {running}")


@pytest.mark.skipif(
    not NEWER, reason="LAB_SLURM_TARBALL names no tarball of a newer Slurm: the archive has one release"
)
def test_a_newer_release_keeps_what_runs_and_what_waits(site, play, applied, inside, system):
    """By the roles, head first, under a running job. The tarball is SchedMD's, or one of a tag of its repository."""
    if systems.of(system).family == "rhel":
        pytest.skip("a given tarball is built for Debian's family only")
    version = slurm_build.checked(Path(NEWER), cache.sha256(Path(NEWER)))
    submit = "sbatch --parsable -A research -o /dev/null"
    running = alice(site, f"{submit} --time=9 --wrap 'sleep 400'")
    waiting = alice(site, f"{submit} --hold --wrap true")
    seen(site, f"squeue -h -j {running} -o %T", "RUNNING")
    publish(inside, system, version.rpartition(".")[0])
    more = {"base_apt_repositories": [*play.values["base_apt_repositories"], *schedmd.serve(site.box, system, NEWER)]}
    _, said = play("--limit", "dgx01", ok=False, slurm_host_controller_timeout=10, **more)
    assert "converge the head first" in " ".join(said.split())
    play("--limit", "head", **more)
    assert site.ssh("head", "sinfo --version").stdout == f"slurm {version}\n"
    assert site.ssh("dgx01", "slurmd -V").stdout == f"slurm {schedmd.VERSION}\n"
    seen(site, f"squeue -h -j {running} -o '%T %N'", "RUNNING dgx01")
    play("--limit", "dgx01", **more)
    assert site.ssh("dgx01", "slurmd -V").stdout == f"slurm {version}\n"
    queue = site.ssh("head", "squeue -h -o '%i %T %r'").stdout.splitlines()
    assert sorted(queue) == sorted([f"{waiting} PENDING JobHeldUser", f"{running} RUNNING None"])
    assert "idle" in site.ssh("head", "sinfo -h -o %T").stdout or "mix" in site.ssh("head", "sinfo -h -o %T").stdout
    assert play(**more)[0] == {"head": 0, "dgx01": 0}
    site.ssh("head", f"scancel {running}; scontrol release {waiting}")
    seen(site, f"sacct -nX -j {waiting} -o state", "COMPLETED")


def test_a_user_of_another_number_is_told(site, play, applied, inside):
    document = json.loads(inside.document.read_text())
    document["scheduler"]["slurm_uid"] = 64030
    before = inside.document.read_text()
    inside.document.write_text(json.dumps(document))
    try:
        _, said = play("--limit", "dgx01", ok=False)
        assert f"The user slurm of dgx01 has the number {UID}, and 64030 is declared" in " ".join(said.split())
    finally:
        inside.document.write_text(before)
