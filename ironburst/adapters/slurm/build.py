"""SchedMD's packages of Slurm from its tarball, into a signed apt or dnf repository: dpkg-buildpackage by the tarball's
own debian/, or `rpmbuild -ta` by its slurm.spec. Built for the system that this runs on.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SUITE = "stable"
KEY = "key.asc"
TOOLS = {
    "debian": {
        "dpkg-buildpackage": "dpkg-dev",
        "apt-ftparchive": "apt-utils",
        "gpg": "gnupg",
        "fakeroot": "fakeroot",
    },
    "rhel": {"rpmbuild": "rpm-build", "rpmsign": "rpm-sign", "createrepo_c": "createrepo_c", "gpg": "gnupg2"},
}
"""program: the package that it is in."""
# What slurm.spec doesn't ask for and leaves out in silence, and our slurm.conf needs: job_submit.lua, cgroup v2, cores
EL_NEEDS = {"pkgconfig(lua)": "lua-devel", "pkgconfig(dbus-1)": "dbus-devel", "pkgconfig(hwloc)": "hwloc-devel"}


class BuildError(RuntimeError):
    """Why nothing was built; the text is one sentence."""


@dataclass(frozen=True)
class Built:
    """What is in the repository now: the packages that this build made, by file name, and the key's SHA-256."""

    version: str
    packages: tuple[str, ...]
    key_sha256: str


def checked(tarball: Path, sha256: str) -> str:
    """The version in the tarball's name, once its checksum is the declared one. Raises BuildError."""
    try:
        with tarball.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise BuildError(f"{tarball} can't be read ({error.strerror})") from None
    if found != sha256.lower():
        raise BuildError(
            f"{tarball} has the SHA-256 {found}, and {sha256} is declared: fetch it again, and take the sum from "
            "SchedMD's download page"
        )
    name = re.fullmatch(r"slurm-(\d\d\.\d\d\.\d+)(-\w+)?\.tar\.(bz2|gz|xz)", tarball.name)
    if not name:
        raise BuildError(f"{tarball.name} is no tarball of Slurm: SchedMD's are named like slurm-25.05.3.tar.bz2")
    return name[1]


def family() -> str:
    """debian or rhel, of the machine that this runs on. Raises BuildError for another."""
    words = Path("/etc/os-release").read_text() if Path("/etc/os-release").exists() else ""
    said = {key: value.strip('"') for key, _, value in (line.partition("=") for line in words.splitlines())}
    likes = {said.get("ID", ""), *said.get("ID_LIKE", "").split()}
    for known, names in {"debian": {"debian", "ubuntu"}, "rhel": {"rhel", "fedora", "centos"}}.items():
        if likes & names:
            return known
    raise BuildError("this is neither a Debian, an Ubuntu nor an EL: build on the system that the packages are for")


def build(tarball: Path, sha256: str, repository: Path, key: str, *, jobs: int = 1) -> Built:
    """Build, sign with the key `key` of gpg's keyring, put into `repository`, index. Where it fails the repository is
    as it was, and <repository>/build.log says more. Raises BuildError.
    """
    version = checked(tarball, sha256)
    kind = family()
    missing = [package for program, package in TOOLS[kind].items() if not shutil.which(program)]
    if missing:
        raise BuildError(f"{', '.join(missing)} is not installed here: install it, then run this again")
    repository.mkdir(parents=True, exist_ok=True)
    log = repository / "build.log"
    with _scratch(repository) as scratch:
        public = _run(["gpg", "--armor", "--export", key], log, cwd=scratch)
        if not public.strip():
            raise BuildError(f"gpg has no key {key!r}: make one (gpg --quick-gen-key), or name one of gpg --list-keys")
        made = (_debs if kind == "debian" else _rpms)(tarball, scratch, log, key, jobs)
        if not made:
            raise BuildError(f"the build of {tarball.name} made no packages: read {log}")
        pool = repository / ("pool" if kind == "debian" else "Packages")
        pool.mkdir(exist_ok=True)
        for package in made:
            package.replace(pool / package.name)
        (repository / KEY).write_text(public)
        (_apt_index if kind == "debian" else _dnf_index)(repository, scratch, log, key)
    return Built(version, tuple(sorted(each.name for each in made)), hashlib.sha256(public.encode()).hexdigest())


@contextmanager
def _scratch(repository: Path) -> Iterator[Path]:
    """A folder on the repository's disk, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix=".build-", dir=repository) as folder:
        yield Path(folder)


def _run(command: Sequence[str], log: Path, *, cwd: Path, env: Mapping[str, str] | None = None) -> str:
    """What it prints; the log has what it says beside. Raises BuildError."""
    with log.open("a") as errors:
        errors.write(f"$ {' '.join(command)}\n")
        errors.flush()
        done = subprocess.run(
            command, cwd=cwd, env={**os.environ, **(env or {})}, stdout=subprocess.PIPE, stderr=errors, text=True
        )
        errors.write(done.stdout)
    if done.returncode:
        raise BuildError(f"{command[0]} failed (exit code {done.returncode}): the end of {log} says why")
    return done.stdout


def _debs(tarball: Path, scratch: Path, log: Path, key: str, jobs: int) -> list[Path]:  # noqa: ARG001 - as _rpms
    with tarfile.open(tarball) as archive:
        # Debian 12's Python 3.11.2 has no filters yet
        archive.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
        archive.extractall(scratch)
    source = next((path.parent.parent for path in scratch.glob("*/debian/control")), None)
    if not source:
        raise BuildError(f"{tarball.name} has no debian folder: SchedMD's tarballs have one from 23.11 on")
    lacking = subprocess.run(["dpkg-checkbuilddeps"], cwd=source, capture_output=True, text=True)
    if lacking.returncode:
        words = lacking.stderr.strip().rpartition("dependencies: ")[2]
        raise BuildError(f"packages that the build needs are not installed: {words}; install them (mk-build-deps -i)")
    options = {"DEB_BUILD_OPTIONS": f"nocheck noautodbgsym parallel={jobs}"}
    _run(["dpkg-buildpackage", "-b", "-uc", "-us"], log, cwd=source, env=options)
    return sorted(scratch.glob("*.deb"))


def _rpms(tarball: Path, scratch: Path, log: Path, key: str, jobs: int) -> list[Path]:
    options = ["--define", f"_topdir {scratch}", "--define", f"_smp_mflags -j{jobs}"]
    if _asked(["rpm", "-q", "pmix-devel"]).returncode == 0:  # slurm.spec takes it only when it is told so
        options += ["--with", "pmix"]
    if lacking := _el_lacks(tarball, options):
        raise BuildError(
            f"packages that the build needs are not installed: {', '.join(lacking)}; install them (dnf install)"
        )
    _run(["rpmbuild", "-ta", *options, str(tarball.resolve())], log, cwd=scratch)
    made = sorted((scratch / "RPMS").glob("*/*.rpm"))
    if made:
        _run(["rpmsign", "--define", f"_gpg_name {key}", "--addsign", *map(str, made)], log, cwd=scratch)
    return made


def _el_lacks(tarball: Path, options: Sequence[str]) -> list[str]:
    """What must be installed before: by the spec, as rpmbuild says it, and by EL_NEEDS."""
    trial = _asked(["rpmbuild", "-tb", "--nobuild", *options, str(tarball.resolve())])
    by_spec = re.findall(r"^\s+(\S+).* is needed by ", trial.stderr, re.MULTILINE)
    ours = (name for need, name in EL_NEEDS.items() if _asked(["rpm", "-q", "--whatprovides", need]).returncode)
    return [*by_spec, *ours]


def _asked(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})


def _apt_index(repository: Path, scratch: Path, log: Path, key: str) -> None:
    """Lists of the whole pool. The signed one is replaced last: a client sees the old state or the new one."""
    packages = _run(["apt-ftparchive", "packages", "pool"], log, cwd=repository)
    architectures = sorted(set(re.findall(r"^Architecture: (\w+)$", packages, re.MULTILINE)) - {"all"})
    dist = scratch / "dist"
    for architecture in architectures:
        binary = dist / f"main/binary-{architecture}"
        binary.mkdir(parents=True)
        (binary / "Packages").write_text(packages)
    about = {"Origin": "ironburst", "Suite": SUITE, "Codename": SUITE, "Components": "main"}
    about["Architectures"] = " ".join(architectures)
    options = [word for name, text in about.items() for word in ("-o", f"APT::FTPArchive::Release::{name}={text}")]
    release = _run(["apt-ftparchive", *options, "release", "dist"], log, cwd=scratch)
    (dist / "Release").write_text(release)
    sign = ["gpg", "--batch", "--yes", "--local-user", key, "--output", "InRelease", "--clearsign", "Release"]
    _run(sign, log, cwd=dist)
    target = repository / "dists" / SUITE
    for part in [*sorted(dist.glob("main/*/Packages")), dist / "Release", dist / "InRelease"]:
        new = target / part.relative_to(dist)
        new.parent.mkdir(parents=True, exist_ok=True)
        part.replace(new)


def _dnf_index(repository: Path, scratch: Path, log: Path, key: str) -> None:  # noqa: ARG001 - as _apt_index
    _run(["createrepo_c", "--quiet", "--excludes", ".build-*", "."], log, cwd=repository)
    sign = ["gpg", "--batch", "--yes", "--local-user", key, "--armor", "--detach-sign", "repodata/repomd.xml"]
    _run(sign, log, cwd=repository)
