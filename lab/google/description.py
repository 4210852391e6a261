"""Compute Engine's API as its description has it (compute.v1.json of google-api-python-client): which call a request
is, and whether its parameters, its body and our answer are what that call takes and gives.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from googleapiclient.discovery_cache import get_static_doc

ROOT = "/compute/v1/"
_PAGE = 500  # the description has it in words: "Acceptable values are 0 to 500"
_INT64 = re.compile(r"-?[0-9]+")
_OUTPUT = ("[Output Only]", "Output only.")


class Wrong(ValueError):
    """A request that the API's description doesn't have."""


@functools.cache
def document() -> dict[str, Any]:
    return json.loads(get_static_doc("compute", "v1"))


@dataclass(frozen=True)
class Call:
    """`id`: compute.instances.bulkInsert; `parameters`: of path and query, as text."""

    id: str
    parameters: Mapping[str, str]
    body: Any
    response: str

    @property
    def name(self) -> str:
        """instances.bulkInsert"""
        return self.id.removeprefix("compute.")


@functools.cache
def _methods() -> tuple[tuple[str, re.Pattern[str], dict[str, Any]], ...]:
    def of(node: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        yield from node.get("methods", {}).values()
        for inner in node.get("resources", {}).values():
            yield from of(inner)

    found = []
    for method in of(document()):
        parts = re.split(r"\{(\w+)\}", method["path"])
        path = "".join(f"(?P<{part}>[^/]+)" if n % 2 else re.escape(part) for n, part in enumerate(parts))
        found.append((method["httpMethod"], re.compile(ROOT + path), method))
    return tuple(found)


def call(verb: str, url: str, body: bytes) -> Call | None:
    """The call that a request is; None: there is none of that path. Raises Wrong."""
    split = urlsplit(url)
    for wanted, path, method in _methods():
        found = path.fullmatch(split.path)
        if wanted != verb or found is None:
            continue
        given = {key: unquote(value) for key, value in found.groupdict().items()}
        query = parse_qsl(split.query, keep_blank_values=True, strict_parsing=bool(split.query))
        known = method["parameters"] | document()["parameters"]
        for key, value in query:
            if key not in known:
                raise Wrong(f"Invalid JSON payload received. Unknown name '{key}': Cannot bind query parameter.")
            given[key] = value
        for key, said in method["parameters"].items():
            if said.get("required") and not given.get(key):
                raise Wrong(f"Required parameter '{key}' is missing")
        for key, value in given.items():
            _parameter(key, value, known[key])
        return Call(method["id"], given, _body(method, body), method["response"]["$ref"])
    return None


def _parameter(key: str, value: str, said: Mapping[str, Any]) -> None:
    if (pattern := said.get("pattern")) and not re.fullmatch(pattern, value):
        raise Wrong(f"Invalid value '{value}'. Values must match the following regular expression: '{pattern}'")
    if said.get("type") == "integer" or said.get("format") in ("int64", "uint64"):
        if not _INT64.fullmatch(value):
            raise Wrong(f"Invalid value at '{key}': '{value}'")
        most = _PAGE if key == "maxResults" else int(said.get("maximum", value))
        if not int(said.get("minimum", value)) <= int(value) <= most:
            raise Wrong(f"Invalid value for field '{key}': '{value}'. It is out of its range")
    if said.get("type") == "boolean" and value not in ("true", "false"):
        raise Wrong(f"Invalid value at '{key}': '{value}'")


def _body(method: Mapping[str, Any], body: bytes) -> Any:
    if "request" not in method:
        if body:
            raise Wrong("this call takes no body")
        return None
    try:
        said = json.loads(body)
    except ValueError as error:
        raise Wrong(f"Parse Error: {error}") from None
    check(said, {"$ref": method["request"]["$ref"]}, "")
    return said


def check(value: Any, schema: Mapping[str, Any], where: str, *, output: bool = False) -> None:
    """Raises Wrong, for the first field that isn't as the schema has it. `output`: of an answer."""
    schema = _resolved(schema)
    if not output and _only_output(schema):
        raise Wrong(f"Invalid value for field '{where}': it is output only")
    if schema["type"] == "object":
        _object(value, schema, where, output)
    elif schema["type"] == "array":
        if not isinstance(value, list):
            raise Wrong(f"Invalid value at '{where}': a list is wanted")
        for n, each in enumerate(value):
            check(each, schema["items"], f"{where}[{n}]", output=output)
    else:
        _plain(value, schema, where)


def _resolved(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    if "$ref" not in schema:
        return schema
    said = {key: schema[key] for key in ("readOnly", "description") if key in schema}
    return {**document()["schemas"][schema["$ref"]], **said}


def _only_output(schema: Mapping[str, Any]) -> bool:
    return bool(schema.get("readOnly")) or schema.get("description", "").startswith(_OUTPUT)


def _object(value: Any, schema: Mapping[str, Any], where: str, output: bool) -> None:
    if not isinstance(value, dict):
        raise Wrong(f"Invalid value at '{where}': an object is wanted")
    known, others = schema.get("properties", {}), schema.get("additionalProperties")
    for key, each in value.items():
        inner = known.get(key, others)
        if inner is None:
            raise Wrong(f"Invalid JSON payload received. Unknown name \"{key}\" at '{where}': Cannot find field.")
        check(each, inner, f"{where}.{key}".lstrip("."), output=output)


def _plain(value: Any, schema: Mapping[str, Any], where: str) -> None:
    kind, form = schema["type"], schema.get("format", "")
    fits = {
        "string": isinstance(value, str),
        "boolean": isinstance(value, bool),
        "integer": isinstance(value, int) and not isinstance(value, bool),
        "number": isinstance(value, int | float) and not isinstance(value, bool),
        "any": True,
    }
    if not fits[kind] or (form in ("int64", "uint64") and kind == "string" and not _INT64.fullmatch(value)):
        raise Wrong(f"Invalid value at '{where}' ({form or kind}): {json.dumps(value)}")
    if "enum" in schema and value not in schema["enum"]:
        raise Wrong(f"Invalid value at '{where}': {json.dumps(value)} is none of {', '.join(schema['enum'])}")
    if schema.get("pattern") and not re.fullmatch(schema["pattern"], value):
        raise Wrong(f"Invalid value for field '{where}': '{value}'. Must be a match of regex '{schema['pattern']}'")
