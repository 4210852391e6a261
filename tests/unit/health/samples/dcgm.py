"""What dcgmi prints: diag as table and JSON, discovery, health."""

from __future__ import annotations

import json
from collections.abc import Iterable

from tests.unit.health.samples.machines import Spec, bus, uuid

V3_DEPLOYMENT = (
    "Denylist",
    "NVML Library",
    "CUDA Main Library",
    "Permissions and OS Blocks",
    "Persistence Mode",
    "Environment Variables",
    "Page Retirement/Row Remap",
    "Graphics Processes",
    "Inforom",
)
# section -> tests by the level that first runs them, in the order in which DCGM prints them
V3_TESTS = {
    "Integration": {"PCIe": 2},
    "Hardware": {"GPU Memory": 2, "Diagnostic": 3},
    "Stress": {"Targeted Stress": 3, "Targeted Power": 3, "Memory Bandwidth": 3},
}
V4_TESTS = {
    "Hardware": {"memory": 2, "diagnostic": 3, "nvbandwidth": 3},
    "Integration": {"pcie": 2},
    "Stress": {"memory_bandwidth": 3, "targeted_power": 3, "targeted_stress": 3},
}


def row(name: str, value: str) -> str:
    return f"| {name:<25} | {value:<46} |"


def section(name: str, edge: str = "+") -> str:
    return f"{edge}-----  {name}  {'-' * (18 - len(name))}+{'-' * 48}{edge}"


def diag(spec: Spec, version: str, level: int) -> str:
    old = version < "4"
    rule = f"+{'-' * 27}+{'-' * 48}+"

    def test(name: str) -> list[str]:
        if old:
            return [row(name, "Pass - All")]
        return [row(name, "Pass"), *(row("", f"GPU{n}: Pass") for n in range(spec.count))]

    ids = ("," if old else ", ").join([spec.device] * spec.count)
    out = [
        "Successfully ran diagnostic for group.",
        rule,
        row("Diagnostic", "Result"),
        f"+{'=' * 27}+{'=' * 48}+",
        section("Metadata", "|"),
        row("DCGM Version", version),
        row("Driver Version Detected", spec.driver),
    ]
    out += [row("GPU Device IDs Detected" if not n else "", ids[n : n + 46]) for n in range(0, len(ids), 46)]
    out.append(section("Deployment", "|"))
    out += [row(name, "Pass") for name in V3_DEPLOYMENT] if old else test("software")
    for title, tests in (V3_TESTS if old else V4_TESTS).items() if level >= 2 else ():
        out.append(section(title))
        out += [line for name, lowest in tests.items() if lowest <= level for line in test(name)]
    out += [row("EUD Test", "Skip - All")] if old and level >= 3 else []
    return "\n".join([*out, rule, ""])


def diag_json(spec: Spec, version: str) -> str:
    """Level 3."""
    data = _json_v3(spec, version) if version < "4" else _json_v4(spec, version)
    return json.dumps(data, indent=1) + "\n"


def _json_v3(spec: Spec, version: str) -> dict:
    once = [{"status": "Pass"}]
    by_gpu = [{"gpu_id": str(n), "info": f"Allocated {spec.mib} bytes", "status": "Pass"} for n in range(spec.count)]

    def category(name: str, tests: Iterable[str], results: list[dict]) -> dict:
        return {"category": name, "tests": [{"name": test, "results": results} for test in tests]}

    categories = [category("Deployment", V3_DEPLOYMENT, once)]
    categories += [category(name, tests, by_gpu) for name, tests in V3_TESTS.items()]
    body = {
        "Driver Version Detected": spec.driver,
        "GPU Device IDs": [spec.device] * spec.count,
        "test_categories": categories,
        "version": version,
    }
    return {"DCGM GPU Diagnostic": body}


def _json_v4(spec: Spec, version: str) -> dict:
    group = {"entity_group": "GPU", "entity_group_id": 1}
    results = [{**group, "entity_id": n, "status": "Pass"} for n in range(spec.count)]
    gpus = [{"device_id": spec.device, "entity_id": n, "serial_num": f"16500000000{n:02d}"} for n in range(spec.count)]

    def category(name: str, tests: Iterable[str]) -> dict:
        told = [{"name": test, "results": results, "test_summary": {"status": "Pass"}} for test in tests]
        return {"category": name, "tests": told}

    categories = [category("Deployment", ["software"]), *(category(*item) for item in V4_TESTS.items())]
    return {
        "DCGM Diagnostic": {"test_categories": categories},
        "entity_groups": [{**group, "entities": gpus}],
        "metadata": {"Driver Version Detected": spec.driver, "version": version},
    }


def discovery(spec: Spec, switches: int) -> str:
    rule = f"+--------+{'-' * 70}+"
    out = [f"{spec.count} GPUs found.", rule, f"| GPU ID | {'Device Information':<69}|", rule]
    for n in range(spec.count):
        out += [
            f"| {n:<6} | {'Name: ' + spec.name:<69}|",
            f"|        | {f'PCI Bus ID: 00000000:{bus(n):02X}:00.0':<69}|",
            f"|        | {'Device UUID: ' + uuid(spec, n):<69}|",
            rule,
        ]
    out += [f"{switches} NvSwitches found.", "+-----------+", "| Switch ID |", "+-----------+"]
    for n in range(switches):
        out += [f"| {n:<9} |", "+-----------+"]
    return "\n".join([*out, "0 ConnectX found.", "+----------+", "| ConnectX |", "+----------+", ""])


def dcgm_health() -> str:
    rule = f"+{'-' * 27}+{'-' * 58}+"
    return "\n".join(
        [
            rule,
            f"| {'Health Monitor Report':<84} |",
            f"+{'=' * 27}+{'=' * 58}+",
            f"| {'Overall Health':<25} | {'Healthy':<56} |",
            rule,
            "",
        ]
    )
