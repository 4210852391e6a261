"""How arguments are read, over every verb: nothing that is given is dropped in silence, typos, groups, completion."""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ironburst import cli
from ironburst.cli import completion
from ironburst.cli.arguments import Keyed, Once, Parser

FOLDER = Path(cli.__file__).parent
ONE_VALUE = (Once, Keyed)
# of KEY=VALUE: each file counts, also of one host or system
ALL_COUNT = {"--lldp", "--repositories"}


def parsers(parser, above=""):
    yield above or "ironburst", parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                yield from parsers(inner, f"{above} {name}".strip())


EVERY = dict(parsers(cli.parser()))


@pytest.mark.parametrize("verb", EVERY)
def test_no_value_is_dropped_without_a_word(verb):
    assert isinstance(EVERY[verb], Parser)
    for action in EVERY[verb]._actions:
        names = set(action.option_strings)
        if type(action) is argparse._AppendAction:
            assert "=" not in str(action.metavar) or names & ALL_COUNT, f"{names}: what if a key is given twice?"
        else:
            assert action.nargs == 0 or not names or isinstance(action, (Once, Keyed)), names


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "init --rent p5.48xlarge=2 --rent g6e.12xlarge=4",
            "--rent: is given twice, and one value counts: give it once",
        ),
        ("status --ledger a --ledger=b", "--ledger: is given twice"),
        ("init --platform h100=dgx-h100 --platform a100=x --platform h100=y", "--platform: h100 is given twice"),
        ("hall import netbox --role a=gpu --role a=switch", "--role: a is given twice"),
        ("node shwo dgx01 stack.yaml", "did you mean 'show'?"),
        ("help stauts", "did you mean 'status'?"),
        ("completion bsh", "did you mean 'bash'?"),
    ],
)
def test_one_sentence_says_what_is_wrong(line, said, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(line.split())
    assert ended.value.code == 2
    assert said in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("stauts", "'stauts' is no verb: did you mean 'status'?"),
        ("simulat", "did you mean 'simulate'?"),
        ("doktor", "did you mean 'doctor'?"),
        ("frobnicate", "'frobnicate' is no verb: `ironburst help` lists them"),
    ],
)
def test_a_typo_of_a_verb_is_answered(typed, said, capsys):
    assert cli.main([typed, "--json"]) == 2
    error = capsys.readouterr().err
    assert said in error and len(error.splitlines()) == 1


def test_an_option_may_be_given_again_in_the_next_call():
    parser = cli.parser(["status"])
    for ledger in ("a", "b"):
        assert str(parser.parse_args(["status", "--ledger", ledger]).ledger) == ledger


def test_every_verb_is_in_one_group():
    assert sorted(cli.VERBS) == sorted(set(cli.VERBS))
    verbs = {path.stem for path in FOLDER.glob("*.py") if "def add_parser(subparsers: Subparsers)" in path.read_text()}
    assert verbs == set(cli.VERBS), "name the verb in a group of ironburst.cli.GROUPS, which --help lists"


def test_help_lists_the_verbs_by_group():
    text = cli.parser().format_help()
    for title, verbs in cli.GROUPS.items():
        section = text.partition(f"\n{title}:\n")[2].partition("\n\n")[0]
        assert [line.split()[0] for line in section.splitlines() if line.startswith("  ") and line[2] != " "] == list(
            verbs
        )


@pytest.mark.parametrize("shell", completion.WHERE)
def test_completion_is_what_argcomplete_has_for_a_shell(shell, capsys):
    assert cli.main(["completion", shell]) == 0
    code = capsys.readouterr().out
    assert "ironburst" in code and "_ARGCOMPLETE" in code
    if program := shutil.which(shell):
        subprocess.run([program, "-n"], input=code, text=True, check=True, timeout=30)


def test_bash_completes_by_it(tmp_path):
    """As bash does at the Tab key: the function that `complete` names fills COMPREPLY."""
    program = tmp_path / "ironburst"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m ironburst.cli "$@"\n')
    program.chmod(0o755)
    line = "ironburst completion "
    script = f"""
eval "$(ironburst completion bash)"
COMP_LINE="{line}" COMP_POINT={len(line)} COMP_TYPE=9 COMP_WORDS=(ironburst completion "") COMP_CWORD=2
$(complete -p ironburst | sed 's/.*-F \\([^ ]*\\).*/\\1/') ironburst "" completion
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(FOLDER.parents[1])}
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, timeout=60)
    assert set(done.stdout.split()) >= set(completion.WHERE), done.stderr


@pytest.mark.parametrize("asked", ["--help", "--version", "help"])
def test_the_list_of_verbs_loads_no_library(asked):
    counted = "import sys; from ironburst import cli\ntry: cli.main(sys.argv[1:])\nfinally: print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", counted, asked], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.splitlines()[-1].split()}
    assert not loaded & {"pydantic", "boto3", "botocore", "jinja2", "sqlite3", "kubernetes", "numpy", "ssl"}
