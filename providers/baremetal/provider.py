"""What the resource baremetal:index:Node does: create, read, update and delete over the nodes' BMCs.

create and update read the BMC's inventory and fail with every mismatch; nothing is stored of a node that fails. read
puts what is there into the inputs, so that a refresh shows drift; a BMC that does not answer is a warning there, for
one dead BMC must not stop the estate (a refused login or a missing secret is an error: somebody has to mend it, and
refresh would find no drift until then). A preview does no BMC I/O. delete touches the node only with powerOffOnDelete.
The password is resolved from its reference when a BMC is spoken to, and is kept nowhere.

Where an installation is declared, create and update begin it (ironburst.baremetal.lifecycle) and return: the engine's
lock is not held while a machine installs. read looks how far it is; `ironburst node wait` takes it further.
"""

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

from pulumi.provider.experimental import provider as sdk
from pulumi.provider.experimental.property_value import PropertyValue

from ironburst.adapters.redfish import client as redfish
from ironburst.adapters.redfish import cycle as metal_cycle
from ironburst.adapters.redfish import power as redfish_power
from ironburst.adapters.redfish.cycle import InstallRecord
from ironburst.baremetal import drift, node
from ironburst.baremetal.cycle import Panel
from ironburst.baremetal.hardware import Hardware
from ironburst.baremetal.mismatch import Verdict
from ironburst.baremetal.verify import examine
from ironburst.catalog.hardware import gpus
from ironburst.system import secrets
from providers.baremetal.values import NOT_KNOWN_YET, has_unknown, plain, values

Warn = Callable[[str, str], Any]
"""An async function of (urn, message)."""


class NodeError(Exception):
    """An operation that failed for a reason that the user has to see, as it stands."""


class BaremetalProvider(sdk.Provider):
    """Answers the engine. `warn` shows a message to the user, beside the resource."""

    def __init__(self, warn: Warn) -> None:
        self._warn = warn

    async def get_schema(self, _: sdk.GetSchemaRequest) -> sdk.GetSchemaResponse:
        """The resource and its inputs."""
        return sdk.GetSchemaResponse(schema=json.dumps(node.schema()))

    async def configure(self, _: sdk.ConfigureRequest) -> sdk.ConfigureResponse:
        """What of Pulumi's protocol this provider takes."""
        # Not accepting secrets: the engine sends plain values and marks the answers itself.
        # There is no secret among ours.
        return sdk.ConfigureResponse(
            accept_secrets=False, supports_preview=True, accept_outputs=False, accept_resources=False
        )

    async def check(self, request: sdk.CheckRequest) -> sdk.CheckResponse:
        """Faults of the inputs, before anything is done."""
        inputs = plain(request.new_inputs)
        unknown = {key for key, value in request.new_inputs.items() if has_unknown(value)}
        failures = [sdk.CheckFailure(property=path, reason=reason) for path, reason in node.check(inputs, unknown)]
        return sdk.CheckResponse(inputs=request.new_inputs, failures=failures)

    async def diff(self, request: sdk.DiffRequest) -> sdk.DiffResponse:
        """What differs, and whether it needs another resource."""
        old, new = request.old_state, request.new_inputs
        kinds = {}
        for key in node.INPUTS:
            if key in new and key not in old:
                kinds[key] = sdk.PropertyDiffKind.ADD
            elif key in old and key not in new:
                kinds[key] = sdk.PropertyDiffKind.DELETE
            elif key in new and (has_unknown(new[key]) or plain(old)[key] != plain(new)[key]):
                kinds[key] = sdk.PropertyDiffKind.UPDATE_REPLACE if key == "name" else sdk.PropertyDiffKind.UPDATE
        return sdk.DiffResponse(
            changes=bool(kinds),
            diffs=list(kinds),
            replaces=[key for key in kinds if key == "name"],
            # Old and new name are one machine: with powerOffOnDelete it must not
            # be switched off behind the new one's back.
            delete_before_replace=True,
            detailed_diff={key: sdk.PropertyDiff(kind=kind, input_diff=False) for key, kind in kinds.items()},
        )

    async def create(self, request: sdk.CreateRequest) -> sdk.CreateResponse:
        """Accept the node, if it is as declared."""
        if request.preview:
            return sdk.CreateResponse(resource_id="", properties=_planned(request.properties))
        inputs = plain(request.properties)
        outputs = await self._accepted(request.urn, inputs, {}, InstallRecord())
        return sdk.CreateResponse(resource_id=inputs["name"], properties=values(outputs))

    async def update(self, request: sdk.UpdateRequest) -> sdk.UpdateResponse:
        """Accept the node anew, if it is as declared."""
        if request.preview:
            return sdk.UpdateResponse(properties=_planned(request.news))
        olds, inputs = plain(request.olds), plain(request.news)
        record = _record(olds)
        if _mark(olds.get("declared") or {}) != _mark(inputs):
            record = InstallRecord(record.installed)  # another installation, with a time of its own
        return sdk.UpdateResponse(properties=values(await self._accepted(request.urn, inputs, olds, record)))

    async def read(self, request: sdk.ReadRequest) -> sdk.ReadResponse:
        """What is there now: in the outputs, and in the inputs, so that a refresh shows drift."""
        state, inputs = plain(request.properties), plain(request.inputs)
        if not inputs:
            raise NodeError(
                f"{request.resource_id}: a node cannot be imported: declare it and run up, which changes nothing on it"
            )
        declared = state.get("declared") or inputs
        if _typed(declared).in_maintenance(_today()):
            aside = await self._left_aside(request.urn, declared, state, _record(state))
            return sdk.ReadResponse(request.resource_id, values(aside), values(declared))
        try:
            hardware, verdict, panel = await _compared(declared)
            how = {"as_declared": not verdict.mismatches, "act": False, "panel": panel}
            standing = await _standing(declared, _record(state), **how)
        except (redfish.BmcUnreachable, redfish.BmcIncompleteAnswer, redfish.BmcUnavailable) as error:
            await self._warn(request.urn, f"{error}; what was known of the node is kept")
            return sdk.ReadResponse(request.resource_id, values(state | {"reachable": False}), values(inputs))
        accepted = state.get("accepted") or drift.accepted(hardware)
        found = [*verdict.mismatches, *drift.changes(accepted, hardware)]
        if standing["state"] == "installing":
            found = []  # a machine that starts reports half of its parts
        now = node.observed_inputs(declared, found)
        outputs = node.outputs(declared, hardware, found, accepted) | standing
        installed = standing.get("installed")
        if declared.get("install") and installed and installed not in (_mark(declared), metal_cycle.ANOTHER):
            now["install"] = outputs["install"] = declared["install"] | {"mark": installed}
        return sdk.ReadResponse(request.resource_id, values(outputs), values(now))

    async def delete(self, request: sdk.DeleteRequest) -> None:
        """Let go of the node: a medium of its installation goes out; it is powered off only where that is declared."""
        state = plain(request.properties)
        if state.get("install"):
            try:
                await _standing(state["declared"], _record(state), asked="retiring")
            except (redfish.BmcUnreachable, redfish.BmcIncompleteAnswer, redfish.BmcUnavailable) as error:
                await self._warn(request.urn, f"{error}; an install medium may still be in it")
        if state.get("powerOffOnDelete"):
            await asyncio.to_thread(lambda: redfish_power.power_off(_access(_typed(state["declared"])), force=True))

    async def _accepted(
        self, urn: str, inputs: dict[str, Any], before: dict[str, Any], record: InstallRecord
    ) -> dict[str, Any]:
        """The outputs of a node that is as declared, and of which nothing is gone since `before`; its installation is
        begun. Raises NodeError with every mismatch, or a BmcError.
        """
        declared = _typed(inputs)
        if declared.in_maintenance(_today()):
            return await self._left_aside(urn, inputs, before, record)
        hardware, verdict, panel = await _compared(inputs)
        gone = node.lost(before.get("accepted") or {}, hardware, declared.allowances(), _today())
        mismatches = [*verdict.mismatches, *gone]
        standing = await _standing(inputs, record, as_declared=not mismatches, panel=panel)
        if mismatches:
            listed = "\n".join(f"  - {mismatch.sentence}" for mismatch in mismatches)
            some = "1 thing" if len(mismatches) == 1 else f"{len(mismatches)} things"
            raise NodeError(f"{inputs['name']}: {some} not as declared; the node is not accepted:\n{listed}")
        if standing["state"] == "failed":
            raise NodeError(f"{inputs['name']}: {standing['stateReason']}")
        if standing["state"] not in ("ready", "installing"):
            await self._warn(urn, f"{inputs['name']} is {standing['state']}: {standing['stateReason']}")
        return node.outputs(inputs, hardware, [], drift.accepted(hardware)) | standing

    async def _left_aside(
        self, urn: str, inputs: dict[str, Any], before: dict[str, Any], record: InstallRecord
    ) -> dict[str, Any]:
        """The outputs of a node in maintenance: what is wrong is told, what was accepted stays; nothing is done."""
        known = inputs | {"declared": inputs, "reachable": False}
        try:
            hardware, verdict, _ = await _compared(inputs)
            known = node.outputs(inputs, hardware, [], before.get("accepted") or {})
            wrong = [each.sentence for each in verdict.mismatches]
        except redfish.BmcError as error:
            wrong = [str(error)]
        why = f"in maintenance until {inputs['allowed']['maintenance']}: {'; '.join(wrong) or 'it is as declared'}"
        await self._warn(urn, f"{inputs['name']} is {why}")
        standing = {"state": "maintenance", "stateReason": why, "installed": record.installed}
        return {key: before[key] for key in ("accepted", "observed") if key in before} | known | standing


def _record(state: dict[str, Any]) -> InstallRecord:
    return InstallRecord(state.get("installed"), state.get("installingSince"))


def _mark(inputs: dict[str, Any]) -> str | None:
    return (inputs.get("install") or {}).get("mark")


async def _standing(inputs: dict[str, Any], record: InstallRecord, **how: Any) -> dict[str, Any]:
    """The outputs that say where the node stands in its life cycle. Raises NodeError or a BmcError."""
    declared = _typed(inputs)
    if declared.install is None:
        return {"state": "ready" if how.get("as_declared", True) else "inspected"}
    install = declared.install
    standing, known = await asyncio.to_thread(lambda: metal_cycle.advance(_access(declared), install, record, **how))
    return {
        "state": standing.state,
        "stateReason": standing.why.replace("NODE", declared.name),
        "installed": known.installed,
        "installingSince": known.since,
    }


async def _compared(inputs: dict[str, Any]) -> tuple[Hardware, Verdict, Panel | None]:
    declared = _typed(inputs)
    hardware, panel = await asyncio.to_thread(lambda: redfish.read_declared(_access(declared), declared))
    allowed = declared.allowances()
    return hardware, examine(declared.declaration(), hardware, gpus().values(), allowed=allowed, today=_today()), panel


def _today() -> date:
    return datetime.now(UTC).date()


def _typed(inputs: dict[str, Any]) -> node.NodeInputs:
    faults = node.check(inputs, set())
    if faults:
        raise NodeError("; ".join(sentence for _, sentence in faults))
    return node.NodeInputs.model_validate(inputs)


def _access(inputs: node.NodeInputs) -> redfish.BmcAccess:
    """Resolves the password, at the last moment. Raises NodeError where that fails."""
    try:
        password = secrets.resolve(inputs.password_ref, region=inputs.secrets_region)
    except secrets.SecretError as error:
        raise NodeError(f"{inputs.name}: the password of BMC {inputs.bmc_address}: {error}") from None
    return redfish.access_of(inputs, password)


def _planned(inputs: dict[str, PropertyValue]) -> dict[str, PropertyValue]:
    """What a preview can say: the inputs, and that the rest isn't known."""
    return {**inputs, **dict.fromkeys(node.OBSERVED_OUTPUTS, NOT_KNOWN_YET)}
