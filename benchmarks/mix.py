"""Which instances for 20,000 pending pods, and at what price? python -m benchmarks.mix [--pods FILE] [--types FILE]

Ours is `ironburst.burst.mix`; beside it a certified bound under which no mix can cost (mix_bound.py, by HiGHS), and the
scheduler of karpenter v1.14.1, run as it is (karpenter/main.go, built by Go where there is one) with the same pods and
types; each of its NodeClaims counts as the cheapest type that it allows. All place single pods, none waits.

FILE of --pods: CSV, perhaps packed (.xz), with the columns cpu_milli, memory_mib, num_gpu; if there: name, and
gpu_spec, the GPU model that a pod insists on (as in the column `accel` of the types). Any part of a GPU (gpu_milli <
1000) counts as a whole one, as nvidia.com/gpu does. A file with the column creation_time is a trace, and by default its
pods become 20,000: all of them, as often as they go into that, and the rest drawn without putting back, by --seed.
Other files are taken as they stand. Without a file: Alibaba's openb trace in the folder of the shared data
(IRONBURST_DATA).

FILE of --types: CSV with the columns instance_type, vcpu, mem_mib, accel_vendor, accel, accel_count,
od_usd_h_us_east_1 (USD per hour; empty: not offered); if there: gpu_fraction (below 1: no whole GPU, so none), and what
pods may have of a node: allocatable_cpu (as 3920m), allocatable_mem (as 14162Mi) and pods. Without a file: the
catalogue's types, of all families (the trace doesn't say on which processors its pods run; --without g5g leaves out
those with Arm's). What the kubelet reserves, where it isn't given, is as EKS's nodes have it.
"""

from __future__ import annotations

import argparse
import csv
import json
import lzma
import math
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import mix_bound
from benchmarks.figures import trace_path
from ironburst import catalog
from ironburst.burst.mix import NodeToRent, NodeType, Pod, mix

TRACE = "openb2023_pods_default.csv.xz"
COUNT = 20_000
PROGRAM = Path(__file__).parent / "karpenter"
BUILD_S, RUN_S = 1800.0, 7200.0  # that karpenter may take
COST, DEARER, SLOWER = "cost / certified bound", "cost / karpenter's", "seconds / karpenter's"
ASKED = {COST: (1.02, 1.01), DEARER: (0.95, 0.9), SLOWER: (0.1, None)}  # at most; asked and wanted
UNSEEN = 0.075  # of a machine's memory, by the system that runs in it: the hypervisor's and the firmware's part


class WrongFile(Exception):
    """A file that can't be read as pods or types; one sentence says why."""


# ---- what is asked for, and what is offered


def rows(path: Path, needed: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """(number of the line, values by column) of a CSV file; lines with # at the start are none."""
    try:
        with (lzma.open if path.suffix == ".xz" else open)(path, "rt", encoding="utf-8-sig", newline="") as file:
            lines = [(number, line) for number, line in enumerate(file, 1) if not line.startswith("#")]
    except (OSError, EOFError, lzma.LZMAError, UnicodeDecodeError) as error:
        raise WrongFile(f"{path} can't be read: {error}") from None
    table = list(csv.reader(line for _, line in lines))
    columns = [name.strip() for name in table[0]] if table else []
    if missing := [name for name in needed if name not in columns]:
        raise WrongFile(f"{path} has no column {missing[0]}; its first line must name {', '.join(needed)}")
    for (number, _), values in zip(lines[1:], table[1:], strict=True):
        if len(values) != len(columns):
            raise WrongFile(f"{path}, line {number} has {len(values)} values, but the first line names {len(columns)}")
        yield number, dict(zip(columns, values, strict=True))


def whole(path: Path, line: int, row: Mapping[str, str], column: str, unit: str = "") -> int:
    """A value that must be a whole number, 0 or more; the unit may stand behind it."""
    text = row[column].strip().removesuffix(unit)
    if not text.isascii() or not text.isdigit():
        raise WrongFile(f"{path}, line {line}: {column} is {row[column]!r}; it must be a whole number, 0 or more")
    return int(text)


def pods_of(path: Path, count: int | None, seed: int) -> list[Pod]:
    """The pods of a file, or `count` made of them."""
    pods, is_trace = [], False
    for line, row in rows(path, ("cpu_milli", "memory_mib", "num_gpu")):
        is_trace = "creation_time" in row
        model = row.get("gpu_spec", "").strip() or None
        if model and "|" in model:
            raise WrongFile(f"{path}, line {line}: gpu_spec is {model!r}; it must be one GPU model, or empty for any")
        cpu, memory, gpus = (whole(path, line, row, column) for column in ("cpu_milli", "memory_mib", "num_gpu"))
        pods.append(Pod(row.get("name") or f"line {line}", cpu, memory, gpus, model))
    if not pods:
        raise WrongFile(f"{path} has no pods")
    if twice := [name for name, times in Counter(pod.name for pod in pods).items() if times > 1]:
        raise WrongFile(f"{path} has two pods called {twice[0]!r}; each needs a name of its own")
    count = count or (COUNT if is_trace else len(pods))
    times, rest = divmod(count, len(pods))
    drawn = np.sort(np.random.default_rng(seed).permutation(len(pods))[:rest])
    numbered = [(pod, again) for again in range(times) for pod in pods] + [(pods[at], times) for at in drawn]
    return [
        Pod(f"{pod.name}.{again}", pod.cpu_milli, pod.memory_mib, pod.gpus, pod.gpu_model) for pod, again in numbered
    ]


def node_type(
    name: str, usd: float, vcpus: int, memory_mib: int, gpus: int, model: str | None, pods: int | None = None
) -> NodeType:
    """With what EKS's nodes reserve: 6% of the first CPU, 1% of the second, 0.5% of the next two and 0.25% of all
    others; 255 MiB, 11 MiB for each pod that may run, and 100 MiB at which pods are evicted. Of memory, 7.5% never
    reach the system (karpenter's AWS provider reckons with that). 110 pods, from 30 vCPUs on 250, as EKS advises.
    """
    most = pods or (110 if vcpus < 30 else 250)
    parts = ((1, 60), (1, 10), (2, 5), (math.inf, 2.5))
    cpu, left = 0.0, float(vcpus)
    for count, milli in parts:
        cpu += min(left, count) * milli
        left = max(0.0, left - count)
    memory = math.ceil(memory_mib * UNSEEN) + 255 + 11 * most + 100
    return NodeType(name, usd, vcpus * 1000, memory_mib, gpus, model, most, math.ceil(cpu), memory)


def catalogue_types() -> list[NodeType]:
    """Those with a price on demand."""
    return [
        node_type(kind.name, price.usd_per_hour, kind.vcpus, kind.memory_mib, gpus, kind.accelerator if gpus else None)
        for kind in catalog.instance_types("aws").values()
        if (price := catalog.price(kind.name, "on-demand", "us-east-1")) and kind.vcpus and kind.memory_mib
        for gpus in (kind.gpu_count if (kind.gpu_fraction or 0) >= 1 else 0,)
    ]


def types_of(path: Path) -> list[NodeType]:
    """Those of a file that have a price."""
    price, types = "od_usd_h_us_east_1", []
    needed = ("instance_type", "vcpu", "mem_mib", "accel_vendor", "accel", "accel_count", price)
    for line, row in rows(path, needed):
        if not row[price].strip():
            continue
        try:
            usd, part = float(row[price]), float(row.get("gpu_fraction") or 1)
        except ValueError:
            usd = part = math.nan
        if not (0 < usd < math.inf and part >= 0):
            raise WrongFile(f"{path}, line {line}: {price} and gpu_fraction must be numbers above 0, or empty")
        gpus = whole(path, line, row, "accel_count") if row["accel_vendor"] == "NVIDIA" and part >= 1 else 0
        cpus, memory = whole(path, line, row, "vcpu"), whole(path, line, row, "mem_mib")
        pods = whole(path, line, row, "pods") if row.get("pods") else None
        made = node_type(row["instance_type"], usd, cpus, memory, gpus, row["accel"] if gpus else None, pods)
        if row.get("allocatable_cpu") and row.get("allocatable_mem"):
            cpu_left = whole(path, line, row, "allocatable_cpu", "m")
            memory_left = whole(path, line, row, "allocatable_mem", "Mi")
            reserved = {"reserved_cpu_milli": cpus * 1000 - cpu_left, "reserved_memory_mib": memory - memory_left}
            made = NodeType(**(vars(made) | reserved))
        types.append(made)
    if not types:
        raise WrongFile(f"{path} has no type with a price")
    if twice := [name for name, times in Counter(kind.name for kind in types).items() if times > 1]:
        raise WrongFile(f"{path} has two types called {twice[0]!r}")
    return types


# ---- the three


def check(pods: Sequence[Pod], nodes: Sequence[NodeToRent], unplaced: Sequence[str]) -> None:
    """Raises ValueError, one sentence, unless each pod is placed once or unplaced, and no node holds too much."""
    named = {pod.name: pod for pod in pods}
    placed = Counter(name for node in nodes for name in node.pods)
    if placed + Counter(unplaced) != Counter(list(named)):
        raise ValueError("some pod isn't placed exactly once")
    for node in nodes:
        on = [named[name] for name in node.pods]
        asked = (
            sum(pod.gpus for pod in on),
            sum(pod.cpu_milli for pod in on),
            sum(pod.memory_mib for pod in on),
            len(on),
        )
        if any(wants > has for wants, has in zip(asked, node.type.room, strict=True)):
            raise ValueError(f"a {node.type.name} holds (GPUs, milli-CPUs, MiB, pods) {asked} of {node.type.room}")
        if wrong := [pod for pod in on if pod.gpu_model not in (None, node.type.gpu_model)]:
            raise ValueError(f"pod {wrong[0].name} insists on {wrong[0].gpu_model}, but is on a {node.type.name}")


def figures(nodes: Sequence[NodeToRent], unplaced: int, seconds: float, cpu_seconds: float) -> dict[str, Any]:
    return {
        "usd_per_hour": round(sum(node.type.usd_per_hour for node in nodes), 5),
        "seconds": round(seconds, 3),
        "cpu_seconds": round(cpu_seconds, 3),
        "nodes": len(nodes),
        "unplaced": unplaced,
        "instances": dict(Counter(node.type.name for node in nodes).most_common()),
    }


def of_ours(pods: Sequence[Pod], types: Sequence[NodeType]) -> tuple[dict[str, Any], list[Pod]]:
    """(figures, the pods that fit somewhere)."""
    began, before = time.perf_counter(), time.process_time()
    made = mix(pods, types)
    took = time.perf_counter() - began, time.process_time() - before
    check(pods, made.nodes, list(made.unplaced))
    return figures(made.nodes, len(made.unplaced), *took), [pod for pod in pods if pod.name not in made.unplaced]


def of_karpenter(pods: Sequence[Pod], types: Sequence[NodeType]) -> dict[str, Any]:
    """Its figures, or {"skipped": why}."""
    said = json.dumps(
        {
            "pods": [{**vars(pod), "gpu_model": pod.gpu_model or ""} for pod in pods],
            "types": [{**vars(kind), "gpu_model": kind.gpu_model or ""} for kind in types],
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "karpenter"
        try:
            build = ["go", "build", "-o", str(program), "."]
            subprocess.run(build, cwd=PROGRAM, timeout=BUILD_S, check=True, capture_output=True, text=True)
            done = subprocess.run([program], input=said, timeout=RUN_S, check=True, capture_output=True, text=True)
        except FileNotFoundError:
            return {"skipped": "there is no Go here to build it"}
        except subprocess.TimeoutExpired as error:
            return {"skipped": f"it took more than {error.timeout:.0f} s to build or to run"}
        except subprocess.CalledProcessError as error:
            last = (error.stderr.strip().splitlines() or ["it said nothing"])[-1]
            return {"skipped": f"it can't be built or run: {last}"}
    result = json.loads(done.stdout)
    nodes = [NodeToRent(types[node["type"]], tuple(pods[at].name for at in node["pods"])) for node in result["nodes"]]
    check(pods, nodes, [pods[at].name for at in result["unplaced"]])
    made = figures(nodes, len(result["unplaced"]), result["seconds"], result["cpu_seconds"])
    return made | {"threads": result["threads"]}


def measure(pods: Sequence[Pod], types: Sequence[NodeType], bound_s: float, karpenter: bool = True) -> dict[str, Any]:
    """All that the benchmark prints of these pods and types."""
    said: dict[str, Any] = {}
    said["ours"], placeable = of_ours(pods, types)
    bound = mix_bound.of(placeable, types, bound_s)
    said["optimum_or_bound"] = {
        "kind": "certified bound",
        "usd_per_hour": round(bound.usd_per_hour, 5),
        "seconds": round(bound.seconds, 1),
        "linear_programme_usd_per_hour": round(bound.programme, 5),
    }
    said["karpenter"] = of_karpenter(pods, types) if karpenter else {"skipped": "not asked for"}
    ours, theirs = said["ours"], said["karpenter"]
    said["ratios"] = {COST: ratio(ours["usd_per_hour"], bound.usd_per_hour)}
    if "skipped" not in theirs:
        alike = theirs["unplaced"] == ours["unplaced"]  # else it isn't paid for the same
        said["ratios"] |= {
            DEARER: ratio(ours["usd_per_hour"], theirs["usd_per_hour"]) if alike else None,
            SLOWER: ratio(ours["seconds"], theirs["seconds"]),
            "CPU seconds / karpenter's": ratio(ours["cpu_seconds"], theirs["cpu_seconds"]),
        }
    return said


def ratio(ours: float, theirs: float) -> float | None:
    return ours / theirs if theirs else None


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.mix", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--pods", default=TRACE, metavar="FILE", help="what they ask for")
    parser.add_argument("--types", type=Path, metavar="FILE", help="what is offered (default: the catalogue's types)")
    parser.add_argument("--without", default="", metavar="FAMILY,...", help="families that aren't offered, as g5g")
    parser.add_argument("--count", type=int, help="so many pods, made of those of the file")
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn to reach the count")
    parser.add_argument("--bound-seconds", type=float, default=120.0, help="to look for a bound (default: %(default)g)")
    parser.add_argument("--no-karpenter", action="store_true", help="leave it out: it takes minutes")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args(argv)
    if arguments.count is not None and arguments.count < 1:
        parser.error(f"--count is {arguments.count}; allowed is 1 or more")
    path = trace_path(arguments.pods, arguments.json)
    if not path:
        return 0
    without = [family for family in arguments.without.split(",") if family]
    try:
        pods = pods_of(path, arguments.count, arguments.seed)
        offered = types_of(arguments.types) if arguments.types else catalogue_types()
    except WrongFile as error:
        parser.error(str(error))
    types = [kind for kind in offered if kind.name.split(".")[0] not in without]
    result = {
        "pods": len(pods),
        "pods_file": path.name,
        "seed": arguments.seed,
        "types": len(types),
        "types_from": arguments.types.name if arguments.types else "the catalogue",
        "without": without,
        **measure(pods, types, arguments.bound_seconds, not arguments.no_karpenter),
    }
    print(json.dumps(result, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
