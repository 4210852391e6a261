"""What the role node_health makes of a host: /etc/ironburst/gate.json as the gate reads it."""

import json

import pytest
from templated import value

from ironburst import catalog
from ironburst.health.settings import settings_from

KNOWN = {
    "node_software": {"driver": "580.95.05", "fabric_manager": None},
    "cluster_scheduler": {"shared_filesystem": "/shared"},
    "node_fabric": "none",
    "node_fabric_links": 0,
    "group_names": ["node_health"],
}


def settings(gpu, **changes):
    known = {**KNOWN, "node_gpu": {"model": "L40S", "count": 1, **gpu}}
    return settings_from(json.loads(json.dumps(value("node_health", "node_health_expected", known, changes))), ())


@pytest.mark.parametrize(
    ("gpu", "lanes"), [({"pcie_width": 8}, 8), ({"pcie_width": 0}, 0), ({"pcie_width": None}, None), ({}, None)]
)
def test_lanes_are_those_of_the_document(gpu, lanes):
    assert settings(gpu).pcie_width == lanes
    assert settings(gpu, node_health_pcie_width=4).pcie_width == 4


def test_ec2_types_say_their_lanes_where_they_were_seen():
    kinds = catalog.instance_types()
    assert {kind.family for kind in kinds.values() if kind.pcie_lanes} == {"g4dn", "g5", "g6e"}
    assert kinds["g6e.2xlarge"].pcie_lanes == 8 and kinds["p5.48xlarge"].pcie_lanes is None


def test_mig_is_declared_where_the_document_has_a_layout():
    assert settings({}, node_mig=[{"gpus": [0], "profiles": {"1g.12gb": 4}}]).mig is True
    assert settings({}, node_mig=None).mig is settings({}).mig is False
