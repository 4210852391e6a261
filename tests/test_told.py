"""What pages quote is what people are told: docs/how-to/operator/told.md, docs/how-to/researcher/waiting.md."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/how-to/operator/told.md").read_text()
CODE = re.compile(r"`([^`]+)`")
# By module, the sentences for a person. One more: a row in told.md, then its number here
TOLD = {
    "broken_pool.py": 1,
    "ceilings.py": 1,
    "drained.py": 2,
    "foreign.py": 1,
    "going.py": 1,
    "hall_events.py": 2,
    "karpenter.py": 5,
    "lasting.py": 1,
    "launching.py": 3,
    "leases.py": 1,
    "loop.py": 1,
    "reaper.py": 3,
    "rebuild.py": 4,
    "renewing.py": 1,
    "run.py": 1,
    "tick.py": 1,
    "unstarted.py": 1,
}


def python(folder):
    return sorted((ROOT / "ironburst" / folder).glob("*.py"))


def kinds():
    """(module, kind) of each event that is written."""
    for path in [*python("controller"), *python("cli")]:
        for call in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(call, ast.Call)
                and isinstance(call.func, ast.Attribute)
                and call.func.attr in ("event", "tell")
            ):
                words = ast.walk(call.args[0]) if call.args else ()
                for word in words:
                    if isinstance(word, ast.Constant) and isinstance(word.value, str):
                        yield path.name, word.value


def test_every_kind_of_event_is_on_the_page():
    found = {kind for _, kind in kinds()}
    assert len(found) > 20
    assert sorted(kind for kind in found if f"`{kind}`" not in PAGE) == []


def test_every_sentence_for_a_person_has_a_row():
    assert Counter(name for name, kind in kinds() if kind == "needs_a_person") == TOLD


@pytest.mark.parametrize(
    ("page", "section", "folders"),
    [
        ("operator/told.md", "needs_a_person", ("controller", "cli", "adapters/kubernetes")),
        ("researcher/waiting.md", "What ironburst says", ("burst", "controller")),
    ],
)
def test_what_a_page_quotes_is_what_is_said(page, section, folders):
    """Each piece between its dots is in the source's own strings."""
    nodes = (node for folder in folders for path in python(folder) for node in ast.walk(ast.parse(path.read_text())))
    strings = (node for node in nodes if isinstance(node, ast.JoinedStr | ast.Constant))
    said = " ".join(ast.unparse(node).replace("\\'", "'") for node in strings)
    text = (ROOT / "docs/how-to" / page).read_text().partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    quotes = [quote for row in text.splitlines() if row.startswith("| ") for quote in CODE.findall(row.split("|")[1])]
    pieces = [piece.strip(" ,;:") for quote in quotes for piece in quote.split("…")]
    assert len(pieces) > 25
    assert [piece for piece in pieces if len(piece) > 6 and piece not in said] == []
