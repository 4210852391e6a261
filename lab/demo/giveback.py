"""Step 8: everything is given back, and somebody looks."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

from ironburst.adapters.pulumi import Pulumi
from ironburst.controller.ledger import Ledger
from lab.demo.inside import Boxed
from lab.system import LabError


def give_back(inside: Boxed, pulumi: Pulumi, ledger: Ledger, say: Callable[[str], None]) -> dict[str, int]:
    """End what is left of the declaration; what the cloud still holds then, by kind (none: zero)."""
    if open_leases := ledger.leases():
        raise LabError(f"{len(open_leases)} leases are still open: {', '.join(lease.node for lease in open_leases)}")
    paid = Counter(lease.instance_type for lease in ledger.leases(open_only=False) if lease.from_s is not None)
    rented = ", ".join(f"{paid[room.instance_type]} nodes in {room.name}" for room in inside.cloud.rooms)
    say(f"every lease has ended; rented: {rented}")
    done = pulumi.destroy()
    say(f"destroy: {', '.join(f'{count} {what}' for what, count in done.changes.items() if count)}")
    inside.cloud.take_away(inside)
    left: dict[str, Any] = {room.name: room.control(inside, "GET", "/lab/leftovers") for room in inside.cloud.rooms}
    for name, kinds in left.items():
        say(f"left in {name}: {json.dumps(kinds)}" if kinds else f"nothing is left in {name}")
    return {f"{name} {kind}": len(its) for name, kinds in left.items() for kind, its in kinds.items()} or {"cloud": 0}
