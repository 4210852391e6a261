"""The lab's repository of SchedMD's packages, built around small packages in the place of Debian's."""

import shutil

import pytest

from lab.hosts import cache
from lab.packages import apt, repository, schedmd
from lab.packages.stub import StubPackage

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("dpkg-deb", "apt-ftparchive", "gpg"))), reason="needs dpkg-deb, apt-ftparchive and gpg"
)
DEPENDS = {"slurmd": "munge, libc6 (>= 2.38), slurm-wlm-basic-plugins", "slurm-client": "munge, libmunge2"}


@pytest.fixture
def built(tmp_path, monkeypatch):
    debian = tmp_path / "debian/pool"
    debian.mkdir(parents=True)
    for name in {part for parts in schedmd.PARTS.values() for part in parts}:
        files = {f"usr/lib/systemd/system/{name}.service": "[Unit]\n", "usr/share/doc/x": "", f"usr/bin/{name}-wlm": ""}
        apt.pack(StubPackage(name, "24.11.5-4", depends=DEPENDS.get(name, "libc6"), files=files), tmp_path, debian)
    monkeypatch.setattr(repository, "repositories", lambda root: tmp_path)
    target = tmp_path / "cache/schedmd-1"
    target.parent.mkdir()
    schedmd._build(tmp_path, target)
    return target


def test_its_list_has_every_package_with_schedmds_relations(built):
    text = (built / "apt/dists/stable/main/binary-amd64/Packages").read_text()
    packages = {}
    for block in text.strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
        packages[fields["Package"]] = fields
    assert sorted(packages) == sorted(schedmd.PARTS)
    assert {each["Version"] for each in packages.values()} == {schedmd.VERSION}
    assert packages["slurm-smd-slurmd"]["Depends"] == f"libc6 (>= 2.38), slurm-smd (= {schedmd.VERSION}), munge"
    assert packages["slurm-smd-slurmd"]["Conflicts"] == "slurmd"


def test_it_is_signed_and_served_with_its_key(built, tmp_path, monkeypatch):
    class Site:
        dir, root = tmp_path / "site", tmp_path

    (Site.dir / repository.SERVED).mkdir(parents=True)
    monkeypatch.setattr(schedmd, "folder", lambda root: built)
    entry = schedmd.serve(Site)
    served = Site.dir / repository.SERVED
    for url in (f"{entry['url']}/dists/stable/InRelease", entry["key_url"]):
        assert (served / url.removeprefix(f"{repository.names.REPOSITORY_URL}/")).is_file()
    assert entry["key_sha256"] == cache.sha256(served / "schedmd/lab.asc")
    assert schedmd.serve(Site) == entry
