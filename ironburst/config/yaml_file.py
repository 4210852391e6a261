"""Stack files as text: what YAML takes in silence and people don't mean is refused (a key twice, 010), and what it
refuses is said in plain words with the line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from ironburst.config.finding import ConfigError, Finding, below

_OCTAL = re.compile(r"[-+]?0\d[\d_]*")
_MERGE = "tag:yaml.org,2002:merge"


class WrittenInt(int):
    """A whole number, and how it is written in the file: 52:54 is 3174 to YAML."""

    written: str


class WrittenFloat(float):
    """A number, and how it is written in the file: 12.10 is 12.1 to YAML."""

    written: str


class _Loader(yaml.SafeLoader):
    """Keeps how numbers are written where Python would write them otherwise."""


def _int(loader: _Loader, node: yaml.ScalarNode) -> int:
    number = WrittenInt(loader.construct_yaml_int(node))
    number.written = node.value
    return int(number) if str(int(number)) == node.value else number


def _float(loader: _Loader, node: yaml.ScalarNode) -> float:
    number = WrittenFloat(loader.construct_yaml_float(node))
    number.written = node.value
    return float(number) if str(float(number)) == node.value else number


def _moment(loader: _Loader, node: yaml.ScalarNode) -> Any:
    try:
        return loader.construct_yaml_timestamp(node)
    except ValueError:  # the 13th month: whoever needs a moment refuses it by its path
        return node.value


_Loader.add_constructor("tag:yaml.org,2002:timestamp", _moment)
_Loader.add_constructor("tag:yaml.org,2002:int", _int)
_Loader.add_constructor("tag:yaml.org,2002:float", _float)


def written(value: Any) -> str:
    """A value as the file has it, where that is known; else as Python has it."""
    return getattr(value, "written", None) or repr(value)


def read(path: Path) -> Any:
    """What a YAML file holds. Raises ConfigError: it can't be read, isn't YAML, or says something twice."""
    loader, root = _composed(path)
    if root is None:
        return None
    try:
        if findings := list(_unmeant(root, "")):
            raise ConfigError(findings)
        return loader.construct_document(root)
    except yaml.YAMLError as error:
        raise ConfigError([_not_yaml(path, error, path.read_text())]) from None


def lines(path: Path) -> dict[str, int]:
    """Of each key and item its line, by its path (`config.ironburst:cluster.name`). Raises ConfigError."""
    _, root = _composed(path)
    return dict(_places(root, "")) if root else {}


def line_of(path: str, known: dict[str, int]) -> int | None:
    """The line of a finding's path, or of the nearest thing above it that is written; None: of nothing in the file."""
    while path not in known:
        shorter = re.sub(r"(\[\d+\]|\.[^.\[\]]*)$", "", path)
        if shorter == path:
            return None
        path = shorter
    return known[path]


def _composed(path: Path) -> tuple[_Loader, yaml.Node | None]:
    try:
        text = path.read_text()
    except OSError as error:
        message = f"can't be read: {error.strerror}; give the path of a stack file"
        raise ConfigError([Finding(str(path), str(path), "file", message)]) from None
    except UnicodeDecodeError as error:
        message = f"is not UTF-8 text (byte {error.start}): save it as UTF-8"
        raise ConfigError([Finding(str(path), None, "yaml", message)]) from None
    try:
        loader = _Loader(text)
        return loader, loader.get_single_node()
    except yaml.YAMLError as error:
        raise ConfigError([_not_yaml(path, error, text)]) from None


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _places(node: yaml.Node, path: str) -> Iterator[tuple[str, int]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            here = below(path, str(key.value))
            yield here, _line(key)
            yield from _places(value, here)
    elif isinstance(node, yaml.SequenceNode):
        for n, item in enumerate(node.value):
            yield below(path, n), _line(item)
            yield from _places(item, below(path, n))


def _unmeant(node: yaml.Node, path: str) -> Iterator[Finding]:
    """What YAML takes in silence: the last of two keys, and digits behind a 0 as octal."""
    if isinstance(node, yaml.MappingNode):
        first: dict[str, yaml.Node] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                message = f"has a list or a section as a key in line {_line(key)}: quote it if it is text"
                yield Finding(path or "the file", None, "yaml", message)
                continue
            here = below(path, key.value)
            if key.tag != _MERGE and first.setdefault(key.value, key) is not key:
                both = (_line(first[key.value]), _line(key))
                where = f"in lines {both[0]} and {both[1]}" if both[0] != both[1] else f"in line {both[0]}"
                yield Finding(here, None, "duplicate-key", f"is written twice, {where}: keep one of them")
            yield from _unmeant(value, here)
    elif isinstance(node, yaml.SequenceNode):
        for n, item in enumerate(node.value):
            yield from _unmeant(item, below(path, n))
    elif isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:int" and _OCTAL.fullmatch(node.value):
        plain = node.value.lstrip("+-0_") or "0"
        if set(plain) <= set("01234567_"):
            message = f"{node.value} is octal to YAML: write {int(plain.replace('_', ''), 8)} or {plain}, or quote it"
            yield Finding(path, node.value, "octal", message)


def _not_yaml(path: Path, error: yaml.YAMLError, text: str) -> Finding:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = str(getattr(error, "problem", None) or error).splitlines()[0]
    if mark is None:
        return Finding(str(path), None, "yaml", f"is not YAML: {problem}")
    began = getattr(error, "context_mark", None)
    line = (text.splitlines() or [""])[min(mark.line, len(text.splitlines()) - 1)]
    words = _words(problem, str(getattr(error, "context", None) or ""), line, began.line + 1 if began else None)
    return Finding(str(path), None, "yaml", f"is not YAML: line {mark.line + 1}: {words}")


def _words(problem: str, context: str, line: str, began: int | None) -> str:
    """What is wrong, for people, of PyYAML's problem, its context, the line and the line where the context began."""
    if "'\\t'" in problem:
        return "has a tab; indent with spaces"
    if first := re.search(r"found character '(.)' that cannot start any token", problem):
        return f"has a value that begins with {first[1]!r}; quote it"
    if tag := re.search(r"could not determine a constructor for the tag '(!.*)'", problem):
        return f"has a value that begins with {tag[1]!r}; quote it"
    if "mapping values are not allowed" in problem:
        if len(re.findall(r":(?=\s|$)", line.split(" #")[0])) > 1:
            return "has a second `: ` in one value; quote it"
        return "is indented otherwise than the lines above, or the line above has no colon"
    if "quoted scalar" in context and ("end of stream" in problem or "document separator" in problem):
        return f"has a quote that isn't closed; it opens in line {began}"
    if "flow" in context:
        if len(re.findall(r'"', line)) % 2 or line.count("'") % 2:
            return "has a quote that isn't closed"
        bracket = "[" if "sequence" in context else "{"
        return f"the `{bracket}` of line {began} isn't closed, or a comma is missing"
    if "alias" in context or "alias" in problem or "anchor" in context:
        return "has a `*` or `&` that begins a value; quote it"
    if "block end" in problem or "block collection" in context or "block mapping" in context:
        return "is indented otherwise than the lines above that it belongs to"
    if "could not find expected ':'" in problem:
        return "has no colon behind a key, or a quote isn't closed"
    return problem
