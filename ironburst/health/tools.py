"""The tools whose output the gate understands.
A new one is a module with `parse(text, expectation) -> findings`, named here.
"""

import re
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from . import dcgmi, fabricmanager, ib_write_bw, ibstat, lspci, nccl_tests, smi
from .expectation import Expectation
from .findings import Finding, Unreadable, Verdict, as_verdict, fail_closed, good, healthy
from .reading import Note, captured, noting

Parser = Callable[[str, Expectation], List[Finding]]
TOOLS: Dict[str, Parser] = {
    "nvidia-smi": smi.parse,
    "dcgmi": dcgmi.parse,
    "fabricmanager": fabricmanager.parse,
    "ibstat": ibstat.parse,
    "nccl-tests": nccl_tests.parse,
    "ib_write_bw": ib_write_bw.parse,
    "lspci": lspci.parse,
}


# field of Expectation -> its option, and the checks that hold an output against it
OPTIONS: Dict[str, Tuple[str, Tuple[str, ...]]] = {
    "gpu_model": ("gpu_model", ("gpu_model", "nvlink", "bandwidth")),
    "gpus": ("gpus", ("gpu_count", "fabric")),
    "driver": ("driver", ("driver",)),
    "pcie_width": ("pcie_width", ("pcie_width",)),
    "links": ("links", ("links",)),
    "rate_gb_s": ("rate", ("links",)),
    "level": ("level", ("dcgm",)),
}


class Outcome(NamedTuple):
    """One run of a tool. `error`: why there is no answer ("is not installed", "did not answer in 20 s"), else None."""

    returncode: Optional[int]
    stdout: str
    error: Optional[str] = None


def answer(command: str, outcome: Outcome) -> str:
    """The output of a command that ran. Raises Unreadable if it did not, failed, or printed nothing."""
    if outcome.error:
        raise Unreadable(f"{command} {outcome.error}")
    if outcome.returncode != 0:
        said = outcome.stdout.strip().splitlines()
        raise Unreadable(f"{command} failed with exit status {outcome.returncode}" + (f": {said[0]}" if said else ""))
    if not outcome.stdout.strip():
        raise Unreadable(f"{command} says nothing")
    return outcome.stdout


def parse(tool: str, text: str, expected: Optional[Expectation] = None) -> List[Finding]:
    """Findings of one captured output, at least one. Never raises for what the text holds:
    what is not understood is a failed finding.
    """
    parser, declared = TOOLS[tool], expected or Expectation()
    findings = fail_closed("understood", "parser", lambda said: parser(captured(said), declared), text)
    return [*not_judged(findings, declared), *findings]


def explain(tool: str, text: str, expected: Optional[Expectation] = None) -> List[Note]:
    """Each line of a captured output (of a CSV: each column) with what it was understood as. meaning "": as nothing
    that is judged, or not read because of a line before it.
    """
    with noting() as notes:
        parse(tool, text, expected)
    told: Dict[str, List[str]] = {}
    for part, meaning in notes:
        told.setdefault(_bare(part), []).append(meaning)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not any(_bare(line) in told for line in lines):
        return notes
    explained: List[Note] = []
    for line in lines:
        meanings = told.get(_bare(line), [""])
        explained.append(Note(line, meanings.pop(0) if len(meanings) > 1 else meanings[0]))
    return explained


def _bare(line: str) -> str:
    return re.sub(r"\s+", "", line).lower()


def not_judged(findings: Sequence[Finding], declared: Expectation) -> List[Finding]:
    """A finding for each declaration that this form of a healthy output can't be compared with, so that nobody takes it
    for kept.
    """
    said = {finding.check for finding in findings}
    if not healthy(findings):
        return []
    return [
        good("not judged", f"--{option.replace('_', '-')} {getattr(declared, field)}: this output does not tell it")
        for field, (option, checks) in OPTIONS.items()
        if getattr(declared, field) is not None and not said & set(checks)
    ]


def verdict(tool: str, text: str, expected: Expectation) -> Verdict:
    """The findings of `parse` as one."""
    return as_verdict(parse(tool, text, expected))
