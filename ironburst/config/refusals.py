"""What pydantic refuses, in words for people: what was given, what is allowed, what to do."""

from __future__ import annotations

import difflib
import re
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from ironburst.config.aws.forms import FORMS as FIRST
from ironburst.config.azure.forms import FORMS as THIRD
from ironburst.config.clouds import CLASSES
from ironburst.config.finding import Finding, path_of
from ironburst.config.google.forms import FORMS as SECOND
from ironburst.config.models import ClusterConfig
from ironburst.config.scheduler_models import Kubernetes, Slurm
from ironburst.config.software_models import EMPTY
from ironburst.config.yaml_file import written

NOT_SHOWN = (
    "password",
    "sudo_password",
    "munge_key",
    "ca",
    "kubeconfig",
    "join_token",
    "bind_password",
    "keys",
    "bios",
    "ledger",
    "accounting",
    "ledger_password",
    "shared_secret",
)  # somebody may have written the secret itself here

_KINDS: dict[str, type[BaseModel]] = {"slurm": Slurm, "kubernetes": Kubernetes, **CLASSES}
"""what pydantic puts behind `scheduler` and `cloud`"""
SHORT = 4
"""letters of a key, of which one may well be another"""
MOST_KEYS = 20
"""that are listed where none is near"""
_LIMITS = {
    "greater_than": ("gt", "is too small: it must be greater than {}"),
    "greater_than_equal": ("ge", "is too small: it must be at least {}"),
    "less_than": ("lt", "is too large: it must be less than {}"),
    "less_than_equal": ("le", "is too large: it must be at most {}"),
}
_WHOLE = "is no whole number; write digits alone, as in 8"
_NUMBER = "is no number; write digits alone, as in 1500 (no unit, sign of money or comma)"
_WORDS = {
    "missing": "is needed here and absent",
    "int_parsing": _WHOLE,
    "int_type": _WHOLE,
    "int_from_float": _WHOLE,
    "float_parsing": _NUMBER,
    "float_type": _NUMBER,
    "finite_number": _NUMBER,
    "bool_parsing": "is neither true nor false",
    "bool_type": "is neither true nor false",
    "list_type": "is no list; write [VALUE, VALUE], or one a line behind a `-`",
    "dict_type": "is no section; write keys below it",
    "model_type": "is no section; write keys below it",
    "string_too_short": EMPTY,
}


def finding(detail: Mapping[str, Any]) -> Finding:
    """One of ValidationError.errors(): a finding."""
    location, given, kind = detail["loc"], detail.get("input"), str(detail["type"])
    if kind == "invalid_key":  # a number; pydantic names it as an item
        location, kind = (*location[:-1], str(location[-1])), "extra_forbidden"
    path, secret = path_of(*_as_written(location)), any(part in NOT_SHOWN for part in location)
    value = None if secret else given
    if kind == "extra_forbidden":
        return Finding(path, value, "unknown-key", f"there is no such key; {_near_key(location)}")
    message = _message(detail, kind, given, location)
    shown = "" if secret or given is None or isinstance(given, dict | list) else f"{written(given)} "
    if kind == "missing" or (isinstance(given, str) and repr(given) in message):
        shown = ""
    return Finding(path, value, kind.replace("_", "-"), f"{shown}{message}")


def _message(detail: Mapping[str, Any], kind: str, given: Any, location: Sequence[str | int]) -> str:
    context = detail.get("ctx") or {}
    if kind == "value_error":
        return str(detail["msg"]).removeprefix("Value error, ")
    if given in (None, "") and kind != "missing":
        return EMPTY
    if kind in _LIMITS:
        limit, words = _LIMITS[kind]
        return words.format(f"{context[limit]:g}")
    if kind in _WORDS:
        return _WORDS[kind]
    if kind == "string_type":
        return _no_text(given, location)
    if kind == "string_pattern_mismatch":
        return f"isn't of the form that is needed here; {_form(location, str(context['pattern']))}"
    if kind == "literal_error":
        expected = str(context.get("expected"))
        return _no_choice(given, re.findall(r"'([^']*)'", expected) or re.findall(r"\d+", expected))
    if kind.startswith("date_"):
        return "is no day; write for example 2026-12-31"
    if kind.startswith(("datetime", "timezone")):
        return "is no point in time; write for example 2026-12-01T11:30:00Z"
    if kind in ("too_short", "too_long"):
        least = context.get("min_length")
        return (
            f"has too few items: at least {least}" if least else f"has too many items: at most {context['max_length']}"
        )
    message = str(detail["msg"])
    return f"is not allowed: {message[0].lower()}{message[1:]}"


def _no_text(given: Any, location: Sequence[str | int]) -> str:
    if isinstance(given, list | dict):
        return f"is a {'list' if isinstance(given, list) else 'section'} where one text belongs"
    text = {True: "yes", False: "no"}[given] if isinstance(given, bool) else written(given)
    key = f"{location[-1]}: " if isinstance(location[-1], str) else ""
    return f'is no text to YAML; quote it: {key}"{text}"'


def _no_choice(given: Any, allowed: Sequence[str]) -> str:
    names = {_plain(each): each for each in allowed}
    near = difflib.get_close_matches(_plain(given), names, 1, 0.6)
    near = near or [plain for plain in names if len(_plain(given)) > 2 and _plain(given) in plain]
    hint = f"did you mean {names[near[0]]!r}? " if near else ""
    return f"isn't known here; {hint}allowed: {', '.join(allowed)}"


def _form(location: Sequence[str | int], pattern: str) -> str:
    field = _field_at(location)
    example = next(iter(field.examples or []), None) if field else None
    while isinstance(example, list) and example:
        example = example[0]
    if isinstance(example, str):
        return f"write for example {example}"
    return _FORMS.get(pattern) or f"allowed is what fits {pattern}"


_FORMS = {
    r"^[a-z]([a-z0-9-]{0,30}[a-z0-9])?$": "write a small letter first, then small letters, digits and -, at most 32",
    **FIRST,
    **SECOND,
    **THIRD,
}
"""pattern that several keys share: its words"""


def _plain(text: object) -> str:
    return re.sub(r"[^a-z0-9]", "", str(text).lower())


def _near_key(location: Sequence[str | int]) -> str:
    known = {_plain(key): key for key in _fields_at(location[:-1])}
    given = _plain(location[-1])
    near = difflib.get_close_matches(given, known, 1, 0.7 if len(given) > SHORT else 0.6)
    if near:
        return f"did you mean {known[near[0]]!r}?"
    names = list(known.values())
    more = f" and {len(names) - MOST_KEYS} more, see docs/reference/config.md" if len(names) > MOST_KEYS else ""
    return f"allowed here: {', '.join(names[:MOST_KEYS])}{more}"


def _as_written(location: Sequence[str | int]) -> Sequence[str | int]:
    """Without what pydantic puts behind: the kind of scheduler or cloud, and that a key is wrong, not its value."""
    at = _behind_section(location)
    own = [*location[:at], *location[at + 1 :]] if at else [*location]
    return own[:-1] if own and own[-1] == "[key]" else own


def _behind_section(location: Sequence[str | int]) -> int:
    """Where the kind of scheduler or cloud stands; 0: this is neither's."""
    at = {"scheduler": 1, "other_schedulers": 2, "cloud": 1, "other_clouds": 2}.get(
        str(location[0]) if location else "", 0
    )
    return at if len(location) > at else 0


def _kind_at(location: Sequence[str | int]) -> tuple[Any, FieldInfo | None]:
    """The type that is declared at `location`, and the field that declares it."""
    kind: Any = ClusterConfig
    field: FieldInfo | None = None
    if at := _behind_section(location):
        kind, location = _KINDS[str(location[at])], location[at + 1 :]
    for part in location:
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            if str(part) not in kind.model_fields:
                return None, None
            field = kind.model_fields[str(part)]
            kind = field.annotation
        elif typing.get_args(kind):
            kind = typing.get_args(kind)[-1]
        else:
            return None, field
        kind = _without_none(kind)
    return kind, field


def _field_at(location: Sequence[str | int]) -> FieldInfo | None:
    return _kind_at(location)[1]


def _fields_at(location: Sequence[str | int]) -> Sequence[str]:
    """Names of the keys that the model at `location` has."""
    kind = _kind_at(location)[0]
    return list(kind.model_fields) if isinstance(kind, type) and issubclass(kind, BaseModel) else []


def _without_none(kind: Any) -> Any:
    while typing.get_origin(kind) is typing.Annotated:
        kind = typing.get_args(kind)[0]
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return next(option for option in typing.get_args(kind) if option is not type(None))
    return kind
