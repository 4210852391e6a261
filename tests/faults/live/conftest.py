"""One lab for all of them: a site that is declared, converged, and whose controller runs."""

import os

import pytest

from lab.demo import kept
from lab.site import Site
from tests.faults.live.live import Live, build
from tests.sites import need_lab


@pytest.fixture(scope="session")
def site():
    """LAB_PREFIX may name a lab that was kept (`make demo KEEP=1`): then it is used, and stays."""
    need_lab()
    given = Site(os.environ.get("LAB_PREFIX") or "lab")
    if kept.is_kept(given.box):
        yield given
        return
    site = Site(f"t-faults-{os.getpid()}")
    try:
        build(site, tied=True)
        yield site
    finally:
        site.down()


@pytest.fixture(scope="session")
def whole(site):
    live = Live(site)
    live.prepare()
    return live


@pytest.fixture
def live(whole):
    """The site as it was before the first of them."""
    whole.begin()
    yield whole
    whole.forward(True)
