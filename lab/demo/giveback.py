"""Step 8: everything is given back, and somebody looks."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

from ironburst.adapters.pulumi import Pulumi
from ironburst.controller.ledger import Ledger
from lab.demo import rights
from lab.demo.declare import KEY_PAIR, MUNGE_SECRET, control
from lab.demo.inside import Boxed
from lab.system import LabError

# what the operator prepared before the first `up`, and takes away after `destroy`: a secret, the cluster's parameters,
# key pairs
PREPARED = (
    "import boto3, sys; secrets = boto3.client('secretsmanager'); secret, cluster, *keys = sys.argv[1:]\n"
    "secrets.delete_secret(SecretId=secret, ForceDeleteWithoutRecovery=True)\n"
    "ssm = boto3.client('ssm')\n"
    "for page in ssm.get_paginator('describe_parameters').paginate():\n"
    "    for parameter in page['Parameters']:\n"
    "        if parameter['Name'].startswith(f'/ironburst/{cluster}/'): ssm.delete_parameter(Name=parameter['Name'])\n"
    "for key in keys: boto3.client('ec2').delete_key_pair(KeyName=key)\n"
)


def give_back(
    inside: Boxed,
    pulumi: Pulumi,
    ledger: Ledger,
    say: Callable[[str], None],
    prepared: Sequence[str] = (MUNGE_SECRET, "lab", KEY_PAIR),
) -> dict[str, int]:
    """End what is left of the declaration; what the cloud still holds then, by kind (none: zero). `prepared`: by the
    operator, as arguments of PREPARED.
    """
    if open_leases := ledger.leases():
        raise LabError(f"{len(open_leases)} leases are still open: {', '.join(lease.node for lease in open_leases)}")
    say(f"{len(ledger.leases(open_only=False))} leases, all ended")
    done = pulumi.destroy()
    say(f"destroy: {', '.join(f'{count} {what}' for what, count in done.changes.items() if count)}")
    inside.run([sys.executable, "-c", PREPARED, *prepared])
    rights.take_away(inside)
    left: Any = control(inside, "GET", "/lab/leftovers")
    say("nothing is left in the cloud" if not left else f"left in the cloud: {json.dumps(left)}")
    return {"cloud " + kind: len(names) for kind, names in left.items()} or {"cloud": 0}
