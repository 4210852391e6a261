"""What ends a lease when no controller does: a workflow in the subscription that deletes launches' resource groups
whose time is over, and machines of leases that are off, which Azure goes on being paid for. It needs neither the hall
nor the controller (docs/adr/0129, 0134).

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
from ironburst.nodes.naming import CLUSTER_TAG, LEASE_TAG, logical

EVERY_MIN = 5
ARM = "https://management.azure.com"
_UNTIL = "ironburst:until"  # adapters/azure/launching.py
_GROUPS, _MACHINES = "2025-04-01", "2026-04-01"  # versions of the APIs
_FORCED = "Microsoft.Compute/virtualMachines,Microsoft.Compute/virtualMachineScaleSets"  # machines at once
_SCHEMA = "https://schema.management.azure.com/providers/Microsoft.Logic/schemas/2016-06-01/workflowdefinition.json#"
_WHATEVER = ["Succeeded", "Failed", "Skipped", "TimedOut"]


def definition(cluster: str, subscription: str, identity: str, arm: str = ARM) -> dict[str, Any]:
    """The workflow's program. What fails keeps no other, and is tried again with the next run; groups and machines are
    looked at beside each other, so that a run has failed if either has. `identity`: the id of whose rights it has.
    """
    within = f"{arm}/subscriptions/{subscription}"
    groups = f"{within}/resourcegroups"
    tagged = f"$filter=tagName eq '{CLUSTER_TAG}' and tagValue eq '{cluster}'".replace(" ", "%20")
    end = f"{groups}/@{{items('each')['name']}}?api-version={_GROUPS}&forceDeletionTypes={_FORCED}"
    machines = f"{within}/providers/Microsoft.Compute/virtualMachines?api-version={_MACHINES}&statusOnly=true"
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
            "start": _variable("next", f"{groups}?api-version={_GROUPS}&{tagged}"),
            "pages": _pages("start", "next", _of_groups(identity, end)),
            "off_start": _variable("off_next", machines),
            "off_pages": _pages("off_start", "off_next", _of_machines(identity, arm, cluster)),
        },
        "outputs": {},
    }


def _variable(name: str, value: str) -> dict[str, Any]:
    variable = {"name": name, "type": "string", "value": value}
    return {"type": "InitializeVariable", "inputs": {"variables": [variable]}, "runAfter": {}}


def _pages(after: str, next: str, actions: dict[str, Any]) -> dict[str, Any]:
    """Of a list, until there is none. `next`: the variable with the next one's address."""
    return {
        "type": "Until",
        "expression": f"@equals(variables('{next}'), '')",
        "limit": {"count": 60, "timeout": "PT1H"},
        "actions": actions,
        "runAfter": {after: ["Succeeded"]},
    }


def _further(next: str, page: str, after: str) -> dict[str, Any]:
    link = f"@{{coalesce(body('{page}')?['nextLink'], '')}}"
    return {"type": "SetVariable", "inputs": {"name": next, "value": link}, "runAfter": {after: _WHATEVER}}


def _of_groups(identity: str, end: str) -> dict[str, Any]:
    """A page: those whose time is over end; one without that tag, or with something else in it, isn't touched. Times
    are compared as texts: a number in a tag that is none would end the run.
    """
    tagged = f"@contains(coalesce(item()?['tags'], json('{{}}')), '{_UNTIL}')"
    tag = f"item()?['tags']?['{_UNTIL}']"
    over = f"@and(greater({tag}, '2'), less({tag}, utcNow('yyyy-MM-ddTHH:mm:ssZ')))"
    return {
        "page": _call("GET", "@variables('next')", identity),
        "ours": _filtered("@body('page')['value']", tagged, "page"),
        "over": _filtered("@body('ours')", over, "ours"),
        "each": {
            "type": "Foreach",
            "foreach": "@body('over')",
            "actions": {"end": _call("DELETE", end, identity)},
            "runAfter": {"over": ["Succeeded"]},
        },
        "further": _further("next", "page", "each"),
    }


def _of_machines(identity: str, arm: str, cluster: str) -> dict[str, Any]:
    """A page: those that are off. Each is asked for by itself a minute later, for the list has no tags, and what only
    reboots, moves or stands still for Azure's maintenance is there again. It ends if it is a lease's of ours, off
    still, and nobody makes or starts it: "Stopped" may be seen then, too.
    """
    interval = {"count": 1, "unit": "Minute"}
    one = f"{arm}@{{items('off_each')['id']}}?api-version={_MACHINES}"
    of, view = "body('off_look')?['tags']", "body('off_look')?['properties']?['instanceView']"
    ours = f"equals({of}?['{CLUSTER_TAG}'], '{cluster}'), contains(coalesce({of}, json('{{}}')), '{LEASE_TAG}')"
    still = f"@and({ours}, {_shows(view, 'PowerState/stopped')}, {_shows(view, 'ProvisioningState/succeeded')})"
    ending = {
        "type": "If",
        "expression": still,
        "actions": {"off_end": _call("DELETE", f"{one}&forceDeletion=true", identity)},
        "else": {"actions": {}},
        "runAfter": {"off_look": ["Succeeded"]},
    }
    look = _call("GET", f"{one}&$expand=instanceView", identity)
    off = _shows("item()?['properties']?['instanceView']", "PowerState/stopped")
    return {
        "off_page": _call("GET", "@variables('off_next')", identity),
        "off": _filtered("@body('off_page')['value']", f"@{off}", "off_page"),
        "off_each": {
            "type": "Foreach",
            "foreach": "@body('off')",
            "actions": {
                "off_wait": {"type": "Wait", "inputs": {"interval": interval}, "runAfter": {}},
                "off_look": look | {"runAfter": {"off_wait": ["Succeeded"]}},
                "off_still": ending,
            },
            "runAfter": {"off": ["Succeeded"]},
        },
        "off_further": _further("off_next", "off_page", "off_each"),
    }


def _shows(view: str, code: str) -> str:
    """Whether an instance view has a status with that code."""
    return f"contains(string(coalesce({view}, json('{{}}'))), '\"{code}\"')"


def _call(method: str, uri: str, identity: str) -> dict[str, Any]:
    """A call of ARM, which isn't waited for: what goes on behind it takes minutes."""
    signed = {"type": "ManagedServiceIdentity", "identity": identity, "audience": f"{ARM}/"}
    inputs = {"method": method, "uri": uri, "authentication": signed}
    return {"type": "Http", "inputs": inputs, "operationOptions": "DisableAsyncPattern", "runAfter": {}}


def _filtered(what: str, where: str, after: str) -> dict[str, Any]:
    return {"type": "Query", "inputs": {"from": what, "where": where}, "runAfter": {after: ["Succeeded"]}}


class Reaper(pulumi.ComponentResource):
    """The workflow, and its right to read and delete the subscription's resource groups and machines."""

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
