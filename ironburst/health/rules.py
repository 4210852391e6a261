"""What is good for each field that nvidia-smi shows of a GPU: a table of rules by the names of --query-gpu.

A field that is not in RULES is only checked not to show a lost GPU. A value that is not available must be so for every
GPU of this name, and never for the fields in NEVER.
"""

import functools
import re
from typing import Callable, Dict, NamedTuple, Optional, Tuple

from .expectation import Expectation
from .findings import Unreadable
from .models import HBM, UUID, WIRED_NARROW, wanted_lanes
from .reading import decimal, quantity

Facts = Dict[str, str]  # name of nvidia-smi's --query-gpu field -> value as printed, units included
HOT_C = 87  # where the output names no limit of its own: A100 and T4 may run at 85, all slow down at 87 to 90
HOT_MEMORY_C = 105
BUS_ID = re.compile(r"^[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]$")
HARDWARE, BRAKE, THERMAL = "hardware slowdown", "power brake", "software thermal slowdown"
HARDWARE_THERMAL = "hardware thermal slowdown"
# The bad ones among the bits of clocks_event_reasons.active (NVML), and among the names of its fields
BAD_REASONS = {0x8: HARDWARE, 0x20: THERMAL, 0x40: HARDWARE_THERMAL, 0x80: BRAKE}
KNOWN_REASONS = 0x1FF
BAD_REASON_NAMES = {
    "hw_slowdown": HARDWARE,
    "hw_thermal_slowdown": HARDWARE_THERMAL,
    "hw_power_brake_slowdown": BRAKE,
    "sw_thermal_slowdown": THERMAL,
}


class Judge(NamedTuple):
    """One GPU and what is expected of it. mig: whether it is cut into MIG instances."""

    who: str
    facts: Facts
    expected: Expectation
    mig: bool


Rule = Callable[[str, str, Judge], Optional[str]]  # field, value -> a sentence if the value is bad


def measure(unit: str, least: float = 0, most: float = 1e9) -> Rule:
    """A number of this unit, from least to most; unit "" is a bare number."""

    def rule(field: str, value: str, judge: Judge) -> Optional[str]:
        what = f"{field} of {judge.who}"
        number = quantity(value, unit, what) if unit else decimal(value, what)
        return None if least <= number <= most else f"{field} is {value}"

    return rule


def one_of(words: str, healthy: str = "") -> Rule:
    """One of these words, which | parts; bad, if it is not one of the healthy ones (none named: all are)."""
    known, allowed = words.split("|"), (healthy or words).split("|")

    def rule(field: str, value: str, judge: Judge) -> Optional[str]:
        if value not in known:
            raise Unreadable(f"{field} of {judge.who} is {value!r}, not one of {', '.join(known)}")
        return None if value in allowed else f"{field} is {value}"

    return rule


def pattern(form: str) -> Rule:
    """Any value of this form."""

    def rule(field: str, value: str, judge: Judge) -> Optional[str]:
        if not re.match(form + "$", value):
            raise Unreadable(f"{field} of {judge.who} is {value!r}")
        return None

    return rule


def zero(field: str, value: str, judge: Judge) -> Optional[str]:
    """A count of errors since the driver was loaded."""
    return None if decimal(value, f"{field} of {judge.who}") == 0 else f"{field} is {value}, must be 0"


def historic(field: str, value: str, judge: Judge) -> Optional[str]:
    """A count of errors of the GPU's whole life: as many as a person has accepted."""
    accepted = judge.expected.accepted_uncorrectable
    count = decimal(value, f"{field} of {judge.who}")
    return None if 0 <= count <= accepted else f"{field} is {value}, accepted are {accepted}"


def power_limit(field: str, value: str, judge: Judge) -> Optional[str]:
    """W, no more than declared: a circuit was planned with it."""
    problem, most = WATT(field, value, judge), judge.expected.power_limit_w
    if problem or most is None or quantity(value, "W", f"{field} of {judge.who}") < most + 1:
        return problem
    return f"it may draw {value}, declared are {most:g} W at most"


def width(field: str, value: str, judge: Judge) -> Optional[str]:
    """PCIe lanes: all that the GPU has, or that are declared."""
    match = re.match(r"^(\d+)x?$", value)
    if not match or int(match.group(1)) not in (1, 2, 4, 8, 16, 32):
        raise Unreadable(f"{field} of {judge.who} is {value!r}, not a number of PCIe lanes")
    lanes = int(match.group(1))
    if field.endswith("max"):
        return None
    most = re.match(r"^(\d+)x?$", judge.facts.get("pcie.link.width.max", "16"))
    narrow = bool(WIRED_NARROW.search(judge.facts.get("name", "")))
    wanted = wanted_lanes(judge.expected.pcie_width, int(most.group(1)) if most else 16, narrow)
    return None if lanes >= wanted else f"the PCIe link has {lanes} of {wanted} lanes"


def temperature(field: str, value: str, judge: Judge) -> Optional[str]:
    """Degrees Celsius, below the lowest limit that the output names."""
    degrees = decimal(re.sub(r" C$", "", value), f"{field} of {judge.who}")
    if not 9 < degrees < 150:
        raise Unreadable(f"{field} of {judge.who} is {value!r}, which no GPU has")
    limits = {
        "temperature.gpu": ("temperature.gpu.slow", "temperature.gpu.max"),
        "temperature.memory": ("temperature.memory.max",),
    }
    stated = [judge.facts[name] for name in limits[field] if re.match(r"^[1-9]\d* C$", judge.facts.get(name, ""))]
    limit = min([float(text[:-2]) for text in stated] or [HOT_C if field == "temperature.gpu" else HOT_MEMORY_C])
    return None if degrees < limit else f"{field} is {degrees:g} C, the limit {limit:g} C"


def tlimit(field: str, value: str, judge: Judge) -> Optional[str]:
    """Degrees Celsius that are left to the limit."""
    left = decimal(re.sub(r" C$", "", value), f"{field} of {judge.who}")
    return None if left > 0 else f"{left:g} C are left to the temperature limit"


def sram_threshold(field: str, value: str, judge: Judge) -> Optional[str]:
    """NVIDIA's own limit for errors of the SRAM."""
    bad = YES_NO(field, value, judge)
    return "its SRAM has had more errors than NVIDIA allows: replace the GPU (RMA)" if bad else None


def reasons(field: str, value: str, judge: Judge) -> Optional[str]:
    """NVML's mask of why the clocks are held down."""
    if not re.match(r"^0x[0-9A-Fa-f]{16}$", value):
        raise Unreadable(f"{field} of {judge.who} is {value!r}, not a mask of 16 hexadecimal digits")
    mask = int(value, 16)
    if mask & ~KNOWN_REASONS:
        raise Unreadable(f"{field} of {judge.who} is {value}, which has unknown bits")
    bad_ones = [text for bit, text in BAD_REASONS.items() if mask & bit]
    return f"its clocks are held down by {', '.join(bad_ones)}" if bad_ones else None


def reason(field: str, value: str, judge: Judge) -> Optional[str]:
    """One of these reasons."""
    if value not in ("Active", "Not Active"):
        raise Unreadable(f"{field} of {judge.who} is {value!r}, not Active or Not Active")
    text = BAD_REASON_NAMES.get(field.rsplit(".", 1)[1])
    return f"its clocks are held down by {text}" if text and value == "Active" else None


def ecc_mode(field: str, value: str, judge: Judge) -> Optional[str]:
    """ECC is on where the memory is HBM."""
    if value not in ("Enabled", "Disabled"):
        raise Unreadable(f"{field} of {judge.who} is {value!r}")
    return "ECC is off" if value == "Disabled" and HBM.search(judge.facts.get("name", "").replace("-", " ")) else None


MHZ, WATT, MIB, PERCENT = (
    measure("MHz", 0, 20000),  # 0: a GPU that sleeps
    measure("W", 0.1, 5000),
    measure("MiB", 0, 4e6),
    measure("%", 0, 100),
)
COUNT = measure("")
ON_OFF = one_of("Enabled|Disabled")
YES_NO = one_of("Yes|No|Pending", healthy="No")
COMPUTE_MODE = one_of(
    "Default|Exclusive_Process|Exclusive_Thread|Prohibited|E. Process",
    healthy="Default|Exclusive_Process|Exclusive_Thread|E. Process",
)
RECOVERY = one_of("None|Reset|Reboot|GPU Reset|Node Reboot|Drain P2P|Drain and Reset", healthy="None")
FABRIC_STATE = one_of("Completed|In Progress|Not Started|Not Supported", healthy="Completed|Not Supported")
BANDWIDTH = one_of("Full|Normal|Degraded|False|True", healthy="Full|Normal|False")
# form of a field's name, what is good for it, in words what it is held against: the first row that fits the whole name
RULES: Tuple[Tuple[str, Rule, str], ...] = (
    (r"(gpu_)?uuid", pattern(UUID.pattern[1:-1]), "a UUID"),
    (r"(pci|gpu_bus_id|pci\.bus_id)", pattern(BUS_ID.pattern[1:-1]), "an address"),
    (r"(name|gpu_name)", pattern(r"\S.*"), "the model"),
    (r"memory\.total", measure("MiB", 1, 4e6), "the model's memory"),
    (r"memory\.(used|free|reserved)", MIB, "adds up"),
    (r"temperature\.(gpu|memory)", temperature, "below the limit"),
    (r"temperature\.gpu\.tlimit", tlimit, "some degrees left"),
    (r"power\.limit", power_limit, "no more than declared"),
    (r"(power\.(draw|default_limit|max_limit|min_limit)|enforced\.power\.limit|power\.draw\.\w+)", WATT, "watts"),
    (r"pstate", pattern(r"P(\d|1[0-5])"), "a performance state"),
    (r"fan\.speed", measure("%", 0, 110), "percent"),
    (r"utilization\.\w+", PERCENT, "percent"),
    (r"clocks\.(current\.|max\.|applications\.|default_applications\.)?\w+", MHZ, "megahertz"),
    (r"compute_cap", pattern(r"\d{1,2}\.\d"), "a version"),
    (r"(persistence_mode|accounting\.mode|display_mode|display_active)", ON_OFF, "on or off"),
    (r"compute_mode", COMPUTE_MODE, "not prohibited"),
    (r"mig\.mode\.\w+", ON_OFF, "the same now and after a reset"),
    (r"ecc\.mode\.\w+", ecc_mode, "on for HBM"),
    (r"ecc\.errors\.corrected\..*", COUNT, "a count"),
    (r"ecc\.errors\.uncorrected\.volatile\..*", zero, "0"),
    (r"ecc\.(errors\.uncorrected\.aggregate\.sram\.thresholdExceeded|sram_threshold_exceeded)", sram_threshold, "No"),
    (r"ecc\.errors\.uncorrected\.aggregate\..*", historic, "accepted"),
    (r"ecc\.(repair|unrepairable)\.\w+", YES_NO, "No"),
    (r"retired_pages\.(single_bit_ecc\.count|sbe)", measure("", 0, 59), "fewer than 60"),
    (r"retired_pages\.(double_bit\.count|dbe)", historic, "accepted"),
    (r"retired_pages\.pending", YES_NO, "No"),
    (r"remapped_rows\.(pending|failure)", YES_NO, "No"),
    (r"remapped_rows\.(correctable|sbe)(_inactive)?", COUNT, "a count"),
    (r"remapped_rows\.(uncorrectable|dbe)(_inactive)?", historic, "accepted"),
    (r"pcie\.link\.width\.(current|max)", width, "all lanes"),
    (r"pcie\.link\.gen(\.\w+)?\.?(current|max|gpucurrent|gpumax|hostmax)", measure("", 1, 8), "a generation"),
    (r"clocks_(event|throttle)_reasons\.active", reasons, "no slowdown"),
    (r"clocks_(event|throttle)_reasons\.(?!supported)\w+", reason, "no slowdown"),
    (r"reset_status\.\w+", YES_NO, "No"),
    (r"gpu_recovery_action", RECOVERY, "None"),
    (r"fabric\.state", FABRIC_STATE, "completed"),
    (r"fabric\.status", one_of("Success|Failure|Not Supported", healthy="Success|Not Supported"), "success"),
    (r"fabric\.health\.summary", one_of("Healthy|Unhealthy|Limited Capacity", healthy="Healthy"), "healthy"),
    (r"fabric\.health\.bandwidth", BANDWIDTH, "not degraded"),
    (r"fabric\.health\.(route_\w+|access_\w+)", one_of("True|False", healthy="False"), "False"),
    (r"fabric\.health\.incorrect_config\w*", one_of("None|False|True", healthy="None|False"), "None"),
)
PLAIN = re.compile(  # what nobody judges: families of columns of --query-gpu, and the fields that are judged elsewhere
    r"^(index|count|serial|minor_number|vbios_version|timestamp|driver_version|cuda_version|kmd_version|hostname|"
    r"display_attached|gpu_part_number|board_\w+|module_id|addressing_mode|c2c\.mode|edpp_multiplier|power\.management|"
    r"clocks_(event|throttle)_reasons\.supported|fabric\.(cliqueId|clusterUuid)|fabric\.health\.\w+|"
    r"remapped_rows\.histogram\.\w+|ecc\.\w+|"
    r"(inforom|gom|gpu_operation_mode|gsp|pci|driver_model|platform|product|encoder|module|gpu\.base|power_smoothing|bbx|"
    r"protected_memory|accounting|conf_compute|dramEncryption|vgpu_\w+|clocks_event_reasons_counters)\..*)$"
)
NEVER = re.compile(
    r"^(name|gpu_name|uuid|gpu_uuid|pci\.bus_id|gpu_bus_id|index|count|driver_version|"
    r"memory\.(total|used|free)|temperature\.gpu|pstate|compute_mode|persistence_mode|compute_cap|"
    r"power\.(draw|limit)|clocks\.(current\.)?(sm|gr|graphics|mem|memory)|gpu_recovery_action|"
    r"pcie\.link\.(width|gen)\.(gpu)?(current|max)|clocks_(event|throttle)_reasons\.(?!supported).*)$"
)
# Its memory is the host's, and its limits are, too
UNIFIED = re.compile(r"\b(GB10|Thor|Orin)\b")
OF_VIRTUAL = re.compile(
    r"^(temperature\..*|power\..*|enforced\.power\.limit|pcie\.link\..*|clocks(_(event|throttle)_reasons)?\..*|"
    r"fan\.speed|utilization\..*|gpu_recovery_action|reset_status\..*|persistence_mode|compute_mode)$"
)
OF_UNIFIED = re.compile(r"^(memory\.\w+|power\.limit|pcie\.link\..*|fan\.speed)$")


@functools.lru_cache(maxsize=4096)
def row_for(field: str) -> Optional[Tuple[Rule, str]]:
    """The rule of a field, and in words what it is compared with, if it is judged."""
    return next(((rule, words) for form, rule, words in RULES if re.match(form + "$", field)), None)


def held_against(field: str) -> str:
    """In words what a field is compared with; empty: it isn't judged."""
    row = row_for(field)
    return row[1] if row else ""


def meaning(field: str) -> str:
    """What a field is, and what it is compared with, in words."""
    words = held_against(field)
    name = "" if field.startswith(("raw.", "mem.")) else field + ": "
    return f"{name}held against: {words}" if words else f"{name}not judged"


def known(field: str) -> bool:
    """Whether the gate knows what this field is."""
    return row_for(field) is not None or bool(PLAIN.match(field))
