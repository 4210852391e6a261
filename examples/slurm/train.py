"""Data-parallel training that may be taken back: it saves every --save-every steps and at SIGTERM, and goes on from
there.

srun starts it once for each GPU (ddp-srun.sbatch, spot.sbatch), or torchrun does (ddp-torchrun.sbatch). Model and data
are small inventions; what is around them is what your own program needs.
"""

import argparse
import os
import signal
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from profiled import Profiled
from start import group
from torch import nn
from torch.nn.parallel import DistributedDataParallel

options = argparse.ArgumentParser(description=__doc__)
options.add_argument("--save-to", type=Path, required=True, help="folder of the checkpoint: the same after a requeue")
options.add_argument("--save-every", type=int, default=100, help="steps")
options.add_argument("--steps", type=int, default=1000)
options.add_argument("--step-seconds", type=float, default=0.0, help="so long a step takes at least")
given = options.parse_args()

# A handler only notes it: a checkpoint begun inside it would wait for ranks that are elsewhere in their step
told_to_stop = False


def note(*_):
    """Remember the signal until the step is done."""
    global told_to_stop
    told_to_stop = True


signal.signal(signal.SIGTERM, note)

rank, world, device = group()
torch.manual_seed(0)
model = DistributedDataParallel(nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1)).to(device))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
checkpoint, first = given.save_to / "checkpoint.pt", 0
if checkpoint.exists():
    saved = torch.load(checkpoint, map_location=device, weights_only=True)
    model.module.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    first = saved["step"]
if rank == 0:
    print(f"{world} ranks on {os.environ.get('SLURM_JOB_NODELIST', 'this machine')}, from step {first}", flush=True)


def save(step):
    """Write the checkpoint beside the one before and rename it: the end may come in the middle."""
    if rank == 0:
        given.save_to.mkdir(parents=True, exist_ok=True)
        new = checkpoint.with_suffix(".new")
        torch.save({"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, new)
        new.replace(checkpoint)


profiled = Profiled(rank)
for step in range(first + 1, given.steps + 1):
    profiled.step(step)
    began = time.monotonic()
    inputs = torch.randn(16, 32, device=device) + rank
    loss = (model(inputs) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    # One rank alone may have the signal: all of them stop after the same step
    stopping = torch.tensor(float(told_to_stop), device=device)
    dist.all_reduce(stopping)
    if stopping.item():
        save(step)
        if rank == 0:
            print(f"saved at step {step} because of SIGTERM", flush=True)
        dist.barrier()  # no rank leaves before it is saved
        dist.destroy_process_group()
        sys.exit(128 + signal.SIGTERM)
    if step % given.save_every == 0:
        save(step)
    time.sleep(max(0.0, given.step_seconds - (time.monotonic() - began)))

profiled.end()
save(given.steps)
if rank == 0:
    print(f"done: {given.steps} steps, loss {loss.item():.4f}", flush=True)
dist.barrier()
dist.destroy_process_group()
