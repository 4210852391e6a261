"""Stack files as text: what YAML takes in silence and people don't mean is refused (a key twice, 010), and what it
refuses is reported in plain words with the line.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml
from yaml.composer import Composer

from ironburst.config.finding import KEY, ConfigError, Finding, below

MOST_BYTES = 4_000_000
"""of a stack file: 10,000 nodes, each with all its keys, are half of it"""
MOST_VALUES = 200_000
"""that a file may expand to: anchors of anchors make billions of a few lines"""
PASTED = {
    "\u00a0": "a no-break space",
    "\u202f": "a no-break space",
    "\u00ad": "a soft hyphen",
    "\u200b": "a space of no width",
    "\u200c": "a space of no width",
    "\u200d": "a space of no width",
    "\u2060": "a space of no width",
    "\ufeff": "a space of no width",
    "\u201c": "a typographic quote",
    "\u201d": "a typographic quote",
    "\u201e": "a typographic quote",
    "\u2018": "a typographic quote",
    "\u2019": "a typographic quote",
    "\u2010": "a typographic hyphen",
    "\u2011": "a typographic hyphen",
    "\u2013": "a typographic dash",
    "\u2014": "a typographic dash",
    "\u2212": "a typographic minus",
    "\uff1a": "a full-width colon",
}
"""what wikis and word processors put in the place of ASCII, and no key of ours can hold"""
Place = TypeVar("Place")
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


class _Fast(Composer, getattr(yaml, "CSafeLoader", object)):  # type: ignore[misc]
    """libyaml's parser, which is ten times faster, below PyYAML's composer: libyaml's ends the process where brackets
    in brackets have no end, and this one with a RecursionError.
    """

    def __init__(self, text: str) -> None:
        Composer.__init__(self)
        yaml.CSafeLoader.__init__(self, text)


FAST: Any = _Fast if yaml.__with_libyaml__ else yaml.SafeLoader
"""PyYAML's safe loader, several times as fast where libyaml is"""


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
    root = _composed(path)
    if root is None:
        return None
    _bounded(path, root)
    try:
        if findings := list(_unmeant(root, "")):
            raise ConfigError(findings)
        return _Loader("").construct_document(root)
    except yaml.YAMLError as error:
        raise ConfigError([_not_yaml(path, error, path.read_text(encoding="utf-8"))]) from None
    except RecursionError:
        raise ConfigError([_too_deep(path)]) from None


def lines(path: Path) -> dict[str, int]:
    """Of each key and item its line, by its path (`config.ironburst:cluster.name`). Raises ConfigError."""
    root = _composed(path)
    if root is None:
        return {}
    _bounded(path, root)
    try:
        return dict(_places(root, ""))
    except RecursionError:
        raise ConfigError([_too_deep(path)]) from None


def nearest(path: str, known: Mapping[str, Place]) -> Place | None:
    """Where a finding's path is written, or the nearest thing above it; None: nothing of it is in the file."""
    while path not in known:
        shorter = re.sub(r"(\[\d+\]|\.[^.\[\]]*)$", "", path)
        if shorter == path:
            return None
        path = shorter
    return known[path]


def _composed(path: Path) -> yaml.Node | None:
    try:
        if path.stat().st_size > MOST_BYTES:
            message = f"has {path.stat().st_size} bytes, and a stack file at most {MOST_BYTES}: is it another file?"
            raise ConfigError([Finding(str(path), None, "file", message)])
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        message = f"can't be read: {error.strerror}; give the path of a stack file"
        raise ConfigError([Finding(str(path), str(path), "file", message)]) from None
    except UnicodeDecodeError as error:
        message = f"is not UTF-8 text (byte {error.start}): save it as UTF-8"
        raise ConfigError([Finding(str(path), None, "yaml", message)]) from None
    try:
        if yaml.__with_libyaml__:
            with contextlib.suppress(yaml.YAMLError):  # PyYAML's own says better what is wrong
                return yaml.compose(text, _Fast)
        return yaml.compose(text, yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise ConfigError([_not_yaml(path, error, text)]) from None
    except RecursionError:
        raise ConfigError([_too_deep(path)]) from None


def _bounded(path: Path, root: yaml.Node) -> None:
    """Raises ConfigError: it expands to more than anybody means."""
    if sum(1 for _ in itertools.islice(_nodes(root), MOST_VALUES + 1)) > MOST_VALUES:
        message = f"holds itself, or expands to more than {MOST_VALUES} values: write them out instead of `*` in `*`"
        raise ConfigError([Finding(str(path), None, "yaml", message)])


def _too_deep(path: Path) -> Finding:
    return Finding(str(path), None, "yaml", "holds itself, or brackets in brackets without end: write it out")


def _nodes(node: yaml.Node) -> Iterator[yaml.Node]:
    """This one and all below it, one that an anchor names as often as it is named."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, yaml.MappingNode):
            waiting += [each for pair in node.value for each in pair]
        elif isinstance(node, yaml.SequenceNode):
            waiting += node.value


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
    """What YAML takes in silence: the last of two keys, digits behind a 0 as octal, and what looks like ASCII."""
    if isinstance(node, yaml.MappingNode):
        first: dict[str, yaml.Node] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                message = f"has a list or a section as a key in line {_line(key)}: quote it if it is text"
                yield Finding(path or "the file", None, "yaml", message)
                continue
            here = below(path, key.value)
            yield from _pasted(key, path)
            if key.tag != _MERGE and first.setdefault(key.value, key) is not key:
                both = (_line(first[key.value]), _line(key))
                where = f"in lines {both[0]} and {both[1]}" if both[0] != both[1] else f"in line {both[0]}"
                yield Finding(here, None, "duplicate-key", f"is written twice, {where}: keep one of them")
            yield from _unmeant(value, here)
    elif isinstance(node, yaml.SequenceNode):
        for n, item in enumerate(node.value):
            yield from _unmeant(item, below(path, n))
    elif isinstance(node, yaml.ScalarNode) and node.tag != "tag:yaml.org,2002:int":
        yield from _pasted(node, path)
        if not node.style and re.fullmatch(r"0\d+", node.value):  # Pulumi's YAML takes 089 for 89
            yield Finding(path, node.value, "octal", f"{node.value} loses its 0 in Pulumi; quote it")
    elif isinstance(node, yaml.ScalarNode) and _OCTAL.fullmatch(node.value):
        plain = node.value.lstrip("+-0_") or "0"
        if set(plain) <= set("01234567_"):
            message = f"{node.value} is octal to YAML: write {int(plain.replace('_', ''), 8)} or {plain}, or quote it"
            yield Finding(path, node.value, "octal", message)


def _pasted(node: yaml.Node, path: str) -> Iterator[Finding]:
    found = _odd(node.value) if path.startswith(f"config.{KEY}") else ""
    if found:
        yield Finding(path, None, "pasted", f"{found}: type it anew")


def _odd(text: str) -> str:
    """Where a text isn't the ASCII that it looks like, and never the text, which may be a secret; empty: nowhere."""
    first = next((n for n, char in enumerate(text) if char in PASTED), None)
    if first is None:
        return ""
    return f"has {PASTED[text[first]]} (U+{ord(text[first]):04X}), its character {first + 1}, as pasted from a page"


def _not_yaml(path: Path, error: yaml.YAMLError, text: str) -> Finding:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = str(getattr(error, "problem", None) or error).splitlines()[0]
    if isinstance(error, yaml.reader.ReaderError):
        line_number = text.count("\n", 0, error.position) + 1
        words = f"has a control character (U+{int(error.character):04X}): delete it"
        return Finding(str(path), None, "yaml", f"is not YAML: line {line_number}: {words}")
    if mark is None:
        return Finding(str(path), None, "yaml", f"is not YAML: {problem}")
    for number, line in reversed(list(enumerate(text.splitlines()[: mark.line + 1], 1))):
        if found := _odd(line.split("#")[0]):
            return Finding(str(path), None, "yaml", f"is not YAML: line {number}: {found}: type the line anew")
    began = getattr(error, "context_mark", None)
    line = (text.splitlines() or [""])[min(mark.line, len(text.splitlines()) - 1)]
    words = _words(problem, str(getattr(error, "context", None) or ""), line, began.line + 1 if began else None)
    return Finding(str(path), None, "yaml", f"is not YAML: line {mark.line + 1}: {words}")


def _words(problem: str, context: str, line: str, began: int | None) -> str:
    """What is wrong, for people, of PyYAML's problem, its context, the line and the line where the context began."""
    if "found another document" in problem:
        return "begins a second document (`---`); a stack file is one"
    if alias := re.search(r"found undefined alias '(.*)'", problem):
        return f"has `*{alias[1]}`, and no `&{alias[1]}` stands before it; quote it if it is text"
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
