"""`ironburst hall cap WATTS`: what a hall may draw, now, while its jobs run; `ironburst hall cap off` gives it back."""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Mapping
from typing import Any

from ironburst.adapters.ansible import REPOSITORY, Ansible
from ironburst.adapters.remote import ask
from ironburst.cli import Subparsers, site_options
from ironburst.cli.playbook_options import add_declaration, declaration
from ironburst.config import declared_halls
from ironburst.convergence import power_cap_host
from ironburst.convergence.ports import Connection, RemoteProgram
from ironburst.document import ClusterDocument, DocumentError, Host
from ironburst.hall import cap
from ironburst.hall.cap import CappedNode, Unreachable
from ironburst.system import sent_program
from ironburst.system.bad_input import BadInput
from ironburst.wiring.convergence import secrets_of

ROLE = REPOSITORY / "playbooks" / "roles" / "gpu_power_limit"
ANSWER_S = 120.0
OFF = "off"
EPILOG = """\
WATTS (62000, or 62kW) is what the hall's machines may draw in all. What its switches and heads, and all of its GPU \
nodes but the GPUs, draw at most is subtracted, by the catalogue and the declaration; the rest is for the GPUs, the \
same for each. Nodes that are out of reach, or not managed, count with the most that they draw. Jobs go on, slower. \
The cap outlasts a boot and a converge, until it is taken off; the declared gpu_power_limit_w is never exceeded.

exit codes:
  0  every node is as asked
  1  a crash, which is a bug
  2  bad input; or not even with each GPU at its least the hall stays within WATTS, and nothing was changed
  3  --check: limits would change
  4  a node could not be reached, or its GPUs take no limit; the others are capped

example:
  ironburst hall cap 62kW --hall hall-a --inventory inventory/prod
  ironburst hall cap off --hall hall-a --inventory inventory/prod"""


def add_parser(verbs: Subparsers) -> None:
    """The verb's arguments and help."""
    parser = verbs.add_parser(
        "cap",
        help="cap what a hall draws, now, under its jobs; and back",
        description="Cap the power of a hall's GPUs by nvidia-smi, on all of its nodes at the same time.",
        epilog=EPILOG,
    )
    parser.add_argument("watts", metavar="WATTS|off", help="what the hall may draw; off: what is declared, again")
    parser.add_argument("--hall", metavar="NAME", help="needed where several halls are declared")
    parser.add_argument("--check", action="store_true", help="say what would be done, change nothing")
    add_declaration(parser)
    parser.set_defaults(func=run)


class HallNodes:
    """The way to the nodes of a hall."""

    def __init__(self, connections: Mapping[str, Connection], document: ClusterDocument):
        self._connections, self._secret = connections, secrets_of(document)
        unit = (ROLE / "templates" / "ironburst-power-limit.service.j2").read_text()
        self._own = {"program": (ROLE / "files" / "ironburst-power-limit.py").read_text(), "unit": unit}

    def ask(self, questions: Mapping[str, Mapping[str, Any]]) -> tuple[dict[str, Any], dict[str, str]]:
        """(answers, sentences of those that gave none), by node."""
        programs = {
            name: RemoteProgram(self._connections[name], sent_program.text(power_cap_host, {**self._own, **question}))
            for name, question in questions.items()
            if name in self._connections
        }
        failed = {name: "Ansible doesn't reach it by ssh as root" for name in questions if name not in programs}
        answers: dict[str, Any] = {}
        for name, said in ask(programs, ANSWER_S, secret=self._secret).items():
            try:
                answer = {"error": said.error} if said.error else sent_program.answer(power_cap_host, said.output)
            except ValueError as error:
                answer = {"error": str(error)}
            if answer.get("error"):
                failed[name] = answer["error"]
            else:
                answers[name] = answer
        return answers, failed


@site_options.guarded
def run(arguments: argparse.Namespace) -> int:
    """Look at all nodes, reckon, cap; the exit code."""
    watts = _watts(arguments.watts)
    try:
        path, document = declaration(arguments)
    except (DocumentError, ValueError) as error:
        raise BadInput(str(error)) from None
    hall, hosts = _hall(document, arguments.hall)
    named = [host.name for host in hosts if host.managed]
    nodes = HallNodes(Ansible(arguments.inventory, path).connections(named), document)
    answers, failed = nodes.ask({name: {} for name in named})
    if watts is None:
        seen, wanted = {}, dict[str, int | None].fromkeys(answers)
    else:
        seen = {host.name: found for host in hosts if (found := _seen(host, answers, failed))}
        wanted = _limits(document, hall, hosts, seen, watts)
    for name, each_w in wanted.items():
        print(_line(name, answers[name], each_w))
    if not arguments.check:
        refused = nodes.ask({name: {"watts": each_w} for name, each_w in wanted.items()})[1]
        failed |= refused
        if refused and watts is not None:
            more = sum(seen[name].gpus * (seen[name].most_w - (wanted[name] or 0)) for name in refused)
            print(f"{hall}: up to {more:.0f} W more than that, for not all took it", file=sys.stderr)
    for name, why in sorted(failed.items()):
        done = "given back" if watts is None else "capped"
        print(f"{name}: {'would not be' if arguments.check else 'not'} {done}: {why}", file=sys.stderr)
    if failed:
        return 4
    return 3 if arguments.check and any(answers[name]["cap"] != each_w for name, each_w in wanted.items()) else 0


def _watts(text: str) -> float | None:
    """None: off. Raises BadInput."""
    if text == OFF:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?(k?)w?", text, re.IGNORECASE)
    watts = float(match[1]) * (1000 if match[2] else 1) if match else 0.0
    if watts <= 0:
        raise BadInput(f"WATTS {text}: write what the hall may draw, as in 62000 or 62kW, or {OFF}")
    return watts


def _hall(document: ClusterDocument, asked: str | None) -> tuple[str, list[Host]]:
    """Its name and GPU nodes. Raises BadInput."""
    halls: dict[str, list[Host]] = {}
    for host in document.hosts:
        if host.hall and host.role == "gpu":
            halls.setdefault(host.hall, []).append(host)
    hall = declared_halls.chosen(halls, asked, "no hall with GPU nodes is declared")
    return hall, halls[hall]


def _seen(host: Host, answers: Mapping[str, Any], failed: dict[str, str]) -> CappedNode | None:
    """None: it gave no answer, or, as is then written down, its GPUs take no limit."""
    answer = answers.get(host.name)
    if answer is None:
        return None
    gpus = answer["gpus"]
    if not gpus or any(watts is None for gpu in gpus for watts in gpu):
        failed[host.name] = "its GPUs have no power limit that can be set"
        return None
    _, least, most, default = zip(*gpus, strict=True)
    declared = answer["declared"] or host.gpu_power_limit_w or math.inf
    return CappedNode(len(gpus), math.ceil(max(least)), math.floor(min(*most, *default, declared)), _rest_w(host))


def _rest_w(host: Host) -> float:
    if host.power_w is None or host.gpu_w is None or host.gpu is None:
        return 0.0
    return max(0.0, host.power_w - host.gpu_w * host.gpu.count)


def _limits(
    document: ClusterDocument, hall: str, hosts: list[Host], seen: Mapping[str, CappedNode], watts: float
) -> dict[str, int | None]:
    """W of each GPU by node, with a line of the sum, and what it lacks. Raises BadInput."""
    other_w = document.halls[hall].other_w if hall in document.halls else None
    beside_w = sum(host.power_w or 0.0 for host in hosts if host.name not in seen)
    try:
        cap.limits(watts, seen, other_w or 0.0)
    except Unreachable as error:
        raise BadInput(
            f"{hall} can't stay within {watts:.0f} W: {error}; give {math.ceil(error.least_w)} W or more, or switch "
            "nodes off (`ironburst node power off`)"
        ) from None
    try:
        limits = cap.limits(watts, seen, (other_w or 0.0) + beside_w)
    except Unreachable:  # with what is out of reach: the others do what they can
        limits = {name: machine.limit(0) for name, machine in seen.items()}
    total = (other_w or 0.0) + beside_w + sum(seen[name].draws(each_w) for name, each_w in limits.items())
    silent = f", {len(hosts) - len(seen)} count with their most" if len(seen) < len(hosts) else ""
    print(f"{hall}: {total:.0f} of {watts:.0f} W at most; {len(seen)} of its {len(hosts)} nodes{silent}")
    if unknown := [host.name for host in hosts if host.power_w is None or host.gpu_w is None]:
        what = "of these the GPUs alone are counted, for nobody declares the nodes' power"
        print(f"{hall}: {what}: {', '.join(unknown)}", file=sys.stderr)
    if other_w is None:
        print(f"{hall}: switches, heads and others are not counted: nobody declares their power", file=sys.stderr)
    return dict(limits)


def _line(name: str, answer: Mapping[str, Any], each_w: int | None) -> str:
    now = "/".join(sorted({"?" if gpu[0] is None else f"{gpu[0]:g}" for gpu in answer["gpus"]}))
    becomes = "what is declared" if each_w is None else f"{each_w} W"
    return f"{name}: {len(answer['gpus'])} GPUs, {now} W each, to {becomes}"
