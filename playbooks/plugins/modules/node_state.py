#!/usr/bin/python3
"""Ansible module `node_state`: one look at a GPU node, for the preflight and validate stages of all roles. Changes
nothing.

One call instead of a command a question: `ansible_facts.node_seen`. What can't be found out is null, never a guess.
"""

from __future__ import annotations

DOCUMENTATION = r"""
module: node_state
short_description: one look at a GPU node
description:
  - Returns C(ansible_facts.node_seen). Reads only; what can't be found out is null.
options:
  timeout:
    description: Seconds that nvidia-smi and dkms get.
    type: int
    default: 30
author: ironburst
"""

EXAMPLES = r"""
- name: Look at the node
  node_state:
"""

RETURN = r"""
ansible_facts:
  description: node_seen with the keys of Look.seen()
  returned: always
  type: dict
"""

import fnmatch  # noqa: E402
import os  # noqa: E402
import re  # noqa: E402
import subprocess  # noqa: E402

from ansible.module_utils.basic import AnsibleModule  # noqa: E402

# facts/nvswitch_pci.csv: switches that are PCI functions of their own; 2901 is the B200 GPU, never a switch (rule
# FAB-007)
SWITCH_IDS = {"1af1": "NVSwitch of A100 boards", "22a3": "NVSwitch of H100 and H200 boards"}
DGX2_GPU = "1db8"  # V100 SXM3: the switch's own id is not published
# GB200 and GB300 compute trays: the switches are in other trays, the node runs IMEX
RACK_GPUS = ("2941", "31c2", "31c3")
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
MODULES = ("nvidia", "nouveau", "ib_umad", "mlx5_core", "nvidia_fs", "nvidia_peermem", "gdrdrv")
SHIMS = ("containerd-shim", "conmon")
DEVICE = re.compile(r"/dev/(nvidia(\d+|ctl|-uvm|-nvswitch|-caps)|dri/render)")


def switches(pci, vpd_texts, proc_devices):
    """How NVSwitches show on this host: {"how", "count", "text"}.

    `how` is pci, sw_mng, proc, gpu or none (facts/nvswitch_pci.csv). `pci`: (vendor, device, class) of all functions;
    `vpd_texts`: VPDs of the RDMA devices; `proc_devices`: names below nvidia-nvswitch.
    """
    for device, text in sorted(SWITCH_IDS.items()):
        count = sum(function[:2] == ("10de", device) for function in pci)
        if count > 1:  # one alone is no board: a passed-through function
            return _shown("pci", count, f"{count} × {text} (10de:{device}) on the PCI bus")
    marked = sum(b"SW_MNG" in text for text in vpd_texts)
    if marked:
        return _shown("sw_mng", marked, f"{marked} management ports of NVLink5 switches (SW_MNG in the VPD)")
    if proc_devices:
        return _shown("proc", len(proc_devices), f"{len(proc_devices)} NVSwitches of the loaded driver")
    gpus = sum(function[:2] == ("10de", DGX2_GPU) for function in pci)
    if gpus:
        return _shown("gpu", 12, f"{gpus} V100 SXM3 GPUs, which only DGX-2 boards with NVSwitches carry")
    return _shown("none", 0, "no NVSwitch")


def _shown(how, count, text):
    return {"how": how, "count": count, "text": text}


def gpu_rows(text):
    """Rows of `nvidia-smi --query-gpu=driver_version,persistence_mode,mig.mode.current --format=csv,noheader`."""
    rows = [[field.strip() for field in line.split(",")] for line in text.splitlines() if line.strip()]
    return [{"driver": row[0], "persistence": row[1], "mig": row[2]} for row in rows if len(row) == 3]


def cdi_devices(text):
    """Names of the GPU devices of a CDI specification (YAML or JSON, as nvidia-ctk writes it), without `all`; [] if it
    is no GPU's.
    """
    if not re.search(r'"?kind"?:\s*"?nvidia\.com/gpu"?', text):
        return []
    names = re.findall(r'^\s*(?:-\s+)?"?name"?:\s*"?([\w:.-]+)"?\s*,?\s*$', text, re.MULTILINE)
    return [name for name in names if name != "all" and re.match(r"(\d+(:\d+)?|GPU-.*|MIG-.*)$", name)]


def step_of(command):
    """The Slurm step of a slurmstepd's command line (`slurmstepd: [123.batch]`), or None."""
    match = re.match(r"slurmstepd: \[([^\]]+)\]", command)
    return match.group(1) if match else None


class Look:
    """Reads one host below `root` (a test's copy, or /)."""

    def __init__(self, root="/", timeout=30):
        self.root, self.timeout = root, timeout

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

    def pci(self):
        """(vendor, device, class) of each function, hex without 0x."""
        functions = []
        for name in self.names("/sys/bus/pci/devices"):
            values = [self.text(f"/sys/bus/pci/devices/{name}/{key}") for key in ("vendor", "device", "class")]
            if None not in values:
                functions.append(tuple(value.strip()[2:] for value in values))
        return functions

    def vpds(self):
        """Vital product data of the RDMA devices, as bytes."""
        texts = []
        for name in self.names("/sys/class/infiniband"):
            try:
                with open(self.at(f"/sys/class/infiniband/{name}/device/vpd"), "rb") as file:
                    texts.append(file.read())
            except OSError:
                continue
        return texts

    def processes(self):
        """Users of the GPUs, Slurm's steps, number of container shims."""
        users, steps, containers = [], [], 0
        for pid in (name for name in self.names("/proc") if name.isdigit()):
            comm = (self.text(f"/proc/{pid}/comm") or "").strip()
            command = (self.text(f"/proc/{pid}/cmdline") or "").replace("\0", " ").strip()
            if step_of(command):
                steps.append(step_of(command))
            containers += comm.startswith(SHIMS)
            if not comm.startswith(DAEMONS) and self._holds_gpu(pid):
                users.append({"pid": int(pid), "command": comm})
        return self._without_services(users), sorted(steps), containers

    def _without_services(self, users):
        """Those that are no job's: a Kubernetes node's device plugin and exporters, of pods that keep no node, hold
        GPUs all the time. All, where the cluster can't be asked.
        """
        if not users or self.text("/usr/local/sbin/ironburst-kubelet") is None:
            return users
        code, output = self.run("/usr/local/sbin/ironburst-kubelet", "services")
        services = output.split() if code == 0 else []
        return [user for user in users if str(user["pid"]) not in services]

    def _holds_gpu(self, pid):
        folder = self.at(f"/proc/{pid}/fd")
        try:
            links = os.listdir(folder)
        except OSError:
            return False
        for link in links:
            try:
                if DEVICE.match(os.readlink(os.path.join(folder, link))):
                    return True
            except OSError:
                continue
        return False

    def kubelet(self):
        """own: the role kubernetes_node made this a node of its cluster, or kubernetes_head the cluster; adopted:
        somebody else did; empty: it is none, or not yet: kubelet writes its kubelet.conf before its certificate has
        come, and `kubeadm init` before the cluster is made.
        """
        joined = self.text("/etc/kubernetes/kubelet.conf") is not None
        if self.text("/etc/ironburst/kubeadm.yaml") is not None:
            return "own" if joined else ""  # `kubeadm reset` takes away the one, not the other
        if self.text("/etc/ironburst/kubeadm.begun.yaml") is not None:
            return ""
        if self.text("/etc/ironburst/kubelet.yaml") is not None:
            certificate = self.text("/var/lib/kubelet/pki/kubelet-client-current.pem")
            by_role = "ironburst-eks" in (self.text("/etc/kubernetes/kubelet.conf") or "")
            return "own" if certificate is not None or by_role else ""
        return "adopted" if joined else ""

    def kubernetes_idle(self):
        """Whether all containers are of pods that keep no node: DaemonSets' and static ones."""
        return self.run("/usr/local/sbin/ironburst-kubelet", "idle")[0] == 0

    def boot_kernel(self, running):
        """The kernel that the next boot takes: grubby's default, without it the newest of /boot (as GRUB sorts them);
        the running one where there is no boot loader, as in a container.
        """
        code, output = self.run("grubby", "--default-kernel")
        default = re.search(r"/vmlinuz-(\S+)\s*$", output) if code == 0 else None
        if default:
            return default.group(1)
        kernels = [name[len("vmlinuz-") :] for name in self.names("/boot") if re.match(r"vmlinuz-\d", name)]
        return max(
            kernels,
            key=lambda name: [
                (part.isdigit(), int(part) if part.isdigit() else part) for part in re.findall(r"\d+|[a-z]+", name)
            ],
            default=running,
        )

    def driver_module(self, kernel):
        """Path of nvidia.ko for this kernel, or None."""
        for folder, _, files in os.walk(self.at(f"/lib/modules/{kernel}")):
            for name in files:
                if re.fullmatch(r"nvidia\.ko(\.(xz|zst|gz))?", name):
                    return "/" + os.path.relpath(os.path.join(folder, name), self.root)
        return None

    def cuda(self):
        """{version: what its nvcc says} of /usr/local/cuda-*; "" if it can't be run."""
        releases = {}
        for name in self.names("/usr/local"):
            match = re.fullmatch(r"cuda-(\d+\.\d+)", name)
            if match:
                code, output = self.run(f"/usr/local/{name}/bin/nvcc", "--version")
                release = re.search(r"release (\d+\.\d+)", output) if code == 0 else None
                releases[match.group(1)] = release.group(1) if release else ""
        return releases

    def packages(self):
        """Lines of what is installed, as the filters of playbooks/plugins/filter/packages.py read them; None where
        neither dpkg nor rpm answers.
        """
        fields = "${Package}|${Version}|${db:Status-Status}|${db:Status-Want}\\n"
        code, output = self.run("dpkg-query", "--show", f"--showformat={fields}")
        if code == 0:
            return output.splitlines()
        fields = "%{name}|%{epochnum}:%{version}-%{release}.%{arch}|installed|\\n"
        code, output = self.run("rpm", "--query", "--all", "--queryformat", fields)
        if code != 0:
            return None
        locks = [line.strip() for line in (self.text("/etc/dnf/plugins/versionlock.list") or "").splitlines()]
        return [f"{line}{self.wanted(line, locks)}" for line in output.splitlines() if line.endswith("|installed|")]

    @staticmethod
    def wanted(line, locks):
        """hold if dnf's versionlock names this very version (name-epoch:version-release.*), else install."""
        name, version = line.split("|")[:2]
        return "hold" if any(fnmatch.fnmatchcase(f"{name}-{version}", lock) for lock in locks) else "install"

    def seen(self):
        """The facts, each under its own name."""
        kernel = os.uname().release
        boot_kernel = self.boot_kernel(kernel)
        pci = self.pci()
        users, steps, containers = self.processes()
        code, output = self.run(
            "nvidia-smi", "--query-gpu=driver_version,persistence_mode,mig.mode.current", "--format=csv,noheader"
        )
        rows = gpu_rows(output) if code == 0 else []
        dkms = (
            self.run("dkms", "status")
            if os.path.isdir(self.at("/var/lib/dkms"))
            else (None, "there is no /var/lib/dkms")
        )
        hugepages = (self.text("/proc/sys/vm/nr_hugepages") or "").strip()
        cdi = [
            text
            for folder in ("/etc/cdi", "/var/run/cdi")
            for name in self.names(folder)
            if name.endswith((".yaml", ".yml", ".json"))
            for text in [self.text(f"{folder}/{name}")]
            if text
        ]
        return {
            "kernel": kernel,
            "boot_kernel": boot_kernel,
            "kernel_arguments": (self.text("/proc/cmdline") or "").split(),
            "hugepages": int(hugepages) if hugepages.isdigit() else None,
            "modules": [name for name in MODULES if os.path.isdir(self.at(f"/sys/module/{name}"))],
            "gpu_ids": [device for vendor, device, kind in pci if vendor == "10de" and kind.startswith("03")],
            "rack_gpus": any(vendor == "10de" and device in RACK_GPUS for vendor, device, _ in pci),
            "switches": switches(pci, self.vpds(), self.names("/proc/driver/nvidia-nvswitch/devices")),
            "gpu_users": users,
            "slurm_steps": steps,
            "containers": containers if containers and not self.kubernetes_idle() else 0,
            "kubelet": self.kubelet(),
            "gpus": rows,
            "driver_error": None if rows else " ".join(output.split()) or "nvidia-smi shows no GPU",
            "dkms": [line.strip() for line in dkms[1].splitlines()] if dkms[0] == 0 else [],
            "dkms_error": None if dkms[0] == 0 else " ".join(dkms[1].split()),
            "driver_module": self.driver_module(kernel),
            "boot_driver_module": self.driver_module(boot_kernel),
            "cuda": self.cuda(),
            "packages": self.packages(),
            "cdi_devices": sorted({name for text in cdi for name in cdi_devices(text)}),
        }


def main():
    """Answer with the look at this host."""
    module = AnsibleModule(argument_spec={"timeout": {"type": "int", "default": 30}}, supports_check_mode=True)
    module.exit_json(changed=False, ansible_facts={"node_seen": Look(timeout=module.params["timeout"]).seen()})


if __name__ == "__main__":
    main()
