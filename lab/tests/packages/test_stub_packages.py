"""The stub packages: each says what it is, and what they need of each other is served."""

import re

import pytest

from lab.hosts import systems
from lab.packages import driver_debs
from lab.packages.stub_packages import DRIVER_VERSIONS, stub_packages


def test_stub_packages_say_so_and_their_relations_close():
    packages = stub_packages()
    keys = {(p.name, p.version) for p in packages}
    assert len(keys) == len(packages)
    for package in packages:
        for relation in filter(None, package.depends.split(", ")):
            name, version = re.fullmatch(r"(\S+?)(?: \(= (.+)\))?", relation).groups()
            assert version is None or (name, version) in keys, f"{package.name} needs {relation}"
    assert {p.version for p in packages if p.name == "nvidia-fabricmanager"} == {f"{v}-1" for v in DRIVER_VERSIONS}
    for package in packages:
        for path, text in package.files.items():
            assert "STUB" in text or path.startswith("usr/share/lab-nvidia/"), path


APT = [name for name, system in systems.SYSTEMS.items() if system.family == "debian"]


@pytest.mark.parametrize("system", APT)
def test_each_exact_relation_of_a_drivers_archive_is_served_there(system):
    vendor, own = driver_debs.vendor(system), driver_debs.distribution(system)
    for archive in (vendor, own):
        keys = {(package.name, package.version) for package in archive}
        assert len(keys) == len(archive)
        for package in archive:
            for name, version in re.findall(r"(\S+) \(= ([^)]+)\)", package.depends):
                assert (name, version) in keys, f"{package.name} {package.version} needs {name} = {version}"
    shared = {package.name for package in vendor} & {package.name for package in own}
    # the trap: names that both have, in versions that differ
    assert len(shared) > 8
    assert not {(p.name, p.version) for p in vendor if p.name in shared} & {(p.name, p.version) for p in own}


def test_ubuntus_names_have_the_branch_until_590():
    names = {(package.name, package.version.split("-")[0]) for package in driver_debs.vendor("ubuntu2404")}
    assert {("nvidia-dkms-580-open", "580.95.05"), ("nvidia-dkms-open", "595.58.03")} <= names
    assert ("nvidia-dkms-595-open", "595.58.03") not in names and ("nvidia-fabricmanager-570", "570.211.01") in names
