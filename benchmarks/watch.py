"""What does it take to watch 60 nodes of 8 GPUs? python -m benchmarks.watch [--nodes 60] [--minutes 6] [--json]

Series, memory and bytes of a real Prometheus with the settings of `ironburst monitoring`. Its targets are synthetic:
DCGM's fields of role metrics for 8 GPUs, whose values change at each scrape, and the real node exporter's metrics of
this machine, with as many CPUs, disks and InfiniBand ports as a DGX H100 has; each changes if it did here between two
looks. Memory is that of Prometheus itself at the end of the given minutes. Bytes a sample are measured on one node's
six hours, in blocks that promtool makes (not compacted, so that is an upper figure); a day is series x samples x bytes,
not waited for.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

from ironburst.monitoring import targets
from tests import prometheus

ROOT = Path(__file__).parents[1]
GPUS, CPUS, DISKS, PORTS = 8, 224, 10, 10
EVERY_S, HOURS, DAY_S = 30, 6, 86400
CHANGED_S = 5  # between two looks at this machine
WATCHED = "GB a day"
EACH = {"cpu": CPUS, "device": DISKS}
"""labels by which this machine's metrics are multiplied"""
INFINIBAND = [
    "excessive_buffer_overrun_errors_total",
    "legacy_data_received_bytes_total",
    "legacy_data_transmitted_bytes_total",
    "legacy_multicast_packets_received_total",
    "legacy_multicast_packets_transmitted_total",
    "legacy_packets_received_total",
    "legacy_packets_transmitted_total",
    "link_downed_total",
    "link_error_recovery_total",
    "local_link_integrity_errors_total",
    "multicast_packets_received_total",
    "multicast_packets_transmitted_total",
    "physical_state_id",
    "port_constraint_errors_received_total",
    "port_constraint_errors_transmitted_total",
    "port_data_received_bytes_total",
    "port_data_transmitted_bytes_total",
    "port_discards_received_total",
    "port_discards_transmitted_total",
    "port_errors_received_total",
    "port_packets_received_total",
    "port_packets_transmitted_total",
    "port_transmit_wait_total",
    "rate_bytes_per_second",
    "state_id",
    "symbol_error_total",
    "unicast_packets_received_total",
    "unicast_packets_transmitted_total",
    "vl15_dropped_total",
]
GAUGES = {"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": (5e12, 6e5 * CHANGED_S), "DCGM_FI_DEV_SM_CLOCK": (1980.0, 15.0)}
GAUGES |= dict.fromkeys(("DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_MEMORY_TEMP", "DCGM_FI_DEV_GPU_UTIL"), (60.0, 2.0))
GAUGES |= dict.fromkeys(("DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE"), (40_000.0, 10.0))
"""of DCGM's fields that aren't shares: (value, change in CHANGED_S); the energy's in mJ, of 600 W"""
PER_CPU = [
    "schedstat_running_seconds_total",
    "schedstat_waiting_seconds_total",
    "schedstat_timeslices_total",
    "cpu_scaling_frequency_hertz",
    "cpu_scaling_frequency_max_hertz",
    "cpu_scaling_frequency_min_hertz",
    "cpu_core_throttles_total",
]
"""that a host has and a container, which this machine may be, doesn't"""
LABEL = re.compile(r'(cpu|device)="([^"]*)"')


class Node:
    """One node's series: {series: (value, most that it changes by at a scrape)}."""

    def __init__(self, name: str, of_exporter: dict[str, tuple[float, float]], seed: int):
        self.random = random.Random(seed)
        self.node, self.dcgm = dict(of_exporter), dict(_dcgm(name))

    def text(self, job: str) -> str:
        """A scrape."""
        found = getattr(self, job)
        for series, (value, change) in found.items():
            if change:
                found[series] = self.next(value, change), change
        return "".join(f"{series} {value:.17g}\n" for series, (value, _) in found.items())

    def next(self, value: float, change: float) -> float:
        """What counts whole things goes on doing so; shares and seconds have two digits, as the kernel's."""
        more = abs(change) * EVERY_S / CHANGED_S * 2 * self.random.random()
        whole = value.is_integer() and change.is_integer()
        return value + round(more) if whole else round(value + more, 2)


def _dcgm(name: str) -> Iterator[tuple[str, tuple[float, float]]]:
    fields = yaml.safe_load((ROOT / "playbooks/roles/metrics/defaults/main.yml").read_text())["metrics_dcgm_fields"]
    still = ("XID", "REMAP", "ECC", "REPLAY", "RESERVED", "VIOLATION", "REASONS")
    for gpu in range(GPUS):
        labels = f'gpu="{gpu}",UUID="GPU-{name}-{gpu}",pci_bus_id="00000000:{gpu:02X}:00.0",device="nvidia{gpu}",'
        labels += f'modelName="NVIDIA H100 80GB HBM3",Hostname="{name}",hpc_job="4711"'
        for field, _, _ in fields:
            yield (
                f"{field}{{{labels}}}",
                (0.0, 0.0) if any(word in field for word in still) else GAUGES.get(field, (0.5, 0.123)),
            )


def of_this_machine() -> dict[str, tuple[float, float]]:
    """What the real exporter has here, as large as a DGX H100's."""
    at = prometheus.free_address()
    package = prometheus.unpacked("prometheus-node-exporter")
    if package is None:
        sys.exit("Debian's package prometheus-node-exporter can't be had here")
    argv = [str(package / "usr/bin/prometheus-node-exporter"), f"--web.listen-address={at}"]
    with tempfile.TemporaryDirectory() as folder, prometheus.started(argv, Path(folder), at, "/metrics"):
        first = _samples(at)
        time.sleep(CHANGED_S)  # so that what changes has changed
        second = _samples(at)
    found = {series: (value, value - first.get(series, value)) for series, value in second.items()}
    of_host = {f'node_{name}{{cpu="{n}"}}': (1.0, 1.5) for name in PER_CPU for n in range(CPUS)}
    return of_host | dict(_larger(found)) | dict(_infiniband())


def _samples(at: str) -> dict[str, float]:
    with urllib.request.urlopen(f"http://{at}/metrics", timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if line.startswith("node_")}


def _larger(found: dict[str, tuple[float, float]]) -> Iterator[tuple[str, tuple[float, float]]]:
    """Series of the first CPU, and of the first disk, as often as there are."""
    firsts = {
        "cpu": "0",
        "device": min(re.findall(r'node_disk_io_now\{device="([^"]+)"', "\n".join(found)), default=""),
    }
    for series, (value, change) in found.items():
        name, its = series.partition("{")[0], LABEL.search(series)
        label = its[1] if its and (its[1] == "cpu" or name.startswith("node_disk_")) else ""
        if not its or not label:
            yield series, (value, change)
        elif its[2] == firsts[label]:
            for n in range(EACH[label]):
                yield series.replace(its[0], f'{label}="{n}"', 1), (value + n, change)


def _infiniband() -> Iterator[tuple[str, tuple[float, float]]]:
    moves = ("data", "packets", "wait")
    for port in range(PORTS):
        for name in INFINIBAND:
            change = 1e9 if any(word in name for word in moves) and "multicast" not in name else 0.0
            yield f'node_infiniband_{name}{{device="mlx5_{port}",port="1"}}', (4.0, change)


@contextmanager
def exported(nodes: Sequence[Node]) -> Iterator[str]:
    """host:port of /NODE/JOB."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _, number, job = self.path.split("/")
            body = nodes[int(number)].text(job).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


def settings(at: str, nodes: int) -> dict[str, Any]:
    """Those of `ironburst monitoring`, but where the targets are."""
    made = targets.prometheus("bench", ".", "127.0.0.1:9093", "127.0.0.1:9090")
    made = {key: made[key] for key in ("global", "scrape_configs")}
    made["scrape_configs"] = [each for each in made["scrape_configs"] if each["job_name"] in ("node", "dcgm")]
    for each in made["scrape_configs"]:
        each.pop("file_sd_configs")
        each["static_configs"] = [
            {"targets": [at], "labels": {"__metrics_path__": f"/{n}/{each['job_name']}", "node": f"dgx{n:03}"}}
            for n in range(nodes)
        ]
    return made


def memory(nodes: Sequence[Node], minutes: float) -> dict[str, float]:
    """Series and MB of Prometheus after so many minutes of scrapes."""
    with tempfile.TemporaryDirectory() as name, exported(nodes) as at:
        folder, began = Path(name), time.monotonic()
        with prometheus.running(folder, settings(at, len(nodes))) as url:
            while time.monotonic() - began < minutes * 60:
                time.sleep(5)
            found = {what: _figure(url, expression) for what, expression in _OF_ITSELF.items()}
    return found


_OF_ITSELF = {
    "series": "prometheus_tsdb_head_series",
    "samples": "prometheus_tsdb_head_samples_appended_total",
    "memory_mb": "process_resident_memory_bytes",
    "cpu_seconds": "process_cpu_seconds_total",
}


def _figure(url: str, name: str) -> float:
    with urllib.request.urlopen(f"{url}/metrics", timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    found = [float(line.rpartition(" ")[2]) for line in lines if re.match(rf"{name}(\{{.*\}})? ", line)]
    return sum(found) / (1e6 if name.endswith("_bytes") else 1)


def kept(series: str, rules: Iterable[dict[str, Any]]) -> bool:
    """Whether Prometheus keeps it, by rules that drop."""
    name, _, rest = series.partition("{")
    labels = {"__name__": name} | dict(re.findall(r'(\w+)="([^"]*)"', rest))
    return not any(
        re.fullmatch(rule["regex"], ";".join(labels.get(label, "") for label in rule["source_labels"]))
        for rule in rules
    )


def bytes_a_sample(node: Node, rules: Sequence[dict[str, Any]]) -> float:
    """Of one node's blocks, HOURS long."""
    end_s = 1_795_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        count = _openmetrics(folder / "samples", node, rules, range(end_s - HOURS * 3600, end_s, EVERY_S))
        make = [prometheus.program("promtool"), "tsdb", "create-blocks-from", "openmetrics", "samples", "data"]
        subprocess.run(make, cwd=folder, check=True, capture_output=True)
        size = sum(path.stat().st_size for path in (folder / "data").rglob("*") if path.is_file())
    return size / count


def _openmetrics(path: Path, node: Node, rules: Sequence[dict[str, Any]], moments: Iterable[int]) -> int:
    count, by_name = 0, dict[str, list[tuple[str, float, float]]]()
    for series, (value, change) in (node.node | node.dcgm).items():
        if kept(series, rules):
            by_name.setdefault(series.partition("{")[0], []).append((series, value, change))
    with path.open("w") as file:
        for name, found in by_name.items():
            file.write(f"# TYPE {name} gauge\n")
            for series, value, change in found:
                for at_s in moments:
                    value = node.next(value, change) if change else value
                    file.write(f"{series} {value:.17g} {at_s}\n")
                    count += 1
        file.write("# EOF\n")
    return count


def measured(nodes: int, minutes: float) -> dict[str, Any]:
    """All figures."""
    of_exporter = of_this_machine()
    every = [Node(f"dgx{n:03}", of_exporter, n) for n in range(nodes)]
    scraped = next(each for each in settings("", 1)["scrape_configs"] if each["job_name"] == "node")
    each = bytes_a_sample(every[0], scraped.get("metric_relabel_configs", []))
    found = memory(every, minutes)
    samples = found["series"] * DAY_S / EVERY_S
    return {
        "nodes": nodes,
        "gpus": GPUS,
        "series": round(found["series"]),
        "series of a node's exporter": len(of_exporter),
        "bytes_a_sample": round(each, 2),
        WATCHED: round(samples * each / 1e9, 2),
        "memory_mb": round(found["memory_mb"]),
        "cpu_share": round(found["cpu_seconds"] / (minutes * 60), 3),
        "minutes": minutes,
    }


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.watch", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=60)
    parser.add_argument("--minutes", type=float, default=6)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args(argv)
    if arguments.nodes < 1 or arguments.minutes <= 0:
        parser.error("--nodes and --minutes are more than 0")
    found = measured(arguments.nodes, arguments.minutes)
    print(json.dumps(found) if arguments.json else "\n".join(f"{key}: {value:,}" for key, value in found.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
