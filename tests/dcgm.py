"""GPUs under a load that is known at each second, as dcgm-exporter shows them to a Prometheus that scrapes: labels of
4.x (gpu, UUID, pci_bus_id, device, modelName, Hostname; hpc_job while a job's file is there), units of its
default-counters.csv. Written as OpenMetrics for `promtool tsdb create-blocks-from openmetrics`.
"""

from collections import defaultdict
from dataclasses import dataclass, field

EVERY_S = 30
TOTAL_MIB, RESERVED_MIB = 81559, 551


@dataclass
class Load:
    """From a moment to another: what a GPU does, and for which jobs (numbers of Slurm)."""

    from_s: int
    to_s: int
    jobs: tuple[int, ...] = ()
    busy: float = 0.0
    sm: float = 0.0
    tensor: float = 0.0
    memory_mib: int = 0
    watts: float = 75.0
    nvlink: float = 0.0  # bytes a second, each way


@dataclass
class Gpu:
    """`seen_to_s`: its node is gone then; `reset_s`: its driver is loaded again, and counts from zero."""

    node: str
    index: int
    loads: list[Load] = field(default_factory=list)
    phase_s: int = 0  # of its node's scrapes
    seen_to_s: float = float("inf")
    reset_s: float = float("inf")

    def at(self, at_s):
        """What it does at a moment."""
        return next((load for load in self.loads if load.from_s <= at_s < load.to_s), Load(0, 0))

    def watts(self, at_s):
        return self.at(at_s).watts

    def joules(self, from_s, to_s):
        """Exactly, second by second."""
        return sum(self.watts(second) for second in range(int(from_s), int(to_s)))

    def samples(self, from_s, to_s):
        """{metric: value}, jobs, moment of each scrape."""
        mj, last_s = 5e12, from_s
        for at_s in range(from_s + self.phase_s, to_s, EVERY_S):
            if at_s >= self.seen_to_s:
                return
            mj, last_s = mj + self.joules(last_s, at_s) * 1000, at_s
            if at_s >= self.reset_s > at_s - EVERY_S:
                mj = self.joules(self.reset_s, at_s) * 1000
            load = self.at(at_s)
            yield (
                {
                    "DCGM_FI_DEV_GPU_TEMP": 30 + 40 * load.busy,
                    "DCGM_FI_DEV_GPU_UTIL": round(100 * load.busy),
                    "DCGM_FI_DEV_FB_USED": load.memory_mib,
                    "DCGM_FI_DEV_FB_FREE": TOTAL_MIB - RESERVED_MIB - load.memory_mib,
                    "DCGM_FI_DEV_FB_RESERVED": RESERVED_MIB,
                    "DCGM_FI_DEV_POWER_USAGE": load.watts,
                    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": round(mj),
                    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": load.busy,
                    "DCGM_FI_PROF_SM_ACTIVE": load.sm,
                    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": load.tensor,
                    "DCGM_FI_PROF_DRAM_ACTIVE": load.sm / 2,
                    "DCGM_FI_PROF_NVLINK_TX_BYTES": load.nvlink,
                    "DCGM_FI_PROF_NVLINK_RX_BYTES": load.nvlink,
                },
                load.jobs,
                at_s,
            )


def openmetrics(gpus, from_s, to_s):
    """All samples; a GPU with several jobs has each series once for each, as the exporter copies them."""
    series = defaultdict(lambda: defaultdict(list))
    for gpu in gpus:
        of = f'gpu="{gpu.index}",UUID="GPU-{gpu.node}-{gpu.index}",pci_bus_id="00000000:{gpu.index:02X}:00.0",'
        of += f'device="nvidia{gpu.index}",modelName="NVIDIA H100 80GB HBM3",Hostname="{gpu.node}",'
        of += f'instance="{gpu.node}:9400",job="dcgm",node="{gpu.node}"'
        for values, jobs, at_s in gpu.samples(from_s, to_s):
            for job in jobs or (None,):
                labels = of if job is None else f'{of},hpc_job="{job}"'
                for name, value in values.items():
                    series[name][labels].append(f"{name}{{{labels}}} {value} {at_s}")
    lines = []
    for name, found in series.items():
        lines.append(f"# TYPE {name} gauge")
        for samples in found.values():
            lines += samples
    return "\n".join([*lines, "# EOF", ""])
