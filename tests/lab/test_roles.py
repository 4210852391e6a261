"""The roles of the cluster's services on one real host: applied, asked whether they work, applied again, and in check
mode.

One host (the head), one inventory. What the machine can't do is named where it is left out.
"""

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import zipfile

import pytest

from lab.demo.inside import Inside
from lab.system import wait_for
from tests import sites
from tests.playbooks import sample

pytestmark = [pytest.mark.lab, pytest.mark.slow]
INDEX_PORT = 8081
TRIED = ["base", "container_runtime", "infiniband_fabric", "metrics", "data_science"]
RUNTIMES = {
    "containerd": ["containerd"],
    "docker": ["docker.io"],
    "apptainer": ["apptainer"],
    "enroot": ["enroot", "enroot+caps", "nvslurm-plugin-pyxis"],
}


@pytest.fixture(scope="module")
def site():
    with sites.running(f"t-roles-{os.getpid()}", "head") as site:
        yield site


@pytest.fixture(scope="module")
def inside(site):
    inside = Inside(site)
    document = sample.lab_document(names=("head",)).model_dump(mode="json")
    head = document["hosts"][0]
    head["software"] |= {"container_runtimes": list(RUNTIMES), "cuda": "13.0"}
    head["software"]["packages"]["container_runtime"] = [name for names in RUNTIMES.values() for name in names]
    head |= {
        "fabric": "infiniband",
        "fabric_links": 1,
        "scratch": {"path": "/scratch", "devices": [], "filesystem": "xfs"},
    }
    document |= {
        "data_science": ["jupyter"],
        "subnet_managers": {"hall-a": [{"host": "head", "priority": 14}]},
        "serial": 1,
    }
    document["filesystem"] = {"kind": "nfs", "source": "nas:/export", "options": ""}
    inside.document.write_text(json.dumps(document))
    # a scratch that is no device, so that Docker's layers lie on something that carries an overlay
    site.ssh("head", "mkdir /scratch && mount -t tmpfs tmpfs /scratch")
    serve_index(site)
    return inside


def serve_index(site):
    """A package index with one wheel: a stand-in of jupyterlab, in the version that the locked list has."""
    folder = site.dir / "run" / "index"
    wheel = folder / "jupyterlab" / "jupyterlab-4.6.6-py3-none-any.whl"
    wheel.parent.mkdir(parents=True)
    info = "jupyterlab-4.6.6.dist-info"
    files = {
        "jupyterlab/__init__.py": "__version__ = '4.6.6'  # STUB of the lab's tests\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: jupyterlab\nVersion: 4.6.6\nSummary: STUB\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(wheel, "w") as archive:
        record = ""
        for name, text in files.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
            archive.writestr(name, text)
            record += f"{name},sha256={digest},{len(text)}\n"
        archive.writestr(f"{info}/RECORD", record + f"{info}/RECORD,,\n")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    (folder / "jupyterlab" / "index.html").write_text(f'<a href="{wheel.name}#sha256={digest}">{wheel.name}</a>\n')
    (site.dir / "run" / "jupyter.txt").write_text(f"jupyterlab==4.6.6 \\\n    --hash=sha256:{digest}\n")
    site.spawn(
        [sys.executable, "-m", "http.server", "--bind", "10.78.0.1", "--directory", str(folder), str(INDEX_PORT)],
        "index",
    )


def play(inside, *options, tried=TRIED, ok=True):
    """One run of the playbook: (exit status, {host: {ok, changed, failed}}, output)."""
    values = {
        "roles_tried": tried,
        "container_runtime_folder": "/scratch",
        "data_science_index": f"http://10.78.0.1:{INDEX_PORT}",
        "data_science_pip_arguments": ["--trusted-host", "10.78.0.1"],
        "data_science_requirements": {"jupyter": str(inside.site.dir / "run" / "jupyter.txt")},
        "infiniband_fabric_sweep_interval": 2,
        "metrics_cluster": True,
    }
    command = inside.argv(
        "ansible-playbook", "-i", "inventory/lab", "tests/lab/roles.yml", "-e", json.dumps(values), *options
    )
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    recap = {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", done.stdout.rpartition("PLAY RECAP")[2])}
    assert not ok or done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    return done.returncode, recap, done.stdout + done.stderr


@pytest.fixture(scope="module")
def applied(inside):
    return play(inside)[1]


def out(site, command, **options):
    return site.ssh("head", command, **options).stdout


def test_everything_is_applied_once(applied):
    assert applied["changed"] > 20 and applied["failed"] == 0


def test_the_second_run_changes_nothing(inside, applied):
    assert play(inside)[1]["changed"] == 0


def test_check_mode_changes_nothing_and_sees_nothing_to_do(inside, applied):
    assert play(inside, "--check")[1] | {"ok": 0, "skipped": 0} == {
        "ok": 0,
        "changed": 0,
        "unreachable": 0,
        "failed": 0,
        "skipped": 0,
        "rescued": 0,
        "ignored": 0,
    }


LIBRARIES = "lib lib64 usr/lib64 usr/lib/x86_64-linux-gnu/libc.so.6 usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"
IMAGE = f"tar -c -C / usr/bin/echo usr/bin/sleep {LIBRARIES}"


def test_docker_runs_a_container_that_outlives_its_daemon(site, applied):
    info = json.loads(out(site, ["docker", "info", "--format", "{{json .}}"]))
    expected = (True, "systemd", "/scratch/docker")
    assert (info["LiveRestoreEnabled"], info["CgroupDriver"], info["DockerRootDir"]) == expected
    site.ssh("head", f"{IMAGE} | docker import - tiny")
    assert out(site, "docker run --rm --net=none tiny /usr/bin/echo hello") == "hello\n"
    number = out(site, "docker run --detach --net=none tiny /usr/bin/sleep 600").strip()
    site.ssh("head", "systemctl restart docker")
    assert out(site, "docker ps --quiet --no-trunc").split() == [number]


def test_no_daemon_restarts_under_a_container(site, inside, applied):
    """Comes after the test before: its container runs."""
    code, _, said = play(inside, "-e", "container_runtime_docker_log_size=7m", tried=["container_runtime"], ok=False)
    assert code == 2 and "containers run on head, and a setting of their daemon is to change" in said
    assert "7m" not in out(site, "cat /etc/docker/daemon.json")
    site.ssh("head", "docker rm --force $(docker ps --quiet)")


def test_containerd_runs_a_container(site, applied):
    config = out(site, "containerd config dump")
    assert re.search(r"SystemdCgroup = true", config) and re.search(r"enable_cdi = true", config)
    site.ssh("head", "docker save tiny | ctr images import -")
    # no cpu controller in the lab's hosts
    run = "ctr run --rm --cpu-shares 0 docker.io/library/tiny:latest test /usr/bin/echo hello"
    assert out(site, run) == "hello\n"


def test_apptainer_and_enroot_are_set_up(site, applied):
    """Their packages are stubs: only the settings are real."""
    assert "allow setuid = no" in out(site, "cat /etc/apptainer/apptainer.conf")
    site.ssh("head", "test ! -e /usr/libexec/apptainer/bin/starter-suid")
    settings = dict(
        line.split(None, 1)
        for line in out(site, "cat /etc/enroot/enroot.conf").splitlines()
        if not line.startswith("#")
    )
    assert settings["ENROOT_DATA_PATH"] == "/scratch/enroot/data/user-$(id -u)"
    assert out(site, "stat -c %a /scratch/enroot/data /run/enroot /run/pyxis").split() == ["1777"] * 3
    assert "user.max_user_namespaces = 65536" in out(site, "cat /etc/sysctl.d/90-ironburst-namespaces.conf")


def test_the_declared_subnet_manager_is_master_with_its_priority(site, applied):
    assert re.search(r"priority 14 state 3 SMINFO_MASTER", out(site, "sminfo"))
    expected = ["active", "inactive", "inactive"]
    assert out(site, "systemctl is-active ironburst-opensm lab-opensm opensm", check=False).split() == expected
    rules = [line for line in out(site, "cat /etc/opensm/partitions.conf").splitlines() if not line.startswith("#")]
    assert rules == ["Default=0x7fff, ipoib : ALL=full;"]


def test_a_link_that_goes_down_is_told(site, applied):
    check = "ironburst-fabric check --json"
    assert json.loads(out(site, check))["problems"] == []
    site.ssh("head", "echo 'Unlink \"dgx01\"[1]' > /run/lab-ibsim.commands")
    wait_for(lambda: "was up and is not any more" in out(site, check, check=False), 20, "the lost link", pause=0.5)
    site.ssh("head", "echo 'Relink \"dgx01\"[1]' > /run/lab-ibsim.commands")
    wait_for(
        lambda: json.loads(out(site, check, check=False) or '{"problems": [1]}')["problems"] == [],
        30,
        "the link again",
        pause=0.5,
    )


def scrape(address):
    return [
        "python3",
        "-c",
        f"import urllib.request as u; print(u.urlopen('http://{address}:9100/metrics', timeout=10).read().decode())",
    ]


def test_prometheus_can_scrape_the_host_and_what_the_checks_left(site, applied):
    scraped = out(site, scrape("10.78.0.10"))
    assert re.search(r"^node_load1 ", scraped, re.MULTILINE)
    assert re.search(r"^ironburst_fabric_subnet_managers 1$", scraped, re.MULTILINE)
    # there is no Slurm on this host: said, not left out
    assert re.search(r'^ironburst_up{source="slurm"} 0$', scraped, re.MULTILINE)
    assert re.search(r"ironburst_fabric_ports_up 1[0-9]$", scraped, re.MULTILINE)
    assert site.ssh("head", scrape("127.0.0.1"), check=False).returncode != 0


def test_a_framework_is_a_module(site, applied):
    ask = 'python -c "import jupyterlab; print(jupyterlab.__version__)" && command -v python'
    loaded = out(site, f"bash -lc 'module load jupyter && {ask}'")
    version, python = loaded.split()
    assert version == "4.6.6" and python.startswith("/opt/ironburst/envs/jupyter-4.6.6-")


def test_scratch_says_why_it_has_no_device(inside, applied):
    """The lab's hosts have no NVMe device; devices are tried in test_scratch_devices.py."""
    code, _, said = play(inside, tried=["scratch"], ok=False)
    assert code == 2 and "no unused local NVMe device for /scratch: there is none at all" in " ".join(said.split())


def test_a_shared_file_system_is_planned_but_can_not_be_mounted(inside, applied):
    """The machine's kernel has no NFS: check mode passes, and the real run fails at the mount and says so."""
    assert play(inside, "--check", tried=["shared_filesystem"])[1]["changed"] > 0
    code, _, said = play(inside, tried=["shared_filesystem"], ok=False)
    assert code == 2 and "shared.mount" in said
