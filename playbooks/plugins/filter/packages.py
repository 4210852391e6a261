"""Filters over packages: specs of the version lock (`node_software.packages`) in the syntax of apt (name=version) or of
dnf (name-version), and what is installed, so that a converged host needs no slow question to apt or dnf.

What is installed: lines `name|version|status|wanted` of the module node_state. dpkg's are its own
(`${Package}|${Version}|${db:Status-Status}|${db:Status-Want}`); rpm's have epoch:version-release.arch, the status
installed, and hold or install by dnf's versionlock.
"""

from __future__ import annotations

import fnmatch
import re

# Kept under the name of what they are, not of the role that installs them
ALSO = {"cuda": ("nccl",), "base": ("kernel",)}


def packages_of(packages: dict[str, list[str]], groups: list[str]) -> list[str]:
    """Specs of all roles among `groups`, each once, in the order of the lock."""
    roles = [role for group in groups for role in (group, *ALSO.get(group, ()))]
    wanted = [spec for role, specs in packages.items() if role in roles for spec in specs]
    return list(dict.fromkeys(wanted))


def package_names(specs: list[str]) -> list[str]:
    """Names without versions: `nvidia-open=580.95.05-*` and `nvidia-open-3:580.95.05-1.el9` are `nvidia-open`; a
    version has a dot.
    """
    names = [re.sub(r"=.*$|-(\d+:)?\d+\.[^-]*(-[^-]*)?$", "", spec) for spec in specs]
    return list(dict.fromkeys(names))


def _rows(lines: list[str]) -> list[tuple[str, str, str, str]]:
    """(package, version, status, wanted); a package can be there in several versions (rpm's kernels)."""
    rows = (line.split("|") for line in lines)
    return [(row[0], row[1], row[2], row[3]) for row in rows if len(row) == 4]


def _forms(name: str, version: str) -> list[str]:
    """How dnf lets an installed rpm be called: with or without epoch, release and architecture."""
    epoch, _, rest = version.rpartition(":")
    full = rest.rpartition(".")[0]
    versions = [form for form in (rest, full, full.partition("-")[0]) if form]
    return [name, *(f"{name}-{form}" for form in versions), *(f"{name}-{epoch}:{form}" for form in versions if epoch)]


def _is(package: str, name: str, version: str) -> bool:
    """Whether this version of `name` is what the spec asks for."""
    wanted, equals, pattern = package.partition("=")
    if equals:
        return wanted == name and fnmatch.fnmatch(version, pattern)
    return any(fnmatch.fnmatch(form, package) for form in _forms(name, version))


def not_installed(packages: list[str], lines: list[str]) -> list[str]:
    """Of `packages` (specs) those that are not installed in such a version."""
    rows = [row for row in _rows(lines) if row[2] == "installed"]
    return [package for package in packages if not any(_is(package, row[0], row[1]) for row in rows)]


def not_held(packages: list[str], lines: list[str]) -> list[str]:
    """Of `packages` (names) those that neither dpkg holds nor dnf's versionlock."""
    held = {row[0] for row in _rows(lines) if row[3] == "hold"}
    return [package for package in packages if package not in held]


def packages_due(packages: list[str], hold: list[str], lines: list[str] | None) -> bool:
    """Whether something is to be installed or held; unknown (nobody has asked yet) is yes."""
    return lines is None or bool(not_installed(packages, lines) or not_held(hold, lines))


def absent(packages: list[str], lines: list[str]) -> list[str]:
    """Of `packages` (specs) those of which no version at all is installed."""
    there = {row[0] for row in _rows(lines) if row[2] == "installed"}
    return [package for package in packages if package not in there and package_names([package])[0] not in there]


def rpms_of(lines: list[str], version: str) -> list[str]:
    """Names of the installed rpms of this version, whatever their epoch and release: all that a driver is made of."""
    rows = [row for row in _rows(lines) if row[2] == "installed"]
    return [row[0] for row in rows if row[1].rpartition(":")[2].partition("-")[0] == version]


class FilterModule:
    """Filters of ironburst's roles."""

    def filters(self):
        """Name -> function, as Ansible asks for them."""
        return {
            "packages_of": packages_of,
            "package_names": package_names,
            "absent": absent,
            "not_installed": not_installed,
            "not_held": not_held,
            "packages_due": packages_due,
            "rpms_of": rpms_of,
        }
