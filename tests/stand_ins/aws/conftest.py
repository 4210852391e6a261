"""What the tests of the stand-in for AWS share; each module has its own `server`."""

import pytest

from lab.aws.testing import Clients


@pytest.fixture(scope="module")
def clients(server):
    return Clients(server.url)
