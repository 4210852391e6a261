"""How `make test` shares the tests out among pytest-xdist's workers: those of a file go to one, in their order; those
of tests/lab all to one, for they share a converged lab, and first, for they take longest.
"""

from pathlib import Path

import pytest

LAB = Path(__file__).parent / "lab"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: LAB not in item.path.parents)


@pytest.hookimpl(optionalhook=True)  # without xdist nobody asks
def pytest_xdist_make_scheduler(config, log):
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "tests/lab" if nodeid.startswith("tests/lab/") else nodeid.partition("::")[0]

    return ByFile(config, log)
