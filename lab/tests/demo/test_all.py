"""The demo in three clouds: what would collide in one box."""

import pytest

from ironburst.config.load import load
from lab.demo import all as together
from lab.demo.cloud import room_of
from lab.system import CHECKOUT

ROOMS = together.ALL.rooms


@pytest.fixture(scope="module")
def clouds():
    config = load(CHECKOUT / f"stacks/Pulumi.{together.ALL.stack}.yaml")
    return [config.cloud, *config.other_clouds]


def test_each_has_ports_of_its_own():
    for ports in ({room.control_port for room in ROOMS}, {room.metadata_port for room in ROOMS}):
        assert len(ports) == len(ROOMS)


def test_a_machine_asks_the_metadata_service_of_its_own_cloud(clouds):
    for cloud in clouds:
        (pool,) = cloud.pools
        port = together.NETWORKS.get(str(cloud.network.cidr), 80)
        assert room_of(together.ALL, pool.instance_type).metadata_port == port


def test_a_room_sells_in_the_zones_of_its_pool(clouds):
    for cloud in clouds:
        (pool,) = cloud.pools
        sold = room_of(together.ALL, pool.instance_type).capacity
        assert {zone for zone, _ in sold} == set(pool.zones) and {market for _, market in sold} == set(pool.markets)
