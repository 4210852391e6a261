"""A stand-in of the API server, and a kubeconfig for it."""

import pytest
import yaml

from ironburst.adapters.kubernetes import Access
from ironburst.adapters.kubernetes.client import Client
from tests.fakes.kube_api import KubeApi


@pytest.fixture
def api():
    server = KubeApi()
    yield server
    server.close()


def kubeconfig_of(api, path, token="secret", **user):
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "lab",
        "clusters": [{"name": "lab", "cluster": {"server": api.url}}],
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "me"}}],
        "users": [{"name": "me", "user": user or {"token": token}}],
    }
    path.write_text(yaml.safe_dump(content))
    return path


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
