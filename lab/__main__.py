"""python -m lab: start, use and end a lab by hand."""

import argparse
import json
import os
import sys
from collections.abc import Callable

from lab.hosts import rootfs
from lab.hosts.box import KEPT, Box
from lab.hosts.host import SSH_OPTIONS
from lab.kubernetes.control_plane import ControlPlane
from lab.site import Site
from lab.system import LabError

Verb = Callable[[argparse.Namespace], int]


def up(arguments: argparse.Namespace) -> int:
    """Start the lab, then say how to reach its hosts."""
    site = Site(arguments.prefix)
    site.up(start=arguments.hosts) if arguments.hosts is not None else site.up()
    for host in site.hosts():
        print(f"{host.name:8} {host.spec.address:12} {host.state()}")
    print(f"ssh:      python -m lab ssh {site.prefix} dgx01 [COMMAND]")
    print(f"clients:  python -m lab run {site.prefix} ansible-playbook ...    (in the lab's network)")
    print(f"key:      {rootfs.ssh_key(site.box.root)}  options: {' '.join(SSH_OPTIONS)}")
    print(f"end:      python -m lab down {site.prefix}")
    return 0


def down(arguments: argparse.Namespace) -> int:
    """End the lab; its report stays."""
    site = Site(arguments.prefix)
    ControlPlane(arguments.prefix).down()
    site.down()
    kept = site.dir / KEPT
    print(f"lab {site.prefix} is down" + (f"; kept {kept}" if kept.is_dir() else ""))
    return 0


def status(arguments: argparse.Namespace) -> int:
    """What runs, as JSON."""
    state = Site(arguments.prefix).status()
    print(json.dumps(state, indent=1))
    return 0 if state["up"] else 3


def leftovers(arguments: argparse.Namespace) -> int:
    """What exists of the lab by kind, as JSON."""
    counts = Box(arguments.prefix).leftovers()
    print(json.dumps(counts))
    return 1 if any(counts.values()) else 0


def ssh(arguments: argparse.Namespace) -> int:
    """Become ssh to a host."""
    argv = Site(arguments.prefix).host(arguments.host).ssh_argv(*arguments.command)
    os.execvp(argv[0], argv)


def run(arguments: argparse.Namespace) -> int:
    """Become a client in the lab's network."""
    argv = [*Box(arguments.prefix).net_prefix(), *arguments.command]
    os.execvp(argv[0], argv)


def prepare(_: argparse.Namespace) -> int:
    """Build the images into the cache."""
    Site("prepare").prepare()
    return 0


def parser() -> argparse.ArgumentParser:
    """The command line: one function a verb."""
    top = argparse.ArgumentParser(prog="python -m lab", description=__doc__)
    verbs = top.add_subparsers(dest="verb", required=True)

    def verb(function: Verb, help_text: str, prefix: bool = True) -> argparse.ArgumentParser:
        sub = verbs.add_parser(function.__name__, help=help_text, description=help_text)
        if prefix:
            sub.add_argument("prefix", help="name of the lab; two names run side by side")
        sub.set_defaults(function=function)
        return sub

    verb(up, "start the lab: box, repositories, bare hosts").add_argument(
        "--hosts", nargs="*", help="bare-metal hosts to start (default: all; the others stay off)"
    )
    verb(down, "end the lab and remove all it left, except its report")
    verb(status, "say what runs, as JSON; exit code 3 if the lab is down")
    verb(leftovers, "count what exists of the lab by kind, as JSON; exit code 1 if anything does")
    remote = verb(ssh, "run a command on a host as root, or open a shell there")
    remote.add_argument("host")
    remote.add_argument("command", nargs=argparse.REMAINDER)
    verb(run, "run a client in the lab's network").add_argument("command", nargs=argparse.REMAINDER)
    verb(prepare, "build the images into the cache, start nothing", prefix=False)
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
