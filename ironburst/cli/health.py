"""`ironburst health parse TOOL < output` and `ironburst health xid NUMBER`: what the gate
thinks of an output, anywhere.
"""

from __future__ import annotations

import argparse
import json
import sys
from importlib import resources

from ironburst import __version__
from ironburst.cli import Subparsers
from ironburst.health import tables, tools, xid
from ironburst.health.expectation import Expectation
from ironburst.health.findings import Finding, healthy
from ironburst.health.thresholds import size_bytes

EXIT_CODES = (
    "Exit code 0: healthy; 3: not healthy, or not understood (every reason on its own line); 2: bad input; 1: a bug."
)


def data(name: str) -> str:
    """A data file of the catalogue."""
    return resources.files("ironburst.catalog").joinpath("data", name).read_text("utf-8")


def add_parser(subparsers: Subparsers) -> None:
    """`ironburst health` and its verbs."""
    parser = subparsers.add_parser(
        "health",
        description="What the gate of a GPU node thinks.",
    )
    verbs = parser.add_subparsers(dest="health_verb", required=True, metavar="VERB")
    _add_parse(verbs)
    _add_xid(verbs)


def _add_parse(verbs: Subparsers) -> None:
    example = "nvidia-smi -q | ironburst health parse nvidia-smi --gpu-model 'H100 SXM5 80GB' --gpus 8"
    parse = verbs.add_parser(
        "parse",
        help="judge a captured output on standard input",
        description="Judge a captured output of a tool, read from standard input. Fails closed: what is cut, mixed up "
        "or not understood is not healthy. Without a declaration only the output itself is judged; with one it must "
        "also be what was declared.",
        epilog=f"{EXIT_CODES} example: {example}",
    )
    option, whole = parse.add_argument, _positive
    option("tool", choices=list(tools.TOOLS), metavar="TOOL", help=", ".join(tools.TOOLS))
    option("--gpu-model", metavar="MODEL", help="as in the catalogue: 'H100 SXM5 80GB'")
    option("--gpus", type=whole, metavar="N", help="how many GPUs there must be")
    option("--driver", metavar="VERSION", help="the driver that must be loaded: 580.95.05")
    option(
        "--pcie-width", type=int, metavar="LANES", help="lanes that the machine wires to each GPU; 0: all that it has"
    )
    option("--mig", action="store_true", help="GPUs may be cut up by MIG: such a one has no NVLink")
    accepted = "past uncorrectable errors of a GPU that a person accepts"
    option("--accepted-uncorrectable", type=int, default=0, metavar="N", help=accepted)
    option("--columns", default="", metavar="A,B", help="nvidia-smi: names of the columns of a CSV without header")
    links = "ibstat: how many ports must be active; the others may be down"
    option("--links", type=whole, metavar="N", help=links)
    option("--rate", type=float, metavar="GB_S", help="ibstat: Gb/s of each active port")
    option("--level", type=whole, metavar="N", help="dcgmi diag: the level that must have run")
    size = "bandwidth: the one message size to judge, as given to the tool: 16G"
    option("--message-size", metavar="SIZE", help=size)
    option("--platform", metavar="NAME", help="bandwidth: the platform as in acceptance_thresholds.csv")
    option("--nodes", type=whole, metavar="N", help="bandwidth: how many nodes took part")
    option("--threshold-id", metavar="ID", help="bandwidth: the row of acceptance_thresholds.csv to judge by")
    option("--checked", action="store_true", help="nccl-tests: the data must have been checked")
    option("--json", action="store_true", help="findings as JSON: check, passed, text")
    option("--explain", action="store_true", help="which line was understood as what, for who reports a fault")
    parse.set_defaults(func=run_parse)


def _add_xid(verbs: Subparsers) -> None:
    look = verbs.add_parser(
        "xid",
        help="what to do about an Xid",
        description="What the table says about one Xid of the kernel log.",
        epilog="Exit code 0: the node may go on working; 3: it must not; 2: bad input; 1: a bug. "
        "example: ironburst health xid 79",
    )
    look.add_argument("xid", type=int, metavar="NUMBER")
    look.add_argument("--text", default="", help="the rest of the message: Xid 154 names its action there")
    look.add_argument("--gpu-model", default="", metavar="MODEL", help="some actions differ on A100")
    look.add_argument("--json", action="store_true", help="as JSON: action, blocks, text")
    look.set_defaults(func=run_xid)


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return int(text)


def expectation(arguments: argparse.Namespace) -> Expectation:
    """What the options declare. Raises ValueError with one sentence for a name that the catalogue does not have."""
    models = tables.models(data("gpus.csv"))
    thresholds = tables.thresholds(data("acceptance_thresholds.csv"))
    model, row, platform = arguments.gpu_model, arguments.threshold_id, arguments.platform
    if model and model not in [known.name for known in models]:
        where = "see ironburst/catalog/data/gpus.csv for the names"
        raise ValueError(f"--gpu-model {model!r} is no GPU of the catalogue: {where}")
    if row and row not in [known.id for known in thresholds]:
        raise ValueError(f"--threshold-id {row!r} is no gate of acceptance_thresholds.csv")
    if platform and platform not in [known.platform for known in thresholds]:
        raise ValueError(f"--platform {platform!r} has no gate in acceptance_thresholds.csv")
    if arguments.message_size and size_bytes(arguments.message_size) is None:
        raise ValueError(f"--message-size {arguments.message_size!r} is no size: give it as 16G or 65536")
    return Expectation(
        gpu_model=arguments.gpu_model,
        gpus=arguments.gpus,
        driver=arguments.driver,
        pcie_width=arguments.pcie_width,
        mig=arguments.mig,
        accepted_uncorrectable=arguments.accepted_uncorrectable,
        links=arguments.links,
        rate_gb_s=arguments.rate,
        columns=tuple(name.strip() for name in arguments.columns.split(",") if name.strip()),
        threshold_id=arguments.threshold_id,
        platform=arguments.platform,
        nodes=arguments.nodes,
        message_size=arguments.message_size,
        checked=arguments.checked,
        level=arguments.level,
        models=models,
        thresholds=thresholds,
    )


def run_parse(arguments: argparse.Namespace) -> int:
    """`ironburst health parse`."""
    try:
        expected = expectation(arguments)
    except ValueError as error:
        print(f"ironburst health parse: {error}", file=sys.stderr)
        return 2
    if sys.stdin.isatty():
        way = "give the tool's output on standard input: nvidia-smi -q | ironburst health parse nvidia-smi"
        print(f"ironburst health parse: {way}", file=sys.stderr)
        return 2
    text = sys.stdin.buffer.read().decode("utf-8", errors="replace")
    findings = tools.parse(arguments.tool, text, expected)
    if arguments.json:
        listed = [finding._asdict() for finding in findings]
        print(json.dumps({"tool": arguments.tool, "healthy": healthy(findings), "findings": listed}, indent=1))
    else:
        if arguments.explain:
            told = tools.explain(arguments.tool, text, expected)
            print("\n".join(f"{part}    <- {meaning or 'not judged, or not read'}" for part, meaning in told))
        print("\n".join(lines(arguments.tool, findings)))
    return 0 if healthy(findings) else 3


def lines(tool: str, findings: list[Finding]) -> list[str]:
    """A line a finding, and the verdict."""
    said = [f"{'ok    ' if finding.passed else 'FAILED'} {finding.check}: {finding.text}" for finding in findings]
    said.append(f"{tool}: {'healthy' if healthy(findings) else 'not healthy'}")
    unknown = [finding.text for finding in findings if finding.check == "understood"]
    if unknown:  # refused because nobody knows it: who reports it needs to send this line alone
        said.append(f"to report, if the machine is sound: ironburst {__version__}, {tool}: {unknown[0]}")
    return said


def run_xid(arguments: argparse.Namespace) -> int:
    """`ironburst health xid`."""
    actions = tables.xid_actions(data("xid_actions.csv"))
    verdict = xid.decide(actions, arguments.xid, arguments.text, arguments.gpu_model)
    if arguments.json:
        print(json.dumps(verdict._asdict()))
    else:
        print(f"{verdict.text} [{verdict.action}{', keep jobs away' if verdict.blocks else ''}]")
    return 3 if verdict.blocks else 0
