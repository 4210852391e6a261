"""Each system that a host of the lab can have, booted; and what the real dnf says of NVIDIA's module streams."""

import json
import os
import sys
from pathlib import Path

import pytest

from lab.hosts import systems
from lab.hosts.spec import bare_metal
from lab.packages import rpm_repository
from tests import sites

pytestmark = [pytest.mark.lab, pytest.mark.slow]
ADDRESSES = {name: f"10.78.0.{30 + number}" for number, name in enumerate(sorted(systems.SYSTEMS))}
FACTS = ("distribution", "distribution_version", "os_family", "pkg_mgr", "service_mgr")
DRIVER = ("nvidia-driver-cuda", "nvidia-persistenced", "kmod-nvidia-open-dkms")


@pytest.fixture(scope="module")
def site():
    with sites.running(f"t-systems-{os.getpid()}", hall={}) as site:
        for name, address in ADDRESSES.items():
            site.start_host(bare_metal(name, address, system=name, hosts={}, files={}))
        assert set(site.wait(ADDRESSES, 180).values()) == {"running"}
        yield site


@pytest.fixture(scope="module")
def facts(site, tmp_path_factory):
    """What Ansible finds on each host, by system."""
    command = site.host("debian13").ssh_argv()
    key, *options, _ = command[command.index("-i") + 1 :]
    tree = tmp_path_factory.mktemp("facts")
    ansible = [str(Path(sys.executable).with_name("ansible")), "all", "-i", ",".join(ADDRESSES.values()) + ","]
    access = ["-u", "root", "--private-key", key, f"--ssh-common-args={' '.join(options)}"]
    subset = "gather_subset=!all,!min,distribution,pkg_mgr,service_mgr"
    module = ["-m", "setup", "-a", subset, "--tree", str(tree)]
    done = site.run([*ansible, *access, *module], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    found = {path.name: json.loads(path.read_text())["ansible_facts"] for path in tree.iterdir()}
    return {name: tuple(found[address][f"ansible_{fact}"] for fact in FACTS) for name, address in ADDRESSES.items()}


@pytest.mark.parametrize(
    ("system", "expected"),
    [
        ("debian12", ("Debian", "12", "Debian", "apt", "systemd")),
        ("debian13", ("Debian", "13", "Debian", "apt", "systemd")),
        ("ubuntu2204", ("Ubuntu", "22.04", "Debian", "apt", "systemd")),
        ("ubuntu2404", ("Ubuntu", "24.04", "Debian", "apt", "systemd")),
        ("rhel9", ("Rocky", "9.6", "RedHat", "dnf", "systemd")),
        ("rhel10", ("Rocky", "10.0", "RedHat", "dnf", "systemd")),
    ],
)
def test_ansible_sees_the_system(facts, system, expected):
    found = facts[system]
    assert (found[0], found[1].split(".")[0] if expected[0] == "Debian" else found[1], *found[2:]) == expected


@pytest.fixture(scope="module")
def rocky(site):
    """Runs dnf on the Rocky 9 host: (exit code, what it says)."""
    for name in ("rhel9", "rhel10"):
        rpm_repository.serve(site.box, name)
        for path, text in rpm_repository.client_files(name).items():
            site.ssh(name, f"cat > {path}", stdin=text)

    def dnf(*words, host="rhel9"):
        done = site.ssh(host, ["dnf", "-y", *words], check=False, timeout=120)
        return done.returncode, done.stdout + done.stderr

    return dnf


def test_nothing_of_debian_is_left_in_reach(site):
    for name in ("rhel9", "rhel10"):
        assert site.ssh(name, "command -v apt-get apt dpkg; ls /etc/debian_version", check=False).stdout == ""


def test_an_older_branch_is_filtered_out_until_its_stream_is_on(rocky):
    wanted = [f"{name}-580.95.05" for name in DRIVER]
    code, said = rocky("install", *wanted)
    assert code == 1 and "filtered out by modular filtering for argument: nvidia-driver-cuda-580.95.05" in said
    assert rocky("module", "enable", "nvidia-driver:580-open")[0] == 0
    code, said = rocky("install", *wanted)
    assert code == 0, said


def test_one_package_of_the_driver_has_no_version_of_its_own(site, rocky):
    """nvidia-kmod-common asks for nvidia-modprobe of any version: it has to be named."""
    query = ["rpm", "-q", "--qf", "%{version}\\n", "nvidia-modprobe", "nvidia-driver-cuda"]
    assert site.ssh("rhel9", query).stdout.split() == ["580.126.09", "580.95.05"]


def test_another_stream_is_refused_while_one_is_on(rocky):
    code, said = rocky("module", "enable", "nvidia-driver:595-open")
    assert code == 1 and "not possible to switch enabled streams" in said


def test_a_lock_of_versions_hides_the_next_one(rocky):
    assert rocky("versionlock", "add", *DRIVER)[0] == 0
    code, said = rocky("install", "nvidia-driver-cuda-580.126.09")
    assert code == 1 and "filtered out by exclude filtering" in said
    assert rocky("versionlock", "delete", *DRIVER)[0] == 0
    assert rocky("install", *(f"{name}-580.126.09" for name in DRIVER))[0] == 0


def test_el_10_has_no_streams(rocky):
    assert rocky("module", "list", host="rhel10")[1].count("nvidia-driver") == 0
    code, said = rocky("install", *(f"{name}-580.95.05" for name in DRIVER), host="rhel10")
    assert code == 0, said


def test_a_package_that_nobody_signed_is_refused(site, rocky):
    site.ssh(
        "rhel9",
        "rm -rf /tmp/x; mkdir /tmp/x; cd /tmp/x; dnf -q -y download nvlsm; rpmsign --delsign *.rpm; createrepo_c -q .",
    )
    unsigned = "[unsigned]\nname=unsigned\nbaseurl=file:///tmp/x\ngpgcheck=1\n"
    site.ssh("rhel9", "cat > /etc/yum.repos.d/unsigned.repo", stdin=unsigned)
    try:
        code, said = rocky("install", "--repo", "unsigned", "nvlsm")
        assert code == 1 and "is not signed" in said
    finally:
        site.ssh("rhel9", "rm /etc/yum.repos.d/unsigned.repo")
