"""A stack file from nothing: what is asked of a person, or given as options (ironburst.initial)."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ironburst.config.finding import ConfigError
from ironburst.config.stack import load_valid
from ironburst.initial import written
from ironburst.initial.answers import Given, Question, Wrong
from ironburst.initial.questions import QUESTIONS
from ironburst.initial.written import NewSite
from ironburst.system.bad_input import BadInput


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
    site.add_argument("--project", metavar="ID", help="to rent in, where the region's cloud has projects")
    site.add_argument("--subscription", metavar="ID", help="to rent in, where the region's cloud has subscriptions")
    site.add_argument("--key-vault", metavar="ID", help="of the secrets that its nodes join with")
    site.add_argument("--ssh-public-key", metavar="FILE", help="of whoever logs in at its nodes")
    site.add_argument("--mail", help="who is told of the budget, with commas between; none: nobody")
    site.add_argument("--yes", action="store_true", help="ask nothing, take what is given and the defaults")


def run(arguments: argparse.Namespace) -> int:
    """Ask, write, and say what comes next."""
    if len(arguments.platform) > 1 or "=" in "".join(arguments.platform):
        raise BadInput("--platform TYPE=PLATFORM belongs to --from-slurm; write one platform, as in dgx-h100")
    arguments.platform = next(iter(arguments.platform), None)
    given = answers(arguments)
    path = output(arguments, given["name"])
    write(path, written.text(NewSite(given, arguments.driver, datetime.now(UTC).date())), [])
    print(f"{path}: valid; next: {written.next_step(given, path)}")
    return 0


def answers(arguments: argparse.Namespace) -> Given:
    """Of the options, of their defaults, and, on a terminal, of the person there. Raises BadInput."""
    asks = sys.stdin.isatty() and not arguments.yes
    given: Given = {"hosted": False}
    for question in QUESTIONS:
        given["hosted"] = [given.get(key) for key in ("scheduler", "managed", "nodes")] == ["kubernetes", "yes", 0]
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
    """Write a valid stack file, and print what its user has to know. Raises BadInput, and leaves what was there."""
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
