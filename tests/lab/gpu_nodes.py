"""One GPU node on each system that the lab has, declared and locked as the product does it, and the playbooks on
them.
"""

import json
import re
import subprocess

import yaml

from ironburst import document
from ironburst.baking.first_contact import host_keys
from ironburst.config import load
from ironburst.document import build
from lab import names
from lab.demo.inside import Inside
from lab.hosts import fabric, rootfs, systems
from lab.hosts.spec import bare_metal, cloud
from lab.packages import apt_repository, rpm_repository, schedmd, schedmd_rpms
from tests.playbooks.sample import POOL_ZONES, REPOSITORY

ADDRESSES = {name: f"10.78.0.{30 + number}" for number, name in enumerate(sorted(systems.SYSTEMS))}
HALL = {"head": names.ADDRESSES["head"], **ADDRESSES}  # the head has the switches of the fabric
BAKERS = {name: (f"i-0000000000000{number:04}", f"10.90.9.{number + 1}") for number, name in enumerate(ADDRESSES)}
# A GPU node's, but Slurm's
ROLES = [
    *("base", "host_names", "nvidia_driver", "fabric_manager", "cuda", "nvidia_container_toolkit"),
    *("container_runtime", "rdma", "dcgm", "node_health"),
]
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
    cluster["software"] |= {"os": name, "container_runtime": RUNTIMES[name]} | software
    cluster["ssh"] |= {"cloud_user": systems.of(name).user}
    for part in ("groups", "images"):
        cluster["cloud"].pop(part, None)
    return stack


# A rented node that finds no lease ends itself: here it boots without one
WITHOUT_LEASE = {
    f"etc/systemd/system/ironburst-{name}": "-> /dev/null"
    for name in ("join.service", "join-failed.service", "dead-man.timer")
}


class Systems:
    """A lab with a host of each of `chosen`, and their repositories as inventory variables."""

    def __init__(self, site, chosen):
        self.site, self.chosen = site, list(chosen)
        self.inside = Inside(site)
        self.repositories = {}
        for name in ("head", *self.chosen):
            files = fabric.host_files(name, HALL)
            system = systems.USUAL if name == "head" else name
            site.start_host(bare_metal(name, HALL[name], system=system, hosts=HALL, files=files))
        for name in self.chosen:
            if systems.of(name).family == "rhel":
                self.repositories[name] = {"base_dnf_repositories": rpm_repository.serve(site.box, name)}
            else:
                self.repositories[name] = {"base_apt_repositories": apt_repository.serve(site.box, name)}
        assert set(site.wait(("head", *self.chosen), 180).values()) == {"running"}

    def serve_slurm(self):
        """SchedMD's packages of Slurm beside the other repositories, from now on."""
        for name, variables in self.repositories.items():
            of = schedmd_rpms if systems.of(name).family == "rhel" else schedmd
            for entries in variables.values():
                entries += of.serve(self.site.box, name)

    def declare(self, roles=tuple(ROLES), more_in_images=(), **software):
        """Publish a document in which each host has `roles`, and a pool of its system, too: it and `more_in_images`."""
        hosts, pools = [], []
        for name in self.chosen:
            path = self.site.dir / "run" / f"Pulumi.{name}.yaml"
            path.write_text(yaml.safe_dump(declared(name, **software)))
            built = build.build(load.load(path), build.Observed(pool_zones={"p5": POOL_ZONES}))
            hosts.append(built.host(name).model_copy(update={"roles": list(roles)}))
            pools.append(built.pools[0].model_copy(update={"name": name, "roles": [*roles, *more_in_images]}))
        document.publish(built.model_copy(update={"hosts": hosts, "pools": pools}), self.inside.document)

    def play(self, *options, playbook="playbooks/site.yml", ok=True, **variables):
        """({host: {ok, changed, failed, ...}}, what was said)"""
        inventory = self.site.dir / "run" / "inventory"
        inventory.mkdir(exist_ok=True)
        (inventory / "stack.yml").write_text("plugin: stack_document\n")
        (inventory / "host_vars").mkdir(exist_ok=True)
        for name in self.chosen:
            for host in (name, f"image-{name}"):
                (inventory / "host_vars" / f"{host}.json").write_text(json.dumps(self.repositories[name]))
        more = ["-i", "inventory/lab", "-i", str(inventory)]
        extra = ["-e", json.dumps(variables)] if variables else []
        command = self.inside.argv("env", "ANSIBLE_NOCOLOR=1", "ansible-playbook", *more, *extra, playbook, *options)
        done = subprocess.run(command, capture_output=True, text=True, timeout=900)
        said = done.stdout + done.stderr
        lines = re.findall(r"^([\w-]+)\s+: (ok=.*)$", done.stdout.rpartition("PLAY RECAP")[2], re.MULTILINE)
        recap = {host: {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", counts)} for host, counts in lines}
        assert not ok or done.returncode == 0, said[-8000:]
        return recap, said

    def builder(self, name, image=None):
        """An instance that boots the stock image of a system, or a baked one, with the lab's key for its user; what
        playbooks/image.yml is told of it.
        """
        instance, address = BAKERS[name]
        files = WITHOUT_LEASE if image else {}
        self.site.start_host(cloud(instance, address, "p5.48xlarge", system=name, image=image, files=files))
        self.site.wait([instance], 120)
        user = systems.of(name).user
        public = rootfs.ssh_key(self.site.box.root).with_suffix(".pub").read_text()
        folder = f"~{user}/.ssh"
        keys = f"install -d -m 700 -o {user} -g {user} {folder} && cat > {folder}/authorized_keys"
        self.site.ssh(instance, f"{keys} && chown {user}: {folder}/authorized_keys", stdin=public)
        known = self.site.dir / "run" / f"known_hosts.{name}"
        known.write_text("".join(f"{address} {line}\n" for line in host_keys(self.site.host(instance).console())))
        return {"pool": name, "address": address, "user": user, "known_hosts": str(known)}

    def says(self, name, command):
        """What a command on a host prints."""
        return self.site.ssh(name, command, check=False).stdout.strip()
