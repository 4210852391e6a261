"""The roles of a GPU node, but Slurm's, on each system: installed, again without a change, upgraded; and the image of
such a node, Slurm in it (tests/lab/test_slurm_packages.py runs that). The solvers, pins and locks are the systems' own;
the packages are stubs, Slurm's are SchedMD's, and an Ubuntu or EL is Debian's userland (lab/hosts/systems.py).
"""

import os

import pytest

from lab.hosts import systems
from lab.packages import schedmd
from tests import sites
from tests.lab.gpu_nodes import ADDRESSES, BAKERS, Systems

pytestmark = [pytest.mark.lab, pytest.mark.slow]
CHOSEN = [name for name in ADDRESSES if name in os.environ.get("LAB_SYSTEMS", " ".join(ADDRESSES)).split()]
FIRST, NEWER = "580.95.05", "580.105.08"
INSTALLED = {
    "debian": "dpkg-query -W -f '${Package} ${Version}\\n' | grep -E '^[^ ]*(nvidia|libcuda|libnv|firmware-nv)'",
    "rhel": "rpm -qa --qf '%{name} %{version}\\n' | grep -E 'nvidia|libnv'",
}
# NVIDIA's of another version; Ubuntu's firmware has its version in its name, and a former one stays until somebody
# asks apt for autoremove
APART = ("container", "pinning", "nvidia-firmware-580-")


@pytest.fixture(scope="module")
def hall():
    with sites.running(f"t-sysdrv-{os.getpid()}", hall={}) as site:
        hall = Systems(site, CHOSEN)
        hall.declare()
        yield hall


@pytest.fixture(scope="module")
def first(hall):
    """What the first converge said, by host."""
    return hall.play()[0]


each = pytest.mark.parametrize("name", CHOSEN)


def versions(hall, name, host=None):
    """{version of a driver's package} without its revision, on the host of a system."""
    lines = hall.says(host or name, INSTALLED[systems.of(name).family]).splitlines()
    found = [line.split() for line in lines if not any(word in line for word in APART)]
    assert len(found) > 8, lines
    return {version.partition("-")[0] for _, version in found}


def test_validate_asks_each_solver_and_says_what_it_refuses(hall):
    assert {
        name: counts["failed"] for name, counts in hall.play(playbook="playbooks/validate.yml")[0].items()
    } == dict.fromkeys(CHOSEN, 0)
    rhel = next((name for name in CHOSEN if systems.of(name).family == "rhel"), None)
    if rhel is None:
        pytest.skip("LAB_SYSTEMS names no EL")
    without = [each for each in hall.repositories[rhel]["base_dnf_repositories"] if each["name"] != "epel"]
    limit = ("--limit", rhel)
    _, said = hall.play(*limit, playbook="playbooks/validate.yml", ok=False, base_dnf_repositories=without)
    said = " ".join(said.split())
    assert "dnf can't install the locked packages: no repository has apptainer" in said, said[-2000:]


@each
def test_the_first_converge_installs_the_locked_driver(hall, first, name):
    assert first[name]["failed"] == 0 and first[name]["changed"] > 5
    assert versions(hall, name) == {FIRST}
    smi = "nvidia-smi --query-gpu=driver_version,persistence_mode --format=csv,noheader | sort -u"
    assert hall.says(name, smi) == f"{FIRST}, Enabled"


@each
def test_the_gate_is_passed_over_the_fabric(hall, first, name):
    assert hall.says(name, "test -e /run/ironburst/gate.ok && ibstat | grep -c 'State: Active'") == "1"
    assert hall.says(name, "/usr/local/cuda-13.0/bin/nvcc --version | grep -o 'release 13.0'") == "release 13.0"
    assert hall.says(name, "systemctl is-active nvidia-dcgm; systemctl is-enabled nvidia-dcgm") == "active\nenabled"


def test_the_second_changes_nothing_and_check_mode_sees_nothing_to_do(hall, first):
    assert {name: counts["changed"] for name, counts in hall.play()[0].items()} == dict.fromkeys(CHOSEN, 0)
    assert {name: counts["changed"] for name, counts in hall.play("--check")[0].items()} == dict.fromkeys(CHOSEN, 0)


@each
def test_an_upgrade_of_everything_leaves_the_driver_alone(hall, first, name):
    family = systems.of(name).family
    command = "dnf -q -y upgrade" if family == "rhel" else "apt-get -qq update && apt-get -qq -y dist-upgrade"
    done = hall.site.ssh(name, command, check=False, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    assert versions(hall, name) == {FIRST}


def test_a_newer_driver_replaces_all_of_it(hall, first):
    hall.declare(driver=NEWER)
    recap, _ = hall.play()
    for name in CHOSEN:
        installed = hall.says(name, INSTALLED[systems.of(name).family])
        assert recap[name]["failed"] == 0 and versions(hall, name) == {NEWER}, (name, installed)
    smi = "nvidia-smi --query-gpu=driver_version,persistence_mode --format=csv,noheader | sort -u"
    assert {name: hall.says(name, smi) for name in CHOSEN} == dict.fromkeys(CHOSEN, f"{NEWER}, Enabled")
    assert {name: counts["changed"] for name, counts in hall.play()[0].items()} == dict.fromkeys(CHOSEN, 0)


@pytest.fixture(scope="module")
def with_slurm(hall, first):
    hall.serve_slurm()
    hall.declare(driver=NEWER, slurm_packages="schedmd", more_in_images=["slurm_node"])


@each
def test_the_image_of_such_a_node_is_baked_and_boots(hall, with_slurm, name):
    told = hall.builder(name)
    variables = {f"image_{key}": value for key, value in told.items()}
    assert hall.play(playbook="playbooks/image.yml", **variables)[0][f"image-{name}"]["failed"] == 0
    instance = BAKERS[name][0]
    hall.site.bake_image(instance, f"baked-{name}")
    hall.site.destroy_host(instance)
    hall.builder(name, image=f"baked-{name}")
    assert versions(hall, name, instance) == {NEWER}
    smi = "nvidia-smi --query-gpu=driver_version --format=csv,noheader | sort -u"
    assert hall.says(instance, smi) == NEWER
    assert hall.says(instance, "systemctl is-enabled nvidia-dcgm nvidia-persistenced") == "enabled\nenabled"
    assert hall.says(instance, "slurmd -V") == f"slurm {schedmd.VERSION}"
    hall.site.destroy_host(instance)
