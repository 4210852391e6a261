"""Ports by their numbers, as makers of switches name them."""

import pytest

from ironburst.hall import cabling, netbox, switch_ports
from ironburst.hall.model import End
from tests.unit.hall.halls import cable, more_cables, sound

NAMES = {
    "7": ("7", "swp7", "Ethernet1/7", "Eth1/7", "ethernet1/1/7", "et-0/0/7", "ethernet-1/7", "400GE1/0/7", "1/1/7"),
    "7/0": ("swp7s0", "et-0/0/7:0"),
    "7/1": ("swp7s1", "Ethernet1/7/1", "Ethernet3/7/1", "Eth1/7/1", "ethernet1/1/7:1", "ethernet-1/7/1", "1/1/7:1"),
    "7/2": ("etp7b", "ethernet7b", "400GE1/0/7:2"),
}


@pytest.mark.parametrize(("number", "name"), [(number, name) for number, names in NAMES.items() for name in names])
def test_a_port_has_its_number_and_its_part(number, name):
    assert switch_ports.number(name) == number


def test_what_only_the_maker_tells_apart():
    assert switch_ports.number("Ethernet7/1", "Arista Networks EOS version 4.32") == "7/1"
    assert switch_ports.number("Ethernet7/1", "Cisco NX-OS") == "1"
    assert switch_ports.number("Ethernet56", "SONiC Software Version: 202311") == "Ethernet56"


@pytest.mark.parametrize("name", ["to dgx01 rail 3", "6e:d4:0e:e5:f6:51", "0c42a1000001", "Eth1/1/1/2", ""])
def test_a_name_that_tells_no_number_stays(name):
    assert switch_ports.number(name) == name


@pytest.mark.parametrize("port", ["7/1", "7s1", "7:1", "swp7s1", "Ethernet1/7/1"])
def test_a_person_may_write_it_as_he_likes(port):
    assert switch_ports.declared(port) == "7/1"


def with_parts(*ports):
    cables = [cable("n1/eth9", "x/1", speed="400GbE") for _ in ports]
    its = [type(each)(each.a, End("eth1", port), "dac", "400GbE", 2) for each, port in zip(cables, ports, strict=True)]
    return more_cables(sound(), *its)


def test_parts_are_ports_of_their_own_and_not_beside_the_whole():
    def said(hall):
        return [str(each) for each in cabling.ports(hall) if str(each).startswith("eth1/")]

    assert said(with_parts("9/0", "9/1")) == []
    assert "eth1/9/0 has the cable to" in said(with_parts("9/0", "9/0"))[0]
    assert "is a part of eth1/1, which has a cable as a whole" in said(with_parts("1/0"))[0]
    assert "is no port" in said(with_parts("65/1"))[0]
    ports = [row[1] for row in netbox._interfaces(with_parts("9/0", "9/1")) if row[0] == "eth1"]
    assert "9/1" in ports and "9" not in ports and "10" in ports
