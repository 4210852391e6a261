"""Declared cabling against what ibnetdiscover and lldpctl print. samples/ibnetdiscover.txt is the real tool's output of
a fabric that ibsim simulated: n1 and n2 are crossed at leaf1, n2 is at another port of leaf2.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ironburst.hall import seen
from ironburst.hall.model import End
from tests.unit.hall.halls import NODE, SWITCH, cable, sound

TEXT = (Path(__file__).parent / "samples/ibnetdiscover.txt").read_text()
KINDS = {"leaf1": "leaf", "leaf2": "leaf", "spine1": "spine"}
DEVICES = [replace(NODE, name=name) for name in ("n1", "n2")]
DEVICES += [replace(SWITCH, name=name, kind=kind) for name, kind in KINDS.items()]
CABLES = [cable(f"n{n}/ib{rail}", f"leaf{rail}/{n}") for n in (1, 2) for rail in (1, 2)]
CABLES += [cable("leaf1/40", "spine1/1"), cable("spine1/2", "leaf2/40")]
HALL = replace(sound(), devices=tuple(DEVICES), cables=tuple(CABLES))


def said(hall, links, network="infiniband", asked=None):
    return [str(finding) for finding in seen.compared(hall, links, network, asked)]


def test_swapped_ports_are_named():
    assert said(HALL, seen.ibnetdiscover(TEXT, HALL)) == [
        "n1/ib1 and n2/ib1 are swapped: it is at leaf1/2, and n2/ib1 at leaf1/1: swap them at leaf1",
        "n2/ib2 is declared at leaf2/2 and is at leaf2/3: move it to leaf2/2, or declare it so",
    ]


def test_a_fabric_as_it_was_declared():
    mended = TEXT.replace("n1 mlx5_0", "x").replace("n2 mlx5_0", "n1 mlx5_0").replace('"x"', '"n2 mlx5_0"')
    as_is = [each if str(each.a) != "n2/ib2" else replace(each, b=End("leaf2", "3")) for each in CABLES]
    hall = replace(HALL, cables=tuple(as_is))
    assert said(hall, seen.ibnetdiscover(mended, hall)) == []
    managed = mended.replace('"leaf1"', '"MF0;leaf1:MQM9700/U1"')
    assert said(hall, seen.ibnetdiscover(managed, hall)) == []


def test_a_link_that_is_down_and_one_that_nobody_declared():
    lost = "\n".join(line for line in TEXT.splitlines() if '"spine1"' not in line or "Switch" in line)
    lost = lost.replace('[1]\t"S-0000000000200000"[40]\t\t# "leaf1" lid 2 4xSDR\n', "")
    assert any(
        "leaf1/40 is declared at spine1/1 and has no link" in each
        for each in said(HALL, seen.ibnetdiscover(lost, HALL))
    )
    fewer = replace(HALL, cables=tuple(CABLES[:-1]))
    (extra,) = [each for each in said(fewer, seen.ibnetdiscover(TEXT, fewer)) if "no cable is declared" in each]
    assert extra.startswith("leaf2/40 has a link to spine1/2")


def test_hcas_are_counted_by_their_numbers():
    text = TEXT.replace("n1 mlx5_3", "n1 mlx5_10").replace("n1 mlx5_0", "n1 mlx5_9")
    assert seen.ibnetdiscover(text, HALL)[End("n1", "ib2")] == End("leaf2", "1")


@pytest.mark.parametrize(
    "text", ["", "ibwarn: [12] mad_rpc_open_port: can't open UMAD port", "# Topology file: generated\n"]
)
def test_what_is_no_fabric_is_said(text):
    with pytest.raises(seen.NotUnderstood, match="no switch and no HCA"):
        seen.ibnetdiscover(text, HALL)


def neighbours(**ports):
    """As `lldpctl -f json` writes it (lldpd 1.0.16): one interface as a mapping, several as a list."""
    mac = {"type": "mac", "value": "0c:42:a1:00:00:01"}
    its = [
        {name: {"via": "LLDP", "chassis": {switch: {"id": mac}}, "port": {"id": {"type": "ifname", "value": port}}}}
        for name, (switch, port) in ports.items()
    ]
    return json.dumps({"lldp": {"interface": its[0] if len(its) == 1 else its}})


def test_lldp_says_who_is_at_an_interface():
    right = seen.lldp("n1", neighbours(eth1=("eth1.example.org", "swp1")))
    assert said(sound(), right, "ethernet", ["n1"]) == []
    links = dict(seen.lldp("n1", neighbours(eth1=("eth1", "Ethernet1/2"), eth2=("other", "swp7"))))
    links |= seen.lldp("n2", neighbours(eth1=("eth1", "swp1")))
    assert said(sound(), links, "ethernet", ["n1", "n2"]) == [
        "n1/eth1 and n2/eth1 are swapped: it is at eth1/2, and n2/eth1 at eth1/1: swap them at eth1"
    ]


def test_a_host_without_neighbours_has_no_link_and_says_nothing_of_others():
    nobody = seen.lldp("n1", '{"lldp": {}}')
    (found,) = said(sound(), nobody, "ethernet", ["n1"])
    assert found.startswith("n1/eth1 is declared at eth1/1 and has no link")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"lldp": 3}', "<lldp/>"])
def test_what_is_no_lldpctl_is_said(text):
    with pytest.raises(seen.NotUnderstood, match="lldpctl"):
        seen.lldp("n1", text)


# Four hosts, eight rails, two spines (ibsim 0.10, ibnetdiscover 44.0). Crossed: dgx02's and dgx03's mlx5_3, two rails
# of dgx01; and dgx04's mlx5_7 isn't plugged in, so that it isn't in the fabric at all
HOSTS = [f"dgx0{n}" for n in range(1, 5)]
RAILS = replace(
    sound(),
    devices=(
        *(replace(NODE, name=host, hcas=8) for host in HOSTS),
        *(replace(SWITCH, name=f"leaf{n}", kind="leaf") for n in range(1, 9)),
        *(replace(SWITCH, name=f"spine{n}", kind="spine") for n in (1, 2)),
    ),
    cables=(
        *(
            cable(f"{host}/ib{rail}", f"leaf{rail}/{port}")
            for port, host in enumerate(HOSTS, 1)
            for rail in range(1, 9)
        ),
        *(cable(f"leaf{leaf}/{4 + spine}", f"spine{spine}/{leaf}") for leaf in range(1, 9) for spine in (1, 2)),
    ),
)


def sample(name):
    return (Path(__file__).parent / "samples" / name).read_text()


def test_a_whole_fabric():
    assert said(RAILS, seen.ibnetdiscover(sample("rails.txt"), RAILS)) == []
    found = said(RAILS, seen.ibnetdiscover(sample("rails-crossed.txt"), RAILS))
    assert [each.split(" is declared")[0].split(":")[0] for each in found] == [
        "dgx01/ib6 and dgx01/ib7 are swapped",
        "dgx02/ib4 and dgx03/ib4 are swapped",
        "dgx04/ib8",
    ]


def test_an_hca_that_is_not_seen_shifts_no_other():
    text = sample("rails-crossed.txt").replace("dgx04 mlx5_6", "dgx04 mlx5_11")
    with pytest.raises(seen.NotUnderstood, match=r"dgx04 has mlx5_11 in the fabric, and 8 HCAs are declared.*--hcas"):
        seen.ibnetdiscover(text, RAILS)
    names = [*(f"mlx5_{n}" for n in range(8))]
    links = seen.ibnetdiscover(text.replace("mlx5_11", "mlx5_6"), RAILS, names)
    assert links[End("dgx04", "ib7")] == End("leaf7", "4")
    assert End("dgx04", "ib8") not in links


def test_neighbours_as_the_real_lldpd_tells_them():
    two = {End("dgx01", "eth0"): End("eth-leaf1", "1"), End("dgx01", "eth1"): End("eth-leaf1", "9")}
    assert seen.lldp("dgx01", sample("lldp-dgx01.json")) == two | {there: here for here, there in two.items()}
    assert seen.lldp("dgx01", sample("lldp-one.json"))[End("dgx01", "eth0")] == End("eth-leaf1", "1")
    assert seen.lldp("dgx01", sample("lldp-none.json")) == {}
    as_mac = (
        sample("lldp-one.json")
        .replace('"type": "ifname"', '"type": "mac"')
        .replace('"value": "swp1"', '"value": "6e:d4:0e:e5:f6:51"')
    )
    assert seen.lldp("dgx01", as_mac)[End("dgx01", "eth0")] == End("eth-leaf1", "1")
