"""Owned nodes, as resources of our own provider plugin (providers/baremetal):
one preview and one refresh cover both sides.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi

from ironburst.baremetal import declared
from ironburst.config.allowance_models import Allowance
from ironburst.config.models import Hall


class Node(pulumi.CustomResource):
    """One machine behind a BMC.
    Inputs and outputs are the provider's (see providers/baremetal/README.md), in its own spelling.
    """

    reachable: pulumi.Output[bool]
    powerState: pulumi.Output[str]
    biosVersion: pulumi.Output[str]
    bmcVersion: pulumi.Output[str]
    observed: pulumi.Output[dict[str, Any]]
    state: pulumi.Output[str]

    def __init__(self, name: str, inputs: dict[str, Any], opts: pulumi.ResourceOptions | None = None) -> None:
        outputs = dict.fromkeys(
            ("reachable", "powerState", "biosVersion", "bmcVersion", "observed", "state", "stateReason")
        )
        super().__init__("baremetal:index:Node", name, {**outputs, **inputs}, opts)


class BareMetalNodes(pulumi.ComponentResource):
    """The nodes of one hall. Output: `nodes`, declared name -> Node."""

    nodes: dict[str, Node]

    def __init__(
        self,
        name: str,
        *,
        hall: Hall,
        regions: Mapping[str, str] = {},
        ssh_user: str = "root",
        allow: Sequence[Allowance] = (),
        drivers: Mapping[str, str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`regions`: of the clouds' stores of secrets, by provider. `ssh_user`: who asks an installed
        host what it is. `allow`: all of the stack's. `drivers`: the lock's, by node.
        """
        super().__init__("ironburst:components:BareMetalNodes", name, None, opts)
        allowed = declared.allowed_mismatches(allow)
        self.nodes = {
            given["name"]: Node(given["name"], given, pulumi.ResourceOptions(parent=self))
            for nodes in hall.nodes
            for given in declared.node_inputs(nodes, regions, ssh_user, allowed=allowed, drivers=drivers)
        }
        self.register_outputs({"nodes": {node: resource.reachable for node, resource in self.nodes.items()}})
