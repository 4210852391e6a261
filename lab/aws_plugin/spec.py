"""How a kind of resource is described, and what its functions get to work with."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from botocore.exceptions import ClientError

from lab.aws_plugin.endpoints import Clients
from lab.provider.schema import Problem, Tree, parse_tree
from lab.provider.service import PluginError
from lab.provider.wire import Props

GONE = {
    "NoSuchEntity",
    "ResourceNotFoundException",
    "NotFoundException",
    "NotFound",
    "ParameterNotFound",
    "NatGatewayNotFound",
    "AWS.SimpleQueueService.NonExistentQueue",
    "QueueDoesNotExist",
    "InvalidPlacementGroup.Unknown",
    "InvalidLaunchTemplateName.NotFoundException",
}


class Gone(PluginError):
    """AWS knows no such thing."""


def code_of(error: ClientError) -> str:
    return error.response.get("Error", {}).get("Code", "")


def is_gone(error: Exception) -> bool:
    if not isinstance(error, ClientError):
        return isinstance(error, Gone)
    return code_of(error) in GONE or code_of(error).endswith(".NotFound")


class Aws:
    """One operation's view of AWS: clients of one region, a deadline in seconds, and the engine's wish to stop."""

    def __init__(self, clients: Clients, region: str | None, limit_s: float, cancelled: threading.Event):
        self.clients, self.region = clients, region or clients.region
        self._limit_s, self._end, self._cancelled = limit_s, time.monotonic() + limit_s, cancelled

    def client(self, service: str) -> Any:
        return self.clients.client(service, self.region)

    @property
    def ec2(self) -> Any:
        return self.client("ec2")

    @property
    def account(self) -> str:
        return self.clients.account

    def arn(self, service: str, resource: str) -> str:
        return f"arn:aws:{service}:{self.region}:{self.account}:{resource}"

    def wait(self, what: str, condition: Callable[[], Any], every_s: float = 0.25) -> Any:
        """Ask until `condition` gives something true; PluginError at the deadline or when the engine cancels."""
        while True:
            if answer := condition():
                return answer
            if time.monotonic() > self._end:
                raise PluginError(f"{what}: not so within {self._limit_s:g} s")
            if self._cancelled.wait(every_s):
                raise PluginError(f"{what}: cancelled while waiting")


Tagger = Callable[[Aws, str, Props, dict[str, str], list[str]], Any]


def no_problems(_olds: Props, _news: Props) -> Iterable[Problem]:
    return ()


def nothing(_inputs: Props) -> Iterable[str]:
    return ()


@dataclass(frozen=True)
class Resource:
    """A kind of resource, as a table row.

    inputs:  implemented inputs, `"a b{c d}"` (see schema.parse_tree); `tags` and `region` follow from `tag` and
    `regional`.
    create:  (aws, inputs) -> id. Makes the thing and nothing more, so that a failure later on leaves its id in the
    state.
    apply:   (aws, id, old inputs, new inputs): changes in place; after a create too where `finish` is set (old = {}).
    read:    (aws, id, last known outputs) -> what is there in wire names (`tags`: all of them), None when it is gone.
    delete:  (aws, id, outputs); a thing that is gone already is no error.
    tag:     (aws, id, outputs, tags to set, keys to drop).
    ready:   (aws, id) -> true when it can be used; create waits for it.
    replace: inputs (paths without indexes) that cannot change in place; `x?y`: x, where input y is true.
    name:    the input that is made from the logical name when it isn't given.
    secret:  outputs (and inputs) that are always secret.
    volatile: outputs that an update in place changes.
    check:   (old inputs, new inputs) -> further problems.
    lost:    inputs -> those that the real provider's Read forgets: the next preview takes them for new.
    """

    token: str
    inputs: str
    create: Callable[[Aws, Props], str]
    read: Callable[[Aws, str, Props], Props | None]
    delete: Callable[[Aws, str, Props], Any]
    apply: Callable[[Aws, str, Props, Props], Any] | None = None
    finish: bool = False
    tag: Tagger | None = None
    ready: Callable[[Aws, str], Any] | None = None
    replace: str = ""
    name: str = ""
    secret: str = ""
    volatile: str = ""
    check: Callable[[Props, Props], Iterable[Problem]] = no_problems
    lost: Callable[[Props], Iterable[str]] = nothing
    regional: bool = True

    @cached_property
    def tree(self) -> Tree:
        return parse_tree(self.inputs + (" tags" if self.tag else "") + (" region" if self.regional else ""))

    @cached_property
    def replacing(self) -> frozenset[str]:
        return frozenset(self.replace.split()) | {"region"} | ({self.name} if self.name else set())


# ---- names and shapes
def upper(name: str) -> str:
    return name[:1].upper() + name[1:]


def lower(name: str) -> str:
    return name[:1].lower() + name[1:]


def pick(reply: Props, names: str) -> Props:
    """The named fields (wire names) of a boto3 reply, as far as they are there."""
    return {n: reply[upper(n)] for n in names.split() if reply.get(upper(n)) is not None}


def given(props: Props, names: str) -> Props:
    """The named inputs as boto3 parameters, as far as they are given."""
    return {upper(n): props[n] for n in names.split() if props.get(n) is not None}


def changed(old: Props, new: Props, names: str) -> list[str]:
    return [n for n in names.split() if old.get(n) != new.get(n)]


def tag_list(tags: Props | None) -> list[dict[str, str]]:
    return [{"Key": k, "Value": str(v)} for k, v in (tags or {}).items()]


def tag_map(tags: Iterable[dict[str, str]] | None) -> dict[str, str]:
    """A reply's tags; AWS's own (`aws:...`) are no business of a program."""
    return {t["Key"]: t["Value"] for t in tags or () if not t["Key"].startswith("aws:")}


def one(described: list[Any]) -> Any:
    """The thing that was asked for, None if there is none."""
    return described[0] if described else None


def first(described: list[Any]) -> Any:
    """The thing that was asked for by its id; raises Gone."""
    if not described:
        raise Gone("it is gone")
    return described[0]


def tagger(
    service: str,
    which: Callable[[str, Props], Props],
    tag: str = "tag_resource",
    untag: str = "untag_resource",
    tags: str = "Tags",
    keys: str = "TagKeys",
    shape: Callable[[Props], Any] = tag_list,
) -> Tagger:
    """The `tag` of a kind: its service's two calls, and what they name their arguments. `which`: (id, outputs) ->
    the arguments that say which thing is meant.
    """

    def apply(aws: Aws, rid: str, state: Props, put: dict[str, str], drop: list[str]) -> None:
        client, thing = aws.client(service), which(rid, state)
        if drop:
            getattr(client, untag)(**thing, **{keys: drop})
        if put:
            getattr(client, tag)(**thing, **{tags: shape(put)})

    return apply


def by_arn(_rid: str, state: Props) -> Props:
    """CloudWatch, EventBridge and Budgets name what is tagged by its ARN."""
    return {"ResourceARN": state["arn"]}


RENAMED = {"securityGroups": "Groups", "vpcSecurityGroupIds": "SecurityGroupIds", "okActions": "OKActions"}


def to_boto(shape: Any, value: Any) -> Any:
    """A wire value as boto3 wants it by botocore's own model: names, numbers and booleans that the SDK sends as text,
    tag maps.
    """
    kind = shape.type_name
    if kind == "structure":
        return {
            RENAMED.get(k, upper(k)): to_boto(shape.members[RENAMED.get(k, upper(k))], v)
            for k, v in value.items()
            if v is not None
        }
    if kind == "list":
        member = shape.member
        if isinstance(value, dict):  # tags {k: v} -> [{Key, Value}], dimensions -> [{Name, Value}]
            key = "Key" if "Key" in member.members else "Name"
            return [{key: k, "Value": str(v)} for k, v in value.items()]
        return [to_boto(member, v) for v in value]
    if kind == "boolean":
        return value if isinstance(value, bool) else str(value).lower() == "true"
    if kind in ("integer", "long"):
        return int(value)
    return float(value) if kind in ("float", "double") else str(value) if kind == "string" else value


def from_boto(value: Any) -> Any:
    """What boto3 gave, as wire values: the way back of `to_boto`."""
    if isinstance(value, dict):
        back = {v: k for k, v in RENAMED.items()}
        return {back.get(k, lower(k)): from_boto(v) for k, v in value.items()}
    if isinstance(value, list):
        if value and isinstance(value[0], dict) and set(value[0]) == {"Key", "Value"}:
            return tag_map(value)
        return [from_boto(v) for v in value]
    return value


def input_shape(client: Any, operation: str, *members: str) -> Any:
    """The botocore shape of an operation's input, or of a member of it."""
    shape = client.meta.service_model.operation_model(operation).input_shape
    for member in members:
        shape = shape.members[member]
    return shape


# ---- what all EC2 resources share
def tag_spec(kind: str, props: Props) -> Props:
    tags = tag_list(props.get("tagsAll"))
    return {"TagSpecifications": [{"ResourceType": kind, "Tags": tags}]} if tags else {}


def ec2_tag(aws: Aws, rid: str, _state: Props, put: dict[str, str], drop: list[str]) -> None:
    if drop:
        aws.ec2.delete_tags(Resources=[rid], Tags=[{"Key": k} for k in drop])
    if put:
        aws.ec2.create_tags(Resources=[rid], Tags=tag_list(put))
