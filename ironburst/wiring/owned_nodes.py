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


def declared(config: ClusterConfig, drivers: Mapping[str, str] | None = None) -> dict[str, NodeInputs]:
    """By name, in the order of the file; `drivers`: the lock's."""
    region = config.cloud.region if config.cloud else None
    allowed = allowed_mismatches(config.allow)
    return {
        given["name"]: NodeInputs.model_validate(given)
        for hall in config.halls
        for nodes in hall.nodes
        for given in node_inputs(nodes, region, allowed=allowed, drivers=drivers)
    }


def one(path: Path, name: str) -> NodeInputs:
    """The node with this name. Raises BadInput."""
    (node,) = chosen(path, [name])
    return node


def chosen(path: Path, names: Sequence[str]) -> list[NodeInputs]:
    """The nodes with these names; without any, all. Raises BadInput, also where there are none."""
    config = valid.valid(path)
    try:
        known = declared(config, lockfile.drivers(path))
    except LockError as error:
        raise BadInput(f"{error}; {lockfile.restore(path)}") from None
    missing = [name for name in names if name not in known]
    if missing or not known:
        what = f"{missing[0]!r} is no managed node with a bmc" if missing else "there is no managed node with a bmc"
        raise BadInput(f"{what} in {path}; it has: {', '.join(known) or 'none'}")
    return [known[name] for name in names or known]


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


def find(path: Path, name: str) -> OwnedNode:
    """The node that is meant. Raises BadInput."""
    try:
        config = load_valid(path, now=datetime.now(UTC)).config
    except ConfigError as error:
        more = f" and {len(error.findings) - 1} more" if len(error.findings) > 1 else ""
        raise BadInput(f"{path}: {error.findings[0]}{more}: `ironburst validate` says it all") from None
    region = config.cloud.region if config.cloud else None
    allowed, known = allowed_mismatches(config.allow), []
    drivers = lockfile.drivers(path)  # the stack is valid, so its lock can be read
    for hall in config.halls:
        for nodes in hall.nodes:
            for inputs in node_inputs(nodes, region, config.ssh.user, allowed=allowed, drivers=drivers):
                known.append(inputs["name"])
                if inputs["name"] == name:
                    return OwnedNode(config, hall, nodes, NodeInputs.model_validate(inputs))
    raise BadInput(f"{name!r} is no node with a BMC in {path}; it has: {', '.join(known) or 'none'}")
