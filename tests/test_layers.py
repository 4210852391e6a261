"""Who may import whom: the design's dependency direction, held against the imports of every module.

A right that nobody uses is no right: it fails here, too.
"""

import ast
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
STDLIB = set(sys.stdlib_module_names)

# layer: what its modules may import beside the standard library and themselves. The longest name that fits
# a module counts; :burst is ironburst.burst
RIGHTS = {
    # pure: no clock, no I/O
    "ironburst.nodes": "",
    "ironburst.burst": "numpy :nodes",
    "ironburst.replay": "numpy :burst :nodes :system",
    "ironburst.software": "",
    "ironburst.hall": "",
    "ironburst.health": "",  # runs on the nodes, too
    "ironburst.kubernetes_rights": "",
    "ironburst.shares": ":burst",
    "ironburst.ports": ":burst :nodes :shares",
    # what a person writes, what the world offers, and the document of both
    "ironburst.catalog": "yaml :system.near",
    "ironburst.config": "pydantic yaml :catalog :hall :nodes :software :system",
    "ironburst.plan": ":config :software :system",  # pure
    "ironburst.document": "pydantic :catalog :config :nodes :software :system",
    "ironburst.doctor": ":catalog :config :document :nodes :ports :slurm_programs :software",  # pure
    # tools of this machine
    "ironburst.system": "rich",
    "ironburst.system.secrets": ":system.aws :system.azure :system.google :system.secret_store",
    "ironburst.system.google": "google google_auth_httplib2 googleapiclient httplib2 :system.secret_store",
    "ironburst.system.aws": "boto3 botocore :system.secret_store",
    "ironburst.system.azure": "azure requests :system.secret_store",
    "ironburst.slurm_programs": ":document :nodes",
    # what acts
    "ironburst.baremetal": "pydantic :catalog :config :software :system",
    "ironburst.controller": "psycopg :burst :document :health.shared :nodes :ports :replay :shares :system",
    "ironburst.page": "jinja2 markupsafe starlette :burst :controller.records :nodes :replay.pictures",
    "ironburst.page.source": ":burst :catalog :controller :document :page :ports :system",
    "ironburst.cost": ":burst :catalog :controller :document :nodes :replay :system",
    "ironburst.convergence": "yaml :document :nodes :ports.service :system",
    "ironburst.fabric": ":convergence :document :health :ports.service :system",
    "ironburst.monitoring": "grafana_foundation_sdk yaml :document :nodes",
    "ironburst.roles": "yaml",
    "ironburst.baking": ":catalog :document :ports :system",
    "ironburst.adapters": ":baremetal :convergence.ports :cost :doctor :kubernetes_rights :nodes :ports :replay "
    ":shares :software :system ansible_runner azure boto3 botocore cryptography google google_auth_httplib2 "
    "googleapiclient httplib2 kubernetes requests sushy urllib3 yaml",
    # which cloud; its SDK is loaded when a row is called
    "ironburst.wiring": ":adapters :baremetal :catalog :config :convergence :doctor :document :nodes "
    ":ports :software :system",
    "ironburst.initial": ":adapters.slurm.site :catalog :config :nodes :software :system",
    "ironburst.cli": "argcomplete distributed ironburst rich uvicorn yaml",
    # the declaration
    "__main__": "pulumi components :config",
    "components": "kubernetes pulumi pulumi_aws pulumi_azure_native pulumi_gcp pulumi_kubernetes yaml :baremetal "
    ":catalog :config :document :kubernetes_rights :nodes :software :system",
    "providers.baremetal": "grpc pulumi :adapters.redfish :baremetal :catalog :system",
    # Ansible's side; what runs on a node has the standard library, and what its role installs
    "playbooks.plugins": "ansible",
    "playbooks.plugins.action": "ansible :convergence :document :ports.service :roles :wiring",
    "playbooks.plugins.filter": "ansible :document :monitoring :nodes :shares :software",
    "playbooks.plugins.inventory": "ansible :document",
    "playbooks.plugins.lookup": "ansible :document :monitoring :system",
    "playbooks.files": "",
    "playbooks.files.kept_module": "ansible",  # module_utils, of which it finds a copy on the host
    "playbooks.roles": "",
    "playbooks.roles.data_sets": "boto3 botocore ironburst_bucket",  # the file beside it
    "playbooks.roles.node_health": "health",  # ironburst/health, copied beside it
    "playbooks.roles.cloud_node": "boto3 botocore ironburst_cloud",  # the file beside it
    # a site on one machine, room by room. The stand-ins know nothing of its hosts; their mains join them
    "lab.system": "",
    "lab.names": "",
    "lab.timeline": "",
    "lab.machines": "",
    "lab.served": "lab.timeline",
    "lab.switchboard": "lab.served",
    "lab.go": "lab.system",
    "lab.pulumi": "grpc lab.go lab.hosts lab.system pulumi",
    "lab.logs": "lab.go lab.hosts lab.system",
    "lab.aws": "boto3 botocore cryptography jmespath moto pydantic werkzeug lab.served",
    "lab.azure": "azure lab.machines lab.served lab.switchboard lab.timeline",
    "lab.azure.__main__": "lab.hosts",
    "lab.google": "googleapiclient lab.machines lab.served lab.switchboard lab.timeline",
    "lab.google.__main__": "lab.hosts",
    "lab.ci": "yaml lab.served",
    "lab.aws.__main__": "lab.hosts",
    "lab.aws_plugin": "boto3 botocore google pulumi pulumi_aws lab.provider",
    "lab.azure_plugin": "pulumi_azure_native lab.azure lab.provider",
    "lab.google_plugin": "pulumi_gcp lab.google lab.provider",
    "lab.bmc": "",
    "lab.bmc.__main__": "lab.bmc.alone lab.hosts",
    "lab.hosts": "lab.aws lab.bmc lab.machines lab.names lab.system",
    "lab.hosts.azure_machines": ":catalog :config lab.azure lab.hosts lab.names",
    "lab.hosts.google_instances": ":catalog lab.google lab.hosts lab.names",
    "lab.kubernetes": "cryptography requests yaml lab.aws lab.go lab.hosts lab.names lab.system",
    "lab.provider": "google grpc pulumi",
    "lab.kubernetes_plugin": "google pulumi pulumi_kubernetes requests yaml lab.provider",
    "lab.packages": "yaml lab.hosts lab.names lab.system",
    "lab.packages.schedmd": ":adapters lab.hosts lab.names lab.packages lab.system",
    "lab.packages.schedmd_rpms": ":adapters lab.hosts lab.names lab.packages lab.system",
    "lab.hall": ":document lab.names lab.system",
    "lab.site": "lab.hosts lab.names lab.packages lab.system",
    "lab.demo": ":adapters :controller :document :nodes :ports lab.google lab.hosts lab.names lab.packages lab.pulumi "
    "lab.site lab.system",
    "lab.demo.kubernetes": ":adapters :controller :document :nodes requests lab.demo lab.hosts lab.kubernetes "
    "lab.names lab.pulumi lab.system",
    "lab.play": ":controller :document :nodes lab.bmc lab.demo lab.hosts lab.names lab.site lab.system",
    "lab.__main__": "lab.demo lab.hosts lab.kubernetes lab.play lab.site lab.system",
    "ci": "",  # on a bare runner
    "ci.sign_in": "yaml",  # after `make setup`
    # what reads the whole product
    "benchmarks": "components.azure highspy ironburst lab numpy providers.baremetal pulumi tests.fakes tests.faults "
    "tests.prometheus yaml",
    "docs": ":cli :config :roles mkdocs yaml",
}
MAY = {layer: {right.replace(":", "ironburst.") for right in rights.split()} for layer, rights in RIGHTS.items()}


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


TOPS = ("ironburst", "components", "providers", "playbooks", "ci", "lab", "benchmarks", "docs", "tests")
FILES = {module_of(path): path for top in TOPS for path in sorted((ROOT / top).rglob("*.py"))}
FILES["__main__"] = ROOT / "__main__.py"
PRODUCT = {module: path for module, path in FILES.items() if not module.startswith(("tests.", "lab.tests."))}


@cache
def imports(module: str) -> tuple[str, ...]:
    """The modules that a module imports, at its top or later; `from package import name` is the module `package.name`
    where there is such a file.
    """
    return tuple(_imports(module))


def _imports(module: str) -> Iterator[str]:
    path = FILES[module]
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                yield name if (name := f"{base}.{alias.name}") in FILES else base


def within(name: str, layer: str) -> bool:
    return name == layer or name.startswith(layer + ".")


def layer_of(module: str) -> str | None:
    return max((layer for layer in MAY if within(module, layer)), key=len, default=None)


def foreign(module: str, layer: str) -> set[str]:
    """What a module imports from outside its layer and the standard library."""
    names = {name for name in imports(module) if name.split(".")[0] not in STDLIB or name == "__main__"}
    return {name for name in names if layer_of(name) != layer}


@pytest.mark.parametrize("module", PRODUCT)
def test_imports_point_the_right_way(module):
    layer = layer_of(module)
    if module in ("ironburst", "lab"):
        assert imports(module) == ()
        return
    assert layer, f"{module} belongs to no layer of test_layers.py: name the layer and what it may import"
    wrong = [name for name in foreign(module, layer) if not any(within(name, right) for right in MAY[layer])]
    assert wrong == [], f"{module} ({layer}) may not import these"


@pytest.mark.parametrize("layer", MAY)
def test_every_right_is_used(layer):
    modules = [module for module in PRODUCT if layer_of(module) == layer]
    assert modules, f"there is no layer {layer}"
    names = set().union(*(foreign(module, layer) for module in modules))
    unused = {right for right in MAY[layer] if not any(within(name, right) for name in names)}
    assert unused == set(), f"no module of {layer} imports these"


def test_the_product_never_imports_the_lab_or_the_tests():
    free = {module: path for module, path in PRODUCT.items() if not module.startswith(("lab", "benchmarks"))}
    wrong = [(module, name) for module in free for name in imports(module) if name.split(".")[0] in ("lab", "tests")]
    assert wrong == []


def circles(graph: Mapping[str, set[str]]) -> set[str]:
    """Of {module: what it imports} the modules in a circle of imports, or that import one that is."""
    left = {module: names & set(graph) - {module} for module, names in graph.items()}
    while free := {module for module, names in left.items() if not names}:
        left = {module: names - free for module, names in left.items() if module not in free}
    return set(left)


def test_a_circle_is_seen():
    assert circles({"a": {"b", "json"}, "b": {"c"}, "c": {"b"}, "d": {"json", "d"}}) == {"a", "b", "c"}


def test_no_modules_import_each_other():
    assert circles({module: set(imports(module)) for module in FILES}) == set()
