"""A copy of inventory/example-static with a lab's hosts in it, and playbooks on it. The lab's own settings, which no
sysadmin has, are extra variables.
"""

import json
import re
import shutil
import subprocess

import yaml

from lab.demo.inside import Inside
from lab.packages import repository
from tests.playbooks.sample import REPOSITORY


def repositories_by_hand(site):
    """{path: text} of what a sysadmin has put on a host already: no role writes it."""
    key = "usr/share/keyrings/lab.asc"
    files = {key: (repository.repositories(site.box.root) / "lab.asc").read_text()}
    for name in ("nv", "debian"):
        files |= {path.lstrip("/"): text for path, text in repository.client_files(name, f"/{key}").items()}
    return files


class Static:
    """`hosts`: {name: (address, its groups)}, None for the example's; `edits`: what is written in the copy in the place
    of what.
    """

    def __init__(self, site, hosts=None, edits=()):
        self.inside = Inside(site)
        self.folder = site.dir / "run" / "static"
        shutil.copytree(REPOSITORY / "inventory" / "example-static", self.folder)
        for file in self.folder.rglob("*.*"):
            text = file.read_text()
            for old, new in dict(edits).items():
                text = text.replace(old, new)
            file.write_text(text)
        self.more = yaml.safe_load("\n".join(re.findall(r"^# (node_\w+: .*)$", self.text("gpu"), re.MULTILINE)))
        if hosts is not None:
            lines = [f"{name} ansible_host={address}" for name, (address, _) in hosts.items()]
            lines += [line for name, (_, groups) in hosts.items() for group in groups for line in (f"[{group}]", name)]
            (self.folder / "hosts.ini").write_text("\n".join(lines) + "\n")

    def text(self, group):
        return (self.folder / "group_vars" / f"{group}.yml").read_text()

    def offer(self, host, name):
        """Give a host a variable that the example has as a comment."""
        (self.folder / "host_vars" / f"{host}.json").write_text(json.dumps({name: self.more[name]}))

    def play(self, playbook, *options, ok=True, **values):
        """({host: {ok, changed, failed, ...}}, output)"""
        lab = ("-e", "@inventory/lab/group_vars/all/lab.yml", "-e", json.dumps(values))
        command = ("env", "ANSIBLE_NOCOLOR=1", "ansible-playbook", "-i", str(self.folder), *lab, playbook, *options)
        done = subprocess.run(self.inside.argv(*command), capture_output=True, text=True, timeout=1200)
        said = done.stdout + done.stderr
        lines = re.findall(r"^([\w-]+)\s+: (ok=.*)$", done.stdout.rpartition("PLAY RECAP")[2], re.MULTILINE)
        recap = {host: {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", counts)} for host, counts in lines}
        assert not ok or done.returncode == 0, said[-8000:]
        return recap, said

    def roles(self, now, *options, ok=True, **values):
        """The same of these roles alone: `now` is {host: its roles}."""
        return self.play("tests/lab/static.yml", *options, ok=ok, roles_now=now, **values)


def failure(said, host):
    """What the first failed task of a host says."""
    found = re.search(rf"^(?:fatal|failed): \[{host}\].*?(?=^$|^TASK)", said, re.MULTILINE | re.DOTALL)
    return found[0] if found else ""
