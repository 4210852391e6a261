"""Who uses this host at this moment: asked right before anything reboots it, stops a service or unloads a module.

The node is asked itself: its processes, and of Slurm and Kubernetes what they have given it. What can't be found out
counts as somebody's work (kind `unseen`).
"""

from __future__ import annotations

import os
import re
import subprocess

# What there may be, in this order; of these somebody may declare that a host's may be disturbed
KINDS = ("jobs", "gpus", "containers", "users", "schedulers", "unseen")
MAY = ("containers", "users", "schedulers", "unseen")
CURES = {
    "jobs": "drain the node and wait for its jobs (`ironburst converge` does)",
    "gpus": "end what uses the GPUs",
    "containers": "end the containers",
    "users": "ask them to end their work and to log out",
    "schedulers": "close the node there and stop its daemon",
    "unseen": "see that it answers",
}
OPTIONS = {
    "free_for": {"type": "str"},
    "disturbs": {"type": "list", "elements": "str", "default": list(KINDS), "choices": list(KINDS)},
    "may_disturb": {"type": "list", "elements": "str", "default": []},
}
# They hold GPUs open on every node: no job of anybody
DAEMONS = (
    "nvidia-persiste",
    "nv-fabricmanage",
    "nv-hostengine",
    "nvidia-imex",
    "dcgm-exporter",
    "nvlsm",
    "nvidia-smi",
    "nvsm",
)
DEVICE = re.compile(r"/dev/(nvidia(\d+|ctl|-uvm|-nvswitch|-caps)|dri/render)")
# Processes that stand for a container or a virtual machine; its own processes lie in control groups of its own
SHIMS = ("containerd-shim", "docker-containe", "conmon", "lxc-start", "systemd-nspawn", "qemu-", "starter")
RUNTIMES = re.compile(r"^(apptainer|singularity|enroot|charliecloud|ch-run)\b|^(Apptainer|Singularity) runtime parent")
BOXED = re.compile(r"/(kubepods|docker[-/]|libpod-|cri-containerd|crio-|lxc|machine\.slice)")
# Other schedulers' daemons: {comm: (whose, comms of the daemon's own children)}
SCHEDULERS = {
    "pbs_mom": ("PBS", ("pbs_",)),
    "sbatchd": ("LSF", ("sbatchd", "lim", "res", "pim", "melim", "mbatchd", "mbschd", "eauth", "elim")),
    "sge_execd": ("Grid Engine", ("sge_",)),
    "condor_startd": ("HTCondor", ("condor_",)),
    "nomad": ("Nomad", ("nomad",)),
    "raylet": ("Ray", ("ray", "python")),
    "flux-broker": ("Flux", ("flux", "python")),
    "mesos-agent": ("Mesos", ("mesos",)),
    "k3s-agent": ("k3s", ("containerd", "k3s")),
    "k3s-server": ("k3s", ("containerd", "k3s")),
    "rke2": ("RKE2", ("containerd", "kubelet", "rke2")),
}
RAY_WORK = re.compile(r"^ray::(?!IDLE)")
# What a login leaves behind without anybody's work in it
PLUMBING = (
    "(sd-pam)",
    "systemd",
    "dbus-daemon",
    "dbus-broker",
    "dbus-broker-lau",
    "gpg-agent",
    "dirmngr",
    "keyboxd",
    "ssh-agent",
    "pipewire",
    "wireplumber",
    "gcr-ssh-agent",
    "gnome-keyring-d",
)
MULTIPLEXERS = ("tmux: server", "screen", "dtach", "abduco", "zellij")
GETTY = ("agetty", "getty", "mingetty", "login", "(agetty)")
SESSION = re.compile(r"^sshd(-session)?: \S+")
KEPT = re.compile(r"^\S+ - /run/ironburst-modules/")  # playbooks/files/kept_module.py, of which modules are forked
SLURM = ("slurmd", "slurmstepd", "slurmctld", "slurmdbd", "slurmrestd")
NOBODY = range(61184, 65536)  # systemd's dynamic users, and nobody
UNSET = 2**32 - 1
SHOWN = 3  # of each kind


def step_of(command):
    """The Slurm step of a slurmstepd's command line (`slurmstepd: [123.batch]`), or None."""
    match = re.match(r"slurmstepd: \[([^\]]+)\]", command)
    return match.group(1) if match else None


class Process:
    """One process of the host, as /proc shows it."""

    def __init__(self, pid, parent, user, tty, comm, command, group, gpu):
        self.pid, self.parent, self.user, self.tty = pid, parent, user, tty
        self.comm, self.command, self.group, self.gpu = comm, command, group, gpu


class Host:
    """Reads one host below `root` (a test's copy, or /)."""

    def __init__(self, root="/", timeout=30, own_pid=None):
        self.root, self.timeout = root, timeout
        # of a module that was forked on behalf of another process, that one: it is below the login
        self.own_pid = int(os.environ.get("IRONBURST_CALLER", os.getpid())) if own_pid is None else own_pid
        self.closed = 0  # processes whose open files can't be seen

    def at(self, path):
        """Where a path of the host is."""
        return os.path.join(self.root, path.lstrip("/"))

    def text(self, path):
        """A file's text, None if it can't be read."""
        try:
            with open(self.at(path), errors="replace") as file:
                return file.read()
        except OSError:
            return None

    def names(self, path):
        """What is in a folder; [] if it can't be read."""
        try:
            return sorted(os.listdir(self.at(path)))
        except OSError:
            return []

    def run(self, *argv):
        """(exit code, output); (None, why) if it can't be run or doesn't end."""
        try:
            done = subprocess.run(
                argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=self.timeout, check=False
            )
        except subprocess.TimeoutExpired:
            return None, f"{argv[0]} gave no answer in {self.timeout} s"
        except OSError as error:
            return None, f"{argv[0]} can't be run: {error.strerror}"
        return done.returncode, done.stdout.decode(errors="replace")

    def table(self):
        """{pid: Process} of all that run, without the kernel's own."""
        found, self.closed = {}, 0
        for name in self.names("/proc"):
            process = self._process(name) if name.isdigit() else None
            if process and process.parent != 2 and process.pid != 2:
                found[process.pid] = process
        return found

    def _process(self, name):
        stat, comm = self.text(f"/proc/{name}/stat"), self.text(f"/proc/{name}/comm")
        if comm is None:
            return None  # it has just ended
        fields = (stat or "").rpartition(")")[2].split()
        if fields[:1] in (["Z"], ["X"]):
            return None
        uid = re.search(r"^Uid:\s+(\d+)", self.text(f"/proc/{name}/status") or "", re.MULTILINE)
        login = (self.text(f"/proc/{name}/loginuid") or "").strip()
        # who logged in stays known over sudo
        user = int(login) if login.isdigit() and int(login) not in (0, UNSET) else int(uid.group(1)) if uid else 0
        command = (self.text(f"/proc/{name}/cmdline") or "").replace("\0", " ").strip()
        return Process(
            int(name),
            int(fields[1]) if len(fields) > 4 else 1,
            user,
            int(fields[4]) if len(fields) > 4 else 0,
            comm.strip(),
            command,
            self.text(f"/proc/{name}/cgroup") or "",
            self._holds_gpu(name),
        )

    def _holds_gpu(self, pid):
        folder = self.at(f"/proc/{pid}/fd")
        try:
            links = os.listdir(folder)
        except PermissionError:
            self.closed += 1
            return False
        except OSError:
            return False
        for link in links:
            try:
                if DEVICE.match(os.readlink(os.path.join(folder, link))):
                    return True
            except OSError:
                continue
        return False

    def gpu_users(self, table):
        """[{pid, command}] of those that hold a GPU, without daemons, and without those of a Kubernetes node's device
        plugin and exporters, of pods that keep no node. All, where the cluster can't be asked.
        """
        users = [
            {"pid": process.pid, "command": process.comm}
            for process in table.values()
            if process.gpu and not process.comm.startswith(DAEMONS)
        ]
        if not users or self.text("/usr/local/sbin/ironburst-kubelet") is None:
            return users
        code, output = self.run("/usr/local/sbin/ironburst-kubelet", "services")
        services = output.split() if code == 0 else []
        return [user for user in users if str(user["pid"]) not in services]

    def first_uid(self):
        """The lowest uid of a person, by login.defs."""
        match = re.search(r"^\s*UID_MIN\s+(\d+)", self.text("/etc/login.defs") or "", re.MULTILINE)
        return int(match.group(1)) if match else 1000

    def user_name(self, uid):
        """A user's name, or its number."""
        match = re.search(rf"^([^:\n]+):[^:\n]*:{uid}:", self.text("/etc/passwd") or "", re.MULTILINE)
        return match.group(1) if match else f"user {uid}"


def own_tree(table, pid):
    """pids that are there because of this very look: its ancestors, and all of the connection by which it came; and
    those of which modules are forked.
    """
    line, top = [], None
    while pid in table and pid != 1 and pid not in line:
        line.append(pid)
        if SESSION.match(table[pid].command) and "[listener]" not in table[pid].command:
            top = pid
        pid = table[pid].parent
    tops = [top if top is not None else line[0]] if line else []
    tops += [each.pid for each in table.values() if KEPT.match(each.command)]
    return set(line).union(*(descendants(table, each) for each in tops))


def descendants(table, pid):
    """pids below a process, and its own."""
    found, new = {pid}, {pid}
    while new:
        new = {each.pid for each in table.values() if each.parent in new and each.pid not in found}
        found |= new
    return found


def occupants(host, kinds=KINDS):
    """[(kind, sentence)] of what a person or a scheduler has on this host now, in the order of KINDS."""
    table = host.table()
    own = own_tree(table, host.own_pid)
    parts = {
        "jobs": lambda: jobs(host, table),
        "gpus": lambda: gpus(host, table),
        "containers": lambda: containers(host, table),
        "users": lambda: users(host, table, own),
        "schedulers": lambda: schedulers(host, table),
        "unseen": list,
    }
    found = [(kind, text) for kind in KINDS if kind in kinds for kind, text in parts[kind]()]
    if not table:
        found.append(("unseen", "/proc shows no process"))
    elif host.closed and {"gpus", "users"} & set(kinds):
        found.append(("unseen", f"the open files of {host.closed} processes can't be seen: this needs root"))
    return found


def jobs(host, table):
    """Slurm's steps by their processes, what its controller has given this node besides, other schedulers' jobs."""
    steps = sorted({step_of(process.command) for process in table.values()} - {None})
    found = [("jobs", f"Slurm step {step}") for step in steps]
    daemons = [process for process in table.values() if process.comm == "slurmd"]
    below = {process.pid for process in daemons}
    found += [
        ("jobs", f"Slurm's {process.comm}")
        for process in table.values()
        if process.parent in below and re.search(r"\b(prolog|epilog)", process.command, re.IGNORECASE)
    ]
    if daemons and not steps:
        found += given_by_slurm(host, daemons[0].command)
    for process in table.values():
        whose, kin = SCHEDULERS.get(process.comm, ("", ()))
        for pid in sorted(descendants(table, process.pid) - {process.pid}) if whose else []:
            child = table[pid]
            if RAY_WORK.match(child.command) or not (child.comm.startswith(kin) or boxed(child)):
                found.append(("jobs", f"{child.comm} ({pid}) of {whose}"))
    return found


def given_by_slurm(host, command):
    """An allocation has no step until its user makes one: only the controller knows of it."""
    named = re.search(r" -N *(\S+)", command)
    node = named.group(1) if named else os.uname().nodename.split(".")[0]
    states = "running,completing,suspended,stopped,configuring,signaling,resizing,stage_out"
    code, output = host.run("squeue", "--noheader", f"--nodelist={node}", f"--states={states}", "--format=%i")
    if code != 0:
        said = " ".join(output.split())[:200] or f"exit code {code}"
        return [("unseen", f"slurmd runs, and Slurm doesn't say whether {node} has jobs ({said})")]
    return [("jobs", f"Slurm job {job}") for job in output.split()]


def gpus(host, table):
    """Processes that hold a GPU: by their open devices, and as the driver lists them."""
    there = {user["pid"]: user["command"] for user in host.gpu_users(table)}
    known = {pid for pid, process in table.items() if process.gpu}
    code, output = host.run("nvidia-smi", "--query-compute-apps=pid,process_name", "--format=csv,noheader")
    for pid, name in re.findall(r"^(\d+), *(.*)$", output, re.MULTILINE) if code == 0 else []:
        comm = os.path.basename(name.strip())
        if int(pid) not in known and not comm.startswith(DAEMONS):
            there[int(pid)] = comm
    return [("gpus", f"{command} ({pid}) with a GPU open") for pid, command in sorted(there.items())]


def boxed(process):
    """Whether it is inside a container."""
    return BOXED.search(process.group) is not None


def containers(host, table):
    """Containers and virtual machines by the process that holds each; of our own node of Kubernetes only those of
    workloads, by its cluster's word.
    """
    holders = [
        process
        for process in table.values()
        if not boxed(process) and (process.comm.startswith(SHIMS) or RUNTIMES.match(process.command))
    ]
    pods = [process for process in holders if re.search(r"-namespace k8s\.io\b", process.command)]
    rest = [process for process in holders if process not in pods]
    found = [("containers", f"a container ({process.comm}, {process.pid})") for process in rest]
    if pods:
        code, output = host.run("/usr/local/sbin/ironburst-kubelet", "idle")
        if code is None:
            said = f"{len(pods)} pods of Kubernetes, whose cluster can't be asked"
        else:
            said = " ".join(output.split()).replace("ironburst-kubelet: ", "") or "pods of Kubernetes"
        found += [] if code == 0 else [("containers", said)]
    return found


def users(host, table, own):
    """What people run here: processes of theirs wherever they lie, whoever is at a terminal, and what outlives a login
    (tmux, nohup). A connection of the user that this look came by is none.
    """
    first = host.first_uid()
    mine = {table[pid].user for pid in own if pid in table}
    steps = {pid for process in table.values() if step_of(process.command) for pid in descendants(table, process.pid)}
    found = {}
    for process in table.values():
        if process.pid in own or process.pid in steps or boxed(process) or process.comm in SLURM:
            continue
        person = process.user >= first and process.user not in NOBODY
        connection = process.user in mine and SESSION.match(process.command)
        at_work = process.comm.startswith(MULTIPLEXERS) or (process.tty and process.comm not in GETTY)
        if at_work or (person and process.comm not in PLUMBING and not connection):
            found.setdefault(process.user, []).append(process)
    said = []
    for user, theirs in sorted(found.items()):
        names = ", ".join(f"{process.comm} ({process.pid})" for process in theirs[:SHOWN])
        more = f" and {len(theirs) - SHOWN} more" if len(theirs) > SHOWN else ""
        said.append(("users", f"{host.user_name(user)} with {names}{more}"))
    return said


def schedulers(host, table):
    """Daemons of schedulers that may start a job here at any moment, and that nobody here can ask."""
    names = sorted({SCHEDULERS[process.comm][0] for process in table.values() if process.comm in SCHEDULERS})
    found = [("schedulers", f"{name} may start a job here") for name in names]
    kubelet = any(process.comm == "kubelet" for process in table.values())
    if kubelet and host.text("/usr/local/sbin/ironburst-kubelet") is None:
        found.append(("schedulers", "a Kubernetes cluster that can't be asked may start a pod here"))
    return found


def refusal(found, step, may, node):
    """One sentence on why `step` isn't done, "" if nobody stands against it. `may`: kinds that may be disturbed."""
    left = [(kind, text) for kind, text in found if kind not in may or kind not in MAY]
    if not left:
        return ""
    kinds = [kind for kind in KINDS if kind in {kind for kind, _ in left}]
    shown = [text for kind in kinds for text in _first([text for each, text in left if each == kind])]
    cures = "; ".join(CURES[kind] for kind in kinds)
    words = [kind for kind in kinds if kind in MAY]
    allow = f", or allow it for this host (base_may_disturb: [{', '.join(words)}])" if words == kinds else ""
    return (
        f"{step} would disturb {', '.join(shown)} on {node}: {cures}{allow}, then run this again; nothing was changed"
    )


def _first(texts):
    more = [f"{len(texts) - SHOWN} more of these"] if len(texts) > SHOWN else []
    return texts[:SHOWN] + more


def unknown_words(may):
    """Declared words that aren't in MAY, as one sentence; "" if there is none."""
    wrong = [word for word in may if word not in MAY]
    return f"base_may_disturb has {', '.join(wrong)}: it takes {', '.join(MAY)}; jobs and GPUs never" if wrong else ""


def why_not(parameters, host=None):
    """The sentence that forbids the step that a module's `parameters` (OPTIONS) name; "" where it may be done."""
    if not parameters["free_for"]:
        return ""
    wrong = unknown_words(parameters["may_disturb"])
    if wrong:
        return wrong
    found = occupants(host or Host(), parameters["disturbs"])
    return refusal(found, parameters["free_for"], parameters["may_disturb"], os.uname().nodename)
