"""nvidia-smi -q, whole or by section (`-d`), as text and as XML (`-x`): both become the facts that gpus.py judges."""

import re
import xml.etree.ElementTree as ElementTree
from typing import Dict, List, Tuple

from .gpus import Facts, judge_all
from .report import Expectation, Finding, Unreadable, bad, clean, driver_finding, ends_open, not_available, shown, whole

LINE = re.compile(r"^( *)(\S.*?)\s+: ?(.*?)\s*$")
HEADING = re.compile(r"^( {4,})([A-Za-z0-9][\w /().&.-]*?)\s*$")
GPU = re.compile(r"^GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])$")
FREE = (
    "processes",
    "supported clocks",
    "accounted processes",
    "mig device",
    "mig devices",
    "capabilities",
    "supported_clocks",
    "mig_devices",
    "accounted_processes",
)
REASONS = ("hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown")
NEEDED = (
    "name",
    "uuid",
    "pci.bus_id",
    "memory.total",
    "memory.used",
    "memory.free",
    "pstate",
    "temperature.gpu",
    "power.limit",
    "clocks.sm",
    "ecc.mode.current",
    "ecc.mode.pending",
    "pcie.link.width.current",
    "pcie.link.width.max",
    "pcie.link.gen.max",
    "compute_mode",
    "persistence_mode",
    "retired_pages.pending",
)
# What must be whole where any of it is there
TOGETHER = (
    tuple(f"remapped_rows.{name}" for name in ("correctable", "uncorrectable", "pending", "failure")),
    tuple(f"clocks_event_reasons.{name}" for name in REASONS),
    ("fabric.state", "fabric.status"),
    ("memory.total", "memory.used", "memory.free"),
    ("retired_pages.sbe", "retired_pages.dbe", "retired_pages.pending"),
    ("mig.mode.current", "mig.mode.pending"),
    ("ecc.mode.current", "ecc.mode.pending"),
    ("pcie.link.width.current", "pcie.link.width.max"),
)

# (section, key) of the text, lower case -> field; the sections of XML are their tags without underscores' difference
TEXT = {
    ("", "product name"): "name",
    ("", "gpu uuid"): "uuid",
    ("", "persistence mode"): "persistence_mode",
    ("", "fan speed"): "fan.speed",
    ("", "performance state"): "pstate",
    ("", "compute mode"): "compute_mode",
    ("", "gpu recovery action"): "gpu_recovery_action",
    ("mig mode", "current"): "mig.mode.current",
    ("mig mode", "pending"): "mig.mode.pending",
    ("pci", "bus id"): "pci.bus_id",
    ("fb memory usage", "total"): "memory.total",
    ("fb memory usage", "used"): "memory.used",
    ("fb memory usage", "free"): "memory.free",
    ("fb memory usage", "reserved"): "memory.reserved",
    ("utilization", "gpu"): "utilization.gpu",
    ("utilization", "memory"): "utilization.memory",
    ("ecc mode", "current"): "ecc.mode.current",
    ("ecc mode", "pending"): "ecc.mode.pending",
    ("gpu reset status", "reset required"): "reset_status.required",
    ("gpu reset status", "drain and reset recommended"): "reset_status.drain_recommended",
    ("retired pages", "single bit ecc"): "retired_pages.sbe",
    ("retired pages", "double bit ecc"): "retired_pages.dbe",
    ("retired pages", "pending page blacklist"): "retired_pages.pending",
    ("retired pages", "pending"): "retired_pages.pending",
    ("remapped rows", "correctable error"): "remapped_rows.correctable",
    ("remapped rows", "uncorrectable error"): "remapped_rows.uncorrectable",
    ("remapped rows", "pending"): "remapped_rows.pending",
    ("remapped rows", "remapping failure occurred"): "remapped_rows.failure",
    ("temperature", "gpu current temp"): "temperature.gpu",
    ("temperature", "gpu t.limit temp"): "temperature.gpu.tlimit",
    ("temperature", "gpu slowdown temp"): "temperature.gpu.slow",
    ("temperature", "gpu max operating temp"): "temperature.gpu.max",
    ("temperature", "memory current temp"): "temperature.memory",
    ("temperature", "memory max operating temp"): "temperature.memory.max",
    ("power readings", "power draw"): "power.draw",
    ("power readings", "power limit"): "power.limit",
    ("gpu power readings", "power draw"): "power.draw",
    ("gpu power readings", "average power draw"): "power.draw.average",
    ("gpu power readings", "instantaneous power draw"): "power.draw.instant",
    ("gpu power readings", "current power limit"): "power.limit",
    ("gpu power readings", "instant power draw"): "power.draw.instant",
    ("power readings", "enforced power limit"): "enforced.power.limit",
    ("clocks", "sm"): "clocks.sm",
    ("clocks", "graphics"): "clocks.gr",
    ("clocks", "memory"): "clocks.mem",
    ("max clocks", "sm"): "clocks.max.sm",
    ("max clocks", "memory"): "clocks.max.mem",
    ("fabric", "state"): "fabric.state",
    ("fabric", "status"): "fabric.status",
    ("fabric", "summary"): "fabric.health.summary",
    ("fabric", "bandwidth"): "fabric.health.bandwidth",
    ("fabric", "route recovery in progress"): "fabric.health.route_recovery",
    ("fabric", "route unhealthy"): "fabric.health.route_unhealthy",
    ("fabric", "access timeout recovery"): "fabric.health.access_timeout",
    ("fabric", "incorrect configuration"): "fabric.health.incorrect_config",
    ("ecc errors", "channel repair pending"): "ecc.repair.channel",
    ("ecc errors", "tpc repair pending"): "ecc.repair.tpc",
    ("ecc errors", "unrepairable memory"): "ecc.unrepairable.memory",
    ("ecc errors", "sram threshold exceeded"): "ecc.sram_threshold_exceeded",
}
XML = {
    "product_name": "name",
    "uuid": "uuid",
    "persistence_mode": "persistence_mode",
    "fan_speed": "fan.speed",
    "performance_state": "pstate",
    "compute_mode": "compute_mode",
    "gpu_recovery_action": "gpu_recovery_action",
    "mig_mode/current_mig": "mig.mode.current",
    "mig_mode/pending_mig": "mig.mode.pending",
    "pci/pci_bus_id": "pci.bus_id",
    "pci/pci_gpu_link_info/pcie_gen/max_link_gen": "pcie.link.gen.max",
    "pci/pci_gpu_link_info/pcie_gen/current_link_gen": "pcie.link.gen.current",
    "pci/pci_gpu_link_info/link_widths/max_link_width": "pcie.link.width.max",
    "pci/pci_gpu_link_info/link_widths/current_link_width": "pcie.link.width.current",
    "utilization/gpu_util": "utilization.gpu",
    "utilization/memory_util": "utilization.memory",
    "ecc_mode/current_ecc": "ecc.mode.current",
    "ecc_mode/pending_ecc": "ecc.mode.pending",
    "gpu_reset_status/reset_required": "reset_status.required",
    "gpu_reset_status/drain_and_reset_recommended": "reset_status.drain_recommended",
    "retired_pages/multiple_single_bit_retirement/retired_count": "retired_pages.sbe",
    "retired_pages/double_bit_retirement/retired_count": "retired_pages.dbe",
    "retired_pages/pending_retirement": "retired_pages.pending",
    "retired_pages/pending_blacklist": "retired_pages.pending_blacklist",
    "remapped_rows/remapped_row_corr": "remapped_rows.correctable",
    "remapped_rows/remapped_row_unc": "remapped_rows.uncorrectable",
    "remapped_rows/remapped_row_pending": "remapped_rows.pending",
    "remapped_rows/remapped_row_failure": "remapped_rows.failure",
    "temperature/gpu_temp": "temperature.gpu",
    "temperature/gpu_temp_tlimit": "temperature.gpu.tlimit",
    "temperature/gpu_temp_slow_threshold": "temperature.gpu.slow",
    "temperature/gpu_temp_max_gpu_threshold": "temperature.gpu.max",
    "temperature/memory_temp": "temperature.memory",
    "temperature/gpu_temp_max_mem_threshold": "temperature.memory.max",
    "clocks/sm_clock": "clocks.sm",
    "clocks/graphics_clock": "clocks.gr",
    "clocks/mem_clock": "clocks.mem",
    "max_clocks/sm_clock": "clocks.max.sm",
    "max_clocks/mem_clock": "clocks.max.mem",
    "fabric/state": "fabric.state",
    "fabric/status": "fabric.status",
    "fabric/health/summary": "fabric.health.summary",
    "fabric/health/bandwidth": "fabric.health.bandwidth",
    "fabric/health/route_recovery_in_progress": "fabric.health.route_recovery",
    "fabric/health/route_unhealthy": "fabric.health.route_unhealthy",
    "fabric/health/access_timeout_recovery": "fabric.health.access_timeout",
    "fabric/health/incorrect_configuration": "fabric.health.incorrect_config",
    "ecc_errors/channel_repair_pending": "ecc.repair.channel",
    "ecc_errors/tpc_repair_pending": "ecc.repair.tpc",
    "ecc_errors/unrepairable_memory": "ecc.unrepairable.memory",
    "ecc_errors/aggregate/sram_threshold_exceeded": "ecc.sram_threshold_exceeded",
}
for _section in ("power_readings", "gpu_power_readings"):
    XML.update(
        {
            f"{_section}/power_draw": "power.draw",
            f"{_section}/average_power_draw": "power.draw.average",
            f"{_section}/instant_power_draw": "power.draw.instant",
            f"{_section}/power_limit": "power.limit",
            f"{_section}/current_power_limit": "power.limit",
            f"{_section}/enforced_power_limit": "enforced.power.limit",
        }
    )
for _name in ("total", "used", "free", "reserved"):
    XML[f"fb_memory_usage/{_name}"] = f"memory.{_name}"


def parse_text(text: str, expected: Expectation) -> List[Finding]:
    """Findings of `nvidia-smi -q`. Raises Unreadable."""
    head, gpus = {}, []  # type: ignore
    stack = []  # type: List[Tuple[int, str]]
    last = ""
    for line in clean(text):
        if not line.strip() or re.match(r"^=+NVSMI LOG=+$", line.strip()):
            continue
        line = line.expandtabs(4).rstrip()
        gpu, pair, heading = GPU.match(line), LINE.match(line), HEADING.match(line)
        if gpu:
            gpus.append({"bus": gpu.group(1), "pairs": [], "seen": []})
            stack = []
        elif pair and pair.group(1) == "" and not gpus:
            head[pair.group(2)] = pair.group(3)
        elif gpus and (pair or heading) and len((pair or heading).group(1)) >= 4:
            indent, key = len((pair or heading).group(1)), (pair or heading).group(2)
            stack = [entry for entry in stack if entry[0] < indent] + [(indent, key.lower())]
            path = tuple(name for _, name in stack)
            gpus[-1]["seen"].append(path)
            if pair:
                gpus[-1]["pairs"].append((path, pair.group(3)))
            last = key
        else:
            raise Unreadable(f"nvidia-smi -q prints a line that is not understood: {shown(line)}")
    for name in ("Timestamp", "Attached GPUs"):
        if name not in head:
            raise Unreadable(f"nvidia-smi -q names no {name}")
    versions = [
        head[name] for name in ("KMD Version", "Driver Version") if name in head and not not_available(head[name])
    ]
    if not versions or not re.match(r"^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]?\d \d\d:\d\d:\d\d \d{4}$", head["Timestamp"]):
        raise Unreadable("nvidia-smi -q has no head that is understood")
    facts = [_facts(gpu) for gpu in gpus]
    whole_form = any("name" in each for each in facts)
    if whole_form and (
        stack[0][1] not in ("processes", "capabilities") or (ends_open(text) and not _closed(text, last))
    ):
        raise Unreadable("nvidia-smi -q is cut: its last GPU has no list of processes")
    if (
        not whole_form
        and ends_open(text)
        and not re.search(
            r": (\S+ (MiB|C|W|MHz|%)|Yes|No|0|N/A|Enabled|Disabled|\d+x|None|bank\(s\)|(Not )?Active)$", text
        )
    ):
        raise Unreadable("nvidia-smi -q is cut in the middle of a line")
    return _judge(facts, head["Attached GPUs"], versions[0], whole_form, expected)


def _closed(text: str, last: str) -> bool:
    whole_value = re.search(r"(: None|: \d+ MiB|: N/A|: (en|dis)abled)\s*$", text)
    return bool(whole_value) and (last != "Processes" or text.rstrip().endswith(": None"))


def _facts(gpu: Dict) -> Facts:  # type: ignore[type-arg]
    facts = {"pci.bus_id": gpu["bus"]}
    for path, value in gpu["pairs"]:
        section, key = (path[0] if len(path) > 1 else ""), path[-1]
        if section in FREE or key in FREE:
            continue
        field = TEXT.get((section, key))
        if section in ("clocks event reasons", "clocks throttle reasons"):
            field = "clocks_event_reasons." + key.replace(" ", "_")
        elif path[:2] == ("pci", "gpu link info") and len(path) == 4:
            field = ("pcie.link.gen." if path[2] == "pcie generation" else "pcie.link.width.") + key.replace(" ", "")
            if key not in ("max", "current"):
                field = "raw." + "/".join(path)
        elif section == "ecc errors" and field is None and path[1] in ("volatile", "aggregate"):
            field = _ecc(path[1], path[2:])
        field = field or "raw." + "/".join(path)
        if field in facts and facts[field] != value:
            if field != "pci.bus_id":
                raise Unreadable(f"nvidia-smi -q says {key} twice of GPU {gpu['bus']}")
            raise Unreadable(f"the GPU {gpu['bus']} names itself {value}")
        facts[field] = value
    return facts


def _ecc(life: str, path: Tuple[str, ...]) -> str:
    """("single bit", "total") or ("dram uncorrectable",) -> the field."""
    name = "_".join(path).replace(" ", "_").replace("-", "_")
    kind = "uncorrected" if "uncorrect" in name or name.startswith("double_bit") else "corrected"
    return f"ecc.errors.{kind}.{life}.{name}"


def parse_xml(text: str, expected: Expectation) -> List[Finding]:
    """Findings of `nvidia-smi -q -x`. Raises Unreadable."""
    clean(text)
    if "<!ENTITY" in text:
        raise Unreadable("the XML declares an entity: nvidia-smi never does")
    try:
        root = ElementTree.fromstring(text.strip().encode())
    except (ElementTree.ParseError, ValueError) as error:
        raise Unreadable(f"the XML is cut or damaged ({error})") from None
    if root.tag != "nvidia_smi_log":
        raise Unreadable(f"the XML is a {root.tag}, not an nvidia_smi_log")
    facts = []
    for gpu in root.findall("gpu"):
        found = {}  # type: Facts
        _walk(gpu, "", found)
        if "pci.bus_id" in found and gpu.get("id") != found["pci.bus_id"]:
            raise Unreadable(f"the GPU {gpu.get('id')} names itself {found['pci.bus_id']}")
        if found.get("retired_pages.pending_blacklist") not in (None, found.get("retired_pages.pending")):
            found.setdefault("retired_pages.pending", found["retired_pages.pending_blacklist"])
        if any(key.startswith("processes") for key in found) or gpu.find("processes") is None:
            raise Unreadable(f"the GPU {gpu.get('id')} has no list of processes")
        facts.append(found)
    version = root.findtext("kmd_version") or root.findtext("driver_version") or ""
    if (root.tail or "").strip() or (root.text or "").strip():
        raise Unreadable("text stands between the elements of the XML")
    return _judge(facts, root.findtext("attached_gpus") or "", version, any("name" in each for each in facts), expected)


def _walk(element, path: str, facts: Facts) -> None:  # type: ignore[no-untyped-def]
    for child in element:
        here = f"{path}/{child.tag}" if path else child.tag
        if here.split("/")[0] in FREE or here == "processes":
            continue
        if len(child) and (child.text or "").strip():
            raise Unreadable(f"text stands between the elements of the XML: {shown((child.text or '').strip())}")
        if (child.tail or "").strip():
            raise Unreadable(f"text stands between the elements of the XML: {shown((child.tail or '').strip())}")
        if len(child):
            _walk(child, here, facts)
            continue
        value = (child.text or "").strip()
        field = XML.get(here)
        reason = re.match(r"^clocks_(?:event|throttle)_reasons/clocks_(?:event|throttle)_reason_(\w+)$", here)
        ecc = re.match(r"^ecc_errors/(volatile|aggregate)/([\w/]+)$", here)
        if reason:
            field = "clocks_event_reasons." + reason.group(1)
        elif ecc and field is None:
            field = _ecc(ecc.group(1), tuple(ecc.group(2).split("/")))
        if not value and (field or here in ("minor_number", "serial")):
            raise Unreadable(f"{here} is empty")
        field = field or "raw." + here
        if field in facts and field.startswith("raw."):
            continue
        if field in facts:
            raise Unreadable(f"the XML says {here} twice of one GPU")
        facts[field] = value


def _judge(facts: List[Facts], attached: str, version: str, whole_form: bool, expected: Expectation) -> List[Finding]:
    count = whole(attached, "the number of attached GPUs")
    if not facts:
        raise Unreadable("no GPU is listed")
    if count != len(facts) and expected.gpus != len(facts):
        raise Unreadable(f"{len(facts)} of {count} attached GPUs are listed")
    for each in facts:
        who = f"GPU {each.get('pci.bus_id', '?')}"
        lacking = [name for name in NEEDED if name not in each] if whole_form else []
        if whole_form and not any(name.startswith("power.draw") for name in each):
            lacking.append("power.draw")
        if whole_form and not any(name.startswith("ecc.errors.uncorrected.volatile") for name in each):
            lacking.append("ecc.errors")
        if whole_form and not any(name.startswith("clocks_event_reasons.") for name in each):
            lacking.append("clocks_event_reasons")
        for group in TOGETHER:
            having = [name for name in group if name in each]
            lacking += [name for name in group if name not in each] if having else []
        if lacking:
            raise Unreadable(f"{who} does not say its {', '.join(dict.fromkeys(lacking))}")
        if not [name for name in each if name != "pci.bus_id" and not name.startswith("raw.")]:
            raise Unreadable(f"{who} says nothing that is understood")
    findings = judge_all(facts, expected)
    if facts and any("mig.mode.current" not in each and whole_form for each in facts) and len(facts) > 1:
        having = [each for each in facts if "mig.mode.current" in each]
        if having and len(having) != len(facts):
            findings.append(bad("gpu_health", "only some GPUs say their MIG mode"))
    return [driver_finding(version, expected)] + findings
