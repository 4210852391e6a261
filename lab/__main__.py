"""python -m lab, or `ironburst lab`: start, use and end a lab by hand; play with one that `make demo KEEP=1` left."""

import argparse
import json
import os
import sys
from collections.abc import Callable

from lab.demo import kept
from lab.hosts import rootfs
from lab.hosts.box import KEPT, Box
from lab.hosts.host import SSH_OPTIONS
from lab.kubernetes.control_plane import ControlPlane
from lab.play import state, verbs
from lab.play.kept_lab import BadInput, KeptLab
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
    """What runs: of a kept lab all of it, of another one its hosts."""
    site = Site(arguments.prefix)
    said = site.status()
    if kept.is_kept(site.box):
        said = state.gather(KeptLab(arguments.prefix))
    if arguments.json:
        print(json.dumps(said, indent=1))
    elif "engine" in said:
        print("\n".join(state.lines(said)))
    elif said["up"]:
        print("\n".join(f"{host['name']:10} {host['state']:4} {host['address']}" for host in said["hosts"]))
    else:
        print(f"lab {site.prefix} is not up: `make demo KEEP=1` starts one to play with")
    return 0 if said["up"] else 3


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
    top = argparse.ArgumentParser(prog="ironburst lab", description=__doc__)
    subparsers = top.add_subparsers(dest="verb", required=True, metavar="VERB")
    default = os.environ.get("LAB_PREFIX") or "lab"
    named = "name of the lab; two names run side by side"

    def verb(function: Verb, help_text: str, prefix: str | None = "prefix") -> argparse.ArgumentParser:
        sub = subparsers.add_parser(function.__name__, help=help_text, description=help_text)
        if prefix == "[prefix]":
            told = f"{named} (default: $LAB_PREFIX, or lab)"
            sub.add_argument("prefix", nargs="?", default=default, help=told)
        elif prefix:
            sub.add_argument(prefix, help=named)
        sub.set_defaults(function=function)
        return sub

    def played(function: Verb, help_text: str) -> argparse.ArgumentParser:
        sub = verb(function, help_text, None)
        sub.add_argument("--prefix", default=default, help=f"{named} (default: $LAB_PREFIX, or lab)")
        return sub

    verb(
        status, "say what runs, and what is wrong on purpose; exit code 3 if the lab is down", "[prefix]"
    ).add_argument("--json", action="store_true", help="for programs")
    verbs.add(played)
    verb(down, "end the lab and remove all it left, except its report", "[prefix]")
    verb(up, "start the lab: box, repositories, bare hosts").add_argument(
        "--hosts", nargs="*", help="bare-metal hosts to start (default: all; the others stay off)"
    )
    verb(leftovers, "count what exists of the lab by kind, as JSON; exit code 1 if anything does", "[prefix]")
    remote = verb(ssh, "run a command on a host as root, or open a shell there")
    remote.add_argument("host")
    remote.add_argument("command", nargs=argparse.REMAINDER)
    verb(run, "run a client in the lab's network").add_argument("command", nargs=argparse.REMAINDER)
    verb(prepare, "build the images into the cache, start nothing", None)
    return top


def main(argv: list[str] | None = None) -> int:
    """Exit codes: that of the verb; 1 with one sentence if the lab is at fault; 2 bad arguments."""
    arguments = parser().parse_args(argv)
    try:
        verb: Verb = arguments.function
        return verb(arguments)
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 2 if isinstance(error, BadInput) else 1


if __name__ == "__main__":
    sys.exit(main())
