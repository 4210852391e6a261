"""What dcgmi prints: diag as table and JSON, discovery, health."""

from __future__ import annotations

import json

from tests.unit.health.samples.machines import Spec, bus, uuid


def diag(spec: Spec, version: str, level: int) -> str:
    rule = f"+{'-' * 27}+{'-' * 48}+"

    def row(name: str, value: str) -> str:
        return f"| {name:<25} | {value:<46} |"

    def section(name: str, edge: str = "+") -> str:
        return f"{edge}-----  {name}  {'-' * (18 - len(name))}+{'-' * 48}{edge}"

    ids = ", ".join([spec.device] * spec.count) if version >= "4" else ",".join([spec.device] * spec.count)
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

    def test(name: str) -> list[str]:
        if version < "4":
            return [row(name, "Pass - All")]
        return [row(name, "Pass"), *(row("", f"GPU{n}: Pass") for n in range(spec.count))]

    if version < "4":
        out += [
            row(name, "Pass")
            for name in (
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
        ]
        if level >= 2:
            out += [section("Integration"), *test("PCIe"), section("Hardware"), *test("GPU Memory")]
            out += test("Diagnostic") if level >= 3 else []
            out.append(section("Stress"))
            out += (
                [line for name in ("Targeted Stress", "Targeted Power", "Memory Bandwidth") for line in test(name)]
                if level >= 3
                else []
            )
            out += [row("EUD Test", "Skip - All")] if level >= 3 else []
    else:
        out += test("software")
        if level >= 2:
            out += [
                section("Hardware"),
                *test("memory"),
                *(test("diagnostic") + test("nvbandwidth") if level >= 3 else []),
                section("Integration"),
                *test("pcie"),
                section("Stress"),
            ]
            out += (
                [line for name in ("memory_bandwidth", "targeted_power", "targeted_stress") for line in test(name)]
                if level >= 3
                else []
            )
    return "\n".join([*out, rule, ""])


def diag_json(spec: Spec, version: str) -> str:
    """Level 3."""
    if version < "4":
        one = [{"status": "Pass"}]
        each = [{"gpu_id": str(n), "info": f"Allocated {spec.mib} bytes", "status": "Pass"} for n in range(spec.count)]
        names = (
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
        categories = [{"category": "Deployment", "tests": [{"name": name, "results": one} for name in names]}]
        for category, tests in (
            ("Integration", ["PCIe"]),
            ("Hardware", ["GPU Memory", "Diagnostic"]),
            ("Stress", ["Targeted Stress", "Targeted Power", "Memory Bandwidth"]),
        ):
            categories.append({"category": category, "tests": [{"name": name, "results": each} for name in tests]})
        body = {
            "Driver Version Detected": spec.driver,
            "GPU Device IDs": [spec.device] * spec.count,
            "test_categories": categories,
            "version": version,
        }
        return json.dumps({"DCGM GPU Diagnostic": body}, indent=1) + "\n"
    results = [
        {"entity_group": "GPU", "entity_group_id": 1, "entity_id": n, "status": "Pass"} for n in range(spec.count)
    ]

    def category(name: str, *tests: str) -> dict:
        return {
            "category": name,
            "tests": [{"name": test, "results": results, "test_summary": {"status": "Pass"}} for test in tests],
        }

    return (
        json.dumps(
            {
                "DCGM Diagnostic": {
                    "test_categories": [
                        category("Deployment", "software"),
                        category("Hardware", "memory", "diagnostic", "nvbandwidth"),
                        category("Integration", "pcie"),
                        category("Stress", "memory_bandwidth", "targeted_power", "targeted_stress"),
                    ]
                },
                "entity_groups": [
                    {
                        "entity_group": "GPU",
                        "entity_group_id": 1,
                        "entities": [
                            {"device_id": spec.device, "entity_id": n, "serial_num": f"16500000000{n:02d}"}
                            for n in range(spec.count)
                        ],
                    }
                ],
                "metadata": {"Driver Version Detected": spec.driver, "version": version},
            },
            indent=1,
        )
        + "\n"
    )


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
