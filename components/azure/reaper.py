"""What ends a lease when no controller does: a workflow in the subscription that deletes launches' resource groups
whose time is over. It needs neither the hall nor the controller (docs/adr/0129).

A workflow of Logic Apps is one resource with its whole program in it; nothing else has to be deployed, stored or kept
at a supported version. Its language: "Workflow Definition Language" and "Schema reference for
trigger and action types" of Azure's pages.
"""

from typing import Any

import pulumi
import pulumi_azure_native as azure

from components.azure.access import Rights, identity
from ironburst.config.azure import rights
from ironburst.config.azure.models import AzureCloud
from ironburst.nodes import azure as names
from ironburst.nodes.naming import CLUSTER_TAG, logical

EVERY_MIN = 5
ARM = "https://management.azure.com"
_UNTIL = "ironburst:until"  # adapters/azure/launching.py
_GROUPS = "2025-04-01"  # version of the API
_FORCED = "Microsoft.Compute/virtualMachines,Microsoft.Compute/virtualMachineScaleSets"  # machines at once
_SCHEMA = "https://schema.management.azure.com/providers/Microsoft.Logic/schemas/2016-06-01/workflowdefinition.json#"
_WHATEVER = ["Succeeded", "Failed", "Skipped", "TimedOut"]


def definition(cluster: str, subscription: str, identity: str, arm: str = ARM) -> dict[str, Any]:
    """The workflow's program. A group without that tag, or with something else in it, isn't touched; a page or a
    deletion that fails keeps no other, and is tried again with the next run. `identity`: the id of whose rights it has.
    """
    groups = f"{arm}/subscriptions/{subscription}/resourcegroups"
    first = f"{groups}?api-version={_GROUPS}&$filter=tagName eq '{CLUSTER_TAG}' and tagValue eq '{cluster}'"
    variable = {"name": "next", "type": "string", "value": first.replace(" ", "%20")}
    end = f"{groups}/@{{items('each')['name']}}?api-version={_GROUPS}&forceDeletionTypes={_FORCED}"
    return {
        "$schema": _SCHEMA,
        "contentVersion": "1.0.0.0",
        "triggers": {
            "every": {
                "type": "Recurrence",
                "recurrence": {"frequency": "Minute", "interval": EVERY_MIN},
                "runtimeConfiguration": {"concurrency": {"runs": 1}},
            }
        },
        "actions": {
            "start": {"type": "InitializeVariable", "inputs": {"variables": [variable]}, "runAfter": {}},
            "pages": {
                "type": "Until",
                "expression": "@equals(variables('next'), '')",
                "limit": {"count": 60, "timeout": "PT1H"},
                "actions": _page(_call("GET", "@variables('next')", identity), _call("DELETE", end, identity)),
                "runAfter": {"start": ["Succeeded"]},
            },
        },
        "outputs": {},
    }


def _page(look: dict[str, Any], end: dict[str, Any]) -> dict[str, Any]:
    """Of groups: those whose time is over end. Times are compared as texts: a number in a tag that is none would end
    the run.
    """
    tagged = f"@contains(coalesce(item()?['tags'], json('{{}}')), '{_UNTIL}')"
    tag = f"item()?['tags']?['{_UNTIL}']"
    over = f"@and(greater({tag}, '2'), less({tag}, utcNow('yyyy-MM-ddTHH:mm:ssZ')))"
    return {
        "page": look | {"runAfter": {}},
        "ours": _filtered("@body('page')['value']", tagged, "page"),
        "over": _filtered("@body('ours')", over, "ours"),
        "each": {
            "type": "Foreach",
            "foreach": "@body('over')",
            "actions": {"end": end | {"runAfter": {}}},
            "runAfter": {"over": ["Succeeded"]},
        },
        "further": {
            "type": "SetVariable",
            "inputs": {"name": "next", "value": "@{coalesce(body('page')?['nextLink'], '')}"},
            "runAfter": {"each": _WHATEVER},
        },
    }


def _call(method: str, uri: str, identity: str) -> dict[str, Any]:
    """A call of ARM, which isn't waited for: what goes on behind it takes minutes."""
    signed = {"type": "ManagedServiceIdentity", "identity": identity, "audience": f"{ARM}/"}
    inputs = {"method": method, "uri": uri, "authentication": signed}
    return {"type": "Http", "inputs": inputs, "operationOptions": "DisableAsyncPattern"}


def _filtered(what: str, where: str, after: str) -> dict[str, Any]:
    return {"type": "Query", "inputs": {"from": what, "where": where}, "runAfter": {after: ["Succeeded"]}}


class Reaper(pulumi.ComponentResource):
    """The workflow, and its right to read and delete the subscription's resource groups."""

    def __init__(
        self,
        name: str,
        *,
        cloud: AzureCloud,
        group: pulumi.Output[str],
        tags: dict[str, str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`group`: the stack's resource group."""
        super().__init__("ironburst:components:AzureReaper", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        own = identity(name, "reaper", cloud, group, tags, child)
        Rights(name, cloud.subscription, child).give("reap", rights.REAPING, own.principal_id)
        azure.logic.Workflow(
            logical(name, "reaper"),
            workflow_name=names.reaper(name),
            resource_group_name=group,
            location=cloud.region,
            identity=azure.logic.ManagedServiceIdentityArgs(
                type=azure.logic.ManagedServiceIdentityType.USER_ASSIGNED, user_assigned_identities=[own.id]
            ),
            state=azure.logic.WorkflowState.ENABLED,
            definition=own.id.apply(lambda id: definition(name, cloud.subscription, id)),
            tags=tags,
            opts=child,
        )
        self.register_outputs({})
