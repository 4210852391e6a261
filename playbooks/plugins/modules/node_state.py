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
  - With I(free_for) it fails where somebody uses the host, with who it is and what to do (not in check mode).
options:
  free_for:
    description: the step that is to come, such as "A reboot"; nobody's work may be there
    type: str
  timeout:
    description: Seconds that nvidia-smi and dkms get.
    type: int
    default: 30
extends_documentation_fragment: [free_for]
author: ironburst
"""

EXAMPLES = r"""
- name: Look at the node
  node_state:

- name: Nobody uses it
  node_state:
    free_for: A reboot
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

from ansible.module_utils import grub, occupants  # noqa: E402
from ansible.module_utils.basic import AnsibleModule  # noqa: E402

# facts/nvswitch_pci.csv: switches that are PCI functions of their own; 2901 is the B200 GPU, never a switch (rule
# FAB-007)
SWITCH_IDS = {"1af1": "NVSwitch of A100 boards", "22a3": "NVSwitch of H100 and H200 boards"}
DGX2_GPU = "1db8"  # V100 SXM3: the switch's own id is not published
# GB200 and GB300 compute trays: the switches are in other trays, the node runs IMEX
RACK_GPUS = ("2941", "31c2", "31c3")
# nvidia's, and what holds it without being shown as its user
NVIDIA = (
    "gdrdrv",
    "nvidia_fs",
    "nvidia_peermem",
    "nvidia_uvm",
    "nvidia_drm",
    "nvidia_modeset",
    "nvidia_cspmu",
    "nvidia",
)
VERSIONED = ("mlx5_core", "ib_core")
SECURE_BOOT = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
DKMS_KEYS = ("/var/lib/shim-signed/mok/MOK.der", "/var/lib/dkms/mok.pub")  # Ubuntu's, and everybody else's
MODULES = ("nvidia", "nouveau", "ib_umad", "mlx5_core", "nvidia_fs", "nvidia_peermem", "gdrdrv")


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


GPU_FIELDS = "driver_version,persistence_mode,mig.mode.current,power.min_limit,power.max_limit"


def gpu_rows(text):
    """Rows of `nvidia-smi --query-gpu=GPU_FIELDS --format=csv,noheader`. A GPU whose power limit can't be set has None
    for the least and the most, W.
    """
    rows = [[field.strip() for field in line.split(",")] for line in text.splitlines() if line.strip()]
    return [
        {"driver": row[0], "persistence": row[1], "mig": row[2], "least_w": watts(row[3]), "most_w": watts(row[4])}
        for row in rows
        if len(row) == 5
    ]


def watts(text):
    """A number of W; None for what is none ("[N/A]")."""
    match = re.match(r"(\d+(\.\d+)?) W$", text)
    return float(match.group(1)) if match else None


def unload_order(text, names=NVIDIA):
    """Which modules go, users before what they use, so that all of `names` are gone; only what /proc/modules (`text`)
    has. Column 4 names the users of a module.
    """
    users = {}
    for fields in (line.split() for line in text.splitlines()):
        if len(fields) > 3:
            users[fields[0]] = [name for name in fields[3].split(",") if name not in ("", "-")]
    order = []

    def take(name):
        if name in users and name not in order:
            for user in users[name]:
                take(user)
            order.append(name)

    for name in names:
        take(name)
    return order


def cdi_devices(text):
    """Names of the GPU devices of a CDI specification (YAML or JSON, as nvidia-ctk writes it), without `all`; [] if it
    is no GPU's.
    """
    if not re.search(r'"?kind"?:\s*"?nvidia\.com/gpu"?', text):
        return []
    names = re.findall(r'^\s*(?:-\s+)?"?name"?:\s*"?([\w:.-]+)"?\s*,?\s*$', text, re.MULTILINE)
    return [name for name in names if name != "all" and re.match(r"(\d+(:\d+)?|GPU-.*|MIG-.*)$", name)]


class Look(occupants.Host):
    """Reads one host below `root` (a test's copy, or /)."""

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
        """Users of the GPUs, Slurm's steps, number of containers."""
        table = self.table()
        steps = {occupants.step_of(process.command) for process in table.values()} - {None}
        return self.gpu_users(table), sorted(steps), len(occupants.containers(self, table))

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
            by_role = re.search(r'\bexec"?:', self.text("/etc/kubernetes/kubelet.conf") or "")
            return (
                "own" if certificate is not None or by_role else ""
            )  # by a program: as its instance, by no certificate
        return "adopted" if joined else ""

    def grub_menu(self):
        """The text of GRUB's menu, and of its environment; "" where there is none, or others write it (EL)."""
        text = next(filter(None, (self.text(path) for path in ("/boot/grub/grub.cfg", "/boot/grub2/grub.cfg"))), "")
        return ("", "") if "blscfg" in text else (text, self.text("/boot/grub/grubenv") or "")

    def boot_entries(self):
        """{kernel of /boot: its entry in GRUB's menu, "" without one}."""
        named = grub.entries(self.grub_menu()[0])
        kernels = [name[len("vmlinuz-") :] for name in self.names("/boot") if re.match(r"vmlinuz-\d", name)]
        return {kernel: named.get(kernel, "") for kernel in kernels if "rescue" not in kernel}

    def boot_kernel(self, running):
        """The kernel that the next boot takes: grubby's default, GRUB's, without them the newest of /boot (as GRUB
        sorts them); the running one where there is no boot loader, as in a container.
        """
        code, output = self.run("grubby", "--default-kernel")
        default = re.search(r"/vmlinuz-(\S+)\s*$", output) if code == 0 else None
        if default:
            return default.group(1)
        by_grub = grub.default(*self.grub_menu())
        if by_grub:
            return by_grub
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

    def secure_boot(self):
        """Whether the firmware lets the kernel load signed modules only: by EFI's own variable, whose last byte says
        it. None where EFI doesn't say.
        """
        if not os.path.isdir(self.at("/sys/firmware/efi")):
            return False
        try:
            with open(self.at(SECURE_BOOT), "rb") as file:
                return file.read()[-1:] == b"\1"
        except OSError:
            return None

    def own_key(self):
        """Whether the key that DKMS signs with is one that the firmware's owner has enrolled."""
        keys = [path for path in DKMS_KEYS if os.path.exists(self.at(path))]
        said = [self.run("mokutil", "--test-key", self.at(path))[1] for path in keys]
        return any("already enrolled" in text or "already in" in text for text in said)

    def module_versions(self):
        """{module: [what is loaded, what is installed]} of the network's modules that are loaded: version, or the
        source's checksum; "" where there is neither.
        """
        versions = {}
        for name in VERSIONED:
            if not os.path.isdir(self.at(f"/sys/module/{name}")):
                continue
            pair = []
            for field in ("version", "srcversion"):
                code, output = self.run("modinfo", "--field", field, name)
                pair.append(
                    ((self.text(f"/sys/module/{name}/{field}") or "").strip(), output.strip() if code == 0 else "")
                )
            versions[name] = list(next((each for each in pair if each[0] or each[1]), ("", "")))
        return versions

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
        code, output = self.run("nvidia-smi", "--query-gpu=" + GPU_FIELDS, "--format=csv,noheader")
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
            "boot_entries": self.boot_entries(),
            "secure_boot": self.secure_boot(),
            "own_key": self.own_key(),
            "nvidia_modules": unload_order(self.text("/proc/modules") or ""),
            "module_versions": self.module_versions(),
            "kernel_arguments": (self.text("/proc/cmdline") or "").split(),
            "hugepages": int(hugepages) if hugepages.isdigit() else None,
            "modules": [name for name in MODULES if os.path.isdir(self.at(f"/sys/module/{name}"))],
            "gpu_ids": [device for vendor, device, kind in pci if vendor == "10de" and kind.startswith("03")],
            "rack_gpus": any(vendor == "10de" and device in RACK_GPUS for vendor, device, _ in pci),
            "switches": switches(pci, self.vpds(), self.names("/proc/driver/nvidia-nvswitch/devices")),
            "gpu_users": users,
            "slurm_steps": steps,
            "containers": containers,
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
    options = dict(occupants.OPTIONS, timeout={"type": "int", "default": 30})
    module = AnsibleModule(argument_spec=options, supports_check_mode=True)
    look = Look(timeout=module.params["timeout"])
    facts = {"node_seen": look.seen()}
    why = "" if module.check_mode else occupants.why_not(module.params, look)
    if why:
        module.fail_json(msg=why, ansible_facts=facts)
    module.exit_json(changed=False, ansible_facts=facts)


if __name__ == "__main__":
    main()
