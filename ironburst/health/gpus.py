"""Judging what is known of a node's GPUs, whatever form of nvidia-smi's output it was read from.

A GPU's facts are {name of nvidia-smi's --query-gpu field: value as printed, units included}. A field that is not in
RULES is only held to have no error text. A value that is not available must be so for every GPU of this name, and never
for the fields in NEVER.
"""

import functools
import re
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from .report import (
    Expectation,
    Finding,
    Model,
    Unreadable,
    bad,
    count_finding,
    decimal,
    driver_finding,
    good,
    is_error,
    not_available,
    quantity,
    shown,
)

Facts = Dict[str, str]
# cards that clouds wire with eight of their sixteen lanes (seen in public captures of EC2 g4dn and g5)
EIGHT_LANES = re.compile(r"\b(T4|A10G)\b")
HOT_C = 87  # where the output names no limit of its own: A100 and T4 may run at 85, all slow down at 87 to 90
MEMORY_TOLERANCE = 0.1  # catalogues say GB, drivers report usable MiB: H100 80GB has 81559
FORM_WORDS = re.compile(r"^(SXM\d*|PCIe|NVL|SE|\d+(/\d+)*GB|variants)$")
UUID = re.compile(r"^GPU-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")
BUS_ID = re.compile(r"^[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]$")
NAME = re.compile(r"^(NVIDIA|Tesla|Quadro|GeForce|GRID|RTX|A100|A800|H100|H800)[ -]\S.*$|^[AHLBVTP]\d{1,3}\w?$")
HBM = re.compile(r"\b(P100|V100S?|A100|A800|A30|H100|H800|H20|H200|GH200|B200|B300|GB200|GB300)\b")
# Bits of clocks_event_reasons.active (NVML): hardware slowdown, software thermal, hardware thermal, power brake are the
# bad ones
BAD_REASONS = {
    0x8: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}
KNOWN_REASONS = 0x1FF
BAD_REASON_NAMES = {
    "hw_slowdown": "hardware slowdown",
    "hw_thermal_slowdown": "hardware thermal slowdown",
    "hw_power_brake_slowdown": "power brake",
    "sw_thermal_slowdown": "software thermal slowdown",
}


def reduced(name: str) -> List[str]:
    return re.split(r"[\s-]+", name)


class Judge(NamedTuple):
    """One GPU and what is expected of it."""

    who: str
    facts: Facts
    expected: Expectation
    mig: bool


Rule = Callable[[str, str, Judge], Optional[str]]  # field, value -> a sentence if the value is bad


def measure(unit: str, least: float = 0, most: float = 1e9) -> Rule:
    def rule(field: str, value: str, judge: Judge) -> Optional[str]:
        found = quantity(value, unit, f"{field} of {judge.who}")
        return None if least <= found <= most else f"{field} is {value}"

    return rule


def bare(least: float = 0, most: float = 1e9) -> Rule:
    def rule(field: str, value: str, judge: Judge) -> Optional[str]:
        found = decimal(value, f"{field} of {judge.who}")
        return None if least <= found <= most else f"{field} is {value}"

    return rule


def one_of(*words: str, healthy: Sequence[str] = ()) -> Rule:
    def rule(field: str, value: str, judge: Judge) -> Optional[str]:
        if value not in words:
            raise Unreadable(f"{field} of {judge.who} is {value!r}, not one of {', '.join(words)}")
        return None if not healthy or value in healthy else f"{field} is {value}"

    return rule


def pattern(form: str) -> Rule:
    def rule(field: str, value: str, judge: Judge) -> Optional[str]:
        if not re.match(form + "$", value):
            raise Unreadable(f"{field} of {judge.who} is {value!r}")
        return None

    return rule


def zero(field: str, value: str, judge: Judge) -> Optional[str]:
    found = decimal(value, f"{field} of {judge.who}")
    return None if found == 0 else f"{field} is {value}, must be 0"


def historic(field: str, value: str, judge: Judge) -> Optional[str]:
    found = decimal(value, f"{field} of {judge.who}")
    allowed = judge.expected.accepted_uncorrectable
    return None if 0 <= found <= allowed else f"{field} is {value}, accepted are {allowed}"


def width(field: str, value: str, judge: Judge) -> Optional[str]:
    match = re.match(r"^(\d+)x?$", value)
    if not match or int(match.group(1)) not in (1, 2, 4, 8, 16, 32):
        raise Unreadable(f"{field} of {judge.who} is {value!r}, not a number of PCIe lanes")
    lanes = int(match.group(1))
    if field.endswith("max"):
        return None
    wanted = judge.expected.pcie_width
    if wanted is None:
        most = re.match(r"^(\d+)x?$", judge.facts.get("pcie.link.width.max", "16"))
        wanted = int(most.group(1)) if most else 16
        if EIGHT_LANES.search(judge.facts.get("name", "")):
            wanted = min(wanted, 8)
    return None if lanes >= wanted else f"the PCIe link has {lanes} of {wanted} lanes"


def temperature(field: str, value: str, judge: Judge) -> Optional[str]:
    found = decimal(re.sub(r" C$", "", value), f"{field} of {judge.who}")
    if not 9 < found < 150:
        raise Unreadable(f"{field} of {judge.who} is {value!r}, which no GPU has")
    limits = {
        "temperature.gpu": ("temperature.gpu.slow", "temperature.gpu.max"),
        "temperature.memory": ("temperature.memory.max",),
    }
    stated = [judge.facts[name] for name in limits[field] if re.match(r"^[1-9]\d* C$", judge.facts.get(name, ""))]
    limit = min([float(text[:-2]) for text in stated] or [HOT_C if field == "temperature.gpu" else 105])
    return None if found < limit else f"{field} is {found:g} C, the limit {limit:g} C"


def tlimit(field: str, value: str, judge: Judge) -> Optional[str]:
    left = decimal(re.sub(r" C$", "", value), f"{field} of {judge.who}")
    return None if left > 0 else f"{left:g} C are left to the temperature limit"


def reasons(field: str, value: str, judge: Judge) -> Optional[str]:
    if not re.match(r"^0x[0-9A-Fa-f]{16}$", value):
        raise Unreadable(f"{field} of {judge.who} is {value!r}, not a mask of 16 hexadecimal digits")
    mask = int(value, 16)
    if mask & ~KNOWN_REASONS:
        raise Unreadable(f"{field} of {judge.who} is {value}, which has unknown bits")
    found = [text for bit, text in BAD_REASONS.items() if mask & bit]
    return f"its clocks are held down by {', '.join(found)}" if found else None


def reason(field: str, value: str, judge: Judge) -> Optional[str]:
    if value not in ("Active", "Not Active"):
        raise Unreadable(f"{field} of {judge.who} is {value!r}, not Active or Not Active")
    text = BAD_REASON_NAMES.get(field.rsplit(".", 1)[1])
    return f"its clocks are held down by {text}" if text and value == "Active" else None


def ecc_mode(field: str, value: str, judge: Judge) -> Optional[str]:
    if value not in ("Enabled", "Disabled"):
        raise Unreadable(f"{field} of {judge.who} is {value!r}")
    return "ECC is off" if value == "Disabled" and HBM.search(judge.facts.get("name", "").replace("-", " ")) else None


MHZ, WATT, MIB, PERCENT = (
    measure("MHz", 1, 20000),
    measure("W", 0.1, 5000),
    measure("MiB", 0, 4e6),
    measure("%", 0, 100),
)
YES_NO = one_of("Yes", "No", "Pending", healthy=("No",))
RULES: Tuple[Tuple[str, Rule], ...] = tuple(
    (form + "$", rule)
    for form, rule in (
        (r"(gpu_)?uuid", pattern(UUID.pattern[1:-1])),
        (r"(pci|gpu_bus_id|pci\.bus_id)", pattern(BUS_ID.pattern[1:-1])),
        (r"(name|gpu_name)", pattern(r"\S.*")),
        (r"memory\.total", measure("MiB", 1, 4e6)),
        (r"memory\.(used|free|reserved)", MIB),
        (r"temperature\.(gpu|memory)", temperature),
        (r"temperature\.gpu\.tlimit", tlimit),
        (r"(power\.(draw|limit|default_limit|max_limit|min_limit)|enforced\.power\.limit|power\.draw\.\w+)", WATT),
        (r"pstate", pattern(r"P(\d|1[0-5])")),
        (r"fan\.speed", measure("%", 0, 110)),
        (r"utilization\.\w+", PERCENT),
        (r"clocks\.(current\.|max\.|applications\.|default_applications\.)?\w+", MHZ),
        (r"compute_cap", pattern(r"\d{1,2}\.\d")),
        (r"(persistence_mode|accounting\.mode|display_mode|display_active)", one_of("Enabled", "Disabled")),
        (
            r"compute_mode",
            one_of(
                "Default",
                "Exclusive_Process",
                "Exclusive_Thread",
                "Prohibited",
                "E. Process",
                healthy=("Default", "Exclusive_Process", "E. Process", "Exclusive_Thread"),
            ),
        ),
        (r"mig\.mode\.\w+", one_of("Enabled", "Disabled")),
        (r"ecc\.mode\.\w+", ecc_mode),
        (r"ecc\.errors\.corrected\..*", bare()),
        (r"ecc\.errors\.uncorrected\.volatile\..*", zero),
        (r"ecc\.errors\.uncorrected\.aggregate\..*", historic),
        (r"ecc\.sram_threshold_exceeded", YES_NO),
        (r"ecc\.(repair|unrepairable)\.\w+", YES_NO),
        (r"retired_pages\.(single_bit_ecc\.count|sbe)", bare(0, 59)),
        (r"retired_pages\.(double_bit\.count|dbe)", historic),
        (r"retired_pages\.pending", YES_NO),
        (r"remapped_rows\.(pending|failure)", YES_NO),
        (r"remapped_rows\.correctable", bare()),
        (r"remapped_rows\.uncorrectable", historic),
        (r"pcie\.link\.width\.(current|max)", width),
        (r"pcie\.link\.gen(\.\w+)?\.?(current|max|gpucurrent|gpumax|hostmax)", bare(1, 8)),
        (r"clocks_(event|throttle)_reasons\.(active|supported)", reasons),
        (r"clocks_(event|throttle)_reasons\.\w+", reason),
        (r"reset_status\.\w+", YES_NO),
        (
            r"gpu_recovery_action",
            one_of(
                "None", "Reset", "Reboot", "GPU Reset", "Node Reboot", "Drain P2P", "Drain and Reset", healthy=("None",)
            ),
        ),
        (
            r"fabric\.state",
            one_of("Completed", "In Progress", "Not Started", "Not Supported", healthy=("Completed", "Not Supported")),
        ),
        (r"fabric\.status", one_of("Success", "Failure", "Not Supported", healthy=("Success", "Not Supported"))),
        (r"fabric\.health\.summary", one_of("Healthy", "Unhealthy", "Limited Capacity", healthy=("Healthy",))),
        (
            r"fabric\.health\.bandwidth",
            one_of("Full", "Normal", "Degraded", "False", "True", healthy=("Full", "Normal", "False")),
        ),
        (r"fabric\.health\.(route_\w+|access_\w+)", one_of("True", "False", healthy=("False",))),
        (r"fabric\.health\.incorrect_config\w*", one_of("None", "False", "True", healthy=("None", "False"))),
    )
)
PLAIN = re.compile(  # fields without a rule of their own: only held to be no error
    r"^(index|count|serial|minor_number|vbios_version|inforom\..*|gom\..*|gsp\..*|pci\..*|driver_model\..*|timestamp|"
    r"driver_version|"
    r"cuda_version|display_attached|gpu_part_number|board_\w+|module_id|platform\.\w+|addressing_mode|product\.\w+|encoder\..*|"
    r"mem(ory)?\..*|fabric\..*|protected_memory\..*|hostname|c2c\.mode|accounting\..*|power\.\w+|conf_compute\..*|"
    r"dramEncryption\..*|vgpu_.*|temperature\..*|gpu_.*|kmd_version|retired_pages\..*|remapped_rows\..*|ecc\..*|pcie\..*|"
    r"module\..*|"
    r"clocks_event_reasons_counters\..*)$"
)
NEVER = re.compile(
    r"^(name|gpu_name|uuid|gpu_uuid|pci\.bus_id|gpu_bus_id|memory\.(total|used|free)|temperature\.gpu|pstate|driver_version|"
    r"index|count|"
    r"power\.(draw|limit)|clocks\.(current\.)?(sm|gr|graphics|mem|memory)|compute_mode|persistence_mode|compute_cap|"
    r"pcie\.link\.(width|gen)(\.\w+)?\.?(current|max)|clocks_(event|throttle)_reasons\..*|gpu_recovery_action)$"
)


@functools.lru_cache(maxsize=4096)
def rule_for(field: str) -> Optional[Rule]:
    return next((rule for form, rule in RULES if re.match(form, field)), None)


def known(field: str) -> bool:
    return rule_for(field) is not None or bool(PLAIN.match(field))


@functools.lru_cache(maxsize=1024)
def find_models(name: str, models: Tuple[Model, ...]) -> Tuple[Model, ...]:
    """The catalogue's models that a product name may mean, whatever the memory. "NVIDIA H100 80GB HBM3": H100 SXM5 80GB
    and its variants.
    """
    words = reduced(re.sub(r"\.\.\.$", "", name))
    found = []
    for model in models:
        family = [word for word in model.name.split() if not FORM_WORDS.match(word)]
        pcie = "PCIe" in words or "PCIE" in words
        if not family or any(word not in words for word in family):
            continue
        if ("SXM" in model.form_factor and pcie) or (
            "PCIe" in model.form_factor and any(word.startswith("SXM") for word in words)
        ):
            continue
        if ("NVL" in model.name.split()) != ("NVL" in words) and ("NVL" in words):
            continue
        found.append(model)
    longest = max([len(model.name.split()) for model in found if "RTX" in model.name] or [0])
    return tuple(model for model in found if "RTX" not in model.name or len(model.name.split()) == longest)


def memory_sizes(name: str, models: Tuple[Model, ...]) -> List[int]:
    """Marketed sizes in GB that a GPU of this name may have; empty: not known."""
    stated = re.search(r"\b(\d{2,3})\s?G(B|$| )", name)
    if stated and "GH200" not in name:  # GH200's number is the CPU's memory
        return [int(stated.group(1))]
    sizes = [model.memory_gb for model in find_models(name, models) if model.memory_gb]
    if re.search(r"\bH20\b", name.replace("-", " ")):
        sizes.append(141)
    return sizes


def board_of(name: str, models: Tuple[Model, ...]) -> Optional[int]:
    boards = {model.board for model in find_models(name, models)}
    return boards.pop() if len(boards) == 1 else None


def model_name_matches(model: str, name: str, memory_mib: float) -> bool:
    """Whether a GPU is of the catalogue's model: "H100 SXM5 80GB" is nvidia-smi's "NVIDIA H100 80GB HBM3" with 81559
    MiB.
    """
    words = reduced(name)
    family = [word for word in model.split() if not FORM_WORDS.match(word)]
    if not family or any(word not in words for word in family):
        return False
    pcie = "PCIe" in words or "PCIE" in words
    if ("SXM" in model and pcie) or ("PCIe" in model and any(word.startswith("SXM") for word in words)):
        return False
    sizes = re.search(r"(\d+(?:/\d+)*)GB", model)
    if not sizes:
        return True
    return any(abs(memory_mib / 1024 - int(size)) <= MEMORY_TOLERANCE * int(size) for size in sizes.group(1).split("/"))


def _memory(judge: Judge) -> Optional[str]:
    facts = judge.facts
    if "memory.total" not in facts:
        return None
    total = quantity(facts["memory.total"], "MiB", f"memory.total of {judge.who}")
    sizes = memory_sizes(facts.get("name", ""), judge.expected.models)
    if sizes and not any(abs(total / 1024 - size) <= MEMORY_TOLERANCE * size for size in sizes):
        stated = " or ".join(str(size) for size in sorted(set(sizes)))
        return f"it has {total:g} MiB of memory, but a {facts['name']} has {stated} GB"
    if all(name in facts and not not_available(facts[name]) for name in ("memory.used", "memory.free")):
        parts = sum(quantity(facts[name], "MiB", name) for name in ("memory.used", "memory.free"))
        if "memory.reserved" in facts and not not_available(facts["memory.reserved"]):
            parts += quantity(facts["memory.reserved"], "MiB", "memory.reserved")
        if abs(parts - total) > 0.03 * total:
            return f"its memory does not add up: {parts:g} of {total:g} MiB"
    elif "memory.used" in facts and not not_available(facts["memory.used"]):
        if quantity(facts["memory.used"], "MiB", "memory.used") > total:
            return "more memory is used than it has"
    return None


def _pairs(judge: Judge) -> List[str]:
    """Values that must agree with each other."""
    facts, found = judge.facts, []
    for what in ("ecc.mode", "mig.mode"):
        current, pending = facts.get(what + ".current"), facts.get(what + ".pending")
        if current and pending and current != pending:
            found.append(f"{what} changes from {current} to {pending} at the next reset")
    if facts.get("ecc.mode.current") == "Enabled" and not judge.mig:
        found += [
            f"ECC is on, but {name} is not available"
            for name, value in facts.items()
            if re.match(r"ecc\.errors\.uncorrected\..*(total|dram_uncorrectable|sram_uncorrectable\w*)$", name)
            and not_available(value)
        ]
    if facts.get("fabric.state") == "Completed" and "fabric.status" in facts and facts["fabric.status"] != "Success":
        found.append(f"the fabric's status is {facts['fabric.status']}")
    return found


def judge_gpu(judge: Judge) -> List[str]:
    """Everything that is wrong with one GPU, a sentence each. Raises Unreadable for what is not understood."""
    found = []
    for field, value in judge.facts.items():
        if is_error(value):
            found.append(f"{field} is {shown(value)}")
            continue
        if not_available(value):
            if (
                NEVER.match(field)
                and not (judge.mig and field in ("memory.used", "memory.free"))
                or field.startswith("utilization.gpu")
                and not judge.mig
            ):
                found.append(f"{field} is not available")
            continue
        rule = rule_for(field)
        problem = rule(field, value, judge) if rule else None
        if problem:
            found.append(problem)
    memory = _memory(judge)
    return found + ([memory] if memory else []) + _pairs(judge)


def judge_all(gpus: Sequence[Facts], expected: Expectation) -> List[Finding]:
    """Findings over all GPUs of a node. Raises Unreadable for none, for one twice, and for facts that are not
    understood.
    """
    if not gpus:
        raise Unreadable("no GPU is listed")
    for field in ("uuid", "pci.bus_id"):
        values = [facts[field] for facts in gpus if field in facts]
        if len(set(values)) != len(values):
            raise Unreadable(f"one GPU is listed twice (the same {field})")
    names = sorted({facts["name"] for facts in gpus if "name" in facts})
    findings = [count_finding(len(gpus), expected, board_of(names[0], expected.models) if len(names) == 1 else None)]
    if len(names) > 1 and expected.gpu_model is None:
        findings.append(bad("gpu_model", f"the GPUs differ: {', '.join(names)}"))
    versions = sorted({facts["driver_version"] for facts in gpus if "driver_version" in facts})
    if len(versions) > 1:
        findings.append(bad("driver", f"the GPUs name different drivers: {', '.join(versions)}"))
    findings += [driver_finding(version, expected) for version in versions]
    problems = []
    for position, facts in enumerate(gpus):
        if "name" in facts and not NAME.match(facts["name"]) and not is_error(facts["name"]):
            raise Unreadable(f"{facts['name']!r} is not the name of an NVIDIA GPU")
        who = f"GPU {facts.get('index', position)}"
        judge = Judge(who, facts, expected, facts.get("mig.mode.current") == "Enabled")
        problems += [f"{who}: {text}" for text in judge_gpu(judge)]
        if expected.gpu_model and "name" in facts:
            memory = (
                float(re.sub(r" .*", "", facts["memory.total"]))
                if re.match(r"^\d+ MiB$", facts.get("memory.total", ""))
                else None
            )
            fits = (
                model_name_matches(expected.gpu_model, facts["name"], memory)
                if memory is not None
                else expected.gpu_model in [model.name for model in find_models(facts["name"], expected.models)]
            )
            if not fits:
                problems.append(f"{who}: it is {facts['name']}, declared is {expected.gpu_model}")
    problems += uneven(gpus)
    findings += [bad("gpu_health", text) for text in problems] or [
        good("gpu_health", f"nothing is wrong with {len(gpus)} GPUs")
    ]
    return findings


EVEN = (
    "memory.total",
    "pcie.link.width.current",
    "pcie.link.width.max",
    "pcie.link.gen.max",
    "ecc.mode.current",
    "power.limit",
    "fabric.state",
)


def uneven(gpus: Sequence[Facts]) -> List[str]:
    """What only some GPUs of the same name have, or have differently."""
    found = []
    for name in sorted({facts.get("name", "") for facts in gpus}):
        same = [facts for facts in gpus if facts.get("name", "") == name]
        mixed_mig = len({facts.get("mig.mode.current") for facts in same}) > 1
        for field in sorted({field for facts in same for field in facts}):
            having = [facts for facts in same if field in facts]
            if len(having) != len(same):
                if not mixed_mig:
                    found.append(f"only {len(having)} of {len(same)} GPUs have {field}")
                continue
            missing = [facts for facts in same if not_available(facts[field])]
            if field.startswith("raw."):
                continue
            if (
                missing
                and len(missing) != len(same)
                and not mixed_mig
                and not field.startswith(("inforom", "temperature.memory"))
            ):
                found.append(f"{field} is not available for {len(missing)} of {len(same)} GPUs")
            elif field in EVEN and len({facts[field] for facts in same}) > 1:
                found.append(f"{field} differs: {', '.join(sorted({facts[field] for facts in same}))}")
    return found
