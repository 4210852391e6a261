"""What runs on the nodes runs with EL 8's own /usr/bin/python3, which is 3.6."""

import ast
from pathlib import Path

import pytest
from programs import PLAYBOOKS

PACKAGE = PLAYBOOKS.parent / "ironburst"
PROGRAMS = [
    *PLAYBOOKS.glob("files/*.py"),
    *PLAYBOOKS.glob("roles/*/files/*.py"),
    *PLAYBOOKS.glob("plugins/modules/*.py"),
    *PACKAGE.glob("health/*.py"),
    PACKAGE / "convergence" / "host_facts.py",
]
OF_SUBPROCESS = {"capture_output", "text"}  # since 3.7
OF_ANY_CALL = {"missing_ok", "dirs_exist_ok"}  # since 3.8


def newer_options(source: str) -> list[str]:
    """`line: option` of each option of the standard library that Python 3.6 refuses."""
    newer = []
    for call in [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]:
        of_subprocess = ast.unparse(call.func).startswith("subprocess.")
        refused = OF_ANY_CALL | (OF_SUBPROCESS if of_subprocess else set())
        newer += [f"{call.lineno}: {option.arg}" for option in call.keywords if option.arg in refused]
    return newer


def test_all_kinds_of_programs_are_looked_at():
    assert {path.parent.relative_to(PLAYBOOKS.parent).parts[:2] for path in PROGRAMS} == {
        ("playbooks", "files"),
        ("playbooks", "roles"),
        ("playbooks", "plugins"),
        ("ironburst", "health"),
        ("ironburst", "convergence"),
    }


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: str(path.relative_to(PLAYBOOKS.parent)))
def test_its_calls_are_those_of_python_3_6(program: Path):
    assert newer_options(program.read_text()) == []


def test_newer_options_are_seen():
    assert newer_options("subprocess.run(['a'], text=True, timeout=1)") == ["1: text"]
    assert newer_options("new.unlink(missing_ok=True)") == ["1: missing_ok"]
    assert newer_options("subprocess.run(['a'], stdout=1)\ndict(text='c')") == []
