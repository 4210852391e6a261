"""The life cycle of a bare-metal node: its states, and one table of what is done in which of them. Pure.

declared -> enrolled -> inspected -> verified -> installing -> ready -> (maintenance, failed, retiring) -> released

The table looks at nothing but what the BMC and the host say now, and at what is declared and recorded. So it can be
asked again after any crash, by anybody, and goes on from where the machine really is. Each action may be repeated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from ironburst.baremetal import rule_table

State = Literal[
    "declared",
    "enrolled",
    "inspected",
    "verified",
    "installing",
    "ready",
    "maintenance",
    "failed",
    "retiring",
    "released",
]
Action = Literal["", "insert", "eject", "arm", "power_on", "disarm"]
"""insert: the medium of the wanted installation; arm: the next start, once, is from it; disarm: the start is the usual
one again, then the medium is out (in this order, for the medium tells that it is not done yet); eject: whatever medium
there is goes out
"""


@dataclass(frozen=True)
class NodeFacts:
    """What is known of one node, each fact one word. `disk` and `record` are of the installation that the host says it
    is, and that an earlier look recorded; `medium` is what the BMC has inserted, or is to load over HTTP.
    """

    asked: Literal["service", "maintenance", "retiring"] = "service"
    bmc: Literal["answers", "silent"] = "answers"
    hardware: Literal["unread", "differs", "declared"] = "declared"
    install: Literal["undeclared", "forbidden", "allowed"] = "undeclared"
    disk: Literal["wanted", "other", "unknown"] = "unknown"
    record: Literal["wanted", "other", "none"] = "none"
    medium: Literal["ours", "other", "none"] = "none"
    boot: Literal["armed", "usual"] = "usual"
    power: Literal["on", "off", "moving"] = "off"
    time: Literal["left", "over"] = "left"


class LifecycleRule(NamedTuple):
    """One row: where all facts of `when` hold (each one word, or several with a bar between), the node is in `state`,
    `action` is next; `why` is shown to people.
    """

    when: dict[str, str]
    state: State
    action: Action
    why: str


# The first row that holds counts. Media are inserted, armed and started only while the machine is off: so a machine
# that is on with our medium in it has been started with it, and is never reset again.
RULES: tuple[LifecycleRule, ...] = (
    LifecycleRule({"bmc": "silent"}, "declared", "", "its BMC does not answer"),
    LifecycleRule({"asked": "retiring", "medium": "ours"}, "retiring", "disarm", "the install medium is taken out"),
    LifecycleRule({"asked": "retiring"}, "released", "", "nothing of an installation is left in its BMC"),
    LifecycleRule({"asked": "maintenance"}, "maintenance", "", "a person works on it"),
    LifecycleRule({"hardware": "unread"}, "enrolled", "", "its BMC answers; its inventory is not read yet"),
    LifecycleRule(
        {"hardware": "differs", "medium": "ours", "power": "off"},
        "failed",
        "disarm",
        "the machine is not as declared, so it is not installed",
    ),
    # a machine that starts reports half of its parts: what it is, the installer asks it before it writes
    LifecycleRule({"hardware": "differs", "medium": "other|none"}, "inspected", "", "the machine is not as declared"),
    LifecycleRule({"install": "undeclared"}, "ready", "", "it is as declared; nothing is installed by ironburst"),
    LifecycleRule({"disk": "wanted", "medium": "ours"}, "ready", "disarm", "it is installed; the medium is taken out"),
    LifecycleRule({"disk": "wanted"}, "ready", "", "it is installed, and says so itself"),
    LifecycleRule({"time": "over", "medium": "ours"}, "failed", "disarm", "the installation did not end in time"),
    LifecycleRule(
        {"disk": "other", "medium": "ours", "power": "on"},
        "failed",
        "disarm",
        "it started its old system, not the install medium",
    ),
    LifecycleRule(
        {"record": "wanted", "medium": "none|other"},
        "maintenance",
        "",
        "it was installed, and its host does not answer or says something else",
    ),
    LifecycleRule(
        {"install": "forbidden", "medium": "ours", "power": "off"},
        "verified",
        "disarm",
        "allow_install no longer names it, so the medium is taken out",
    ),
    LifecycleRule({"power": "moving"}, "installing", "", "its power is being switched"),
    LifecycleRule({"medium": "ours", "power": "on"}, "installing", "", "it has started from the install medium"),
    LifecycleRule(
        {"medium": "ours", "boot": "usual"}, "installing", "arm", "the medium is in; the next start is to be from it"
    ),
    LifecycleRule({"medium": "ours", "boot": "armed"}, "installing", "power_on", "the next start is from the medium"),
    LifecycleRule(
        {"install": "forbidden"}, "verified", "", "it lacks the installation, and allow_install does not name it"
    ),
    LifecycleRule(
        {"power": "on"},
        "verified",
        "",
        "it is on, perhaps in use, and an installation begins with the machine off: `ironburst node power NODE off`",
    ),
    LifecycleRule({"medium": "other"}, "installing", "eject", "another medium is taken out"),
    LifecycleRule({"medium": "none"}, "installing", "insert", "the install medium is inserted"),
)


def rule(facts: NodeFacts) -> LifecycleRule:
    """The row that holds. There is one for every combination of facts (a test asks all of them)."""
    return rule_table.first(RULES, facts)
