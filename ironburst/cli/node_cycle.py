"""`ironburst node medium|wait|power|replace NODE STACK_FILE`: the life cycle of one bare-metal node, outside Pulumi."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from ironburst.adapters.redfish import boot as redfish_boot
from ironburst.adapters.redfish import client as redfish
from ironburst.adapters.redfish import cycle as metal_cycle
from ironburst.adapters.redfish import power as redfish_power
from ironburst.adapters.redfish.client import BmcAccess, BmcError
from ironburst.adapters.redfish.cycle import InstallRecord
from ironburst.baremetal import declared, unattended
from ironburst.cli import Subparsers, node_guard, site_options
from ironburst.convergence import guard
from ironburst.ports.service import SchedulerError
from ironburst.system.bad_input import BadInput
from ironburst.wiring import owned_nodes
from ironburst.wiring.owned_nodes import OwnedNode

EXIT_CODES = (
    "exit codes: 0 done; 1 a bug; 2 bad input; 3 the BMC or the scheduler can't be reached or refused; "
    "4 the node is in another state than was wanted; 5 the time ran out"
)
LOOK_EVERY_S = 10.0


def add_parsers(verbs: Subparsers) -> None:
    """The verbs below `ironburst node`."""
    medium = add_verb(verbs, "medium", "write what a node's install medium holds", run_medium)
    medium.add_argument("--out", type=Path, required=True, metavar="DIR", help="a folder below it is made for the node")
    wait = add_verb(verbs, "wait", "take a node through its installation, until it is ready", run_wait)
    wait.add_argument("--timeout", default="2h", metavar="DURATION", help="how long (default: %(default)s)")
    wait.add_argument("--once", action="store_true", help="do what can be done by now, say where it stands, and end")
    power = add_verb(verbs, "power", "switch a node, never under its jobs", run_power)
    power.add_argument("to", choices=["on", "off", "restart"])
    node_guard.add_options(power)
    replace = add_verb(
        verbs, "replace", "a node's exchange: drain it, light its lamp; then verify the new one", run_replace
    )
    replace.add_argument(
        "--swapped", action="store_true", help="the new machine is in place, and the stack file knows it"
    )
    node_guard.add_options(replace)


def add_verb(
    verbs: Subparsers, name: str, what: str, run: Callable[[argparse.Namespace], int]
) -> argparse.ArgumentParser:
    """A verb for one node of a stack file; `run` may raise what is expected."""
    parser = verbs.add_parser(name, help=what, description=f"{what[0].upper()}{what[1:]}.", epilog=EXIT_CODES)
    parser.add_argument("node", metavar="NODE")
    parser.add_argument("stack_file", type=Path, metavar="STACK_FILE", help="as in stacks/Pulumi.prod.yaml")
    parser.add_argument("--json", action="store_true", help="machine-readable")
    parser.set_defaults(func=_guarded(run))
    return parser


def _guarded(verb: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """Expected errors as one sentence on stderr and their exit code."""

    @wraps(verb)
    def run(arguments: argparse.Namespace) -> int:
        try:
            return verb(arguments)
        except BadInput as error:
            code, text = 2, str(error)
        except (BmcError, SchedulerError) as error:
            code, text = 3, str(error)
        except guard.Busy as error:
            code, text = 5, str(error)
        print(f"ironburst: {text}", file=sys.stderr)
        return code

    return run


def told(arguments: argparse.Namespace, said: dict[str, Any], text: str) -> None:
    """The result, as JSON or for people."""
    print(json.dumps({"node": arguments.node, **said}) if arguments.json else text)


# ---- medium


def run_medium(arguments: argparse.Namespace) -> int:
    """Write the files, the host's key, and the line by which ssh knows the host."""
    node = owned_nodes.find(arguments.stack_file, arguments.node)
    install = node.nodes.install
    if install is None:
        raise BadInput(f"{arguments.node}: no installation is declared of it: write install beside its bmc")
    folder = arguments.out / f"{arguments.node}-{install.mark}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        private, public = _host_key(folder, arguments.node)
        seed = declared.seed(node.config, node.hall, node.nodes, arguments.node, private, public)
        for name, text in unattended.files(seed).items():
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            path.touch(mode=0o600)
            path.write_text(text)
        known_hosts = Path(install.known_hosts).expanduser()
        address = node.inputs.install.host_address if node.inputs.install else ""
        _know(known_hosts, address, public)
    except OSError as error:
        raise BadInput(f"{error.filename or folder}: {error.strerror or error}") from None
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    url = install.medium_of(arguments.node)
    text = f"{folder}: {', '.join(files)}\n{known_hosts} knows {arguments.node} ({address}) by its new key\n"
    text += f"Put them on the medium that is to be at {url}; they hold the host's private key, so keep it to the BMCs."
    told(arguments, {"folder": str(folder), "files": files, "medium": url, "known_hosts": str(known_hosts)}, text)
    return 0


def _host_key(folder: Path, node: str) -> tuple[str, str]:
    """The host's key, the same as long as the folder is there."""
    path = folder / "ironburst/ssh_host_ed25519_key"
    path.parent.mkdir(exist_ok=True)
    if not path.exists():
        argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", node, "-f", str(path)]
        subprocess.run(argv, check=True, stdin=subprocess.DEVNULL)
    return path.read_text(), path.with_suffix(".pub").read_text()


def _know(known_hosts: Path, address: str, public: str) -> None:
    """One line for this address; that of an older key goes."""
    lines = known_hosts.read_text().splitlines() if known_hosts.exists() else []
    kept = [line for line in lines if line.split()[:1] != [address]]
    new = known_hosts.with_name(known_hosts.name + ".new")
    new.write_text("".join(f"{line}\n" for line in [*kept, f"{address} {' '.join(public.split()[:2])}"]))
    new.replace(known_hosts)


# ---- wait


def run_wait(arguments: argparse.Namespace) -> int:
    """Go on until the node is ready or stands somewhere else; the exit code says which."""
    limit_s = site_options.duration("--timeout", arguments.timeout, "30m or 2h")
    node = owned_nodes.find(arguments.stack_file, arguments.node)
    if node.inputs.install is None:
        raise BadInput(f"{arguments.node}: no installation is declared of it: write install beside its bmc")
    bmc, end, last = node.bmc(), time.monotonic() + limit_s, ("", "")
    record = InstallRecord(since=time.time())
    while True:
        over = time.monotonic() > end
        state, why, record = _step(node, bmc, InstallRecord(record.installed, 0.0) if over else record)
        if (state, why) != last and not arguments.json:
            print(f"{arguments.node}: {state}: {why}", flush=True)
        last = (state, why)
        if state != "installing" or over or arguments.once:
            break
        time.sleep(min(LOOK_EVERY_S, limit_s / 10))
    if arguments.json:
        told(arguments, {"state": state, "reason": why, "installed": record.installed}, "")
    return 0 if state == "ready" else 5 if over else 0 if arguments.once and state == "installing" else 4


def _step(node: OwnedNode, bmc: BmcAccess, record: InstallRecord) -> tuple[str, str, InstallRecord]:
    """One look with its actions; a BMC that is silent for a moment is asked again by the next."""
    assert node.inputs.install
    try:
        hardware = redfish.read_hardware(bmc)
        wrong = node.differences(hardware)
        standing, known = metal_cycle.advance(bmc, node.inputs.install, record, as_declared=not wrong)
    except (redfish.BmcUnreachable, redfish.BmcIncompleteAnswer, redfish.BmcUnavailable) as error:
        return "installing", f"{error}; it is asked again", record
    why = standing.why.replace("NODE", node.inputs.name)
    if wrong and standing.state in ("inspected", "failed"):
        why += ": " + "; ".join(wrong)
    return standing.state, why, InstallRecord(known.installed, record.since)


# ---- power


def run_power(arguments: argparse.Namespace) -> int:
    """Switch the node. Before it goes off it is drained, and its jobs end."""
    node = owned_nodes.find(arguments.stack_file, arguments.node)
    bmc = node.bmc()
    with redfish_boot.console(bmc) as console:
        before = console.look().power
    if before != "off" and arguments.to != "on":  # no session is held for so long: BMCs have few
        node_guard.of(arguments, node.config, node.nodes).take(arguments.node, f"power {arguments.to}")
    if arguments.to == "off":
        redfish_power.power_off(bmc, force=arguments.force)
    elif arguments.to == "restart":
        redfish_power.restart(bmc, force=arguments.force)
    else:
        with redfish_boot.console(bmc) as console:
            console.power_on()
    back = f"; `{guard.gives_back(arguments.node)}` checks it and gives it back" if before != "off" else ""
    text = f"{arguments.node}: was {before}, is to be {'on' if arguments.to != 'off' else 'off'}{back}"
    told(arguments, {"was": before, "to": arguments.to}, text)
    return 0


# ---- replace


def run_replace(arguments: argparse.Namespace) -> int:
    """The first half, up to the exchange; with --swapped the second, up to the converge that gives the node back."""
    node = owned_nodes.find(arguments.stack_file, arguments.node)
    return _swapped(arguments, node) if arguments.swapped else _to_be_swapped(arguments, node)


def _to_be_swapped(arguments: argparse.Namespace, node: OwnedNode) -> int:
    node_guard.of(arguments, node.config, node.nodes).take(arguments.node, "replace")
    bmc = node.bmc()
    redfish_power.power_off(bmc, force=arguments.force)
    with redfish_boot.console(bmc) as console:
        console.lamp(True)
    text = (
        f"{arguments.node} is drained and off, and its lamp blinks. Exchange it; write the new serial number, MAC "
        f"addresses, disk and certificate into {arguments.stack_file}; then `ironburst node replace {arguments.node} "
        f"{arguments.stack_file} --swapped`"
    )
    told(arguments, {"state": "maintenance", "next": "swap"}, text)
    return 0


def _swapped(arguments: argparse.Namespace, node: OwnedNode) -> int:
    bmc = node.bmc()
    wrong = node.differences(redfish.read_hardware(bmc))
    if wrong:
        text = "\n".join([f"{arguments.node} is not as declared:", *(f"  - {each}" for each in wrong)])
        told(arguments, {"state": "inspected", "differences": wrong}, text)
        return 4
    with redfish_boot.console(bmc) as console:
        console.lamp(False)
    install = node.inputs.install
    steps = ["pulumi up"]
    steps += [f"ironburst node wait {arguments.node} {arguments.stack_file}"] if install else []
    steps += [guard.gives_back(arguments.node)]
    if install and not install.allow:
        steps.insert(0, f"allow_install: [{arguments.node}], if its disk is new")
    text = f"{arguments.node} is as declared, and its lamp is off. What is left: " + "; ".join(steps)
    told(arguments, {"state": "verified", "next": steps}, text)
    return 0
