"""A stand-in of the API server, and a kubeconfig for it."""

import pytest

from ironburst.adapters.kubernetes import Access
from ironburst.adapters.kubernetes.client import Client
from tests.fakes.kube_api import KubeApi, kubeconfig_of


@pytest.fixture
def api():
    server = KubeApi()
    yield server
    server.close()


@pytest.fixture
def kubeconfig(api, tmp_path):
    return kubeconfig_of(api, tmp_path / "kubeconfig")


@pytest.fixture
def waited():
    """The pauses that the client made."""
    return []


@pytest.fixture
def client(kubeconfig, waited):
    return Client(Access(kubeconfig), wait=waited.append)
