"""A class name has at most two meanings: one for what a person writes and one for what is made of it, no more."""

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST = 2


def classes():
    """Each class of the product, name: where it is defined."""
    found = defaultdict(list)
    for path in sorted((ROOT / "ironburst").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(f"{path.relative_to(ROOT)}:{node.lineno}")
    return found


def test_the_classes_are_found():
    found = classes()
    assert len(found) > 500
    assert {where.partition(":")[0] for where in found["Finding"]} == {
        "ironburst/config/finding.py",
        "ironburst/health/findings.py",  # it goes to the nodes without the others
    }


def test_no_class_name_has_more_than_two_meanings():
    """A third: name it by what it is in its field (CostRow, RbacRule), or let one of the others be used."""
    assert {name: places for name, places in classes().items() if len(places) > MOST} == {}
