"""python -m lab.kubernetes: build, start, look at and end a control plane by hand."""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable

from lab.kubernetes import binaries
from lab.kubernetes.commands import LOOPBACK, ORDER, Options
from lab.kubernetes.control_plane import ControlPlane
from lab.kubernetes.nodes import NodeSpec
from lab.system import LabError

TELL_S = 15.0
TAKES = "10 minutes of processor or more; an hour on a busy machine"
Verb = Callable[[argparse.Namespace], int]


def build(_: argparse.Namespace) -> int:
    """Build the programs, if they aren't there, and print their folder."""
    _build()
    print(binaries.folder())
    return 0


def kubelet(_: argparse.Namespace) -> int:
    """Build a real kubelet, if it isn't there, and print its path."""
    print(binaries.kubelet())
    return 0


def kubeadm(_: argparse.Namespace) -> int:
    """Build a real kubeadm and etcd's clients, if they aren't there, and print their folder."""
    print(binaries.kubeadm())
    return 0


def up(arguments: argparse.Namespace) -> int:
    """Start the control plane and print the administrator's kubeconfig."""
    _build()
    users: dict[str, list[str]] = {name: [] for name in arguments.user}
    known = arguments.known_authority
    options = Options(users, address=arguments.address, port=arguments.port, known_authority=known)
    print(ControlPlane(arguments.prefix).up(options))
    return 0


def down(arguments: argparse.Namespace) -> int:
    """End it and remove its files."""
    ended = ControlPlane(arguments.prefix).down()
    print(f"ended: {', '.join(ended)}" if ended else f"nothing of Kubernetes ran in lab {arguments.prefix}")
    return 0


def status(arguments: argparse.Namespace) -> int:
    """What runs, as JSON."""
    state = ControlPlane(arguments.prefix).status()
    print(json.dumps(state, indent=1))
    return 0 if state["up"] else 3


def restart(arguments: argparse.Namespace) -> int:
    """Kill one program, and start it again."""
    plane = ControlPlane(arguments.prefix)
    plane.kill(arguments.program)
    time.sleep(arguments.pause)
    plane.start(arguments.program)
    return 0


def user(arguments: argparse.Namespace) -> int:
    """Make a user and print its kubeconfig."""
    print(ControlPlane(arguments.prefix).add_user(arguments.name, arguments.group))
    return 0


def node(arguments: argparse.Namespace) -> int:
    """Register a stand-in node."""
    gpus = {"nvidia.com/gpu": str(arguments.gpus)} if arguments.gpus else {}
    labels = dict(pair.partition("=")[::2] for pair in arguments.label)
    spec = NodeSpec(arguments.name, labels, {"cpu": "192", "memory": "2Ti"} | gpus, arguments.taint)
    ControlPlane(arguments.prefix).add_node(spec)
    print(f"registered {spec.name}: kwok node, no kubelet: stand-in")
    return 0


def _build() -> None:
    """What is built, and each 15 s how far it is."""
    begun = told = time.monotonic()

    def compiling(package: str, count: int) -> None:
        nonlocal told
        if time.monotonic() - told >= TELL_S:
            told = time.monotonic()
            print(f"  {count} packages compiled, now {package} ({told - begun:.0f} s so far)", file=sys.stderr)

    of = len(binaries.PROGRAMS)
    for at, name in enumerate(binaries.build(compiling=compiling), 1):
        if at == 1:
            print(f"Kubernetes is built from its Go modules, once: {of} programs, {TAKES}", file=sys.stderr)
        print(f"building {name}, {at} of {of} ({time.monotonic() - begun:.0f} s so far)", file=sys.stderr)


def parser() -> argparse.ArgumentParser:
    """The command line: one function a verb."""
    top = argparse.ArgumentParser(prog="python -m lab.kubernetes", description=__doc__)
    verbs = top.add_subparsers(dest="verb", required=True)

    def verb(function: Verb, help_text: str) -> argparse.ArgumentParser:
        sub = verbs.add_parser(function.__name__, help=help_text, description=help_text)
        default = os.environ.get("LAB_PREFIX", "lab")
        sub.add_argument("--prefix", default=default, help="name of the lab; two names run side by side")
        sub.set_defaults(function=function)
        return sub

    verb(build, "build the programs from Go modules into the cache, once (minutes), and print their folder")
    verb(kubelet, "build a real kubelet, once (minutes), and print its path; nothing of the lab needs it")
    verb(kubeadm, "build a real kubeadm and etcd's clients, once (two minutes), and print their folder; for tests")
    starter = verb(
        up, "start the control plane, building it first if need be, and print the administrator's kubeconfig"
    )
    starter.add_argument("--address", default=LOOPBACK, help="where the API server listens (%(default)s)")
    starter.add_argument("--port", type=int, default=0, help="and its port (default: any free one)")
    starter.add_argument("--user", action="append", default=[], metavar="NAME", help="as `user` makes; may be repeated")
    told = "its certificates are signed by the authority that stacks/Pulumi.lab-kubernetes.yaml names"
    starter.add_argument("--known-authority", action="store_true", help=told)
    verb(down, "end the control plane and remove its files")
    verb(status, "say what runs, as JSON; exit code 3 if not all does")
    again = verb(restart, "kill one program and start it again, with its port and its data")
    again.add_argument("program", choices=ORDER)
    again.add_argument("--pause", type=float, default=0.0, metavar="SECONDS", help="so long it is away")
    maker = verb(user, "make a user with a token and print its kubeconfig; RBAC says what it may do")
    maker.add_argument("name")
    maker.add_argument("--group", action="append", default=[], help="may be repeated")
    adder = verb(node, "register a node: a stand-in, kept alive by kwok")
    adder.add_argument("name")
    adder.add_argument("--gpus", type=int, default=0, metavar="N", help="nvidia.com/gpu, a second after it is ready")
    adder.add_argument("--label", action="append", default=[], metavar="KEY=VALUE", help="may be repeated")
    adder.add_argument("--taint", action="append", default=[], metavar="KEY=VALUE:EFFECT", help="may be repeated")
    return top


def main(argv: list[str] | None = None) -> int:
    """Exit codes: that of the verb; 1 with one sentence if the lab is at fault; 2 bad arguments."""
    arguments = parser().parse_args(argv)
    try:
        verb: Verb = arguments.function
        return verb(arguments)
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
