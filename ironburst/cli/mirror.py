"""`ironburst mirror STACK`: what a mirror has to hold, for a site that doesn't reach the packages' owners."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, get_args

import yaml

from ironburst.adapters import repositories
from ironburst.cli import Subparsers, waiting
from ironburst.config import lockfile
from ironburst.software import mirror
from ironburst.software.lock import LockError
from ironburst.software.model import Os
from ironburst.software.packages import family

EPILOG = """\
What the packages depend on beside it is not in the list: where you don't mirror a repository as a whole, let apt-get or
dnf on a machine of that system name it. A list is held against the checksum that its repository has for it; whether the
repository is signed by its owner the hosts check, by the declared key.

exit codes:
  0  every package of the lock is named, with its version, repository and checksum
  2  bad input: no lock, a damaged one, or a file of repositories that is none
  3  a repository can't be read, or none of them has a package
  1  a bug

example:
  ironburst mirror stacks/Pulumi.prod.yaml --repositories inventory/prod/group_vars/all/repositories.yml"""
KEYS = {
    "debian": ("base_apt_repositories", ("name", "url", "suite", "components"), repositories.apt),
    "rhel": ("base_dnf_repositories", ("name", "url"), repositories.dnf),
}


class _BadInput(ValueError):
    """One sentence."""


@dataclass
class Listed:
    """What the mirror has to hold for one system. `missing`: specs of the lock; `unread`: one sentence a repository."""

    os: str
    nodes: list[str] = field(default_factory=list)
    specs: list[str] = field(default_factory=list)
    urls: dict[str, str] = field(default_factory=dict)
    packages: list[mirror.File] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


def add_parser(subparsers: Subparsers) -> None:
    """The verb and its options."""
    parser = subparsers.add_parser(
        "mirror",
        description="For each system of a stack: the packages of its lock, with version, repository, path and SHA-256 "
        "as the declared repositories have them.",
        epilog=EPILOG,
    )
    option = parser.add_argument
    option("stack_file", type=Path, help="as in stacks/Pulumi.prod.yaml; its lock lies beside it")
    option(
        "--repositories",
        action="append",
        required=True,
        metavar="[SYSTEM=]FILE",
        help="variables with base_apt_repositories and base_dnf_repositories, as in group_vars; with a SYSTEM, such as "
        "ubuntu2404=FILE, for its nodes alone (repeatable)",
    )
    option("--architecture", choices=tuple(repositories.RPM_NAMES), default="amd64", help="of the nodes (amd64)")
    option("--json", action="store_true", help="systems, packages and what is missing as JSON")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    """Read the lists, say what to mirror; the exit code."""
    try:
        systems = _systems(arguments.stack_file)
        declared = _declared(arguments.repositories)
    except (LockError, _BadInput) as error:
        print(f"ironburst mirror: {error}", file=sys.stderr)
        return 2
    with waiting.told("reading the repositories' lists"):
        for listed in systems:
            _fill(listed, declared, arguments.architecture)
    if arguments.json:
        print(json.dumps([asdict(listed) for listed in systems], indent=1))
    else:
        for listed in systems:
            _print(listed)
    return 3 if any(listed.missing or listed.unread for listed in systems) else 0


def _systems(stack_file: Path) -> list[Listed]:
    """What the lock wants, by system."""
    locked = lockfile.read(lockfile.path_of_lock(stack_file))
    if locked is None:
        raise _BadInput(f"{stack_file} has no lock: run `ironburst lock {stack_file}`")
    systems: dict[str, Listed] = {}
    for group in locked.values():
        listed = systems.setdefault(group.about["os"], Listed(group.about["os"]))
        listed.nodes += group.nodes
        listed.specs += [spec for specs in group.software.packages.values() for spec in specs]
    for listed in systems.values():
        listed.specs = list(dict.fromkeys(listed.specs))
    return list(systems.values())


def _declared(options: Sequence[str]) -> dict[str, list[Mapping[str, Any]]]:
    """{system, or "" for all: variables}"""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for option in options:
        system, equals, name = option.partition("=")
        if not equals or system not in get_args(Os):
            system, name = "", option
        try:
            data = yaml.safe_load(Path(name).read_text())
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise _BadInput(f"{name} can't be read ({getattr(error, 'strerror', None) or 'not YAML'})") from None
        if not isinstance(data, dict):
            raise _BadInput(f"{name} has no variables: it needs base_apt_repositories or base_dnf_repositories")
        for key, needed, _ in KEYS.values():
            _check(name, key, data.get(key) or [], needed)
        found.setdefault(system, []).append(data)
    return found


def _check(name: str, key: str, entries: Any, needed: Sequence[str]) -> None:
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise _BadInput(f"{name}: {key} is no list of repositories")
    for entry in entries:
        absent = [each for each in needed if each not in entry]
        if absent or "{{" in str(entry):
            why = f"lacks {', '.join(absent)}" if absent else "has a template in it, and only Ansible fills that in"
            raise _BadInput(f"{name}: {key}: {entry.get('name', 'an entry')} {why}")


def _fill(listed: Listed, declared: Mapping[str, Sequence[Mapping[str, Any]]], architecture: str) -> None:
    key, _, read = KEYS[family(listed.os)]
    files: list[mirror.File] = []
    for variables in (*declared.get("", ()), *declared.get(listed.os, ())):
        for repository in variables.get(key) or []:
            listed.urls[repository["name"]] = repository["url"]
            try:
                files += read(repository, architecture)
            except repositories.Unreadable as error:
                listed.unread.append(f"{repository['name']}: {error}")
    listed.packages, listed.missing = mirror.split(listed.specs, listed.os, files)


def _print(listed: Listed) -> None:
    size = sum(file.size for file in listed.packages)
    count = f"{len(listed.packages)} of {len(listed.specs)} packages, {size / 1e6:.1f} MB"
    print(f"{listed.os}: {count}, for {len(listed.nodes)} nodes")
    for name, url in listed.urls.items():
        own = [file for file in listed.packages if file.repository == name]
        print(f"  {name}: {url}")
        for file in own:
            print(f"    {file.name} {file.version} {file.architecture}")
            print(f"      {file.path} sha256:{file.sha256 or 'unknown'}")
    for spec in listed.missing:
        print(f"  {spec}: no repository that was read has it; the distribution's own archive may")
    for sentence in listed.unread:
        print(f"  not read: {sentence}")
