"""The tools whose output the gate understands. A new one is a module with `parse(text, expectation) -> findings`, named
here.
"""

from typing import List, Optional

from . import dcgmi, fabricmanager, ib_write_bw, ibstat, lspci, nccl_tests, smi
from .report import Expectation, Finding, Unreadable, bad

TOOLS = {
    "nvidia-smi": smi.parse,
    "dcgmi": dcgmi.parse,
    "fabricmanager": fabricmanager.parse,
    "ibstat": ibstat.parse,
    "nccl-tests": nccl_tests.parse,
    "ib_write_bw": ib_write_bw.parse,
    "lspci": lspci.parse,
}  # type: Dict[str, object]


def parse(tool: str, text: str, expected: Optional[Expectation] = None) -> List[Finding]:
    """Findings of one captured output. Never raises for what the text holds: what is not understood is a failed
    finding.
    """
    try:
        findings = TOOLS[tool](text, expected or Expectation())  # type: ignore[operator]
    except Unreadable as error:
        return [bad("understood", str(error))]
    except RecursionError:
        return [bad("understood", "the output is nested too deeply")]
    except Exception as error:  # fail closed, whatever it is
        return [bad("understood", f"the parser itself failed: {error!r}")]
    return findings or [bad("understood", "nothing was judged")]


def healthy(findings: List[Finding]) -> bool:
    return bool(findings) and all(finding.passed is True for finding in findings)
