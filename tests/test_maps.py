"""Lists of what is in a folder are complete: package docstrings that list modules, lab/aws/README.md, the tree of the
package in README.md, and the index of decisions.
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WORD = re.compile(r"\w+")
TOPS = ("ironburst", "components", "lab")


def contents(folder: Path) -> set[str]:
    """Modules of a package, and packages in it."""
    modules = {path.stem for path in folder.glob("*.py") if not path.stem.startswith("__")}
    return modules | {path.parent.name for path in folder.glob("*/__init__.py")}


def listed(text: str) -> set[str]:
    """What the items of a list are about, as in "- loop, tick: what they do" and "| loop | what it does |"."""
    heads = re.findall(r"^(?:- ([^:\n]+):|\| ([^|\n]+) \|)", text, re.MULTILINE)
    return {word for head in heads for part in head for word in WORD.findall(part)}


def maps() -> list[tuple[Path, str]]:
    """Packages whose docstring lists modules."""
    inits = [path for top in TOPS for path in sorted((ROOT / top).rglob("__init__.py"))]
    texts = [(path.parent, ast.get_docstring(ast.parse(path.read_text())) or "") for path in inits]
    return [(folder, text) for folder, text in texts if len(listed(text) & contents(folder)) > 1]


MAPS = maps()


def test_there_are_some():
    assert {"ironburst", "burst", "controller", "lab"} <= {folder.name for folder, _ in MAPS}


@pytest.mark.parametrize(
    ("folder", "text"), [pytest.param(*found, id=str(found[0].relative_to(ROOT))) for found in MAPS]
)
def test_a_docstring_that_lists_modules_has_all_of_them(folder, text):
    assert sorted(contents(folder) - set(WORD.findall(text))) == []


def test_the_readme_of_the_labs_cloud_names_each_module():
    folder = ROOT / "lab/aws"
    rows = [line for line in (folder / "README.md").read_text().splitlines() if line.startswith("| ")]
    named = [name for row in rows for name in re.findall(r"\b(\w+)\.py\b", row.split("|")[1])]
    assert sorted(named) == sorted(contents(folder))


def test_the_readmes_tree_has_each_package():
    tree = (ROOT / "README.md").read_text().partition("\nironburst/ ")[2].partition("\nexamples/")[0]
    named = {name for line in tree.splitlines()[1:] for name in re.split(r" {2,}", line.strip())[:-1]}
    packages = {path.parent.name for path in (ROOT / "ironburst").glob("*/__init__.py")}
    assert sorted(named) == sorted(packages)


DECISIONS = ROOT / "docs/adr"
REPLACED = re.compile(r"[Rr]eplaced(?: in part)? by \[(\d+)\]")


def test_each_decision_is_in_the_index_once_with_its_title_and_status():
    rows = re.findall(r"^\| \[(.+)\]\((\d[^)]+)\) \| (.+) \|$", (DECISIONS / "README.md").read_text(), re.MULTILINE)
    pages = {path.name: path.read_text() for path in DECISIONS.glob("[0-9]*.md")}
    assert sorted(name for _, name, _ in rows) == sorted(pages)
    titles = {name: text.partition("\n")[0].removeprefix("# ") for name, text in pages.items()}
    assert {name: title for title, name, _ in rows} == titles
    assert all(status.startswith(("in force", "replaced")) for _, _, status in rows)
    tops = {name: REPLACED.findall(text.partition("\n")[2][:300]) for name, text in pages.items()}
    assert {name: REPLACED.findall(status) for _, name, status in rows} == tops
