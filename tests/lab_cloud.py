"""The lab's cloud (moto in process, on loopback), for tests that talk to it with boto3: fixtures for a conftest."""

import pytest

from lab.aws.cloud import Cloud
from lab.aws.iam_gaps import SPOT_SERVICE
from lab.aws.testing import Clients


def allow_spot(iam):
    """What an operator does once in an account before anybody may rent on the spot market."""
    iam.create_service_linked_role(AWSServiceName=SPOT_SERVICE)


@pytest.fixture(scope="module")
def server():
    """One cloud a module: it takes seconds to start."""
    cloud = Cloud(seed=7)
    yield cloud
    cloud.close()


@pytest.fixture(scope="module")
def clients(server):
    return Clients(server.url)


@pytest.fixture
def cloud(server, clients):
    """The module's cloud with nothing in it but the role that an account needs once for the spot market."""
    server.reset()
    allow_spot(clients("iam"))
    return server
