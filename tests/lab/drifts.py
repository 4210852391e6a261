"""Drifts that Ansible repairs on a GPU node, and a driver that seeds them on the host.

Listed by hand from what the roles do, not from what the probe watches: a gap of the probe must show.
"""

from __future__ import annotations

from dataclasses import dataclass

BACKUP = "/root/drift-backup"
DPKG = "/var/lib/dpkg/status"


@dataclass(frozen=True)
class Drift:
    """`seed` and `undo` are shell lines; `thing`: what is touched (two drifts of one thing are never seeded
    together).
    """

    name: str
    thing: str
    seed: str
    undo: str
    repaired: bool = True  # by Ansible; else it is only seen


def _file(path: str, what: str, seed: str) -> Drift:
    keep = f"{BACKUP}{path}"
    first = f"mkdir -p $(dirname {keep}) && cp -a --no-clobber {path} {keep} && "
    return Drift(f"{what} {path}", path, f"{first}{{ {seed}; }}", f"rm -rf {path} && cp -a {keep} {path}")


CONTENT = [
    "/etc/apt/sources.list.d/ironburst.sources",
    "/etc/apt/preferences.d/ironburst",
    "/etc/apt/apt.conf.d/52ironburst-upgrades",
    "/etc/security/limits.d/90-ironburst.conf",
    "/etc/modprobe.d/ironburst-nouveau.conf",
    "/etc/default/grub.d/90-ironburst.cfg",
    "/etc/systemd/system/nvidia-persistenced.service.d/ironburst.conf",
    "/etc/profile.d/ironburst-cuda.sh",
    "/etc/containerd/config.toml",
    "/etc/modules-load.d/ironburst-rdma.conf",
    "/etc/ironburst/gate.json",
    "/etc/ironburst/node.env",
    "/etc/munge/munge.key",
    "/usr/local/sbin/ironburst-gate",
    "/usr/local/sbin/ironburst-prolog",
    "/etc/systemd/system/slurmd.service.d/ironburst.conf",
    "/etc/systemd/system/ironburst-gate.service",
]
MODE = CONTENT[0:1] + CONTENT[3:6] + CONTENT[7:9] + CONTENT[10:14]
OWNER = CONTENT[1:3] + CONTENT[8:9] + CONTENT[12:13] + CONTENT[14:16]
REMOVED = [path for path in CONTENT[:12] if "containerd" not in path][:9]
LINK = [CONTENT[4], CONTENT[7], CONTENT[11]]
FOLDERS = ["/etc/ironburst", "/etc/containerd", "/etc/systemd/system/slurmd.service.d"]
HELD = ["nvidia-open", "slurmd", "nvidia-container-toolkit"]
VERSION = ["nvidia-fabricmanager", "slurm-client", "libnvidia-container1"]
GONE = ["rdma-core", "infiniband-diags"]
STOPPED = ["nvidia-persistenced", "containerd", "nvidia-fabricmanager"]
DISABLED = ["chrony", "munge", "slurmd"]


def _status(package: str, change: str) -> str:
    return f"cp -a --no-clobber {DPKG} {BACKUP}.dpkg; sed -i '/^Package: {package}$/,/^$/ {{ {change} }}' {DPKG}"


def all_drifts() -> list[Drift]:
    drifts = [_file(path, "content", f"echo '# drift' >> {path}") for path in CONTENT]
    drifts += [_file(path, "mode", f"chmod 0666 {path}") for path in MODE]
    drifts += [_file(path, "owner", f"chown nobody {path}") for path in OWNER]
    drifts += [_file(path, "removed", f"rm {path}") for path in REMOVED]
    drifts += [_file(path, "link", f"ln -sfn /etc/hostname {path}") for path in LINK]
    drifts += [Drift(f"mode of folder {path}", path, f"chmod 0777 {path}", f"chmod 0755 {path}") for path in FOLDERS]
    unseen = "/etc/sysctl.d/90-ironburst.conf"
    drifts.append(
        Drift("sysctl file that is not declared", unseen, f"echo 'vm.swappiness = 1' > {unseen}", f"rm {unseen}")
    )
    drifts += [Drift(f"hold of {name}", name, f"apt-mark unhold {name}", f"apt-mark hold {name}") for name in HELD]
    undo = f"cp -a {BACKUP}.dpkg {DPKG}; rm {BACKUP}.dpkg"
    drifts += [
        Drift(f"version of {name}", "dpkg", _status(name, "s/^Version: .*/Version: 0.1/"), undo) for name in VERSION
    ]
    drifts += [
        Drift(f"package {name} gone", "dpkg", _status(name, "s/^Status: .*/Status: deinstall ok config-files/"), undo)
        for name in GONE
    ]
    drifts += [Drift(f"{name} stopped", name, f"systemctl stop {name}", f"systemctl start {name}") for name in STOPPED]
    drifts += [
        Drift(f"{name} disabled", name, f"systemctl disable {name}", f"systemctl enable {name}") for name in DISABLED
    ]
    return drifts


def seen_only() -> list[Drift]:
    """What Ansible does not undo by itself, but nobody may call unchanged."""
    override = "/etc/systemd/system/slurmd.service.d/zz-foreign.conf"
    return [
        Drift(
            "foreign override of slurmd",
            override,
            f"printf '[Service]\\nNice=5\\n' > {override}",
            f"rm {override}",
            False,
        ),
        Drift(
            "masked unit",
            "cdi",
            "systemctl mask --now nvidia-cdi-refresh.path",
            "systemctl unmask nvidia-cdi-refresh.path; systemctl enable --now nvidia-cdi-refresh.path",
            False,
        ),
    ]


def apart(drifts: list[Drift]) -> list[list[Drift]]:
    """Groups in which nothing is touched twice; a folder and what lies in it are not together either."""
    groups: list[list[Drift]] = []
    for drift in drifts:
        free = (group for group in groups if not any(_clash(drift.thing, member.thing) for member in group))
        group = next(free, None)
        if group is None:
            groups.append([drift])
        else:
            group.append(drift)
    return groups


def _clash(a: str, b: str) -> bool:
    packages = "dpkg" in (a, b) and "/" not in a + b
    return a == b or a.startswith(b + "/") or b.startswith(a + "/") or packages


# For the host: seeds one at a time, looks with the probe, undoes. A JSON line of facts each, first and last without
# a seed
DRIVER = r"""
import json, subprocess, sys
program, drifts = json.loads(sys.stdin.read())
def sh(line):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run(line, shell=True, executable="/bin/bash", text=True, **pipes)
    if done.returncode:
        raise SystemExit("%s: %s" % (line, done.stdout))
def look():
    probe = ["python3", "-I", "-S", "-"]
    done = subprocess.run(probe, input=program, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.split("IRONBURST ", 1)[1])
print(json.dumps(look()))
for seed, undo in drifts:
    sh(seed)
    print(json.dumps(look()))
    sh(undo)
print(json.dumps(look()))
"""
