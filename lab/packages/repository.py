"""The lab's signed apt repositories: `nv` (stub packages) and `debian` (real packages, mirrored), so that hosts need no
way out.

Cached as .lab/cache/repo-<hash of the recipe>/ and served at http://10.78.0.1/: nv/, debian/, lab.gpg and lab.asc (the
key).
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import astuple
from pathlib import Path

from lab import names
from lab.hosts import cache, rootfs
from lab.hosts.box import Box
from lab.packages.stub import StubPackage
from lab.packages.stub_packages import stub_packages
from lab.system import LAB_ROOT, run, wait_for

# Real Debian packages for the roles; their dependencies come along. Add here what a role installs.
PACKAGES = [
    "slurmctld",
    "slurmd",
    "slurmdbd",
    "slurm-client",
    "slurm-wlm",
    "slurm-wlm-mysql-plugin",
    "munge",
    "mariadb-server",
    "mariadb-client",
    "python3-pymysql",
    "containerd",
    "runc",
    "rdma-core",
    "ibverbs-utils",
    "ibverbs-providers",
    "infiniband-diags",
    "opensm",
    "perftest",
    "python3-boto3",
    "gnupg",
    "gpgv",
    "numactl",
    "hwloc",
    "prometheus-node-exporter",
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
    "python3-numpy",
    "python3-pydantic",
    "libpam-slurm-adopt",
    "sssd-ldap",
    "sssd-tools",
    "libnss-sss",
    "libpam-sss",
    "slapd",
    "ldap-utils",
]
SERVED = "served"  # folder of a lab
MAINTAINER = "lab <lab@example.invalid>"


def repo_path(root: Path = LAB_ROOT) -> Path:
    """Where the repositories of today's recipe lie (or will lie)."""
    stubs = [astuple(package) for package in stub_packages()]
    code = [cache.code_of(function) for function in (_build, _pack, _control_files, _mirror, _index, _sign)]
    return cache.path_of("repo", root, rootfs.base_path(root).name, PACKAGES, stubs, code)


def repositories(root: Path = LAB_ROOT) -> Path:
    """Folder of the repositories; built now (about a minute) if it isn't there. Several callers at once build it
    once.
    """
    rootfs.base_image(root)
    return cache.built("lab.packages.repository", root, repo_path(root))


def key_sha256(root: Path = LAB_ROOT) -> str:
    """SHA-256 of the signing key's file, lab.asc."""
    return hashlib.sha256((repositories(root) / "lab.asc").read_bytes()).hexdigest()


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
            _pack(package, Path(scratch), new / "nv/pool")
    _mirror(root, new / "debian/pool")
    for name in ("nv", "debian"):
        _index(new / name, f"lab-{name}")
    _sign(new)
    new.rename(target)


def _pack(package: StubPackage, scratch: Path, pool: Path) -> None:
    folder = scratch / f"{package.name}_{package.version.replace(':', '_')}"
    for name, text in (package.files | _control_files(package)).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755 if text.startswith("#!") else 0o644)
    folder.chmod(0o755)
    run(["dpkg-deb", "--root-owner-group", "-Zgzip", "--build", str(folder), str(pool)])


def _control_files(package: StubPackage) -> dict[str, str]:
    """What dpkg wants to know of a package, and does with it."""
    control = {
        "Package": package.name,
        "Version": package.version,
        "Architecture": "amd64",
        "Maintainer": MAINTAINER,
        "Section": "misc",
        "Depends": package.depends,
        "Conflicts": package.conflicts,
        "Provides": package.provides,
        "Description": f"STUB of {package.name} for the lab (no NVIDIA software)",
    }
    files = {"DEBIAN/control": "".join(f"{key}: {value}\n" for key, value in control.items() if value)}
    lines = [package.after_install] if package.after_install else []
    for unit in package.enable:  # in a chroot (an image build) enabling is all there is to do
        start = f"systemctl daemon-reload; systemctl restart {unit};"
        lines += [f"systemctl enable -q {unit}", f"[ ! -d /run/systemd/system ] || {{ {start} }}"]
    if lines:
        files["DEBIAN/postinst"] = '#!/bin/sh\nset -e\n[ "$1" = configure ] || exit 0\n' + "\n".join(lines) + "\n"
    if package.before_removal:
        files["DEBIAN/prerm"] = f"#!/bin/sh\nset -e\n{package.before_removal}\n"
    return files


def _mirror(root: Path, pool: Path) -> None:
    """Download PACKAGES and all they need beyond the base image: apt itself works it out in a throw-away overlay of the
    base.
    """
    scratch = root / "cache" / "repo-build"
    shutil.rmtree(scratch, ignore_errors=True)
    up, work, mount = (scratch / name for name in ("up", "work", "mnt"))
    for folder in (up, work, mount):
        folder.mkdir(parents=True)
    layers = f"lowerdir={rootfs.base_image(root)},upperdir={up},workdir={work}"
    run(["mount", "-t", "overlay", "overlay", "-o", layers, str(mount)])
    (mount / "etc/apt/sources.list").write_text(rootfs.apt_sources())
    shutil.copy("/etc/resolv.conf", mount / "etc/resolv.conf")
    env = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    install = ["chroot", str(mount), "apt-get", "install", "-y", "-qq", "--no-install-recommends"]
    run(["chroot", str(mount), "apt-get", "update", "-qq"], env=env)
    listing = run([*install, "--print-uris", *PACKAGES], env=env)  # lines 'URI' FILE SIZE HASH
    wanted = {line.split()[1] for line in listing.splitlines() if line.startswith("'")}
    archives = mount / "var/cache/apt/archives"
    for old in (root / "cache").glob("repo-*/debian/pool/*.deb"):  # apt keeps what is still right, and fetches the rest
        if old.name in wanted and not (archives / old.name).exists():
            shutil.copy(old, archives)
    run([*install, "--download-only", *PACKAGES], env=env)
    for name in sorted(wanted):
        shutil.move(archives / name, pool / name)
    run(["umount", str(mount)])
    shutil.rmtree(scratch)


def _index(folder: Path, origin: str) -> None:
    dist = folder / "dists/stable"
    binary = dist / "main/binary-amd64"
    binary.mkdir(parents=True)
    (binary / "Packages").write_text(run(["apt-ftparchive", "packages", "pool"], cwd=folder))
    fields = {
        "Origin": origin,
        "Label": origin,
        "Suite": "stable",
        "Codename": "stable",
        "Components": "main",
        "Architectures": "amd64",
    }
    options = [word for key, value in fields.items() for word in ("-o", f"APT::FTPArchive::Release::{key}={value}")]
    (dist / "Release").write_text(run(["apt-ftparchive", *options, "release", "dists/stable"], cwd=folder))


def _sign(folder: Path) -> None:
    """Sign both repositories with a new key and publish its public half; the secret half is thrown away."""
    with tempfile.TemporaryDirectory(prefix="lab-gpg-") as home:  # short path: gpg-agent's socket lies in it
        gpg = ["gpg", "--homedir", home, "--quiet", "--batch", "--yes"]
        owner = f"lab repository <{MAINTAINER.split('<')[1]}"
        run([*gpg, "--passphrase", "", "--quick-gen-key", owner, "ed25519", "sign", "never"])
        for name in ("nv", "debian"):
            dist = folder / name / "dists/stable"
            run([*gpg, "--output", str(dist / "InRelease"), "--clearsign", str(dist / "Release")])
            run([*gpg, "--output", str(dist / "Release.gpg"), "--armor", "--detach-sign", str(dist / "Release")])
        run([*gpg, "--output", str(folder / "lab.gpg"), "--export"])
        run([*gpg, "--armor", "--output", str(folder / "lab.asc"), "--export"])
        run(["gpgconf", "--homedir", home, "--kill", "all"])


if __name__ == "__main__":
    cache.main(repo_path, _build)
