"""A stack file from nothing: what is asked of a person, or given as options. What the answers become: new_stack."""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

from ironburst import catalog
from ironburst.cli import new_stack
from ironburst.cli.new_stack import Site
from ironburst.config.finding import ConfigError
from ironburst.config.stack import load_valid
from ironburst.config.types import NAME_PATTERN, Address, Certificates, Duration, Mail, Network, Range, checked
from ironburst.software import slurm_upgrade
from ironburst.software.model import Os
from ironburst.system.bad_input import BadInput

Given = dict[str, Any]
"""key of an answer: what was given, checked"""


class Wrong(ValueError):
    """An answer that can't be used; the text is one sentence."""


@dataclass(frozen=True)
class Question:
    """One thing to be known. `default`: of what is known so far; None: there is none. `when`: whether it is asked."""

    key: str
    words: str
    read: Callable[[str, Given], Any]
    default: Callable[[Given], str | None] = lambda _: None
    when: Callable[[Given], bool] = lambda _: True


def add(parser: argparse.ArgumentParser) -> None:
    """The options of a site from nothing, beside those that --from-slurm has, too."""
    site = parser.add_argument_group("from nothing")
    site.add_argument("--nodes", metavar="COUNT", help="GPU nodes that you own; 0: none")
    site.add_argument("--names", metavar="RANGE", help="of the nodes, as in dgx[01-04]")
    site.add_argument("--addresses", metavar="RANGE", help="of the nodes, as in 10.0.0.[11-14]")
    site.add_argument("--scheduler", help="slurm or kubernetes (default: slurm)")
    site.add_argument("--managed", metavar="YES|NO", help="no: the scheduler is there already and stays as it is")
    site.add_argument("--api-server", metavar="URL", help="of a Kubernetes cluster that is there")
    site.add_argument("--cluster-dns", metavar="ADDRESS", help="of its DNS service")
    site.add_argument("--ca", metavar="FILE", help="certificate of its authority, PEM")
    site.add_argument("--image", metavar="AMI", help="plain image of EKS's fixed node")
    site.add_argument("--slurm", metavar="RELEASE", help="of a Slurm that is there")
    site.add_argument("--price", metavar="USD", help="of an hour of one rented instance, where the catalogue has none")
    site.add_argument("--zones", help="of the region, as in us-east-1a,us-east-1b (default: two that have the type)")
    site.add_argument("--mail", help="who is told of the budget, with commas between; none: nobody")
    site.add_argument("--yes", action="store_true", help="ask nothing, take what is given and the defaults")


def _of(kind: Any) -> Callable[[Any, Given], Any]:
    def read(text: Any, _: Given) -> Any:
        try:
            return checked(kind, text)
        except ValueError as error:
            raise Wrong(str(error) if repr(text) in str(error) else f"{text!r} {error}") from None

    return read


def _one_of(*allowed: str) -> Callable[[str, Given], str]:
    def read(text: str, _: Given) -> str:
        if text.lower() in allowed:
            return text.lower()
        near = [each for each in allowed if text and each.startswith(text.lower())]
        near = near or difflib.get_close_matches(text.lower(), allowed, 1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise Wrong(f"{text!r} isn't known here; {hint}allowed: {', '.join(allowed)}")

    return read


def _managed(text: str, given: Given) -> str:
    chosen = _one_of("yes", "no")(text, given)
    if (given["scheduler"], chosen, given.get("nodes")) == ("kubernetes", "no", 0):
        raise Wrong("a cluster that is there has nodes, which are declared too: answer with their number under nodes")
    return chosen


def _name(text: str, _: Given) -> str:
    if not re.fullmatch(NAME_PATTERN, text):
        raise Wrong(f"{text!r} is no name: a small letter first, then small letters, digits and -, at most 32")
    return text


def _count(text: str, _: Given) -> int:
    if not text.isdecimal() or int(text) > 1000:
        raise Wrong(f"{text!r} is no number of nodes; write digits alone, from 0 to 1000")
    return int(text)


def _known(look_up: Callable[[str], Any]) -> Callable[[str, Given], str]:
    def read(text: str, _: Given) -> str:
        try:
            look_up(text)
        except catalog.Unknown as error:
            raise Wrong(str(error)) from None
        return text

    return read


def _one_a_node(text: str, given: Given) -> list[str]:
    parts = re.findall(r"(?:[^\s,\[]|\[[^\]]*\])+", text)  # a comma in brackets is the range's
    values: list[str] = _of(Range)(parts[0] if len(parts) == 1 else parts, given)
    if len(values) != given["nodes"]:
        raise Wrong(f"{text!r} gives {len(values)} for {given['nodes']} nodes; give one each, as in gpu[01-04]")
    return values


def _addresses(text: str, given: Given) -> list[str]:
    values = _one_a_node(text, given)
    return [_of(Address)(value, given) for value in values]


def _region(text: str, given: Given) -> str | None:
    if text == "none" and not given["nodes"]:
        raise Wrong("without nodes of your own and without a region there is nothing to declare; name a region")
    return None if text == "none" else _known(catalog.region)(text, given)


def _rent(text: str, given: Given) -> tuple[str, int]:
    kind, _, nodes = text.partition("=")
    if not nodes.isdecimal() or not 0 < int(nodes) <= 1000:
        raise Wrong(f"{text!r}: write TYPE=NODES, as in p5.48xlarge=2")
    return _known(catalog.instance_type)(kind, given), int(nodes)


def _zones(text: str, given: Given) -> list[str]:
    zones = text.replace(",", " ").split()
    for zone in zones:
        if not re.fullmatch(f"{given['region']}[a-z]", zone):
            raise Wrong(f"{zone!r} is not a zone of {given['region']}; write for example {given['region']}a")
    if given["eks"] and len(zones) < 2:
        raise Wrong("EKS takes two zones at least; write for example us-east-1a,us-east-1b")
    return zones


def _usd(text: str, _: Given) -> float:
    if not re.fullmatch(r"\d+(\.\d+)?", text) or not float(text):
        raise Wrong(f"{text!r} is no number above zero; write digits alone, as in 5000 (no sign of money or comma)")
    return float(text)


def _mails(text: str, given: Given) -> list[str]:
    return [] if text == "none" else [_of(Mail)(each, given) for each in text.replace(",", " ").split()]


def _image(text: str, _: Given) -> str:
    if not re.fullmatch(r"ami-[0-9a-f]{8,17}", text):
        raise Wrong(f"{text!r} is no image; write for example ami-0123456789abcdef0")
    return text


def _api_server(text: str, _: Given) -> str:
    if not re.fullmatch(r"https://[^/\s]+", text):
        raise Wrong(f"{text!r} is no API server; write for example https://10.0.0.5:6443")
    return text


def _ca(text: str, given: Given) -> str:
    try:
        return str(_of(Certificates)(Path(text).expanduser().read_text(), given))
    except Wrong:
        raise Wrong(f"{text} holds no certificate in PEM; kubeadm has it as /etc/kubernetes/pki/ca.crt") from None
    except (OSError, UnicodeDecodeError) as error:
        raise Wrong(f"{text} can't be read: {getattr(error, 'strerror', None) or 'it is no text'}") from None


def _like_home(given: Given) -> str | None:
    """The cheapest instance with the GPUs of the owned nodes; without such, none."""
    home = catalog.platform(given["platform"]) if given["nodes"] else None
    like = [
        kind
        for kind in catalog.instance_types().values()
        if kind.gpu and home and (kind.gpu.model, kind.gpu_count) == (home.gpu.model, home.gpu_count)
    ]
    like = [kind for kind in like if kind.zones(given["region"])]
    return min(like, key=lambda kind: kind.od_usd_per_hour or 1e9).name + "=2" if like else None


def _where(given: Given) -> str:
    zones = catalog.instance_type(given["rent"][0]).zones(given["region"]) or catalog.zones(given["region"])
    more = [zone for zone in catalog.zones(given["region"]) if zone not in zones]
    return ",".join([*zones, *more][:2]) or f"{given['region']}a"


def _names(given: Given) -> str:
    prefix = "dgx" if given["platform"].startswith("dgx") else "gpu"
    return f"{prefix}[01-{given['nodes']:02}]" if given["nodes"] > 1 else f"{prefix}01"


def _there(given: Given) -> bool:
    return (given["scheduler"], given["managed"]) == ("kubernetes", "no")


def _owned(given: Given) -> bool:
    return bool(given["nodes"])


def _rents(given: Given) -> bool:
    return given["region"] is not None


def _slurm_there(given: Given) -> bool:
    return (given["scheduler"], given["managed"]) == ("slurm", "no")


def _unpriced(given: Given) -> bool:
    return _rents(given) and catalog.price(given["rent"][0], "on-demand", given["region"]) is None


def _has_head(given: Given) -> bool:
    return not given["eks"] and not _there(given)


def _head(text: str, given: Given) -> str:
    if given["managed"] == "yes":
        return str(_of(Address)(text, given))
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.-]*", text):
        raise Wrong(f"{text!r} is no address and no name of a host; write for example 10.0.0.5")
    return text


def _partition(text: str, _: Given) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", text):
        raise Wrong(f"{text!r} is no partition: letters, digits, and . _ - inside; write one, as in gpu")
    return text


def _release(text: str, _: Given) -> str:
    if text not in slurm_upgrade.RELEASES:
        raise Wrong(f"{text!r} is no release of Slurm's that is known: {', '.join(slurm_upgrade.RELEASES[-6:])}")
    return text


def _always(default: str) -> Callable[[Given], str]:
    return lambda _: default


QUESTIONS = (
    Question("name", "Name of the stack", _name),
    Question("nodes", "How many GPU nodes do you own (0: none)", _count),
    Question("platform", "Platform (`ironburst catalog platforms` lists all)", _known(catalog.platform), when=_owned),
    Question("names", "Their names", _one_a_node, _names, _owned),
    Question("addresses", "Their addresses, as in 10.0.0.[11-14]", _addresses, when=_owned),
    Question("scheduler", "Scheduler: slurm or kubernetes", _one_of("slurm", "kubernetes"), _always("slurm")),
    Question("managed", "Made by ironburst (no: it is there already)", _managed, _always("yes")),
    Question("head", "Address of the scheduler's head node", _head, when=_has_head),
    Question("partition", "Partition of the GPU nodes", _partition, _always("home"), _slurm_there),
    Question("slurm", "Release of that Slurm, as in 24.11", _release, when=_slurm_there),
    Question("api_server", "API server of the cluster, as in https://10.0.0.5:6443", _api_server, when=_there),
    Question("cluster_dns", "Address of its DNS service", _of(Address), _always("10.96.0.10"), _there),
    Question("ca", "File with its authority's certificate (PEM)", _ca, when=_there),
    Question("network", "Network of the nodes", _of(Network), new_stack.network, new_stack.hall),
    Question("os", "System of the nodes", _one_of(*get_args(Os)), _always("ubuntu2404")),
    Question("region", "Region of AWS to rent in (none: rent nothing)", _region),
    Question("rent", "Instance type to rent, and how many at most, as in p5.48xlarge=2", _rent, _like_home, _rents),
    Question("price", "Price of an hour of one such instance in that region, USD", _usd, when=_unpriced),
    Question("zones", "Zones", _zones, _where, _rents),
    Question("image", "Plain image of EKS's fixed node, ami-...", _image, when=lambda given: given["eks"]),
    Question("budget", "The most for rented nodes in a month, USD", _usd, when=_rents),
    Question("wait", "Mean wait that jobs should have", _of(Duration), _always("20m"), _rents),
    Question("mail", "Mail addresses that are told of the budget (none: nobody)", _mails, _always("none"), _rents),
)


def run(arguments: argparse.Namespace) -> int:
    """Ask, write, and say what comes next."""
    if len(arguments.platform) > 1 or "=" in "".join(arguments.platform):
        raise BadInput("--platform TYPE=PLATFORM belongs to --from-slurm; write one platform, as in dgx-h100")
    arguments.platform = next(iter(arguments.platform), None)
    given = answers(arguments)
    path = output(arguments, given["name"])
    write(path, new_stack.text(Site(given, arguments.driver, datetime.now(UTC).date())), [])
    print(f"{path}: valid; next: {new_stack.next_step(given, path)}")
    return 0


def answers(arguments: argparse.Namespace) -> Given:
    """Of the options, of their defaults, and, on a terminal, of the person there. Raises BadInput."""
    asks = sys.stdin.isatty() and not arguments.yes
    given: Given = {"eks": False}
    for question in QUESTIONS:
        given["eks"] = [given.get(key) for key in ("scheduler", "managed", "nodes")] == ["kubernetes", "yes", 0]
        option, text = _option(question), getattr(arguments, question.key)
        if not question.when(given):
            if text is not None:
                raise BadInput(f"{option} belongs to another kind of site than the other answers: leave it out")
            continue
        default = question.default(given)
        if text is None and asks:
            given[question.key] = _asked(question, default, given)
        elif text is None and default is None:
            raise BadInput(f"nobody is asked here, so give {' and '.join(_missing(arguments, question, given))}")
        else:
            given[question.key] = _read(question, str(default if text is None else text), given, option)
    return given


def _option(question: Question) -> str:
    return "--" + question.key.replace("_", "-")


def _missing(arguments: argparse.Namespace, first: Question, given: Given) -> Iterator[str]:
    """Options that are absent and have no default, from `first` on; as far as it is known whether they are needed."""
    assumed = dict(given)
    for question in QUESTIONS[QUESTIONS.index(first) :]:
        text = getattr(arguments, question.key)
        try:
            text = question.default(assumed) if text is None else text
            if text is not None:
                assumed[question.key] = question.read(str(text), assumed)
            elif question.when(assumed):
                yield f"{_option(question)} ({question.words[0].lower()}{question.words[1:]})"
        except (KeyError, IndexError, Wrong):
            continue  # it depends on what isn't known, or is told when it is read


def _read(question: Question, text: str, given: Given, option: str) -> Any:
    try:
        return question.read(str(text).strip(), given)
    except Wrong as error:
        raise BadInput(f"{option}: {error}") from None


def _asked(question: Question, default: str | None, given: Given) -> Any:
    """What a person says, asked again until it can be used. Raises BadInput at the end of the input."""
    while True:
        try:
            text = input(f"{question.words}{f' [{default}]' if default else ''}: ").strip()
        except EOFError:
            raise BadInput("the answers ended before the questions: nothing was written") from None
        try:
            return question.read(text or default or "", given)
        except Wrong as error:
            print(f"  {error}")


def output(arguments: argparse.Namespace, name: str) -> Path:
    """Where the stack file is written. Raises BadInput: one is there."""
    folder = ["stacks"] if Path("stacks").is_dir() else []
    path: Path = arguments.output or Path(*folder, f"Pulumi.{name}.yaml")
    if path.exists() and not arguments.force:
        raise BadInput(f"{path} is there already: give another --output, or --force to replace it")
    return path


def write(path: Path, text: str, said: Sequence[str]) -> None:
    """Write a stack file that is valid, and tell what is to be told. Raises BadInput, and leaves what was there."""
    before = path.read_bytes() if path.exists() else None
    try:
        path.write_text(text)
    except OSError as error:
        raise BadInput(f"{path} can't be written: {error.strerror}") from None
    try:
        findings = load_valid(path, now=datetime.now(UTC)).warnings
    except ConfigError as error:
        errors = [each for each in error.findings if each.severity == "error" and not each.path.endswith(".lock.yaml")]
        if errors:
            path.unlink() if before is None else path.write_bytes(before)
            raise BadInput(f"no stack file was written: {errors[0]}") from None
        findings = [each for each in error.findings if each.severity != "error"]
    for each in [*said, *map(str, findings)]:
        print(f"ironburst: {each}", file=sys.stderr)
