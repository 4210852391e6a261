"""`ironburst slurm snippet STACK`: what the administrator of a Slurm that isn't managed adds to it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from ironburst import naming, slurm_programs
from ironburst.cli import Subparsers
from ironburst.cli.site_options import guarded
from ironburst.cli.stack_file import document
from ironburst.document import ClusterDocument, PoolDocument

FOLDER = "/usr/local/sbin"
RESUME_S, SUSPEND_S, BACKSTOP_S, DEFAULT_S = 1800, 300, 86400, 3600
"""seconds, as the role slurm_head has them: a boot; how long a name rests; a burst node that idles without
a controller; a job without a time limit"""
ADDED = (
    "enable_configless",
    "idle_on_node_suspend",
    "requeue_on_resume_failure",
    "power_save_interval=5",
    "power_save_min_interval=0",
)


def add_parser(subparsers: Subparsers) -> None:
    """The verb and what it can do."""
    parser = subparsers.add_parser(
        "slurm", help="what a Slurm that is there already needs", description="Beside a Slurm that isn't managed."
    )
    inner = parser.add_subparsers(dest="what", required=True, metavar="WHAT")
    snippet = inner.add_parser(
        "snippet",
        help="the lines for slurm.conf and gres.conf, and the two programs",
        description="Print what rented nodes need in a Slurm that ironburst doesn't manage: lines for slurm.conf and "
        "gres.conf, and the two programs that slurmctld calls. Nothing is changed. Exit code 0: printed; 2: bad input.",
        epilog="example: ironburst slurm snippet stacks/Pulumi.prod.yaml --folder snippet",
    )
    snippet.add_argument("stack_file", type=Path, help="as in stacks/Pulumi.prod.yaml")
    snippet.add_argument("--folder", type=Path, help="write slurm.conf, gres.conf and the programs there instead")
    snippet.set_defaults(func=run)


@guarded
def run(arguments: argparse.Namespace) -> int:
    """Print the parts, or write them."""
    cluster = document(arguments.stack_file)
    conf, gres = "\n".join(slurm_conf(cluster)) + "\n", "\n".join(gres_conf(cluster)) + "\n"
    parts = {"slurm.conf": conf, "gres.conf": gres} | {name: slurm_programs.text(name) for name in slurm_programs.NAMES}
    if arguments.folder:
        arguments.folder.mkdir(parents=True, exist_ok=True)
        for name, text in parts.items():
            (arguments.folder / name).write_text(text)
        for name in slurm_programs.NAMES:
            (arguments.folder / name).chmod(0o755)
        print(f"{arguments.folder}: {', '.join(parts)}; nothing else was changed")
        return 0
    for name, text in parts.items():
        where = f"{FOLDER}/{name} on the head, mode 0755" if name in slurm_programs.NAMES else f"add to {name}"
        print(f"##### {where}\n{text}")
    print("\n".join(AFTERWARDS))
    return 0


AFTERWARDS = (
    "##### afterwards, on the head",
    f"# ln -s ironburst-suspend {FOLDER}/ironburst-resume-fail",
    "# useradd --system ironburst; sacctmgr add user ironburst account=root adminlevel=Administrator",
    "# install -d -o ironburst -g slurm -m 0775 /var/spool/ironburst",
    "# install -d -o ironburst -g slurm -m 0755 /var/spool/ironburst/leases",
    "# restart slurmctld (new nodes need it), then drain the burst nodes before any job sees them:",
    '# scontrol update nodename=NODES state=drain reason="no lease"',
)


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
    yield f"ResumeTimeout={RESUME_S}"
    yield f"SuspendTimeout={SUSPEND_S}"
    yield "# INFINITE: Slurm never powers down the nodes that are there. Burst partitions have their own"
    yield "SuspendTime=INFINITE"
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
        yield f"PartitionName={pool.partition} Nodes={names} {times} SuspendTime={BACKSTOP_S} {share}"


def gres_conf(cluster: ClusterDocument) -> Iterator[str]:
    """Lines to add: where each rented node has its GPUs."""
    for pool in its_pools(cluster):
        devices = "0" if pool.gpu.count == 1 else f"[0-{pool.gpu.count - 1}]"
        type = naming.gpu_type(pool.gpu.model)
        yield f"NodeName={','.join(pool.nodes)} Name=gpu Type={type} File=/dev/nvidia{devices} AutoDetect=off"


def its_pools(cluster: ClusterDocument) -> Sequence[PoolDocument]:
    """Those whose nodes join Slurm."""
    return [pool for pool in cluster.pools if cluster.scheduler_of(pool).kind == "slurm"]
