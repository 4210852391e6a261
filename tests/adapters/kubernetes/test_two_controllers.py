"""Two pods of the controller with one ledger in PostgreSQL: the lock says which of them acts, and the Lease, whose
holder is the ledger, keeps every other ledger out.
"""

import pytest

from ironburst.adapters.kubernetes import Access, Kubernetes, scheduler
from ironburst.adapters.kubernetes.client import Client
from ironburst.controller.ledger import Ledger
from ironburst.controller.lock import LockedError, Lost
from ironburst.controller.ownership import STALE_S, OwnedElsewhere
from ironburst.controller.tick import Controller
from tests import postgresql
from tests.fakes.kube_world import SITE, KubeWorld, fill_home


@pytest.fixture
def shared(api, client, tmp_path, monkeypatch):
    """A site whose ledger is in PostgreSQL; its gang runs on rented nodes."""
    monkeypatch.setattr(scheduler, "_SETTLE_S", 0.0)
    it = KubeWorld(tmp_path, api, client, ledger=postgresql.ledger_file(tmp_path / "ledger"))
    fill_home(it)
    it.submit("train", 2)
    it.until(lambda: "train" in it.started)
    yield it
    it.kube.close()


def lease(world):
    """(its holder, when it was renewed)"""
    (raw,) = world.of("coordination.k8s.io/v1 leases")
    return raw["spec"]["holderIdentity"], raw["spec"]["renewTime"]


def test_the_second_pod_goes_on_with_the_first_ones_lease_which_may_do_nothing_more(shared, kubeconfig):
    world, first, held = shared, shared.controller, lease(shared)
    with pytest.raises(LockedError, match="another controller holds the ledger"):
        Ledger(world.path)
    session = world.ledger._db._session.info.backend_pid
    postgresql.query(f"SELECT pg_terminate_backend({session})")  # as the server ends that of a host that is gone
    first_kube, world.kube = world.kube, Kubernetes(Client(Access(kubeconfig)), SITE, first_s=10.0, deliver=str)
    world.start()
    world.clock.at += 5
    at = world.clock.now()
    world.tick()
    assert world.clock.now() - at < STALE_S and lease(world)[0] == held[0] and lease(world) != held
    assert not [text for text in world.events("owner") if "took the site over" in text], "both are one owner"
    renewed = lease(world)
    world.clock.at += 5
    with pytest.raises(Lost):
        first.tick(world.document)
    assert lease(world) == renewed
    first_kube.close()
    world.until(lambda: world.done("train"))
    world.until(world.nothing_left)
    assert len(world.started["train"]) == 1 and [request.count for request in world.cloud.requests] == [2]


def test_a_ledger_of_its_own_is_kept_out_by_the_lease(shared, tmp_path):
    with pytest.raises(OwnedElsewhere):
        Controller(shared.kube, shared.cloud, Ledger(tmp_path / "own.sqlite"), shared.clock).tick(shared.document)
    shared.tick()
