"""Declared cables against what the real ibnetdiscover 44.0 (on ibsim 0.10: 4 hosts, 8 leaves, 2 spines) and the real
lldpd 1.0.16 printed. In the crossed fabric dgx02's and dgx03's mlx5_3 and two rails of dgx01 are swapped, and dgx04's
mlx5_7 isn't plugged in.
"""

from pathlib import Path

import pytest

from ironburst.hall.model import Cable, Device, End, Hall
from ironburst.hall.seen_cables import Difference, Link, Unreadable, as_declared, compare, declared, ibnetdiscover, lldp

SEEN = Path(__file__).parent / "seen"
HOSTS = ("dgx01", "dgx02", "dgx03", "dgx04")
PLAN: list[Link] = [
    *(
        (End(host, f"mlx5_{rail}"), End(f"leaf{rail + 1}", str(port)))
        for port, host in enumerate(HOSTS, 1)
        for rail in range(8)
    ),
    *(
        (End(f"leaf{leaf}", str(4 + spine)), End(f"spine{spine}", str(leaf)))
        for leaf in range(1, 9)
        for spine in (1, 2)
    ),
]


def said(name: str) -> str:
    return (SEEN / name).read_text()


def kinds(differences: list[Difference]) -> list[tuple[str, str]]:
    return [(difference.kind, str(difference.ends[0])) for difference in differences]


def test_a_fabric_as_declared_has_no_difference():
    seen = ibnetdiscover(said("ibnetdiscover.txt"))
    assert len(seen) == 4 * 8 + 8 * 2
    assert compare(PLAN, seen) == []


def test_swapped_plugs_and_a_missing_one_are_named():
    differences = compare(PLAN, ibnetdiscover(said("ibnetdiscover-crossed.txt")))
    assert kinds(differences) == [
        ("swapped", "dgx01/mlx5_5"),
        ("swapped", "dgx02/mlx5_3"),
        ("not seen", "dgx04/mlx5_7"),
    ]
    assert differences[1].sentence == (
        "dgx02/mlx5_3 and dgx03/mlx5_3 are swapped: dgx02/mlx5_3 is at leaf4/3, dgx03/mlx5_3 at leaf4/2. "
        "Swap the two plugs at leaf4, or declare it so"
    )
    assert "Swap the two plugs at leaf6 and leaf7" in differences[0].sentence


def test_a_cable_at_a_free_port_is_elsewhere_and_said_once():
    one = End("dgx01", "mlx5_0")
    differences = compare([(one, End("leaf1", "1"))], [(one, End("leaf1", "6"))])
    assert [difference.sentence for difference in differences] == [
        "dgx01/mlx5_0 to leaf1/1 is elsewhere: dgx01/mlx5_0 is at leaf1/6 and leaf1/1 sees nobody"
    ]


def test_a_cable_that_nobody_declared():
    link = (End("dgx01", "mlx5_9"), End("leaf1", "6"))
    assert kinds(compare(PLAN[:1], {PLAN[0], link})) == [("not declared", "dgx01/mlx5_9")]
    assert compare(PLAN[:1], {PLAN[0], (End("other", "1"), End("foreign", "2"))}) == []


def test_three_in_a_ring_are_each_elsewhere():
    plan = [(End(f"n{i}", "p"), End("s", str(i))) for i in range(3)]
    seen = {(End(f"n{i}", "p"), End("s", str((i + 1) % 3))) for i in range(3)}
    assert [difference.kind for difference in compare(plan, seen)] == ["elsewhere"] * 3


def test_names_as_real_switches_say_them():
    text = said("ibnetdiscover.txt").replace('"leaf1"', '"MF0;leaf1.hall.example.com:MQM9700/U1"')
    text += '\nSwitch\t65 "S-1"\t# "MF0;leaf1:MQM9700/U1" base port 0 lid 1 lmc 0\n'
    text += '[65]\t"H-9"[1](9) \t# "Mellanox Technologies Aggregation Node" lid 9 4xHDR\n'
    assert compare(PLAN, ibnetdiscover(text)) == []


def test_neighbours_of_a_host():
    assert lldp("dgx01", said("lldp-dgx01.json")) == {
        (End("dgx01", "eth0"), End("eth-leaf1", "swp1")),
        (End("dgx01", "eth1"), End("eth-leaf1", "swp9")),
    }
    assert lldp("dgx01", said("lldp-one.json")) == {(End("dgx01", "eth0"), End("eth-leaf1", "swp1"))}
    assert lldp("dgx01", said("lldp-none.json")) == set()
    as_mac = said("lldp-one.json").replace(
        '"type": "ifname",\n              "value": "swp1"', '"type": "mac",\n              "value": "6e:d4:0e:e5:f6:51"'
    )
    assert "6e:d4" in as_mac
    assert lldp("dgx01", as_mac) == {(End("dgx01", "eth0"), End("eth-leaf1", "swp1"))}


def test_only_cables_of_who_was_asked_are_compared():
    plan = [
        (End("dgx01", "eth0"), End("eth-leaf1", "swp9")),
        (End("dgx01", "eth1"), End("eth-leaf1", "swp1")),
        (End("dgx02", "eth0"), End("eth-leaf1", "swp2")),
    ]
    differences = compare(plan, lldp("dgx01", said("lldp-dgx01.json")), seen_from={"dgx01"})
    assert kinds(differences) == [("swapped", "dgx01/eth0")]


@pytest.mark.parametrize("text", ["", "hello", '[1] "H-1"[1]\n'])
def test_what_is_no_fabric(text):
    with pytest.raises(Unreadable, match="ibnetdiscover"):
        ibnetdiscover(text)


@pytest.mark.parametrize("text", ["", "[]", '{"lldp": 3}', '{"lldp": {"interface": [{"eth0": {"chassis": {}}}]}}'])
def test_what_is_no_list_of_neighbours(text):
    with pytest.raises(Unreadable, match="dgx01 sees"):
        lldp("dgx01", text)


def hall() -> Hall:
    nodes = [Device(host, "gpu", hcas=8) for host in HOSTS]
    switches = [Device(f"leaf{n}", "leaf", ports=64) for n in range(1, 9)]
    switches += [Device(f"spine{n}", "spine", ports=64) for n in (1, 2)] + [Device("eth-leaf1", "ethernet", ports=48)]
    cables = [
        Cable(End(one.device, one.port.replace("mlx5_", "ib")) if "mlx" in one.port else one, other, "dac", "NDR", 1)
        for one, other in PLAN
    ]
    named = [
        Cable(End(cable.a.device, f"ib{int(cable.a.port[2:]) + 1}"), cable.b, "dac", "NDR", 1)
        if cable.a.port.startswith("ib")
        else cable
        for cable in cables
    ]
    ethernet = [Cable(End("dgx01", "eth0"), End("eth-leaf1", "1"), "dac", "100GbE", 1)]
    return Hall("h", devices=tuple(nodes + switches), cables=tuple(named + ethernet))


def test_declared_names_of_ports():
    plan = hall()
    fabric = {link for link in declared(plan) if "eth0" not in (link[0].port, link[1].port)}
    assert as_declared(ibnetdiscover(said("ibnetdiscover.txt")), plan) == fabric
    seen = as_declared(lldp("dgx01", said("lldp-dgx01.json")), plan)
    assert kinds(compare(declared(plan) - fabric, seen, {"dgx01"})) == [("not declared", "dgx01/eth1")]


def test_hcas_that_are_not_numbered_from_0():
    plan = hall()
    text = said("ibnetdiscover.txt").replace("mlx5_7", "mlx5_11")
    with pytest.raises(Unreadable, match=r"has mlx5_11 in the fabric.*--hcas"):
        as_declared(ibnetdiscover(text), plan)
    names = [*(f"mlx5_{n}" for n in range(7)), "mlx5_11"]
    fabric = {link for link in declared(plan) if "eth0" not in (link[0].port, link[1].port)}
    assert as_declared(ibnetdiscover(text), plan, names) == fabric
