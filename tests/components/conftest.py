"""Runs components against Pulumi's mocks and records what they register, as it goes over the wire."""

import base64
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import grpc
import pulumi
import pulumi_azure_native
import pulumi_gcp
import pytest
from pulumi.runtime import mocks, rpc

from ironburst.config import stack
from ironburst.config.load import from_value, read_value
from lab.azure import declared as azure
from lab.google.declared import Declared
from lab.google.world import World
from lab.provider.schema import args_class, problems
from tests.azure_stack import SUBSCRIPTION

STACKS = Path(__file__).parents[2] / "stacks"
EKS_CA = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
NOW = datetime(2026, 11, 21, tzinfo=UTC)


@dataclass(frozen=True)
class Registered:
    """One resource: its token, name, parent's name, inputs (wire names) and the options that matter here."""

    token: str
    name: str
    parent: str
    inputs: dict[str, Any]
    ignore_changes: tuple[str, ...]

    @property
    def custom(self) -> bool:
        return not self.token.startswith("ironburst:components:")


@dataclass
class Recording:
    resources: list[Registered] = field(default_factory=list)
    outputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    """component name -> what it registered"""
    logged: list[str] = field(default_factory=list)
    after: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    """(token, name) -> URNs that it waits for"""
    secrets: list[tuple[str, list[str]]] = field(default_factory=list)
    """(token, inputs that are secrets as a whole) of each resource that has some"""
    result: Any = None

    def all(self, token: str) -> list[Registered]:
        """Resources whose token ends so (`ec2/vpc:Vpc`, `components:Network`), by name: they arrive in any order."""
        return sorted((each for each in self.resources if each.token.endswith(token)), key=lambda each: each.name)

    def one(self, token: str, name: str | None = None) -> Registered:
        resources = [each for each in self.all(token) if name in (None, each.name)]
        assert len(resources) == 1, f"{len(resources)} resources {token} {name or ''}"
        return resources[0]


def _identity(_args):
    return {"accountId": "123456789012", "arn": "arn:aws:iam::123456789012:user/ci", "userId": "u", "id": "u"}


def _offerings(args):
    (types,) = [each["values"] for each in args["filters"]]
    rows = [(kind, zone) for kind in types for zone in ("us-east-1a", "us-east-1b")]
    return {"instanceTypes": [kind for kind, _ in rows], "locations": [zone for _, zone in rows]}


def _image(_args):
    return {
        "rootDeviceName": "/dev/sda1",
        "blockDeviceMappings": [
            {"deviceName": "/dev/sdb", "ebs": {}, "noDevice": "", "virtualName": "ephemeral0"},
            {"deviceName": "/dev/sda1", "ebs": {"volume_size": "30"}, "noDevice": "", "virtualName": ""},
        ],
    }


ACCOUNT = {
    "aws:iam/getOpenIdConnectProvider:getOpenIdConnectProvider": lambda args: {"arn": args["url"]},
    "aws:index/getCallerIdentity:getCallerIdentity": _identity,
    "aws:ec2/getInstanceTypeOfferings:getInstanceTypeOfferings": _offerings,
    "aws:ec2/getAmi:getAmi": _image,
    "aws:s3/getBucket:getBucket": lambda _args: {"bucketRegion": "us-east-1"},
    "aws:s3/getObjects:getObjects": lambda args: {"keys": [f"{args.get('prefix', '')}train/1.tar"]},
    "aws:iam/getRoles:getRoles": lambda _args: {"names": ["AWSServiceRoleForEC2Spot"], "arns": ["arn"]},
}
"""What the account answers: function -> arguments -> result, in the wire's names; a test changes it by monkeypatch."""


class _Cloud(mocks.Mocks):
    """Gives every resource an id, an ARN and what else the program reads."""

    def __init__(self) -> None:
        self.google = Declared(World("gpu-prod-4711"))
        self.azure = azure.Declared(azure.World())
        self.azure.world.subscription = SUBSCRIPTION

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str, dict]:
        if args.typ.startswith("gcp:"):
            return self._declared(args, pulumi_gcp, self.google)
        if args.typ.startswith("azure-native:"):
            return self._declared(args, pulumi_azure_native, self.azure)
        extra = {"arn": f"arn:aws:mock:us-east-1:123456789012:{args.name}", "name": args.name, "latestVersion": 1}
        if args.typ.endswith(":Instance"):
            extra["privateIp"] = "10.90.1.4"
        if args.typ == "aws:eks/cluster:Cluster":
            ca = base64.b64encode(EKS_CA.encode()).decode()
            extra |= {"endpoint": "https://ABCD.gr7.us-east-1.eks.amazonaws.com", "certificateAuthority": {"data": ca}}
        if args.typ.endswith(":Queue"):
            extra["url"] = f"http://sqs/{args.name}"
        return f"{args.name}-id", extra | args.inputs

    def _declared(self, args: mocks.MockResourceArgs, sdk: ModuleType, there) -> tuple[str, dict]:
        """By the SDK's own classes to the last key, which mocks let pass; what a resource names is there before it."""
        said = rpc.unwrap_rpc_secret(args.inputs) if rpc.is_rpc_secret(args.inputs) else args.inputs
        wrong = list(problems(args_class(sdk, args.typ), None, said))
        assert not wrong, (args.typ, args.name, wrong)
        status, text = there.handle("POST", f"/lab/declared/{args.typ}", json.dumps(said).encode())
        made = json.loads(text)
        assert status == 200, (args.typ, args.name, made)
        return made["id"], made

    def call(self, args: mocks.MockCallArgs) -> dict:
        return ACCOUNT[args.token](args.args)


class _RefusedByAws(grpc.RpcError):
    def code(self):
        return grpc.StatusCode.UNKNOWN

    def details(self):
        return self.args[0]


class _Monitor(mocks.MockMonitor):
    def __init__(self, recording: Recording) -> None:
        super().__init__(_Cloud())
        self.recording = recording

    def Invoke(self, request):
        try:
            return super().Invoke(request)
        except ValueError as error:  # as the engine sends a refusal
            raise _RefusedByAws(str(error)) from None

    def RegisterResource(self, request):
        reply = super().RegisterResource(request)
        if request.type != "pulumi:pulumi:Stack":
            inputs = rpc.deserialize_properties(request.object)
            self.recording.after[request.type, request.name] = list(request.dependencies)
            hidden = [name for name, value in inputs.items() if rpc.is_rpc_secret(value)]
            if hidden:
                self.recording.secrets.append((request.type, hidden))
                inputs = {name: rpc.unwrap_rpc_secret(value) for name, value in inputs.items()}
            parent = request.parent.split("::")[-1]
            self.recording.resources.append(
                Registered(request.type, request.name, parent, inputs, tuple(request.ignoreChanges))
            )
        return reply

    def RegisterResourceOutputs(self, request):
        name = request.urn.split("::")[-1]
        self.recording.outputs[f"{request.urn.split('::')[2].split('$')[-1]} {name}"] = rpc.deserialize_properties(
            request.outputs
        )
        return super().RegisterResourceOutputs(request)


def record(build, monkeypatch) -> Recording:
    """Calls `build` as a Pulumi program; what it returns (with its outputs resolved) is the recording's `result`."""
    recording = Recording()
    monkeypatch.setattr(pulumi.log, "info", lambda message, *_, **__: recording.logged.append(message))
    mocks.set_mocks(_Cloud(), project="ironburst", stack="test", preview=False, monitor=_Monitor(recording))

    @mocks.test
    def program():
        return pulumi.Output.from_input(build()).apply(lambda result: setattr(recording, "result", result))

    program()
    return recording


@pytest.fixture
def run(monkeypatch):
    """`run(build)` -> Recording."""
    return lambda build: record(build, monkeypatch)


def lab_value() -> dict[str, Any]:
    """The lab stack's declaration as plain data, to be changed by a test."""
    return read_value(STACKS / "Pulumi.lab.yaml")


def valid(value: dict[str, Any]) -> stack.Stack:
    """The stack of a declaration without a lock. Raises ConfigError."""
    return stack.valid(from_value(value), STACKS / "Pulumi.nobodys.yaml", now=NOW)


@pytest.fixture
def value():
    return lab_value()


_built: dict[str, Recording] = {}


@pytest.fixture
def cluster(run):
    """`cluster(value)` builds the whole cluster of a declaration -> Recording; its result is the document. The same
    declaration is built once for all tests, unless `again` asks for another run.
    """
    from components.cluster import Cluster

    def build(value, again=False):
        key = json.dumps(value, sort_keys=True)
        if again or key not in _built:
            declared = valid(value)
            config, software = declared.config, declared.software
            _built[key] = run(lambda: Cluster(config.name, config, software).document)
        return _built[key]

    return build
