"""One lab with three converged hosts, for all tests that need no host of their own."""

import os

import pytest

from ironburst.config import load
from lab import names
from lab.demo.inside import Inside
from tests import sites
from tests.playbooks import sample
from tests.sites import NAMES, converge


@pytest.fixture(scope="session")
def site():
    with sites.running(f"t-conv-{os.getpid()}", *NAMES) as site:
        yield site


@pytest.fixture(scope="session")
def inside(site):
    inside = Inside(site)
    # nobody listens there until a test does (test_first_jobs.py)
    mail = {"relay": f"{names.ADDRESSES['dgx01']}:2525", "sender": "slurm@example.org"}
    scheduler = load.read_value(sample.LAB_STACK)["scheduler"] | {"mail": mail, "kill_wait": "90s"}
    declare = {"scheduler": scheduler}
    sample.publish(inside.document, munge_key=sites.munge_key(site), names=NAMES, declare=declare)
    return inside


@pytest.fixture(scope="session")
def converged(inside):
    """The hosts after the first run, and its receipt."""
    return converge(inside)
