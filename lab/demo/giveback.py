"""Step 8: everything is given back, and somebody looks."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ironburst.adapters.pulumi import Pulumi
from ironburst.controller.ledger import Ledger
from lab.demo.cloud import control
from lab.demo.inside import Boxed
from lab.system import LabError


def give_back(inside: Boxed, pulumi: Pulumi, ledger: Ledger, say: Callable[[str], None]) -> dict[str, int]:
    """End what is left of the declaration; what the cloud still holds then, by kind (none: zero)."""
    if open_leases := ledger.leases():
        raise LabError(f"{len(open_leases)} leases are still open: {', '.join(lease.node for lease in open_leases)}")
    say(f"{len(ledger.leases(open_only=False))} leases, all ended")
    done = pulumi.destroy()
    say(f"destroy: {', '.join(f'{count} {what}' for what, count in done.changes.items() if count)}")
    inside.cloud.take_away(inside)
    left: Any = control(inside, "GET", "/lab/leftovers")
    say("nothing is left in the cloud" if not left else f"left in the cloud: {json.dumps(left)}")
    return {"cloud " + kind: len(names) for kind, names in left.items()} or {"cloud": 0}
