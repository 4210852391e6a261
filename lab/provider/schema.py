"""What an SDK's classes declare, and what of it a stand-in implements."""

from __future__ import annotations

import collections.abc
import functools
import importlib
import inspect
import json
import pathlib
import re
import sys
import threading
import typing
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from pulumi import _types  # private: the SDK is pinned, and a test watches that this still works

from lab.provider.wire import UNKNOWN, Props

Tree = dict[str, "Tree"]
Problem = tuple[str, str]  # path of the input, reason
_IMPORTING = threading.Lock()  # the SDK's lazy modules are half there while another thread loads them


@functools.cache
def registry(sdk: ModuleType) -> dict[str, tuple[str, str]]:
    """Resource token -> (module, class) of an SDK (`pulumi_aws`)."""
    rows = json.loads(re.search(r'resource_modules="""(.*?)"""', pathlib.Path(sdk.__file__).read_text(), re.DOTALL)[1])
    return {token: (row["fqn"], name) for row in rows for token, name in row["classes"].items()}


@functools.cache
def args_class(sdk: ModuleType, token: str) -> type:
    """The class of a resource's inputs (XInitArgs where a nested type took the name XArgs)."""
    module, name = registry(sdk)[token]
    with _IMPORTING:
        scope = vars(sys.modules[getattr(importlib.import_module(module), name).__module__])
    return scope.get(name + "InitArgs") or scope[name + "Args"]


def elements(kind: Any) -> list[type]:
    """The input classes inside Optional, Sequence, Union or Awaitable (of several any fits); none for scalars and maps
    with free keys.
    """
    if isinstance(kind, type) and _types.is_input_type(kind):
        return [kind]
    if typing.get_origin(kind) in (dict, collections.abc.Mapping):
        return []
    return list(dict.fromkeys(element for part in typing.get_args(kind) for element in elements(part)))


@functools.cache
def required(cls: type) -> frozenset[str]:
    """Wire names of the inputs that the class cannot do without."""
    wire = _types.input_type_py_to_pulumi_names(cls)
    parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
    return frozenset(wire.get(p.name, p.name) for p in parameters if p.default is inspect.Parameter.empty)


@functools.cache
def input_types(cls: type) -> dict[str, Any]:
    """By wire name. What they name is loaded by that."""
    with _IMPORTING:
        return _types.input_type_types(cls)


def parse_tree(text: str) -> Tree:
    """`"vpcId routes{cidrBlock gatewayId}"` as nested dicts; an empty dict is a leaf (a scalar, or a map with free
    keys).
    """
    stack: list[Tree] = [{}]
    last = ""
    for word in re.findall(r"\w+|[{}]", text):
        if word == "{":
            stack.append(stack[-1][last])
        elif word == "}":
            stack.pop()
        else:
            stack[-1][word], last = {}, word
    return stack[0]


def is_policy(kind: Any) -> bool:
    """Whether an input takes a policy, as JSON text or as an object."""
    return [cls.__name__ for cls in elements(kind)] == ["PolicyDocumentArgs"]


def problems(cls: type, implemented: Tree | None, inputs: Props, path: str = "") -> Iterator[Problem]:
    """Every input that the SDK's class doesn't have, that the stand-in doesn't implement (None: all of it is), or that
    is missing.
    """
    types = input_types(cls)
    sdk = cls.__module__.partition(".")[0].replace("_", "-")
    plugin = sdk.removeprefix("pulumi-")
    for key in sorted(required(cls) - set(inputs)):
        yield path + key, f"is required by {cls.__name__}"
    for key, value in inputs.items():
        if key.startswith("__"):  # notes of the engine and of Check
            continue
        if key not in types:
            yield path + key, f"is unknown: {cls.__name__} of {sdk} has no such input"
        elif implemented is not None and key not in implemented:
            yield path + key, f"is known, but not implemented by the lab's stand-in for the {plugin} plugin"
        elif classes := elements(types[key]):
            policy = is_policy(types[key])
            if policy and isinstance(value, str):
                continue
            below = None if implemented is None or policy else implemented[key]
            many = isinstance(value, list)
            for i, item in enumerate(value if many else [value]):
                here = f"{path}{key}[{i}]" if many else path + key
                if isinstance(item, dict):
                    answers = [list(problems(class_, below, item, here + ".")) for class_ in classes]
                    yield from min(answers, key=len)  # of several classes the one that fits best
                elif item != UNKNOWN:
                    yield here, f"must be an object ({classes[0].__name__}), not {item!r}"
