"""Who may import whom. The design's dependency direction, held against the imports of every module."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
STDLIB = set(sys.stdlib_module_names)
THIRD_PARTY = {
    "pydantic",
    "yaml",
    "numpy",
    "boto3",
    "botocore",
    "sushy",
    "requests",
    "urllib3",
    "ansible_runner",
    "ansible",
    "pulumi",
    "pulumi_aws",
}

# layer: what its modules may import beside the standard library and themselves
PURE = {"numpy"}
MAY = {
    "ironburst.burst": PURE | {"ironburst.node_states"},
    "ironburst.replay": PURE | {"ironburst.burst"},
    "ironburst.hall": PURE,
    "ironburst.health": set(),
    "ironburst.software": PURE,
    "ironburst.secrets": {"boto3", "botocore"},
    "ironburst.catalog": {"yaml"},
    "ironburst.config": {
        "pydantic",
        "yaml",
        "ironburst.catalog",
        "ironburst.files",
        "ironburst.secrets",
        "ironburst.software",
    },
    "ironburst.document": {
        "pydantic",
        "ironburst.config",
        "ironburst.catalog",
        "ironburst.files",
        "ironburst.software",
    },
    "ironburst.ports": {"ironburst.burst", "ironburst.service"},
    "ironburst.node_states": set(),
    "ironburst.service": {"ironburst.node_states"},
    "ironburst.signals": set(),
    "ironburst.files": set(),
    "ironburst.images": {"ironburst.catalog", "ironburst.document", "ironburst.ports", "ironburst.signals"},
    "ironburst.baremetal": {"pydantic", "ironburst.catalog", "ironburst.secrets"},
    "ironburst.controller": {"ironburst.burst", "ironburst.document", "ironburst.node_states", "ironburst.ports"},
    "ironburst.convergence": {"yaml", "ironburst.document", "ironburst.files", "ironburst.service", "ironburst.health"},
    "ironburst.adapters": {
        *{
            "ironburst.ports",
            "ironburst.images",
            "ironburst.document",
            "ironburst.burst",
            "ironburst.baremetal",
            "ironburst.secrets",
        },
        *{"ironburst.service", "ironburst.signals"},
        *{"boto3", "botocore", "sushy", "requests", "urllib3", "ansible_runner"},
    },
    "ironburst.cli": {"ironburst"},
    "components": {
        "pulumi",
        "pulumi_aws",
        *(f"ironburst.{name}" for name in ("config", "catalog", "document", "hall", "software")),
    },
}


def modules():
    for top in ("ironburst", "components"):
        for path in sorted((ROOT / top).rglob("*.py")):
            yield path, ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imports(path, module):
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            full = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{full}.{alias.name}" if full in ("ironburst", "components") else full for alias in node.names)


def layer_of(module):
    return next(
        (layer for layer in sorted(MAY, key=len, reverse=True) if module == layer or module.startswith(layer + ".")),
        None,
    )


def within(name, allowed):
    return any(name == one or name.startswith(one + ".") for one in allowed)


@pytest.mark.parametrize(("path", "module"), [pytest.param(p, m, id=m) for p, m in modules()])
def test_imports_point_the_right_way(path, module):
    if module == "ironburst":
        assert list(imports(path, module)) == []
        return
    layer = layer_of(module)
    assert layer, f"{module} belongs to no layer of test_layers.py: name the layer and what it may import"
    wrong = [
        name
        for name in imports(path, module)
        if name.split(".")[0] not in STDLIB and not within(name, {layer, *MAY[layer]})
    ]
    assert wrong == [], f"{module} ({layer}) may not import these"


def test_the_product_never_imports_the_lab_or_the_tests():
    found = [(m, name) for p, m in modules() for name in imports(p, m) if name.split(".")[0] in ("lab", "tests")]
    assert found == []


def test_nothing_in_the_package_imports_pulumi():
    found = [
        (m, name)
        for p, m in modules()
        if m.startswith("ironburst")
        for name in imports(p, m)
        if name.split(".")[0].startswith("pulumi")
    ]
    assert found == []


def test_every_top_level_import_is_declared():
    known = STDLIB | THIRD_PARTY | {"ironburst", "components"}
    found = {(m, name) for p, m in modules() for name in imports(p, m) if name.split(".")[0] not in known}
    assert found == set()
