"""The documentation as a site: built strictly, from here alone, with every link leading somewhere."""

import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# what a browser fetches by itself; an <a> is followed by a person
FETCHED = {
    ("script", "src"),
    ("img", "src"),
    ("iframe", "src"),
    ("link", "href"),
    ("source", "src"),
    ("form", "action"),
}


def build(top: Path, to: Path) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(to)]
    env = dict(os.environ) | {"NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(argv, cwd=top, env=env, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    built = build(ROOT, folder)
    assert built.returncode == 0, built.stdout + built.stderr
    assert not built.stdout + built.stderr
    return folder


class Links(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found: list[tuple[str, str, str]] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found += [(tag, name, value) for name, value in attrs if name in ("src", "href", "action") and value]
        self.ids |= {value for name, value in attrs if name in ("id", "name") and value}


def test_nothing_is_fetched_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 80
    for page in pages:
        for tag, name, value in Links(page.read_text()).found:
            outside = (tag, name) in FETCHED and re.match(r"(https?:)?//", value)
            assert not outside, f"{page.relative_to(site)}: {tag} {value}"
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?(https?:)?//|@import", sheet.read_text()), sheet


def test_every_link_leads_to_a_file_and_a_place_in_it(site):
    pages = {path.resolve(): Links(path.read_text()) for path in site.rglob("*.html") if path.name != "404.html"}
    for page, links in pages.items():
        for _, _, value in links.found:
            if re.match(r"[a-z]+:", value):
                continue
            path, _, anchor = value.partition("#")
            target = (page.parent / path).resolve() if path else page
            assert target.is_file(), f"{page.relative_to(site)}: {value}"
            if anchor and target in pages:
                assert anchor in pages[target].ids, f"{page.relative_to(site)}: {value}"


def test_what_lies_outside_docs_comes_along(site):
    shown = (site / "source/tests/lab/test_beside.py.txt").read_text()
    assert shown == (ROOT / "tests/lab/test_beside.py").read_text()
    assert "What is real, and what stands in" in (site / "source/index.html").read_text()
    assert "0055-patience" in (site / "adr/index.html").read_text()


def test_search_and_404_need_no_server_and_no_network(site):
    index = (site / "search/search_index.js").read_text().removeprefix("var __index = ")
    assert any(entry["title"] == "Why is it waiting?" for entry in json.loads(index)["docs"])
    assert "iframe-worker.js" in (site / "index.html").read_text()
    assert (site / "404.html").is_file()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[x](nowhere.md)", "nowhere.md"),
        ("[x](other.md#nope)", "#nope"),
        ("[x](../../tests/nope.py)", "nope.py"),
        ("[x](/absolute.md)", "/absolute.md"),
    ],
)
def test_a_link_that_leads_nowhere_fails_the_build(tmp_path, text, said):
    built = small(tmp_path, text)
    assert built.returncode == 1 and said in built.stdout + built.stderr


def test_a_page_that_no_menu_has_fails_the_build(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/forgotten.md").write_text("# Forgotten\n")
    built = small(tmp_path, "[x](other.md#other)")
    assert built.returncode == 1 and "forgotten.md" in built.stdout + built.stderr


def test_a_list_may_follow_a_sentence_as_on_a_git_host(tmp_path):
    built = small(tmp_path, "Such as:\n- one\n- two\n\n| a | b |\n|---|---|\n| [x](../LICENSE) | 2 |\n")
    assert built.returncode == 0, built.stderr
    page = (tmp_path / "built/index.html").read_text()
    assert "<li>one</li>" in page and "<td>2</td>" in page and 'href="source/LICENSE.txt"' in page


def small(top: Path, text: str) -> subprocess.CompletedProcess[str]:
    """A site of two pages by this project's own settings."""
    docs = top / "docs"
    docs.mkdir(exist_ok=True)
    for name in ("hooks.py", "site.css", "iframe-worker.js"):
        shutil.copy(ROOT / "docs" / name, docs)
    (top / "LICENSE").write_text("ours\n")
    (docs / "index.md").write_text(f"# Start\n\n{text}\n")
    (docs / "other.md").write_text("# Other\n")
    settings = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[0]
    (top / "mkdocs.yml").write_text(f"{settings}\nnav: [index.md, other.md]\n")
    return build(top, top / "built")
