"""docs/reference says what the code says."""

import runpy
from pathlib import Path

import pytest

from ironburst import roles

DOCS = Path(__file__).resolve().parents[3] / "docs"
GENERATED = runpy.run_path(str(DOCS / "generate.py"))
PAGES, ROLES = GENERATED["PAGES"], GENERATED["ROLES"]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_fresh(name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")  # the pages don't depend on the terminal
    assert (DOCS / "reference" / name).read_text() == PAGES[name](), "stale: run `make schema`"


@pytest.mark.parametrize("name", ROLES)
def test_the_readme_of_a_role_is_fresh(name):
    readme = (DOCS.parent / "playbooks" / "roles" / name / "README.md").read_text()
    assert readme == GENERATED["role"](name), "stale: run `make schema`"
    for option in roles.spec(name)["options"]:
        assert f"| `{option}` |" in readme


def test_every_section_of_the_stack_file_is_there():
    page = PAGES["config.md"]()
    for heading in (
        "`ironburst:cluster`",
        "`halls[].nodes[].bmc`",
        "`cloud (provider: aws).pools[]`",
        "`cloud (provider: google).pools[]`",
        "`cloud (provider: aws).network.hall_link`",
        "`cloud (provider: aws).price.<name>`",
    ):
        assert f"## {heading}\n" in page
    assert "| `max_nodes` | integer | required | never more than this many at a time; above 0 up to 1000 |" in page
