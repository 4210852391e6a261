"""The filter plugins of the roles, and the argument specs against the defaults."""

from typing import get_args

import programs
import pytest
import yaml
from ansible.errors import AnsibleFilterError
from programs import PLAYBOOKS

from ironburst.software.model import Os

ROLES = sorted(path.name for path in (PLAYBOOKS / "roles").iterdir())
TYPES = {"bool": bool, "int": int, "str": str, "list": list, "dict": dict, "path": str, "float": float}


def plugin(name):
    return programs.load(f"plugins/filter/{name}.py")


@pytest.mark.parametrize(
    ("distribution", "version", "expected"),
    [
        ("Debian", "13.1", "debian13"),
        ("Debian", "12.11", "debian12"),
        ("Ubuntu", "24.04", "ubuntu2404"),
        ("Rocky", "9.6", "rhel9"),
        ("RedHat", "10.0", "rhel10"),
    ],
)
def test_os_target(distribution, version, expected):
    facts = {
        "distribution": distribution,
        "distribution_version": version,
        "distribution_major_version": version.split(".")[0],
    }
    assert plugin("os_target").os_target(facts) == expected


def test_the_roles_know_the_systems_that_a_lock_knows():
    """The filter runs where ironburst isn't installed, so it has its own list."""
    assert get_args(Os) == plugin("os_target").SUPPORTED


def test_an_unknown_system_is_refused_with_those_that_are_known():
    facts = {"distribution": "Fedora", "distribution_version": "42", "distribution_major_version": "42"}
    with pytest.raises(AnsibleFilterError, match="Fedora 42 is not supported: use one of debian12, debian13"):
        plugin("os_target").os_target(facts)


def test_el_8_is_refused_with_the_reason():
    facts = {"distribution": "Rocky", "distribution_version": "8.10", "distribution_major_version": "8"}
    with pytest.raises(
        AnsibleFilterError, match=r"Rocky 8\.10 is not supported: .*Python 3\.6; install release 9 or 10"
    ):
        plugin("os_target").os_target(facts)


LINES = ["slurmd|24.11.5-4|installed|hold", "munge|0.5.16|installed|install", "chrony|4.6|config-files|deinstall"]


@pytest.mark.parametrize(
    ("wanted", "missing"),
    [
        (["slurmd=24.11*", "munge"], []),
        (["slurmd=24.1*"], []),
        (["slurmd=23.11*"], ["slurmd=23.11*"]),
        (["chrony"], ["chrony"]),
        (["mariadb-server"], ["mariadb-server"]),
    ],
)
def test_not_installed(wanted, missing):
    assert plugin("packages").not_installed(wanted, LINES) == missing


RPMS = [
    "nvidia-driver-cuda|3:580.95.05-1.el9.x86_64|installed|hold",
    "nvidia-modprobe|3:580.126.09-1.el9.x86_64|installed|install",
    "kernel-devel|0:5.14.0-503.el9.x86_64|installed|install",
    "kernel-devel|0:5.14.0-570.12.1.el9.x86_64|installed|install",
    "libnccl|0:2.30.7-1+cuda13.0.x86_64|installed|install",
    "slurm|0:24.11.5-1.el9.x86_64|installed|install",
    "containerd.io|0:1.7.29-1.el9.x86_64|installed|install",
]


@pytest.mark.parametrize(
    ("wanted", "missing"),
    [
        ("nvidia-driver-cuda-580.95.05", False),
        ("nvidia-driver-cuda-3:580.95.05-1.el9", False),
        ("nvidia-modprobe-580.95.05", True),
        ("kernel-devel-5.14.0-570.12.1.el9.x86_64", False),  # one of two
        ("kernel-devel-5.14.0-611.el9.x86_64", True),
        ("libnccl-2.30.7-1+cuda13.*", False),
        ("slurm-24.11*", False),
        ("slurm-slurmd-24.11*", True),  # not slurm in a version that begins with slurmd
        ("containerd.io", False),
        ("nvidia-driver", True),
    ],
)
def test_what_rpm_has_by_what_dnf_is_asked_for(wanted, missing):
    assert plugin("packages").not_installed([wanted], RPMS) == ([wanted] if missing else [])


def test_all_rpms_of_a_drivers_version():
    assert plugin("packages").rpms_of(
        [*RPMS, "libnvidia-cfg|3:580.95.05-1.el9.x86_64|installed|install"], "580.95.05"
    ) == [
        "nvidia-driver-cuda",
        "libnvidia-cfg",
    ]


def test_another_version_of_an_rpm_is_not_absent():
    specs = ["nvidia-modprobe-580.95.05", "slurm-slurmd-24.11*", "containerd.io"]
    assert plugin("packages").absent(specs, RPMS) == ["slurm-slurmd-24.11*"]
    assert plugin("packages").not_held(["nvidia-driver-cuda", "nvidia-modprobe"], RPMS) == ["nvidia-modprobe"]


def test_not_held():
    assert plugin("packages").not_held(["slurmd", "munge", "other"], LINES) == ["munge", "other"]


def load(role, path):
    file = PLAYBOOKS / "roles" / role / path
    return (yaml.safe_load(file.read_text()) or {}) if file.exists() else {}


@pytest.mark.parametrize("role", [role for role in ROLES if role != "needs"])  # which asks for nothing itself
def test_argument_specs_agree_with_defaults(role):
    defaults = load(role, "defaults/main.yml")
    options = load(role, "meta/argument_specs.yml")["argument_specs"]["main"]["options"]
    assert set(defaults) == {name for name, option in options.items() if not option.get("required")}
    for name, value in defaults.items():
        assert name.startswith(f"{role}_"), name
        assert "default" not in options[name], f"{name}: one default in two places"
        if not (isinstance(value, str) and "{{" in value):
            assert isinstance(value, TYPES[options[name]["type"]]), name
    assert all(option["description"] for option in options.values())


@pytest.mark.parametrize("role", ROLES)
def test_every_default_is_explained(role):
    file = PLAYBOOKS / "roles" / role / "defaults" / "main.yml"
    lines = file.read_text().splitlines() if file.exists() else []
    for name in load(role, "defaults/main.yml"):
        at = next(number for number, line in enumerate(lines) if line.startswith(f"{name}:"))
        commented = [line for line in lines[:at] if line and not line.startswith("---")]
        assert commented and any(line.startswith("#") for line in commented[-3:]), f"{role}: {name} has no comment"


@pytest.mark.parametrize("role", [role for role in ROLES if "by_os" in str(load(role, "vars/main.yml"))])
def test_names_for_every_supported_system(role):
    tables = {name: value for name, value in load(role, "vars/main.yml").items() if name.endswith("_by_os")}
    for table in tables.values():
        assert set(table) == set(plugin("os_target").SUPPORTED)


@pytest.mark.parametrize(
    ("packages", "hold", "lines", "due"),
    [
        (["slurmd=24.11*"], ["slurmd"], LINES, False),
        (["slurmd=24.11*"], ["slurmd"], None, True),
        (["slurmd=23.11*"], ["slurmd"], LINES, True),
        (["munge"], ["munge"], LINES, True),
    ],
)
def test_packages_due(packages, hold, lines, due):
    assert plugin("packages").packages_due(packages, hold, lines) is due


def test_share_changes_are_none_once_they_are_made():
    shares = plugin("shares")
    written = [
        {"account": "vision", "guaranteed_gpus": 8, "over_quota": True, "weight": 1, "max_gpus": 12, "nodes": ["d2"]}
    ]
    hosts = [{"name": "d2", "gpu": {"count": 8}}, {"name": "head", "gpu": None}]
    normal = "normal|Normal QOS default|0||"
    lines = shares.share_changes(written, hosts, "lab", [normal], ["lab|root||normal||1|"], [])
    assert [line[3:6] for line in lines] == [
        ["add", "qos", "vision-over"],
        ["add", "qos", "vision-own"],
        ["add", "qos", "vision-guaranteed"],
        ["add", "account", "vision"],
        ["modify", "account", "where"],
    ]
    assert "GrpTRES=gres/gpu=20" in lines[-1]  # twelve shared, and its own eight
    qos = [
        normal,
        "vision-over|share of ironburst|1||",
        "vision-own|share of ironburst|1000||",
        "vision-guaranteed|share of ironburst|1000|gres/gpu=8|vision-over",
    ]
    fairshare = next(each for each in lines[-1] if each.startswith("Fairshare=")).partition("=")[2]
    shown = f"lab|vision||normal,vision-guaranteed,vision-over,vision-own|vision-guaranteed|{fairshare}|gres/gpu=20"
    assert shares.share_changes(written, hosts, "lab", qos, [shown], []) == []
    assert len(shares.share_changes([], hosts, "lab", qos, [shown], [])) == 4
