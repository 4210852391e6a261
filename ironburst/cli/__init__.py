"""The `ironburst` command. One module a verb: each has add_parser(subparsers), which sets `func`, a function
of the arguments. What verbs share: site_options (the controller's), playbook_options (converge, image), trials
and stack_file (simulate, fit, size, replay).

Exit codes of every verb: 0 done, 1 a crash (a bug), 2 bad input, 130 stopped by Ctrl-C;
what a verb adds is in its own --help and in docs/reference/cli.md.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import TypeAlias

import argcomplete

from ironburst import __version__
from ironburst.cli import crash
from ironburst.cli.arguments import Parser
from ironburst.system.near import nearest, suggested

Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
"""What a verb adds its parser to; argparse has no public name for it."""

GROUPS: dict[str, dict[str, str]] = {
    "begin": {
        "init": "a stack file from nothing, from a Slurm that runs already, or from another environment",
        "catalog": "what may be written: platforms, GPUs, instance types, images",
        "discover": "find BMCs in a network, and propose their declaration",
        "simulate": "a trace of jobs on a declared cluster",
        "fit": "how long jobs may wait, from your own history",
        "size": "how many nodes to own, reserve and rent, from your own history",
        "lab": "play on a lab that `make demo KEEP=1` left (in a checkout)",
    },
    "declare a site, and review changes": {
        "validate": "check a stack file",
        "lock": "solve the exact software of every group of nodes",
        "diff": "what differs between two environments",
        "plan": "what a preview would do, whether it may, and what it costs",
        "rights": "the policies of the role that does `pulumi up`",
        "hall": "power, cooling and cabling of the declared halls",
        "document": "the ClusterDocument of owned nodes, without Pulumi",
        "publish": "publish the ClusterDocument of a stack",
    },
    "make nodes, and keep them": {
        "converge": "turn declared hosts into nodes",
        "image": "bake the image of a pool's rented nodes",
        "node": "look at, install or switch a bare-metal node",
        "health": "judge an output of nvidia-smi, dcgmi, ibstat ... as the gate does",
        "fabric": "stress the fabric between idle nodes",
        "packages": "build SchedMD's packages of Slurm into a repository of yours",
        "mirror": "say which packages a mirror of your own has to hold",
        "slurm": "what a Slurm that is there already needs",
    },
    "see what is going on, and why": {
        "status": "queue, home nodes, leases, money",
        "explain": "why a job waits or was rented for",
        "job": "what a job made of its GPUs: busy, memory, power, energy, by rank",
        "logs": "what a node, a lease or the nodes of a job said",
        "serve": "a page for operators: what is broken, queue, GPUs, leases, money, decisions, drift",
        "report": "GPU-hours and dollars, at home and rented; or what a controller in shadow would have rented",
        "shares": "each team's part of the owned GPUs, and what the scheduler is told of it",
        "doctor": "look whether what a stack needs is there",
        "monitoring": "alert rules, targets, receivers and dashboards for Prometheus and Grafana",
    },
    "run the controller": {
        "run": "the controller: tick after tick until SIGTERM",
        "backup": "a copy of the ledger, proven by restoring it, and a ledger from a copy",
        "receive": "take the metrics that rented nodes push, for Prometheus",
        "tick": "one tick of the controller: observe, decide, re-check, apply, record",
        "reap": "end rented instances that no lease knows",
        "replay": "recorded ticks decided again: what would have been different",
    },
    "hold the renting": {
        "pause": "launch nothing until `resume`; what is rented goes on",
        "stop": "no more renting; with --now what is rented ends within seconds",
        "resume": "rent again after `pause` or `stop`",
        "close": "launch nothing in a pool, a zone, or of a type, until `open`",
        "open": "launch again in what `close`, or refusals, had closed",
        "budget": "a lower ceiling than the declared one, for a time",
        "limit": "what one user's jobs may have of rented nodes",
    },
    "help": {
        "help": "of one verb, or the list of them",
        "completion": "what your shell needs to complete verbs and options",
    },
}
"""The verbs by what they are for, with their line in --help: a verb is one by being named here."""
VERBS = tuple(verb for verbs in GROUPS.values() for verb in verbs)


def parser(verbs: Sequence[str] = VERBS) -> argparse.ArgumentParser:
    """The command's parser. Only these verbs have their arguments: each loads its own libraries."""
    top = Parser(prog="ironburst", description="One declaration for the GPU nodes you own and the GPU nodes you rent.")
    top.groups = GROUPS
    top.add_argument("--version", action="version", version=f"ironburst {__version__}")
    subparsers = top.add_subparsers(dest="verb", required=True, metavar="VERB")
    for verb in VERBS:
        if verb in verbs:
            importlib.import_module(f"ironburst.cli.{verb}").add_parser(subparsers)
        else:
            subparsers.add_parser(verb)
    return top


def complete() -> None:
    """Answer the shell, which asks what may stand at its cursor; ends the process. Whole verbs load their libraries."""
    line = os.environ.get("COMP_LINE", "")[: int(os.environ.get("COMP_POINT") or 0) or None]
    before = line.split()[:-1] if line and not line[-1].isspace() else line.split()  # the cursor's own word is open
    verb = before[1] if len(before) > 1 else ""
    argcomplete.autocomplete(parser([verb]))


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb. A crash is reported in one sentence, with exit code 1; Ctrl-C ends with 130."""
    if "_ARGCOMPLETE" in os.environ:
        complete()
    argv = sys.argv[1:] if argv is None else argv
    gc.set_threshold(100_000, 20, 50)  # a long queue is a million objects that stay: to look for others took a third
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a name that the terminal's locale can't write is no crash
    if argv and not argv[0].startswith("-") and argv[0] not in VERBS:
        near = suggested(nearest(argv[0], VERBS))
        print(f"ironburst: {argv[0]!r} is no verb: {near or '`ironburst help` lists them'}", file=sys.stderr)
        return 2
    try:
        arguments = parser(argv[:1]).parse_args(argv)
        code = int(arguments.func(arguments))
        sys.stdout.flush()
        gc.freeze()  # nor are they looked through when the process ends
        return code
    except KeyboardInterrupt:
        print(f"\nironburst {' '.join(argv[:1])}: stopped", file=sys.stderr)
        gc.freeze()  # as above: a second Ctrl-C would meet a process that is ending
        return crash.STOPPED
    except Exception as error:
        if isinstance(error, BrokenPipeError) and crash.reader_gone():
            crash.silenced()
            return 0
        return crash.told(" ".join(argv[:1]), error)
