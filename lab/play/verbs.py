"""The verbs of a player, for lab.__main__."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Callable

from lab.play import faults, jobs, prices
from lab.play.kept_lab import BadInput, KeptLab

AddVerb = Callable[..., argparse.ArgumentParser]
MARKETS = faults.MARKETS


def shell(arguments: argparse.Namespace) -> int:
    """Become the command, or a shell, on a node."""
    lab = KeptLab(arguments.prefix)
    command = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    argv = lab.shell_argv(arguments.host, arguments.user, command, sys.stdin.isatty())
    sys.stdout.flush()
    os.execvp(argv[0], argv)


def submit(arguments: argparse.Namespace) -> int:
    """sbatch, as an ordinary user."""
    words = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    command = (words[0] if len(words) == 1 else shlex.join(words)) if words else jobs.Wanted.command
    limit_s = jobs.seconds(arguments.time)
    wanted = jobs.Wanted(command, arguments.nodes, arguments.gpus, limit_s, arguments.name)
    wanted.script()
    job = jobs.submit(KeptLab(arguments.prefix), wanted, arguments.user)
    print(f"job {job} ({wanted.name}): {wanted.nodes} x {wanted.gpus} GPUs, at most {arguments.time}")
    return 0


def wait(arguments: argparse.Namespace) -> int:
    """Until a job is so far."""
    said = jobs.wait(KeptLab(arguments.prefix), arguments.job, arguments.state, jobs.seconds(arguments.limit), _say)
    print(said)
    return 0


def _say(line: str) -> None:
    print(line, flush=True)


def fault(arguments: argparse.Namespace) -> int:
    """Inject one, end all, or list what there is."""
    if arguments.clear and arguments.kind:
        raise BadInput("--clear ends all faults that can be ended, and takes no kind")
    if not arguments.clear and not arguments.kind:
        print("\n".join(_kinds()))
        return 0
    lab = KeptLab(arguments.prefix)
    if arguments.clear:
        was = faults.clear(lab)
        print("\n".join(f"ended: {line}" for line in was) or "nothing was wrong")
        return 0
    given = faults.Given(arguments.words, arguments.market, jobs.seconds(arguments.notice))
    print(faults.inject(lab, arguments.kind, given))
    return 0


def _kinds() -> list[str]:
    calls = {kind: f"{kind} {of.wants}".strip() for kind, of in faults.KINDS.items()}
    width = max(map(len, calls.values()))
    out = [f"  {calls[kind]:{width}}  {of.does}" for kind, of in faults.KINDS.items()]
    return ["ironburst lab fault KIND ...", *out, f"  {'--clear':{width}}  end all of these that can be ended"]


def price(arguments: argparse.Namespace) -> int:
    """Show prices, or change one."""
    lab = KeptLab(arguments.prefix)
    if arguments.instance_type is None:
        for each in prices.prices(lab.document()):
            usd = "unknown" if each.usd is None else f"${each.usd:g}/h"
            print(f"{each.pool}: {each.instance_type} {each.market} {usd}")
        return 0
    if arguments.usd is None:
        raise BadInput(f"what does {arguments.instance_type} cost? `ironburst lab price {arguments.instance_type} USD`")
    market = "spot" if arguments.spot else "on-demand"
    print(prices.change(lab, arguments.instance_type, market, arguments.usd))
    return 0


def add(verb: AddVerb) -> None:
    """Their parsers; `verb(function, help)` makes one."""
    one = verb(shell, "run a command on a host of the kept lab, or open a shell there")
    one.add_argument("--user", default="root", help="as whom (default: root; alice submits jobs)")
    one.add_argument("host", help="head, dgx01, fixed-1, p5-1 ...: as Slurm calls it")
    one.add_argument("command", nargs=argparse.REMAINDER, help="one word: a line for the shell there")

    one = verb(submit, "submit a job with sbatch, as an ordinary user does")
    one.add_argument("--nodes", type=int, default=1, help="default: 1")
    one.add_argument("--gpus", type=int, default=8, help="of each node (default: 8, all)")
    one.add_argument("--time", default="20m", help="its limit: 90s, 20m, 1h (default: 20m)")
    one.add_argument("--name", default=jobs.Wanted.name, help="default: %(default)s")
    one.add_argument("--user", default="alice", help="default: %(default)s")
    one.add_argument("command", nargs=argparse.REMAINDER, help=f"what it runs (default: {jobs.Wanted.command})")

    one = verb(wait, "say what the controller does until a job, or a node, is so far")
    one.add_argument("job", metavar="job|node", help="a job's number or name; a node's name")
    said = "; ".join(f"{state}: {what}" for state, what in jobs.STATES.items())
    one.add_argument("state", choices=tuple(jobs.STATES), help=said)
    one.add_argument("--limit", default="10m", help="exit code 1 after so long (default: %(default)s)")

    one = verb(fault, "let something go wrong; without a kind: what there is")
    one.add_argument("kind", nargs="?")
    one.add_argument("words", nargs="*", help="where")
    one.add_argument("--market", choices=MARKETS, help="no-capacity: of this market alone")
    one.add_argument("--notice", default="30s", help="spot-notice: so long before the end (EC2: 120s; default: 30s)")
    one.add_argument("--clear", action="store_true", help="end all faults that can be ended")

    one = verb(price, "what renting costs; with a type and a price: publish it")
    one.add_argument("instance_type", nargs="?", metavar="TYPE")
    one.add_argument("usd", nargs="?", type=float, metavar="USD", help="of an hour of one instance")
    one.add_argument("--spot", action="store_true", help="the price on the spot market, not on demand")
