"""Rented nodes whose Node objects are called as their instances are, as on EKS (docs/adr/0042): which of them is which
declared node. A node says it by a label; the record says whether it is believed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from ironburst.adapters.kubernetes.nodes import NodesRecord
from ironburst.adapters.kubernetes.site import KubernetesSite
from ironburst.adapters.kubernetes.views import NodeView, PodView

_ID = re.compile(r"i-[0-9a-f]{8,17}")


class Names:
    """What is known of them. Of fixed nodes the document knows it (KubernetesSite)."""

    def __init__(self, site: KubernetesSite):
        self._site, self._objects = site, dict[str, str]()  # rented node -> its object
        self.known = not site.by_instance  # else the record is to be read first

    def learn(self, kept: NodesRecord) -> None:
        """From the record."""
        self._objects, self.known = dict(kept.objects), True

    def object_of(self, node: str) -> str:
        """What a node's own object is called."""
        return self._objects.get(node) or self._site.object_of(node)

    def key_of(self, node: str) -> str:
        """What it is kept by."""
        return self._objects.get(node, node)

    def declared(self, copies: Mapping[str, Any]) -> Mapping[str, Any]:
        """Copies of a cluster with the declared names of nodes. Who claims one and isn't believed keeps its own."""
        if not self._objects:
            return copies
        ours = {their: our for our, their in self._objects.items()}
        nodes: Mapping[str, NodeView] = copies["nodes"]
        pods: Mapping[str, PodView] = copies["pods"]
        named = {ours[key]: replace(view, key=ours[key]) for key, view in nodes.items() if key in ours}
        others = {key: view for key, view in nodes.items() if key not in ours}
        placed = {key: replace(pod, node=ours[pod.node]) if pod.node in ours else pod for key, pod in pods.items()}
        return {**copies, "nodes": others | named, "pods": placed}


def gone(kept: NodesRecord, names: Collection[str]) -> NodesRecord:
    """These nodes were given back. Pure."""
    objects = {node: its for node, its in kept.objects.items() if node not in names}
    return replace(kept, up=kept.up - set(names), objects=objects)


def joined(
    nodes: Mapping[str, NodeView], permits: Collection[str], site: KubernetesSite
) -> tuple[dict[str, str], list[str]]:
    """(node with a permit -> the object that is it from now on, sentences of those that nobody asked for). `nodes`: by
    declared names where they have one. Two that claim the same name are both left out: only one can have been
    launched. Pure.
    """
    claims: dict[str, list[str]] = {}
    odd = []
    for key, view in nodes.items():
        if not view.says or key in site.pool_of or key in site.ours.values():
            continue
        if view.says in permits and view.says not in nodes and _ID.fullmatch(key):
            claims.setdefault(view.says, []).append(key)
        else:
            odd.append(f"node {key} says that it is {view.says}, which was not asked for, or is there already")
    for name, objects in sorted(claims.items()):
        if len(objects) > 1:
            odd.append(f"nodes {' and '.join(sorted(objects))} both say that they are {name}: neither is let in")
    return {name: objects[0] for name, objects in claims.items() if len(objects) == 1}, odd
