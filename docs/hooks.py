"""What mkdocs needs to build the pages of docs/ as they are, so that they read the same on a git host.

- A link that leaves docs/ (a test, a stack file, the README) has no address of its own: no host is known for this
  repository. The site carries the linked file: Markdown as a page, anything else as text, below source/.
- A list or a table may follow a sentence without an empty line between, which Python-Markdown wants.
"""

from __future__ import annotations

import logging
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
DOCS = "docs/"
SOURCE = "source/"
LINK = re.compile(r"(?<=\]\()([^)#\s]+)(?=(?:#[^)\s]*)?\))")
ITEM = re.compile(r" *([-*]|\d+\.) ")
FENCE = re.compile(r" *(```|~~~)")


def on_startup(command: str, **_: object) -> None:
    """A build says its warnings, and only them: --quiet would keep them from --strict, too."""
    if command != "serve":
        logging.getLogger("mkdocs").setLevel(logging.WARNING)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds what pages link to outside docs/, and what those pages link to."""
    todo = [(DOCS + file.src_uri, Path(file.abs_src_path or "")) for file in files.documentation_pages()]
    seen: set[str] = set()
    while todo:
        path, text = todo.pop()
        for target in _outside(path, text.read_text()):
            if target not in seen:
                seen.add(target)
                content = (ROOT / target).read_bytes()
                files.append(File.generated(config, _uri(target), content=content))
                if target.endswith(".md"):
                    todo.append((target, ROOT / target))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """The page's links as the site has them, and its lists as Python-Markdown reads them."""
    here = page.file.src_uri
    path = here.removeprefix(SOURCE) if here.startswith(SOURCE) else DOCS + here

    def link(match: re.Match[str]) -> str:
        target = _target(path, match[1])
        return match[1] if target is None else posixpath.relpath(_uri(target), posixpath.dirname(here) or ".")

    lines = LINK.sub(link, markdown).splitlines()
    return "\n".join(_spaced(lines))


def _outside(path: str, text: str) -> Iterator[str]:
    """The files outside docs/ that a page links to."""
    for match in LINK.finditer(text):
        target = _target(path, match[1])
        if target is not None and not target.startswith(DOCS):
            yield target


def _target(path: str, link: str) -> str | None:
    """The file of the repository that a link of the page at `path` leads to; of a folder, its README. None: somewhere
    else, or nowhere (mkdocs says so).
    """
    if "://" in link or link.startswith(("mailto:", "/")):
        return None
    target = posixpath.normpath(posixpath.join(posixpath.dirname(path), link))
    for file in (target, f"{target}/README.md"):
        if (ROOT / file).is_file():
            return file
    return None


def _uri(target: str) -> str:
    """Where the site has a file of the repository."""
    if target.startswith(DOCS):
        return target.removeprefix(DOCS)
    # .txt: browsers show it, whatever the file's own name ends in
    shown = posixpath.splitext(target)[1] in {".md", ".svg", ".png", ".html"}
    return f"{SOURCE}{target}" if shown else f"{SOURCE}{target}.txt"


def _spaced(lines: list[str]) -> Iterator[str]:
    """The lines, with an empty one where a list or a table follows a sentence."""
    fenced = listed = False
    before = ""
    for line in lines:
        if FENCE.match(line):
            fenced = not fenced
        item = bool(ITEM.match(line))
        if not fenced:
            table = line.startswith("|") and not before.startswith("|")
            if before.strip() and (table or (item and not listed and not before.startswith("#"))):
                yield ""
            # a list goes on over empty lines to what is indented, and ends at a sentence that isn't
            listed = item or (listed and bool(line.strip()))
        before = line
        yield line
