"""Step 6: everything is given back, and somebody looks."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from ironburst.adapters.pulumi import Pulumi
from ironburst.controller.ledger import Ledger
from lab.demo import rights
from lab.demo.declare import KEY_PAIR, MUNGE_SECRET, control
from lab.demo.inside import Inside
from lab.system import LabError

PREPARED = (  # what the operator prepared before the first `up`, and takes away after `destroy`
    "import boto3; secrets = boto3.client('secretsmanager')\n"
    f"secrets.delete_secret(SecretId='{MUNGE_SECRET}', ForceDeleteWithoutRecovery=True)\n"
    "ssm = boto3.client('ssm')\n"
    "for page in ssm.get_paginator('describe_parameters').paginate():\n"
    "    for parameter in page['Parameters']:\n"
    "        if parameter['Name'].startswith('/ironburst/lab/'): ssm.delete_parameter(Name=parameter['Name'])\n"
    f"boto3.client('ec2').delete_key_pair(KeyName='{KEY_PAIR}')\n"
)


def give_back(inside: Inside, pulumi: Pulumi, ledger: Ledger, say: Callable[[str], None]) -> dict[str, int]:
    """End what is left of the declaration; what the cloud still holds then, by kind (none: zero)."""
    if open_leases := ledger.leases():
        raise LabError(f"{len(open_leases)} leases are still open: {', '.join(lease.node for lease in open_leases)}")
    say(f"{len(ledger.leases(open_only=False))} leases, all ended")
    done = pulumi.destroy()
    say(f"destroy: {', '.join(f'{count} {what}' for what, count in done.changes.items() if count)}")
    inside.run([sys.executable, "-c", PREPARED])
    rights.take_away(inside)
    left: Any = control(inside, "GET", "/lab/leftovers")
    say("nothing is left in the cloud" if not left else f"left in the cloud: {json.dumps(left)}")
    return {"cloud " + kind: len(names) for kind, names in left.items()} or {"cloud": 0}
