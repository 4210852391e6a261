"""What the lab installs of the controller on its head."""

import tomllib

from lab.demo import service
from lab.packages import repository
from lab.system import CHECKOUT

DEBIANS = {"pyyaml": "yaml"}


def test_the_head_has_what_the_package_needs():
    """The head has no index of Python packages: a requirement that isn't named here ends `make demo`."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    names = {line.partition(">")[0].strip() for line in project["dependencies"]}
    assert {f"python3-{DEBIANS.get(name, name)}" for name in names} == set(service.NEEDS)


def test_the_labs_repository_has_all_of_it():
    assert set(service.NEEDS) - set(repository.PACKAGES) == set()
