"""Values as Pulumi's protocol carries them: secrets and unknowns are marked inside ordinary JSON values."""

from __future__ import annotations

from typing import Any

from google.protobuf import json_format, struct_pb2

Props = dict[str, Any]

UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
SIG = "4dabf18193072939515e22adb298388d"
SECRET = "1b47061264138c4ac30d75fd1eb44270"
OUTPUT = "d0e6a833031e9bbcd3f4e8bde6ca49a4"


def decode(struct: struct_pb2.Struct) -> Props:
    """A Struct as a dict; whole numbers become ints, marks stay."""
    return _whole(json_format.MessageToDict(struct))


def encode(props: Props) -> struct_pb2.Struct:
    return json_format.ParseDict({k: v for k, v in props.items() if v is not None}, struct_pb2.Struct())


def _whole(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _whole(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_whole(v) for v in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def plain(value: Any) -> Any:
    """The value without secret and output marks; unknown stays UNKNOWN."""
    if isinstance(value, dict):
        if value.get(SIG) == SECRET:
            return plain(value.get("value"))
        if value.get(SIG) == OUTPUT:
            return plain(value["value"]) if "value" in value else UNKNOWN
        if SIG in value:
            raise ValueError("assets, archives and resource references are not implemented by this stand-in")
        return {k: plain(v) for k, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, list) else value


def has_unknown(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(has_unknown, value.values()))
    return any(map(has_unknown, value)) if isinstance(value, list) else value == UNKNOWN


def is_secret(value: Any) -> bool:
    return isinstance(value, dict) and (
        value.get(SIG) == SECRET or (value.get(SIG) == OUTPUT and bool(value.get("secret")))
    )


def has_secret(value: Any) -> bool:
    if isinstance(value, dict):
        return is_secret(value) or any(map(has_secret, value.values()))
    return isinstance(value, list) and any(map(has_secret, value))


def secret(value: Any) -> Any:
    return value if is_secret(value) else {SIG: SECRET, "value": value}


def rewrap(clear: Any, marked: Any) -> Any:
    """`clear` with the secret marks of `marked`; a list with a secret in it becomes a secret as a whole."""
    if is_secret(marked) or (isinstance(marked, list) and has_secret(marked)):
        return secret(clear)
    if isinstance(marked, dict) and isinstance(clear, dict):
        return {k: rewrap(v, marked.get(k)) for k, v in clear.items()}
    return clear
