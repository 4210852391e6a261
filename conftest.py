"""For the product's tests and the lab's: what keeps them cheap, and how `make test` shares them out among workers of
pytest-xdist. It changes nothing that a test sees.
"""

import gc
import gettext
import os
import sys
from functools import cache

import pytest
from botocore import client, session

pytest_plugins = ["tests.slices"]
# What takes longest starts first, or one worker would end with it alone
LONGEST = ("tests/lab/", "tests/faults/live/", "tests/unit/test_controller.py")

# Each session of botocore's reads its models from disk, 0.2 s of CPU for EC2's: here all share one reader
session.create_loader = cache(session.create_loader)
# Each client makes the methods of its service, 700 of EC2's in 30 ms: here once
_made, _methods = client.ClientCreator._create_methods, {}


def _create_methods(self, model):
    if model.service_name not in _methods:
        _methods[model.service_name] = _made(self, model)
    return dict(_methods[model.service_name])


client.ClientCreator._create_methods = _create_methods
# argparse asks for a translation of each text, and each time four files are looked for: a tenth of the CLI's run
gettext.find = cache(gettext.find)
# What shares a lab, by the beginnings of its names; live faults have three, for they wait more than they work
TOGETHER = (
    ("tests/lab/",),
    ("tests/faults/live/test_cloud",),
    ("tests/faults/live/test_controller",),
    ("tests/faults/live/",),
)
# A quarter of an hour in a file, of tests that don't need each other
APART = "tests/faults/test_"

# Else each program that a test starts compiles the package anew, and pytest rewrites each test's assertions
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# As the CLI's main has it: a third of the collection of 17,000 tests was a search for garbage
gc.set_threshold(100_000, 20, 50)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those of LONGEST come first, in its order."""

    def rank(item: pytest.Item) -> int:
        return next((n for n, start in enumerate(LONGEST) if item.nodeid.startswith(start)), len(LONGEST))

    items.sort(key=rank)


@pytest.hookimpl(optionalhook=True)  # without xdist nobody asks
def pytest_xdist_auto_num_workers() -> int:
    """One more than cores: labs and servers wait for a third of their time."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """A file's tests go to one worker, in their order; those of a row of TOGETHER all to one, those of APART to any."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            shared = (names[0] for names in TOGETHER if nodeid.startswith(names))
            return next(shared, nodeid if nodeid.startswith(APART) else nodeid.partition("::")[0])

    return ByFile(config, log)
