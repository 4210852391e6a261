"""nvidia-smi -q, whole or by section (`-d`), as text and as XML (`-x`): both become the facts that gpus.py judges."""

import re
from typing import Dict, List, NamedTuple, Optional, Sequence, Set, Tuple
from xml.etree import ElementTree

from .expectation import Expectation, driver_finding
from .findings import Finding, Unreadable, bad
from .gpus import judge_all
from .reading import clean, ends_open, not_available, note, shown, whole
from .rules import BAD_REASON_NAMES, Facts, meaning
from .smi_fields import TEXT, XML

LINE = re.compile(r"^( *)(\S.*?)\s+: ?(.*?)\s*$")
HEADING = re.compile(r"^( {4,})([A-Za-z0-9][\w /().&.-]*?)\s*$")
OF_HEAD = re.compile(r"^v?[A-Z][A-Za-z ]+$")  # a heading: "vGPU Driver Capability" of a host of vGPUs
GPU = re.compile(r"^GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])$")
TIMESTAMP = re.compile(r"^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]?\d \d\d:\d\d:\d\d \d{4}$")
# how the last line of some sections (-d) may end without a newline
WHOLE_VALUE = re.compile(r": (\S+ (MiB|C|W|MHz|%)|Yes|No|0|N/A|Enabled|Disabled|\d+x|None|bank\(s\)|(Not )?Active)$")
# Sections whose content is not judged
FREE = (
    *("processes", "supported clocks", "accounted processes", "mig device", "mig devices", "capabilities"),
    *("supported_clocks", "mig_devices", "accounted_processes"),
)
# What the whole form must tell of each GPU
NEEDED = (
    *("name", "uuid", "pci.bus_id", "memory.total", "memory.used", "memory.free", "pstate", "temperature.gpu"),
    *("power.limit", "clocks.sm", "ecc.mode.current", "ecc.mode.pending", "pcie.link.width.current"),
    *("pcie.link.width.max", "pcie.link.gen.max", "compute_mode", "persistence_mode", "retired_pages.pending"),
)
# Of fields whose names begin so, one at least
NEEDED_SOME = {
    "power.draw": "power.draw",
    "ecc.errors.uncorrected.volatile": "ecc.errors",
    "clocks_event_reasons.": "clocks_event_reasons",
}
# What must be whole where any of it is there
TOGETHER = (
    tuple(f"remapped_rows.{name}" for name in ("correctable", "uncorrectable", "pending", "failure")),
    tuple(f"clocks_event_reasons.{name}" for name in BAD_REASON_NAMES),
    ("fabric.state", "fabric.status"),
    ("memory.total", "memory.used", "memory.free"),
    ("retired_pages.sbe", "retired_pages.dbe", "retired_pages.pending"),
    ("mig.mode.current", "mig.mode.pending"),
    ("ecc.mode.current", "ecc.mode.pending"),
    ("pcie.link.width.current", "pcie.link.width.max"),
)
Path = Tuple[str, ...]


class Section(NamedTuple):
    """The lines of one GPU in the text: its bus address, and (path of headings and key, value) of each pair."""

    bus: str
    pairs: List[Tuple[Path, str]]


def parse_text(text: str, expected: Expectation) -> List[Finding]:
    """Findings of `nvidia-smi -q`. Raises Unreadable."""
    head: Dict[str, str] = {}
    gpus: List[Section] = []
    stack: List[Tuple[int, str]] = []
    last = ""
    for line in clean(text):
        if not line.strip() or re.match(r"^=+NVSMI LOG=+$", line.strip()):
            continue
        line = line.expandtabs(4).rstrip()
        gpu, pair = GPU.match(line), LINE.match(line)
        entry = pair or HEADING.match(line)
        if gpu:
            gpus.append(Section(gpu.group(1), []))
            stack = []
        elif pair and pair.group(1) == "" and not gpus:
            head[pair.group(2)] = pair.group(3)
        elif "Attached GPUs" not in head and (pair or OF_HEAD.match(line)):
            continue
        elif gpus and entry and len(entry.group(1)) >= 4:
            indent, last = len(entry.group(1)), entry.group(2)
            stack = [heading for heading in stack if heading[0] < indent] + [(indent, last.lower())]
            if pair:
                gpus[-1].pairs.append((tuple(name for _, name in stack), pair.group(3)))
        else:
            raise Unreadable(f"nvidia-smi -q prints a line that is not understood: {shown(line)}")
    version = _driver_of(head)
    facts = [_facts(gpu) for gpu in gpus]
    whole_form = any("name" in of_gpu for of_gpu in facts)
    if whole_form:
        if (
            not stack
            or stack[0][1] not in ("processes", "capabilities")
            or (ends_open(text) and not _closed(text, last))
        ):
            raise Unreadable("nvidia-smi -q is cut: its last GPU has no list of processes")
    elif ends_open(text) and not WHOLE_VALUE.search(text):
        raise Unreadable("nvidia-smi -q is cut in the middle of a line")
    return _judge(facts, head["Attached GPUs"], version, whole_form, expected)


def _driver_of(head: Dict[str, str]) -> str:
    """The driver's version in the head. Raises Unreadable for a head that is cut."""
    for name in ("Timestamp", "Attached GPUs"):
        if name not in head:
            raise Unreadable(f"nvidia-smi -q names no {name}")
    versions = [head[name] for name in ("KMD Version", "Driver Version") if not not_available(head.get(name, "N/A"))]
    if not versions or not TIMESTAMP.match(head["Timestamp"]):
        raise Unreadable("nvidia-smi -q has no head that is understood")
    return versions[0]


def _closed(text: str, last: str) -> bool:
    whole_value = re.search(r"(: None|: \d+ MiB|: N/A|: (en|dis)abled)\s*$", text)
    return bool(whole_value) and (last != "Processes" or text.rstrip().endswith(": None"))


def _facts(gpu: Section) -> Facts:
    facts = {"pci.bus_id": gpu.bus}
    told: Set[Path] = set()
    for path, value in gpu.pairs:
        section, key = (path[0] if len(path) > 1 else ""), path[-1]
        if section in FREE or key in FREE:
            continue
        if path in told:
            raise Unreadable(f"nvidia-smi -q says {key} twice of GPU {gpu.bus}")
        told.add(path)
        field = _field(path, section, key) or "raw." + "/".join(path)
        note(f"{key}: {value}", meaning(field))
        if field in facts and facts[field] != value:
            if field != "pci.bus_id":
                raise Unreadable(f"nvidia-smi -q says {key} twice of GPU {gpu.bus}")
            raise Unreadable(f"the GPU {gpu.bus} names itself {value}")
        facts[field] = value
    return facts


def _field(path: Path, section: str, key: str) -> Optional[str]:
    """The name of a pair of the text, where it has one."""
    if section in ("clocks event reasons", "clocks throttle reasons"):
        return "clocks_event_reasons." + key.replace(" ", "_")
    if path[:2] == ("pci", "gpu link info") and len(path) == 4:
        kind = "gen" if path[2] == "pcie generation" else "width"
        return f"pcie.link.{kind}.{key}" if key in ("max", "current") else None
    field = TEXT.get((section, key))
    if section == "ecc errors" and field is None and path[1] in ("volatile", "aggregate"):
        return _ecc(path[1], path[2:])
    return field


def _ecc(life: str, path: Path) -> str:
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
    facts = [_facts_of_element(gpu) for gpu in root.findall("gpu")]
    version = root.findtext("kmd_version") or root.findtext("driver_version") or ""
    if (root.tail or "").strip() or (root.text or "").strip():
        raise Unreadable("text stands between the elements of the XML")
    whole_form = any("name" in of_gpu for of_gpu in facts)
    return _judge(facts, root.findtext("attached_gpus") or "", version, whole_form, expected)


def uuids(text: str) -> Dict[str, str]:
    """The UUID of each GPU by its address on the bus, of `nvidia-smi -q -x`; none, if that can't be read."""
    try:
        gpus = ElementTree.fromstring(text.strip().encode()).findall("gpu")
    except (ElementTree.ParseError, ValueError):
        return {}
    return {gpu.get("id", ""): gpu.findtext("uuid") or "" for gpu in gpus}


def _facts_of_element(gpu: ElementTree.Element) -> Facts:
    who = f"the GPU {gpu.get('id')}"
    facts: Facts = {}
    _walk(gpu, "", facts)
    if "pci.bus_id" in facts and gpu.get("id") != facts["pci.bus_id"]:
        raise Unreadable(f"{who} names itself {facts['pci.bus_id']}")
    blacklist = facts.get("retired_pages.pending_blacklist")
    if blacklist is not None:
        facts.setdefault("retired_pages.pending", blacklist)
    if any(field.startswith("processes") for field in facts) or gpu.find("processes") is None:
        raise Unreadable(f"{who} has no list of processes")
    return facts


def _walk(element: ElementTree.Element, path: str, facts: Facts) -> None:
    """Add the facts below an element. Raises Unreadable."""
    for child in element:
        here = f"{path}/{child.tag}" if path else child.tag
        if here.split("/")[0] in FREE:
            continue
        value = (child.text or "").strip()
        for stray in (value if len(child) else "", (child.tail or "").strip()):
            if stray:
                raise Unreadable(f"text stands between the elements of the XML: {shown(stray)}")
        if len(child):
            _walk(child, here, facts)
            continue
        field = _field_of_path(here)
        note(f"<{child.tag}>{value}</{child.tag}>", meaning(field or "raw."))
        if not value and (field or here in ("minor_number", "serial")):
            raise Unreadable(f"{here} is empty")
        if field and field in facts:
            raise Unreadable(f"the XML says {here} twice of one GPU")
        facts.setdefault(field or "raw." + here, value)


def _field_of_path(path: str) -> Optional[str]:
    """The name of an element of the XML, where it has one."""
    reason = re.match(r"^clocks_(?:event|throttle)_reasons/clocks_(?:event|throttle)_reason_(\w+)$", path)
    ecc = re.match(r"^ecc_errors/(volatile|aggregate)/([\w/]+)$", path)
    if reason:
        return "clocks_event_reasons." + reason.group(1)
    if ecc and path not in XML:
        return _ecc(ecc.group(1), tuple(ecc.group(2).split("/")))
    return XML.get(path)


def _judge(
    gpus: Sequence[Facts], attached: str, version: str, whole_form: bool, expected: Expectation
) -> List[Finding]:
    count = whole(attached, "the number of attached GPUs")
    if not gpus:
        raise Unreadable("no GPU is listed")
    if count != len(gpus) and expected.gpus != len(gpus):
        raise Unreadable(f"{len(gpus)} of {count} attached GPUs are listed")
    for facts in gpus:
        who = f"GPU {facts.get('pci.bus_id', '?')}"
        lacking = _lacking(facts, whole_form)
        if lacking:
            raise Unreadable(f"{who} does not say its {', '.join(lacking)}")
        if not [field for field in facts if field != "pci.bus_id" and not field.startswith("raw.")]:
            raise Unreadable(f"{who} says nothing that is understood")
    findings = judge_all(gpus, expected)
    with_mig = [facts for facts in gpus if "mig.mode.current" in facts]
    if whole_form and 0 < len(with_mig) < len(gpus):
        findings.append(bad("gpu_health", "only some GPUs say their MIG mode"))
    return [driver_finding(version, expected), *findings]


def _lacking(facts: Facts, whole_form: bool) -> List[str]:
    """The fields that one GPU does not tell, each once."""
    lacking: List[str] = []
    if whole_form:
        lacking += [field for field in NEEDED if field not in facts]
        for beginning, name in NEEDED_SOME.items():
            lacking += [] if any(field.startswith(beginning) for field in facts) else [name]
    for group in TOGETHER:
        told = [field for field in group if field in facts]
        lacking += [field for field in group if field not in facts] if told else []
    return list(dict.fromkeys(lacking))
