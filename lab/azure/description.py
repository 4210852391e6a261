"""ARM as the SDK's own code has it (azure-mgmt-compute, -network, -resource): which call a request is, by the functions
that build requests; whether its parameters, its body and our answer are what that call takes and gives, by the models.
"""

from __future__ import annotations

import enum
import functools
import inspect
import json
import re
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from azure.mgmt.compute import models as compute
from azure.mgmt.compute.operations import _operations as compute_calls
from azure.mgmt.network import models as network
from azure.mgmt.network.operations import _operations as network_calls
from azure.mgmt.resource.resources import models as resource
from azure.mgmt.resource.resources.operations import _operations as resource_calls

_OPEN = {"vmSize"}  # enums of the SDK that don't list all there is
_ANY = (object, None)

# name: (request model, answer model); a list's answer is {value: [model], nextLink}
CALLS: Mapping[str, tuple[Any, Any]] = {
    "capacity_reservation_groups.get": (None, compute.CapacityReservationGroup),
    "capacity_reservations.list_by_capacity_reservation_group": (None, [compute.CapacityReservation]),
    "disks.list": (None, [compute.Disk]),
    "gallery_image_versions.create_or_update": (compute.GalleryImageVersion, compute.GalleryImageVersion),
    "gallery_image_versions.delete": (None, None),
    "gallery_image_versions.get": (None, compute.GalleryImageVersion),
    "gallery_image_versions.list_by_gallery_image": (None, [compute.GalleryImageVersion]),
    "gallery_image_versions.update": (compute.GalleryImageVersionUpdate, compute.GalleryImageVersion),
    "gallery_images.get": (None, compute.GalleryImage),
    "network_interfaces.list": (None, [network.NetworkInterface]),
    "network_interfaces.list_all": (None, [network.NetworkInterface]),
    "providers.get": (None, resource.Provider),
    "resource_groups.create_or_update": (resource.ResourceGroup, resource.ResourceGroup),
    "resource_groups.delete": (None, None),
    "resource_groups.get": (None, resource.ResourceGroup),
    "resource_groups.list": (None, [resource.ResourceGroup]),
    "resource_skus.list": (None, [compute.ResourceSku]),
    "tags.update_at_scope": (resource.TagsPatchResource, resource.TagsResource),
    "virtual_machine_scale_sets.create_or_update": (compute.VirtualMachineScaleSet, compute.VirtualMachineScaleSet),
    "virtual_machine_scale_sets.get": (None, compute.VirtualMachineScaleSet),
    "usage.list": (None, [compute.Usage]),
    "virtual_machine_images.list": (None, [compute.VirtualMachineImageResource]),
    "virtual_machines.create_or_update": (compute.VirtualMachine, compute.VirtualMachine),
    "virtual_machines.deallocate": (None, None),
    "virtual_machines.delete": (None, None),
    "virtual_machines.generalize": (None, None),
    "virtual_machines.get": (None, compute.VirtualMachine),
    "virtual_machines.instance_view": (None, compute.VirtualMachineInstanceView),
    "virtual_machines.list": (None, [compute.VirtualMachine]),
    "virtual_machines.list_all": (None, [compute.VirtualMachine]),
    "virtual_machines.retrieve_boot_diagnostics_data": (None, compute.RetrieveBootDiagnosticsDataResult),
}


_IN_GROUP = r"/subscriptions/(?P<subscriptionId>[^/]+)/resourceGroups/(?P<resourceGroupName>[^/]+)/providers"
_WORKFLOW = rf"{_IN_GROUP}/Microsoft\.Logic/workflows/(?P<workflowName>[^/]+)"
BESIDE: Mapping[str, tuple[str, str]] = {
    "operations.permissions": (rf"{_IN_GROUP}/Microsoft\.Authorization/permissions", "2022-04-01"),
    "operations.runs": (rf"{_WORKFLOW}/runs", "2019-05-01"),
    "operations.workflow": (_WORKFLOW, "2019-05-01"),
}
"""calls of APIs whose SDKs aren't here: path and api-version"""


class Wrong(ValueError):
    """What the SDK's own code doesn't have. `code`: of the error."""

    def __init__(self, text: str, code: str = "InvalidRequestContent"):
        super().__init__(text)
        self.code = code


@dataclass(frozen=True)
class Call:
    """`name`: virtual_machines.get; `path` and `query`: as text; `headers` in lower case."""

    name: str
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


class _Route(typing.NamedTuple):
    name: str
    verb: str
    path: re.Pattern[str]
    version: str
    query: frozenset[str]


@functools.cache
def _routes() -> tuple[_Route, ...]:
    found = []
    for name in CALLS:
        of_resources = ("resource_groups", "providers", "tags")
        calls = {"network_interfaces": network_calls} | dict.fromkeys(of_resources, resource_calls)
        of = calls.get(name.partition(".")[0], compute_calls)
        source = inspect.getsource(getattr(of, f"build_{name.replace('.', '_')}_request"))
        parts = re.split(r"\{(\w+)\}", re.search(r'_url = \(?\s*"(.*?)"\s*\n', source)[1])  # type: ignore[index]
        form = lambda part: f"(?P<{part}>{'.' if part == 'scope' else '[^/]'}+)"  # noqa: E731
        path = "".join(form(part) if n % 2 else re.escape(part) for n, part in enumerate(parts))
        version = re.search(r'"api-version", "([0-9-]+)"', source)[1]  # type: ignore[index]
        verb = re.search(r'method="([A-Z]+)"', source)[1]  # type: ignore[index]
        query = frozenset(re.findall(r'_params\["([^"]+)"\] =', source)) | {"$skiptoken"}
        found.append(_Route(name, verb, re.compile(path, re.IGNORECASE), version, query))
    for name, (path, version) in BESIDE.items():
        found.append(_Route(name, "GET", re.compile(path, re.IGNORECASE), version, frozenset({"api-version"})))
    return tuple(found)


def call(verb: str, url: str, body: bytes, headers: Mapping[str, str]) -> Call | None:
    """The call that a request is; None: there is none of that path. Raises Wrong."""
    split = urlsplit(url)
    for route in _routes():
        found = route.path.fullmatch(split.path)
        if route.verb != verb or found is None:
            continue
        query = dict(parse_qsl(split.query, keep_blank_values=True, strict_parsing=bool(split.query)))
        if "api-version" not in query:
            raise Wrong("The api-version query parameter (?api-version=) is required.", "MissingApiVersionParameter")
        if query["api-version"] != route.version:
            raise Wrong(f"The api-version '{query['api-version']}' is invalid.", "InvalidApiVersionParameter")
        if more := query.keys() - route.query:
            raise Wrong(f"the query parameters {sorted(more)} aren't known", "InvalidQueryParameter")
        path = {key: unquote(value) for key, value in found.groupdict().items()}
        lower = {key.lower(): value for key, value in headers.items()}
        return Call(route.name, path, query, _body(route.name, body), lower)
    return None


def _body(name: str, body: bytes) -> Any:
    model = CALLS.get(name, (None, None))[0]
    if model is None:
        if body:
            raise Wrong("this call takes no body")
        return None
    try:
        said = json.loads(body)
    except ValueError as error:
        raise Wrong(f"The request content was invalid and could not be deserialized: '{error}'") from None
    check(said, model, "")
    return said


def check_answer(name: str, answer: Any) -> None:
    """Raises Wrong for what isn't an answer to that call."""
    model = CALLS.get(name, (None, None))[1]
    if isinstance(model, list):
        for n, each in enumerate(answer["value"] if isinstance(answer, dict) else answer):
            check(each, model[0], f"value[{n}]", output=True)
    elif model is not None:
        check(answer, model, "", output=True)


class _Field(typing.NamedTuple):
    type: Any
    output_only: bool
    required: bool


@functools.cache
def _fields(model: Any) -> dict[str, _Field]:
    """By their names in JSON."""
    model({})  # it knows its fields from then on
    package = inspect.getmodule(model).__name__.rpartition(".")[0]  # type: ignore[union-attr]
    of = {"azure.mgmt.compute.models": compute, "azure.mgmt.network.models": network}.get(package, resource)
    hints = typing.get_type_hints(model, localns={"_models": of})
    known = {}
    for name, rest in model._attr_to_rest_field.items():
        optional = type(None) in typing.get_args(hints[name])
        known[rest._rest_name] = _Field(hints[name], rest._visibility == ["read"], not optional)
    return known


def check(value: Any, model: Any, where: str, *, output: bool = False) -> None:
    """Raises Wrong, for the first field that isn't as a model has it. `output`: of an answer."""
    if not isinstance(value, dict):
        raise Wrong(f"'{where}': an object is wanted")
    known = _fields(model)
    for key, each in value.items():
        place = f"{where}.{key}".lstrip(".")
        if key not in known:
            raise Wrong(f"Could not find member '{key}' on object of type '{model.__name__}'. Path '{place}'.")
        if known[key].output_only and not output:
            raise Wrong(f"'{place}' is read-only", "InvalidParameter")
        _value(each, known[key].type, place, output)
    if missing := [key for key, each in known.items() if each.required and key not in value and not each.output_only]:
        raise Wrong(
            f"Required parameter '{where}.{missing[0]}' is missing (null).".replace("'.", "'"), "InvalidParameter"
        )


def _value(value: Any, kind: Any, where: str, output: bool) -> None:
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        enums = [each for each in inner if isinstance(each, type) and issubclass(each, enum.Enum)]
        rest = [each for each in inner if each is not type(None) and each not in enums]
        if value is None and type(None) in inner:
            return
        if enums and where.rpartition(".")[2] not in _OPEN:
            if value not in [each.value for each in enums[0]]:
                raise Wrong(f"'{where}': {json.dumps(value)} is no {enums[0].__name__}", "InvalidParameter")
            return
        _value(value, rest[0], where, output)
    elif origin is list:
        if not isinstance(value, list):
            raise Wrong(f"'{where}': a list is wanted")
        for n, each in enumerate(value):
            _value(each, inner[0], f"{where}[{n}]", output)
    elif origin is dict:
        if not isinstance(value, dict):
            raise Wrong(f"'{where}': an object is wanted")
        for key, each in value.items():
            _value(each, inner[1], f"{where}.{key}", output)
    elif isinstance(kind, type) and hasattr(kind, "_is_model"):
        check(value, kind, where, output=output)
    else:
        _plain(value, kind, where)


def _plain(value: Any, kind: Any, where: str) -> None:
    fits = {
        str: isinstance(value, str),
        bool: isinstance(value, bool),
        int: isinstance(value, int) and not isinstance(value, bool),
        float: isinstance(value, int | float) and not isinstance(value, bool),
        datetime: isinstance(value, str) and "T" in value,
    }
    if not fits.get(kind, True):
        raise Wrong(f"Error converting value {json.dumps(value)} to type '{kind.__name__}'. Path '{where}'.")
