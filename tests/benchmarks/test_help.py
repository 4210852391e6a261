"""Every benchmark that is run by hand says what it is, and takes its options."""

import ast
import importlib
from pathlib import Path

import pytest

import benchmarks

FOLDER = Path(benchmarks.__file__).parent
RUN_BY_HAND = sorted(
    path.stem
    for path in FOLDER.glob("*.py")
    if any(isinstance(node, ast.FunctionDef) and node.name == "main" for node in ast.parse(path.read_text()).body)
)


def test_those_that_the_package_names_are_run_by_hand():
    named = [line.split(":")[0] for line in benchmarks.__doc__.splitlines() if line[:1].islower()]
    assert sorted(named) == RUN_BY_HAND


@pytest.mark.parametrize("name", RUN_BY_HAND)
def test_help_is_printed(name, capsys):
    benchmark = importlib.import_module(f"benchmarks.{name}")
    with pytest.raises(SystemExit) as ended:
        benchmark.main(["--help"])
    assert ended.value.code == 0
    assert f"python -m benchmarks.{name}" in capsys.readouterr().out
