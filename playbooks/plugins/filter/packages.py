"""Filters over package specs of the version lock (`node_software.packages`), in the syntax of apt (name=version) or dnf
(name-version).
"""

from __future__ import annotations

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


class FilterModule:
    """Filters of ironburst's roles."""

    def filters(self):
        """Name -> function, as Ansible asks for them."""
        return {"packages_of": packages_of, "package_names": package_names}
