"""The jobs of examples/slurm, as an ordinary user submits them: copied, and with options of sbatch for nodes whose GPUs
PyTorch can't use. They are run at home (tests/lab) and on rented nodes (tests/faults/live).
"""

import shutil
from pathlib import Path

from lab.packages import environment
from lab.site import Site
from lab.system import CHECKOUT

JOBS = CHECKOUT / "examples/slurm"
ONE = "--ntasks-per-node=1"
NODE, TWO = r"(?:dgx0|p5-)\d", r"(?:dgx|p5-)\[[\d,-]+\]"
DDP = f"sbatch {ONE} ddp-srun.sbatch"
TORCHRUN = "sbatch --export=ALL,RANKS=1 ddp-torchrun.sbatch"
SPOT = f"sbatch {ONE} spot.sbatch"
# what is submitted: what its output must say
SUBMITTED = {
    f"{DDP} --steps 40": rf"^2 ranks on {TWO}, from step 0\ndone: 40 steps, loss [0-9.]+$",
    f"{TORCHRUN} --steps 40": rf"^2 ranks on {TWO}, from step 0\ndone: 40 ",
}
ALSO = {
    f"{SPOT} --steps 40": rf"^start number 0 on {NODE}\n1 ranks on {NODE}, from step 0\ndone: 40 ",
    f"sbatch {ONE} fsdp.sbatch": r"^rank 1 of 2 holds 8353 of 16705 parameters, loss [0-9.]+$",
    "sbatch --ntasks-per-node=2 tensor-parallel.sbatch": r"^rank 1 of 2 holds \(64, 64\) of the first layer",
    f"sbatch {ONE} pipeline.sbatch": r"^stage 1 of 2: gradient [0-9.]+, loss [0-9.]+$",
    "sbatch --array=1-2 array.sbatch": r"^done: 20 steps, loss [0-9.]+$(.|\n)*^done: 30 steps, loss [0-9.]+$",
    f"sbatch {ONE} mpi.sbatch": r"^pi is 3\.141593$",
}
# those that go on from a checkpoint
RESUMED = (DDP, TORCHRUN, SPOT)


def put(site: Site) -> Path:
    """/shared/alice with the examples, /shared/env with an environment; the former's folder on this machine."""
    shared = site.dir / "shared"
    if not (shared / "env").exists():
        environment.put(shared / "env", site.box.root)
    for file in JOBS.iterdir():
        shutil.copy(file, shared / "alice")
    (shared / "alice/configs.txt").write_text("--steps 20\n--steps 30\n")
    site.ssh("head", "chown -R alice /shared/alice")
    return shared / "alice"
