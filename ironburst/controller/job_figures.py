"""What one run of a job made of its GPUs, by DCGM's series that have its number (hpc_job): a dozen queries, then sums.

A GPU is identified by its node and index. Means over GPUs are weighted by their samples, so that a node that ended
early counts for as long as it was seen. What is asked for is in DCGM's fields of role metrics (a test compares both).
"""

from __future__ import annotations

import gzip
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, NamedTuple, TypeAlias

from ironburst.ports.measured import Measured, Sample

Gpu: TypeAlias = tuple[str, str]
"""(node, index)"""
ByGpu: TypeAlias = dict[Gpu, float]

BYTES = 1000
"""of a run's figures in the ledger, at most"""
IDLE = 0.01
"""a GPU whose engines work less than that of an interval is idle in it"""
_BY = "by (Hostname, gpu)"
_ALIVE = "DCGM_FI_DEV_GPU_TEMP"  # every GPU has it at each scrape
_J_PER_KWH = 3.6e6


@dataclass(frozen=True)
class GpuFigures:
    """One GPU. Shares are 0 to 1; None: not measured there."""

    node: str
    gpu: str
    busy: float | None = None  # its engines worked
    sm: float | None = None  # SMs with work
    tensor: float | None = None
    dram: float | None = None
    memory_mib: float | None = None  # at most
    watts: float | None = None
    nvlink_bytes: float | None = None  # a second, sent and received
    kwh: float | None = None
    idle: float | None = None  # share of time
    unused: bool = False  # no kernel ran in any sample


@dataclass(frozen=True)
class Figures:
    """A run's. `each`: its GPUs; of many only those that worked least (`gpus` counts all)."""

    gpus: int  # that were measured
    shared: int  # that had another job's number at the same time: left out
    samples: int  # of the GPU that has most
    from_s: float  # of the first and of the last sample
    to_s: float
    memory_total_mib: float | None = None
    busy: float | None = None
    sm: float | None = None
    tensor: float | None = None
    dram: float | None = None
    memory_mib: float | None = None  # the most of any GPU
    watts: float | None = None  # all GPUs together
    nvlink_bytes: float | None = None  # mean of a GPU
    kwh: float | None = None  # all GPUs together
    idle: float | None = None
    unused: int = 0
    each: tuple[GpuFigures, ...] = field(default=())
    node_kwh: float | None = None  # its part of its nodes, GPUs included, by their BMCs; None: one of them doesn't tell


class _Series:
    """A run's series between two moments."""

    def __init__(self, measured: Measured, labels: str, from_s: float, to_s: float):
        self._measured, self._labels, self._from_s, self._to_s = measured, labels, from_s, to_s

    def within(self, from_s: float, to_s: float) -> _Series:
        """The same between others."""
        return _Series(self._measured, self._labels, from_s, to_s)

    @property
    def seconds(self) -> int:
        """Between both moments."""
        return max(math.ceil(self._to_s - self._from_s), 1)

    def ask(self, expression: str) -> ByGpu:
        """`{S}` in it are the run's labels, `{d}` the time between both moments. Raises MeasuredError."""
        found = self._asked(expression.replace("{S}", self._labels))
        return {(each.labels.get("Hostname", ""), each.labels.get("gpu", "")): each.value for each in found}

    def by_node(self, expression: str) -> dict[str, float]:
        """The same, not of the run's GPUs alone."""
        found = self._asked(expression)
        names = ((each.labels.get("node") or each.labels.get("Hostname", ""), each.value) for each in found)
        return {name.split(".")[0]: value for name, value in names}

    def _asked(self, expression: str) -> list[Sample]:
        step = max(15, self.seconds // 1000)
        text = expression.replace("{d}", f"{self.seconds}s").replace("{step}", f"{step}s")
        return self._measured.query(text, self._to_s)

    def over_time(self, function: str, name: str) -> ByGpu:
        """Of each GPU; a GPU that two Prometheus see counts once."""
        return self.ask(f"max {_BY} ({function}_over_time({name}{{S}}[{{d}}]))")


def measure(measured: Measured, number: int, nodes: Sequence[str], from_s: float, to_s: float) -> Figures | None:
    """Of the job with this number of Slurm's on these nodes, between the start of a run and its end. None: there are no
    samples. Raises MeasuredError.
    """
    # another cluster in the same Prometheus counts its jobs, too; a host may call itself by its whole name
    names = "|".join(node.replace(".", "[.]") for node in nodes)
    where = f'Hostname=~"({names})([.].+)?"'
    run = _Series(measured, f'{{hpc_job="{number}",{where}}}', from_s, to_s)
    counts = run.over_time("count", _ALIVE)
    if not counts:
        return None
    at = f"timestamp({_ALIVE}{{S}})"
    last = run.ask(f"max {_BY} (max_over_time({at}[{{d}}:{{step}}]))")
    for gpu, at_s in run.ask(f"max {_BY} ({at})").items():
        last[gpu] = max(last.get(gpu, at_s), at_s)
    first = run.ask(f"min {_BY} (min_over_time({at}[{{d}}:{{step}}]))")
    first_s = max(min(first.values(), default=from_s), from_s)
    last_s = min(max(last.values(), default=to_s), to_s)
    samples = max(counts.values())
    every_s = (last_s - first_s) / (samples - 1) if samples > 1 else 0.0
    seen = run.within(max(from_s, first_s - every_s), min(to_s, last_s + every_s))
    others = f'max_over_time({_ALIVE}{{hpc_job!="",hpc_job!="{number}",{where}}}[{{d}}])'
    mine = f"max {_BY} (max_over_time({_ALIVE}{{S}}[{{d}}]))"
    shared = run.within(first_s, last_s).ask(f"max {_BY} ({others}) and on (Hostname, gpu) {mine}")
    gpus = sorted(counts.keys() - shared.keys(), key=_order)
    asked = {name: ask(seen) for name, ask in _ASKED.items()}
    each = [_gpu(gpu, asked) for gpu in gpus]
    total = [value for gpu, value in _memory(seen).items() if gpu in gpus]
    span = (float(first_s), float(last_s), max(total, default=None))
    found = _summed(each, [counts[gpu] for gpu in gpus], len(shared), int(samples), span)
    return replace(found, node_kwh=_node_kwh(_Nodes(seen, where, names), nodes, gpus, found.kwh))


class _Nodes(NamedTuple):
    """A run's nodes: `where` in DCGM's series, `names` in ours."""

    series: _Series
    where: str
    names: str

    def ask(self, expression: str) -> dict[str, float]:
        """By node."""
        text = expression.replace("{N}", f'{{node=~"{self.names}"}}').replace("{S}", f"{{{self.where}}}")
        return self.series.by_node(text)


def _node_kwh(asked: _Nodes, nodes: Sequence[str], gpus: Sequence[Gpu], gpus_kwh: float | None) -> float | None:
    """What a node takes beside its GPUs counts by the run's part of these."""
    watts = asked.ask("avg_over_time((max by (node) (ironburst_node_power_watts{N}))[{d}:{step}])")
    if not gpus or not set(nodes) <= watts.keys():
        return None
    by_gpu = f"max {_BY} (DCGM_FI_DEV_POWER_USAGE{{S}})"
    of_gpus = asked.ask(f"avg_over_time((sum by (Hostname) ({by_gpu}))[{{d}}:{{step}}])")
    count = asked.ask(f"count by (Hostname) (max {_BY} (max_over_time({_ALIVE}{{S}}[{{d}}])))")
    mine = Counter(node.split(".")[0] for node, _ in gpus)
    part = {node: mine[node] / max(count.get(node, 0.0), mine[node], 1.0) for node in nodes}
    hours = asked.series.seconds / 3600
    if gpus_kwh is None:
        return sum(watts[node] * part[node] for node in nodes) / 1000 * hours
    rest = (max(watts[node] - of_gpus.get(node, 0.0), 0.0) * part[node] for node in nodes)
    return gpus_kwh + sum(rest) / 1000 * hours


def _order(gpu: Gpu) -> tuple[str, int, str]:
    return gpu[0], int(gpu[1]) if gpu[1].isdigit() else -1, gpu[1]


def _mean(name: str) -> Callable[[_Series], ByGpu]:
    return lambda series: series.over_time("avg", name)


def _busy(series: _Series) -> ByGpu:
    """By the profiling field; where that isn't measured, by the share of time in which a kernel ran."""
    measured = f"max {_BY} (avg_over_time(DCGM_FI_PROF_GR_ENGINE_ACTIVE{{S}}[{{d}}]))"
    return series.ask(f"{measured} or max {_BY} (avg_over_time(DCGM_FI_DEV_GPU_UTIL{{S}}[{{d}}])) / 100")


def _idle(series: _Series) -> ByGpu:
    return series.ask(f"max {_BY} (avg_over_time((DCGM_FI_PROF_GR_ENGINE_ACTIVE{{S}} < bool {IDLE})[{{d}}:{{step}}]))")


def _nvlink(series: _Series) -> ByGpu:
    """DCGM's are means of the last interval, in bytes a second: gauges."""
    names = ("DCGM_FI_PROF_NVLINK_TX_BYTES", "DCGM_FI_PROF_NVLINK_RX_BYTES")
    return series.ask(" + ".join(f"max {_BY} (avg_over_time({name}{{S}}[{{d}}]))" for name in names))


def _kwh(series: _Series) -> ByGpu:
    """The counter is mJ since the driver was loaded: increase() goes on behind a reset."""
    found = series.ask(f"max {_BY} (increase(DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{S}}[{{d}}]))")
    return {gpu: mj / 1000 / _J_PER_KWH for gpu, mj in found.items()}


def _memory(series: _Series) -> ByGpu:
    """All that a GPU has, MiB, at the end."""
    names = ("DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_RESERVED")
    return series.ask(" + ".join(f"max {_BY} ({name}{{S}})" for name in names))


_ASKED: Mapping[str, Callable[[_Series], ByGpu]] = {
    "busy": _busy,
    "sm": _mean("DCGM_FI_PROF_SM_ACTIVE"),
    "tensor": _mean("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"),
    "dram": _mean("DCGM_FI_PROF_DRAM_ACTIVE"),
    "memory_mib": lambda series: series.over_time("max", "DCGM_FI_DEV_FB_USED"),
    "watts": _mean("DCGM_FI_DEV_POWER_USAGE"),
    "nvlink_bytes": _nvlink,
    "kwh": _kwh,
    "idle": _idle,
    "unused": lambda series: series.over_time("max", "DCGM_FI_DEV_GPU_UTIL"),
}


def _gpu(gpu: Gpu, asked: Mapping[str, ByGpu]) -> GpuFigures:
    found: dict[str, Any] = {name: values.get(gpu) for name, values in asked.items()}
    return GpuFigures(*gpu, **found | {"unused": found["unused"] == 0})


def _summed(
    each: Sequence[GpuFigures],
    counts: Sequence[float],
    shared: int,
    samples: int,
    span: tuple[float, float, float | None],
) -> Figures:
    def mean(name: str) -> float | None:
        known = [(getattr(gpu, name), n) for gpu, n in zip(each, counts, strict=True) if getattr(gpu, name) is not None]
        return sum(value * n for value, n in known) / sum(n for _, n in known) if known else None

    def known(name: str) -> list[float]:
        return [value for gpu in each if (value := getattr(gpu, name)) is not None]

    means = {name: mean(name) for name in ("busy", "sm", "tensor", "dram", "nvlink_bytes", "idle")}
    sums = {name: sum(found) if (found := known(name)) else None for name in ("watts", "kwh")}
    from_s, to_s, memory_total_mib = span
    return Figures(
        gpus=len(each),
        shared=shared,
        samples=samples,
        from_s=from_s,
        to_s=to_s,
        memory_total_mib=memory_total_mib,
        memory_mib=max(known("memory_mib"), default=None),
        unused=sum(gpu.unused for gpu in each),
        each=tuple(each),
        **means,
        **sums,
    )


# ---- in the ledger


def packed(figures: Figures) -> bytes:
    """At most BYTES: of too many GPUs those that worked most are left out."""
    each = sorted(figures.each, key=lambda gpu: (gpu.busy is None, gpu.busy))
    while True:
        kept = sorted(each, key=lambda gpu: _order((gpu.node, gpu.gpu)))
        rows = [[_rounded(value) for value in asdict(gpu).values()] for gpu in kept]
        moments = {"from_s": round(figures.from_s), "to_s": round(figures.to_s)}
        said = {key: _rounded(value) for key, value in asdict(figures).items()} | moments | {"each": rows}
        data = gzip.compress(json.dumps(said, separators=(",", ":")).encode(), mtime=0)
        if len(data) <= BYTES or not each:
            return data
        each = each[: len(each) * 3 // 4]


def unpacked(data: bytes) -> Figures:
    """The other way round; what a newer ironburst added is left out. Raises ValueError."""
    try:
        said: dict[str, Any] = json.loads(gzip.decompress(data))
        names = [each.name for each in fields(GpuFigures)]
        each = tuple(GpuFigures(**dict(zip(names, row, strict=False))) for row in said.pop("each"))
        known = {name.name for name in fields(Figures)}
        return Figures(**{key: value for key, value in said.items() if key in known}, each=each)
    except (OSError, EOFError, TypeError, KeyError, AttributeError, ValueError) as error:
        raise ValueError(f"figures of a job can't be read: {error}") from None


def kept(data: bytes | None) -> Figures | None:
    """Of a run in the ledger. None: nothing was measured, or not yet; also where it can't be read."""
    try:
        return unpacked(data) if data else None
    except ValueError:
        return None


def _rounded(value: Any) -> Any:
    """To four digits: nothing is measured better."""
    return float(f"{value:.4g}") if isinstance(value, float) else value
