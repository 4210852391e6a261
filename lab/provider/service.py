"""What every stand-in answers alike: who it is, errors as one sentence, and things that are half made."""

from __future__ import annotations

import functools
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc, plugin_pb2, provider_pb2_grpc, status_pb2
from pulumi.runtime.proto import provider_pb2 as pb

from lab.provider.wire import Props, encode

KIND = pb.PropertyDiff
KINDS = {
    ("add", False): KIND.ADD,
    ("add", True): KIND.ADD_REPLACE,
    ("delete", False): KIND.DELETE,
    ("delete", True): KIND.DELETE_REPLACE,
    ("update", False): KIND.UPDATE,
    ("update", True): KIND.UPDATE_REPLACE,
}
"""(what became of a value, whether it can't be changed in place) -> the protocol's word"""


class PluginError(Exception):
    """What the caller did wrong, or what the thing behind the plugin refused: one sentence."""


def short(urn: str) -> str:
    """`aws:ec2/vpc:Vpc 'net'` of a URN."""
    parts = urn.split("::", 3)
    return f"{parts[2].rsplit('$', 1)[-1]} {parts[3]!r}" if len(parts) == 4 else urn


def answered(method: Callable) -> Callable:
    """Errors become one gRPC status with one sentence; anything unforeseen also leaves a traceback on stderr."""

    @functools.wraps(method)
    def call(self: StandIn, request: Any, context: Any) -> Any:
        try:
            return method(self, request, context)
        except Exception as error:
            message = self.sentence(error)
            if message is None:
                if not context.is_active() or not str(error):  # context.abort raises a bare Exception
                    raise
                traceback.print_exc(file=sys.stderr)
                message = f"bug in the {self.package} stand-in: {type(error).__name__}: {error}"
        where = getattr(request, "urn", "") or getattr(request, "tok", "")
        return context.abort(grpc.StatusCode.UNKNOWN, f"{short(where)}: {message}")

    return call


class StandIn(provider_pb2_grpc.ResourceProviderServicer):
    """One process, one provider configuration. A subclass names its `package` and `version`."""

    package: str
    version: str

    def __init__(self, engine: str | None = None):
        self.engine, self.cancelled = engine, threading.Event()

    def sentence(self, error: Exception) -> str | None:
        """What is said of an expected error; None: it is a bug."""
        return str(error) if isinstance(error, PluginError | ValueError) else None

    def Handshake(self, request: Any, _context: Any) -> Any:
        self.engine = request.engine_address or self.engine
        return pb.ProviderHandshakeResponse(
            accept_secrets=True, accept_resources=False, accept_outputs=False, supports_autonaming_configuration=False
        )

    def Attach(self, _request: Any, _context: Any) -> Any:
        return empty_pb2.Empty()

    def GetPluginInfo(self, _request: Any, _context: Any) -> Any:
        return plugin_pb2.PluginInfo(version=self.version)

    def Cancel(self, _request: Any, _context: Any) -> Any:
        self.cancelled.set()
        return empty_pb2.Empty()

    def log(self, text: str, urn: str = "", warning: bool = False) -> None:
        """Tell the user; an engine that doesn't listen is no reason to fail."""
        if self.engine:
            with grpc.insecure_channel(self.engine) as channel:
                severity = engine_pb2.WARNING if warning else engine_pb2.INFO
                try:
                    engine_pb2_grpc.EngineStub(channel).Log(
                        engine_pb2.LogRequest(severity=severity, message=text, urn=urn), timeout=5
                    )
                except grpc.RpcError:
                    print(text, file=sys.stderr)

    @staticmethod
    def half_made(context: Any, rid: str, outputs: Props, inputs: Props | None, message: str) -> NoReturn:
        """The thing exists, but isn't as asked: the engine keeps its id, so that the next run goes on instead of
        leaking it.
        """
        known = {"inputs": encode(inputs)} if inputs is not None else {}
        detail = pb.ErrorResourceInitFailed(id=rid, properties=encode(outputs), reasons=[message], **known)
        status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=message)
        status.details.add().Pack(detail)
        context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
        context.abort(grpc.StatusCode.UNKNOWN, message)
