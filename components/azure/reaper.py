"""What ends a lease when no controller does: a workflow in the subscription that deletes launches' resource groups whose
time is over. It needs neither the hall nor the controller (docs/adr/0129).

A workflow of Logic Apps is one resource with its whole program in it, and its identity; nothing else has to be
deployed, stored or kept at a supported version. Its language: "Workflow Definition Language" and "Schema reference for
trigger and action types" of Azure's pages.
"""

from typing import Any

import pulumi
import pulumi_azure_native as azure

from components.azure.access import Rights
from ironburst.config.azure import names, rights
from ironburst.config.azure.models import AzureCloud
from ironburst.nodes.naming import CLUSTER_TAG, logical

EVERY_MIN = 5
ARM = "https://management.azure.com"
_UNTIL = "ironburst:until"  # adapters/azure/launching.py
_GROUPS = "2025-04-01"  # version of the API
_FORCED = "Microsoft.Compute/virtualMachines,Microsoft.Compute/virtualMachineScaleSets"  # machines at once
_SCHEMA = "https://schema.management.azure.com/providers/Microsoft.Logic/schemas/2016-06-01/workflowdefinition.json#"
_WHATEVER = ["Succeeded", "Failed", "Skipped", "TimedOut"]


def definition(cluster: str, subscription: str, arm: str = ARM) -> dict[str, Any]:
    """The workflow's program. A group without that tag, or with something else in it, isn't touched; a page or a
    deletion that fails keeps no other, and is tried again with the next run.
    """
    groups = f"{arm}/subscriptions/{subscription}/resourcegroups"
    # their times are compared as texts: a number in a tag that is none would end the run
    over = f"@and(greater(item()?['tags']?['{_UNTIL}'], '2'), less(item()?['tags']?['{_UNTIL}'], {_NOW}))"
    tagged = f"@contains(coalesce(item()?['tags'], json('{{}}')), '{_UNTIL}')"
    page = {
        "page": _call("GET", "@variables('next')", {}),
        "ours": _filtered("@body('page')['value']", tagged, {"page": ["Succeeded"]}),
        "over": _filtered("@body('ours')", over, {"ours": ["Succeeded"]}),
        "each": {
            "type": "Foreach",
            "foreach": "@body('over')",
            "actions": {"end": _call("DELETE", f"{groups}/@{{items('each')['name']}}?{_END}", {})},
            "runAfter": {"over": ["Succeeded"]},
        },
        "further": {
            "type": "SetVariable",
            "inputs": {"name": "next", "value": "@{coalesce(body('page')?['nextLink'], '')}"},
            "runAfter": {"each": _WHATEVER},
        },
    }
    first = f"{groups}?api-version={_GROUPS}&$filter=tagName eq '{CLUSTER_TAG}' and tagValue eq '{cluster}'"
    variable = {"name": "next", "type": "string", "value": first.replace(" ", "%20")}
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
                "actions": page,
                "runAfter": {"start": ["Succeeded"]},
            },
        },
        "outputs": {},
    }


_NOW = "utcNow('yyyy-MM-ddTHH:mm:ssZ')"
_END = f"api-version={_GROUPS}&forceDeletionTypes={_FORCED}"


def _call(method: str, uri: str, after: dict[str, list[str]]) -> dict[str, Any]:
    """A call of ARM with the workflow's own identity, which isn't waited for: what goes on behind it takes minutes."""
    signed = {"type": "ManagedServiceIdentity", "audience": f"{ARM}/"}
    inputs = {"method": method, "uri": uri, "authentication": signed}
    return {"type": "Http", "inputs": inputs, "operationOptions": "DisableAsyncPattern", "runAfter": after}


def _filtered(what: str, where: str, after: dict[str, list[str]]) -> dict[str, Any]:
    return {"type": "Query", "inputs": {"from": what, "where": where}, "runAfter": after}


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
        workflow = azure.logic.Workflow(
            logical(name, "reaper"),
            workflow_name=names.reaper(name),
            resource_group_name=group,
            location=cloud.region,
            identity=azure.logic.ManagedServiceIdentityArgs(type=azure.logic.ManagedServiceIdentityType.SYSTEM_ASSIGNED),
            state=azure.logic.WorkflowState.ENABLED,
            definition=definition(name, cloud.subscription),
            tags=tags,
            opts=child,
        )
        principal = workflow.identity.apply(lambda its: its.principal_id if its else "")
        Rights(name, cloud.subscription, child).give("reap", rights.REAPING, principal)
        self.register_outputs({})
