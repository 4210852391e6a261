"""Owned nodes, as resources of our own provider plugin (providers/baremetal):
one preview and one refresh cover both sides.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi

from ironburst import catalog, secrets
from ironburst.config.allowance_models import Allowance
from ironburst.config.models import Hall, Nodes


class Node(pulumi.CustomResource):
    """One machine behind a BMC.
    Inputs and outputs are the provider's (see providers/baremetal/README.md), in its own spelling.
    """

    reachable: pulumi.Output[bool]
    powerState: pulumi.Output[str]
    biosVersion: pulumi.Output[str]
    bmcVersion: pulumi.Output[str]
    observed: pulumi.Output[dict[str, Any]]

    def __init__(self, name: str, inputs: dict[str, Any], opts: pulumi.ResourceOptions | None = None) -> None:
        outputs = dict.fromkeys(("reachable", "powerState", "biosVersion", "bmcVersion", "observed"))
        super().__init__("baremetal:index:Node", name, {**outputs, **inputs}, opts)


class BareMetalNodes(pulumi.ComponentResource):
    """The nodes of one hall. Output: `nodes`, declared name -> Node."""

    nodes: dict[str, Node]

    def __init__(
        self,
        name: str,
        *,
        hall: Hall,
        region: str | None = None,
        allow: Sequence[Allowance] = (),
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`region`: of the secrets that passwords refer to; None: the environment's. `allow`: all of the stack's."""
        super().__init__("ironburst:components:BareMetalNodes", name, None, opts)
        allowed = allowed_mismatches(allow)
        self.nodes = {
            given["name"]: Node(given["name"], given, pulumi.ResourceOptions(parent=self))
            for nodes in hall.nodes
            for given in node_inputs(nodes, region, allowed)
        }
        self.register_outputs({"nodes": {node: resource.reachable for node, resource in self.nodes.items()}})


def allowed_mismatches(allow: Sequence[Allowance]) -> dict[str, dict[str, str]]:
    """{node: {mismatch: last day}} of the allowances of rule `hardware`."""
    allowed: dict[str, dict[str, str]] = {}
    for each in allow:
        if each.rule == "hardware" and each.of:
            node, _, mismatch = each.of.partition("/")
            days = allowed.setdefault(node, {})
            days[mismatch] = max(each.until.isoformat(), days.get(mismatch, ""))
    return allowed


def node_inputs(
    nodes: Nodes, region: str | None = None, allowed: Mapping[str, dict[str, str]] | None = None
) -> list[dict[str, Any]]:
    """The provider's inputs for each node of a declared range;
    what isn't declared is left out, so it isn't compared. None without a BMC, and where they aren't managed.
    """
    if nodes.bmc is None or not nodes.managed:
        return []
    return [
        {
            "name": node,
            "bmcAddress": nodes.bmc.addresses[n],
            "bmcUsername": nodes.bmc.username,
            "passwordRef": nodes.bmc.password,  # a reference: the provider resolves it at the moment of use
            **({"secretsRegion": region} if region and secrets.in_secretsmanager(nodes.bmc.password) else {}),
            "verifyTls": nodes.bmc.verify_tls,
            **({"caFile": nodes.bmc.ca_file} if nodes.bmc.ca_file else {}),
            **({"certificateSha256": nodes.bmc.sha256[n]} if nodes.bmc.sha256 else {}),
            "powerOffOnDelete": nodes.power_off_on_delete,
            **({"serial": nodes.serials[n]} if nodes.serials else {}),
            **({"macs": [nodes.macs[n]]} if nodes.macs else {}),
            **({"heightU": nodes.height} if nodes.height else {}),
            **({"allowed": allowed[node]} if allowed and node in allowed else {}),
            **_gpus(nodes),
        }
        for n, node in enumerate(nodes.names)
    ]


def _gpus(nodes: Nodes) -> dict[str, Any]:
    if nodes.platform is None:
        return {"gpuCount": 0} if nodes.role != "gpu" else {}
    platform = catalog.platform(nodes.platform)
    return {"platform": platform.slug, "gpuModel": platform.gpu.model, "gpuCount": platform.gpu_count}
