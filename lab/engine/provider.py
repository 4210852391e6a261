"""One provider resource's plugin process: ResourceProvider calls with plain property maps."""

import contextlib
import json
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import errors_pb2, provider_pb2, provider_pb2_grpc, status_pb2

from lab.engine.errors import StepFailed
from lab.engine.properties import (
    Props,
    changed_keys,
    from_struct,
    has_unknown,
    mark_secrets,
    path_contains,
    plain,
    references_as_ids,
    to_struct,
)
from lab.engine.state import Resource, urn_parts

CHANNEL_OPTIONS = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
_REPLACE_KINDS = {
    provider_pb2.PropertyDiff.ADD_REPLACE,
    provider_pb2.PropertyDiff.DELETE_REPLACE,
    provider_pb2.PropertyDiff.UPDATE_REPLACE,
}


@dataclass
class Outcome:
    """What a provider answered to create, update or read. `inputs` None: as they were."""

    id: str = ""
    outputs: Props = field(default_factory=dict)
    inputs: Props | None = None
    init_errors: list[str] = field(default_factory=list)


class InitFailed(StepFailed):
    """The resource exists but did not become ready; it is kept in the state."""

    def __init__(self, message: str, urn: str, outcome: Outcome):
        super().__init__(message, urn)
        self.outcome = outcome


@dataclass
class Diff:
    changed: bool = False
    replaces: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    delete_before_replace: bool = False
    detailed: dict[str, dict] = field(default_factory=dict)

    def inverted(self) -> "Diff":
        """As a refresh shows it: an `up` would delete what the refresh has added."""
        swapped = {"add": "delete", "delete": "add"}
        detailed = {}
        for path, each in self.detailed.items():
            kind, forced, _ = each["kind"].partition("-replace")
            detailed[path] = each | {"kind": swapped.get(kind, kind) + forced}
        return replace(self, detailed=detailed)

    def replace_on(self, paths: list[str]) -> None:
        """Apply replaceOnChanges."""
        if not self.changed:
            return
        hit = [key for key in [*self.keys, *self.detailed] if any(path_contains(path, key) for path in paths)]
        self.replaces = list(dict.fromkeys([*self.replaces, *hit]))


class Provider:
    """`configure` first. With unknown configuration in a preview it stays unconfigured and everything of it is
    unknown.
    """

    def __init__(self, urn: str, type_: str, address: str, preview: bool):
        self.urn, self.type = urn, type_
        self.preview = preview
        self.configured = False
        self._channel = grpc.insecure_channel(address, CHANNEL_OPTIONS)
        self._stub = provider_pb2_grpc.ResourceProviderStub(self._channel)
        self._accept_secrets = self._accept_resources = self._supports_preview = False
        self._handshaken = False

    # -- life cycle ----------------------------------------------------------------------------------------------------

    def handshake(self, engine_address: str, root: Path, plugin: Path) -> None:
        try:
            answer = self._stub.Handshake(
                provider_pb2.ProviderHandshakeRequest(
                    engine_address=engine_address,
                    root_directory=str(plugin.parent),
                    program_directory=str(root),
                    configure_with_urn=True,
                )
            )
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.UNIMPLEMENTED:
                raise self._error(error, self.urn) from None
        else:
            self._handshaken = self._supports_preview = True
            self._accept_secrets, self._accept_resources = answer.accept_secrets, answer.accept_resources
        self._optional("GetPluginInfo", empty_pb2.Empty())

    def check_config(self, urn: str, olds: Props, news: Props) -> Props:
        request = provider_pb2.CheckRequest(
            urn=urn, olds=self._send(olds), news=self._send(news), **_named(urn, self.type)
        )
        answer = self._optional("CheckConfig", request)
        if answer is None:
            return news
        _raise_failures(answer.failures, urn)
        checked = self._receive(answer.inputs, news)
        return {**checked, "version": news["version"]} if "version" in news else checked

    def diff_config(self, urn: str, old: Resource, news: Props) -> Diff:
        request = provider_pb2.DiffRequest(**self._change(old, urn, news))
        answer = self._optional("DiffConfig", request)
        keys = changed_keys(old.inputs, news)
        return Diff(bool(keys), [], keys) if answer is None else _diff(answer, keys)

    def configure(self, inputs: Props, id_: str) -> None:
        if has_unknown(inputs):
            return
        package = self.type.rsplit(":", 1)[-1]
        variables = {
            f"{package}:config:{key}": value if isinstance(value, str) else json.dumps(value)
            for key, value in plain(inputs).items()
        }
        request = provider_pb2.ConfigureRequest(
            variables=variables,
            args=to_struct(inputs if self._accept_secrets or not self._handshaken else plain(inputs)),
            acceptSecrets=True,
            acceptResources=True,
            sends_old_inputs=True,
            sends_old_inputs_to_delete=True,
            id=id_,
            urn=self.urn,
            **_named(self.urn, self.type),
        )
        answer = self._call("Configure", request, self.urn)
        if not self._handshaken:
            self._accept_secrets, self._accept_resources = answer.acceptSecrets, answer.acceptResources
            self._supports_preview = answer.supportsPreview
        self.configured = True

    def cancel(self) -> None:
        with contextlib.suppress(grpc.RpcError):  # the process is ended next
            self._stub.Cancel(empty_pb2.Empty(), timeout=2)

    # -- resources -----------------------------------------------------------------------------------------------------

    def check(self, urn: str, type_: str, olds: Props, news: Props) -> Props:
        if not self.configured:
            return news
        answer = self._call(
            "Check",
            provider_pb2.CheckRequest(
                urn=urn, olds=self._send(olds), news=self._send(news), randomSeed=os.urandom(32), **_named(urn, type_)
            ),
            urn,
        )
        _raise_failures(answer.failures, urn)
        return self._receive(answer.inputs, news)

    def diff(self, old: Resource, urn: str, news: Props, ignore: list[str]) -> Diff:
        keys = changed_keys(old.inputs, news)
        if not self.configured:
            return Diff(bool(keys), [], keys)
        answer = self._call(
            "Diff",
            provider_pb2.DiffRequest(ignoreChanges=ignore, **self._change(old, urn, news)),
            urn,
        )
        return _diff(answer, keys)

    def create(self, urn: str, type_: str, inputs: Props, timeout: float) -> Outcome:
        """In a preview the id is empty."""
        if not self.configured or (self.preview and not self._supports_preview):
            return Outcome("", inputs if self.configured else {})
        answer = self._call(
            "Create",
            provider_pb2.CreateRequest(
                urn=urn, properties=self._send(inputs), timeout=timeout, preview=self.preview, **_named(urn, type_)
            ),
            urn,
            inputs,
        )
        if not answer.id and not self.preview:
            raise StepFailed(f"the provider created {urn} but returned no id", urn)
        return Outcome("" if self.preview else answer.id, self._receive(answer.properties, inputs))

    def update(self, old: Resource, urn: str, inputs: Props, timeout: float, ignore: list[str]) -> Outcome:
        if not self.configured or (self.preview and not self._supports_preview):
            return Outcome(old.id, inputs if self.configured else {})
        answer = self._call(
            "Update",
            provider_pb2.UpdateRequest(
                timeout=timeout, ignoreChanges=ignore, preview=self.preview, **self._change(old, urn, inputs)
            ),
            urn,
            inputs,
        )
        return Outcome(old.id, self._receive(answer.properties, inputs))

    def delete(self, old: Resource) -> None:
        self._call(
            "Delete",
            provider_pb2.DeleteRequest(
                id=old.id,
                urn=old.urn,
                properties=self._send(old.outputs),
                old_inputs=self._send(old.inputs),
                timeout=old.customTimeouts.get("delete", 0),
                **_named(old.urn, old.type),
            ),
            old.urn,
        )

    def read(self, urn: str, type_: str, id_: str, inputs: Props, outputs: Props, timeout: float) -> Outcome:
        """An empty id: it is gone."""
        answer = self._call(
            "Read",
            provider_pb2.ReadRequest(
                id=id_,
                urn=urn,
                properties=self._send(outputs),
                inputs=self._send(inputs),
                timeout=timeout,
                **_named(urn, type_),
            ),
            urn,
            inputs,
        )
        read = self._receive(answer.inputs, inputs) if answer.HasField("inputs") else None
        return Outcome(answer.id, self._receive(answer.properties, {**inputs, **outputs}), read)

    def invoke(self, token: str, args: Props) -> provider_pb2.InvokeResponse:
        return self._call("Invoke", provider_pb2.InvokeRequest(tok=token, args=to_struct(plain(args))), "")

    # -- wire ----------------------------------------------------------------------------------------------------------

    def _change(self, old: Resource, urn: str, news: Props) -> dict[str, Any]:
        """The fields that every request has which compares an entry with what is wanted."""
        return {
            "id": old.id,
            "olds": self._send(old.outputs),
            "old_inputs": self._send(old.inputs),
            "news": self._send(news),
            "urn": urn,
            **_named(urn, old.type),
        }

    def _send(self, props: Props):
        value: Any = props if self._accept_secrets else plain(props)
        return to_struct(value if self._accept_resources else references_as_ids(value))

    def _receive(self, struct, known: Props) -> Props:
        props = from_struct(struct)
        return props if self._accept_secrets else mark_secrets(props, known)

    def _call(self, method: str, request, urn: str, known: Props | None = None):
        try:
            return getattr(self._stub, method)(request)
        except grpc.RpcError as error:
            raise self._error(error, urn, known) from None

    def _optional(self, method: str, request):
        try:
            return getattr(self._stub, method)(request)
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.UNIMPLEMENTED:
                return None
            raise self._error(error, self.urn) from None

    def _error(self, error, urn: str, known: Props | None = None) -> StepFailed:
        for key, value in error.trailing_metadata() or ():
            if key != "grpc-status-details-bin":
                continue
            for detail in status_pb2.Status.FromString(value).details:
                invalid, init = errors_pb2.InputPropertiesError(), provider_pb2.ErrorResourceInitFailed()
                if detail.Unpack(invalid):
                    lines = "; ".join(f"{e.property_path}: {e.reason}" for e in invalid.errors)
                    return StepFailed(f"{error.details()} {lines}".strip(), urn)
                if detail.Unpack(init):
                    inputs = self._receive(init.inputs, known or {}) if init.HasField("inputs") else None
                    reasons = list(init.reasons) or [error.details()]
                    return InitFailed(
                        "; ".join(dict.fromkeys([error.details(), *reasons])),
                        urn,
                        Outcome(init.id, self._receive(init.properties, known or {}), inputs, reasons),
                    )
        if error.code() == grpc.StatusCode.UNAVAILABLE:
            return StepFailed(
                f"the plugin of {self.urn} cannot be reached ({error.details()}); did its process end?", urn
            )
        return StepFailed(error.details() or str(error.code()), urn)


def _named(urn: str, type_: str) -> dict[str, str]:
    return {"name": urn_parts(urn)[1], "type": type_}


def _diff(answer: provider_pb2.DiffResponse, changed: list[str]) -> Diff:
    """`changed` decides where the provider answers `unknown`."""
    detailed = {
        path: {"kind": provider_pb2.PropertyDiff.Kind.Name(d.kind).lower().replace("_", "-"), "inputDiff": d.inputDiff}
        for path, d in answer.detailedDiff.items()
    }
    replaces = [*answer.replaces, *(path for path, d in answer.detailedDiff.items() if d.kind in _REPLACE_KINDS)]
    if answer.changes == provider_pb2.DiffResponse.DIFF_UNKNOWN:
        some, keys = bool(changed), list(answer.diffs) or changed
    else:
        some, keys = answer.changes == provider_pb2.DiffResponse.DIFF_SOME, list(answer.diffs)
    return Diff(some, list(dict.fromkeys(replaces)), keys or sorted(detailed), answer.deleteBeforeReplace, detailed)


def _raise_failures(failures, urn: str) -> None:
    if failures:
        type_, name = urn_parts(urn)
        reasons = "; ".join(f"{f.property}: {f.reason}" if f.property else f.reason for f in failures)
        raise StepFailed(f"{type_} resource {name!r} has a problem: {reasons}", urn)
