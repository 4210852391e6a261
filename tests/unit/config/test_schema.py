"""The schema that editors use."""

from pathlib import Path

from ironburst.config import schema

ROOT = Path(__file__).parents[3]


def test_the_schema_in_stacks_is_fresh():
    assert (ROOT / "stacks/schema.json").read_text() == schema.text(), "run: make schema"
