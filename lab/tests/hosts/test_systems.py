"""The systems that the lab's hosts can have: what they say of themselves, and how they are dressed (pure parts)."""

import shlex
from typing import get_args

import pytest

from ironburst.software.model import Os
from lab.hosts import dressing, rootfs, systems
from lab.hosts.rpm import Rpm
from lab.hosts.spec import HostSpec, bare_metal
from lab.system import LabError


def release(system):
    """os-release, as a shell reads it."""
    return dict(word.split("=", 1) for word in shlex.split(system.files["usr/lib/os-release"]))


def test_the_lab_has_each_system_that_a_stack_can_have():
    assert set(get_args(Os)) == set(systems.SYSTEMS)
    with pytest.raises(LabError, match="no system 'ubuntu2604'; it has: debian12, debian13, rhel10, rhel9, ubuntu2204"):
        systems.of("ubuntu2604")


@pytest.mark.parametrize(
    ("name", "id", "version", "suite"),
    [
        ("ubuntu2204", "ubuntu", "22.04", "bookworm"),
        ("ubuntu2404", "ubuntu", "24.04", "trixie"),
        ("rhel9", "rocky", "9.6", "trixie"),
        ("rhel10", "rocky", "10.0", "trixie"),
    ],
)
def test_a_dressed_system_says_its_own_name(name, id, version, suite):
    system = systems.of(name)
    said = release(system)
    assert (said["ID"], said["VERSION_ID"], system.suite) == (id, version, suite)
    assert said.get("PLATFORM_ID", "") == (f"platform:el{version.split('.')[0]}" if id == "rocky" else "")


def test_debian_is_not_dressed(tmp_path, monkeypatch):
    monkeypatch.setattr(rootfs, "base_image", lambda root, suite: root / suite)
    assert dressing.layers(systems.of("debian12"), tmp_path) == [tmp_path / "bookworm"]


def test_a_host_of_another_system_is_another_spec():
    spec = bare_metal("dgx01", system="rhel9")
    assert HostSpec.from_json(spec.to_json()) == spec != bare_metal("dgx01")


def test_a_recipe_names_its_cache(tmp_path, monkeypatch):
    before = {name: dressing.path(tmp_path, name) for name in ("ubuntu2404", "rhel9", "rhel10")}
    assert len(set(before.values())) == 3
    monkeypatch.setattr(dressing, "DNF_CONF", "[main]\nbest=False\n")
    changed = [name for name, path in before.items() if dressing.path(tmp_path, name) != path]
    assert changed == ["rhel9", "rhel10"]


def test_a_spec_file_has_what_rpmbuild_wants():
    package = Rpm(
        "nvidia-driver-cuda",
        "580.95.05",
        epoch=3,
        requires="nvidia-kmod-common = 3:580.95.05",
        files={"usr/bin/nvidia-smi": "#!/bin/sh\n"},
        scripts={"post": "echo 100%"},
    )
    lines = package.spec().splitlines()
    assert lines[:4] == ["Name: nvidia-driver-cuda", "Epoch: 3", "Version: 580.95.05", "Release: 1%{?dist}"]
    assert "Requires: nvidia-kmod-common = 3:580.95.05" in lines and not any(x.startswith("Provides") for x in lines)
    assert lines[lines.index("%post") + 1] == "echo 100%%"  # one % would be a macro
    assert lines[-1].startswith("%files -f /") and lines[-1].endswith("/nvidia-driver-cuda-580.95.05.files")
