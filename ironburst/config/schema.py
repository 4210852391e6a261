"""The JSON Schema of a stack file, for editors. `python -m ironburst.config.schema > stacks/schema.json` writes it."""

from __future__ import annotations

import json
from typing import Any

from ironburst.config.finding import KEY
from ironburst.config.models import ClusterConfig

FILE = {
    "type": "object",
    "description": "The declaration is in this file beside the stack file.",
    "properties": {"file": {"type": "string", "pattern": r"^(?!Pulumi\.)[^/]+\.ya?ml$"}},
    "required": ["file"],
    "additionalProperties": False,
}


def schema() -> dict[str, Any]:
    """Schema of a whole stack file: our key typed, other providers' keys free. A file beside it is a ClusterConfig."""
    cluster = ClusterConfig.model_json_schema(ref_template="#/$defs/{model}", mode="validation")
    definitions = cluster.pop("$defs") | {"ClusterConfig": cluster}
    key = {"if": {"required": ["file"]}, "then": FILE, "else": {"$ref": "#/$defs/ClusterConfig"}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "ironburst stack configuration",
        "type": "object",
        "properties": {"config": {"type": "object", "properties": {KEY: key}, "required": [KEY]}},
        "required": ["config"],
        "$defs": definitions,
    }


def text() -> str:
    """The file stacks/schema.json."""
    return json.dumps(schema(), indent=2) + "\n"


if __name__ == "__main__":
    print(text(), end="")
