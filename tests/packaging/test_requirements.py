"""What pyproject.toml declares, beside what tests/test_layers.py lets each room of the wheel import."""

import importlib.metadata
import json
import subprocess
import tomllib
import venv
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests import wheels
from tests.test_layers import FILES, MAY, within

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = {extra: list(map(Requirement, given)) for extra, given in PROJECT["optional-dependencies"].items()}
DEPENDENCIES = list(map(Requirement, PROJECT["dependencies"]))
# Modules that run in a checkout alone, as their verbs say: what they import is in requirements/runtime.in
IN_A_CHECKOUT = {"ansible_runner"}


def names(requirements):
    return {canonicalize_name(each.name) for each in requirements}


def distributions():
    """{what is imported: who brings it}, of the rooms that are in the wheel."""
    rights = set().union(*(may for room, may in MAY.items() if within(room, "ironburst")))
    foreign = {right.split(".")[0] for right in rights} - {"ironburst"} - IN_A_CHECKOUT
    brought = importlib.metadata.packages_distributions()
    return {name: set(map(canonicalize_name, brought[name])) for name in foreign}


def test_what_the_wheel_imports_is_declared_and_the_other_way_round():
    declared = names(DEPENDENCIES).union(*map(names, EXTRAS.values()))
    assert {name for name, by in distributions().items() if not by & declared} == set()
    assert declared - set().union(*distributions().values()) == set(), "no module of the wheel imports these"


ASKED_BY = {
    "azure": ["ironburst.system.azure", "ironburst.wiring.azure"],
    "dask": ["ironburst.cli.workers"],
    "google": ["ironburst.system.google", "ironburst.wiring.google"],
    "kubernetes": ["ironburst.wiring.schedulers"],
    "monitoring": ["ironburst.cli.monitoring"],
    "postgresql": ["ironburst.controller.postgresql"],
}


@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_is_no_dependency_and_its_room_asks_for_it(extra):
    assert names(EXTRAS[extra]) & names(DEPENDENCIES) == set()
    said = [module for module, path in FILES.items() if f"pip install 'ironburst[{extra}]'" in path.read_text()]
    assert sorted(module for module in said if within(module, "ironburst")) == ASKED_BY[extra]


def requirements(name):
    lines = (line.partition("#")[0].strip() for line in (ROOT / "requirements" / name).read_text().splitlines())
    return [Requirement(line) for line in lines if line and not line.startswith("-")]


def pins(name):
    lines = (ROOT / "requirements" / name).read_text().splitlines()
    split = (line.rstrip(" \\").split("==") for line in lines if "==" in line and not line.startswith((" ", "#")))
    return {canonicalize_name(name.partition("[")[0]): version.split(" ")[0] for name, version in split}


def test_one_place_says_a_version():
    """pyproject.toml what the wheel needs, requirements/*.in what a checkout needs beside."""
    given = [requirements("runtime.in"), requirements("dev.in"), DEPENDENCIES, *EXTRAS.values()]
    every = [name for each in given for name in names(each)]
    assert sorted({name for name in every if every.count(name) > 1}) == []


@pytest.mark.parametrize("lock", ["runtime.txt", "dev.txt"])
def test_a_lock_has_what_is_declared(lock):
    declared = [*DEPENDENCIES, *(each for extra in EXTRAS.values() for each in extra), *requirements("runtime.in")]
    declared += requirements("dev.in") if lock == "dev.txt" else []
    locked = pins(lock)
    assert [str(each) for each in declared if locked.get(canonicalize_name(each.name), "") not in each.specifier] == []


def test_the_lock_of_the_tests_has_the_product_s_versions():
    assert pins("runtime.txt").items() <= pins("dev.txt").items()


@pytest.mark.slow
@pytest.mark.parametrize("extras", [[], *([extra] for extra in EXTRAS)], ids=lambda extras: "+".join(extras) or "alone")
def test_pip_installs_what_the_fast_environments_have(wheel, tmp_path, extras):
    """From the machine's package index: the environments of tests/wheels.py are those that pip makes."""
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    given = f"{wheel}[{','.join(extras)}]" if extras else str(wheel)
    subprocess.run([python, "-m", "pip", "install", "--quiet", given], check=True, timeout=600)
    listed = subprocess.run([python, "-m", "pip", "list", "--format=json"], check=True, capture_output=True, text=True)
    installed = {canonicalize_name(each["name"]) for each in json.loads(listed.stdout)} - {
        "pip",
        "setuptools",
        "ironburst",
    }
    (metadata,) = importlib.metadata.distributions(
        name="ironburst", path=[str(next((tmp_path / "venv").glob("lib/*/site-packages")))]
    )
    assert installed == set(wheels.needs(metadata.requires, extras)) - {"setuptools"}
    done = subprocess.run(
        [tmp_path / "venv" / "bin" / "ironburst", "--help"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
