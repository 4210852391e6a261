"""`ironburst stop`: no more renting; with --now what is rented ends, within seconds."""

from __future__ import annotations

import argparse
import os
import pwd
import shlex
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

from ironburst.burst import explain
from ironburst.cli import Subparsers, order, site_options
from ironburst.controller import order_book, records
from ironburst.controller.ledger import Ledger
from ironburst.controller.lock import LockedError
from ironburst.controller.loop import SystemClock
from ironburst.controller.tick import Controller
from ironburst.slurm_programs import UNIT
from ironburst.system.bad_input import BadInput
from ironburst.wiring import clouds, schedulers

_ENDING_S = 60.0  # beyond its grace a node has ended by then, or something is wrong
_STAYS = (records.READY, records.RELEASING)


def add_parser(subparsers: Subparsers) -> None:
    """The verb's arguments and help."""
    parser = subparsers.add_parser(
        "stop",
        description="Nothing new is rented, no further job is let on rented nodes, and each ends with the jobs that "
        "are on it. With --now the jobs go back to the queue and the nodes end within seconds, also where no "
        f"controller runs (as root). It holds until `ironburst resume`, whatever is restarted or published. {order.WHO}"
        f"{order.EXIT_CODES}; 3 what was to end isn't ended yet, or the scheduler or the cloud can't be reached",
        epilog="example: ironburst stop --now --why 'runaway array of bob'",
    )
    site_options.add(parser)
    parser.add_argument("--now", action="store_true", help="put back what runs on rented nodes, and end them")
    told = "with --now: end nodes, too, whose jobs can't be put back (srun, salloc, --no-requeue); these jobs are lost"
    parser.add_argument("--end-jobs", action="store_true", help=told)
    told = "with --now: what a job has between SIGTERM and its node's end, if it needs it (default: "
    parser.add_argument(
        "--grace", default=f"{order_book.GRACE_S:g}s", metavar="TIME", help=f"{told}%(default)s); 2m for a checkpoint"
    )
    order.add(parser)
    parser.set_defaults(func=run)


@site_options.guarded
def run(arguments: argparse.Namespace) -> int:
    """Order it; without a controller, and with --now, do it here."""
    if arguments.end_jobs and not arguments.now:
        raise BadInput("--end-jobs is for --now: without it, nodes end with their jobs")
    grace_s = order.seconds("--grace", arguments.grace)
    path, began = site_options.ledger_path(arguments), time.monotonic()
    now = {"now": True, "end_jobs": arguments.end_jobs, "grace_s": grace_s} if arguments.now else {}
    id = order.put(path, order.request(arguments, "stop", **now))
    if arguments.now and not site_options.is_owned(path) and os.access(path, os.W_OK):
        print("ironburst: no controller is running: its work is done here", file=sys.stderr, flush=True)
        _here(arguments, path)
    given = order.answer(path, id)
    code = order.tell(arguments, given)
    if code or not arguments.now:
        return code
    left = _ended(path, grace_s + _ENDING_S)
    took = explain.duration(time.monotonic() - began)
    if late := [f"{lease.node} ({lease.state})" for lease in left if lease.state not in _STAYS]:
        print(f"ironburst: not ended after {took}: {', '.join(late)}; `ironburst status`", file=sys.stderr)
        return 3
    said = f"still rented: {', '.join(lease.node for lease in left)}" if left else "nothing is rented any more"
    print(f"{said}, after {took}", file=sys.stderr if arguments.json else sys.stdout)
    return 0


def _ended(path: Path, limit_s: float) -> list[records.LeaseRow]:
    """What is rented still, when all that was to end has ended, or the time is over."""
    end = time.monotonic() + limit_s
    while True:
        with closing(Ledger(path, read_only=True)) as ledger:
            left = [lease for lease in ledger.leases() if lease.state != records.TERMINATED]
        if time.monotonic() > end or all(lease.state in _STAYS for lease in left):
            return left
        time.sleep(0.2)


def _here(arguments: argparse.Namespace, path: Path) -> None:
    """As the controller, until what was ordered is done. Raises what its ticks raise."""
    for name in ("ledger", "document", "kubeconfig"):
        if given := getattr(arguments, name):
            setattr(arguments, name, given.absolute())
    become_its_user(path)
    document = site_options.document_reader(arguments)()
    connection = schedulers.SchedulerConnection(arguments)
    queue, clock = connection.follow(document), SystemClock()
    try:
        with site_options.own_ledger(arguments) as ledger:
            cloud = clouds.connect(document)
            controller = Controller(queue, cloud, ledger, clock, karpenter=connection.karpenter)
            controller.tick(document)
            while controller.hurried:
                clock.wait(0.5)
                controller.tick(document)
            controller.stopped(document)
    except LockedError:
        pass  # one has just been started: it does it


def become_its_user(path: Path) -> None:
    """Root becomes the ledger's owner, with the environment of the controller's unit: what is written stays the
    controller's.
    """
    owner = path.stat().st_uid
    if os.geteuid() != 0:
        return
    for name, value in _environment().items():
        os.environ.setdefault(name, value)
    if owner:
        known = pwd.getpwuid(owner)
        os.initgroups(known.pw_name, known.pw_gid)
        os.setgid(known.pw_gid)
        os.setuid(owner)
        os.chdir("/")  # where root was may be no place for that user
        os.environ["HOME"] = known.pw_dir


def _environment() -> dict[str, str]:
    """What the unit gives the controller; nothing where there is no unit."""
    try:
        asked = ["systemctl", "show", UNIT, "--property=Environment,EnvironmentFiles"]
        shown = subprocess.run(asked, capture_output=True, text=True, timeout=10).stdout
    except (OSError, subprocess.TimeoutExpired):
        return {}
    words: list[str] = []
    for line in shown.splitlines():
        name, _, value = line.partition("=")
        if name == "Environment":
            words += shlex.split(value)
        elif name == "EnvironmentFiles" and (file := Path(value.split(" (")[0])).is_file():
            lines = (text.strip() for text in file.read_text().splitlines())
            words += [" ".join(shlex.split(text)) for text in lines if text and text[0] not in "#;"]
    return dict(word.split("=", 1) for word in words if "=" in word)
