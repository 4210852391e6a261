"""Another signing key of a package repository, step by step as package-repositories.md has it, with a real apt."""

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not (shutil.which("apt-get") and shutil.which("gpg")), reason="needs apt and gpg")


@pytest.fixture
def gpg():
    """Runs gpg with a keyring of its own (its socket's path must be short)."""
    with tempfile.TemporaryDirectory(prefix="gpg-", dir="/tmp") as home:

        def run(*words, **options):
            command = ["gpg", "--homedir", home, "--batch", "--yes", "--quiet", *words]
            return subprocess.run(command, check=True, capture_output=True, **options).stdout

        for name in ("old", "new"):
            run("--passphrase", "", "--quick-gen-key", f"{name}@example.org", "ed25519", "sign", "never")
        yield run
        subprocess.run(["gpgconf", "--homedir", home, "--kill", "all"], check=True)


@pytest.fixture
def site(tmp_path, gpg):
    repository, host = tmp_path / "repository", tmp_path / "host"
    repository.mkdir()
    (repository / "Packages").write_text("")
    digest = hashlib.sha256(b"").hexdigest()
    for folder in ("lists/partial", "cache/archives/partial", "state"):
        (host / folder).mkdir(parents=True)
    (host / "status").touch()
    (host / "sources.list").write_text(f"deb [signed-by={host}/key.asc] file:{repository} ./\n")

    class Site:
        """What whoever signs and whoever installs does."""

        def sign(self, key, date):
            """`date`: later than the one before, or apt takes it for the same."""
            release = f"Origin: t\nDate: Mon, {date} Nov 2026 00:00:00 UTC\nSHA256:\n {digest} 0 Packages\n"
            signed = gpg("--local-user", f"{key}@example.org", "--clear-sign", input=release.encode())
            (repository / "InRelease").write_bytes(signed)

        def trust(self, *keys):
            """The key's file as the role base puts it there."""
            (host / "key.asc").write_bytes(gpg("--armor", "--export", *(f"{key}@example.org" for key in keys)))

        def update(self):
            """What apt says of the repository; empty: it takes it."""
            where = {
                "Dir::State": host / "state",
                "Dir::State::lists": host / "lists",
                "Dir::State::status": host / "status",
                "Dir::Cache": host / "cache",
                "Dir::Etc::sourcelist": host / "sources.list",
                "Dir::Etc::sourceparts": "/dev/null",
                "Dir::Etc::trustedparts": "/dev/null",
                "APT::Sandbox::User": "root",
                "Acquire::Languages": "none",
            }
            options = [word for key, value in where.items() for word in ("-o", f"{key}={value}")]
            done = subprocess.run(["apt-get", *options, "update"], capture_output=True, text=True, timeout=60)
            bad = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith(("E:", "W:"))]
            return " ".join(bad)

    return Site()


def test_hosts_take_both_keys_before_the_repository_changes_and_the_new_one_alone_afterwards(site):
    site.trust("old")
    site.sign("old", 2)
    assert site.update() == ""
    site.trust("old", "new")
    assert site.update() == "", "both are taken, and the old one still signs"
    site.sign("new", 9)
    assert site.update() == ""
    site.trust("new")
    assert site.update() == ""
    site.sign("old", 16)
    assert "NO_PUBKEY" in site.update(), "the old key opens nothing any more"


def test_a_repository_that_changes_first_is_refused(site):
    site.trust("old")
    site.sign("new", 2)
    assert "NO_PUBKEY" in site.update()


def test_the_document_says_one_block():
    text = (Path(__file__).parents[2] / "docs/how-to/sysadmin/package-repositories.md").read_text()
    assert "gpg --armor --export OLD NEW" in text and "cat old.asc" not in text
