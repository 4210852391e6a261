"""The tools whose output the gate understands.
A new one is a module with `parse(text, expectation) -> findings`, named here.
"""

from typing import Callable, Dict, List, NamedTuple, Optional

from . import dcgmi, fabricmanager, ib_write_bw, ibstat, lspci, nccl_tests, smi
from .expectation import Expectation
from .findings import Finding, Unreadable, Verdict, as_verdict, fail_closed

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


class Outcome(NamedTuple):
    """One run of a tool. `error`: why there is no answer ("is not installed", "did not answer in 20 s"), else None."""

    returncode: Optional[int]
    stdout: str
    error: Optional[str] = None


def answer(command: str, outcome: Outcome) -> str:
    """The output of a command that ran. Raises Unreadable if it did not, failed, or said nothing."""
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
    parser = TOOLS[tool]
    return fail_closed("understood", "parser", lambda captured: parser(captured, expected or Expectation()), text)


def verdict(tool: str, text: str, expected: Expectation) -> Verdict:
    """The findings of `parse` as one."""
    return as_verdict(parse(tool, text, expected))
