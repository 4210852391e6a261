"""Every path of the playbooks that may reboot a host, stop or restart a service, or take a module or a mount away, and
what stands before it. A path that isn't here, or is here and gone, fails in test_disturbing.py.

`own`: the task itself looks right before (free_for). `before`: a task that looks stands before it in its file.
`asked`: what else was asked, by a command of its own. `harmless`: nobody's work notices; why.
"""

from __future__ import annotations

STEPS_SURVIVE = "slurmd's unit has KillMode=process: the steps of jobs go on"
BESIDE = "nothing of a job depends on it"
LOADS = "it only loads modules that aren't loaded"
CONTROL = "jobs and pods run on without their scheduler for a moment"

PATHS: dict[str, tuple[str, str]] = {
    # reboots
    "base/tasks/runtime.yml:A host that nobody uses boots the declared kernel and arguments": ("own", ""),
    "nvidia_driver/tasks/reload.yml:Another driver takes over/Reboot the host that nobody uses": ("own", ""),
    "rdma/tasks/reload.yml:Load the installed modules/Reboot the host that nobody uses": ("own", ""),
    # modules
    "nvidia_driver/tasks/reload.yml:Another driver takes over/Stop the daemons that hold the GPUs": ("before", ""),
    "nvidia_driver/tasks/reload.yml:Another driver takes over/End the pods that hold the GPUs on every node": (
        "before",
        "",
    ),
    "nvidia_driver/tasks/reload.yml:Another driver takes over/Load the modules anew": ("before", ""),
    "rdma/tasks/reload.yml:Load the installed modules/Restart openibd": ("before", ""),
    "nvlsm/tasks/runtime.yml:Kernel modules are loaded": ("harmless", LOADS),
    "rdma/handlers/main.yml:Load the kernel modules of InfiniBand": ("harmless", LOADS),
    "kubernetes_node/handlers/main.yml:Kernel settings of Kubernetes take effect": ("harmless", LOADS),
    "kubernetes_head/handlers/main.yml:Kernel settings of Kubernetes take effect": ("harmless", LOADS),
    "container_runtime/handlers/main.yml:Settings of user namespaces take effect": ("harmless", "it writes sysctls"),
    # GPUs
    "mig/tasks/change.yml:Instances are made on GPUs that nobody holds/Stop the daemons that hold the GPUs": (
        "before",
        "",
    ),
    "mig/tasks/change.yml:Instances are made on GPUs that nobody holds/End the pods that hold the GPUs on every node": (
        "before",
        "",
    ),
    "mig/tasks/change.yml:Instances are made on GPUs that nobody holds/Make the declared MIG instances": ("before", ""),
    "mig/tasks/runtime.yml:Containers are told of the new devices": ("harmless", "it writes the CDI specification"),
    "gpu_power_limit/tasks/runtime.yml:The GPUs have the declared power limit": (
        "harmless",
        "it needs no reset: jobs go on, slower",
    ),
    "nvidia_container_toolkit/tasks/runtime.yml:CDI refresh runs, and writes the specification anew where GPUs are"
    " missing in it": ("harmless", "it writes the CDI specification"),
    "nvidia_driver/tasks/runtime.yml:The persistence daemon runs with its present settings": ("own", ""),
    "imex/tasks/runtime.yml:IMEX runs with its present settings": ("own", ""),
    # containers and Kubernetes
    "container_runtime/tasks/runtime.yml:Container runtimes run with their present settings": ("own", ""),
    "kubernetes_node/tasks/runtime.yml:The node runs with its present settings": ("own", ""),
    "kubernetes_node/tasks/runtime.yml:The gate is asked again and again": ("harmless", BESIDE),
    "kubernetes_head/tasks/upgrade_to.yml:Upgrade the control plane": ("harmless", CONTROL),
    "kubernetes_head/tasks/upgrade_to.yml:Move away what runs here beside the control plane": (
        "asked",
        "the cluster evicts, as far as its budgets allow",
    ),
    "kubernetes_head/tasks/upgrade_to.yml:Kubelet starts anew": ("harmless", "pods outlive a restart of kubelet"),
    "kubernetes_head/tasks/runtime.yml:Backups, and certificates that are renewed in time": ("harmless", BESIDE),
    # disks
    "scratch/tasks/runtime.yml:Make scratch": ("before", ""),
    "shared_filesystem/tasks/runtime.yml:Another file system makes room": ("before", ""),
    "shared_filesystem/tasks/runtime.yml:The shared file system is mounted": ("own", ""),
    "data_sets/tasks/runtime.yml:Data sets are there": ("own", ""),
    "base/handlers/main.yml:Mount the shared folders": ("harmless", "a target's restart unmounts nothing"),
    # daemons beside the jobs
    "slurm_node/tasks/runtime.yml:Services of the node run with their present settings": ("harmless", STEPS_SURVIVE),
    "slurm_login/tasks/runtime.yml:Services of the login node run with their present settings": ("harmless", BESIDE),
    "slurm_head/tasks/runtime.yml:Services of the head run with their present settings": ("harmless", CONTROL),
    "slurm_head/tasks/runtime.yml:The second accounting daemon starts after the cluster is known/Start the second"
    " accounting daemon again": ("harmless", "the first one answers; Slurm queues what it has to write"),
    "slurm_head/tasks/upgrade.yml:Daemons of the old release stop, the accounting daemon last": ("harmless", CONTROL),
    "slurm_head/tasks/runtime.yml:The controller runs with its present settings": ("harmless", CONTROL),
    "slurm_head/tasks/runtime.yml:What rented nodes push is received": ("harmless", CONTROL),
    "slurm_host/tasks/names.yml:Rented nodes are known by their names": ("harmless", BESIDE),
    "users/handlers/main.yml:Sshd reads its settings": ("harmless", "a reload keeps its sessions"),
    "users/tasks/runtime.yml:The directory is asked": ("harmless", "who runs already is looked up no more"),
    "prometheus/tasks/runtime.yml:Prometheus and Alertmanager run with their present settings": ("harmless", BESIDE),
    "infiniband_fabric/tasks/elsewhere.yml:No subnet manager runs or starts here, also no former one of ours": (
        "harmless",
        "routes stay in the switches",
    ),
    "infiniband_fabric/tasks/install.yml:No other unit runs or starts a subnet manager": (
        "harmless",
        "routes stay in the switches",
    ),
    "infiniband_fabric/tasks/runtime.yml:The subnet manager runs with its present settings, links and counters are"
    " looked at again and again": ("harmless", "routes stay in the switches"),
    "metrics/tasks/runtime.yml:The exporters run with their present settings": ("harmless", BESIDE),
    "metrics/tasks/configure.yml:Exporters start at boot (image)": ("harmless", "they are only enabled"),
    "logs/tasks/runtime.yml:The journal is kept, and sent": ("harmless", "who writes into the journal doesn't notice"),
    "cloud_node/tasks/runtime.yml:The metadata service is for root alone": ("harmless", "a packet filter's rule"),
    "munge_key.yml:Nobody rents, and nothing is rented/The controller stops": (
        "harmless",
        "nothing is rented then",
    ),
    "munge_key.yml:The new key takes the place of the present one": ("harmless", "munged serves a request at a time"),
    # packages, whose scripts restart what they bring
    "packages/tasks/main.yml:Install the packages (apt)": (
        "asked",
        "who replaces a driver, a container runtime or the toolkit looks before (below); needrestart restarts nothing",
    ),
    "packages/tasks/main.yml:Install the packages (dnf)": ("asked", "likewise; dnf restarts nothing by itself"),
    "rdma/tasks/efa.yml:Install the EFA software/Install the EFA software": ("before", ""),
}
# Looks that stand before a replacement of packages: file, name of the task
REPLACEMENTS = (
    ("nvidia_driver/tasks/preflight.yml", "Nobody loses the driver"),
    ("nvidia_container_toolkit/tasks/preflight.yml", "No container loses its GPUs"),
    ("container_runtime/tasks/install.yml", "No container runs"),
)
