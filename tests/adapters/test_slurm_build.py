"""`ironburst packages slurm` with a small tarball of Slurm's shape, the real dpkg-buildpackage, gpg and apt."""

import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

import pytest

from ironburst.adapters.slurm import build as slurm_build
from ironburst.adapters.slurm.build import BuildError, build, checked
from ironburst.cli import main

TOOLS = ("dpkg-buildpackage", "apt-ftparchive", "apt-get", "gpg", "fakeroot", "make")
OWNER = "repo@example.org"
CONTROL = """\
Source: slurm-smd
Maintainer: test <test@example.org>
Build-Depends: {needs}

Package: slurm-smd
Architecture: any
Description: STAND-IN of the tests

Package: slurm-smd-slurmd
Architecture: any
Depends: slurm-smd (= ${{binary:Version}})
Description: STAND-IN of the tests
"""
CHANGELOG = """\
slurm-smd ({version}-1) UNRELEASED; urgency=medium

  * -

 -- t <t@example.org>  Mon, 01 Jan 2024 00:00:00 +0000
"""
RULES = """\
#!/usr/bin/make -f
build clean:
binary:
\t{first}
\tfor p in slurm-smd slurm-smd-slurmd; do mkdir -p debian/$$p/DEBIAN; dpkg-gencontrol -p$$p -Pdebian/$$p; \\
\t  dpkg-deb -Zgzip --root-owner-group -b debian/$$p ..; done
"""


def tarball(folder, version="24.11.9", needs="make", first="true", without=()):
    """(path, SHA-256)"""
    top = folder / f"slurm-{version}"
    (top / "debian").mkdir(parents=True)
    files = {"control": CONTROL.format(needs=needs), "changelog": CHANGELOG.format(version=version)}
    files |= {"rules": RULES.format(first=first)}
    for name, text in files.items():
        if name not in without:
            (top / "debian" / name).write_text(text)
    if "rules" not in without:
        (top / "debian/rules").chmod(0o755)
    path = folder / f"slurm-{version}.tar.bz2"
    with tarfile.open(path, "w:bz2") as archive:
        archive.add(top, top.name)
    shutil.rmtree(top)
    return path, hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def keyring(monkeypatch):
    if missing := [tool for tool in TOOLS if not shutil.which(tool)]:
        pytest.skip(f"this machine has no {', '.join(missing)}")
    with tempfile.TemporaryDirectory(prefix="k-") as home:  # short: gpg-agent's socket lies in it
        monkeypatch.setenv("GNUPGHOME", home)
        gpg = ["gpg", "--batch", "--quiet", "--passphrase", ""]
        subprocess.run([*gpg, "--quick-gen-key", OWNER, "ed25519", "sign", "never"], check=True)
        yield home
        subprocess.run(["gpgconf", "--kill", "all"], check=True)


def left(repository):
    return sorted(path.name for path in repository.rglob("*") if path.is_file()) if repository.exists() else []


def candidate(tmp_path, repository, name):
    """The version that the real apt would install from it, its signature checked."""
    root = tmp_path / "apt"
    for part in ("lists/partial", "cache/archives/partial", "parts"):
        (root / part).mkdir(parents=True, exist_ok=True)
    (root / "status").touch()
    source = root / "list"
    source.write_text(f"deb [signed-by={repository}/key.asc] file:{repository} stable main\n")
    options = {
        "Dir::Etc::sourcelist": source,
        "Dir::Etc::sourceparts": root / "parts",
        "Dir::State::status": root / "status",
        "Dir::State": root,
        "Dir::Cache": root / "cache",
        "APT::Sandbox::User": "root",
    }
    words = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
    done = subprocess.run(["apt-get", *words, "update"], capture_output=True, text=True)
    assert done.returncode == 0 and "W:" not in done.stderr, done.stdout + done.stderr
    shown = subprocess.run(["apt-cache", *words, "policy", name], capture_output=True, text=True, check=True).stdout
    return shown.split("Candidate: ")[1].split()[0]


def test_packages_are_built_into_a_repository_that_apt_takes(tmp_path, keyring, capsys):
    path, sha256 = tarball(tmp_path)
    repository = tmp_path / "repo"
    words = ["packages", "slurm", str(path), "--sha256", sha256, "--repository", str(repository), "--key", OWNER]
    assert main(words) == 0
    said = capsys.readouterr().out
    digest = hashlib.sha256((repository / "key.asc").read_bytes()).hexdigest()
    assert "slurm-smd-slurmd_24.11.9-1_amd64.deb" in said and f"key_sha256: {digest}" in said
    assert candidate(tmp_path, repository, "slurm-smd-slurmd") == "24.11.9-1"
    newer, its_sha256 = tarball(tmp_path, "25.05.1")  # what is there stays there
    assert build(newer, its_sha256, repository, OWNER).version == "25.05.1"
    assert candidate(tmp_path, repository, "slurm-smd-slurmd") == "25.05.1-1"
    assert {"slurm-smd_24.11.9-1_amd64.deb", "slurm-smd_25.05.1-1_amd64.deb"} <= set(left(repository))
    assert not list(repository.glob(".build-*"))


def test_a_python_without_filters_of_archives_builds_too(tmp_path, keyring, monkeypatch):
    """Debian 12's is 3.11.2."""
    extract = tarfile.TarFile.extractall
    monkeypatch.delattr(tarfile, "data_filter", raising=False)
    monkeypatch.setattr(tarfile.TarFile, "extractall", lambda self, path: extract(self, path))
    path, sha256 = tarball(tmp_path)
    assert build(path, sha256, tmp_path / "repo", OWNER).version == "24.11.9"


def test_another_tarball_than_the_declared_one_leaves_nothing(tmp_path, capsys):
    path, sha256 = tarball(tmp_path)
    with path.open("ab") as file:
        file.write(b"x")
    words = ["packages", "slurm", str(path), "--sha256", sha256, "--repository", str(tmp_path / "repo"), "--key", OWNER]
    assert main(words) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and f"{sha256} is declared" in said and not (tmp_path / "repo").exists()


@pytest.mark.parametrize(
    ("name", "version"), [("slurm-25.05.3.tar.bz2", "25.05.3"), ("slurm-25.11.0-0rc1.tar.gz", "25.11.0")]
)
def test_the_version_is_the_tarballs(tmp_path, name, version):
    (tmp_path / name).write_bytes(b"")
    assert checked(tmp_path / name, hashlib.sha256(b"").hexdigest()) == version


def test_what_is_no_tarball_is_said(tmp_path):
    (tmp_path / "slurm.zip").write_bytes(b"")
    with pytest.raises(BuildError, match="no tarball of Slurm"):
        checked(tmp_path / "slurm.zip", hashlib.sha256(b"").hexdigest())
    with pytest.raises(BuildError, match="can't be read"):
        checked(tmp_path / "slurm-25.05.3.tar.bz2", "0" * 64)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"without": ("control", "rules")}, "has no debian folder"),
        ({"needs": "make, libnowhere-dev"}, "needs are not installed: libnowhere-dev"),
        ({"first": "echo no such thing; false"}, "dpkg-buildpackage failed"),
    ],
)
def test_a_build_that_fails_says_so_and_adds_nothing(tmp_path, keyring, how, said):
    path, sha256 = tarball(tmp_path, **how)
    repository = tmp_path / "repo"
    with pytest.raises(BuildError, match=said) as error:
        build(path, sha256, repository, OWNER)
    assert "\n" not in str(error.value) and left(repository) == ["build.log"]
    assert "first" not in how or "no such thing" in (repository / "build.log").read_text()


def test_a_key_that_is_not_there_is_said_before_the_build(tmp_path, keyring):
    path, sha256 = tarball(tmp_path)
    with pytest.raises(BuildError, match=r"gpg has no key 'nobody@example.org'"):
        build(path, sha256, tmp_path / "repo", "nobody@example.org")


def test_missing_tools_are_named_by_their_packages(tmp_path, monkeypatch):
    path, sha256 = tarball(tmp_path)
    monkeypatch.setattr(slurm_build.shutil, "which", lambda _: None)
    monkeypatch.setattr(slurm_build, "family", lambda: "rhel")
    with pytest.raises(BuildError, match="rpm-build, rpm-sign, createrepo_c, gnupg2 is not installed here"):
        build(path, sha256, tmp_path / "repo", OWNER)
    assert not (tmp_path / "repo").exists() and isinstance(tmp_path, Path)


def program(folder, name, text):
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_on_an_el_what_the_build_lacks_is_named_also_what_the_spec_leaves_out_in_silence(
    tmp_path, keyring, monkeypatch
):
    """STAND-INS of rpmbuild and rpm, with the real ones' words; tests/lab/test_slurm_packages.py has the real ones."""
    tools = tmp_path / "tools"
    tools.mkdir()
    failed = "error: Failed build dependencies:\\n\\tpam-devel is needed by slurm-24.11.9-1.el9.x86_64\\n"
    program(tools, "rpmbuild", f"echo \"$@\" > {tmp_path}/asked; printf '{failed}' >&2; exit 11")
    program(tools, "rpm", "[ \"$3\" != 'pkgconfig(lua)' ]")  # pmix-devel is there
    for name in ("rpmsign", "createrepo_c"):
        program(tools, name, "exit 1")
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    monkeypatch.setattr(slurm_build, "family", lambda: "rhel")
    path, sha256 = tarball(tmp_path)
    with pytest.raises(BuildError, match="needs are not installed: pam-devel, lua-devel; install them"):
        build(path, sha256, tmp_path / "repo", OWNER)
    assert left(tmp_path / "repo") == ["build.log"] and "--with pmix" in (tmp_path / "asked").read_text()
