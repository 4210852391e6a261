"""What the tests of the AWS adapters share: the lab's cloud."""

from tests.lab_cloud import clients, cloud, server

__all__ = ["clients", "cloud", "server"]
