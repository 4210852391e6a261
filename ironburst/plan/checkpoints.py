"""Whether `pulumi up` has to write its state after each step, or at its end is enough (docs/adr/0125)."""

from __future__ import annotations

from collections.abc import Iterable

from ironburst.plan.preview import ResourceChange

_COMPONENT = "ironburst:components:"
_NODE = "baremetal:index:Node"


def needed(changes: Iterable[ResourceChange]) -> bool:
    """False where an `up` only reads owned nodes' BMCs: what a process that dies would not have written down, the next
    one reads again. A node with an installation is none of these: the state says that it was installed once.
    """
    return not all(_read_only(each) for each in changes)


def _read_only(change: ResourceChange) -> bool:
    if change.kind.startswith(_COMPONENT):
        return True
    installs = "install" in change.before or "install" in change.after
    return change.kind == _NODE and change.op in ("create", "update") and not installs
