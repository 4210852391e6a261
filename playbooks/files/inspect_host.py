#!/usr/bin/python3
"""inspect_host.py QUESTION: what playbooks/validate.yml wants to know of a host, as JSON on stdout. Changes nothing.

QUESTION is JSON: {"repositories": [{name, url, suite, components, key_url}], "packages": ["name", "name=1.2.*"]};
packages null: not asked. Answer: {"serial": str|null, "gpus": int|null, "gpus_error": str|null, "free_bytes": int,
"packages_error": str|null}. Everything that apt writes goes into a temporary folder.
"""

import fnmatch
import json
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


def prepare(folder, repositories):
    """apt's options for package lists of its own in `folder`."""
    parts = folder / "sources.list.d"
    for sub in (parts, folder / "lists" / "partial", folder / "cache" / "archives" / "partial"):
        sub.mkdir(parents=True)
    for existing in [
        *Path("/etc/apt/sources.list.d").glob("*.list"),
        *Path("/etc/apt/sources.list.d").glob("*.sources"),
    ]:
        if existing.name != "ironburst.sources":
            (parts / existing.name).write_bytes(existing.read_bytes())
    for number, repository in enumerate(repositories):
        key = folder / f"{number}.asc"
        with urllib.request.urlopen(repository["key_url"], timeout=20) as response:
            key.write_bytes(response.read())
        key.chmod(0o644)
        (parts / f"ironburst-{number}.sources").write_text(
            f"Types: deb\nURIs: {repository['url']}\nSuites: {repository['suite']}\n"
            f"Components: {' '.join(repository['components'])}\nSigned-By: {key}\n"
        )
    folder.chmod(0o755)
    settings = {
        "Dir::Etc::sourceparts": parts,
        "Dir::State::lists": folder / "lists",
        "Dir::Cache": folder / "cache",
        "APT::Update::Error-Mode": "any",
        "APT::Sandbox::User": "root",
        "Acquire::Languages": "none",
    }
    return [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]


def missing(packages, options):
    """Of `packages` those that no repository has, with what there is instead."""
    names = sorted({package.partition("=")[0] for package in packages})
    table = run(["apt-cache", *options, "madison", *names], 60).stdout
    versions = {}
    for line in table.splitlines():
        name, version = (field.strip() for field in line.split("|")[:2])
        versions.setdefault(name, []).append(version)
    problems = []
    for package in packages:
        name, _, pattern = package.partition("=")
        there = versions.get(name, [])
        if not any(fnmatch.fnmatch(version, pattern or "*") for version in there):
            problems.append(f"{package} (there is {', '.join(sorted(set(there))) or 'no such package'})")
    return problems


def packages_error(question):
    """Why the packages can't be installed, or None."""
    with tempfile.TemporaryDirectory(prefix="ironburst-") as name:
        try:
            options = prepare(Path(name), question["repositories"])
        except (OSError, KeyError) as error:
            return f"the package repositories can't be read: {error}"
        update = run(["apt-get", *options, "update", "-qq"], 300)
        if update.returncode:
            return "the package repositories can't be read: " + " ".join(update.stderr.split())
        problems = missing(question["packages"], options)
    if problems:
        cure = "declare a version that is there, or add a repository that has it"
        return f"not in the package repositories: {'; '.join(problems)}; {cure}"
    return None


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
    answer["packages_error"] = None if question["packages"] is None else packages_error(question)
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
