"""What each of the parallel examples begins with: who this process is, and the group of all of them."""

import os

import torch
import torch.distributed as dist


def group():
    """(rank, ranks, device) of a process that torchrun started, or srun with MASTER_ADDR and MASTER_PORT. NCCL between
    GPUs, gloo without.
    """
    if "RANK" not in os.environ:  # srun says it in words of its own
        for pytorch, slurm in (("RANK", "PROCID"), ("LOCAL_RANK", "LOCALID"), ("WORLD_SIZE", "NTASKS")):
            os.environ[pytorch] = os.environ[f"SLURM_{slurm}"]
    gpu = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if gpu else torch.device("cpu")
    if gpu:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if gpu else "gloo")
    return dist.get_rank(), dist.get_world_size(), device
