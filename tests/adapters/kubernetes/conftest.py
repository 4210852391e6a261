"""A stand-in of the API server, a kubeconfig for it, and a site whose queue it is."""

import pytest

from ironburst.adapters.kubernetes import Access, scheduler
from ironburst.adapters.kubernetes.client import Client
from tests.fakes.kube_api import KubeApi, kubeconfig_of
from tests.fakes.kube_world import KubeWorld


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


@pytest.fixture
def world(api, client, tmp_path, monkeypatch):
    """Money is no matter, and what is rented is on demand."""
    monkeypatch.setattr(scheduler, "_SETTLE_S", 0.0)
    it = KubeWorld(tmp_path, api, client, usd_per_month=1e6, boot_s=600, idle_s=60, tick_s=30, markets=["on-demand"])
    yield it
    it.kube.close()
