"""The owned nodes of a stack file that have a BMC: what verbs share that speak to one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ironburst.adapters.redfish import client as redfish
from ironburst.adapters.redfish.client import BmcAccess
from ironburst.baremetal.declared import allowed_mismatches, node_inputs
from ironburst.baremetal.hardware import Hardware
from ironburst.baremetal.node import NodeInputs
from ironburst.baremetal.verify import examine
from ironburst.catalog.hardware import gpus
from ironburst.config import lockfile, valid
from ironburst.config.finding import ConfigError
from ironburst.config.models import ClusterConfig, Hall, Nodes
from ironburst.config.stack import load_valid
from ironburst.software.lock import LockError
from ironburst.system import secrets
from ironburst.system.bad_input import BadInput


def access(node: NodeInputs) -> BmcAccess:
    """How to reach its BMC, with the password. Raises BadInput where that doesn't resolve."""
    try:
        password = secrets.resolve(node.password_ref, region=node.secrets_region)
    except secrets.SecretError as error:
        raise BadInput(f"{node.name}: the password of its BMC: {error}") from None
    return redfish.access_of(node, password)


@dataclass(frozen=True)
class OwnedNode:
    """One node of a stack file."""

    config: ClusterConfig
    hall: Hall
    nodes: Nodes
    inputs: NodeInputs

    def bmc(self) -> BmcAccess:
        """Raises BadInput where the password does not resolve."""
        return access(self.inputs)

    def differences(self, hardware: Hardware) -> list[str]:
        """What is not as declared, and nobody answers for."""
        allowed, today = self.inputs.allowances(), datetime.now(UTC).date()
        found = examine(self.inputs.declaration(), hardware, gpus().values(), allowed=allowed, today=today)
        return [each.sentence for each in found.mismatches]


def declared(config: ClusterConfig, drivers: Mapping[str, str] | None = None) -> dict[str, OwnedNode]:
    """By name, in the order of the file; `drivers`: the lock's."""
    allowed = allowed_mismatches(config.allow)
    return {
        given["name"]: OwnedNode(config, hall, nodes, NodeInputs.model_validate(given))
        for hall in config.halls
        for nodes in hall.nodes
        for given in node_inputs(nodes, config.regions, config.ssh.user, allowed=allowed, drivers=drivers)
    }


def chosen(path: Path, names: Sequence[str]) -> list[NodeInputs]:
    """The nodes with these names; without any, all. For looks and for firmware: a lock that doesn't fit the stack (the
    new driver isn't locked yet) stops neither. Raises BadInput, also where there are none.
    """
    config = valid.valid(path)
    try:
        known = declared(config, lockfile.drivers(path))
    except LockError as error:
        raise BadInput(f"{error}; {lockfile.restore(path)}") from None
    return [each.inputs for each in _named(known, names, path)]


def one(path: Path, name: str) -> NodeInputs:
    """The node with this name, as `chosen`. Raises BadInput."""
    (node,) = chosen(path, [name])
    return node


def find(path: Path, name: str) -> OwnedNode:
    """The node with this name, for what installs, sets or powers it: its lock has to fit the stack. Raises BadInput."""
    try:
        config = load_valid(path, now=datetime.now(UTC)).config
    except ConfigError as error:
        raise BadInput(valid.first(path, error.findings)) from None
    (node,) = _named(declared(config, lockfile.drivers(path)), [name], path)  # its lock can be read, as it is valid
    return node


def _named(known: Mapping[str, OwnedNode], names: Sequence[str], path: Path) -> list[OwnedNode]:
    missing = [name for name in names if name not in known]
    if missing or not known:
        what = f"{missing[0]!r} is no managed node with a bmc" if missing else "there is no managed node with a bmc"
        raise BadInput(f"{what} in {path}; it has: {', '.join(known) or 'none'}")
    return [known[name] for name in names or known]
