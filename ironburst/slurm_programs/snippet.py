"""What the administrator of a Slurm that isn't managed adds to it: lines, programs, and a script that puts the programs
in place. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from ironburst import slurm_programs
from ironburst.document import ClusterDocument, PoolDocument
from ironburst.nodes import naming

FOLDER = "/usr/local/sbin"
RESUME_S, SUSPEND_S, BACKSTOP_S, DEFAULT_S = 1800, 300, 86400, 3600
"""seconds, as the role slurm_head has them: a boot, at least; how long a name rests; a burst node that idles without
a controller, at least; a job without a time limit"""
ADDED = (
    "enable_configless",
    "idle_on_node_suspend",
    "requeue_on_resume_failure",
    "power_save_interval=5",
    "power_save_min_interval=0",
)


def parts(cluster: ClusterDocument) -> dict[str, str]:
    """{name: text} of all that is added."""
    unit = slurm_programs.text(slurm_programs.UNIT).replace("CLUSTER", cluster.cluster)
    return {
        "slurm.conf": "\n".join(slurm_conf(cluster)) + "\n",
        "gres.conf": "\n".join(gres_conf(cluster)) + "\n",
        "hosts": "\n".join(hosts(cluster)) + "\n",
        **{name: slurm_programs.text(name) for name in slurm_programs.NAMES},
        slurm_programs.UNIT: unit,
        slurm_programs.NAMES_UNIT: slurm_programs.text(slurm_programs.NAMES_UNIT),
        "install.sh": install(cluster),
    }


BEGIN, END = "# BEGIN ironburst: nodes that may be rented", "# END ironburst: nodes that may be rented"
NOWHERE = "233.252.0.1"
"""of MCAST-TEST-NET: Slurm asks for the address of a node that hasn't registered, and must be told at once (ADR 23)"""


def hosts(cluster: ClusterDocument) -> Iterator[str]:
    """Lines of /etc/hosts on the head."""
    yield BEGIN
    yield from (f"{NOWHERE} {node}" for pool in its_pools(cluster) for node in pool.nodes)
    yield END


def install(cluster: ClusterDocument) -> str:
    """The script; a folder for what the controller signs in to a cloud with is called as the cloud."""
    folders = [f"/etc/ironburst/{cloud.provider}" for cloud in cluster.clouds]
    own = "".join(f"install -d -o ironburst -g ironburst -m 0700 {folder}\n" for folder in folders)
    return f"{BEFORE}{own}{AFTER}"


BEFORE = f"""#!/bin/sh
# By `ironburst slurm snippet`. On the head, as root: what belongs beside the lines of slurm.conf and gres.conf.
# It may be run again
set -eu
cd "$(dirname "$0")"
slurm=$(scontrol show config | sed -n 's/^SlurmUser *= *\\([^(]*\\)(.*/\\1/p')
install -m 0755 ironburst-resume ironburst-suspend ironburst-names {FOLDER}/
ln -sf ironburst-suspend {FOLDER}/ironburst-resume-fail
id ironburst > /dev/null 2>&1 \\
    || useradd --system --home-dir /var/lib/ironburst --no-create-home --shell /usr/sbin/nologin ironburst
# the controller writes permits; Slurm's programs read them, and write what Slurm asked for
install -d -o ironburst -g "$(id -gn "$slurm")" -m 0775 /var/spool/ironburst
install -d -o ironburst -g "$(id -gn "$slurm")" -m 0755 /var/spool/ironburst/leases
install -d -m 0755 /etc/ironburst /srv/ironburst
"""
AFTER = f"""\
install -m 0644 ironburst.service ironburst-names.service /etc/systemd/system/
systemctl daemon-reload
systemctl enable --now ironburst-names
sed -i '/^{BEGIN}$/,/^{END}$/d' /etc/hosts
cat hosts >> /etc/hosts
# changing nodes needs an administrator, who has no jobs here
sacctmgr -n show user ironburst | grep -q . \\
    || sacctmgr -i add user ironburst account=root adminlevel=Administrator maxsubmitjobs=0
"""


def slurm_conf(cluster: ClusterDocument) -> Iterator[str]:
    """Lines to add. What a site has already (SlurmctldParameters) is joined to it by hand."""
    made = f"ironburst slurm snippet, {cluster.cluster}, {datetime.now(UTC):%Y-%m-%d}"
    yield f"# {made}. Only ironburst's controller rents: Slurm alone can't"
    yield "# SlurmctldParameters is one line: join these to what is there. Of GresTypes, too"
    old = tuple(map(int, (cluster.software.slurm or "99.99").split("."))) < (23, 11)
    yield f"SlurmctldParameters={','.join([*ADDED, *(['cloud_reg_addrs'] if old else [])])}"
    yield "GresTypes=gpu"
    yield f"ResumeProgram={FOLDER}/ironburst-resume"
    yield f"SuspendProgram={FOLDER}/ironburst-suspend"
    yield f"ResumeFailProgram={FOLDER}/ironburst-resume-fail"
    yield f"ResumeTimeout={resume_s(cluster)}"
    yield f"SuspendTimeout={SUSPEND_S}"
    yield "# INFINITE: Slurm never powers down the nodes that are there. Burst partitions have their own"
    yield "SuspendTime=INFINITE"
    yield "# Your Prolog must run this, too, or the nodes of a gang don't find each other by their names:"
    yield f'#   [ ! -x {FOLDER}/ironburst-names ] || {FOLDER}/ironburst-names "$SLURM_JOB_NODELIST"'
    yield "ResumeRate=0"
    yield "SuspendRate=0"
    for pool in its_pools(cluster):
        names, gpus = ",".join(pool.nodes), f"gpu:{naming.gpu_type(pool.gpu.model)}:{pool.gpu.count}"
        threads = f" ThreadsPerCore={pool.slurm.threads_per_core}" if pool.slurm.threads_per_core else ""
        size = f"CPUs={pool.slurm.cpus}{threads} RealMemory={pool.slurm.memory_mb}"
        yield f"NodeName={names} {size} Gres={gpus} State=CLOUD Weight=10"
        times = f"DefaultTime={min(DEFAULT_S, pool.max_run_s) // 60} MaxTime={pool.max_run_s // 60}"
        cpus, memory_mb = max(1, pool.slurm.cpus // pool.gpu.count), pool.slurm.memory_mb // pool.gpu.count
        share = f"DefCpuPerGPU={cpus} DefMemPerGPU={memory_mb}"
        times += f" SuspendTime={max(BACKSTOP_S, 2 * pool.idle_s)}"
        yield f"PartitionName={pool.partition} Nodes={names} {times} {share}"
    yield "# With TopologyPlugin=topology/tree a node that no switch has is given no job. Then add to topology.conf:"
    yield from (f"# SwitchName={pool.name} Nodes={','.join(pool.nodes)}" for pool in its_pools(cluster))


def resume_s(cluster: ClusterDocument) -> int:
    """ResumeTimeout. Slurm's clock runs from the power_up on, a pool's boot from the launch on: a fifth more, or Slurm
    gives up a node that is in time.
    """
    return max(RESUME_S, *(pool.boot_s * 6 // 5 for pool in its_pools(cluster)), 0)


def gres_conf(cluster: ClusterDocument) -> Iterator[str]:
    """Lines to add: where each rented node has its GPUs."""
    for pool in its_pools(cluster):
        devices = "0" if pool.gpu.count == 1 else f"[0-{pool.gpu.count - 1}]"
        type = naming.gpu_type(pool.gpu.model)
        yield f"NodeName={','.join(pool.nodes)} Name=gpu Type={type} File=/dev/nvidia{devices} AutoDetect=off"


def its_pools(cluster: ClusterDocument) -> Sequence[PoolDocument]:
    """Those whose nodes join Slurm."""
    return [pool for pool in cluster.pools if cluster.scheduler_of(pool).kind == "slurm"]
