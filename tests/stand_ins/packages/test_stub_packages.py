"""The stub packages: each says what it is, and what they need of each other is served."""

import re

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
