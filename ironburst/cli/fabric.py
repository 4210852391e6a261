"""`ironburst fabric stress`: the bandwidth between all pairs of idle nodes, rail by rail."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ironburst.adapters.remote import ask
from ironburst.cli import Subparsers, site_options
from ironburst.cli.converge import duration, interrupt
from ironburst.cli.playbook_options import add_declaration, declaration, progress
from ironburst.convergence.model import Options, select
from ironburst.convergence.receipts import default_folder
from ironburst.convergence.rolling import share
from ironburst.document import ClusterDocument, DocumentError
from ironburst.fabric import judge
from ironburst.fabric.stress import SPARE_S, Plan, Stress, StressReport, cables, lines
from ironburst.ports.service import SchedulerError
from ironburst.system import files
from ironburst.system.bad_input import BadInput
from ironburst.system.signals import handled
from ironburst.wiring.convergence import make_tools, secrets_of

AT_ONCE = 4096  # ssh processes: the nodes of a round must be asked at the same time
EPILOG = """\
Only nodes on which the scheduler says that nothing runs are taken: each is drained, measured by ib_write_bw with the \
others, round by round so that no node is twice in one, and given back, also after Ctrl-C. What is slow is measured \
again alone. The first good run is what later ones are held against, pair by pair; --accept makes this one so.

exit codes:
  0  every measurement is above its floor
  1  a crash, which is a bug
  2  bad input
  3  pairs are too slow, or gave no figure; ports that are behind several of them are named first
  4  the scheduler doesn't answer, or a node was lost; what stays drained is named
  5  fewer than two nodes are free: nothing was measured
  130  Ctrl-C or SIGTERM; the nodes are given back

example:
  ironburst fabric stress --document prod.json --inventory inventory/prod --limit hall-a
  ironburst fabric stress --inventory inventory/prod --wait 4h --tests pairs --rails 1,5"""


def add_parser(subparsers: Subparsers) -> None:
    """`ironburst fabric` and its verbs."""
    parser = subparsers.add_parser("fabric", description="The InfiniBand fabric of owned nodes: its stress test.")
    verbs = parser.add_subparsers(dest="fabric_verb", required=True, metavar="VERB")
    stress = verbs.add_parser(
        "stress",
        help="bandwidth between all pairs of idle nodes",
        description="Measure the bandwidth between all pairs of idle nodes, and around a ring, rail by rail.",
        epilog=EPILOG,
    )
    add_declaration(stress)
    option = stress.add_argument
    option("--limit", metavar="WORDS", help="only these: names of hosts, roles, kinds, halls or partitions")
    option("--wait", metavar="DURATION", help="drain busy nodes, too, and wait so long for their jobs")
    option("--share", default="100%", help="nodes of each rack and partition at once: 2 or 50%% (default: 100%%)")
    option("--nightly", action="store_true", help="only halls with nightly_stress, half of their nodes unless --share")
    option("--tests", default="pairs,ring", help="pairs, ring or both (default: both)")
    option("--rails", metavar="N,N", help="only these cards of each node, 1 is the first (default: all)")
    option("--seconds", type=int, default=5, metavar="S", help="of each measurement (default: 5)")
    option("--accept", action="store_true", help="later runs are held against this one")
    option("--state", type=Path, help="folder of what was accepted (default: as of converge)")
    option("--json", action="store_true", help="all figures as JSON on stdout; progress goes to stderr")
    stress.set_defaults(func=run)


def plan(arguments: argparse.Namespace) -> Plan:
    """What the options ask for. Raises BadInput."""
    tests = tuple(dict.fromkeys(word.strip() for word in arguments.tests.split(",")))
    if not set(tests) <= {"pairs", "ring"}:
        raise BadInput(f"--tests {arguments.tests!r}: write pairs, ring, or pairs,ring")
    rails = arguments.rails.split(",") if arguments.rails else []
    if not all(each.strip().isdigit() and int(each) > 0 for each in rails):
        raise BadInput(f"--rails {arguments.rails!r}: write numbers from 1 on, as in 1,5")
    if not 5 <= arguments.seconds <= 30:  # perftest leaves out two at both ends
        raise BadInput(f"--seconds {arguments.seconds}: a measurement takes 5 to 30 seconds")
    return Plan(tests, tuple(map(int, rails)), arguments.seconds, wait=arguments.wait is not None)


def chosen(document: ClusterDocument, arguments: argparse.Namespace) -> list[str]:
    """Hosts that may be measured. Raises ValueError."""
    names = set(select(document, arguments.limit))
    hosts = [host for host in document.managed_hosts if host.name in names and host.fabric == "infiniband"]
    hosts = [host for host in hosts if host.role == "gpu" and host.kind == "bare_metal"]
    if arguments.nightly:
        declared = {name for name, hall in document.halls.items() if hall.nightly_stress}
        return [host.name for host in hosts if host.hall in declared]
    if not hosts:
        raise ValueError(f"{'--limit names' if arguments.limit else 'there are'} no owned GPU nodes on InfiniBand")
    return [host.name for host in hosts]


@site_options.guarded
def run(arguments: argparse.Namespace) -> int:
    """Measure; the exit code is of EPILOG."""
    wanted, say = plan(arguments), progress(arguments)
    try:
        path, document = declaration(arguments)
        hosts = chosen(document, arguments)
        nightly_half = arguments.nightly and arguments.share == "100%"
        options = Options(
            share=share("50%" if nightly_half else arguments.share),
            drain_timeout=duration(arguments.wait, "--wait") if arguments.wait else 0.0,
        )
    except (DocumentError, ValueError) as error:
        raise BadInput(str(error)) from None
    if not hosts:
        say("no hall declares nightly_stress: nothing is measured")
        return 0
    made = make_tools(document, path, arguments.inventory, arguments.state, say)
    answer_s = wanted.seconds + SPARE_S + 30
    tools = replace(made, ask=partial(ask, timeout_s=answer_s, secret=secrets_of(document), at_once=AT_ONCE))
    kept = (arguments.state or default_folder(document.cluster).parent) / "fabric-stress.json"
    accepted = read(kept)
    test = Stress(document, hosts, tools, options, wanted, accepted)
    try:
        with handled(interrupt):
            outcome = test.run()
    except ValueError as error:  # a secret that doesn't resolve
        raise BadInput(str(error)) from None
    except SchedulerError as error:
        print(f"ironburst fabric: {error}", file=sys.stderr)
        return 4
    except KeyboardInterrupt:
        more = "".join(f"; {name} stays drained: {why}" for name, why in test.outcome.kept.items())
        print(f"ironburst fabric: stopped; the nodes are given back{more}", file=sys.stderr)
        return 130
    below = judge.slow(outcome.measured, accepted)
    now = judge.baseline(outcome.measured, accepted, anew=arguments.accept, good=not below)
    if now != accepted:
        files.write(kept, json.dumps({"gbps": now}, indent=1, sort_keys=True) + "\n", 0o644)
    told(arguments, document, outcome, below)
    if outcome.lost or outcome.kept:
        return 4
    return 5 if not outcome.measured else 3 if below and not arguments.accept else 0


def read(path: Path) -> dict[str, float]:
    """What was accepted: {key of a measurement: Gb/s}. Raises BadInput for a file that is damaged."""
    if not path.exists():
        return {}
    try:
        figures = json.loads(path.read_text())["gbps"]
        return {str(key): float(value) for key, value in figures.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise BadInput(f"{path} is damaged: move it away, and this run is what later ones are held against") from None


def told(
    arguments: argparse.Namespace, document: ClusterDocument, outcome: StressReport, below: list[judge.Slow]
) -> None:
    """The result, as JSON or for people."""
    if not arguments.json:
        print("\n".join(lines(outcome, below, cables(document)) or ["fewer than two nodes are free: nothing measured"]))
        return
    named = cables(document)

    def end(port: judge.Port) -> dict[str, Any]:
        its = {"node": port.node, "device": port.device, "rail": port.rail, "line_gbps": port.gbps}
        return its | {"cable": named.get(f"{port.node}/ib{port.rail}", "")}

    floors = {id(each.measured): each for each in below}
    rows = [
        {"test": each.test, "from": end(each.sender), "to": end(each.receiver), "gbps": each.gbps, "error": each.error}
        | ({"slow": True, "wanted_gbps": its.wanted, "than": its.than} if (its := floors.get(id(each))) else {})
        for each in outcome.measured
    ]
    suspects = [
        {**end(each.port), "slow": each.slow, "of": each.of} for each in judge.suspects(outcome.measured, below)
    ]
    said = {"nodes": outcome.nodes, "left_out": outcome.left_out, "lost": outcome.lost, "kept": outcome.kept}
    print(json.dumps({**said, "suspects": suspects, "measured": rows}, indent=1))
