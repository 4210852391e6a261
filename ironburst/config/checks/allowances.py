"""What is let through although a plan would be refused: for some days, and one thing each."""

from __future__ import annotations

from datetime import datetime, timedelta

from ironburst.config.checks.common import Findings
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
        path = path_of("allow", n, "until")
        if each.until > now.date() + MOST:
            message = f"is more than {MOST.days} days ahead: write a nearer day, and a later one when it is due"
            yield Finding(path, str(each.until), "allow", message)
        elif each.until < now.date():
            message = "is over, so nothing is let through by it any more: take the entry out"
            yield Finding(path, str(each.until), "allow", message, "warning")
