"""Pipeline parallel: each rank has some of the layers, and microbatches flow through them."""

import torch
import torch.distributed as dist
from start import group
from torch import nn
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

rank, ranks, device = group()
torch.manual_seed(rank)  # each rank has layers of its own
layers = nn.Sequential(nn.Linear(64, 64), nn.ReLU()).to(device)
stage = PipelineStage(layers, rank, ranks, device)
schedule = ScheduleGPipe(stage, n_microbatches=4, loss_fn=nn.functional.mse_loss)
batch, losses = torch.randn(16, 64, device=device), []
if rank == 0:
    schedule.step(batch)
elif rank == ranks - 1:
    schedule.step(target=torch.zeros(16, 64, device=device), losses=losses)
else:
    schedule.step()
said = f", loss {torch.stack(losses).mean().item():.4f}" if losses else ""
print(f"stage {rank} of {ranks}: gradient {layers[0].weight.grad.norm().item():.4f}{said}", flush=True)
dist.destroy_process_group()
