"""What nvidia-smi -q and -q -x print: one tree of sections, written as text and as XML."""

from __future__ import annotations

import re
from html import escape
from typing import NamedTuple

from tests.unit.health.samples.machines import Spec, branch, bus, ecc_on, hbm, uuid


class Entry(NamedTuple):
    """A key of the text, its tag in the XML, and its value, or the entries below it."""

    key: str
    tag: str
    value: str
    below: tuple[Entry, ...] = ()


NA = "N/A"
# Key | tag | value, below its section by two spaces; "{name}": a value of the GPU; "[name]": another block stands here
GPU = """
Product Name                | product_name                                      | {name}
Product Brand               | product_brand                                     | {brand}
Persistence Mode            | persistence_mode                                  | Enabled
MIG Mode                    | mig_mode
  Current                   | current_mig                                       | {mig}
  Pending                   | pending_mig                                       | {mig}
Serial Number               | serial                                            | {serial}
GPU UUID                    | uuid                                              | {uuid}
Minor Number                | minor_number                                      | {number}
VBIOS Version               | vbios_version                                     | 96.00.89.00.01
GPU Reset Status            | gpu_reset_status
  Reset Required            | reset_required                                    | {reset}
  Drain and Reset Recommended | drain_and_reset_recommended                     | {reset}
[recovery]
PCI                         | pci
  Bus                       | pci_bus                                           | 0x{bus}
  Device Id                 | pci_device_id                                     | 0x{device}10DE
  Bus Id                    | pci_bus_id                                        | 00000000:{bus}:00.0
  GPU Link Info             | pci_gpu_link_info
    PCIe Generation         | pcie_gen
      Max                   | max_link_gen                                      | {gen}
      Current               | current_link_gen                                  | {gen_now}
      Host Max              | max_host_link_gen                                 | {gen}
    Link Width              | link_widths
      Max                   | max_link_width                                    | 16x
      Current               | current_link_width                                | 16x
  Replays Since Reset       | replay_counter                                    | 0
  Tx Throughput             | tx_util                                           | 567 KB/s
Fan Speed                   | fan_speed                                         | {fan}
Performance State           | performance_state                                 | {pstate}
Clocks {Reason} Reasons     | clocks_{reason}_reasons
  Idle                      | clocks_{reason}_reason_gpu_idle                   | Active
  Applications Clocks Setting | clocks_{reason}_reason_applications_clocks_setting | Not Active
  SW Power Cap              | clocks_{reason}_reason_sw_power_cap               | Not Active
  HW Slowdown               | clocks_{reason}_reason_hw_slowdown                | Not Active
  HW Thermal Slowdown       | clocks_{reason}_reason_hw_thermal_slowdown        | Not Active
  HW Power Brake Slowdown   | clocks_{reason}_reason_hw_power_brake_slowdown    | Not Active
  Sync Boost                | clocks_{reason}_reason_sync_boost                 | Not Active
  SW Thermal Slowdown       | clocks_{reason}_reason_sw_thermal_slowdown        | Not Active
  Display Clock Setting     | clocks_{reason}_reason_display_clocks_setting     | Not Active
FB Memory Usage             | fb_memory_usage
  Total                     | total                                             | {mib} MiB
  Reserved                  | reserved                                          | {reserved} MiB
  Used                      | used                                              | {number} MiB
  Free                      | free                                              | {free} MiB
Compute Mode                | compute_mode                                      | Default
Utilization                 | utilization
  Gpu                       | gpu_util                                          | 0 %
  Memory                    | memory_util                                       | 0 %
  JPEG                      | jpeg_util                                         | N/A
ECC Mode                    | ecc_mode
  Current                   | current_ecc                                       | {ecc}
  Pending                   | pending_ecc                                       | {ecc}
ECC Errors                  | ecc_errors
  Volatile                  | volatile
    [errors]
  Aggregate                 | aggregate
    [errors]
Retired Pages               | retired_pages
  Single Bit ECC            | multiple_single_bit_retirement/retired_count      | {retired}
  Double Bit ECC            | double_bit_retirement/retired_count               | {retired}
  Pending Page Blacklist    | pending_retirement                                | {retirement}
[remapped]
Temperature                 | temperature
  GPU Current Temp          | gpu_temp                                          | {degrees} C
  [limits]
  GPU Target Temperature    | gpu_target_temperature                            | N/A
  Memory Current Temp       | memory_temp                                       | {memory_temp}
  Memory Max Operating Temp | gpu_temp_max_mem_threshold                        | {memory_limit}
[power]
[smoothing]
Clocks                      | clocks
  Graphics                  | graphics_clock                                    | 345 MHz
  SM                        | sm_clock                                          | 345 MHz
  Memory                    | mem_clock                                         | 2619 MHz
Applications Clocks         | applications_clocks
  Graphics                  | graphics_clock                                    | {application_clock}
Max Clocks                  | max_clocks
  Graphics                  | graphics_clock                                    | 1980 MHz
  SM                        | sm_clock                                          | 1980 MHz
  Memory                    | mem_clock                                         | 2619 MHz
[fabric]
Processes                   | processes                                         | None
"""
RECOVERY = """
GPU Recovery Action         | gpu_recovery_action                               | None
"""
ERRORS_VOLTA = """
Single Bit                  | single_bit
  [parts]
Double Bit                  | double_bit
  [parts]
"""
PARTS_VOLTA = """
Device Memory               | device_memory                                     | {errors}
Register File               | register_file                                     | {errors}
L1 Cache                    | l1_cache                                          | {errors}
L2 Cache                    | l2_cache                                          | {errors}
Texture Memory              | texture_memory                                    | N/A
Texture Shared              | texture_shm                                       | N/A
CBU                         | cbu                                               | N/A
Total                       | total                                             | {errors}
"""
ERRORS = """
SRAM Correctable            | sram_correctable                                  | {errors}
SRAM Uncorrectable          | sram_uncorrectable                                | {errors}
DRAM Correctable            | dram_correctable                                  | {errors}
DRAM Uncorrectable          | dram_uncorrectable                                | {errors}
"""
ERRORS_R550 = """
SRAM Correctable            | sram_correctable                                  | {errors}
SRAM Uncorrectable Parity   | sram_uncorrectable_parity                         | {errors}
SRAM Uncorrectable SEC-DED  | sram_uncorrectable_secded                         | {errors}
DRAM Correctable            | dram_correctable                                  | {errors}
DRAM Uncorrectable          | dram_uncorrectable                                | {errors}
"""
REMAPPED = """
Remapped Rows               | remapped_rows
  Correctable Error         | remapped_row_corr                                 | 0
  Uncorrectable Error       | remapped_row_unc                                  | 0
  Pending                   | remapped_row_pending                              | No
  Remapping Failure Occurred | remapped_row_failure                             | No
  Bank Remap Availability Histogram | row_remapper_histogram
    Max                     | row_remapper_histogram_max                        | 640 bank(s)
    High                    | row_remapper_histogram_high                       | 0 bank(s)
    None                    | row_remapper_histogram_none                       | 0 bank(s)
"""
NOT_REMAPPED = """
Remapped Rows               | remapped_rows                                     | N/A
"""
LIMITS = """
GPU Shutdown Temp           | gpu_temp_max_threshold                            | 92 C
GPU Slowdown Temp           | gpu_temp_slow_threshold                           | 89 C
GPU Max Operating Temp      | gpu_temp_max_gpu_threshold                        | 85 C
"""
LIMITS_R550 = """
GPU T.Limit Temp            | gpu_temp_tlimit                                   | {left} C
GPU Shutdown T.Limit Temp   | gpu_temp_max_tlimit_threshold                     | -8 C
GPU Slowdown T.Limit Temp   | gpu_temp_slow_tlimit_threshold                    | -2 C
GPU Max Operating T.Limit Temp | gpu_temp_max_gpu_tlimit_threshold              | 0 C
"""
POWER = """
Power Readings              | power_readings
  Power Management          | power_management                                  | Supported
  Power Draw                | power_draw                                        | {draw} W
  Power Limit               | power_limit                                       | {limit} W
  Default Power Limit       | default_power_limit                               | {limit} W
  Enforced Power Limit      | enforced_power_limit                              | {limit} W
"""
POWER_R535 = """
GPU Power Readings          | gpu_power_readings
  [draw]
  Current Power Limit       | current_power_limit                               | {limit} W
  Requested Power Limit     | requested_power_limit                             | {limit} W
  Default Power Limit       | default_power_limit                               | {limit} W
  Min Power Limit           | min_power_limit                                   | 60.00 W
  Max Power Limit           | max_power_limit                                   | {limit} W
"""
DRAW_R535 = """
Power Draw                  | power_draw                                        | {draw} W
"""
DRAW_R570 = """
Average Power Draw          | average_power_draw                                | {draw} W
Instantaneous Power Draw    | instant_power_draw                                | {draw} W
"""
SMOOTHING = """
Power Smoothing             | power_smoothing                                   | {smoothing}
"""
FABRIC = """
Fabric                      | fabric
  State                     | state                                             | {fabric_state}
  Status                    | status                                            | {fabric_status}
"""


def _volta(spec: Spec) -> bool:
    return "V100" in spec.name or "P100" in spec.name


def _retires(spec: Spec) -> bool:
    """Whether it retires pages, instead of remapping rows."""
    return _volta(spec) or spec.name == "Tesla T4"


def _blocks(spec: Spec) -> dict[str, str]:
    """The block that stands for each [name], by the driver's branch and the kind of GPU."""
    release, volta = branch(spec), _volta(spec)
    since_r550 = release >= 550 and hbm(spec) and not volta
    return {
        "recovery": RECOVERY if release >= 565 else "",
        "errors": ERRORS_VOLTA if volta else ERRORS_R550 if since_r550 else ERRORS,
        "parts": PARTS_VOLTA,
        "remapped": NOT_REMAPPED if _retires(spec) or not ecc_on(spec) else REMAPPED,
        "limits": LIMITS_R550 if since_r550 else LIMITS,
        "power": POWER_R535 if release >= 535 else POWER,
        "draw": DRAW_R570 if release >= 570 else DRAW_R535,
        "smoothing": SMOOTHING if release >= 580 and hbm(spec) else "",
        "fabric": FABRIC if release >= 535 else "",
    }


def _values(spec: Spec, n: int) -> dict[str, str]:
    """The value of each {name} of the n-th GPU."""
    release, on, large = branch(spec), ecc_on(spec), hbm(spec)
    reserved = max(1, spec.mib // 150)
    return {
        "name": spec.name,
        "brand": spec.name.split()[0],
        "mig": "Disabled" if spec.mig else NA,
        "smoothing": "Insufficient Permissions" if re.search(r"\bG?B[23]00\b", spec.name) else NA,  # of root, too
        "serial": f"16500000000{n:02d}",
        "uuid": uuid(spec, n),
        "number": str(n),
        "reset": "Requested functionality has been deprecated" if release >= 570 else "No",
        "bus": f"{bus(n):02X}",
        "device": spec.device.upper(),
        "gen": str(spec.gen),
        "gen_now": str(spec.gen if large else 1),
        "fan": NA if large else "30 %",
        "pstate": "P0" if large else "P8",
        "Reason": "Event" if release >= 535 else "Throttle",
        "reason": "event" if release >= 535 else "throttle",
        "mib": str(spec.mib),
        "reserved": str(reserved),
        "free": str(spec.mib - reserved - n),
        "ecc": "Enabled" if on else "Disabled",
        "errors": "0" if on else NA,
        "retired": "0" if _retires(spec) else NA,
        "retirement": "No" if _retires(spec) else NA,
        "degrees": str(28 + n),
        "left": str(57 - n),
        "memory_temp": f"{36 + n} C" if large else NA,
        "memory_limit": "95 C" if large and _blocks(spec)["limits"] is LIMITS else NA,
        "draw": f"{spec.watt / 10 + n:.2f}",
        "limit": f"{spec.watt:.2f}",
        "application_clock": "1980 MHz" if large else NA,
        "fabric_state": "Completed" if spec.fabric else NA,
        "fabric_status": "Success" if spec.fabric else NA,
    }


def _expanded(block: str, blocks: dict[str, str], indent: str = "") -> list[str]:
    """The lines of a block with the others in their places."""
    lines: list[str] = []
    for line in block.strip("\n").splitlines():
        name = line.strip()
        if name.startswith("["):
            lines += _expanded(blocks[name[1:-1]], blocks, indent + line[: line.index("[")])
        elif name:
            lines.append(indent + line)
    return lines


def _tree(lines: list[str], values: dict[str, str]) -> tuple[Entry, ...]:
    entries: list[Entry] = []
    for at, line in enumerate(lines):
        if line.startswith(" "):
            continue
        key, tag, value = (*(cell.strip().format(**values) for cell in line.split(" | ")), "")[:3]
        end = next((k for k in range(at + 1, len(lines)) if not lines[k].startswith(" ")), len(lines))
        entries.append(Entry(key, tag, value, _tree([below[2:] for below in lines[at + 1 : end]], values)))
    return tuple(entries)


def sections(spec: Spec, n: int) -> tuple[Entry, ...]:
    """One GPU, in the order of nvidia-smi -q."""
    return _tree(_expanded(GPU, _blocks(spec)), _values(spec, n))


def query(spec: Spec) -> str:
    words = ("KMD Version", "CUDA UMD Version") if branch(spec) >= 600 else ("Driver Version", "CUDA Version")
    head = [("Timestamp", "Sat Nov 21 09:14:07 2026"), *zip(words, (spec.driver, spec.cuda), strict=True)]
    out = ["", "==============NVSMI LOG==============", ""]
    out += [f"{key:<41} : {value}" for key, value in head]
    out += ["", f"{'Attached GPUs':<41} : {spec.count}"]

    def walk(entries: tuple[Entry, ...], depth: int) -> None:
        for entry in entries:
            pad = " " * 4 * depth
            out.append(pad + entry.key if entry.below else f"{pad}{entry.key:<{41 - 4 * depth}} : {entry.value}")
            walk(entry.below, depth + 1)

    for n in range(spec.count):
        out.append(f"GPU 00000000:{bus(n):02X}:00.0")
        walk(sections(spec, n), 1)
        out.append("")
    return "\n".join(out) + "\n"


def xml(spec: Spec) -> str:
    version = "v13" if branch(spec) >= 595 else "v12" if branch(spec) >= 525 else "v11"
    out = [
        '<?xml version="1.0" ?>',
        f'<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_{version}.dtd">',
        "<nvidia_smi_log>",
        "\t<timestamp>Sat Nov 21 09:14:07 2026</timestamp>",
        f"\t<driver_version>{spec.driver}</driver_version>",
        f"\t<cuda_version>{spec.cuda}</cuda_version>",
        f"\t<attached_gpus>{spec.count}</attached_gpus>",
    ]

    def walk(entries: tuple[Entry, ...], depth: int) -> None:
        for entry in entries:
            pad = "\t" * depth
            outer, _, inner = entry.tag.partition("/")
            if entry.below or entry.tag == "processes":
                out.append(f"{pad}<{entry.tag}>")
                walk(entry.below, depth + 1)
                out.append(f"{pad}</{entry.tag}>")
            elif inner:
                out.append(f"{pad}<{outer}>\n{pad}\t<{inner}>{entry.value}</{inner}>\n{pad}</{outer}>")
            else:
                out.append(f"{pad}<{entry.tag}>{escape(entry.value, quote=False)}</{entry.tag}>")

    for n in range(spec.count):
        out.append(f'\t<gpu id="00000000:{bus(n):02X}:00.0">')
        walk(sections(spec, n), 2)
        out.append("\t</gpu>")
    return "\n".join([*out, "</nvidia_smi_log>"]) + "\n"
