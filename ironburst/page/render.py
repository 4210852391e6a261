"""The page as HTML: one document with its style and its script in it, that asks nobody for anything."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ironburst.page.view import View


def page(view: View, live_s: float | None, zone: str) -> str:
    """All of it. `live_s`: seconds between two looks, None: a file; `zone`: whose times they are."""
    style, script = (Markup(_text(name)) for name in ("page.css", "page.js"))
    given = {"style": style, "script": script, "policy": policy() if live_s is None else "", "zone": zone}
    return _environment().get_template("page.html").render(view=view, live_s=live_s, **given)


def fragment(view: View) -> str:
    """What changes from look to look."""
    return _environment().get_template("now.html").render(view=view, live_s=1.0)


def story(title: str, lines: list[str]) -> str:
    """A page of lines: what is known of one job."""
    style = Markup(_text("page.css"))
    return _environment().get_template("story.html").render(title=title, lines=lines, style=style)


@cache
def policy() -> str:
    """The Content-Security-Policy: this style, this script, questions to where the page came from; nothing else."""
    style, script = (f"'sha256-{_digest(_text(name))}'" for name in ("page.css", "page.js"))
    allowed = f"script-src {script}; style-src {style}; img-src data:; connect-src 'self'; form-action 'self'"
    return f"default-src 'none'; {allowed}; base-uri 'none'"


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _text(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("ironburst", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
