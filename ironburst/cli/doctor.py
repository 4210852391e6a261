"""`ironburst doctor STACK_FILE`: is what the declared cluster needs there, and usable? It changes nothing."""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

from ironburst import document
from ironburst.adapters.slurm.doctor import Head
from ironburst.adapters.slurm.scheduler import Slurm
from ironburst.cli import Subparsers, waiting
from ironburst.cli.playbook_options import declaration
from ironburst.cli.site_options import guarded
from ironburst.config.load import settings
from ironburst.config.models import ClusterConfig
from ironburst.config.scheduler_models import Slurm as SlurmConfig
from ironburst.config.valid import valid
from ironburst.doctor import slurm
from ironburst.doctor.checks import CheckResult
from ironburst.doctor.declared import DeclaredSite
from ironburst.doctor.published import check as check_published
from ironburst.document import ClusterDocument
from ironburst.document.of_stack import document as stack_document
from ironburst.system.bad_input import BadInput
from ironburst.wiring import clouds, site_doctor
from ironburst.wiring.schedulers import slurm_prefix

EXIT_CODES = """exit codes:
  0  everything is ok
  1  a crash, which is a bug
  2  bad input: a stack file or document that can't be used, or --cloud for a stack file without one
  3  something was found: a line that isn't ok says what to do

A line is ok, warn (it works, and something is about to go wrong or is not as declared), fail, or unknown: it could \
not be asked, and the line says which right lacks. With --json the findings are a list of check, looked_at, state, \
seen, todo.

--from says where this runs, and so what can be seen from here: hall: the cloud, what is published, the hosts by ssh, \
their packages, the BMCs; cloud: the same without BMCs, which are on a network of their own; ci: the cloud and what is \
published, and with --inventory the hosts, too, by the ssh that it declares (a jump is ProxyJump in its \
ansible_ssh_common_args). Hosts are asked with the inventory's logins, as by `ironburst converge`; a BMC is asked \
once, so a wrong password locks nothing.

The cloud is asked with the caller's credentials, as its SDK finds them. The launches are dry runs, as the \
controller's role where the caller may take it. One question, for the cost allocation tag, costs a cent. On the head \
of a Slurm, commands run that only show.

example: ironburst doctor stacks/Pulumi.prod.yaml --cloud --document /srv/ironburst/prod.json"""


PLACES = ("hall", "cloud", "ci")


def add_parser(subparsers: Subparsers) -> None:
    """The verb's arguments and help."""
    parser = subparsers.add_parser(
        "doctor",
        description="Look whether what a declared cluster needs is there and usable, and say what to do where not. "
        "It changes nothing.",
        epilog=EXIT_CODES,
    )
    parser.add_argument("stack_file", type=Path, help="as in stacks/Pulumi.lab.yaml")
    told = "only the cloud: credentials, quotas, zones, images, rights, hall link, secret, billing, capacity "
    parser.add_argument(
        "--cloud", *clouds.FLAGS, dest="cloud", action="store_true", help=told + "(default: all of these)"
    )
    told = "only a Slurm that isn't managed: has it what `ironburst slurm snippet` prints? Asked on its head"
    parser.add_argument("--slurm", action="store_true", help=told)
    told = "all that can be seen from there: hosts, BMCs, packages, the cloud, the document (below)"
    parser.add_argument("--from", dest="place", choices=PLACES, help=told)
    told = "folder of an environment, as in inventory/lab: with --from hall and cloud; with ci, where hosts are reached"
    parser.add_argument("--inventory", type=Path, help=told)
    told = "what to put before commands on the head, such as 'ssh head' (default: $IRONBURST_SLURM_PREFIX, or nothing)"
    parser.add_argument("--slurm-prefix", default=None, metavar="COMMAND", help=told)
    told = "the published ClusterDocument (default: $IRONBURST_DOCUMENT); without one, launches and queues are unknown"
    parser.add_argument("--document", type=Path, default=None, help=told)
    parser.add_argument("--json", action="store_true", help="the findings as JSON")
    parser.set_defaults(func=run)


@guarded
def run(arguments: argparse.Namespace) -> int:
    """Look, and say what was seen as it comes."""
    config = valid(arguments.stack_file)
    findings = []
    with waiting.told("asking the cloud and the head") if arguments.json else nullcontext():
        for finding in _examine(arguments, config):
            findings.append(finding)
            if not arguments.json:
                print("\n".join(_lines(finding)), flush=True)
    ok = all(finding.state == "ok" for finding in findings)
    if arguments.json:
        listed = [asdict(finding) for finding in findings]
        print(json.dumps({"stack": str(arguments.stack_file), "ok": ok, "findings": listed}, indent=1))
    else:
        print(_summary(findings))
    return 0 if ok else 3


def _examine(arguments: argparse.Namespace, config: ClusterConfig) -> Iterator[CheckResult]:
    """What is asked for; nothing said: AWS, and a Slurm that isn't managed. Raises BadInput."""
    every = not (arguments.cloud or arguments.slurm)
    if arguments.place:
        yield from _from_there(arguments, config)
    beside = isinstance(config.scheduler, SlurmConfig) and not config.scheduler.managed
    if arguments.slurm and not beside:
        raise BadInput(
            f"{arguments.stack_file} declares no Slurm that isn't managed: `ironburst converge --check` looks"
        )
    if arguments.cloud and config.cloud is None:
        raise BadInput(f"{arguments.stack_file} declares no cloud: there is nothing of it to look at")
    if arguments.cloud or every:
        of_file = settings(arguments.stack_file)
        site = DeclaredSite(config, _document(arguments, config), datetime.now(UTC), of_file)
        for its in clouds.declared(config):
            there = replace(site, config=its.config, document=_document_in(its.config, site.document))
            for result in its.provider.doctor(there):
                check, todo = f"{its.whose} {result.check}".lstrip(), its.placed(result.todo)
                yield replace(result, check=check, seen=its.placed(result.seen), todo=todo)
    if beside and (arguments.slurm or every):
        prefix = slurm_prefix(arguments.slurm_prefix or None)
        yield from slurm.check(slurm.UnmanagedSlurm(stack_document(arguments.stack_file), Head(Slurm(prefix))))


def _from_there(arguments: argparse.Namespace, config: ClusterConfig) -> Iterator[CheckResult]:
    """What is asked beside AWS and a Slurm that isn't managed. Raises BadInput."""
    published = _document(arguments, config)
    yield from check_published(DeclaredSite(config, published, datetime.now(UTC), {}))
    if arguments.place == "ci" and arguments.inventory is None:
        return
    if published is None:
        raise BadInput("the hosts' addresses are in the published document: give --document PATH or IRONBURST_DOCUMENT")
    if published.managed_hosts:
        if arguments.inventory is None:
            raise BadInput("the hosts' logins are in the inventory: give --inventory, as in inventory/prod")
        try:
            path, document = declaration(arguments)
        except ValueError as error:
            raise BadInput(str(error)) from None
        yield from site_doctor.examine_hosts(config, document, path, arguments.inventory)
    if arguments.place == "hall":
        yield from site_doctor.examine_bmcs(config)


def _document(arguments: argparse.Namespace, config: ClusterConfig) -> ClusterDocument | None:
    path = arguments.document or os.environ.get("IRONBURST_DOCUMENT")
    if not path:
        return None
    published = document.read(path)
    if published.cluster != config.name:
        raise BadInput(f"{path} is the document of {published.cluster}, {arguments.stack_file} declares {config.name}")
    return published


def _document_in(config: ClusterConfig, published: ClusterDocument | None) -> ClusterDocument | None:
    """The part of a document that is of the declaration's one cloud."""
    return published.of_provider(config.cloud.provider) if published and config.cloud else published


def _lines(finding: CheckResult) -> Iterator[str]:
    yield f"{finding.state:7}  {finding.check}: {finding.looked_at}: {finding.seen}"
    if finding.todo:
        yield f"{'':9}-> {finding.todo}"


def _summary(findings: list[CheckResult]) -> str:
    states = Counter(finding.state for finding in findings)
    return ", ".join(f"{count} {state}" for state, count in states.most_common())
