"""Declared cabling against what ibnetdiscover and lldpctl print. samples/ibnetdiscover.txt is the real tool's output of
a fabric that ibsim simulated: n1 and n2 are crossed at leaf1, n2 is at another port of leaf2.
"""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from ironburst.hall import seen
from ironburst.hall.model import Cable, End
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


ETHERNET = replace(
    sound(),
    devices=(
        *(replace(NODE, name=f"n{n}") for n in (1, 2)),
        *(replace(SWITCH, name=f"eth{n}", kind="ethernet") for n in (1, 2)),
    ),
    cables=tuple(cable(f"n1/e{n}", f"eth1/{n}", speed="400GbE") for n in (1, 2, 3)),
)
SPLIT = [("n1/e1", "eth1/1/0"), ("n1/e2", "eth1/1/1"), ("n1/e3", "eth1/2/0")]


def split(*ends):
    its = tuple(Cable(*map(switch_end, pair), "dac", "400GbE", 2) for pair in ends)
    return replace(ETHERNET, cables=its)


def switch_end(text):
    return End(*text.split("/", 1))


def test_a_port_that_is_declared_as_a_whole_is_any_part_of_it():
    seen_ = seen.lldp("n1", neighbours(e1=("eth1", "swp1s0"), e2=("eth1", "swp2s0"), e3=("eth1", "Ethernet1/3/1")))
    assert said(ETHERNET, seen_, "ethernet", ["n1"]) == []


def test_cables_name_parts_of_a_split_port():
    right = neighbours(e1=("eth1", "swp1s0"), e2=("eth1", "swp1s1"), e3=("eth1", "swp2s0"))
    assert said(split(*SPLIT), seen.lldp("n1", right), "ethernet", ["n1"]) == []
    crossed = right.replace("swp1s1", "x").replace("swp2s0", "swp1s1").replace('"x"', '"swp2s0"')
    assert said(split(*SPLIT), seen.lldp("n1", crossed), "ethernet", ["n1"]) == [
        "n1/e2 and n1/e3 are swapped: it is at eth1/2/0, and n1/e3 at eth1/1/1: swap them at eth1"
    ]


def test_parts_that_may_be_counted_through_are_told_and_nobody_is_sent_to_move_a_cable():
    """Port 2 of a switch whose 32 ports are split in two may be the second part of the first one."""
    right = neighbours(e1=("eth1", "swp1s0"), e2=("eth1", "swp1s1"), e3=("eth1", "swp2s0"))
    found = seen.compared(ETHERNET, seen.lldp("n1", right), "ethernet", ["n1"])
    assert found and {each.severity for each in found} == {"warning"}
    assert all("counted through" in str(each) and "move it" not in str(each) for each in found)
    elsewhere = seen.compared(ETHERNET, seen.lldp("n1", neighbours(e1=("eth1", "swp9s0"))), "ethernet", ["n1"])
    assert any("is at eth1/9/0: move it to eth1/1" in str(each) for each in elsewhere)


def test_two_ends_at_one_port_are_told():
    twice = seen.merged(
        [seen.lldp("n1", neighbours(e1=("eth1", "swp1"))), seen.lldp("n2", neighbours(e9=("eth1", "swp1")))]
    )
    found = [str(each) for each in seen.compared(ETHERNET, twice, "ethernet", ["n1"])]
    assert "eth1/1 is at n1/e1 and at n2/e9, as the network says, and a port has one cable" in found[0]
    slots = seen.lldp("n1", neighbours(e1=("eth1", "Ethernet3/9/1"), e2=("eth1", "Ethernet4/9/1")))
    assert {slots[End("n1", "e1")].port, slots[End("n1", "e2")].port} == {"Ethernet3/9/1", "Ethernet4/9/1"}


def test_a_switch_that_is_asked_itself_has_numbers_too():
    text = neighbours(swp2=("n1", "e2"))
    assert seen.lldp("eth1", text, ETHERNET)[End("eth1", "2")] == End("n1", "e2")


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


SAMPLES = ("rails.txt", "rails-crossed.txt", "ibnetdiscover.txt")
HALLS = {"ibnetdiscover.txt": HALL}


def judged(name, text):
    """What `hall verify` would make of it: None, it refuses."""
    hall = HALLS.get(name, RAILS)
    try:
        return said(hall, seen.ibnetdiscover(text, hall))
    except seen.NotUnderstood:
        return None


@pytest.mark.parametrize("name", SAMPLES)
def test_a_fabric_that_was_cut_is_never_as_it_was_declared(name):
    lines = sample(name).splitlines(keepends=True)
    last = max(n for n, line in enumerate(lines) if line.startswith("Ca"))
    step = 1 if len(lines) < 100 else 7
    assert all(judged(name, "".join(lines[:n])) != [] for n in range(0, last, step))


@pytest.mark.parametrize("name", SAMPLES)
def test_each_line_twice_says_the_same(name):
    doubled = "".join(line * 2 for line in sample(name).splitlines(keepends=True))
    assert judged(name, doubled) == judged(name, sample(name))


@pytest.mark.parametrize("name", ["rails.txt", "ibnetdiscover.txt"])
def test_a_line_whose_numbers_are_lost_is_never_as_it_was_declared(name):
    lines = sample(name).splitlines(keepends=True)
    hit = [n for n, line in enumerate(lines) if line.startswith(("[", "Switch", "Ca"))]
    for n in hit[:: max(1, len(hit) // 30)]:
        lost = re.sub(r"\d+", "N/A", lines[n])
        assert judged(name, "".join([*lines[:n], lost, *lines[n + 1 :]])) != []


def test_a_peer_that_is_named_and_not_described_is_one_sentence():
    text = "\n".join(TEXT.split("Ca\t")[0].splitlines()[:-4])
    with pytest.raises(seen.NotUnderstood, match=r"it is cut, or of a part of the fabric: .*isn't described"):
        seen.ibnetdiscover(text, HALL)


@pytest.mark.parametrize("hcas", [(), ("mlx5_0", "mlx5_1"), ("mlx5_9",)])
def test_hosts_that_are_not_declared_and_hcas_that_are_not_named(hcas):
    storage = sample("rails.txt").replace("dgx04", "storage1")
    links = seen.ibnetdiscover(storage, RAILS, hcas)
    assert "storage1" in {end.device for end in links}
    found = said(RAILS, seen.ibnetdiscover(sample("rails.txt"), RAILS, [f"mlx5_{n}" for n in range(7)]))
    assert [each for each in found if "no link" in each and "ib8" in each]


def test_what_nobody_has_named_yet_sends_nobody_to_move_a_cable():
    default = "MT4129 ConnectX7   Mellanox Technologies"
    for name in (default, "localhost mlx5_0", "(none) mlx5_0", ""):
        text = sample("rails.txt").replace("dgx02 mlx5_0", name)
        found = seen.compared(RAILS, seen.ibnetdiscover(text, RAILS, [f"mlx5_{n}" for n in range(8)]), "infiniband")
        assert [each.severity for each in found] == ["warning"]
        assert "names no host" in str(found[0]) and str(found[0]).startswith("leaf1/2 ")


def test_switches_with_the_makers_text_are_not_one_switch():
    text = sample("rails.txt").replace('"spine1"', '"Quantum Mellanox Technologies"')
    text = text.replace('"spine2"', '"Quantum Mellanox Technologies"')
    links = seen.ibnetdiscover(text, RAILS)
    assert len({end.device for end in links if "Quantum" in end.device}) == 2


def test_a_switchs_own_aggregation_node_is_no_link():
    peer = '[41]\t"H-0000000000ffff01"[1](ffff01) \t\t# "Mellanox Technologies Aggregation Node" lid 99 4xNDR\n'
    own = (
        'Ca\t1 "H-0000000000ffff01"\t\t# "Mellanox Technologies Aggregation Node"\n[1](ffff01) \t"{}"[41]\t\t# lid 99\n'
    )
    text = sample("rails.txt")
    line = next(line for line in text.splitlines(keepends=True) if line.startswith("Switch"))
    guid = line.split('"')[1]
    with_node = text.replace(line, line + peer)
    for several in (with_node, with_node + "\n" + own.format(guid)):
        assert said(RAILS, seen.ibnetdiscover(several, RAILS)) == []


def test_a_dead_leaf_and_a_dead_node_are_one_sentence_each():
    for name in ("leaf3", "dgx02"):
        text = without(sample("rails.txt"), name)
        (found,) = said(RAILS, seen.ibnetdiscover(text, RAILS))
        count = 6 if name == "leaf3" else 8
        assert found.startswith(f"{name} isn't there: none of its {count} cables has a link")


def without(text, name):
    """The fabric without a device: its sections, and the lines that name it."""
    sections = [
        each for each in text.split("\n\n") if not re.search(rf'^(Switch|Ca)\s.*# "{name}[ "]', each, re.MULTILINE)
    ]
    lines = "\n\n".join(sections).splitlines()
    return "\n".join(line for line in lines if not re.search(rf'^\[.*"{name}[ "]', line)) + "\n"


@pytest.mark.parametrize(("runs", "said_"), [("4xHDR", "200 Gb/s"), ("1xNDR", "100 Gb/s"), ("4xEDR", "100 Gb/s")])
def test_a_link_below_its_declared_speed_is_an_error(runs, said_):
    fast = sample("rails.txt").replace("4xSDR", "4xNDR")
    assert said(RAILS, seen.ibnetdiscover(fast, RAILS)) == []
    slow = "\n".join(line.replace("4xNDR", runs) if "dgx03 mlx5_4" in line else line for line in fast.splitlines())
    (found,) = seen.compared(RAILS, seen.ibnetdiscover(slow, RAILS), "infiniband")
    assert found.severity == "error" and "dgx03/ib5 runs at" in str(found) and f"{runs}, {said_}" in str(found)
    faster = replace(RAILS, cables=tuple(replace(each, speed="HDR") for each in RAILS.cables))
    assert said(faster, seen.ibnetdiscover(fast, faster)) == []


def test_a_speed_that_is_not_understood_is_told():
    text = sample("rails.txt").replace("4xSDR", "4xNDR")
    odd = "\n".join(line.replace("4xNDR", "4x???") if "dgx03 mlx5_4" in line else line for line in text.splitlines())
    (found,) = seen.compared(RAILS, seen.ibnetdiscover(odd, RAILS), "infiniband")
    assert found.severity == "warning" and "isn't understood" in str(found)


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
