"""Which nodes are taken out next: those of every scheduler that converges."""

import pytest

from ironburst.convergence import rolling
from ironburst.ports.service import Occupancy
from tests.unit.convergence.test_flow import NODES, site_document


@pytest.mark.parametrize("role", sorted(rolling.NODE_ROLES))
def test_nodes_of_each_scheduler_are_taken_by_share_and_never_the_last_one(role):
    hosts = [
        host.model_copy(update={"roles": ["base", role]}) if host.name in NODES else host
        for host in site_document().hosts
    ]
    nodes = {name: Occupancy(name, ("home",), frozenset({"IDLE"}), registered=True) for name in NODES}
    assert rolling.batch(NODES, hosts, nodes, rolling.MaxUnavailable(2)) == ["n1", "n2"]
    assert rolling.batch(NODES, hosts, nodes, rolling.MaxUnavailable(9)) == ["n1", "n2", "n3"]
