"""What is let through although a plan would be refused: for some days, and one thing each."""

from __future__ import annotations

from datetime import datetime, timedelta

from ironburst.config.allowance_models import MISMATCHES
from ironburst.config.checks.common import Findings, owned_nodes
from ironburst.config.finding import Finding, path_of
from ironburst.config.models import ClusterConfig

MOST = timedelta(days=31)
"""a longer one would be forgotten"""


def ends(config: ClusterConfig, now: datetime) -> Findings:
    """Each has an end that isn't far, and says of what it is."""
    for n, each in enumerate(config.allow):
        if (each.of is None) != (each.rule == "budget"):
            what = "is for the whole stack: leave `of` out" if each.of else "says not of what: write `of`, one name"
            yield Finding(path_of("allow", n, "of"), each.of, "allow", what)
        elif each.rule == "hardware":
            yield from _hardware(config, n, each.of or "")
        path = path_of("allow", n, "until")
        if each.until > now.date() + MOST:
            message = f"is more than {MOST.days} days ahead: write a nearer day, and a later one when it is due"
            yield Finding(path, str(each.until), "allow", message)
        elif each.until < now.date():
            message = "is over, so nothing is let through by it any more: take the entry out"
            yield Finding(path, str(each.until), "allow", message, "warning")


def _hardware(config: ClusterConfig, n: int, of: str) -> Findings:
    """NODE/MISMATCH of a node that a BMC is asked about."""
    node, _, mismatch = of.partition("/")
    asked = {name for _, _, nodes in owned_nodes(config) if nodes.bmc and nodes.managed for name in nodes.names}
    if mismatch not in MISMATCHES:
        what = f"is not NODE/MISMATCH, as in dgx07/psu_redundancy; mismatches are {', '.join(MISMATCHES)}"
        yield Finding(path_of("allow", n, "of"), of, "allow", what)
    elif node not in asked:
        what = f"is of {node!r}, which is no owned node with a bmc: name one of those"
        yield Finding(path_of("allow", n, "of"), of, "allow", what)
