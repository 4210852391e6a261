"""Causes that many nodes of a hall may have at once: its cooling, its power, a switch, the file server. A node alone
can't know, so its drain's reason names the cause; who sees the hall (ironburst.controller.hall_events) answers there.

The forms of a reason, with causes such as `throttle` or `fabric,mounts`:
  health: [CAUSES] TEXT                     the node: I fail, and for nothing else
  health: [CAUSES] work until EPOCH: TEXT   the controller: the hall has it; pass with it, up to then
  health: [CAUSES] ready: TEXT              the node: my gate passes now
"""

import re
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple


class Cause(NamedTuple):
    """checks: of the gate, that fail by it; works: jobs run all the same, slower, so such a node is drained last."""

    words: str
    checks: Tuple[str, ...]
    works: bool


CAUSES: Dict[str, Cause] = {
    "fabric": Cause("links of the fabric are down or slow", ("fabric", "fabric_rate"), False),
    "mounts": Cause("shared file systems are not mounted", ("mounts",), False),
    "throttle": Cause("GPUs are held down by heat or power", (), True),  # gpu_health, by its fields
    "time": Cause("clocks are not synchronised", ("time",), True),
}
THROTTLE = re.compile(r"^(clocks_(event|throttle)_reasons|temperature)\b")
LONGEST_S = 86400  # nobody is told to go on for longer
_REASON = re.compile(
    r"^health: \[(?P<causes>[a-z]+(,[a-z]+)*)\] ((?P<ready>ready): |work until (?P<until>\d{1,12}): )?(?P<text>.*)$"
)


class Said(NamedTuple):
    """A reason. until: seconds since 1970; None: nobody answered yet."""

    causes: Tuple[str, ...]
    ready: bool
    until: Optional[int]
    text: str


def of_check(name: str) -> str:
    """The cause that a failed check stands for; empty: it is the node's own."""
    return next((cause for cause, row in CAUSES.items() if name in row.checks), "")


def of_field(name: str) -> str:
    """The same of a field of nvidia-smi."""
    return "throttle" if THROTTLE.match(name) else ""


def causes(findings: Sequence[Any]) -> Tuple[str, ...]:
    """The causes of failed findings; none, if one of them is the node's own."""
    failed = [finding for finding in findings if finding.passed is not True]
    found = {finding.cause for finding in failed}
    return () if "" in found else tuple(sorted(found))


def tolerated(text: str, now_s: float) -> Tuple[str, ...]:
    """Causes with which the node is to pass, of `EPOCH CAUSES`; none, if that is over or not understood."""
    match = re.match(r"^(\d{1,12}) ([a-z,]+)$", text)
    if not match or not now_s < int(match.group(1)) <= now_s + LONGEST_S:
        return ()
    return tuple(name for name in match.group(2).split(",") if name in CAUSES and CAUSES[name].works)


def tolerate(findings: Sequence[Any], names: Sequence[str]) -> List[Any]:
    """The findings, those of these causes passed."""
    return [
        finding._replace(passed=True, text="the hall has it, jobs go on: " + finding.text)
        if finding.passed is not True and finding.cause in names
        else finding
        for finding in findings
    ]


def read(reason: str) -> Optional[Said]:
    """A drain's reason; None: it is another one, or somebody added to it."""
    match = _REASON.match(reason)
    if not match or " : " in reason:
        return None
    names = tuple(match.group("causes").split(","))
    if any(name not in CAUSES for name in names):
        return None
    until = match.group("until")
    return Said(names, bool(match.group("ready")), int(until) if until else None, match.group("text"))


def work_until(said: Said, until_s: int) -> str:
    """The controller's answer."""
    return "health: [{}] work until {}: {}".format(",".join(said.causes), until_s, said.text)
