"""Tensor parallel: each layer's matrix is cut between GPUs. Keep it inside a node: it needs NVLink."""

import torch
import torch.distributed as dist
from start import group
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

rank, ranks, device = group()
torch.manual_seed(0)  # the same weights and inputs everywhere
whole = nn.Sequential(nn.Linear(64, 64 * ranks), nn.ReLU(), nn.Linear(64 * ranks, 8)).to(device)
inputs = torch.randn(16, 64, device=device)
expected = whole(inputs)
mesh = init_device_mesh(device.type, (ranks,))
model = parallelize_module(whole, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
difference = (model(inputs) - expected).abs().max().item()
shape = tuple(model[0].weight.to_local().shape)
print(f"rank {rank} of {ranks} holds {shape} of the first layer, difference {difference:.1e}", flush=True)
assert difference < 1e-4, "the parts don't make the whole"
dist.destroy_process_group()
