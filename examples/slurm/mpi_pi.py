"""Pi by all ranks together. A rank alone means that srun and the MPI didn't find each other: that is an error."""

import os
import sys

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, ranks, steps = world.Get_rank(), world.Get_size(), 1_000_000
if ranks != int(os.environ.get("SLURM_NTASKS", ranks)):
    sys.exit(f"MPI sees {ranks} ranks, Slurm started {os.environ['SLURM_NTASKS']}: try srun --mpi=pmix")
part = sum(4.0 / (1.0 + ((n + 0.5) / steps) ** 2) for n in range(rank, steps, ranks)) / steps
total = world.reduce(part, op=MPI.SUM, root=0)
print(f"rank {rank} of {ranks} on {MPI.Get_processor_name()}", flush=True)
if rank == 0:
    print(f"pi is {total:.6f}", flush=True)
