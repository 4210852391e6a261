"""What playbooks/files/inspect_host.py makes of what apt and dnf say (their words, as they said them in the lab)."""

import pytest
from programs import load

inspect = load("files/inspect_host.py")
APT = """Reading package lists...
The following packages have unmet dependencies:
 nvidia-driver : Depends: xserver-xorg-video-nvidia (= 580.95.05-1) but 595.58.03-1 is to be installed
                 Depends: libgl1-nvidia-glvnd-glx (= 580.95.05-1) but 595.58.03-1 is to be installed
 nvidia-driver-cuda : Depends: libcuda1 (= 580.95.05-1) but 595.58.03-1 is to be installed
                      Depends: libnvcuvid1 (= 580.95.05-1) but 595.58.03-1 is to be installed
E: Unable to correct problems, you have held broken packages.
E: The following information from --solver 3.0 may provide additional context:
"""
EPEL = """Error:
 Problem: conflicting requests
  - nothing provides dkms needed by kmod-nvidia-open-dkms-3:580.95.05-1.el9.x86_64 from nv
(try to add '--skip-broken' to skip uninstallable packages)
"""
HIDDEN = """All matches were filtered out by modular filtering for argument: nvidia-driver-cuda-580.95.05
Error: Unable to find a match: nvidia-driver-cuda-580.95.05
"""
CURE = "write module_hotfixes: true at their repository in base_dnf_repositories"
ABSENT = """No match for argument: nvidia-driver-cuda-1.2
Error: Unable to find a match: nvidia-driver-cuda-1.2
"""


def test_apt_names_the_package_and_what_it_can_not_have():
    said = inspect.apt_reason(APT)
    first, second, third = said.split("; ")
    assert first.startswith("nvidia-driver Depends: xserver-xorg-video-nvidia (= 580.95.05-1) but 595.58.03-1")
    assert second.startswith("nvidia-driver Depends: libgl1") and third.startswith(
        "nvidia-driver-cuda Depends: libcuda1"
    )
    assert inspect.apt_reason(APT[APT.index("E: ") :]) == "Unable to correct problems, you have held broken packages."


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (EPEL, "nothing provides dkms needed by kmod-nvidia-open-dkms-3:580.95.05-1.el9.x86_64 from nv"),
        (
            HIDDEN,
            f"module streams hide nvidia-driver-cuda-580.95.05: {CURE}",
        ),
        (ABSENT, "no repository has nvidia-driver-cuda-1.2"),
        ("", "no message"),
    ],
)
def test_dnf_says_why(said, reason):
    assert inspect.dnf_reason(said) == reason


# What DGX OS has, by its packages' names and how they exclude the distribution's; versions are examples
INSTALLED = {
    "docker-ce": ("5:27.3.1-1~ubuntu.24.04~noble", "Depends: containerd.io\nConflicts: docker.io"),
    "containerd.io": ("1.7.22-1", "Conflicts: containerd\nProvides: containerd"),
    "libnvidia-compute-570-server": (
        "570.211.01-0ubuntu1",
        "Provides: libnvidia-compute\nConflicts: libnvidia-compute",
    ),
}
OFFERED = {
    "containerd": ("1.7.24-0ubuntu1", ""),
    "docker-ce": ("5:28.0.1-1~ubuntu.24.04~noble", "Depends: containerd.io\nConflicts: docker.io"),
    "libnvidia-compute-580": ("580.95.05-0ubuntu1", "Provides: libnvidia-compute\nConflicts: libnvidia-compute"),
}
LOCKED = ["containerd", "libnvidia-compute-580=580.95.05-*"]


def stanzas(packages, **more):
    for name, (version, relations) in packages.items():
        fields = {"Package": name, "Version": version, "Architecture": "amd64", "Maintainer": "x", **more}
        lines = [f"{key}: {value}" for key, value in fields.items()] + relations.splitlines()
        yield "\n".join([*lines, f"Filename: {name}.deb", "Size: 1", f"SHA256: {'0' * 64}", "Description: x"]) + "\n\n"


@pytest.fixture
def solver(tmp_path):
    """The real apt over an invented host: (exit code, what it says) of a simulated installation."""
    (tmp_path / "status").write_text("".join(stanzas(INSTALLED, Status="install ok installed")))
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "Packages").write_text("".join(stanzas(OFFERED)))
    (tmp_path / "sources.list").write_text(f"deb [trusted=yes] file://{tmp_path}/repo ./\n")
    for folder in ("lists/partial", "cache/archives/partial"):
        (tmp_path / folder).mkdir(parents=True)
    settings = {
        "Dir::State::status": tmp_path / "status",
        "Dir::State::lists": tmp_path / "lists",
        "Dir::State::extended_states": tmp_path / "extended",
        "Dir::Cache": tmp_path / "cache",
        "Dir::Etc::sourcelist": tmp_path / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::Etc::preferencesparts": "-",
        "APT::Architecture": "amd64",
        "APT::Sandbox::User": "root",
    }
    options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]

    def apt(*words):
        done = inspect.run(["apt-get", *options, *words], 60)
        return done.returncode, done.stdout + done.stderr

    assert apt("update")[0] == 0
    return apt


def test_what_apt_would_take_away_is_named_without_ironbursts_own_driver(solver):
    code, said = solver("--simulate", "install", "--no-install-recommends", *LOCKED)
    assert code == 0, said
    foreign = [("containerd.io", INSTALLED["containerd.io"][0]), ("docker-ce", INSTALLED["docker-ce"][0])]
    driver = ("libnvidia-compute-570-server", "570.211.01-0ubuntu1")
    assert sorted(inspect.apt_removed(said, None)) == [*foreign, driver]
    assert sorted(inspect.apt_removed(said, "580.95.05")) == [*foreign, driver]
    assert sorted(inspect.apt_removed(said, "570.211.01")) == foreign


def test_what_is_there_already_or_newer_takes_nothing_away(solver):
    code, said = solver("--simulate", "install", "docker-ce")
    assert code == 0 and inspect.apt_removed(said, None) == [], said


def test_only_what_somebody_named_may_go():
    assert inspect.may_go("docker-ce-cli", ["docker-ce*"]) and not inspect.may_go("docker-ce", ["docker-ce-*", "x"])


def test_ironbursts_own_driver_is_known_by_its_pin(tmp_path, monkeypatch):
    monkeypatch.setattr(inspect, "PIN", tmp_path / "ironburst")
    assert inspect.replaced_driver() is None
    text = "# Written by Ansible\nPackage: *nvidia*\nPin: version 570.211.01-*\nPin-Priority: 1001\n"
    (tmp_path / "ironburst").write_text(text)
    assert inspect.replaced_driver() == "570.211.01"


def test_dnf_replaces_what_another_package_makes_obsolete():
    said = """Installing:
 nvidia-driver-cuda       x86_64   3:580.95.05-1.el9   ironburst-nv   1.1 M
     replacing  nvidia-compute.x86_64 3:550.1-1.el9
Transaction Summary
"""
    assert inspect.dnf_replaced(said) == [("nvidia-compute", "3:550.1-1.el9")]


def test_gpus_are_counted_without_any_program(tmp_path, monkeypatch):
    """validate.yml comes before the role base, which installs lspci."""
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(inspect, "PCI", tmp_path)
    for slot, vendor, kind in (
        ("18", "0x10de", "0x030200"),
        ("19", "0x10de", "0x030000"),
        ("c4", "0x10de", "0x068000"),  # an NVSwitch
        ("1a", "0x1a03", "0x030000"),  # the BMC's screen
    ):
        (tmp_path / slot).mkdir()
        (tmp_path / slot / "vendor").write_text(f"{vendor}\n")
        (tmp_path / slot / "class").write_text(f"{kind}\n")
    assert inspect.gpus() == (2, None)
    monkeypatch.setattr(inspect, "PCI", tmp_path / "none")
    assert inspect.gpus()[1].endswith("No such file or directory")
