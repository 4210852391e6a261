"""`ironburst receive`: the gate before the site's Prometheus, for what rented nodes push."""

from __future__ import annotations

import argparse
import sqlite3
import sys
import threading
import time
from contextlib import closing
from urllib.parse import urlsplit

from ironburst.cli import Subparsers, site_options
from ironburst.cli.arguments import address
from ironburst.controller import records
from ironburst.controller.ledger import LedgerError
from ironburst.monitoring import receiving
from ironburst.monitoring.receiving import Answer, Gate, Pusher
from ironburst.system.bad_input import BadInput
from ironburst.system.signals import handled

TO = f"http://127.0.0.1:9090{receiving.PATH}"
LOOK_S = 2.0  # between two looks at the ledger
SAID_S = 300.0  # the same about the same address is said once in that time


def add_parser(subparsers: Subparsers) -> None:
    """The verb's arguments and help."""
    parser = subparsers.add_parser(
        "receive",
        description="Take what rented nodes push (Prometheus' remote write) and pass it on to Prometheus, until "
        "SIGTERM or Ctrl-C. It counts only from the address of an open lease, and as that lease's: labels node, lease "
        "and rented are the ledger's, whatever was sent. It reads the ledger, writes nothing and needs no secret: run "
        "it on the head, as a user of group ironburst who is nobody else.",
        epilog="exit codes:\n  0  stopped\n  2  bad input: the document, the ledger, an address that can't be had\n\n"
        "example:\n  ironburst receive --document /srv/ironburst/prod.json",
    )
    site_options.add(parser, needs_scheduler=False, prints_json=False)
    told = "where it listens (default: `monitoring.receiver` of the document, which rented nodes push to)"
    parser.add_argument("--listen", metavar="ADDRESS:PORT", help=told)
    told = f"where Prometheus takes remote write (default: {receiving.PATH} of the document's `monitoring.url`, or "
    told += f"{TO}); it is started with --web.enable-remote-write-receiver"
    parser.add_argument("--to", metavar="URL", help=told)
    parser.set_defaults(func=run)


@site_options.guarded
def run(arguments: argparse.Namespace) -> int:
    """Receive until a signal asks to stop."""
    given, to = arguments.listen, arguments.to
    if not given or not to:
        declared = site_options.read_document(arguments).monitoring
        given = given or declared.receiver
        to = to or (f"{declared.url.rstrip('/')}{receiving.PATH}" if declared.url else TO)
    if not given:
        raise BadInput("the document has no monitoring.receiver, so no node pushes: declare it, or give --listen")
    ip, port = address("--listen", given, "10.0.0.10:8644")
    if ip.is_unspecified or ip.is_global:
        raise BadInput(f"--listen {given}: give the address of the head that rented nodes reach, and no other")
    if urlsplit(to).scheme not in ("http", "https"):
        raise BadInput(f"--to {to} is no http or https URL: write {TO}")
    gate, said, stop = Gate(lambda: _leases(arguments), receiving.forward_to(to)), _Said(), threading.Event()
    if wrong := gate.look():
        raise BadInput(wrong)
    try:
        server = receiving.Server(str(ip), port, gate, said.refused)
    except OSError as error:
        raise BadInput(f"--listen {given} can't be used: {error.strerror}") from None
    with handled(lambda *_: stop.set()), server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print(f"ironburst: receives at {ip}:{server.server_port}", file=sys.stderr, flush=True)
        while not stop.wait(LOOK_S):
            said.once("ledger", gate.look())
        server.shutdown()
    return 0


def _leases(arguments: argparse.Namespace) -> dict[str, Pusher | None]:
    """Of the open leases. Raises ValueError."""
    found: dict[str, Pusher | None] = {}
    try:
        with closing(site_options.open_ledger(arguments)) as ledger:
            for lease in ledger.leases():
                if lease.address and lease.state not in (records.TERMINATED, records.ENDED):
                    whose = Pusher(lease.node, lease.id)
                    found[lease.address] = None if lease.address in found else whose
    except (LedgerError, sqlite3.Error) as error:
        raise ValueError(str(error)) from None
    return found


class _Said:
    """Lines on stderr, the same about the same not again and again."""

    def __init__(self) -> None:
        self._at_s: dict[str, float] = {}
        self._lock = threading.Lock()

    def refused(self, address: str, answer: Answer) -> None:
        """By the HTTP status: the figures in the text are others each time."""
        status, why = answer
        self.once(f"{address} {status}", f"{address}: {status}: {why}")

    def once(self, about: str, text: str) -> None:
        """Unless it was said a while ago; empty: nothing."""
        now_s = time.monotonic()
        with self._lock:
            if not text or now_s - self._at_s.get(about, -SAID_S) < SAID_S:
                return
            if len(self._at_s) > 1000:  # addresses that nobody knows
                self._at_s.clear()
            self._at_s[about] = now_s
        print(f"ironburst: {text}", file=sys.stderr, flush=True)
