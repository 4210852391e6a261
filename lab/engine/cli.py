"""The command line: the Pulumi CLI's verbs and flags that CI, the adapter and the conformance cases use."""

import argparse
import json
import os
import sys
from pathlib import Path

from lab.engine import BANNER, VERSION
from lab.engine.backend import FileBackend
from lab.engine.errors import EXIT_CHANGES, EXIT_FAILED, EngineError
from lab.engine.project import Project, backend_url
from lab.engine.secrets import Crypter, passphrase_from_environment


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        raise EngineError(f"{self.prog}: {message}; see --help")


def parser() -> argparse.ArgumentParser:
    common = _Parser(add_help=False)
    common.add_argument("-s", "--stack", help="the stack's name (default: PULUMI_STACK)")
    common.add_argument("-C", "--cwd", type=Path, default=Path(), help="run as if started in this folder")
    common.add_argument("--non-interactive", action="store_true", help="accepted; lab/engine never asks")
    common.add_argument("--color", default="never", help="accepted; the output has no colours")

    operation = _Parser(add_help=False, parents=[common])
    operation.add_argument(
        "-j", "--json", action="store_true", help="print JSON: events, one a line (preview: one object)"
    )
    operation.add_argument("-p", "--parallel", type=int, default=8, help="operations at once (default 8)")
    operation.add_argument(
        "--expect-no-changes", action="store_true", help=f"exit {EXIT_CHANGES} when there are changes"
    )
    operation.add_argument("-m", "--message", help="accepted, not stored")

    mutation = _Parser(add_help=False, parents=[operation])
    mutation.add_argument("-y", "--yes", action="store_true", help="do it; without this flag nothing is done")
    mutation.add_argument("-f", "--skip-preview", action="store_true", help="no preview first")

    root = _Parser(
        prog="lab.engine", description=f"{BANNER}. State: PULUMI_BACKEND_URL=file://..., PULUMI_CONFIG_PASSPHRASE."
    )
    verbs = root.add_subparsers(dest="verb", required=True, parser_class=_Parser)
    verbs.add_parser("preview", parents=[operation], help="what `up` would do")
    verbs.add_parser("up", aliases=["update"], parents=[mutation], help="bring the resources to what the program wants")
    refresh = verbs.add_parser("refresh", parents=[mutation], help="take over what the providers report")
    refresh.add_argument("--preview-only", action="store_true", help="only show the differences")
    refresh.add_argument("--clear-pending-creates", action="store_true", help="forget creates that were interrupted")
    destroy = verbs.add_parser("destroy", aliases=["down"], parents=[mutation], help="delete all resources")
    destroy.add_argument("--run-program", action="store_true", help="run the program for its delete hooks")
    verbs.add_parser("cancel", parents=[common], help="remove the stack's lock").add_argument(
        "-y", "--yes", action="store_true"
    )
    verbs.add_parser("version", help="print the version")

    nouns = verbs.add_parser("stack", help="init, output, export, import, rm")
    stack = nouns.add_subparsers(dest="noun", required=True, parser_class=_Parser)
    init = stack.add_parser("init", parents=[common], help="make an empty stack")
    output = stack.add_parser("output", parents=[common], help="print the stack's outputs")
    output.add_argument("property", nargs="?", help="only this one")
    output.add_argument("-j", "--json", action="store_true", help="print JSON")
    export = stack.add_parser("export", parents=[common], help="print the state")
    export.add_argument("--file", type=Path, help="write to this file instead")
    for verb in (output, export):
        verb.add_argument("--show-secrets", action="store_true", help="in plain text")
    stack.add_parser("import", parents=[common], help="replace the state").add_argument(
        "--file", type=Path, help="default: standard input"
    )
    rm = stack.add_parser("rm", parents=[common], help="remove an empty stack and its configuration file")
    rm.add_argument("-y", "--yes", action="store_true")
    rm.add_argument("-f", "--force", action="store_true", help="although it has resources")
    rm.add_argument("--preserve-config", action="store_true", help="leave the configuration file")
    for verb in (init, rm):
        verb.add_argument("name", nargs="?", help="the stack's name")
    return root


class Session:
    """Project, stack, backend and secrets of one command."""

    def __init__(self, args: argparse.Namespace):
        if not args.cwd.is_dir():
            raise EngineError(f"--cwd {args.cwd} is not a folder")
        self.project = Project(args.cwd)
        name = getattr(args, "name", None) or args.stack or os.environ.get("PULUMI_STACK") or ""
        self.stack = name.rsplit("/", 1)[-1]
        if not self.stack:
            raise EngineError("which stack? give --stack NAME or set PULUMI_STACK")
        if name not in (self.stack, f"organization/{self.stack}", f"organization/{self.project.name}/{self.stack}"):
            raise EngineError(f"stack {name!r} does not belong to organization/{self.project.name}")
        self.backend = FileBackend(backend_url(), self.project.name, self.stack)
        self._crypters: dict[str, Crypter] = {}

    def crypter_of(self, salt: str) -> Crypter:
        if salt not in self._crypters:
            self._crypters[salt] = Crypter(passphrase_from_environment(), salt)
        return self._crypters[salt]

    def crypter(self) -> Crypter:
        """By the configuration's salt; the first use of a stack without one makes it."""
        salt = self.project.encryption_salt(self.stack)
        if not salt:
            made = Crypter.create(passphrase_from_environment())
            salt = made.encryption_salt
            self._crypters[salt] = made
            self.project.write_encryption_salt(self.stack, salt)
        return self.crypter_of(salt)


def main(argv: list[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    machine_read = "--json" in argv or "-j" in argv or argv[:2] in (["stack", "export"], ["stack", "output"])
    print(BANNER, file=sys.stderr if machine_read else sys.stdout, flush=True)
    try:
        args = parser().parse_args(argv)
        if args.verb == "version":
            print(VERSION)
            return 0
        session = Session(args)
        if args.verb == "stack":
            from lab.engine import stack_commands

            return stack_commands.COMMANDS[args.noun](session, args)
        if args.verb == "cancel":
            print(f"removed {session.backend.unlock()} lock(s) of {session.backend.name}")
            return 0
        return operate(session, args)
    except EngineError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.code


def operate(session: Session, args: argparse.Namespace) -> int:
    """preview, up, refresh, destroy."""
    verb = {"update": "up", "down": "destroy"}.get(args.verb, args.verb)
    preview_only = verb == "preview" or getattr(args, "preview_only", False)
    if args.parallel < 1:
        raise EngineError(f"--parallel is {args.parallel}; it must be 1 or more")
    for flag in ("yes", "skip_preview"):  # the CLI's own words (updateFlagsToOptions)
        if getattr(args, "preview_only", False) and getattr(args, flag):
            raise EngineError(f"--{flag.replace('_', '-')} and --preview-only cannot be used together")
    if not preview_only and not args.yes:
        raise EngineError(f"`{verb}` without --yes changes nothing; look with `preview`, then pass --yes")
    session.backend.read()  # no such stack: say so before anything else
    if preview_only:
        return _run_operation(session, args, verb, preview=True)
    with session.backend.lock():
        if not args.skip_preview and (code := _run_operation(session, args, verb, preview=True, expect=False)):
            return code
        return _run_operation(session, args, verb, preview=False)


def _run_operation(session: Session, args: argparse.Namespace, verb: str, preview: bool, expect: bool = True) -> int:
    from lab.engine import operations
    from lab.engine.events import Events
    from lab.engine.state import decode_deployment

    crypter = session.crypter()
    snapshot = decode_deployment(session.backend.read(), session.crypter_of)
    config = session.project.config(session.stack, lambda: crypter)
    form = "text" if not args.json else "object" if preview else "events"
    events = Events(form, preview, config.mask)
    if not preview:
        session.backend.keep_previous()
    setting = operations.Setting(
        session.project,
        session.stack,
        config,
        snapshot,
        lambda: crypter,
        None if preview else session.backend.write,
        events,
        args.parallel,
    )
    if verb == "refresh":
        succeeded = operations.refresh(setting, args.clear_pending_creates)
    elif verb == "destroy":
        succeeded = operations.destroy(setting, args.run_program)
    else:
        succeeded = operations.update(setting)
    if form == "object":
        print(events.preview_object(config.masked()))
    if not succeeded:
        return EXIT_FAILED
    changed = {op: n for op, n in events.counts.items() if n and op != "same"}
    if expect and args.expect_no_changes and changed:
        raise EngineError(f"no changes were expected, but there are: {json.dumps(changed)}", EXIT_CHANGES)
    return 0
