"""The engine's side of the protocol, as small as tests of a stand-in need it."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import struct_pb2
from pulumi.runtime.proto import provider_pb2 as pb
from pulumi.runtime.proto import provider_pb2_grpc

from lab.provider.wire import Props, decode, encode


class Refused(Exception):
    """Check or CheckConfig named failures; `failures` maps paths to reasons."""

    def __init__(self, failures: Any):
        self.failures = {f.property: f.reason for f in failures}
        super().__init__("; ".join(f"{path}: {reason}" for path, reason in self.failures.items()))


@dataclass
class Held:
    """A resource as the engine's state holds it."""

    urn: str
    id: str
    inputs: Props
    outputs: Props


def urn_of(token: str, name: str) -> str:
    return f"urn:pulumi:test::test::ironburst:index:Cluster${token}::{name}"


class Engine:
    """One plugin process, found on PATH as the engine finds it, and the calls an engine makes. A subclass names the
    plugin.
    """

    package: str
    folder: Path  # of its executable

    def __init__(self, settings: Props | None = None, **environment: str):
        command = shutil.which(f"pulumi-resource-{self.package}", path=str(self.folder))
        self.process = subprocess.Popen(
            [command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
        )
        port = self.process.stdout.readline().strip()
        if not port.isdigit():
            raise RuntimeError(f"the plugin didn't start: {self.process.stderr.read()}")
        self.channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        self.stub = provider_pb2_grpc.ResourceProviderStub(self.channel)
        if settings is not None:
            self.check_config(settings)
            self.configure(settings)

    def close(self) -> None:
        self.channel.close()
        self.process.terminate()
        self.process.wait(10)
        self.process.stdout.close()
        self.process.stderr.close()

    def check_config(self, settings: Props) -> None:
        answer = self.stub.CheckConfig(
            pb.CheckRequest(
                urn=f"urn:pulumi:test::test::pulumi:providers:{self.package}::default", news=encode(settings)
            )
        )
        if answer.failures:
            raise Refused(answer.failures)

    def configure(self, settings: Props) -> Any:
        return self.stub.Configure(pb.ConfigureRequest(args=encode(settings), acceptSecrets=True))

    def check(self, urn: str, news: Props, olds: Props | None = None, seed: bytes | None = None) -> Props:
        request = pb.CheckRequest(
            urn=urn, news=encode(news), olds=encode(olds or {}), randomSeed=seed or secrets.token_bytes(32)
        )
        answer = self.stub.Check(request)
        if answer.failures:
            raise Refused(answer.failures)
        return decode(answer.inputs)

    def preview(self, token: str, name: str, news: Props) -> Props:
        """Planned outputs of a creation."""
        urn = urn_of(token, name)
        inputs = self.check(urn, news)
        return decode(self.stub.Create(pb.CreateRequest(urn=urn, properties=encode(inputs), preview=True)).properties)

    def create(self, token: str, name: str, news: Props, seed: bytes | None = None) -> Held:
        urn = urn_of(token, name)
        inputs = self.check(urn, news, seed=seed)
        made = self.stub.Create(pb.CreateRequest(urn=urn, properties=encode(inputs), timeout=30))
        return Held(urn, made.id, inputs, decode(made.properties))

    def diff(self, held: Held, news: Props) -> Any:
        inputs = self.check(held.urn, news, held.inputs)
        return self.stub.Diff(self._diff(held, inputs))

    @staticmethod
    def _diff(held: Held, inputs: Props) -> Any:
        return pb.DiffRequest(
            id=held.id, urn=held.urn, olds=encode(held.outputs), old_inputs=encode(held.inputs), news=encode(inputs)
        )

    def update(self, held: Held, news: Props, preview: bool = False) -> Held:
        inputs = self.check(held.urn, news, held.inputs)
        request = pb.UpdateRequest(
            id=held.id, urn=held.urn, olds=encode(held.outputs), old_inputs=encode(held.inputs), news=encode(inputs)
        )
        request.preview, request.timeout = preview, 30
        return Held(held.urn, held.id, inputs, decode(self.stub.Update(request).properties))

    def read(self, held: Held) -> Held | None:
        """What a refresh gets; None when the resource is gone."""
        request = pb.ReadRequest(id=held.id, urn=held.urn, properties=encode(held.outputs), inputs=encode(held.inputs))
        answer = self.stub.Read(request)
        return Held(held.urn, answer.id, decode(answer.inputs), decode(answer.properties)) if answer.id else None

    def get(self, token: str, name: str, rid: str) -> Held | None:
        """What `Thing.get(name, id)` gets."""
        answer = self.stub.Read(pb.ReadRequest(id=rid, urn=urn_of(token, name), properties=struct_pb2.Struct()))
        return (
            Held(urn_of(token, name), answer.id, decode(answer.inputs), decode(answer.properties))
            if answer.id
            else None
        )

    def delete(self, held: Held) -> None:
        self.stub.Delete(pb.DeleteRequest(id=held.id, urn=held.urn, properties=encode(held.outputs), timeout=30))

    def invoke(self, token: str, args: Props) -> Props:
        answer = self.stub.Invoke(pb.InvokeRequest(tok=token, args=encode(args)))
        if answer.failures:
            raise Refused(answer.failures)
        return decode(getattr(answer, "return"))
