"""How a cloud network is divided."""

import ipaddress

import pytest

from ironburst.config.aws import subnets


@pytest.mark.parametrize("zones", range(1, 7))
@pytest.mark.parametrize("prefix", [16, 20, 22])
def test_subnets_lie_inside_and_never_overlap(zones, prefix):
    cidr = f"10.0.0.0/{prefix}"
    divided = subnets.divide(cidr, [f"z{n}" for n in range(zones)])
    nets = [ipaddress.IPv4Network(n) for zone in divided.values() for n in (zone.public, zone.private)]
    assert len(nets) == 2 * zones
    assert all(net.subnet_of(ipaddress.IPv4Network(cidr)) for net in nets)
    assert not any(a.overlaps(b) for i, a in enumerate(nets) for b in nets[:i])


def test_adding_a_zone_within_the_power_of_two_moves_nothing():
    two, three = (subnets.divide("10.0.0.0/16", list(zones)) for zones in ("ab", "abc"))
    assert {zone: three[zone] for zone in two} == two


def test_a_network_that_is_too_small():
    with pytest.raises(ValueError, match="too small"):
        subnets.divide("10.0.0.0/28", ["a", "b"])
