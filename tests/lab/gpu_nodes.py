"""One GPU node on each system that the lab has, declared and locked as the product does it, and the playbooks on
them.
"""

import json
import re
import subprocess

import yaml

from ironburst import document
from ironburst.config import load
from ironburst.document import build
from lab import names
from lab.demo.inside import Inside
from lab.hosts import systems
from lab.hosts.spec import bare_metal
from lab.packages import apt_repository, rpm_repository
from tests.playbooks.sample import REPOSITORY

ADDRESSES = {name: f"10.78.0.{30 + number}" for number, name in enumerate(sorted(systems.SYSTEMS))}
ROLES = ["base", "nvidia_driver", "fabric_manager", "nvidia_container_toolkit", "container_runtime"]
# Real where there is a real one: Docker's own packages for EL are none of the lab's. The lab's Ubuntu has Debian's
# docker.io, and not its own: 22.04's knows CDI, Debian 12's doesn't even start with its keys; 24.04's brings its
# command line
RUNTIMES = {name: ["docker", "containerd"] for name in systems.SYSTEMS} | {
    "ubuntu2204": ["containerd", "apptainer"],
    "ubuntu2404": ["containerd", "apptainer"],
    "rhel9": ["apptainer", "enroot"],
    "rhel10": ["apptainer", "enroot"],
}


def declared(name, dgx_os=False, **software):
    """A stack file with one node of this system beside the head; `software` overrides the lab's."""
    stack = yaml.safe_load((REPOSITORY / "stacks" / "Pulumi.lab.yaml").read_text())
    cluster = stack["config"]["ironburst:cluster"]
    head, node = cluster["halls"][0]["nodes"]
    node |= {
        "names": name,
        "os": name,
        "units": [1],
        "addresses": ADDRESSES[name],
        "dgx_os": dgx_os,
        "macs": [names.mac_of(name)],
        "serials": [names.serial_of(name)],
        "bmc": node["bmc"] | {"addresses": "http://10.78.8.11"},
    }
    cluster["halls"][0]["nodes"] = [head, node]
    cluster["software"] |= {"container_runtime": RUNTIMES[name]} | software
    for part in ("groups", "pools", "images"):
        cluster["cloud"].pop(part, None)
    return stack


class Systems:
    """A lab with a host of each of `chosen`, and their repositories as inventory variables."""

    def __init__(self, site, chosen):
        self.site, self.chosen = site, list(chosen)
        self.inside = Inside(site)
        self.repositories = {}
        for name in self.chosen:
            site.start_host(bare_metal(name, ADDRESSES[name], system=name, hosts={}, files={}))
            if systems.of(name).family == "rhel":
                self.repositories[name] = {"base_dnf_repositories": rpm_repository.serve(site.box, name)}
            else:
                self.repositories[name] = {"base_apt_repositories": apt_repository.serve(site.box, name)}
        assert set(site.wait(self.chosen, 180).values()) == {"running"}

    def declare(self, roles=tuple(ROLES), **software):
        """Publish a document in which each host has `roles`."""
        hosts = []
        for name in self.chosen:
            path = self.site.dir / "run" / f"Pulumi.{name}.yaml"
            path.write_text(yaml.safe_dump(declared(name, **software)))
            built = build.build(load.load(path), build.Observed())
            hosts.append(built.host(name).model_copy(update={"roles": list(roles)}))
        document.publish(built.model_copy(update={"hosts": hosts}), self.inside.document)

    def play(self, *options, playbook="playbooks/site.yml", ok=True, **variables):
        """({host: {ok, changed, failed, ...}}, what was said)"""
        inventory = self.site.dir / "run" / "inventory"
        inventory.mkdir(exist_ok=True)
        (inventory / "stack.yml").write_text("plugin: stack_document\n")
        for name in self.chosen:
            (inventory / "host_vars").mkdir(exist_ok=True)
            (inventory / "host_vars" / f"{name}.json").write_text(json.dumps(self.repositories[name]))
        more = ["-i", "inventory/lab", "-i", str(inventory)]
        extra = ["-e", json.dumps(variables)] if variables else []
        command = self.inside.argv("env", "ANSIBLE_NOCOLOR=1", "ansible-playbook", *more, *extra, playbook, *options)
        done = subprocess.run(command, capture_output=True, text=True, timeout=900)
        said = done.stdout + done.stderr
        lines = re.findall(r"^(\w+)\s+: (ok=.*)$", done.stdout.rpartition("PLAY RECAP")[2], re.MULTILINE)
        recap = {host: {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", counts)} for host, counts in lines}
        assert not ok or done.returncode == 0, said[-8000:]
        return recap, said

    def says(self, name, command):
        """What a command on a host prints."""
        return self.site.ssh(name, command, check=False).stdout.strip()
