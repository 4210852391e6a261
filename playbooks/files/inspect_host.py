#!/usr/bin/python3
"""inspect_host.py QUESTION: what playbooks/validate.yml wants to know of a host, as JSON on stdout. Changes nothing.

QUESTION is JSON: {"manager": "apt" | "dnf", "repositories": [as base_apt_repositories, base_dnf_repositories],
"packages": [specs of the lock], "pin": the apt pin}. Answer: {"serial": str|null, "gpus": int|null, "gpus_error":
str|null, "free_bytes": int, "packages_error": str|null}. What apt and dnf write goes into a temporary folder.
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

    def unsolvable(self):
        """Why apt's solver refuses the packages, or None."""
        allowed = ["--no-install-recommends", "--allow-downgrades", "--allow-change-held-packages"]
        done = run(["apt-get", *self.options, "--simulate", "install", *allowed, *self.packages], 120)
        return apt_reason(done.stdout + done.stderr) if done.returncode else None


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

    def unsolvable(self):
        """Why dnf's solver refuses the packages, or None."""
        done = self.dnf("install", *self.packages)
        agreed = (
            not done.returncode or "Operation aborted" in done.stdout + done.stderr
        )  # it asked, and nobody said yes
        return None if agreed else dnf_reason(done.stdout + done.stderr)


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
    """Why the packages can't be installed, or None."""
    with tempfile.TemporaryDirectory(prefix="ironburst-") as name:
        try:
            manager = (Apt if question["manager"] == "apt" else Dnf)(Path(name), question)
        except (OSError, KeyError) as error:
            return f"the package repositories can't be read: {error}"
        unreadable = manager.unreadable()
        if unreadable:
            return f"the package repositories can't be read: {unreadable}"
        problems = manager.missing()
        if problems:
            cure = "declare a version that is there, or add a repository that has it"
            return f"not in the package repositories: {'; '.join(problems)}; {cure}"
        reason = manager.unsolvable() if question["packages"] else None
    return f"{question['manager']} can't install the locked packages: {reason}" if reason else None


def gpus():
    """(number of NVIDIA GPUs on the PCI bus, None), or (None, why it is unknown)."""
    try:
        shown = run(["lspci", "-Dn", "-d", "10de:"], 20)
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, f"lspci: {error}"
    if shown.returncode:
        return None, f"lspci failed: {shown.stderr.strip()}"
    return sum(line.split()[1] in ("0300:", "0302:") for line in shown.stdout.splitlines()), None


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
    answer["packages_error"] = packages_error(question)
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
