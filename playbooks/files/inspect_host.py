#!/usr/bin/python3
"""inspect_host.py QUESTION: what playbooks/validate.yml wants to know of a host, as JSON on stdout. Changes nothing.

QUESTION is JSON: {"manager": "apt" | "dnf", "repositories": [as base_apt_repositories, base_dnf_repositories],
"packages": [specs of the lock], "pin": the apt pin, "may_remove": [patterns of names]}. Answer: {"serial": str|null,
"gpus": int|null, "gpus_error": str|null, "free_bytes": int, "packages_error": str|null, "removed": [what the lock would
take away, and may not]}. What apt and dnf write goes into a temporary folder.
"""

import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path


def run(argv, limit_s):
    """The command, ended, with what it wrote; TimeoutExpired after `limit_s` seconds."""
    pipe = subprocess.PIPE
    return subprocess.run(argv, stdout=pipe, stderr=pipe, universal_newlines=True, timeout=limit_s)


PCI = Path("/sys/bus/pci/devices")


def fetch(repository, folder, number):
    """The repository's key, as a file in `folder`."""
    key = folder / f"{number}.asc"
    with urllib.request.urlopen(repository["key_url"], timeout=20) as response:
        key.write_bytes(response.read())
    key.chmod(0o644)
    return key


def copied(source, target, patterns, ours):
    """Make the folder `target` with the host's own files of `source`, without those that the role base writes."""
    target.mkdir(parents=True)
    for existing in (path for pattern in patterns for path in Path(source).glob(pattern)):
        if existing.is_file() and not fnmatch.fnmatch(existing.name, ours):
            (target / existing.name).write_bytes(existing.read_bytes())


class Apt:
    """apt with package lists, sources and a pin of its own in `folder`."""

    def __init__(self, folder, question):
        self.packages = question["packages"]
        parts, pins = folder / "sources.list.d", folder / "preferences.d"
        copied("/etc/apt/sources.list.d", parts, ("*.list", "*.sources"), "ironburst.sources")
        copied("/etc/apt/preferences.d", pins, ("*",), "ironburst")
        (pins / "ironburst").write_text(question["pin"])
        for sub in (folder / "lists" / "partial", folder / "cache" / "archives" / "partial"):
            sub.mkdir(parents=True)
        for number, repository in enumerate(question["repositories"]):
            text = f"Types: deb\nURIs: {repository['url']}\nSuites: {repository['suite']}\n"
            if repository["components"]:  # a flat repository, as NVIDIA's is, has none
                text += f"Components: {' '.join(repository['components'])}\n"
            text += f"Signed-By: {fetch(repository, folder, number)}\n"
            (parts / f"ironburst-{number}.sources").write_text(text)
        folder.chmod(0o755)
        settings = {
            "Dir::Etc::sourceparts": parts,
            "Dir::Etc::preferencesparts": pins,
            "Dir::State::lists": folder / "lists",
            "Dir::Cache": folder / "cache",
            "APT::Update::Error-Mode": "any",
            "APT::Sandbox::User": "root",
            "Acquire::Languages": "none",
        }
        self.options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]

    def unreadable(self):
        """Why the repositories can't be read, or None."""
        update = run(["apt-get", *self.options, "update", "-qq"], 300)
        return " ".join(update.stderr.split()) if update.returncode else None

    def missing(self):
        """Of the packages those that no repository has, with what there is instead."""
        names = sorted({package.partition("=")[0] for package in self.packages})
        table = run(["apt-cache", *self.options, "madison", *names], 60).stdout
        versions = {}
        for line in table.splitlines():
            name, version = (field.strip() for field in line.split("|")[:2])
            versions.setdefault(name, []).append(version)
        problems = []
        for package in self.packages:
            name, _, pattern = package.partition("=")
            there = versions.get(name, [])
            if not any(fnmatch.fnmatch(version, pattern or "*") for version in there):
                problems.append(f"{package} (there is {', '.join(sorted(set(there))) or 'no such package'})")
        return problems

    def solved(self):
        """(why apt's solver refuses the packages, or None; [(name, version) that it would take away])"""
        allowed = ["--no-install-recommends", "--allow-downgrades", "--allow-change-held-packages"]
        done = run(["apt-get", *self.options, "--simulate", "install", *allowed, *self.packages], 120)
        said = done.stdout + done.stderr
        return (apt_reason(said), []) if done.returncode else (None, apt_removed(said, replaced_driver()))

    def origin(self, name, version):
        """Where an installed package came from, as far as the host's own sources still say."""
        table = run(["apt-cache", "madison", name], 60).stdout
        rows = [[field.strip() for field in line.split("|")] for line in table.splitlines()]
        sources = [row[2].split()[0] for row in rows if len(row) == 3 and row[1] == version and row[2]]
        return sources[0] if sources else None


PIN = Path("/etc/apt/preferences.d/ironburst")


def replaced_driver():
    """Version of the driver that the role base pinned at its last run; None: it never did."""
    match = re.search(r"^Pin: version (\S+)-\*$", PIN.read_text(), re.MULTILINE) if PIN.exists() else None
    return match.group(1) if match else None


def apt_removed(said, ours):
    """[(name, version)] that apt would take away, without the packages of `ours`, the driver's version that ironburst
    had put there itself: another branch has other names.
    """
    found = re.findall(r"^Remv (\S+) \[([^\]]+)\]", said, re.MULTILINE)
    names = [(name.partition(":")[0], version) for name, version in found]
    return [(name, version) for name, version in names if version.rpartition(":")[2].rpartition("-")[0] != ours]


def apt_reason(said):
    """The relations that apt couldn't meet, in a line; its last words where it names none."""
    found, package = [], ""
    for line in said.splitlines():
        match = re.match(r" (\S+) : (.*)| +((?:Pre)?Depends: .*|Conflicts: .*|Breaks: .*)", line)
        if match:
            package = match.group(1) or package
            found.append(f"{package} {' '.join((match.group(2) or match.group(3)).split())}")
    errors = [line[3:] for line in said.splitlines() if line.startswith("E: ")]
    return "; ".join(found[:3] or errors[:1] or ["no message"])


class Dnf:
    """dnf with a cache and repository files of its own in `folder`."""

    def __init__(self, folder, question):
        self.packages = question["packages"]
        parts = folder / "repos"
        copied("/etc/yum.repos.d", parts, ("*.repo",), "ironburst-*.repo")
        for number, repository in enumerate(question["repositories"]):
            (parts / f"ironburst-{number}.repo").write_text(
                f"[ironburst-{repository['name']}]\nname={repository['name']}\nbaseurl={repository['url']}\n"
                # nobody may be asked for a key here; the role checks both
                f"gpgcheck=0\nrepo_gpgcheck=0\nmodule_hotfixes={int(bool(repository.get('module_hotfixes')))}\n"
            )
        settings = {"reposdir": parts, "cachedir": folder / "cache", "persistdir": folder / "state"}
        self.options = [f"--setopt={name}={value}" for name, value in settings.items()]
        # the role installs without the locks of the versions that are there, too
        self.options += ["--disableplugin=versionlock", "--setopt=install_weak_deps=False"]

    def dnf(self, *words):
        """dnf's answer, in English, asking for nothing."""
        pipe = subprocess.PIPE
        command = ["dnf", "--assumeno", *self.options, *words]
        env = dict(os.environ, LC_ALL="C.UTF-8")
        return subprocess.run(command, stdout=pipe, stderr=pipe, universal_newlines=True, timeout=300, env=env)

    def unreadable(self):
        """Why the repositories can't be read, or None."""
        done = self.dnf("--quiet", "makecache")
        return " ".join(done.stderr.split()) if done.returncode else None

    def missing(self):
        """Nothing: dnf's solver names what isn't there."""
        return []

    def solved(self):
        """(why dnf's solver refuses the packages, or None; [(name, version) that it would replace by others]). It takes
        nothing else away: the roles don't allow it to.
        """
        done = self.dnf("install", *self.packages)
        said = done.stdout + done.stderr
        agreed = not done.returncode or "Operation aborted" in said  # it asked, and nobody said yes
        return (None, dnf_replaced(said)) if agreed else (dnf_reason(said), [])

    def origin(self, name, version):  # noqa: ARG002 (as Apt's)
        """Where an installed package came from, as rpm's database says."""
        said = run(["dnf", "--quiet", "repoquery", "--installed", "--qf", "%{from_repo}", name], 60).stdout.split()
        return said[0] if said else None


def dnf_replaced(said):
    """[(name, version)] that packages of the transaction make obsolete, and that have another name."""
    found = re.findall(r"^ +replacing +(\S+)\.\w+ +(\S+)$", said, re.MULTILINE)
    return [(name, version) for name, version in found]


def dnf_reason(said):
    """What dnf couldn't find or meet, in a line, and what helps where a module stream hides it."""
    lines = [" ".join(line.split()) for line in said.splitlines()]
    hidden = [line.rpartition(": ")[2] for line in lines if "filtered out by modular filtering" in line]
    if hidden:
        cure = "write module_hotfixes: true at their repository in base_dnf_repositories"
        return f"module streams hide {', '.join(hidden)}: {cure}"
    absent = [line.rpartition(": ")[2] for line in lines if line.startswith(("No match for", "No package "))]
    if absent:
        return f"no repository has {', '.join(absent)}"
    found = [line.lstrip("- ") for line in lines if line.startswith("- ")]
    errors = [line for line in lines if line.startswith("Error: ")]
    return "; ".join(found[:3] or errors or lines[-1:] or ["no message"])


def packages_error(question):
    """(why the packages can't be installed, or None; what they would take away, and may not)"""
    with tempfile.TemporaryDirectory(prefix="ironburst-") as name:
        try:
            manager = (Apt if question["manager"] == "apt" else Dnf)(Path(name), question)
        except (OSError, KeyError) as error:
            return f"the package repositories can't be read: {error}", []
        unreadable = manager.unreadable()
        if unreadable:
            return f"the package repositories can't be read: {unreadable}", []
        problems = manager.missing()
        if problems:
            cure = "declare a version that is there, or add a repository that has it"
            return f"not in the package repositories: {'; '.join(problems)}; {cure}", []
        reason, removed = manager.solved() if question["packages"] else (None, [])
        if reason:
            return f"{question['manager']} can't install the locked packages: {reason}", []
        return None, [told(manager, *each) for each in removed if not may_go(each[0], question["may_remove"])]


def may_go(name, patterns):
    """Whether somebody has said that a package may be taken away."""
    return any(fnmatch.fnmatch(name, pattern) for pattern in patterns)


def told(manager, name, version):
    """A package that would go, for a person."""
    origin = manager.origin(name, version)
    return f"{name} {version} ({'from ' + origin if origin else 'no repository has it'})"


def gpus():
    """(number of NVIDIA GPUs on the PCI bus, None), or (None, why it is unknown).
    From the kernel: lspci is in a package that the role base installs.
    """
    try:
        found = [(read(folder / "vendor"), read(folder / "class")) for folder in PCI.iterdir()]
    except OSError as error:
        return None, f"{PCI}: {error.strerror}"
    return sum(vendor == "0x10de" and kind[:6] in ("0x0300", "0x0302") for vendor, kind in found), None


def read(path):
    """A file's text without the end of its line."""
    return path.read_text().strip()


def serial():
    """The machine's serial number, None if it shows none."""
    try:
        return Path("/sys/class/dmi/id/product_serial").read_text().strip()
    except OSError:
        return None


def main():
    """Answer the question that is the first argument."""
    question = json.loads(sys.argv[1])
    count, error = gpus()
    answer = {"serial": serial(), "gpus": count, "gpus_error": error, "free_bytes": shutil.disk_usage("/").free}
    answer["packages_error"], answer["removed"] = packages_error(question)
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
