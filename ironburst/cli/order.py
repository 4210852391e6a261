"""What the verbs have in common that give the controller an order: options, the way there, and what came of it.

Exit codes: 0 done; 1 a bug; 2 bad input, or the controller refused it; 3 what was to end isn't ended yet; 5 it is
written down, and no controller has taken it up yet.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from contextlib import closing
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path

from ironburst.burst import to_json
from ironburst.cli import site_options
from ironburst.config.types import unit_seconds
from ironburst.controller import order_book, order_spool
from ironburst.controller.ledger import Ledger
from ironburst.controller.order_book import Order, Request
from ironburst.system import local_time, terminal
from ironburst.system.bad_input import BadInput

EXIT_CODES = (
    "exit codes: 0 done; 1 a bug; 2 bad input, or refused; 5 written down, and no controller has taken it up yet"
)
WHO = "root and members of the group ironburst may. "
TAKEN_S = 60.0  # a tick may take so long, before an order is heard
_LOOK_S = 0.2
_NOBODY = "no controller is running: the order is written down, and the next one takes it up first, before it rents"


def add(parser: argparse.ArgumentParser, *, until: bool = True) -> None:
    """The common options of an order."""
    if until:
        told = "it ends by itself then: 8h, 18:00, 2026-12-01, '2026-12-01 08:00' (local time)"
        parser.add_argument("--until", metavar="WHEN", help=told)
    parser.add_argument("--why", default="", metavar="TEXT", help="shown to everybody who asks why nothing is rented")


def request(arguments: argparse.Namespace, verb: str, **asked: object) -> Request:
    """What these options ask for. Raises BadInput."""
    until = getattr(arguments, "until", None)
    until_s = None if until is None else when(until, time.time())
    sudo = os.environ.get("SUDO_USER", "") if os.geteuid() == 0 else ""
    return Request(verb, **{"why": arguments.why, "until_s": until_s, "sudo": sudo, **asked})


def when(text: str, now_s: float) -> float:
    """A moment that a person wrote, in local time, after now. Raises BadInput."""
    now = datetime.fromtimestamp(now_s)
    if seconds := unit_seconds(text):
        return now_s + seconds
    try:
        if re.fullmatch(r"\d{1,2}:\d\d", text):
            moment = datetime.combine(now.date(), datetime.strptime(text, "%H:%M").time())
            moment += timedelta(days=moment <= now)
        else:
            moment = datetime.fromisoformat(text)
        at_s = moment.timestamp()
    except (ValueError, OverflowError, OSError):
        like = "8h, 18:00, 2026-12-01 or '2026-12-01 08:00'"
        raise BadInput(f"--until {text!r} is no moment: write {like}") from None
    if at_s <= now_s:
        raise BadInput(f"--until {text!r} is over: it is {local_time.at(now_s)}")
    return at_s


def give(arguments: argparse.Namespace, asked: Request) -> int:
    """Put an order where the controller finds it, wait until it has, and say what came of it. Raises BadInput."""
    path = site_options.ledger_path(arguments)
    id = put(path, asked)
    return tell(arguments, answer(path, id))


def put(path: Path, asked: Request) -> str:
    """Raises BadInput where there is no controller, or the caller may not."""
    if not path.parent.is_dir() or (os.access(path.parent, os.X_OK) and not path.exists()):
        raise BadInput(f"there is no ledger at {path}, so no controller rents: give --ledger")
    try:
        order_spool.prepare(path)
        return order_spool.put(path, json.dumps(to_json(asked)))
    except PermissionError:
        folder = order_spool.folder(path)
        raise BadInput(f"you may not give orders ({folder}): ask root, or to be put into its group") from None
    except FileNotFoundError:
        raise BadInput(f"there is no {order_spool.folder(path)}: run this as root once") from None


def answer(path: Path, id: str, limit_s: float = TAKEN_S) -> Order | None:
    """What came of an order. None: no controller has taken it up."""
    end = time.monotonic() + limit_s
    while True:
        with closing(Ledger(path, read_only=True)) as ledger:
            found = next((each for each in order_book.read(ledger) if each.id == id), None)
        if found and found.answer:
            return found
        if time.monotonic() > end or not site_options.is_owned(path):
            return found if found and found.answer else None
        time.sleep(_LOOK_S)


def tell(arguments: argparse.Namespace, order: Order | None, **more: object) -> int:
    """Print what came of it; the exit code."""
    if order is None:
        path = site_options.ledger_path(arguments)
        busy = f"the controller is busy, and takes it up at its next tick: `ironburst status`, {path}"
        text = busy if site_options.is_owned(path) else f"{_NOBODY} (`systemctl start ironburst`)"
        if arguments.json:
            print(json.dumps({"order": None, "text": text, **more}))
        print(f"ironburst: {text}", file=sys.stderr)
        return 5
    if arguments.json:
        print(json.dumps({"order": asdict(order), "text": order.answer, **more}))
    elif order.refused:
        print(f"ironburst: {local_time.local(order.answer)}", file=sys.stderr)
    else:
        print(
            "\n".join(terminal.wrapped([local_time.local(line) for line in order.answer.split("; ")], terminal.width()))
        )
    return 2 if order.refused else 0


def seconds(option: str, text: str) -> float:
    """A duration that may be 0. Raises BadInput."""
    return float(site_options.duration(option, text, "seconds as in 5s, or 2m", least=0))


def amount(text: str) -> float:
    """Dollars, as people write them: 500, $500, 1,500.50. Raises argparse.ArgumentTypeError."""
    try:
        usd = float(text.lstrip("$").replace(",", ""))
    except ValueError:
        usd = -1.0
    if not 0 <= usd < 1e12:
        raise argparse.ArgumentTypeError(f"{text!r} is no amount of dollars: write 500 or 1500.50")
    return usd
