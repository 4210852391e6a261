"""Planted secrets are where they are used and nowhere else: real hosts, Ansible, an image, and every process that runs
on the way. What needs no host: tests/test_planted_secrets.py.

Hosts have a secret where it belongs (/etc/munge/munge.key, /etc/sssd/sssd.conf), for root or one service to read: what
is searched there is all that anybody may read, and the journal. Of an image all of it is searched.
"""

import base64
import json
import os
import threading

import pytest

from ironburst.baking.first_contact import host_keys
from lab.demo.inside import Inside
from lab.hosts import rootfs, spec
from tests import sites
from tests.planted import Plants, Processes
from tests.playbooks import sample

pytestmark = [pytest.mark.lab, pytest.mark.slow]
HALL = ("head", "dgx01")
BAKER, ADDRESS = "i-0000000000000ba5e", "10.90.9.7"
MAKE = """useradd --create-home --shell /bin/bash ops && install -d -o ops -g ops -m 700 ~ops/.ssh
install -o ops -g ops -m 600 /root/.ssh/authorized_keys ~ops/.ssh/ && chpasswd
printf 'Defaults timestamp_timeout=0\\nops ALL=(ALL) ALL\\n' > /etc/sudoers.d/ops
"""
READABLE = "find / -xdev -path /usr -prune -o -type f -perm -o=r -size -4M -print0"
PACKED = f"{READABLE} | tar --create --gzip --null --ignore-failed-read --files-from=- | base64"
IN_IMAGE = ("etc", "var", "root", "home", "tmp", "opt", "srv", "run", "usr/local")


class Artifacts:
    """All that lies in a folder while the block runs, also what is deleted again."""

    def __init__(self, plants, folder):
        self.plants, self.folder, self.said, self.files = plants, folder, set(), set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self):
        while not self._over.wait(0.2):
            for path in list(self.folder.rglob("*")):
                try:
                    if path.is_file() and path.stat().st_size < 20_000_000:
                        seen = (str(path), path.stat().st_size)
                        if seen not in self.files:
                            self.files.add(seen)
                            self.said |= set(self.plants.found(str(path), path.read_bytes()))
                except OSError:  # deleted meanwhile
                    continue

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()


@pytest.fixture(scope="module")
def plants():
    return Plants()


@pytest.fixture(scope="module")
def inside(plants):
    """A hall whose login user has a password for sudo, and whose users are a directory's. All by file: the lab itself
    gives a program its environment on the command line.
    """
    with sites.running(f"t-plant-{os.getpid()}", *HALL) as site:
        inside = Inside(site)
        sudo, directory, munge = (site.dir / "secrets" / name for name in ("sudo", "directory", "munge"))
        sudo.parent.mkdir(mode=0o700)
        munge.write_text(plants.plant("munge key", "m" * 40 + "{}"))
        sudo.write_text(plants.plant("sudo password", 'correct <{}> "$'))
        directory.write_text(plants.plant("directory password", "reader-{}-%"))
        for name in HALL:
            site.ssh(name, MAKE, stdin=f"ops:{plants.values['sudo password']}\n")
        of_directory = {"uri": "ldaps://ldap.example.org", "base": "dc=example,dc=org", "bind_dn": "cn=sssd,dc=example"}
        declare = {
            "ssh": {"user": "ops", "sudo_password": f"file:{sudo}"},
            "users": {
                "homes": "/shared/home",
                "rented": "nss_slurm",
                "directory": of_directory | {"bind_password": f"file:{directory}"},
            },
        }
        sample.publish(inside.document, munge_key=f"file:{munge}", names=HALL, declare=declare)
        inside.temporary = site.dir / "tmp"
        inside.temporary.mkdir()
        inside.env["TMPDIR"] = str(inside.temporary)
        yield inside


@pytest.fixture(scope="module")
def converged(inside, plants):
    """Converged, looked at, and converged again with everything told -> what was seen on the way."""
    with Processes() as processes, Artifacts(plants, inside.temporary) as artifacts:
        sites.converge(inside)
        sites.converge(inside, "--always")
        told = inside.run(
            ["ansible-playbook", "-i", "inventory/lab", "playbooks/site.yml", "--diff", "-vv", "--limit", "dgx01"],
            log="site",
        )
    return processes, artifacts, told


def test_secrets_are_where_they_are_used(inside, plants, converged):
    """Else nothing was planted."""
    for name in HALL:
        key = inside.site.ssh(name, "base64 /etc/munge/munge.key").stdout
        assert plants.found("its place", base64.b64decode(key)) == ["its place: munge key"]
        sssd = inside.site.ssh(name, "cat /etc/sssd/sssd.conf").stdout
        assert plants.found("its place", sssd) == ["its place: directory password"]


def test_no_process_artifact_log_receipt_or_document_has_one(inside, plants, converged):
    processes, artifacts, told = converged
    here = inside.site.dir
    assert len(processes.seen) > 50 and any("artifacts" in path for path, _ in artifacts.files)
    assert any(b"ansible-playbook" in line for line in processes.seen)
    assert any(b"slurmd" in line for line in processes.seen), "the hosts' own too"
    said = plants.found("processes", b"\n".join(processes.seen)) + sorted(artifacts.said)
    said += plants.found("playbook", told)
    for folder in ("run", "log", "shared"):
        said += plants.in_folder(here / folder)
    assert said == []
    assert inside.document.exists() and list((here / "run" / "state").rglob("dgx01.json"))


@pytest.mark.parametrize("name", HALL)
def test_nobody_reads_one_on_a_host(inside, plants, converged, name):
    done = inside.site.ssh(name, PACKED)
    said = plants.found(f"{name}: what anybody may read", base64.b64decode(done.stdout))
    said += plants.found(f"{name}: journal", inside.site.ssh(name, "journalctl --no-pager").stdout)
    said += plants.found(f"{name}: processes", inside.site.ssh(name, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '").stdout)
    assert said == []


def test_what_variables_of_roles_refer_to_is_in_its_file_alone(inside, plants, converged):
    """Those that no declaration has. The join token of a Kubernetes node: test_kubernetes_node.py."""
    of_roles = {
        "kubernetes_head_ca_key": "/etc/kubernetes/pki/ca.key",
        "shared_filesystem_beegfs_secret": "/etc/beegfs/conn.auth",
    }
    given = {
        "guarded_steps": ["kubernetes_head/authority", "shared_filesystem/configure"],
        "cluster_scheduler": {"ca": "a certificate"},
        "shared_filesystem_kind": "beegfs",
        "shared_filesystem_source": "storage01",
    }
    for name in of_roles:
        path = inside.site.dir / "secrets" / name
        path.write_text(plants.plant(name))
        given[name] = f"file:{path}"
    command = [
        "ansible-playbook",
        "-i",
        "inventory/lab",
        "tests/lab/guarded.yml",
        "--diff",
        "-vv",
        "-e",
        json.dumps(given),
    ]
    with Processes() as processes, Artifacts(plants, inside.temporary) as artifacts:
        told = inside.run(command, log="site")
    for name, path in of_roles.items():
        assert plants.found("its place", inside.site.ssh("dgx01", f"cat {path}").stdout) == [f"its place: {name}"], told
        assert inside.site.ssh("dgx01", f"stat -c %a {path}").stdout in ("400\n", "600\n")
    said = plants.found("processes", b"\n".join(processes.seen)) + sorted(artifacts.said)
    said += plants.found("playbook", told)
    said += plants.found("may be read", base64.b64decode(inside.site.ssh("dgx01", PACKED).stdout))
    said += plants.found("journal", inside.site.ssh("dgx01", "journalctl --no-pager").stdout)
    assert said == []


def test_an_image_has_none(inside, plants, converged):
    site = inside.site
    site.start_host(spec.cloud(BAKER, ADDRESS, "p5.48xlarge"))
    site.wait([BAKER])
    public = rootfs.ssh_key(site.box.root).with_suffix(".pub").read_text()
    site.ssh(BAKER, "install -d -m 700 -o admin -g admin ~admin/.ssh")
    site.ssh(BAKER, "cat > ~admin/.ssh/authorized_keys; chown admin: ~admin/.ssh/authorized_keys", stdin=public)
    known = site.dir / "run" / "known_hosts"
    known.write_text("".join(f"{ADDRESS} {line}\n" for line in host_keys(site.host(BAKER).console())))
    given = {"pool": "p5", "address": ADDRESS, "user": "admin", "known_hosts": str(known)}
    options = [word for name, value in given.items() for word in ("-e", f"image_{name}={value}")]
    with Processes() as processes, Artifacts(plants, inside.temporary) as artifacts:
        inside.run(["ansible-playbook", "-i", "inventory/lab", "playbooks/image.yml", *options], log="image")
    image = site.bake_image(BAKER, "planted-image")
    said = plants.found("processes", b"\n".join(processes.seen)) + sorted(artifacts.said)
    for folder in IN_IMAGE:
        said += plants.in_folder(image / folder)
    assert said + plants.in_folder(site.dir / "log") == []
    assert (image / "etc").is_dir() and (image / "var/lib/dpkg/status").exists()
