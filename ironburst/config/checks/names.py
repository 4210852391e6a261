"""Names and numbers that only one thing may have: halls, racks, nodes, switches, addresses, MACs, serials."""

from __future__ import annotations

from ironburst.config.checks.common import At, Findings, cloud_nodes, owned_nodes, schedulers
from ironburst.config.cloud_models import Group, Pool
from ironburst.config.finding import Finding, path_of
from ironburst.config.models import ClusterConfig
from ironburst.nodes import naming

ONE_EACH = {
    "names": "node name",
    "node_objects": "Node object",
    "addresses": "address",
    "macs": "MAC address",
    "serials": "serial number",
}
"""key of owned nodes: what its values are"""


class _Seen:
    """What has been named so far, and where."""

    def __init__(self) -> None:
        self._first: dict[tuple[str, str], str] = {}

    def once(self, what: str, value: str, path: str) -> Findings:
        """A finding where this kind of thing has that name already, whatever its case."""
        first = self._first.setdefault((what, value.lower()), path)
        if first != path:
            yield Finding(path, value, "duplicate", f"{what} {value!r} is used already at {first}; each needs its own")


def duplicates(config: ClusterConfig) -> Findings:
    """What is named twice."""
    seen = _Seen()
    yield from seen.once("partition", naming.WAITING_PARTITION, "the jobs that are larger than home")
    yield from _halls(config, seen)
    yield from _owned(config, seen)
    for at, each in schedulers(config):
        yield from seen.once("partition", each.home_partition, at("home_partition"))
    yield from _cloud(config, seen)


def _halls(config: ClusterConfig, seen: _Seen) -> Findings:
    for h, hall in enumerate(config.halls):
        yield from seen.once("hall", hall.name, path_of("halls", h, "name"))
        for r, rack in enumerate(hall.racks):
            yield from seen.once(f"rack of {hall.name}", rack.name, path_of("halls", h, "racks", r, "name"))
            for p, pdu in enumerate(rack.pdus):
                yield from seen.once(
                    f"PDU of {hall.name}", pdu.name, path_of("halls", h, "racks", r, "pdus", p, "name")
                )
        for c, circuit in enumerate(hall.circuits):
            yield from seen.once(f"circuit of {hall.name}", circuit.name, path_of("halls", h, "circuits", c, "name"))


def _owned(config: ClusterConfig, seen: _Seen) -> Findings:
    for at, _, nodes in owned_nodes(config):
        for key, what in ONE_EACH.items():
            for i, value in enumerate(getattr(nodes, key) or []):
                yield from seen.once(what, value, at(key, i))
        for i, address in enumerate(nodes.bmc.addresses if nodes.bmc else []):
            yield from seen.once("BMC address", address.rstrip("/"), at("bmc", "addresses", i))
    for h, hall in enumerate(config.halls):
        for s, switches in enumerate(hall.switches):
            for i, name in enumerate(switches.names):
                yield from seen.once("node name", name, path_of("halls", h, "switches", s, "names", i))


def _bought(nodes: Group | Pool, at: At, seen: _Seen) -> Findings:
    """Two that launch into the same reservation would take each other's instances."""
    for value, key in nodes.reserved:
        yield from seen.once("capacity reservation", value, at(*key))


def _cloud(config: ClusterConfig, seen: _Seen) -> Findings:
    for at, nodes in cloud_nodes(config):
        path, partition, count = at("name"), nodes.name, nodes.count if isinstance(nodes, Group) else nodes.max_nodes
        if isinstance(nodes, Pool):
            partition = naming.burst_partition(nodes.name)
        yield from seen.once("partition", partition, path)
        for node in naming.numbered(nodes.name, count):
            yield from seen.once("node name", node, path)
        yield from _bought(nodes, at, seen)
