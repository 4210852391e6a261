"""A dressed Ubuntu 24.04 with stubs of what DGX OS brings, from a repository of its own: validate.yml asks the real
apt, names what the lock would take away, and refuses it until somebody allows it or the node says that it runs DGX OS.
"""

import os

import pytest

from tests import sites
from tests.lab.gpu_nodes import Systems

pytestmark = [pytest.mark.lab, pytest.mark.slow]
NAME = "ubuntu2404"
DRIVER = ("base", "nvidia_driver", "fabric_manager")
# Relations as Docker's own packages have them
BROUGHT = {
    "containerd.io": "1.7.22-1\nConflicts: containerd, runc\nReplaces: containerd, runc\nProvides: containerd, runc",
    "docker-ce": "5:27.3.1-1~ubuntu.24.04~noble\nDepends: containerd.io\nConflicts: docker, docker.io",
}
INSTALL = """set -e; mkdir -p /opt/dgx; cd /opt/dgx; d=$(mktemp -d); mkdir "$d/DEBIAN"; cat > "$d/DEBIAN/control"
dpkg-deb -b "$d" new.deb; name=$(dpkg-deb -f new.deb Package); mv new.deb "$name.deb"; dpkg -i "$name.deb"
{ dpkg-deb -f "$name.deb"; echo "Filename: ./$name.deb"; echo "Size: $(stat -c %s "$name.deb")"
  echo "SHA256: $(sha256sum "$name.deb" | cut -d" " -f1)"; echo; } >> Packages
echo "deb [trusted=yes] file:/opt/dgx ./" > /etc/apt/sources.list.d/dgx.list"""


@pytest.fixture(scope="module")
def hall():
    with sites.running(f"t-dgx-{os.getpid()}", hall={}) as site:
        hall = Systems(site, [NAME])
        for name, rest in BROUGHT.items():
            control = f"Package: {name}\nVersion: {rest}\nArchitecture: all\nMaintainer: lab\nDescription: STUB\n"
            site.ssh(NAME, INSTALL, stdin=control)
        hall.says(NAME, "apt-get -qq update")
        hall.declare()
        yield hall


def validated(hall, *, ok, **variables):
    """(hosts that were refused, what was said)"""
    recap, said = hall.play(playbook="playbooks/validate.yml", ok=ok, **variables)
    return recap[NAME]["failed"], " ".join(said.split())


def test_what_the_lock_would_take_away_is_named_and_refused(hall):
    failed, said = validated(hall, ok=False)
    assert failed == 1 and "would lose " in said, said[-3000:]
    for name, rest in BROUGHT.items():
        version = rest.splitlines()[0]
        assert f"{name} {version} (from file:/opt/dgx" in said, said[-3000:]
    assert validated(hall, ok=False, base_may_remove=["docker-ce*"])[0] == 1


def test_a_declared_word_allows_it(hall):
    assert validated(hall, ok=True, base_may_remove=["docker-ce", "containerd.io"])[0] == 0


def test_a_node_that_says_what_it_runs_keeps_it(hall):
    hall.declare(dgx_os=True, container_runtime=["docker", "containerd"])
    assert validated(hall, ok=True)[0] == 0
    hall.declare(DRIVER, dgx_os=True)
    assert hall.play()[0][NAME]["failed"] == 0
    found = hall.says(NAME, "dpkg-query -W -f '${Package} ${Status}\\n' nvidia-driver-580-open docker-ce containerd.io")
    assert found.count("install ok installed") + found.count("hold ok installed") == 3, found
    assert hall.play()[0][NAME]["changed"] == 0
