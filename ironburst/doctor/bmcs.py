"""Does each owned node's BMC answer, and take its login? Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from ironburst.doctor.checks import CheckResult

TODO: Mapping[str, str] = {
    "unreachable": "look at its cable and address, and whether this machine reaches the BMCs' network",
    "refused": "mend the user or the password behind its reference; it was tried once, so nothing is locked",
    "untrusted": "declare its certificate's fingerprint (bmc.sha256) or a CA (bmc.ca_file)",
    "broken": "look at its own page or restart the BMC; the node itself goes on",
}


@dataclass(frozen=True)
class Bmc:
    """The result of one login. `said`: the message where it isn't ok."""

    node: str
    outcome: Literal["ok", "unreachable", "refused", "untrusted", "broken", "secret"]
    said: str = ""


def check(bmcs: Iterator[Bmc]) -> Iterator[CheckResult]:
    """A finding for each that isn't ok, and one for all that are."""
    fine = 0
    for bmc in bmcs:
        if bmc.outcome == "ok":
            fine += 1
        elif bmc.outcome == "secret":
            yield CheckResult("bmc", bmc.node, "unknown", bmc.said, "ask as somebody who may read the secret")
        else:
            yield CheckResult("bmc", bmc.node, "fail", bmc.said, TODO[bmc.outcome])
    if fine:
        yield CheckResult("bmc", "logins", "ok", f"{fine} BMCs answer and take their login")
