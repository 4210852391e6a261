"""`ironburst serve`: a page for operators, read from the controller's files; live, or as one file."""

from __future__ import annotations

import argparse
import os
import socket
import sys
from contextlib import suppress
from pathlib import Path

from ironburst.cli import Subparsers, site_options
from ironburst.cli.arguments import Ip, address
from ironburst.page import source
from ironburst.system import files, secrets
from ironburst.system.bad_input import BadInput

LISTEN = "127.0.0.1:8642"
SHORTEST = 16  # characters of a token: nobody guesses it


def add_parser(subparsers: Subparsers) -> None:
    """The verb's arguments and help."""
    parser = subparsers.add_parser(
        "serve",
        description="A page for operators: what is broken, the queue and why each job waits, GPUs over time, leases, "
        "money against the ceilings, decisions, drift. It reads the controller's files alone (document, ledger, "
        "ticks), writes nothing, and asks neither the scheduler nor the cloud. Until SIGTERM or Ctrl-C. "
        "exit codes: 0 done; 1 a bug; 2 bad input",
        epilog="example: ironburst serve --document /srv/ironburst/prod.json, and on your own machine "
        "ssh -L 8642:localhost:8642 head, then http://localhost:8642",
    )
    site_options.add(parser, needs_scheduler=False, prints_json=False)
    told = f"where it answers (default: {LISTEN}); another address than this host's own needs --token-file"
    parser.add_argument("--listen", default=LISTEN, metavar="ADDRESS:PORT", help=told)
    told = "who asks needs this token: its file, or a secret reference (file:PATH, env:NAME); a browser opens "
    told += "http://HOST:PORT/?token=TOKEN once. Put TLS before it: the token goes over the wire as it is"
    parser.add_argument("--token-file", metavar="REFERENCE", help=told)
    told = "the last look for drift, as `ironburst converge --check --receipt FILE` wrote it "
    told += "(default: CLUSTER.check.json beside the document CLUSTER.json)"
    parser.add_argument("--check", type=Path, metavar="FILE", help=told)
    told = "write the page to this file (0640), with all jobs, and end; names and money are in it"
    parser.add_argument("--out", type=Path, metavar="FILE", help=told)
    parser.set_defaults(func=run)


@site_options.guarded
def run(arguments: argparse.Namespace) -> int:
    """Write the page, or serve it until a signal asks to stop."""
    listen = address("--listen", arguments.listen, LISTEN)
    token = read_token(arguments.token_file)
    if token is None and not arguments.out and not listen[0].is_loopback:
        why = "anybody who reaches it could read who runs what: give --token-file FILE, or listen on 127.0.0.1"
        raise BadInput(f"--listen {arguments.listen}: {why}")
    source = _source(arguments)
    if arguments.out:
        try:
            files.write(arguments.out, source.file(), 0o640)
        except OSError as error:
            raise BadInput(f"--out {arguments.out} can't be written: {error.strerror}") from None
        return 0
    return _serve(source, token, *listen)


def _source(arguments: argparse.Namespace) -> source.Source:
    read = site_options.read_document
    document, path = read(arguments), str(arguments.document or os.environ.get("IRONBURST_DOCUMENT"))
    beside = Path(path).with_suffix(".check.json") if Path(path).is_file() else None
    ledger, ticks = site_options.ledger_path(arguments), site_options.ticks_path(arguments)
    return source.Source(source.Files(lambda: read(arguments), ledger, ticks, arguments.check or beside), document)


def _serve(source: source.Source, token: str | None, ip: Ip, port: int) -> int:
    import uvicorn

    from ironburst.page import web

    family = socket.AF_INET6 if ip.version == 6 else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((str(ip), port))
            bound.listen(64)  # who asks from now on is answered as soon as the page is up
        except OSError as error:
            raise BadInput(f"--listen {ip}:{port} can't be used: {error.strerror}") from None
        host = f"[{ip}]" if ip.version == 6 else str(ip)
        print(f"ironburst: http://{host}:{bound.getsockname()[1]}/", file=sys.stderr, flush=True)
        page = web.app(source, token, local=ip.is_loopback)
        # the access log would hold the token
        config = uvicorn.Config(page, log_level="warning", access_log=False, lifespan="off", server_header=False)
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[bound])
    return 0


def read_token(given: str | None) -> str | None:
    """The secret that a reference, or a path, names. Raises BadInput."""
    if given is None:
        return None
    reference = given if given.partition(":")[0] in secrets.SCHEMES else f"file:{Path(given).absolute()}"
    try:
        token = secrets.resolve(reference).strip()
    except secrets.SecretError as error:
        raise BadInput(f"--token-file: {error}") from None
    if len(token) < SHORTEST or not token.isascii() or not token.isprintable() or " " in token:
        how = f"write {SHORTEST} characters or more, without blanks: openssl rand -hex 32"
        raise BadInput(f"--token-file {secrets.shown(reference)}: it holds no token that can't be guessed: {how}")
    return token
