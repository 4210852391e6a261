"""Fully sharded data parallel. With PyTorch 2.6 or newer on GPUs, `fully_shard` is the newer form of the same."""

import torch
import torch.distributed as dist
from start import group
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel

rank, ranks, device = group()
torch.manual_seed(0)
layers = nn.Sequential(*(nn.Sequential(nn.Linear(64, 64), nn.ReLU()) for _ in range(4)), nn.Linear(64, 1))
whole = sum(parameter.numel() for parameter in layers.parameters())
model = FullyShardedDataParallel(layers.to(device), device_id=device)
held = sum(parameter.numel() for parameter in model.parameters())
optimizer = torch.optim.AdamW(model.parameters())  # after sharding: of this rank's part
for _ in range(20):
    loss = (model(torch.randn(16, 64, device=device) + rank) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"rank {rank} of {ranks} holds {held} of {whole} parameters, loss {loss.item():.4f}", flush=True)
dist.destroy_process_group()
