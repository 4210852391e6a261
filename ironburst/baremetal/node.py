"""The resource baremetal:index:Node: its inputs, their checks, and its schema. No Pulumi in here."""

import difflib
import json
import re
from collections.abc import Iterable
from dataclasses import asdict
from datetime import date
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic.alias_generators import to_camel

from ironburst.baremetal import drift
from ironburst.baremetal.firmware import Minimum
from ironburst.baremetal.hardware import Hardware
from ironburst.baremetal.install_inputs import InstallInputs
from ironburst.baremetal.mismatch import Mismatch
from ironburst.baremetal.verify import Declaration
from ironburst.catalog.errors import Unknown
from ironburst.catalog.hardware import gpu, platform
from ironburst.config.bios_models import Settings
from ironburst.software.versions import version
from ironburst.system import secrets

PACKAGE = "baremetal"
VERSION = "0.1.0"
TOKEN = "baremetal:index:Node"


def _url(value: str) -> str:
    parts = urlsplit(value)
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or parts.path.strip("/")
        or parts.query
        or parts.fragment
    ):
        raise ValueError("must be the URL of a BMC without a path, such as https://10.0.9.11")
    if parts.username or parts.password:
        raise ValueError("must not hold a login: use bmcUsername and passwordRef")
    return value.rstrip("/")


def _reference(value: str) -> str:
    secrets.check(value)
    return value


def _mac(value: str) -> str:
    if not re.fullmatch(r"([0-9a-f]{2}:){5}[0-9a-f]{2}", value.lower()):
        raise ValueError("must be a MAC address such as 52:54:00:4e:00:0b")
    return value.lower()


def _fingerprint(value: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{64}", value):
        raise ValueError("must be the SHA-256 of a certificate, 64 small hexadecimal digits")
    return value


def _gpu_model(value: str) -> str:
    try:
        return gpu(value).model
    except Unknown as error:
        raise ValueError(f"is not in the catalogue: {error}") from None


def _platform(value: str) -> str:
    try:
        return platform(value).slug
    except Unknown as error:
        raise ValueError(f"is not in the catalogue: {error}") from None


def _version(value: str) -> str:
    version(value)
    return value


def _day(value: str) -> str:
    try:
        return date.fromisoformat(value).isoformat()
    except ValueError:
        raise ValueError("must be a day such as 2026-12-31") from None


def _never(_: list[str]) -> list[str]:
    raise ValueError("is what a refresh found: it can't be declared")


Text = Annotated[str, StringConstraints(min_length=1, strict=True)]
Count = Annotated[int, Field(ge=0, le=1_000_000)]


class NodeInputs(BaseModel):
    """What is declared of one node; in Pulumi the names are in camel case.
    Undeclared (None) hardware is not compared.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel)

    name: Text = Field(description="the node's name in the cluster; a change replaces the resource")
    bmc_address: Annotated[Text, AfterValidator(_url)] = Field(description="URL of its BMC")
    bmc_username: Text
    password_ref: Annotated[Text, AfterValidator(_reference)] = Field(
        description="reference to the password: env:NAME, file:PATH, ..."
    )
    secrets_region: Text | None = Field(
        default=None,
        description="where a cloud's store of secrets is asked for it; none: the region of the environment",
    )
    serial: Text | None = None
    uuid: Text | None = None
    manufacturer: Text | None = None
    model: Text | None = None
    macs: list[Annotated[str, AfterValidator(_mac)]] | None = Field(
        default=None, description="all must be there; the node may have more"
    )
    gpu_model: Annotated[Text, AfterValidator(_gpu_model)] | None = Field(
        default=None, description="the catalogue's name, with gpuCount"
    )
    gpu_count: Count | None = Field(default=None, description="0: the node has no GPU")
    cpu_count: Count | None = Field(default=None, description="CPU sockets")
    memory_gib: Count | None = Field(default=None, description="GiB that it has at least")
    platform: Annotated[Text, AfterValidator(_platform)] | None = Field(
        default=None, description="the catalogue's name of the server model, dgx-h100: what it must have"
    )
    height_u: Count | None = Field(default=None, description="rack units; none: the platform's")
    power_w: float | None = Field(default=None, gt=0, description="W that it draws at most; none: the platform's")
    psus_needed: Count | None = Field(default=None, description="how many supplies carry it; none: the platform's")
    driver: Annotated[Text, AfterValidator(_version)] | None = Field(
        default=None, description="the NVIDIA driver that the lock has for it; none: any that is supported"
    )
    firmware: list[Minimum] | None = Field(default=None, description="least versions of components")
    bios: Settings | None = Field(default=None, description="settings of the BIOS that are to be in force")
    allowed: dict[str, Annotated[str, AfterValidator(_day)]] | None = Field(
        default=None, description="mismatches that somebody answers for, each with its last day (UTC)"
    )
    drift: Annotated[list[str], AfterValidator(_never)] | None = Field(
        default=None, description="never declared: what a refresh found otherwise than it was accepted"
    )
    verify_tls: StrictBool = Field(default=True, description="false: any certificate is taken")
    ca_file: Text | None = Field(default=None, description="CAs in PEM; none: the system's")
    certificate_sha256: Annotated[Text, AfterValidator(_fingerprint)] | None = Field(
        default=None, description="the BMC's certificate has this fingerprint; then no CA is asked"
    )
    timeout_seconds: float = Field(
        default=120.0, gt=0, le=3600, description="for one read of the inventory; a BMC that is silent gets 30 at most"
    )
    power_off_on_delete: StrictBool = Field(
        default=False, description="delete shuts the node down; else it never touches the node"
    )
    install: InstallInputs | None = Field(default=None, description="none: ironburst installs nothing on it")

    @model_validator(mode="after")
    def _model_has_count(self) -> "NodeInputs":
        if self.gpu_model and not self.gpu_count:
            raise ValueError("gpuModel needs a gpuCount of 1 or more")
        if self.gpu_count and not self.gpu_model:
            raise ValueError("gpuCount needs a gpuModel")
        if self.install and not self.serial:
            raise ValueError("install needs the serial: an installation is for one machine alone")
        return self

    def declaration(self) -> Declaration:
        """What verification compares with the BMC's inventory."""
        values = {name: getattr(self, name) for name in Declaration.__dataclass_fields__}
        values["macs"] = None if self.macs is None else tuple(self.macs)
        values["firmware"] = tuple(self.firmware or ())
        values["platform"] = platform(self.platform) if self.platform else None
        return Declaration(**values)

    def in_maintenance(self, today: date) -> bool:
        """A person works on it, who answers for it: it holds up no other."""
        return self.allowances().get("maintenance", date.min) >= today

    def allowances(self) -> dict[str, date]:
        """What somebody answers for: mismatch -> last day."""
        return {field: date.fromisoformat(day) for field, day in (self.allowed or {}).items()}


INPUTS = tuple(field.alias or name for name, field in NodeInputs.model_fields.items())
OBSERVED_OUTPUTS = (
    "reachable",
    "powerState",
    "biosVersion",
    "bmcVersion",
    "observed",
    "declared",
    "accepted",
    "state",
    "stateReason",
    "installed",
    "installingSince",
)


def check(inputs: dict[str, Any], unknown: set[str]) -> list[tuple[str, str]]:
    """Every fault of the inputs as (input, sentence).
    `unknown` names inputs whose values aren't known yet (in a preview).
    """
    known = {key: value for key, value in inputs.items() if key not in unknown}
    try:
        NodeInputs.model_validate(known)
    except ValidationError as error:
        faults = [_sentence(fault) for fault in error.errors() if _input(fault["loc"]) not in unknown]
        between = {"gpuModel", "gpuCount", "serial"} & unknown
        return [fault for fault in faults if fault[0] or not between]
    return []


def _input(location: tuple[Any, ...]) -> str:
    return str(location[0]) if location else ""


def _sentence(error: Any) -> tuple[str, str]:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error["loc"]).lstrip(".")
    if error["type"] == "extra_forbidden":
        near = difflib.get_close_matches(path, INPUTS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(INPUTS)}"
        return path, f"{path} is not an input of {TOKEN}: {hint}"
    if error["type"] == "missing":
        return path, f"{path} is missing"
    reason = (
        str(error["ctx"]["error"])
        if error["type"] == "value_error"
        else error["msg"].removeprefix("Input ").removeprefix("String ")
    )
    if path == "passwordRef":  # what is there may be the password itself
        return path, f"passwordRef: {reason}"
    # An address may hold a login, and a setting a password, so these are not repeated either.
    given = "" if not path or path.startswith(("bmcAddress", "bios")) else f" (given: {json.dumps(error['input'])})"
    return path, f"{path} {reason}{given}" if path else reason


def outputs(
    declared: dict[str, Any], hardware: Hardware, found: Iterable[Mismatch], accepted: dict[str, Any]
) -> dict[str, Any]:
    """The resource's outputs: the inputs with what is really there, what the BMC reports, and the declaration.

    A refresh puts observed values into the inputs, so `declared` keeps what was
    accepted: later reads compare with that, and with `accepted`, the parts and versions of then.
    """
    return observed_inputs(declared, found) | {
        "declared": declared,
        "accepted": accepted,
        "reachable": True,
        "powerState": hardware.power_state,
        "biosVersion": hardware.bios_version,
        "bmcVersion": hardware.bmc_version,
        "observed": observed(hardware),
    }


def observed(hardware: Hardware) -> dict[str, Any]:
    """The inventory as a resource's state has it: nothing that changes by itself is in it."""
    return {
        "serial": hardware.serial,
        "manufacturer": hardware.manufacturer,
        "model": hardware.model,
        "uuid": hardware.uuid,
        "macs": list(hardware.macs),
        "gpus": [{"model": group.model, "count": group.count} for group in hardware.gpus],
        "cpuCount": hardware.cpu_count,
        "memoryGib": hardware.memory_gib,
        "heightU": hardware.height_u,
        "ports": [{"id": each.id, "mac": each.mac, "gbps": each.gbps} for each in hardware.ports],
        "drives": [asdict(each) for each in hardware.drives],
        "powerSupplies": [asdict(each) for each in hardware.power_supplies],
        "slots": [asdict(each) for each in hardware.slots],
        "notSaid": list(hardware.not_said),
    }


def observed_inputs(inputs: dict[str, Any], found: Iterable[Mismatch]) -> dict[str, Any]:
    """The inputs with what is there: so a refresh shows drift, and nothing else. What no input stands for is in
    `drift`, as sentences.
    """
    changed: dict[str, Any] = {}
    more = []
    for mismatch in found:
        name, value = to_camel(mismatch.field), mismatch.observed
        if name in inputs and value is not None:
            changed[name] = list(value) if isinstance(value, tuple) else value
        else:
            more.append(mismatch.sentence)
    now = {key: changed.get(key, value) for key, value in inputs.items()}
    return now | {"drift": more} if more else now


def lost(before: dict[str, Any], hardware: Hardware, allowed: dict[str, date], today: date) -> list[Mismatch]:
    """What is gone since the node was accepted, and nobody answers for: an `up` doesn't accept that."""
    gone = [each for each in drift.changes(before, hardware) if each.field in drift.LOST]
    return [each for each in gone if allowed.get(each.field, date.min) < today]


def schema() -> dict[str, Any]:
    """The Pulumi package schema, from NodeInputs."""
    described = NodeInputs.model_json_schema(by_alias=True)
    inputs = {name: _property(given) for name, given in described["properties"].items()}
    anything = {"type": "object", "additionalProperties": {"$ref": "pulumi.json#/Any"}}
    computed = {
        "declared": anything | {"description": "the inputs at the last up"},
        "reachable": {"type": "boolean", "description": "whether the BMC answered the last time"},
        "powerState": {"type": "string"},
        "biosVersion": {"type": "string"},
        "bmcVersion": {"type": "string"},
        "state": {"type": "string", "description": "of its life cycle, such as installing or ready"},
        "stateReason": {"type": "string"},
        "installed": {"type": "string", "description": "the mark that its host says it was installed with"},
        "installingSince": {"type": "number", "description": "seconds since 1970"},
        "observed": anything | {"description": "the BMC's inventory"},
        "accepted": anything | {"description": "parts and versions at the last up"},
    }
    resource = {
        "description": "A bare-metal node, verified against the inventory of its BMC (Redfish).",
        "inputProperties": inputs,
        "requiredInputs": described["required"],
        "properties": inputs | computed,
        "required": [*described["required"], "reachable"],
    }
    return {"name": PACKAGE, "version": VERSION, "resources": {TOKEN: resource}}


def _property(described: dict[str, Any]) -> dict[str, Any]:
    """A JSON Schema property as Pulumi's: one type, no null."""
    kind = next(form for form in described.get("anyOf", [described]) if form.get("type") != "null")
    if "$ref" in kind:
        kind = {"type": "object"}
    its_property = {"type": kind["type"]}
    if kind["type"] == "object":
        inner = kind.get("additionalProperties", {})
        its_property["additionalProperties"] = inner if "type" in inner else {"$ref": "pulumi.json#/Any"}
    if kind["type"] == "array":
        its_property["items"] = {"type": kind["items"].get("type", "object")}
        if "$ref" in kind["items"]:
            its_property["items"]["additionalProperties"] = {"$ref": "pulumi.json#/Any"}
    if "description" in described:
        its_property["description"] = described["description"]
    return its_property
