"""`ironburst node netboot STACK_FILE`: dnsmasq's settings, where BMCs load no medium."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path

from ironburst.baremetal.netboot import Client, dnsmasq
from ironburst.cli import Subparsers, site_options
from ironburst.config import declared_halls
from ironburst.config.finding import ConfigError
from ironburst.config.models import Nodes
from ironburst.config.stack import load_valid
from ironburst.system.bad_input import BadInput


def add_parser(verbs: Subparsers) -> None:
    """The verb's arguments and help."""
    parser = verbs.add_parser(
        "netboot",
        help="dnsmasq's settings for UEFI HTTP boot, where BMCs load no medium",
        description="Print dnsmasq's settings by which the firmware of each node of allow_install gets its own install "
        "medium. It serves no other node, and no DNS.",
        epilog="exit codes: 0 printed, 2 bad input, 1 a bug",
    )
    option = parser.add_argument
    option("stack_file", type=Path, metavar="STACK_FILE", help="as in stacks/Pulumi.prod.yaml")
    option("--interface", required=True, metavar="NAME", help="of the host where dnsmasq runs, in the nodes' network")
    option("--hall", metavar="NAME", help="needed where several halls are declared")
    parser.set_defaults(func=run)


@site_options.guarded
def run(arguments: argparse.Namespace) -> int:
    """Print; the exit code."""
    try:
        config = load_valid(arguments.stack_file, now=datetime.now(UTC)).config
    except ConfigError as error:
        raise BadInput(f"{arguments.stack_file}: {error}") from None
    hall = declared_halls.one(config.halls, arguments.hall)
    clients = [client for nodes in hall.nodes for client in _clients(nodes)]
    if not clients:
        raise BadInput(f"hall {hall.name}: no node may be installed; name it in its install.allow_install")
    installs = [nodes.install for nodes in hall.nodes if nodes.install and nodes.install.allow_install]
    gateway = next((each.gateway for each in installs if each.gateway), None)
    dns = next((each.dns for each in installs if each.dns), [])
    print(dnsmasq(clients, hall.cidr, arguments.interface, gateway, dns), end="")
    print(f"for {', '.join(client.node for client in clients)}", file=sys.stderr)
    return 0


def _clients(nodes: Nodes) -> list[Client]:
    install = nodes.install
    if install is None or not install.allow_install:
        return []
    if not nodes.macs:
        raise BadInput(f"{nodes.names[0]}: network boot knows a node by its MAC address: declare macs")
    return [
        Client(node, nodes.macs[n], nodes.addresses[n], install.medium_of(node))
        for n, node in enumerate(nodes.names)
        if node in install.allow_install
    ]
