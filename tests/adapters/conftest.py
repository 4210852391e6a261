"""What the tests of the lab's cloud share; each module has its own `server`."""

import pytest

from lab.aws.testing import Clients


@pytest.fixture(scope="module")
def clients(server):
    return Clients(server.url)
