"""`ironburst node bios NODE STACK_FILE`: the settings of a node's BIOS beside the declared ones; --set sets them."""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from ironburst.adapters.redfish import boot as redfish_boot
from ironburst.adapters.redfish.bios import PASSING, RedfishBios
from ironburst.adapters.redfish.client import BmcError
from ironburst.baremetal import bios, bios_cycle, cycle
from ironburst.baremetal.bios_cycle import LOOK_S, BiosView, Outcome, Setter
from ironburst.baremetal.cycle import ConsoleError
from ironburst.baremetal.lifecycle import NodeFacts
from ironburst.cli import Subparsers, node_cycle, node_guard, site_options
from ironburst.cli.node_cycle import told
from ironburst.convergence import guard
from ironburst.system.bad_input import BadInput
from ironburst.wiring import owned_nodes
from ironburst.wiring.owned_nodes import OwnedNode

_BECAME: dict[Outcome, str] = {
    "in force": "everything that is declared is in force",
    "waits": "what is set waits for its next start: its BMC offers none into the setup, and it is off",
    "dropped": "its BIOS accepted the settings and dropped them at the start: another setting may rule them out",
    "not taken": f"its BIOS took the settings at none of {bios_cycle.STARTS} starts: they still wait, see its console",
}


def add_parser(verbs: Subparsers) -> None:
    """The verb's arguments and help."""
    parser = node_cycle.add_verb(verbs, "bios", "the settings of a node's BIOS beside the declared ones", run)
    parser.add_argument(
        "--set",
        action="store_true",
        help="set what differs: the node is drained, goes off, starts into its setup, and is as before",
    )
    told = "how long one start may take (default: %(default)s)"
    parser.add_argument("--timeout", default="30m", metavar="DURATION", help=told)
    node_guard.add_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Read, compare, and with --set set; the exit code."""
    limit_s = site_options.duration("--timeout", arguments.timeout, "15m or 1h")
    node = owned_nodes.find(arguments.stack_file, arguments.node)
    if arguments.set:
        _may_be_set(arguments, node)
    console = RedfishBios(node.bmc(), arguments.force)
    view, declared = console.look(), node.nodes.bios
    differs = any(row.order != "in force" for row in bios.rows(declared, view.bios))
    known = console.known() if differs else None
    faults = [sentence for _, sentence in bios.faults(declared, view.bios, known)]
    if not arguments.set:
        return _report(arguments, node, view, faults, [] if known or not differs else [_NO_REGISTRY])
    if faults:
        raise BadInput(f"{arguments.node}: nothing is set: {'; '.join(faults)}")
    if _is_being_installed(node):
        text = f"{arguments.node}: nothing is set: its install medium is in, so it may be writing its disk: "
        told(arguments, {"outcome": "installing"}, text + f"`ironburst node wait {arguments.node}` first")
        return 4
    outcome, view, drained = _set(arguments, node, console, limit_s)
    shown = [f"{arguments.node}: {_BECAME[outcome]}; it is {view.power}"]
    shown += _lines(node, view) if outcome != "in force" else []
    shown += [f"{arguments.node}: {guard.drained(arguments.node)}"] if drained else []
    said = {"outcome": outcome, "power": view.power, "drained": drained, "settings": _settings(node, view)}
    told(arguments, said, "\n".join(shown))
    return 0 if outcome == "in force" else 4


_NO_REGISTRY = "its BMC has no registry of its settings: their values can't be checked before they are set"


def _may_be_set(arguments: argparse.Namespace, node: OwnedNode) -> None:
    if not node.nodes.bios:
        raise BadInput(f"{arguments.node}: no setting is declared of it: write bios beside its bmc")
    if arguments.node not in node.nodes.allow_bios:
        raise BadInput(
            f"{arguments.node}: its BIOS may not be set: name it in allow_bios beside bios, in {arguments.stack_file}"
        )


def _is_being_installed(node: OwnedNode) -> bool:
    """No scheduler knows a machine that is at it, so no drain keeps it from being switched off."""
    install = node.inputs.install
    if install is None:
        return False
    with redfish_boot.console(node.bmc(), by_http=install.boot == "http") as console:
        return cycle.facts(install.wanted(), NodeFacts(), console.look(), None).medium == "ours"


def _set(
    arguments: argparse.Namespace, node: OwnedNode, console: RedfishBios, limit_s: float
) -> tuple[Outcome, BiosView, bool]:
    """Also whether it drained the node; where it fails after that, it is said beside the error."""
    drained = False

    def take() -> None:
        nonlocal drained
        drained = node_guard.of(arguments, node.config, node.nodes).take(arguments.node, "bios")

    def say(text: str) -> None:
        print(f"{arguments.node}: {text}", file=sys.stderr, flush=True)

    setter = Setter(
        node.nodes.bios,
        console,
        take=take,
        pause=time.sleep,
        start_looks=math.ceil(limit_s / LOOK_S),
        say=say,
        passing=PASSING,
    )
    try:
        return *setter.run(), drained
    except (BmcError, ConsoleError) as error:
        if drained:
            say(guard.drained(arguments.node))
        if isinstance(error, BmcError):
            raise
        raise BmcError(f"{arguments.node}: {error}") from None


def _report(arguments: argparse.Namespace, node: OwnedNode, view: BiosView, faults: list[str], more: list[str]) -> int:
    if view.setup:
        more = [*more, f"its next start is into its setup: `ironburst node bios {arguments.node} ... --set` ends that"]
    said = {
        "settings": _settings(node, view),
        "faults": faults,
        "in_force": dict(view.bios.in_force),
        "setup_is_next": view.setup,
    }
    shown = [f"{arguments.node}: {len(node.nodes.bios) or 'no'} settings are declared", *_lines(node, view)]
    shown += [f"  can't be set    {sentence}" for sentence in faults] + [f"  {each}" for each in more]
    told(arguments, said, "\n".join(shown))
    return 0 if all(row.order == "in force" for row in bios.rows(node.nodes.bios, view.bios)) else 4


def _lines(node: OwnedNode, view: BiosView) -> Iterator[str]:
    """One declared setting each; without any, what is in force."""
    for row in bios.rows(node.nodes.bios, view.bios):
        yield f"  {row.order:15} {row.sentence}"
    if not node.nodes.bios:
        yield from (f"  {name}: {value}" for name, value in sorted(view.bios.in_force.items()))


def _settings(node: OwnedNode, view: BiosView) -> list[dict[str, Any]]:
    return [asdict(row) for row in bios.rows(node.nodes.bios, view.bios)]
