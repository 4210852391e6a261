"""What plays the tutorials can fail: a page that rots, a block that says nothing, a page that nobody plays."""

from pathlib import Path

import pytest

from tests.tutorials import TUTORIALS, Shell, blocks

PAGE = """
# A page

```sh
export WHERE=here
mkdir -p deeper && cd deeper
```

<!-- not run: it buys a GPU -->
```sh
false
```

```yaml
key: value
```

1. In a list:

   ```console
   $ echo "$WHERE" \\
   >   "$(basename "$PWD")"
   here deeper
   ```
"""


def page(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "page.md"
    path.write_text(text)
    return path


def test_blocks_are_those_of_commands_with_line_and_reason(tmp_path):
    found = blocks(page(tmp_path, PAGE))
    assert [(block.line, block.language, block.not_run) for block in found] == [
        (4, "sh", None),
        (10, "sh", "it buys a GPU"),
        (20, "console", None),
    ]
    assert found[2].commands == 'echo "$WHERE" \\\n  "$(basename "$PWD")"\n'
    assert found[2].printed == ["here deeper"]


def test_a_shell_goes_on_where_it_was_and_leaves_out_what_has_a_reason(tmp_path):
    shell = Shell(tmp_path)
    printed = [shell.run(block) for block in blocks(page(tmp_path, PAGE))]
    assert printed == ["", "", "here deeper\n"]
    assert shell.seen == ["page.md:4: run", "page.md:10: not run: it buys a GPU", "page.md:20: run"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("```sh\ntrue\nfalse\necho never\n```\n", "page.md:1 failed with 1"),
        ("```sh\nfalse | true\n```\n", "page.md:1 failed with 1"),
        ("```console\n$ echo one\ntwo\n```\n", r"page.md:1 doesn't print \['two'\]"),
    ],
)
def test_a_block_that_rots_fails(tmp_path, text, said):
    with pytest.raises(AssertionError, match=said):
        Shell(tmp_path).run(*blocks(page(tmp_path, text)))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("text\n\n```\nls\n```\n", "page.md:3: say what the block is"),
        ("```sh\nls\n", "page.md:1: this block is never closed"),
    ],
)
def test_a_block_that_says_not_what_it_is_is_refused(tmp_path, text, said):
    with pytest.raises(ValueError, match=said):
        blocks(page(tmp_path, text))


def test_a_reason_is_that_of_the_next_block_alone(tmp_path):
    text = "<!-- not run: for no block -->\n\nA sentence.\n\n```sh\nls\n```\n"
    assert [block.not_run for block in blocks(page(tmp_path, text))] == [None]


@pytest.mark.parametrize("name", sorted(path.name for path in TUTORIALS.glob("*.md")))
def test_every_tutorial_is_played(name):
    tests = Path(__file__).parent.rglob("test_*.py")
    assert any(f'tutorial("{name}")' in path.read_text() for path in tests), f"no test plays {name}"
