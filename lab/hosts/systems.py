"""The systems that a host of the lab can have, by the names that a stack's `software.os` has for them.

debian13 and debian12 are what they say. The others are dressed: Debian's userland under another system's name, with
that system's real package manager and solver (dnf and rpm; apt) and stubs of its packages. What that can't show: the
system's own libraries, kernels, boot loader, SELinux, and packages beyond the stubs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lab.system import LabError

USUAL = "debian13"


@dataclass(frozen=True)
class System:
    """One of them. `files` ({path without leading /: text}) are what a dressed one says of itself."""

    name: str
    suite: str  # Debian's, whose userland it is
    family: str = "debian"  # the package manager's: debian has apt, rhel has dnf
    files: dict[str, str] = field(default_factory=dict)
    user: str = "admin"  # who logs in at its stock image in the cloud

    @property
    def dressed(self) -> bool:
        """Whether it is another system than its userland's."""
        return bool(self.files)


def of(name: str) -> System:
    """LabError for one that the lab doesn't have."""
    if name not in SYSTEMS:
        raise LabError(f"the lab has no system {name!r}; it has: {', '.join(sorted(SYSTEMS))}")
    return SYSTEMS[name]


def _ubuntu(version: str, codename: str, name: str, suite: str) -> System:
    """As the distribution's base-files has it."""
    release = {
        "PRETTY_NAME": f"Ubuntu {name}",
        "NAME": "Ubuntu",
        "VERSION_ID": version,
        "VERSION": f"{name} ({codename.title()})",
        "VERSION_CODENAME": codename,
        "ID": "ubuntu",
        "ID_LIKE": "debian",
        "UBUNTU_CODENAME": codename,
    }
    lsb = {
        "DISTRIB_ID": "Ubuntu",
        "DISTRIB_RELEASE": version,
        "DISTRIB_CODENAME": codename,
        "DISTRIB_DESCRIPTION": f'"Ubuntu {name}"',
    }
    files = {
        "usr/lib/os-release": _quoted(release),
        "etc/lsb-release": "".join(f"{key}={value}\n" for key, value in lsb.items()),
        "etc/debian_version": f"{suite}/sid\n",
        "etc/issue": f"Ubuntu {name} \\n \\l\n\n",
    }
    return System(f"ubuntu{version.replace('.', '')}", suite, files=files, user="ubuntu")


def _rocky(version: str, codename: str) -> System:
    """As the distribution's rocky-release has it; modules of dnf are chosen by PLATFORM_ID."""
    major = version.split(".")[0]
    release = {
        "NAME": "Rocky Linux",
        "VERSION": f"{version} ({codename})",
        "ID": "rocky",
        "ID_LIKE": "rhel centos fedora",
        "VERSION_ID": version,
        "PLATFORM_ID": f"platform:el{major}",
        "PRETTY_NAME": f"Rocky Linux {version} ({codename})",
        "CPE_NAME": f"cpe:/o:rocky:rocky:{major}::baseos",
    }
    text = f"Rocky Linux release {version} ({codename})\n"
    files = {
        "usr/lib/os-release": _quoted(release),
        "etc/rocky-release": text,
        "etc/redhat-release": "-> rocky-release",
        "etc/system-release": "-> rocky-release",
        "etc/ld.so.conf.d/lib64.conf": "/usr/lib64\n",
        # the distribution's default: a package's unit is off until somebody enables it
        "usr/lib/systemd/system-preset/99-default-disable.preset": "disable *\n",
    }
    return System(f"rhel{major}", "trixie", family="rhel", files=files, user="rocky")


def _quoted(values: dict[str, str]) -> str:
    return "".join(f'{key}="{value}"\n' for key, value in values.items())


# Slurm's real daemons are Debian 13's, so its userland is the one to dress; Debian 12's apt is Ubuntu 22.04's but for
# a version
SYSTEMS = {
    system.name: system
    for system in (
        System("debian13", "trixie"),
        System("debian12", "bookworm"),
        _ubuntu("22.04", "jammy", "22.04.5 LTS", "bookworm"),
        _ubuntu("24.04", "noble", "24.04.3 LTS", "trixie"),
        _rocky("9.6", "Blue Onyx"),
        _rocky("10.0", "Red Quartz"),
    )
}
