"""A workflow of Logic Apps, as far as the reaper's program needs it: one run of a definition. What this doesn't know,
an action, a key, a function, is an error, never passed over.

As Azure's pages have it: "Schema reference guide for trigger and action types", "Reference guide to workflow expression
functions". Assumed: `less` and `greater` compare texts by their characters, and none with nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

Send = Callable[[str, str, str], tuple[int, Any]]  # method, uri, audience -> status, body
_KEYS = {
    "Http": {"inputs", "operationOptions"},
    "Query": {"inputs"},
    "Foreach": {"foreach", "actions"},
    "If": {"expression", "actions", "else"},
    "Wait": {"inputs"},
    "Until": {"expression", "limit", "actions"},
    "InitializeVariable": {"inputs"},
    "SetVariable": {"inputs"},
}
_TOKEN = re.compile(r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<name>[A-Za-z]+)|(?P<sign>\?\[|[\[\](),]))")
_FORMAT = "yyyy-MM-ddTHH:mm:ssZ"


class Failed(Exception):
    """An action that failed."""


class Run:
    """One. `wait`: lets seconds pass. `failed`: the actions that did, with why."""

    def __init__(
        self, definition: Any, send: Send, now: Callable[[], float], wait: Callable[[float], object] = lambda _: None
    ):
        assert definition.keys() == {"$schema", "contentVersion", "triggers", "actions", "outputs"}, definition.keys()
        names = list(_names(definition["actions"]))
        assert len(names) == len(set(names)), "an action's name is the workflow's, not its loop's"
        self._send, self._now, self._pass = send, now, wait
        self._bodies: dict[str, Any] = {}
        self._variables: dict[str, Any] = {}
        self._items: dict[str, Any] = {}
        self.failed: dict[str, str] = {}
        self._of = {
            "Http": self._http,
            "Query": self._query,
            "Foreach": self._foreach,
            "If": self._if,
            "Until": self._until,
            "Wait": self._wait,
            "InitializeVariable": self._initialize,
            "SetVariable": self._set,
        }
        self._all(definition["actions"])

    def _all(self, actions: Any) -> bool:
        """Run them, each after those that it names; whether all have succeeded or needn't."""
        status: dict[str, str] = {}
        while len(status) < len(actions):
            ready = [
                name
                for name, each in actions.items()
                if name not in status and each["runAfter"].keys() <= status.keys()
            ]
            assert ready, "actions wait for each other"
            for name in ready:
                status[name] = self._action(name, actions[name], status)
        return "Failed" not in status.values()

    def _action(self, name: str, action: Any, status: dict[str, str]) -> str:
        kind = action["type"]
        assert action.keys() <= {"type", "runAfter"} | _KEYS[kind], (name, sorted(action))
        if any(status[other] not in allowed for other, allowed in action["runAfter"].items()):
            return "Skipped"
        try:
            self._of[kind](name, action)
        except Failed as error:
            self.failed[name] = str(error)
            return "Failed"
        return "Succeeded"

    # ---- actions
    def _http(self, name: str, action: Any) -> None:
        asked = action["inputs"]
        assert asked.keys() == {"method", "uri", "authentication"}, sorted(asked)
        signed = asked["authentication"]
        assert signed.keys() == {"type", "identity", "audience"} and signed["type"] == "ManagedServiceIdentity"
        assert action["operationOptions"] == "DisableAsyncPattern", "a call that is waited for isn't known here"
        status, self._bodies[name] = self._send(asked["method"], self._value(asked["uri"]), signed["audience"])
        if status >= 400:
            raise Failed(f"HTTP {status}: {self._bodies[name]}")

    def _query(self, name: str, action: Any) -> None:
        found = self._value(action["inputs"]["from"])
        if not isinstance(found, list):
            raise Failed("`from` is no array")
        self._bodies[name] = [each for each in found if self._of_item(each, action["inputs"]["where"])]

    def _of_item(self, item: Any, where: str) -> bool:
        self._items[""] = item
        found = self._value(where)
        assert isinstance(found, bool)
        return found

    def _foreach(self, name: str, action: Any) -> None:
        well = True
        for item in self._value(action["foreach"]):
            self._items[name] = item
            well &= self._all(action["actions"])
        if not well:
            raise Failed("an action inside has failed")

    def _if(self, _name: str, action: Any) -> None:
        assert action["else"] == {"actions": {}}, "what is done else isn't known here"
        met = self._value(action["expression"])
        assert isinstance(met, bool)
        if met and not self._all(action["actions"]):
            raise Failed("an action inside has failed")

    def _wait(self, _name: str, action: Any) -> None:
        (interval,) = action["inputs"].values()
        assert action["inputs"].keys() == {"interval"} and interval.keys() == {"count", "unit"}
        self._pass(interval["count"] * {"Second": 1.0, "Minute": 60.0}[interval["unit"]])

    def _until(self, _name: str, action: Any) -> None:
        assert action["limit"].keys() == {"count", "timeout"}
        for _ in range(action["limit"]["count"]):
            well = self._all(action["actions"])
            if self._value(action["expression"]):
                break
        if not well:
            raise Failed("an action inside has failed")

    def _initialize(self, _name: str, action: Any) -> None:
        for each in action["inputs"]["variables"]:
            assert each.keys() == {"name", "type", "value"} and each["type"] == "string"
            self._variables[each["name"]] = self._value(each["value"])

    def _set(self, _name: str, action: Any) -> None:
        assert action["inputs"]["name"] in self._variables
        self._variables[action["inputs"]["name"]] = self._value(action["inputs"]["value"])

    # ---- expressions
    def _value(self, text: str) -> Any:
        """@expression; or a text with @{expression} in it."""
        if text.startswith("@") and not text.startswith("@{"):
            return self._read(text[1:])
        return re.sub(r"@\{(.*?)\}", lambda found: str(self._read(found[1])), text)

    def _read(self, text: str) -> Any:
        tokens = []
        at = 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            assert found, f"no expression: {text[at:]}"
            tokens.append((str(found.lastgroup), found[str(found.lastgroup)]))
            at = found.end()
        value = self._term(tokens)
        assert not tokens, f"more than an expression: {text}"
        return value

    def _term(self, tokens: list[tuple[str, str]]) -> Any:
        kind, text = tokens.pop(0)
        if kind == "text":
            return text[1:-1].replace("''", "'")
        assert kind == "name" and tokens.pop(0)[1] == "(", text
        given = []
        while tokens[0][1] != ")":
            given.append(self._term(tokens))
            assert tokens[0][1] in ",)", tokens
            if tokens[0][1] == ",":
                tokens.pop(0)
        tokens.pop(0)
        value = self._function(text, given)
        while tokens and tokens[0][1] in ("[", "?["):
            safe, key = tokens.pop(0)[1] == "?[", self._term(tokens)
            assert tokens.pop(0)[1] == "]"
            if not isinstance(value, dict) or key not in value:
                if not safe:
                    raise Failed(f"there is no {key!r}")
                value = None
            else:
                value = value[key]
        return value

    def _function(self, name: str, given: list[Any]) -> Any:
        known: dict[str, Callable[..., Any]] = {
            "and": lambda *all_: all(all_),
            "body": lambda action: self._bodies.get(action),
            "coalesce": lambda *all_: next((each for each in all_ if each is not None), None),
            "contains": lambda of, key: key in of,
            "equals": lambda a, b: a == b,
            "greater": lambda a, b: _compared(a, b) > 0,
            "item": lambda: self._items[""],
            "items": lambda loop: self._items[loop],
            "json": json.loads,
            "less": lambda a, b: _compared(a, b) < 0,
            "string": lambda value: value if isinstance(value, str) else json.dumps(value, separators=(",", ":")),
            "utcNow": self._utc_now,
            "variables": lambda variable: self._variables[variable],
        }
        return known[name](*given)

    def _utc_now(self, form: str) -> str:
        assert form == _FORMAT, form
        return datetime.fromtimestamp(self._now(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _names(actions: Any) -> Iterator[str]:
    """Of actions, and of those inside."""
    for name, each in actions.items():
        yield name
        yield from _names(each.get("actions", {}))


def _compared(a: Any, b: Any) -> int:
    if not isinstance(a, str) or not isinstance(b, str):
        raise Failed(f"{a!r} and {b!r} can't be compared")
    return (a > b) - (a < b)
