"""Property values: the wire form (protobuf Struct) as plain Python values, and what the engine does with them.

A value is None, bool, int, float, str, list or dict. Special kinds keep their wire form: a secret is
`{SIG: SECRET, "value": X}`, a resource reference `{SIG: RESOURCE, "urn": ..., "id": ...}`, an unknown the string
UNKNOWN.
"""

import copy
import re
from typing import Any

from google.protobuf import struct_pb2

from lab.engine.errors import Refused

SIG = "4dabf18193072939515e22adb298388d"
SECRET = "1b47061264138c4ac30d75fd1eb44270"
RESOURCE = "5cf8f73096256a8f31e491e813e4eb8e"
OUTPUT = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
ASSETS = {"c44067f5952c0a294b673a41bacd8c17": "assets", "0def7320c3a5731c473e5ecbe6d01bc7": "archives"}
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"

Props = dict[str, Any]


def secret(value: Any) -> dict:
    return {SIG: SECRET, "value": value}


def is_secret(value: Any) -> bool:
    return isinstance(value, dict) and value.get(SIG) == SECRET


def from_struct(struct: struct_pb2.Struct) -> Props:
    """Wire message -> property map. Refused: assets, archives, unknown signatures."""
    return {key: _from_value(value) for key, value in struct.fields.items()}


def _from_value(value: struct_pb2.Value) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        return _from_object(from_struct(value.struct_value))
    if kind == "list_value":
        return [_from_value(item) for item in value.list_value.values]
    if kind == "number_value":
        number = value.number_value
        return int(number) if number == int(number) and abs(number) < 2**53 else number
    return getattr(value, kind) if kind not in (None, "null_value") else None


def _from_object(fields: Props) -> Any:
    signature = fields.get(SIG)
    if signature is None or signature == RESOURCE:
        return fields
    if signature == SECRET:
        return secret(fields.get("value"))
    if signature == OUTPUT:
        value = fields.get("value", UNKNOWN)
        return secret(value) if fields.get("secret") else value
    raise Refused(f"lab/engine does not implement {ASSETS.get(signature, f'values with the signature {signature}')}")


def to_struct(props: Props) -> struct_pb2.Struct:
    struct = struct_pb2.Struct()
    for key, value in props.items():
        _fill(struct.fields[key], value)
    return struct


def _fill(target: struct_pb2.Value, value: Any) -> None:
    if isinstance(value, dict):
        target.struct_value.SetInParent()
        for key, item in value.items():
            _fill(target.struct_value.fields[key], item)
    elif isinstance(value, list):
        target.list_value.SetInParent()
        for item in value:
            _fill(target.list_value.values.add(), item)
    elif isinstance(value, str):
        target.string_value = value
    elif isinstance(value, bool):
        target.bool_value = value
    elif value is None:
        target.null_value = struct_pb2.NULL_VALUE
    else:
        target.number_value = value


def plain(value: Any) -> Any:
    """The value without secret wrappers."""
    if is_secret(value):
        return plain(value["value"])
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def masked(value: Any) -> Any:
    """The value as it may be shown: secrets are the text `[secret]`."""
    if is_secret(value):
        return "[secret]"
    if isinstance(value, dict):
        return {key: masked(item) for key, item in value.items()}
    return [masked(item) for item in value] if isinstance(value, list) else value


def references_as_ids(value: Any) -> Any:
    """For receivers that do not know resource references: the id, or the URN of a component."""
    if isinstance(value, dict):
        if value.get(SIG) == RESOURCE:
            return value["urn"] if "id" not in value else value["id"] or UNKNOWN
        return {key: references_as_ids(item) for key, item in value.items()}
    return [references_as_ids(item) for item in value] if isinstance(value, list) else value


def contains(value: Any, test) -> bool:
    if test(value):
        return True
    if isinstance(value, dict):
        return any(contains(item, test) for item in value.values())
    return isinstance(value, list) and any(contains(item, test) for item in value)


def has_unknown(value: Any) -> bool:
    return contains(value, lambda item: item == UNKNOWN)


def has_secret(value: Any) -> bool:
    return contains(value, is_secret)


def same(a: Any, b: Any) -> bool:
    """Deep equality as JSON has it: True is not 1."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return isinstance(a, bool) == isinstance(b, bool) and a == b


def changed_keys(old: Props, new: Props) -> list[str]:
    """Top-level keys whose values differ (secretness aside); an unknown always differs."""
    keys = old.keys() | new.keys()
    return sorted(
        k for k in keys if k not in old or k not in new or has_unknown(new[k]) or not same(plain(old[k]), plain(new[k]))
    )


def mark_secrets(answer: Props, known: Props) -> Props:
    """Mark a provider's plain answer: where `known` holds a secret under the same key, the answer's value is one.

    Objects are followed; a list with a secret inside becomes a secret as a whole.
    """
    marked = dict(answer)
    for key, value in known.items():
        if key not in marked or is_secret(marked[key]) or not has_secret(value):
            continue
        both_objects = isinstance(value, dict) and isinstance(marked[key], dict) and not is_secret(value)
        marked[key] = mark_secrets(marked[key], value) if both_objects else secret(marked[key])
    return marked


# -- property paths: `a.b`, `a[0]`, `a["b.c"]`, `*` ----------------------------------------------------------------

_PATH = re.compile(r"""\.?(?:\[(\d+)\]|\["((?:[^"\\]|\\.)*)"\]|\[(\*)\]|([^.\[\]]+))""")


def parse_path(path: str) -> list[str | int]:
    parts: list[str | int] = []
    at = 0
    while at < len(path):
        match = _PATH.match(path, at)
        if not match:
            raise Refused(f'the property path {path!r} cannot be read; allowed are names, [0], ["name"] and *')
        index, quoted, star, name = match.groups()
        parts.append(int(index) if index else quoted.replace('\\"', '"') if quoted is not None else star or name)
        at = match.end()
    return parts


def path_contains(outer: str, inner: str) -> bool:
    """Whether `inner` lies at or below `outer`, in which `*` stands for any one part."""
    a, b = parse_path(outer), parse_path(inner)
    return len(a) <= len(b) and all(x == "*" or x == y for x, y in zip(a, b, strict=False))


def reset_paths(old: Props, new: Props, paths: list[str]) -> Props:
    """`new` with the old values at `paths`. Nothing is created between, and lists keep their length."""
    if not paths:
        return new
    new = copy.deepcopy(new)
    for path in paths:
        _reset(old, new, parse_path(path))
    return new


def _reset(old: Any, new: Any, parts: list) -> None:
    old, new = (value["value"] if is_secret(value) else value for value in (old, new))
    head, rest = parts[0], parts[1:]
    if isinstance(old, list) and isinstance(new, list):
        indices = range(min(len(old), len(new))) if head == "*" else [head]
        for i in (i for i in indices if isinstance(i, int) and i < min(len(old), len(new))):
            if rest:
                _reset(old[i], new[i], rest)
            else:
                new[i] = copy.deepcopy(old[i])
    elif isinstance(old, dict) and isinstance(new, dict):
        for key in (old.keys() | new.keys()) if head == "*" else [head]:
            if rest:
                if key in old and key in new:
                    _reset(old[key], new[key], rest)
            elif key in old:
                new[key] = copy.deepcopy(old[key])
            else:
                new.pop(key, None)
