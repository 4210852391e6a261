"""The lab's signed apt repositories: `nv` (stub packages) and `debian` (real packages, mirrored), so that hosts need no
way out.

Cached as .lab/cache/repo-<hash of the recipe>/ and served at http://10.78.0.1/: nv/, debian/, lab.gpg and lab.asc (the
key).
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path

from lab import names
from lab.hosts import cache, rootfs
from lab.hosts.box import Box
from lab.packages import apt
from lab.packages.stub_packages import stub_packages
from lab.system import LAB_ROOT, run, wait_for

# Real Debian packages for the roles; their dependencies come along. Add here what a role installs.
PACKAGES = [
    "slurmctld",
    "slurmd",
    "slurmdbd",
    "slurm-client",
    "sackd",
    "slurm-wlm",
    "slurm-wlm-mysql-plugin",
    "munge",
    "mariadb-server",
    "mariadb-client",
    "python3-pymysql",
    "postgresql",
    "python3-psycopg",
    "containerd",
    "runc",
    "rdma-core",
    "ibverbs-utils",
    "ibverbs-providers",
    "infiniband-diags",
    "opensm",
    "perftest",
    "python3-argcomplete",
    "python3-boto3",
    "gnupg",
    "gpgv",
    "numactl",
    "hwloc",
    "prometheus-node-exporter",
    "prometheus",
    "prometheus-alertmanager",
    "chrony",
    "curl",
    "jq",
    "acl",
    "rsync",
    "logrotate",
    "sudo",
    "ethtool",
    "nvme-cli",
    "smartmontools",
    "apt-transport-https",
    "python3-yaml",
    "udev",
    "docker.io",
    "docker-cli",
    "iptables",
    "nftables",
    "xfsprogs",
    "mdadm",
    "nfs-common",
    "lmod",
    "python3-venv",
    "python3-jinja2",
    "python3-numpy",
    "python3-pydantic",
    "python3-rich",
    "python3-starlette",
    "python3-uvicorn",
    "libpam-slurm-adopt",
    "sssd-ldap",
    "sssd-tools",
    "libnss-sss",
    "libpam-sss",
    "slapd",
    "ldap-utils",
    "postfix",
    "python3-botocore",
    "python3-markupsafe",
    "python3-requests",
    "python3-sushy",
    "python3-urllib3",
]
SERVED = "served"  # folder of a lab


def repo_path(root: Path = LAB_ROOT) -> Path:
    """Where the repositories of today's recipe lie (or will lie)."""
    stubs = [astuple(package) for package in stub_packages()]
    code = [cache.code_of(function) for function in (_build, mirror, *apt.STEPS)]
    return cache.path_of("repo", root, rootfs.base_path(root).name, PACKAGES, stubs, code)


def repositories(root: Path = LAB_ROOT) -> Path:
    """Folder of the repositories; built now (about a minute) if it isn't there. Several callers at once build it
    once.
    """
    rootfs.base_image(root)
    return cache.built("lab.packages.repository", root, repo_path(root))


def key_sha256(root: Path = LAB_ROOT) -> str:
    """SHA-256 of the signing key's file, lab.asc."""
    return cache.sha256(repositories(root) / "lab.asc")


def client_files(name: str, keyring: str = "/usr/share/keyrings/lab.gpg") -> dict[str, str]:
    """{path: text} of the apt source that a host needs for repository `name` ("nv" or "debian"), its key being at
    `keyring`.
    """
    text = f"Types: deb\nURIs: {names.REPOSITORY_URL}/{name}\nSuites: stable\nComponents: main\nSigned-By: {keyring}\n"
    return {f"/etc/apt/sources.list.d/lab-{name}.sources": text}


def serve(box: Box) -> int:
    """Start the web server of the repositories in the box; returns its pid in the box once it answers. It serves what
    lies in `served`: another system's repositories can be put beside them.
    """
    folder = box.dir / SERVED
    folder.mkdir(exist_ok=True)
    for part in repositories(box.root).iterdir():
        (folder / part.name).symlink_to(part)
    server = [sys.executable, "-m", "http.server", "--protocol", "HTTP/1.1"]
    log = box.dir / "log" / "repo.log"
    pid = box.spawn([*server, "--bind", names.HALL_GATEWAY, "--directory", str(folder), "80"], log)
    fetch = f"import urllib.request as u; u.urlopen('{names.REPOSITORY_URL}/lab.asc', timeout=2)"
    client = [*box.net_prefix(), sys.executable, "-c", fetch]

    def answers() -> bool:
        return subprocess.run(client, capture_output=True).returncode == 0

    wait_for(answers, 10, "the repository server (see log/repo.log)")
    return pid


# --- building: runs in its own mount namespace ------------------------------------------------------------------------


def _build(root: Path, target: Path) -> None:
    new = target.with_suffix(".new")
    shutil.rmtree(new, ignore_errors=True)
    for name in ("nv", "debian"):
        (new / name / "pool").mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="lab-repo-") as scratch:
        for package in stub_packages():
            apt.pack(package, Path(scratch), new / "nv/pool")
    mirror(root, new / "debian/pool", rootfs.SUITE, PACKAGES)
    for name in ("nv", "debian"):
        apt.index(new / name, {"Origin": f"lab-{name}", "Label": f"lab-{name}"})
    apt.sign(new, ("nv", "debian"))
    new.rename(target)


def mirror(root: Path, pool: Path, suite: str, packages: Sequence[str]) -> None:
    """Download packages of Debian and all they need beyond the suite's base image: apt itself works it out in a
    throw-away overlay of the base.
    """
    scratch = pool.with_name("mirror")
    shutil.rmtree(scratch, ignore_errors=True)
    up, work, mount = (scratch / name for name in ("up", "work", "mnt"))
    for folder in (up, work, mount):
        folder.mkdir(parents=True)
    layers = f"lowerdir={rootfs.base_image(root, suite)},upperdir={up},workdir={work}"
    run(["mount", "-t", "overlay", "overlay", "-o", layers, str(mount)])
    (mount / "etc/apt/sources.list").write_text(rootfs.apt_sources(suite))
    shutil.copy("/etc/resolv.conf", mount / "etc/resolv.conf")
    env = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    install = ["chroot", str(mount), "apt-get", "install", "-y", "-qq", "--no-install-recommends"]
    run(["chroot", str(mount), "apt-get", "update", "-qq"], env=env)
    listing = run([*install, "--print-uris", *packages], env=env)  # lines 'URI' FILE SIZE HASH
    wanted = {line.split()[1] for line in listing.splitlines() if line.startswith("'")}
    archives = mount / "var/cache/apt/archives"
    for old in (root / "cache").glob("*/debian/pool/*.deb"):  # apt keeps what is still right, and fetches the rest
        if old.name in wanted and not (archives / old.name).exists():
            shutil.copy(old, archives)
    run([*install, "--download-only", *packages], env=env)
    for name in sorted(wanted):
        shutil.move(archives / name, pool / name)
    run(["umount", str(mount)])
    shutil.rmtree(scratch)


if __name__ == "__main__":
    cache.main(repo_path, _build)
