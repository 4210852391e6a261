"""What the gate says: findings, and the one place where a judgement that goes wrong in any way is a failed check.

Standard library and Python 3.6 only, as the whole package: the role node_health copies it to the nodes.
"""

import functools
from typing import Callable, List, Mapping, NamedTuple, Sequence, Tuple, TypeVar, Union

from . import shared

NOT_APPLICABLE = "not applicable: the inventory says so"
Verdict = Tuple[bool, str]  # passed, and one sentence
Subject = TypeVar("Subject")


class Unreadable(ValueError):
    """Output or settings that are not understood. The text is one sentence."""


class Finding(NamedTuple):
    """One check: passed or not, and one sentence. gpus: UUIDs of those that it is about; none: it is about the node.
    cause: that the whole hall may have (shared.CAUSES); empty: it is the node's own. Not config.finding's, nor the
    doctor's CheckResult: this package goes to the nodes without the others.
    """

    check: str
    passed: bool
    text: str
    gpus: Tuple[str, ...] = ()
    cause: str = ""


def good(check: str, text: str) -> Finding:
    """A check that passed."""
    return Finding(check, True, text)


def bad(check: str, text: str) -> Finding:
    """A check that failed."""
    return Finding(check, False, text)


def judged(check: str, problems: Sequence[str], text: str) -> List[Finding]:
    """A failed finding for each problem; without one, a passed finding that says `text`."""
    return [bad(check, problem) for problem in problems] or [good(check, text)]


def healthy(findings: Sequence[Finding]) -> bool:
    """Whether something was judged, and all of it passed."""
    return bool(findings) and all(finding.passed is True for finding in findings)


def as_verdict(findings: Sequence[Finding]) -> Verdict:
    """Several findings as one: every reason why they fail, or the last message."""
    whole = merged(findings)
    return whole.passed, whole.text


def merged(findings: Sequence[Finding], check: str = "") -> Finding:
    """The same, with the GPUs that they are about, if none of those that failed is about the node."""
    failed = [finding for finding in findings if finding.passed is not True]
    said = "; ".join(finding.text for finding in failed or findings[-1:]) or "nothing was judged"
    gpus = {uuid for finding in failed for uuid in finding.gpus} if all(finding.gpus for finding in failed) else set()
    causes = {finding.cause for finding in failed}
    return Finding(check, healthy(findings), said, tuple(sorted(gpus)), causes.pop() if len(causes) == 1 else "")


def fail_closed(
    check: str, what: str, judge: Callable[[Subject], Sequence[Finding]], subject: Subject
) -> List[Finding]:
    """What `judge` finds. If it raises whatever it may, or finds nothing, that is one failed finding of this name."""
    try:
        findings = list(judge(subject))
    except Unreadable as error:
        return [bad(check, str(error))]
    except RecursionError:
        return [bad(check, "the output is nested too deeply")]
    except Exception as error:
        return [bad(check, f"the {what} itself failed: {error!r}")]
    return findings or [bad(check, "nothing was judged")]


def run_checks(
    checks: Mapping[str, Callable[[Subject], Union[Verdict, Finding]]], subject: Subject, not_applicable: Sequence[str]
) -> List[Finding]:
    """One finding a check, in the order of `checks`. Those that are not applicable are not asked, and pass by name."""
    findings: List[Finding] = []
    for name, check in checks.items():
        if name in not_applicable:
            findings.append(good(name, NOT_APPLICABLE))
        else:
            findings += fail_closed(name, "check", functools.partial(_finding_of, name, check), subject)
    return findings


def _finding_of(name: str, check: Callable[[Subject], Union[Verdict, Finding]], subject: Subject) -> List[Finding]:
    said = check(subject)
    if isinstance(said, Finding):
        return [said._replace(check=name, passed=said.passed is True)]
    passed, text = said
    return [Finding(name, passed is True, text, (), "" if passed is True else shared.of_check(name))]
