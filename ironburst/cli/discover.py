"""`ironburst discover CIDR`: which BMCs are there, as nodes that could be declared. It changes nothing."""

from __future__ import annotations

import argparse
import ipaddress
import json
from dataclasses import asdict
from pathlib import Path
from urllib.parse import urlsplit

from ironburst.adapters.redfish import client as redfish
from ironburst.adapters.redfish import discovery as redfish_discovery
from ironburst.baremetal.discovered import Discovered, platforms_of, proposal
from ironburst.catalog.hardware import gpus, platforms
from ironburst.cli import Subparsers, waiting
from ironburst.cli.site_options import guarded
from ironburst.config import valid
from ironburst.system import secrets
from ironburst.system.bad_input import BadInput
from ironburst.wiring import owned_nodes

MOST_ADDRESSES = 4096
DESCRIPTION = """Ask each address of a network whether it is a BMC with Redfish, and print what could be declared of it.
Without --user it asks for the service root alone, which everybody may read. With --user and --password (a reference), \
it reads the inventory of those whose certificate a known CA signed, or of all with --insecure. A password is tried \
once at each BMC. No address outside the network is asked, whatever an answer says."""
EPILOG = """exit codes:
  0  done, whatever was found
  1  a crash, which is a bug
  2  bad input: a network that isn't private or too large, a password that can't be had

example: ironburst discover 10.0.9.0/24 --user admin --password env:BMC_PASSWORD --ca-file bmc-ca.pem"""


def add_parser(subparsers: Subparsers) -> None:
    """The verb's arguments and help."""
    parser = subparsers.add_parser(
        "discover",
        description=DESCRIPTION,
        epilog=EPILOG,
    )
    parser.add_argument("cidr", metavar="CIDR", help=f"a private network of at most {MOST_ADDRESSES} addresses")
    parser.add_argument("--user", metavar="NAME", help="whose inventory may be read")
    parser.add_argument("--password", metavar="REFERENCE", help=f"env:NAME, file:PATH, {secrets.TO_STORES}")
    parser.add_argument("--ca-file", metavar="PATH", help="CAs that signed the BMCs' certificates, in PEM")
    parser.add_argument("--insecure", action="store_true", help="log in whatever certificate is shown")
    parser.add_argument("--port", type=int, default=None, help="default: 443, with --plain-http 80")
    parser.add_argument("--plain-http", action="store_true", help="without TLS; logs in only with --insecure")
    parser.add_argument("--per-second", type=float, default=20.0, metavar="N", help="addresses (default: %(default)g)")
    parser.add_argument("--stack", type=Path, metavar="STACK_FILE", help="leave out BMCs that it declares")
    parser.add_argument("--json", action="store_true", help="a list, with the inventories")
    parser.set_defaults(func=run)


@guarded
def run(arguments: argparse.Namespace) -> int:
    """Look, ask, print."""
    redfish.hush()
    addresses, password = _addresses(arguments.cidr), _password(arguments)
    declared = _declared(arguments.stack)
    port = arguments.port or (80 if arguments.plain_http else 443)
    if not 0 < port < 65536 or not 0 < arguments.per_second <= 1000:
        raise BadInput("--port is from 1 to 65535, and --per-second above 0 up to 1000")
    try:
        with waiting.told(f"asking {len(addresses)} addresses of {arguments.cidr}"):
            found = list(
                redfish_discovery.look(
                    [each for each in addresses if each not in declared],
                    port=port,
                    plain=arguments.plain_http,
                    ca_file=arguments.ca_file,
                    per_second=arguments.per_second,
                )
            )
            if password is not None:
                found = list(
                    redfish_discovery.read(
                        found, username=arguments.user, password=password, insecure=arguments.insecure
                    )
                )
    except OSError as error:
        raise BadInput(f"--ca-file {arguments.ca_file}: {error.strerror or error}: give CAs in PEM") from None
    print(_json(found) if arguments.json else _text(found, arguments, len(addresses)))
    return 0


def _addresses(cidr: str) -> list[str]:
    try:
        network = ipaddress.IPv4Network(cidr)
    except ValueError as error:
        raise BadInput(f"{cidr!r} is no IPv4 network ({error}): write it as 10.0.9.0/24") from None
    if not network.is_private:
        raise BadInput(f"{cidr} is a public network: BMCs belong into a private one, and others are not asked")
    if network.num_addresses > MOST_ADDRESSES:
        raise BadInput(f"{cidr} has {network.num_addresses} addresses, at most {MOST_ADDRESSES} are asked: give a part")
    return [str(address) for address in network.hosts()]


def _password(arguments: argparse.Namespace) -> str | None:
    if (arguments.user is None) != (arguments.password is None):
        raise BadInput("--user and --password belong together: give both, or neither")
    if arguments.password is None:
        return None
    try:
        secrets.check(arguments.password)
        return secrets.resolve(arguments.password)
    except (secrets.SecretError, ValueError) as error:
        raise BadInput(f"--password: {error}") from None


def _declared(path: Path | None) -> set[str]:
    """Addresses of BMCs that are declared."""
    if path is None:
        return set()
    nodes = owned_nodes.declared(valid.valid(path)).values()
    return {urlsplit(node.inputs.bmc_address).hostname or "" for node in nodes}


def _platforms(found: list[Discovered]) -> dict[str, list[str]]:
    known, models = list(platforms().values()), list(gpus().values())
    return {each.address: platforms_of(each.hardware, known, models) for each in found if each.hardware}


def _json(found: list[Discovered]) -> str:
    fits = _platforms(found)
    more = [{"platforms": fits.get(each.address, []), "no_node": each.no_node} for each in found]
    return json.dumps([asdict(each) | told for each, told in zip(found, more, strict=True)], indent=1)


def _text(found: list[Discovered], arguments: argparse.Namespace, count: int) -> str:
    if not found:
        return f"# no Redfish service answers at the {count} addresses of {arguments.cidr}"
    user, password = arguments.user or "admin", arguments.password or "env:BMC_PASSWORD"
    return "\n".join(proposal(found, user, password, _platforms(found)))
