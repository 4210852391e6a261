"""The doctor's checks have one shape: a generator function of one value, which asks nothing before it is iterated."""

import ast
from pathlib import Path

DOCTOR = Path(__file__).parents[3] / "ironburst" / "doctor"
MODULES = {path.relative_to(DOCTOR).as_posix(): ast.parse(path.read_text()) for path in DOCTOR.rglob("*.py")}
FUNCTIONS = [
    (f"{module}:{node.lineno} {node.name}", node)
    for module, tree in sorted(MODULES.items())
    for node in ast.walk(tree)
    if isinstance(node, ast.FunctionDef)
]
FOUND = "Iterator[CheckResult]"


def returned(function):
    return ast.unparse(function.returns) if function.returns else ""


def test_there_are_many():
    assert len([name for name, function in FUNCTIONS if returned(function) == FOUND]) > 50


def test_what_gives_findings_is_a_generator_function():
    """One that isn't would ask when it is called, and its Unasked would pass by `answered` and end the doctor."""
    eager = [
        name
        for name, function in FUNCTIONS
        if returned(function) == FOUND
        and not any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(function))
    ]
    assert eager == []


def test_nothing_returns_or_takes_a_check_in_another_shape():
    others = [
        name
        for name, function in FUNCTIONS
        for text in [
            returned(function),
            *(ast.unparse(each.annotation) for each in function.args.args if each.annotation),
        ]
        if FOUND in text and text != FOUND
    ]
    assert others == []


def test_a_public_check_takes_what_it_looks_at_and_nothing_else():
    checks = [(name, function) for name, function in FUNCTIONS if function.name == "check"]
    assert len(checks) > 12
    assert [name for name, function in checks if len(function.args.args) != 1 or returned(function) != FOUND] == []
    assert [name for name, function in FUNCTIONS if function.name == "examine"] == []
