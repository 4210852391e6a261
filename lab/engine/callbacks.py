"""Calls back into the program: transforms and resource hooks."""

import threading

import grpc
from pulumi.runtime.proto import callback_pb2, callback_pb2_grpc, resource_pb2

from lab.engine.errors import StepFailed
from lab.engine.events import Events, Step
from lab.engine.properties import Props, to_struct
from lab.engine.provider import CHANNEL_OPTIONS
from lab.engine.state import urn_parts

# RegisterResourceRequest field -> TransformResourceOptions field
_LISTS = {
    "dependencies": "depends_on",
    "ignoreChanges": "ignore_changes",
    "replaceOnChanges": "replace_on_changes",
    "aliases": "aliases",
    "additionalSecretOutputs": "additional_secret_outputs",
    "replace_with": "replace_with",
}
_TEXTS = {
    "version": "version",
    "provider": "provider",
    "pluginDownloadURL": "plugin_download_url",
    "deletedWith": "deleted_with",
    "importId": "import",
}
_OPTIONAL = {"protect": "protect", "retainOnDelete": "retain_on_delete"}
_MESSAGES = {"customTimeouts": "custom_timeouts", "hooks": "hooks"}


class Callbacks:
    def __init__(self, events: Events, preview: bool):
        self._events, self._preview = events, preview
        self._lock = threading.Lock()
        self._stubs: dict[str, callback_pb2_grpc.CallbacksStub] = {}
        self._stack_transforms: list[callback_pb2.Callback] = []
        self._transforms: dict[str, list[callback_pb2.Callback]] = {}
        self._hooks: dict[str, resource_pb2.RegisterResourceHookRequest] = {}

    def _invoke(self, callback: callback_pb2.Callback, request, answer):
        with self._lock:
            if callback.target not in self._stubs:
                self._stubs[callback.target] = callback_pb2_grpc.CallbacksStub(
                    grpc.insecure_channel(callback.target, CHANNEL_OPTIONS)
                )
            stub = self._stubs[callback.target]
        try:
            sent = callback_pb2.CallbackInvokeRequest(token=callback.token, request=request.SerializeToString())
            answer.ParseFromString(stub.Invoke(sent).response)
        except grpc.RpcError as error:
            raise StepFailed(error.details() or str(error.code())) from None
        return answer

    # -- transforms ----------------------------------------------------------------------------------------------------

    def add_stack_transform(self, callback: callback_pb2.Callback) -> None:
        self._stack_transforms.append(callback)

    def remember_transforms(self, urn: str, request: resource_pb2.RegisterResourceRequest) -> None:
        """For the children of `urn`."""
        self._transforms[urn] = [*request.transforms, *self._transforms.get(request.parent, [])]

    def transform(self, request: resource_pb2.RegisterResourceRequest) -> resource_pb2.RegisterResourceRequest:
        """Own transforms, then the parents', then the stack's."""
        for callback in [*request.transforms, *self._transforms.get(request.parent, []), *self._stack_transforms]:
            answer = self._invoke(
                callback,
                resource_pb2.TransformRequest(
                    type=request.type,
                    name=request.name,
                    custom=request.custom,
                    parent=request.parent,
                    properties=request.object,
                    options=_options(request),
                ),
                resource_pb2.TransformResponse(),
            )
            changed = resource_pb2.RegisterResourceRequest()
            changed.CopyFrom(request)
            changed.object.CopyFrom(answer.properties)
            if answer.HasField("options"):
                _apply(answer.options, changed)
            request = changed
        return request

    # -- hooks ---------------------------------------------------------------------------------------------------------

    def add_hook(self, request: resource_pb2.RegisterResourceHookRequest) -> None:
        if request.name in self._hooks:
            raise StepFailed(f"the resource hook {request.name!r} is registered twice")
        self._hooks[request.name] = request

    def run_hooks(self, kind: str, step: Step) -> None:
        """`kind` is BeforeCreate, AfterCreate, ...; StepFailed when a hook fails or was not registered."""
        resource = step.resource
        for name in resource.resourceHooks.get(kind, []):
            hook = self._hooks.get(name)
            if hook is None:
                raise StepFailed(
                    f"the program did not register the resource hook {name!r} that {resource.urn} names", resource.urn
                )
            if self._preview and not hook.on_dry_run:
                continue
            after = kind.startswith("After")
            request = resource_pb2.ResourceHookRequest(
                urn=resource.urn,
                id=resource.id if after or step.old else "",
                name=urn_parts(resource.urn)[1],
                type=resource.type,
                new_inputs=_struct(step.new and step.new.inputs),
                old_inputs=_struct(step.old and step.old.inputs),
                new_outputs=_struct(step.new.outputs if step.new and after else None),
                old_outputs=_struct(step.old and step.old.outputs),
            )
            try:
                error = self._invoke(hook.callback, request, resource_pb2.ResourceHookResponse()).error
            except StepFailed as failed:
                error = str(failed)
            if error and hook.ignore_errors:
                self._events.diagnostic("warning", f"resource hook {name!r} failed: {error}", resource.urn)
            elif error:
                raise StepFailed(f"resource hook {name!r} failed: {error}", resource.urn)


def _struct(props: Props | None):
    return None if props is None else to_struct(props)


def _options(request) -> resource_pb2.TransformResourceOptions:
    options = resource_pb2.TransformResourceOptions()
    for ours, theirs in _LISTS.items():
        getattr(options, theirs).extend(getattr(request, ours))
    for ours, theirs in _TEXTS.items():
        setattr(options, theirs, getattr(request, ours))
    for ours, theirs in _OPTIONAL.items():
        if request.HasField(ours):
            setattr(options, theirs, getattr(request, ours))
    if request.deleteBeforeReplaceDefined or request.deleteBeforeReplace:
        options.delete_before_replace = request.deleteBeforeReplace
    for ours, theirs in _MESSAGES.items():
        if request.HasField(ours):
            getattr(options, theirs).CopyFrom(getattr(request, ours))
    options.providers.update(request.providers)
    return options


def _apply(options, request) -> None:
    for ours, theirs in _LISTS.items():
        request.ClearField(ours)
        getattr(request, ours).extend(getattr(options, theirs))
    for ours, theirs in _TEXTS.items():
        setattr(request, ours, getattr(options, theirs))
    for ours, theirs in _OPTIONAL.items():
        request.ClearField(ours)
        if options.HasField(theirs):
            setattr(request, ours, getattr(options, theirs))
    request.deleteBeforeReplaceDefined = options.HasField("delete_before_replace")
    request.deleteBeforeReplace = options.delete_before_replace
    for ours, theirs in _MESSAGES.items():
        request.ClearField(ours)
        if options.HasField(theirs):
            getattr(request, ours).CopyFrom(getattr(options, theirs))
    request.ClearField("providers")
    request.providers.update(options.providers)
