"""`ironburst hall import FOLDER`: what NetBox knows of a hall, as a proposal for a stack file."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from ironburst import catalog
from ironburst.cli import Subparsers, site_options
from ironburst.cli.arguments import Keyed
from ironburst.hall.netbox_import import lines
from ironburst.hall.netbox_import.machines import KINDS, Platform
from ironburst.hall.netbox_import.proposal import Proposal, proposal
from ironburst.hall.seen import NotUnderstood
from ironburst.nodes import ranges
from ironburst.system.bad_input import BadInput

EPILOG = f"""\
What a device is, its role in NetBox says, if --role says so of it, or if it is called
{", ".join(KINDS)}; else its type, where that is a platform of the
catalogue. A device with power outlets is a PDU.

exit codes:
  0  proposed: look at the three lists at its beginning
  2  bad input: pages that are missing or damaged, a site that isn't there, a file that is
  1  a bug

example:
  ironburst hall import netbox --site dc1 --role compute=gpu --role tor=ethernet --output hall-a.yaml"""


def add_parser(verbs: Subparsers) -> None:
    """The verb's arguments and help."""
    parser = verbs.add_parser(
        "import",
        help="what NetBox knows of a hall, as a proposal for a stack file",
        description="Read saved pages of NetBox's REST API, and propose `halls` of a stack file: what NetBox knows; "
        "what it doesn't, to be declared; and what isn't taken over. Nothing is guessed, and nothing is asked of "
        "NetBox.",
        epilog=EPILOG,
    )
    option = parser.add_argument
    option("folder", type=Path, metavar="FOLDER", help="with the pages as *.json")
    option("--site", metavar="SLUG", help="whose devices; needed where several are there")
    option("--location", metavar="SLUG", help="of the site, with all below it, as the hall (default: the whole site)")
    option("--role", action=Keyed, default=[], metavar="ROLE=KIND", help="slug of a role: what its devices are here")
    option("--output", type=Path, metavar="FILE", help="a new file (default: stdout)")
    option("--json", action="store_true", help="machine-readable")
    parser.set_defaults(func=run)


@site_options.guarded
def run(arguments: argparse.Namespace) -> int:
    """Read, propose; the exit code."""
    try:
        found = proposal(
            _files(arguments.folder),
            {key: platform_of(each) for key, each in catalog.platforms().items()},
            ranges.compact,
            site=arguments.site,
            location=arguments.location,
            roles=dict(map(_role, arguments.role)),
        )
    except NotUnderstood as error:
        raise BadInput(f"{arguments.folder}: {error}") from None
    text = json.dumps(_as_json(found)) if arguments.json else "\n".join(lines.lines(found))
    if arguments.output is None:
        print(text)
        return 0
    try:
        with arguments.output.open("x", encoding="utf-8") as file:
            file.write(f"{text}\n")
    except FileExistsError:
        raise BadInput(f"{arguments.output} is there already: give another --output") from None
    except OSError as error:
        raise BadInput(f"{arguments.output} can't be written: {error.strerror}") from None
    told = ", ".join(f"{len(found.of(which))} {words}" for which, words in WORDS.items())
    print(f"{arguments.output}: {told}; then: ironburst validate and ironburst hall plan of the whole stack file")
    return 0


WORDS = {"declare": "things to declare", "look": "to look at", "left": "not taken over"}


def _files(folder: Path) -> dict[str, str]:
    found = {}
    for path in sorted(folder.glob("*.json")):
        try:
            found[path.name] = path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            raise BadInput(f"{path} isn't UTF-8 ({error.reason} at byte {error.start}): save it again") from None
        except OSError as error:
            raise BadInput(f"{path} can't be read: {error.strerror}") from None
    if not found:
        raise BadInput(f"{folder} has no *.json: save NetBox's pages there, as `next` says, until it is null")
    return found


def _role(text: str) -> tuple[str, str]:
    role, equals, kind = text.partition("=")
    if not (role and equals and kind in KINDS):
        raise BadInput(f"--role {text}: write ROLE=KIND, with KIND one of {', '.join(KINDS)}")
    return role, kind


def platform_of(each: catalog.Platform) -> Platform:
    """What NetBox says of it, too."""
    return Platform(each.slug, each.height_u, each.weight_kg, each.psu_count, each.psu_watts_each)


def _as_json(found: Proposal) -> dict[str, object]:
    return {"hall": found.hall, "notes": [asdict(note) | {"message": str(note)} for note in found.notes]}
