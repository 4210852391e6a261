"""What the documentation points at is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [
    path for pattern in ("*.md", "docs/**/*.md", "lab/**/*.md", "providers/**/*.md") for path in ROOT.glob(pattern)
]
PAGES = [path for path in PAGES if not {".lab", ".venv"} & set(path.parts)]
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
CODE = re.compile(r"`([\w.-]+(?:/[\w.-]+)+/?)`")
# where a path in a sentence may begin: the top, or the package's folder ("burst/decide.py")
BEGINNINGS = ("", "ironburst/", "playbooks/", "playbooks/roles/")


def folders() -> set[str]:
    return {path.name for start in BEGINNINGS for path in (ROOT / start).iterdir() if path.is_dir()}


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
