"""The lab's rooms: who may import whom, and no two modules that need each other."""

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STAND_INS = ("lab.bmc", "lab.aws", "lab.aws_plugin", "lab.engine")
BASE = {"lab.system", "lab.names"}
HOSTS = {*BASE, "lab.hosts", "lab.bmc", "lab.aws"}
ROOMS = {  # room: those that it may import
    "lab.system": set(),
    "lab.names": set(),
    **{stand_in: set() for stand_in in STAND_INS},
    "lab.hosts": HOSTS,
    "lab.packages": {*BASE, "lab.hosts"},
    "lab.hall": BASE,
    "lab.site": {*BASE, "lab.hosts", "lab.packages"},
    "lab.demo": {*BASE, "lab.hosts", "lab.packages", "lab.site"},
    "lab.__main__": {"lab.system", "lab.hosts", "lab.site"},
}


def modules(top: str, root: Path = ROOT) -> dict[str, Path]:
    """{dotted name: file} of every module of a top-level package."""
    paths = sorted((root / top).rglob("*.py"))
    names = [".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__") for path in paths]
    return {name: path for name, path in zip(names, paths, strict=True) if "-" not in name}  # a stub's program is none


def imports(module: str, path: Path, known: dict[str, Path]) -> Iterator[str]:
    """The modules of `known` that a module imports, wherever in its text."""
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            inner = [f"{origin}.{alias.name}" for alias in node.names]
            names = [name if name in known else origin for name in inner]
        else:
            continue
        yield from (name for name in names if name in known and name != module)


@functools.cache
def needs(top: str, root: Path = ROOT) -> dict[str, frozenset[str]]:
    """{module: those of the same top-level package that it imports}"""
    known = modules(top, root)
    return {module: frozenset(imports(module, path, known)) for module, path in known.items()}


def circles(top: str, root: Path = ROOT) -> set[str]:
    """Modules of a top-level package that are part of an import circle, or import one that is."""
    left = needs(top, root)
    while free := {module for module, wanted in left.items() if not wanted}:
        left = {module: wanted - free for module, wanted in left.items() if module not in free}
    return set(left)


def room_of(module: str) -> str:
    return next(room for room in ROOMS if module == room or module.startswith(room + "."))


def test_no_two_modules_need_each_other():
    assert circles("lab") == set()


def test_a_circle_is_seen(tmp_path):
    (tmp_path / "lab").mkdir()
    texts = {"a": "from lab import b", "b": "def late():\n    import lab.a", "c": "import lab.d", "d": ""}
    for name, text in texts.items():
        (tmp_path / "lab" / f"{name}.py").write_text(text)
    assert circles("lab", tmp_path) == {"lab.a", "lab.b"}


def of_room(room: str) -> dict[str, frozenset[str]]:
    """Of the modules of a room: {module: those of the lab that it imports}; `lab` itself is empty."""
    return {m: wanted - {"lab"} for m, wanted in needs("lab").items() if m != "lab" and room_of(m) == room}


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_those_above_it(room):
    wrong = {
        (module, name)
        for module, wanted in of_room(room).items()
        if not (room in STAND_INS and module.endswith(".__main__"))
        for name in wanted
        if room_of(name) not in {room, *ROOMS[room]}
    }
    assert wrong == set()


@pytest.mark.parametrize("room", ROOMS)
def test_every_right_is_used(room):
    used = {room_of(name) for wanted in of_room(room).values() for name in wanted}
    assert ROOMS[room] <= used | {room}
