"""What the documentation points at is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [
    path
    for pattern in ("*.md", "docs/**/*.md", "lab/**/*.md", "providers/**/*.md", "playbooks/**/*.md")
    for path in ROOT.glob(pattern)
]
PAGES = [path for path in PAGES if not {".lab", ".venv"} & set(path.parts)]
TOPS = ("ironburst", "components", "providers", "lab", "benchmarks", "playbooks", "inventory", "tests")
SOURCES = [path for top in TOPS for path in (ROOT / top).rglob("*") if path.suffix in {".py", ".yml", ".j2", ".sh"}]
SOURCE = re.compile(r"(?<![\w./-])((?:ironburst|components|lab|benchmarks|playbooks|tests)/[\w./-]+\.py)\b")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
CODE = re.compile(r"`([\w.-]+(?:/[\w.-]+)+/?)`")
# where a path in a sentence may begin: the top, or the package's folder ("burst/decide.py")
BEGINNINGS = ("", "ironburst/", "playbooks/", "playbooks/roles/")


def folders() -> set[str]:
    inside = (path for start in BEGINNINGS for path in (ROOT / start).iterdir() if path.is_dir())
    # .lab, .venv and build come and go
    return {path.name for path in inside if not path.name.startswith(".") and path.name != "build"}


def missing(page: Path) -> list[str]:
    text = page.read_text()
    links = [target for target in LINK.findall(text) if "://" not in target and not target.startswith("mailto:")]
    absent = [target for target in links if not (page.parent / target).exists()]
    past = page.name == "CHANGELOG.md"  # it names what was, too
    named = [path for path in CODE.findall(text) if path.split("/")[0] in folders() and not past]
    return absent + [path for path in named if not any((ROOT / start / path).exists() for start in BEGINNINGS)]


@pytest.mark.parametrize("page", [pytest.param(path, id=str(path.relative_to(ROOT))) for path in PAGES])
def test_every_file_that_a_page_names_is_there(page):
    assert missing(page) == []


def test_every_module_that_a_comment_names_is_there():
    named = {(path.relative_to(ROOT), name) for path in SOURCES for name in SOURCE.findall(path.read_text())}
    assert len(named) > 10
    assert sorted((str(path), name) for path, name in named if not (ROOT / name).exists()) == []
