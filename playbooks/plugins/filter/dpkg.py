"""Filters over dpkg's own list, so that a converged host needs no slow question to apt.

The list: lines of `dpkg-query --show --showformat='${Package}|${Version}|${db:Status-Status}|${db:Status-Want}\\n'`.
"""

from __future__ import annotations

import fnmatch


def _rows(lines: list[str]) -> dict[str, tuple[str, str, str]]:
    """{package: (version, status, wanted)}"""
    rows = (line.split("|") for line in lines)
    return {row[0]: (row[1], row[2], row[3]) for row in rows if len(row) == 4}


def not_installed(packages: list[str], lines: list[str]) -> list[str]:
    """Of `packages` ("name" or "name=1.2.*") those that are not installed in such a version."""
    rows = _rows(lines)
    missing = []
    for package in packages:
        name, _, pattern = package.partition("=")
        version, status, _ = rows.get(name, ("", "not-installed", ""))
        if status != "installed" or not fnmatch.fnmatch(version, pattern or "*"):
            missing.append(package)
    return missing


def not_held(packages: list[str], lines: list[str]) -> list[str]:
    """Of `packages` (names) those that dpkg does not hold."""
    rows = _rows(lines)
    return [package for package in packages if rows.get(package, ("", "", ""))[2] != "hold"]


def packages_due(packages: list[str], hold: list[str], lines: list[str] | None) -> bool:
    """Whether something is to be installed or held; unknown (no list: not a dpkg system, or not asked yet) is yes."""
    return lines is None or bool(not_installed(packages, lines) or not_held(hold, lines))


def absent(packages: list[str], lines: list[str]) -> list[str]:
    """Of `packages` those of which no version at all is installed."""
    rows = _rows(lines)
    return [package for package in packages if rows.get(package.partition("=")[0], ("", "", ""))[1] != "installed"]


class FilterModule:
    """Filters of ironburst's roles."""

    def filters(self):
        """Name -> function, as Ansible asks for them."""
        return {"absent": absent, "not_installed": not_installed, "not_held": not_held, "packages_due": packages_due}
