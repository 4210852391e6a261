"""What a person can hold in the head: no module over 400 lines, no function over 60. An exception says why, here."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULE_LINES, FUNCTION_LINES = 400, 60
LONGER: dict[str, str] = {}  # module, or module:function, and why it is longer
FILES = [path for top in ("ironburst", "components", "providers") for path in sorted((ROOT / top).rglob("*.py"))]


def lengths(path: Path) -> dict[str, int]:
    """Lines of the module and of each of its functions that are too long, by name."""
    text, name = path.read_text(), str(path.relative_to(ROOT))
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    of_functions = {f"{name}:{node.name}": (node.end_lineno or node.lineno) - node.lineno + 1 for node in functions}
    long = {each: lines for each, lines in of_functions.items() if lines > FUNCTION_LINES}
    return long | ({name: lines} if (lines := len(text.splitlines())) > MODULE_LINES else {})


@pytest.mark.parametrize("path", [pytest.param(path, id=str(path.relative_to(ROOT))) for path in FILES])
def test_nothing_is_too_long_to_read(path):
    assert {name: lines for name, lines in lengths(path).items() if name not in LONGER} == {}


def test_every_exception_is_still_one():
    long = {name for path in FILES for name in lengths(path)}
    assert set(LONGER) <= long and all(LONGER.values())
