"""Hosts as /proc shows them, idle and with random work of somebody, for the look that stands before a reboot.

Written from the kernel's own files (proc(5)): stat, status, cmdline, comm, cgroup, loginuid, fd.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

UNSET = str(2**32 - 1)
OWN = 900  # the module's own process, or the one on whose behalf it was forked
SERVICES = [
    (1, 0, "systemd", "/sbin/init"),
    (210, 1, "systemd-journal", "/lib/systemd/systemd-journald"),
    (300, 1, "sshd", "sshd: /usr/sbin/sshd -D [listener] 0 of 10-100 startups"),
    (310, 1, "agetty", "/sbin/agetty -o -p -- \\u --noclear - linux"),
    (320, 1, "chronyd", "/usr/sbin/chronyd -F 1"),
    (330, 1, "nvidia-persiste", "/usr/bin/nvidia-persistenced --persistence-mode --verbose"),
    (340, 1, "nv-hostengine", "/usr/bin/nv-hostengine -n --service-account nvidia-dcgm"),
    (350, 1, "containerd", "/usr/bin/containerd"),
    (360, 1, "munged", "/usr/sbin/munged"),
]


@dataclass
class FakeHost:
    """A copy of a host's /proc below `root`, and what its commands answer."""

    root: Path
    answers: dict[str, tuple[int | None, str]] = field(default_factory=dict)
    next_pid: int = 5000

    def process(self, comm, command="", *, pid=None, parent=1, uid=0, login=UNSET, tty=0, group="", opens=()):
        """One more process; its pid."""
        if pid is None:
            pid, self.next_pid = self.next_pid, self.next_pid + 1
        folder = self.root / "proc" / str(pid)
        (folder / "fd").mkdir(parents=True)
        (folder / "comm").write_text(comm[:15] + "\n")
        (folder / "cmdline").write_text("\0".join((command or comm).split(" ")) + "\0")
        (folder / "stat").write_text(f"{pid} ({comm[:15]}) S {parent} {pid} {pid} {tty} -1 4194560 0 0 0\n")
        (folder / "status").write_text(f"Name:\t{comm[:15]}\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n")
        (folder / "loginuid").write_text(login)
        (folder / "cgroup").write_text(f"0::{group or '/system.slice/x.service'}\n")
        for number, path in enumerate(opens, 3):
            (folder / "fd" / str(number)).symlink_to(path)
        return pid

    def file(self, path, text=""):
        """One more file."""
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


def idle(folder: Path, user: int = 0) -> FakeHost:
    """A host that only Ansible is on, logged in as `user` by ssh, with sudo where that isn't root."""
    host = FakeHost(folder)
    for pid, parent, comm, command in SERVICES:
        opens = ["/dev/nvidia0", "/dev/nvidiactl"] if comm.startswith("nv") else []
        host.process(comm, command, pid=pid, parent=parent, opens=opens)
    host.process("kthreadd", " ", pid=2, parent=0)
    host.process("kworker/0:1", " ", pid=20, parent=2)
    name = "root" if user == 0 else "admin"
    login, session = str(user), f"/user.slice/user-{user}.slice/session-4.scope"
    host.process("sshd", f"sshd: {name} [priv]", pid=800, parent=300, login=login, group=session)
    host.process("sshd", f"sshd: {name}@notty", pid=801, parent=800, uid=user, login=login, group=session)
    host.process("sh", "sh -c sudo python3", pid=802, parent=801, uid=user, login=login, group=session)
    host.process("sudo", "sudo -H -S -n python3", pid=803, parent=802, login=login, group=session)
    host.process("python3", "python3", pid=OWN, parent=803, login=login, group=session)
    # what waits for it, a module that was forked of files/kept_module.py, and the one of an earlier connection
    kept = "/usr/bin/python3 - /run/ironburst-modules/73ca19a4320d669d-10.1.0.2"
    host.process("python3", f"{kept}-51514 4", pid=910, login=login, group=session)
    host.process("python3", f"{kept}-51514 4", pid=911, parent=910, login=login, group=session)
    host.process("python3", f"{kept}-40122 4", pid=912, login=login)
    # the connection that ControlPersist keeps of an earlier play, and what logind starts for a user
    host.process("sshd", f"sshd: {name} [priv]", pid=700, parent=300, login=login)
    host.process("sshd", f"sshd: {name}@notty", pid=701, parent=700, uid=user, login=login)
    for comm in ("systemd", "(sd-pam)", "dbus-daemon"):
        host.process(comm, f"/lib/systemd/{comm} --user", uid=user, login=login)
    host.file("/etc/passwd", "root:x:0:0:root:/root:/bin/bash\nadmin:x:1000:1000::/home/admin:/bin/bash\n"
              "alice:x:1001:1001::/home/alice:/bin/bash\nbob:x:250017:250017::/home/bob:/bin/bash\n")  # fmt: skip
    host.file("/etc/login.defs", "# UID_MIN 500\nUID_MIN\t\t\t 1000\n")
    host.answers.update({"squeue": (0, ""), "nvidia-smi": (0, ""), "/usr/local/sbin/ironburst-kubelet": (0, "")})
    return host


# ---- what people and schedulers do: each makes a host busy. (host, random) -> the kind that is found at least


def person(dice: random.Random) -> int:
    return dice.choice([1001, 250017, 1042])


def slurm_step(host, dice):
    daemon = host.process("slurmd", "/usr/sbin/slurmd --systemd --conf-server 10.1.0.2 -N dgx01")
    step = f"{dice.randrange(1, 10**7)}.{dice.choice(['batch', 'extern', 'interactive', '0', '17'])}"
    stepd = host.process("slurmstepd", f"slurmstepd: [{step}]", parent=dice.choice([1, daemon]))
    host.process(dice.choice(["python", "srun", "bash"]), parent=stepd, uid=person(dice))
    return "jobs"


def slurm_allocation(host, dice):
    host.process("slurmd", "/usr/sbin/slurmd -D -s -N dgx01")
    host.answers["squeue"] = (0, f"{dice.randrange(1, 10**6)}\n")
    return "jobs"


def slurm_prolog(host, dice):
    daemon = host.process("slurmd", "/usr/sbin/slurmd --systemd")
    which = dice.choice(["/etc/slurm/prolog.d/10-gate", "/usr/local/sbin/ironburst-prolog", "/etc/slurm/epilog.sh"])
    host.process("sh", f"/bin/sh {which}", parent=daemon)
    return "jobs"


def slurm_without_controller(host, dice):
    host.process("slurmd", "/usr/sbin/slurmd --systemd")
    host.answers["squeue"] = dice.choice(
        [(1, "slurm_load_jobs error: Unable to contact slurm controller"), (None, "no")]
    )
    return "unseen"


def gpu_process(host, dice):
    device = dice.choice(["/dev/nvidia0", "/dev/nvidia7", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/dri/renderD128"])
    host.process(
        dice.choice(["python3", "ollama", "Xorg", "nvidia-cuda-mps"]), uid=dice.choice([0, 104, 1001]), opens=[device]
    )
    return "gpus"


def gpu_process_elsewhere(host, dice):
    host.answers["nvidia-smi"] = (0, f"{dice.randrange(10_000, 99_999)}, /opt/conda/bin/python\n")
    return "gpus"


def docker(host, dice):
    space = dice.choice(["moby", "default", "buildkit"])
    host.process("containerd-shim", f"/usr/bin/containerd-shim-runc-v2 -namespace {space} -id {dice.random()}")
    return "containers"


def other_containers(host, dice):
    comm, command = dice.choice(
        [
            ("conmon", "/usr/bin/conmon --api-version 1 -c 0a"),
            ("starter", "Apptainer runtime parent"),
            ("starter-suid", "Singularity runtime parent"),
            ("apptainer", "apptainer run --nv image.sif"),
            ("systemd-nspawn", "systemd-nspawn -b -D /var/lib/machines/x"),
            ("qemu-system-x86", "/usr/bin/qemu-system-x86_64 -m 4096"),
            ("lxc-start", "[lxc monitor] /var/lib/lxc web"),
        ]
    )
    host.process(comm, command, uid=dice.choice([0, 1001]))
    return "containers"


def pods(host, dice):
    host.process("containerd-shim", "/usr/bin/containerd-shim-runc-v2 -namespace k8s.io -id 7")
    host.process("kubelet", "/usr/bin/kubelet")
    if dice.random() < 0.5:
        host.file("/usr/local/sbin/ironburst-kubelet")
        host.answers["/usr/local/sbin/ironburst-kubelet"] = (1, "ironburst-kubelet: pods run here: default/train")
    else:
        host.answers["/usr/local/sbin/ironburst-kubelet"] = (None, "can't be run")
    return "containers"


def foreign_kubelet(host, _dice):
    host.process("kubelet", "/usr/bin/kubelet --config=/var/lib/kubelet/config.yaml")
    return "schedulers"


def login(host, dice):
    uid = person(dice)
    connection = host.process("sshd", "sshd: alice [priv]", parent=300, login=str(uid))
    below = host.process(
        "sshd", f"sshd: alice@{dice.choice(['pts/0', 'notty'])}", parent=connection, uid=uid, login=str(uid)
    )
    if dice.random() < 0.7:
        host.process(dice.choice(["bash", "zsh"]), "-bash", parent=below, uid=uid, login=str(uid), tty=34816)
    return "users"


def left_running(host, dice):
    uid = person(dice)
    comm = dice.choice(["python3", "train.sh", "rsync", "jupyter-lab", "tmux: server", "code-server", "slurm_train"])
    slices = [
        f"/user.slice/user-{uid}.slice/session-2.scope",
        f"/user.slice/user-{uid}.slice/user@{uid}.service/app.slice/a.service",
    ]
    host.process(comm, uid=uid, login=dice.choice([str(uid), UNSET]), group=dice.choice(slices))
    return "users"


def by_sudo(host, dice):
    host.process(dice.choice(["fio", "python3", "tcpdump"]), uid=0, login=str(person(dice)))
    return "users"


def root_at_work(host, dice):
    if dice.random() < 0.5:
        host.process("bash", "-bash", tty=dice.choice([1025, 34817]), login="0")
    else:
        host.process(dice.choice(["tmux: server", "screen"]), "tmux new -s upgrade", login="0")
    return "users"


def cron_job(host, dice):
    cron = host.process("cron", "/usr/sbin/CRON -f")
    host.process("sh", "/bin/sh -c ~/nightly.sh", parent=cron, uid=person(dice), group="/system.slice/cron.service")
    return "users"


def other_scheduler(host, dice):
    comm = dice.choice(
        ["pbs_mom", "sbatchd", "sge_execd", "condor_startd", "nomad", "raylet", "flux-broker", "k3s-agent"]
    )
    host.process(comm, f"/usr/sbin/{comm}")
    return "schedulers"


def job_of_another(host, dice):
    between = {"pbs_mom": "pbs_task", "sbatchd": "res", "sge_execd": "sge_shepherd", "nomad": "nomad"}
    comm = dice.choice([*between, "condor_startd"])
    daemon = host.process(comm, f"/usr/sbin/{comm}")
    host.process(
        "vasp_std", parent=host.process(between.get(comm, "condor_starter"), parent=daemon), uid=dice.choice([0, 1001])
    )
    return "jobs"


def ray_work(host, _dice):
    daemon = host.process("raylet", "/opt/ray/raylet")
    host.process("python3", "/opt/ray/agent.py", parent=daemon)
    host.process("ray::train", "ray::train()", parent=daemon)
    return "jobs"


WORK = (
    slurm_step, slurm_allocation, slurm_prolog, slurm_without_controller, gpu_process, gpu_process_elsewhere, docker,
    other_containers, pods, foreign_kubelet, login, left_running, by_sudo, root_at_work, cron_job, other_scheduler,
    job_of_another, ray_work,
)  # fmt: skip


def busy(folder: Path, seed: int) -> tuple[FakeHost, list[str]]:
    """A host with one to four random works on it, and the kinds that must be found."""
    dice = random.Random(seed)
    host = idle(folder, user=dice.choice([0, 1000]))
    # each comes first in turn, so that 200 states have every one of them, some alone
    first = WORK[seed % len(WORK)]
    kubelets = {pods, foreign_kubelet}  # a host has one
    others = [work for work in WORK if work not in kubelets or first not in kubelets]
    works = [
        first,
        *dice.sample([work for work in others if work is not foreign_kubelet], dice.choice([0, 0, 1, 2, 3])),
    ]
    return host, sorted({work(host, dice) for work in dict.fromkeys(works)})
