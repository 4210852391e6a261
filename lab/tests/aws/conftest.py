"""What the tests of the stand-in for AWS share."""

import pytest

from tests.lab_cloud import clients, cloud, server

__all__ = ["clients", "cloud", "ec2", "server"]


@pytest.fixture
def ec2(cloud, clients):
    return clients("ec2")
