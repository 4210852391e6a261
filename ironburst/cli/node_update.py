"""`ironburst node firmware STACK_FILE --update`: what is below its minimum is updated, one rack at a time."""

from __future__ import annotations

import argparse
import copy
import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ironburst.adapters import firmware_image
from ironburst.adapters.redfish import update_record
from ironburst.adapters.redfish.client import BmcAccess
from ironburst.adapters.redfish.update import RedfishUpdate
from ironburst.adapters.redfish.update_record import UpdateRecord
from ironburst.baremetal import updating
from ironburst.baremetal.cycle import ConsoleError
from ironburst.baremetal.declared import minimum
from ironburst.baremetal.firmware import Minimum
from ironburst.baremetal.updates import Image, State, WantedFirmware
from ironburst.baremetal.updating import How, Result
from ironburst.cli import node_guard, site_options
from ironburst.config import valid
from ironburst.config.firmware_models import FirmwareMinimum
from ironburst.config.models import ClusterConfig, Nodes
from ironburst.convergence import guard
from ironburst.ports.service import SchedulerError
from ironburst.system.bad_input import BadInput
from ironburst.wiring import owned_nodes

LOOK_EVERY_S = 10.0
HINTS: dict[State, str] = {
    "waits": "`ironburst node power NODE STACK restart` and this once more, or --restart, which does both; "
    "if it was started since, --again sends it once more",
    "failed": "look at its BMC's log; --again does the last step once more",
    "unsure": "it may wait for the machine's next start, or was never begun: look at its BMC; "
    "--again sends it once more",
    "updating": "give the same command again: it goes on from there, and sends nothing twice",
    "refused": "nothing was begun",
}


@dataclass(frozen=True)
class Member:
    """One node to be updated, and the rack that it stands in; without one it is its own."""

    name: str
    rack: str
    nodes: Nodes
    access: BmcAccess

    @property
    def wanted(self) -> list[WantedFirmware]:
        """Its minimums with their images."""
        return [_wanted(each) for each in self.nodes.firmware]


@dataclass
class Outcome:
    """What became of one node; `error`: why it went no further; `taken`: it is drained."""

    node: str
    rack: str
    results: Sequence[Result] = ()
    error: str | None = None
    code: int = 0
    taken: bool = False

    @property
    def reached(self) -> bool:
        """All that has an image is as declared."""
        return self.error is None and all(each.state in ("reached", "no image") for each in self.results)


def add_options(parser: argparse.ArgumentParser) -> None:
    """What an update needs beside what the report does."""
    parser.add_argument(
        "--update",
        action="store_true",
        help="update what is below its minimum and has an image, where allow_update says so",
    )
    parser.add_argument("--restart", action="store_true", help="start machines whose update waits for their next start")
    parser.add_argument(
        "--again",
        action="store_true",
        help="do once more what came to nothing, for you have looked: the start, else the sending",
    )
    told = "for one component, after its node is idle (default: %(default)s)"
    parser.add_argument("--timeout", default="2h", metavar="DURATION", help=told)
    told = "what is remembered of updates (default: STACK_FILE with .firmware.json)"
    parser.add_argument("--record", type=Path, default=None, metavar="FILE", help=told)
    node_guard.add_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Update rack by rack, print, and stop at the first that isn't reached; the exit code. Raises BadInput."""
    limit_s = site_options.duration("--timeout", arguments.timeout, "30m or 2h")
    config = valid.valid(arguments.stack_file)
    racks = _racks(_members(arguments, config))
    path = arguments.record or arguments.stack_file.with_suffix(".firmware.json")
    outcomes: list[Outcome] = []
    with update_record.held(path) as record, tempfile.TemporaryDirectory(prefix="ironburst-") as folder:
        work = _Work(arguments, config, record, Path(folder), float(limit_s))
        for number, rack in enumerate(racks, 1):
            done = work.rack(rack)
            outcomes += done
            if not arguments.json:
                print("\n".join(line for each in done for line in _lines(each, arguments.stack_file)), flush=True)
            if not all(each.reached for each in done):
                left = [member.name for more in racks[number:] for member in more]
                if left:
                    print(f"ironburst: not touched after that: {', '.join(left)}", file=sys.stderr)
                break
    if arguments.json:
        print(json.dumps([_as_json(each) for each in outcomes], indent=1))
    return _code(outcomes)


def _members(arguments: argparse.Namespace, config: ClusterConfig) -> list[Member]:
    """Those that are named, else all that allow_update names; every password first."""
    permitted = {name for hall in config.halls for nodes in hall.nodes for name in nodes.allow_update}
    known = {each.name: each for each in owned_nodes.chosen(arguments.stack_file, arguments.nodes)}
    refused = [name for name in arguments.nodes if name not in permitted]
    if refused or not permitted:
        who = refused[0] if refused else "any node"
        raise BadInput(f"allow_update does not name {who}: without it nothing is written; add it beside its firmware")
    return [
        Member(name, f"rack {hall.name}/{nodes.rack}" if nodes.rack else name, nodes, owned_nodes.access(known[name]))
        for hall in config.halls
        for nodes in hall.nodes
        for name in nodes.names
        if name in known and name in permitted
    ]


def _racks(members: Sequence[Member]) -> list[list[Member]]:
    found: dict[str, list[Member]] = {}
    for each in members:
        found.setdefault(each.rack, []).append(each)
    return list(found.values())


def _wanted(each: FirmwareMinimum) -> WantedFirmware:
    least = Minimum.model_validate(minimum(each))
    if each.image is None:
        return WantedFirmware(least, None)
    return WantedFirmware(least, Image(each.image.uri, each.image.sha256, each.image.version or each.at_least))


class _Work:
    """What all nodes of a run share."""

    def __init__(
        self, arguments: argparse.Namespace, config: ClusterConfig, record: UpdateRecord, folder: Path, limit_s: float
    ) -> None:
        self._arguments, self._config, self._record, self._folder = arguments, config, record, folder
        self._limit_s, self._fetching, self._stop = limit_s, threading.Lock(), threading.Event()

    def rack(self, members: Sequence[Member]) -> list[Outcome]:
        """All of its nodes at once; where one is not reached, the others begin nothing more."""
        outcomes = [Outcome(each.name, each.rack) for each in members]
        # daemons: Ctrl-C ends it all at once, and whoever comes next goes on from the record
        threads = [
            threading.Thread(target=self._node, args=(each, outcome), daemon=True)
            for each, outcome in zip(members, outcomes, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return outcomes

    def _node(self, member: Member, outcome: Outcome) -> None:
        try:
            service = RedfishUpdate(member.access, self._folder, self._arguments.restart, self._arguments.force)
            how = self._how(member, outcome)
            outcome.results = updating.update(member.wanted, service, self._record.of(member.name), how)
        except BadInput as error:
            outcome.error, outcome.code = str(error), 2
        except (ConsoleError, SchedulerError) as error:
            outcome.error, outcome.code = str(error), 3
        except guard.Busy as error:
            outcome.error, outcome.code = str(error), 5
        except BaseException as error:
            outcome.error, outcome.code = f"{member.name}: a bug: {error!r}", 1
            self._stop.set()
            raise
        if not outcome.reached:
            self._stop.set()

    def _how(self, member: Member, outcome: Outcome) -> How:
        say = _sayer(member.name)

        def take() -> None:
            arguments = copy.copy(self._arguments)
            arguments.node = member.name
            node_guard.of(arguments, self._config, member.nodes).take(member.name, "firmware")
            outcome.taken = True

        return How(
            check=self._check,
            take=take,
            clock=time.time,
            pause=lambda: time.sleep(LOOK_EVERY_S),
            say=say,
            limit_s=self._limit_s,
            start=self._arguments.restart,
            again=self._arguments.again,
            stop=self._stop.is_set,
        )

    def _check(self, image: Image) -> str | None:
        with self._fetching:  # once, for all nodes
            try:
                firmware_image.fetched(image, self._folder)
            except firmware_image.ImageError as error:
                return str(error)
        return None


def _sayer(node: str) -> Callable[[str], None]:
    return lambda text: print(f"{node}: {text}", file=sys.stderr, flush=True)


def _code(outcomes: Sequence[Outcome]) -> int:
    codes = {each.code for each in outcomes}
    states = {result.state for each in outcomes for result in each.results}
    for code in (1, 2, 3):
        if code in codes:
            return code
    if 5 in codes or states & {"updating"}:
        return 5
    return 0 if states <= {"reached"} else 4


def _lines(outcome: Outcome, stack: Path) -> Sequence[str]:
    lines = [f"{outcome.node}:"]
    for each in outcome.results:
        hint = HINTS.get(each.state, "").replace("NODE", outcome.node).replace("STACK", str(stack))
        lines.append(f"  {each.state:14} {each.key}, was {each.before}: {each.why}{'; ' if hint else ''}{hint}")
    if outcome.error:
        lines.append(f"  not done       {outcome.error}")
    elif not outcome.results:
        lines.append("  reached        every declared minimum that its BMC lets compare")
    if outcome.taken:
        lines.append(f"  {guard.drained(outcome.node)}")
    return lines


def _as_json(outcome: Outcome) -> dict[str, Any]:
    results = [asdict(each) for each in outcome.results]
    return {
        "node": outcome.node,
        "rack": outcome.rack,
        "error": outcome.error,
        "drained": outcome.taken,
        "components": results,
    }
