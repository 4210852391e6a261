"""`stack init | output | export | import | rm`."""

import argparse
import json
import sys

from lab.engine.errors import EngineError
from lab.engine.properties import masked, plain
from lab.engine.state import check_order, decode_deployment, encode_deployment, magic


def init(session, _args: argparse.Namespace) -> int:
    """Make an empty stack."""
    session.crypter()  # verifies the passphrase against an existing salt, else makes one
    session.backend.create()
    print(f"created stack {session.backend.name}")
    return 0


def output(session, args: argparse.Namespace) -> int:
    """Print the stack's outputs, or one of them."""
    outputs = decode_deployment(session.backend.read(), session.crypter_of).stack_outputs
    shown = plain(outputs) if args.show_secrets else masked(outputs)
    if args.property is not None:
        if args.property not in shown:
            raise EngineError(f"the stack has no output {args.property!r}; it has {', '.join(sorted(shown)) or 'none'}")
        value = shown[args.property]
        print(value if isinstance(value, str) and not args.json else json.dumps(value, ensure_ascii=False))
    elif args.json:
        print(json.dumps(shown, indent=2, ensure_ascii=False))
    else:
        for key, value in sorted(shown.items()):
            print(f"{key}\t{value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}")
    return 0


def export(session, args: argparse.Namespace) -> int:
    """Print the state, or write it to a file."""
    deployment = session.backend.read()
    if args.show_secrets:
        snapshot = decode_deployment(deployment, session.crypter_of)
        salt = ((deployment.get("secrets_providers") or {}).get("state") or {}).get("salt", "")
        deployment = (
            encode_deployment(snapshot, salt, lambda text: {"plaintext": text}) if snapshot.resources else deployment
        )
    text = json.dumps({"version": 3, "deployment": deployment}, indent=4, ensure_ascii=False)
    if args.file:
        args.file.write_text(text + "\n")
    else:
        print(text)
    return 0


def import_(session, args: argparse.Namespace) -> int:
    """Replace the state by what `export` wrote."""
    session.backend.read()
    try:
        data = json.loads(args.file.read_text() if args.file else sys.stdin.read())
        deployment = data["deployment"]
        version = data["version"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EngineError(
            f"{args.file or 'standard input'} is not a state that `stack export` wrote: {error!r}"
        ) from None
    if version != 3:
        raise EngineError(f"the state has the version {version!r}; only 3 can be imported")
    manifest = deployment.get("manifest") or {}
    if manifest.get("version") and manifest.get("magic") != magic(manifest["version"]):
        raise EngineError("the state's manifest.magic does not fit its version: the file is damaged")
    snapshot = decode_deployment(deployment, session.crypter_of)
    check_order(snapshot.resources)
    prefix = f"urn:pulumi:{session.stack}::{session.project.name}::"
    for resource in snapshot.resources:
        if not resource.urn.startswith(prefix):
            raise EngineError(f"{resource.urn} belongs to another stack or project than {session.backend.name}")
    crypter = session.crypter()
    encoded = encode_deployment(snapshot, crypter.encryption_salt, lambda text: {"ciphertext": crypter.encrypt(text)})
    with session.backend.lock():
        session.backend.keep_previous()
        session.backend.write(json.dumps(encoded))
    print(f"imported {len(snapshot.resources)} resources into {session.backend.name}")
    return 0


def rm(session, args: argparse.Namespace) -> int:
    """Remove an empty stack and its configuration file."""
    resources = session.backend.read().get("resources") or []
    if not args.yes:
        raise EngineError("`stack rm` without --yes removes nothing")
    if resources and not args.force:
        left = f"the stack {session.backend.name} still has {len(resources)} resources"
        raise EngineError(f"{left}; run `destroy` first, or pass --force")
    with session.backend.lock():
        session.backend.remove()
    if not args.preserve_config:
        session.project.stack_file(session.stack).unlink(missing_ok=True)
    print(f"removed stack {session.backend.name}")
    return 0


COMMANDS = {"init": init, "output": output, "export": export, "import": import_, "rm": rm}
