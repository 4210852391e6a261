"""What Prometheus knows of running jobs' GPUs that do nothing: by DCGM's utilisation and, where it is measured, by the
share of time in which their engines worked. What has a gap, is old, or is shared with another job is no evidence.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ironburst.controller.job_figures import IDLE
from ironburst.controller.records import RunRow
from ironburst.document.monitoring import IdleDocument
from ironburst.ports.measured import Measured, Sample

SLOT_S = 300
"""so long without a sample is a gap"""
FRESH_S = 150.0
"""an older last sample is old"""
CPUS_IDLE = 0.05
"""busier in no slot: the CPUs of a node do nothing for a job either"""
_BY = "by (hpc_job, Hostname, gpu)"
_UTIL = "DCGM_FI_DEV_GPU_UTIL"


@dataclass(frozen=True)
class Evidence:
    """Of one running job: how many of its GPUs did nothing for each time that was asked for (seconds); a time of which
    something isn't known is left out. `low`: those times in which none of its GPUs drew more than the declared power
    and the CPUs of its nodes were idle, too.
    """

    gpus: int
    idle: Mapping[int, int]
    low: frozenset[int] = frozenset()

    def all_idle(self, seconds: int) -> bool:
        """All of its GPUs, and that is known."""
        return self.idle.get(seconds, 0) == self.gpus > 0


class _Gpu(NamedTuple):
    number: str  # of the job, Slurm's
    node: str
    gpu: str  # its index there


def spans(rule: IdleDocument) -> tuple[int, ...]:
    """The times that count, shortest first."""
    ending = {rule.end_after_s - rule.grace_s, rule.end_after_s} if rule.end else set[int]()
    return tuple(sorted({rule.after_s, rule.team_s} | ending))


def gather(measured: Measured, runs: Sequence[RunRow], rule: IdleDocument, now_s: float) -> dict[int, Evidence]:
    """By number of Slurm's, of runs that go on. Raises MeasuredError."""
    if not runs:
        return {}
    asked = _Asked(measured, runs, now_s)
    last = asked.by_gpu(f"max {_BY} (timestamp({_UTIL}{{S}}))")
    fresh = {gpu for gpu, at_s in last.items() if now_s - at_s <= FRESH_S}
    shared = asked.shared(rule.after_s)
    idle: dict[int, dict[int, int]] = defaultdict(dict)
    low: dict[int, set[int]] = defaultdict(set)
    for span_s in spans(rule):
        old = [run for run in runs if now_s - run.start_s >= span_s + SLOT_S]
        its = [run for run in old if run.number not in shared]
        for run, gpus in _whole(asked, its, fresh, span_s):
            idle[run.number][span_s] = sum(_works_not(asked, gpu, span_s) for gpu in gpus)
            if rule.end and rule.watts is not None and asked.low(run, gpus, rule.watts, span_s):
                low[run.number].add(span_s)
    return {
        run.number: Evidence(run.gpus, idle.get(run.number, {}), frozenset(low.get(run.number, ()))) for run in runs
    }


def _whole(asked: _Asked, runs: Iterable[RunRow], fresh: set[_Gpu], span_s: int) -> Iterable[tuple[RunRow, list[_Gpu]]]:
    """Those of which every GPU was seen all the time, and now."""
    slots = asked.slots(span_s)
    seen = [gpu for gpu, count in slots.items() if count >= span_s // SLOT_S and gpu in fresh]
    for run in runs:
        gpus = [gpu for gpu in seen if gpu.number == str(run.number) and gpu.node in run.nodes.split(",")]
        if len(gpus) == run.gpus:
            yield run, gpus


def _works_not(asked: _Asked, gpu: _Gpu, span_s: int) -> bool:
    return asked.busiest(span_s).get(gpu) == 0 and asked.engines(span_s).get(gpu, 0.0) <= IDLE


class _Asked:
    """Each question is asked once."""

    def __init__(self, measured: Measured, runs: Sequence[RunRow], now_s: float):
        self._measured, self._now_s = measured, now_s
        names = sorted({node for run in runs for node in run.nodes.split(",")})
        self._names = "|".join(name.replace(".", "[.]") for name in names)
        self._where = f'Hostname=~"({self._names})([.].+)?"'
        self._numbers = "|".join(sorted(str(run.number) for run in runs))
        self._known: dict[str, dict[_Gpu, float]] = {}

    def by_gpu(self, expression: str) -> dict[_Gpu, float]:
        """`{S}` in it are the runs' labels."""
        if expression not in self._known:
            text = expression.replace("{S}", f'{{hpc_job=~"{self._numbers}",{self._where}}}')
            self._known[expression] = {_gpu(each): each.value for each in self._ask(text)}
        return self._known[expression]

    def busiest(self, span_s: int) -> dict[_Gpu, float]:
        """Percent."""
        return self.by_gpu(f"max {_BY} (max_over_time({_UTIL}{{S}}[{span_s}s]))")

    def engines(self, span_s: int) -> dict[_Gpu, float]:
        """Share of an interval, where that is measured."""
        return self.by_gpu(f"max {_BY} (max_over_time(DCGM_FI_PROF_GR_ENGINE_ACTIVE{{S}}[{span_s}s]))")

    def slots(self, span_s: int) -> dict[_Gpu, float]:
        """In how many of them there are samples."""
        slot = f"count_over_time({_UTIL}{{S}}[{SLOT_S}s])"
        return self.by_gpu(f"max {_BY} (count_over_time({slot}[{span_s}s:{SLOT_S}s]))")

    def shared(self, span_s: int) -> set[int]:
        """Numbers of jobs that had a GPU together with another one."""
        labels = f'hpc_job!="",{self._where}'
        jobs: Counter[tuple[str, str]] = Counter()
        seen = [_gpu(each) for each in self._ask(f"count {_BY} (count_over_time({_UTIL}{{{labels}}}[{span_s}s]))")]
        jobs.update((each.node, each.gpu) for each in seen)
        return {int(each.number) for each in seen if jobs[each.node, each.gpu] > 1 and each.number.isdigit()}

    def low(self, run: RunRow, gpus: Iterable[_Gpu], watts: float, span_s: int) -> bool:
        """Neither power nor CPUs say that it works; False where either isn't known."""
        power = self.by_gpu(f"max {_BY} (max_over_time(DCGM_FI_DEV_POWER_USAGE{{S}}[{span_s}s]))")
        if not all(power.get(gpu, watts + 1) <= watts for gpu in gpus):
            return False
        busiest, slots = self._cpus("max", span_s), self._cpus("count", span_s)
        nodes = run.nodes.split(",")
        return all(busiest.get(node, 1.0) < CPUS_IDLE and slots.get(node, 0) >= span_s // SLOT_S for node in nodes)

    def _cpus(self, function: str, span_s: int) -> dict[str, float]:
        labels = f'{{mode="idle",node=~"({self._names})([.].+)?"}}'
        busy = f"(1 - avg by (node) (rate(node_cpu_seconds_total{labels}[{SLOT_S}s])))"
        found = self._ask(f"{function}_over_time({busy}[{span_s}s:{SLOT_S}s])")
        return {each.labels.get("node", "").split(".")[0]: each.value for each in found}

    def _ask(self, text: str) -> list[Sample]:
        return self._measured.query(text, self._now_s)


def _gpu(sample: Sample) -> _Gpu:
    labels = sample.labels
    return _Gpu(labels.get("hpc_job", ""), labels.get("Hostname", "").split(".")[0], labels.get("gpu", ""))
