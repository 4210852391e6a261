"""GitHub's expressions, `${{ ... }}`, as far as the workflow files use them; what else there is, is refused.

Unknown properties are null, as GitHub has it; a context that isn't there is an error, as GitHub has it, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

TOKEN = re.compile(
    r"\s*(?:('(?:[^']|'')*')|(\d+(?:\.\d+)?)|([A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*)*)|(&&|\|\||==|!=|[!()]))"
)
WORDS = {"true": True, "false": False, "null": None}


class Refused(Exception):
    """The stand-in doesn't implement it, or GitHub itself would refuse it; one sentence."""


def filled(text: str, contexts: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]]) -> str:
    """A text with its expressions replaced."""
    return re.sub(r"\$\{\{(.*?)\}\}", lambda found: said(value(found[1], contexts, functions)), text)


def said(result: Any) -> str:
    """As GitHub writes a value into a text."""
    if result is None:
        return ""
    return json.dumps(result) if isinstance(result, bool | int | float | list | dict) else str(result)


def whole(text: Any, contexts: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]]) -> Any:
    """The value of a text that is one expression; another text with its expressions replaced."""
    found = re.fullmatch(r"\s*\$\{\{(.*)\}\}\s*", text) if isinstance(text, str) else None
    return value(found[1], contexts, functions) if found else filled(str(text), contexts, functions)


def value(text: str, contexts: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]]) -> Any:
    """What an expression is worth. Raises Refused."""
    return _Parser(text, contexts, functions).result()


class _Parser:
    def __init__(self, text: str, contexts: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]]):
        self.text, self.contexts, self.functions = text, contexts, functions
        self.tokens: list[tuple[str, str]] = []
        at = 0
        while text[at:].strip():
            found = TOKEN.match(text, at)
            if not found:
                raise Refused(f"the expression {text.strip()!r} has something that isn't implemented at {text[at:]!r}")
            kind = next(name for name, got in zip(("text", "number", "name", "op"), found.groups(), strict=True) if got)
            self.tokens.append((kind, found[0].strip()))
            at = found.end()

    def result(self) -> Any:
        result = self._either()
        if self.tokens:
            raise Refused(f"the expression {self.text.strip()!r} doesn't end where it should")
        return result

    def _next(self, *expected: str) -> str | None:
        if self.tokens and self.tokens[0][0] == "op" and self.tokens[0][1] in expected:
            return self.tokens.pop(0)[1]
        return None

    def _either(self) -> Any:
        left = self._both()
        while self._next("||"):
            right = self._both()
            left = left or right
        return left

    def _both(self) -> Any:
        left = self._equal()
        while self._next("&&"):
            right = self._equal()
            left = left and right
        return left

    def _equal(self) -> Any:
        left = self._one()
        while operator := self._next("==", "!="):
            right = self._one()
            left = (_folded(left) == _folded(right)) == (operator == "==")
        return left

    def _one(self) -> Any:
        if self._next("!"):
            return not self._one()
        if self._next("("):
            inner = self._either()
            if not self._next(")"):
                raise Refused(f"the expression {self.text.strip()!r} lacks a )")
            return inner
        if not self.tokens or self.tokens[0][0] == "op":
            raise Refused(f"the expression {self.text.strip()!r} ends too early")
        kind, token = self.tokens.pop(0)
        if kind == "text":
            return token[1:-1].replace("''", "'")
        if kind == "number":
            return json.loads(token)
        if self._next("("):
            given = []
            if not self._next(")"):
                given.append(self._either())
                if not self._next(")"):
                    raise Refused(f"the function {token} has more than one argument, which isn't implemented")
            if token not in self.functions:
                raise Refused(f"the function {token} isn't implemented")
            return self.functions[token](*given)
        return WORDS[token] if token in WORDS else self._looked_up(token)

    def _looked_up(self, path: str) -> Any:
        first, *rest = path.split(".")
        if first not in self.contexts:
            raise Refused(f"there is no context {first!r} here ({path})")
        found = self.contexts[first]
        for part in rest:
            found = found.get(part) if isinstance(found, Mapping) else None
        return found


def _folded(given: Any) -> Any:
    """GitHub compares texts without regard to capitals."""
    return given.casefold() if isinstance(given, str) else given
