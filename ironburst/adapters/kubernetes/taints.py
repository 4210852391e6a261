"""The taint of rented nodes, and who tolerates it. Pure.

`ironburst.io/rented=<uid of the Node object>.<number>:NoSchedule`. A toleration can't be taken from a pod again; so it
names a value, and it is the value that goes: with the Node object, whose uid is never used twice, or by the next number
when the node is taken from one pod and left to others.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ironburst.adapters.kubernetes.site import NOT_READY, RENTED
from ironburst.adapters.kubernetes.views import NodeView, PodView

Json = dict[str, Any]


def value_of(node: NodeView) -> str:
    """The value of its taint; empty: it isn't in service as a rented node."""
    return next((value for key, value, _ in node.taints if key == RENTED), "")


def first_value(uid: str) -> str:
    """For a node that has just passed its gate."""
    return f"{uid}.0"


def next_value(value: str) -> str:
    """Nobody tolerates it yet."""
    uid, _, number = value.rpartition(".")
    return f"{uid}.{int(number) + 1}"


def shared_value(uid: str, values: Iterable[str]) -> str:
    """For all nodes of one workload of Kueue together; none of these values, which are on nodes now."""
    used = [int(number) for of, _, number in (value.rpartition(".") for value in values) if of == uid]
    return f"{uid}.{max(used, default=-1) + 1}"


def gated(node: NodeView) -> bool:
    """It still has the taint that it registered with."""
    return any(key == NOT_READY for key, _, _ in node.taints)


def open_to_all(pods: Iterable[PodView], value: str, was: bool = False) -> bool:
    """Whether each of the pods tolerates a node whose taint has this value; `was`: or tolerated it before the number
    was raised, so that one that runs there may have started there by that.
    """
    return all(any(each == value or (was and _uid(each) == _uid(value)) for each in pod.tolerates) for pod in pods)


def _uid(value: str) -> str:
    return value.rpartition(".")[0]


def toleration(value: str) -> Json:
    """As a pod has it."""
    return {"key": RENTED, "operator": "Equal", "value": value, "effect": "NoSchedule"}


def with_value(taints: Iterable[Json], value: str) -> list[Json]:
    """A Node's taints: behind the gate, rented by pods that tolerate this value."""
    others = [taint for taint in taints if taint["key"] not in (NOT_READY, RENTED)]
    return [*others, {"key": RENTED, "value": value, "effect": "NoSchedule"}]
