"""Judging what is known of a node's GPUs, whatever form of nvidia-smi's output it was read from: each field by its
rule, what must agree within one GPU, and what must agree between all.
"""

import re
from typing import List, Optional, Sequence, Tuple

from . import shared
from .expectation import Expectation, count_finding, driver_finding
from .findings import Finding, Unreadable, bad, good, judged
from .models import NAME, UUID, VIRTUAL, board_of, find_models, fits_memory, memory_sizes, model_matches
from .reading import is_error, is_lost, not_available, quantity, shown
from .rules import NEVER, OF_UNIFIED, OF_VIRTUAL, UNIFIED, Facts, Judge, row_for

# What GPUs of one name must have alike
EVEN = (
    *("memory.total", "ecc.mode.current", "power.limit", "fabric.state"),
    *("pcie.link.width.current", "pcie.link.width.max", "pcie.link.gen.max"),
)
# What is wrong with these fields is wrong with one GPU; with any other, it may be the board's, or the node's
OWN = re.compile(
    r"^(ecc\.errors|ecc\.repair|ecc\.unrepairable|ecc\.sram|retired_pages|remapped_rows|temperature|pcie\.link\.width|"
    r"clocks_(event|throttle)_reasons|reset_status)\b"
)
RESET = ("Reset", "GPU Reset")  # of gpu_recovery_action; the others are of the node, or of its peers, too
ERRORS_WITH_ECC = re.compile(r"ecc\.errors\.uncorrected\..*(total|dram_uncorrectable|sram_uncorrectable\w*)$")


def judge_all(gpus: Sequence[Facts], expected: Expectation) -> List[Finding]:
    """Findings over all GPUs of a node.
    Raises Unreadable for none, for one twice, and for facts that are not understood.
    """
    if not gpus:
        raise Unreadable("no GPU is listed")
    for field in ("uuid", "pci.bus_id"):
        values = [facts[field] for facts in gpus if field in facts]
        if len(set(values)) != len(values):
            raise Unreadable(f"one GPU is listed twice (the same {field})")
    names = sorted({facts["name"] for facts in gpus if "name" in facts})
    findings = [count_finding(len(gpus), expected, board_of(names, expected.models))]
    if len(names) > 1 and expected.gpu_model is None:
        findings.append(bad("gpu_model", f"the GPUs differ: {', '.join(names)}"))
    findings += _model_findings(gpus, expected)
    versions = sorted({facts["driver_version"] for facts in gpus if "driver_version" in facts})
    if len(versions) > 1:
        findings.append(bad("driver", f"the GPUs name different drivers: {', '.join(versions)}"))
    findings += [driver_finding(version, expected) for version in versions]
    problems: List[str] = []
    own: List[Finding] = []
    narrow = False
    for position, facts in enumerate(gpus):
        if "name" in facts and not NAME.match(facts["name"]) and not is_error(facts["name"]):
            raise Unreadable(f"{facts['name']!r} is not the name of an NVIDIA GPU")
        who = f"GPU {facts.get('index', position)}"
        judge = Judge(who, facts, expected, mig=facts.get("mig.mode.current") == "Enabled")
        of_gpu = judge_gpu(judge)
        narrow = narrow or any(field.startswith("pcie.link.width") for _, field in of_gpu)
        for text, field in of_gpu:
            if _is_own(field, facts):
                own.append(Finding("gpu_health", False, f"{who}: {text}", (facts["uuid"],), shared.of_field(field)))
            else:
                problems.append(f"{who}: {text}")
    problems += uneven(gpus)
    told = any(not not_available(facts.get("pcie.link.width.current", "N/A")) for facts in gpus)
    if expected.pcie_width is not None and told and not narrow:
        findings.append(good("pcie_width", "each GPU has its lanes"))
    if own and not problems:
        return findings + own
    return findings + own + judged("gpu_health", problems, f"nothing is wrong with {len(gpus)} GPUs")


def _model_findings(gpus: Sequence[Facts], expected: Expectation) -> List[Finding]:
    """Whether each GPU is of the declared model; none, where nothing is declared or no GPU says its name."""
    model, named = expected.gpu_model, [facts for facts in gpus if "name" in facts and not is_error(facts["name"])]
    if not model or not named:
        return []
    other = [
        f"GPU {facts.get('index', position)}: it is {facts['name']}, declared is {model}"
        for position, facts in enumerate(named)
        if not _is_model(model, facts, expected)
    ]
    return judged("gpu_model", other, f"all are {model}")


def _is_own(field: str, facts: Facts) -> bool:
    """Whether what is wrong with a field is wrong with that GPU alone."""
    if not UUID.match(facts.get("uuid", "")):
        return False
    return bool(OWN.match(field)) or (field == "gpu_recovery_action" and facts[field] in RESET)


def judge_gpu(judge: Judge) -> List[Tuple[str, str]]:
    """Everything that is wrong with one GPU: a sentence each, and the field that it is of ("": of several).
    Raises Unreadable for what is not understood.
    """
    problems: List[Tuple[str, str]] = []
    for field, value in judge.facts.items():
        row = row_for(field)
        if is_lost(value) or (is_error(value) and (row or NEVER.match(field))):
            problems.append((f"{field} is {shown(value)}", ""))
        elif not_available(value):
            if _must_be_available(field, judge):
                problems.append((f"{field} is not available", ""))
        elif row:
            problem = row[0](field, value, judge)
            problems += [(problem, field)] if problem else []
    memory = _memory(judge)
    return problems + [(text, "") for text in ([memory] if memory else []) + _pairs(judge)]


def _must_be_available(field: str, judge: Judge) -> bool:
    name = judge.facts.get("name", "")
    if (UNIFIED.search(name) and OF_UNIFIED.match(field)) or (VIRTUAL.search(name) and OF_VIRTUAL.match(field)):
        return False
    if field == "persistence_mode" and not not_available(judge.facts.get("driver_model.current", "N/A")):
        return False  # Windows
    if judge.mig and (field in ("memory.used", "memory.free") or field.startswith("utilization.gpu")):
        return False
    return bool(NEVER.match(field)) or field.startswith("utilization.gpu")


def _is_model(model: str, facts: Facts, expected: Expectation) -> bool:
    """By name and memory, or by name alone where the memory is not told."""
    memory = re.match(r"^(\d+) MiB$", facts.get("memory.total", ""))
    if memory:
        return model_matches(model, facts["name"], float(memory.group(1)))
    return model in [candidate.name for candidate in find_models(facts["name"], expected.models)]


def _memory(judge: Judge) -> Optional[str]:
    """What is wrong with the memory: a size that this product has not, or parts that do not add up."""
    facts = judge.facts
    if not_available(facts.get("memory.total", "N/A")):
        return None
    total = quantity(facts["memory.total"], "MiB", f"memory.total of {judge.who}")
    sizes = memory_sizes(facts.get("name", ""), judge.expected.models)
    if sizes and not any(fits_memory(total, size) for size in sizes):
        stated = " or ".join(str(size) for size in sorted(set(sizes)))
        return f"it has {total:g} MiB of memory, but a {facts['name']} has {stated} GB"
    used, free, reserved = (_mib(facts, name) for name in ("memory.used", "memory.free", "memory.reserved"))
    if used is None:
        return None
    if free is None:
        return "more memory is used than it has" if used > total else None
    parts = used + free + (reserved or 0)
    return f"its memory does not add up: {parts:g} of {total:g} MiB" if abs(parts - total) > 0.03 * total else None


def _mib(facts: Facts, field: str) -> Optional[float]:
    """MiB; None where the field is not told."""
    told = field in facts and not not_available(facts[field])
    return quantity(facts[field], "MiB", field) if told else None


def _pairs(judge: Judge) -> List[str]:
    """Values that must agree with each other."""
    facts = judge.facts
    problems: List[str] = []
    for what in ("ecc.mode", "mig.mode"):
        current, pending = facts.get(what + ".current"), facts.get(what + ".pending")
        if current and pending and current != pending:
            problems.append(f"{what} changes from {current} to {pending} at the next reset")
    for group in ("remapped_rows", "retired_pages"):  # a GPU has them all, or none
        of_group = {field: value for field, value in facts.items() if re.match(group + r"\.\w+$", field)}
        missing = [field for field, value in of_group.items() if not_available(value)]
        if 0 < len(missing) < len(of_group):
            problems.append(f"{missing[0]} is not available, and others of {group} are")
    if facts.get("ecc.mode.current") == "Enabled" and not judge.mig and not VIRTUAL.search(facts.get("name", "")):
        problems += [
            f"ECC is on, but {field} is not available"
            for field, value in facts.items()
            if ERRORS_WITH_ECC.match(field) and not_available(value)
        ]
    if facts.get("fabric.state") == "Completed" and facts.get("fabric.status", "Success") != "Success":
        problems.append(f"the fabric's status is {facts['fabric.status']}")
    return problems


def uneven(gpus: Sequence[Facts]) -> List[str]:
    """What only some GPUs of the same name have, or have differently."""
    problems: List[str] = []
    for name in sorted({facts.get("name", "") for facts in gpus}):
        same = [facts for facts in gpus if facts.get("name", "") == name]
        mixed_mig = len({facts.get("mig.mode.current") for facts in same}) > 1
        for field in sorted({field for facts in same for field in facts}):
            having = [facts for facts in same if field in facts]
            if len(having) == len(same):
                problems += _uneven_values(field, [facts[field] for facts in same], mixed_mig)
            elif not mixed_mig:
                problems.append(f"only {len(having)} of {len(same)} GPUs have {field}")
    return problems


def _uneven_values(field: str, values: Sequence[str], mixed_mig: bool) -> List[str]:
    if field.startswith("raw."):
        return []
    missing = [value for value in values if not_available(value)]
    may_differ = mixed_mig or field.startswith(("inforom", "temperature.memory"))
    if missing and len(missing) != len(values) and not may_differ:
        return [f"{field} is not available for {len(missing)} of {len(values)} GPUs"]
    if field in EVEN and len(set(values)) > 1:
        return [f"{field} differs: {', '.join(sorted(set(values)))}"]
    return []
