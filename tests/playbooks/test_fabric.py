"""Partitions of the fabric, and the judgement over its links, counters and subnet managers."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from ansible.errors import AnsibleFilterError
from programs import load

from ironburst.ports.service import SchedulerError
from tests.prometheus import check_metrics, program

fabric = load("roles/infiniband_fabric/files/ironburst-fabric.py")
partitions = load("plugins/filter/fabric.py")
cluster_node = load("plugins/action/cluster_node.py")
CAPTURED = Path(__file__).parent / "captured"
SETTINGS = {
    "limits": {"LinkDownedCounter": 0, "SymbolErrorCounter": 10},
    "min_width": 4,
    "min_lane_gbps": 0,
    "subnet_managers": 1,
}
GUID = "0x0002c90300a1b2c3"
GOOD = {"name": "storage", "pkey": "0x0010", "members": [f"{GUID}=full", "ALL=limited"]}


def captured(name):
    return (CAPTURED / name).read_text()


LINKS = fabric.parse_links(captured("iblinkinfo.txt"))
DOWN = fabric.parse_links(captured("iblinkinfo-link-down.txt"))
MANAGERS = fabric.parse_managers(captured("saquery-smir.txt"))
LEAF = "0x0000000000200000:2"


def judge(links=LINKS, errors=None, managers=MANAGERS, seen=None, **changes):
    return fabric.judge(links, errors or {}, managers, SETTINGS | changes, seen or {})


def test_the_default_rule_is_always_first():
    assert partitions.partition_rules([]) == ["Default=0x7fff, ipoib : ALL=full;"]
    rules = partitions.partition_rules([GOOD])
    assert rules == ["Default=0x7fff, ipoib : ALL=full;", f"storage=0x0010, ipoib : {GUID}=full, ALL=limited;"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "Default"}, "is no name of a partition"),
        ({"name": "a b"}, "is no name of a partition"),
        ({"name": "x;Default=0x7fff:SELF"}, "is no name of a partition"),
        ({"pkey": "0x7fff"}, "0x7fff is the default partition's"),
        ({"pkey": "0xffff"}, "use one from 0x0001 to 0x7ffe"),
        ({"pkey": "0"}, "use one from"),
        ({"members": []}, "has no members"),
        ({"members": ["everybody"]}, "is no member"),
        ({"members": [GUID]}, "is no member"),
        ({"members": [f"{GUID}=full;"]}, "is no member"),
        ({"members": [f"{GUID}=limited"]}, "only limited members, which can't talk to each other"),
    ],
)
def test_a_partition_that_could_black_hole_the_fabric_is_refused(changes, words):
    with pytest.raises(AnsibleFilterError, match=r"partitions\.conf is not written") as refused:
        partitions.partition_rules([GOOD | changes])
    assert words in str(refused.value)


def test_names_and_keys_are_used_once():
    problems = partitions.partition_problems([GOOD, GOOD])
    assert any("the name storage is used twice" in text for text in problems)
    assert any("the key 0x10 is used twice" in text for text in problems)


def test_a_good_fabric_has_no_problem():
    assert judge() == ([], [])
    assert LINKS[LEAF] == {
        "name": "LEAF1",
        "port": 2,
        "peer": "dgx01",
        "peer_port": 1,
        "peer_key": "0x0000000000100003:1",
        "width": 4,
        "lane_gbps": 2.5,
        "state": "Active/LinkUp",
    }
    assert LINKS["0x0000000000200001:2"]["width"] == 0  # nothing is plugged in
    assert fabric.parse_errors(captured("ibqueryerrors.txt")) == {}
    assert MANAGERS == [{"guid": "0x0000000000100001", "priority": 0, "state": 3}]


def test_a_link_that_was_up_is_missed():
    seen = {"links": {key: link for key, link in LINKS.items() if link["width"]}, "errors": {}}
    assert judge(seen=seen) == ([], [])
    problems, _ = judge(DOWN, seen=seen)
    assert problems == [
        "the link of dgx01 port 1 to LEAF1 was up and is not any more",
        "the link of LEAF1 port 2 to dgx01 was up and is not any more",
    ]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"width": 1}, "LEAF1 port 2 runs 1X, at least 4X is wanted"),
        ({"state": "Initialize/LinkUp"}, "the subnet manager has not brought it up"),
    ],
)
def test_a_degraded_link_is_told(change, words):
    problems, _ = judge(LINKS | {LEAF: LINKS[LEAF] | change})
    assert len(problems) == 1 and words in problems[0]


def test_a_slow_lane_is_told():
    problems, _ = judge(min_lane_gbps=25)
    assert "LEAF1 port 2 runs 2.5 Gb/s a lane, at least 25 is wanted" in problems


ERRORS = """Errors for "LEAF1"
   GUID 0x200000 port ALL: [LinkDownedCounter == 3] [SymbolErrorCounter == 20]
   GUID 0x200000 port 2: [LinkDownedCounter == 3] [SymbolErrorCounter == 20]

## Summary: 6 nodes checked, 1 bad nodes found
##          15 ports checked, 1 ports have errors beyond threshold
"""


def test_counters_are_judged_by_their_rise():
    errors = fabric.parse_errors(ERRORS)
    assert errors == {LEAF: {"LinkDownedCounter": 3, "SymbolErrorCounter": 20}}
    assert judge(errors=errors) == ([], [])  # the first look: nobody knows since when
    before = {"links": {}, "errors": {LEAF: {"LinkDownedCounter": 3, "SymbolErrorCounter": 11}}}
    assert judge(errors=errors, seen=before) == ([], [])
    problems, _ = judge(
        errors=errors, seen={"links": {}, "errors": {LEAF: {"LinkDownedCounter": 2, "SymbolErrorCounter": 9}}}
    )
    assert problems == [
        "LinkDownedCounter of LEAF1 port 2 rose by 1 since the last look, allowed is 0",
        "SymbolErrorCounter of LEAF1 port 2 rose by 11 since the last look, allowed is 10",
    ]
    cleared = {"links": {}, "errors": {LEAF: {"LinkDownedCounter": 50}}}
    assert "LinkDownedCounter of LEAF1 port 2 rose by 3" in judge(errors=errors, seen=cleared)[0][0]


def test_subnet_managers_that_are_not_declared_are_told():
    another = {"guid": "0x0000000000100003", "priority": 0, "state": 2}
    problems, _ = judge(managers=[*MANAGERS, another])
    assert problems == [
        "2 subnet managers run, declared are 1 (0x0000000000100001, 0x0000000000100003): stop the others"
    ]
    assert judge(subnet_managers=2) == ([], ["1 of 2 declared subnet managers run"])
    assert judge(managers=[another])[0] == ["the fabric has 0 master subnet managers"]


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (fabric.parse_links, ""),
        (fabric.parse_links, captured("iblinkinfo.txt").replace("==(", "--(", 1)),
        (
            fabric.parse_links,
            captured("iblinkinfo.txt").replace("Active/  LinkUp", "Purple/  LinkUp", 1).replace("4X  ", "?X  ", 1),
        ),
        (fabric.parse_errors, ""),
        (fabric.parse_errors, "ibwarn: discover failed"),
        (fabric.parse_errors, captured("ibqueryerrors.txt").replace("6 nodes", "0 nodes")),
        (fabric.parse_errors, ERRORS.replace("[LinkDownedCounter == 3] [SymbolErrorCounter == 20]", "[?]")),
        (fabric.parse_managers, ""),
        (fabric.parse_managers, captured("saquery-smir.txt").replace("Priority", "Rank")),
    ],
)
def test_what_is_not_understood_is_no_good_fabric(parse, text):
    with pytest.raises(fabric.FabricError):
        parse(text)


def test_a_missing_tool_is_no_good_fabric(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    settings = tmp_path / "fabric.json"
    settings.write_text(
        '{"limits": {}, "min_width": 0, "min_lane_gbps": 0, "subnet_managers": 1, "metrics": "/nowhere"}'
    )
    monkeypatch.setattr(
        "sys.argv", ["ironburst-fabric", "check", "--settings", str(settings), "--state", str(tmp_path / "seen.json")]
    )
    assert fabric.main() == 2
    assert "iblinkinfo can't be run" in capsys.readouterr().err


def listed(**nodes):
    return SimpleNamespace(occupancy=lambda: {name: SimpleNamespace(jobs=jobs) for name, jobs in nodes.items()})


def test_a_stress_test_takes_no_node_that_the_cluster_does_not_list():
    """It may be listed under another name, or by another cluster: who isn't known to be unused is used."""
    node = {"node": "dgx01", "new": False}
    assert cluster_node.unused(listed(dgx01=()), node, False) is False
    with pytest.raises(SchedulerError, match="team-a/train-0 run on it"):
        cluster_node.unused(listed(dgx01=("team-a/train-0",)), node, False)
    with pytest.raises(SchedulerError, match="does not list it"):
        cluster_node.unused(listed(dgx02=()), node, False)
    assert cluster_node.unused(listed(), node | {"new": True}, False) is False
    text = (Path(__file__).parents[2] / "playbooks/fabric.yml").read_text()
    assert 'new: "{{ fabric_no_scheduler_yet | default(false) | bool }}"' in text


# --- who is at the other end. Names as real switches and cards give them (captured/README.md)

NAMED = fabric.parse_links(captured("iblinkinfo-named.txt"))
NAMED_ERRORS = fabric.parse_errors(captured("ibqueryerrors-named.txt"))
SPINE = "0x0000000000200001"
CABLES = [
    {"ends": ["leaf1/1", "dgx01/ib1"], "gbps": 10.0, "what": "HDR dac 2 m"},
    {"ends": ["leaf1/2", "dgx02/ib1"], "gbps": 20.0, "what": "HDR dac 2 m"},
    {"ends": ["spine1/1/1", "leaf1/3/1"], "gbps": 10.0, "what": "HDR aoc 20 m"},  # split ports: by their pair
]
WITH_NAMES = SETTINGS | {"names": {SPINE: "spine1"}, "cables": CABLES}


def figures(links=NAMED, errors=NAMED_ERRORS, settings=WITH_NAMES, seen=None, unasked=0):
    traffic = fabric.parse_traffic(captured("ibqueryerrors-counters.txt"), links)
    looked = (links, errors, MANAGERS, traffic, unasked)
    were_up = {key: link for key, link in NAMED.items() if link["width"]}
    return fabric.samples(looked, [], settings, were_up if seen is None else seen)


def told(lines, metric, *words):
    """The samples of a metric that have these words."""
    return [
        line
        for line in lines
        if line.startswith(f"ironburst_fabric_{metric}{{") and all(word in line for word in words)
    ]


@pytest.mark.parametrize(
    ("description", "who"),
    [
        ("MF0;d32-03-1:MQM8700/U1", ("d32-03-1", "")),
        ("dgx01 mlx5_3", ("dgx01", "mlx5_3")),
        ("cu01 HCA-1", ("cu01", "HCA-1")),
        ("node7.cluster.example ibp24s0", ("node7.cluster.example", "ibp24s0")),
        ("Quantum Mellanox Technologies", ("Quantum Mellanox Technologies", "")),
        ("Mellanox Technologies Aggregation Node", ("Mellanox Technologies Aggregation Node", "")),
        ("dgx02", ("dgx02", "")),
    ],
)
def test_descriptions_say_who_it_is(description, who):
    assert fabric.whose(description, "0x1", {}) == who
    assert fabric.whose(description, "0x1", {"0x1": "leaf9"}) == ("leaf9", "")


def test_counters_have_the_names_of_both_ends_and_of_the_cable():
    lines = figures()
    [of_leaf] = told(lines, "errors_total", 'node="leaf1"', ',port="1"', "SymbolErrorCounter")
    ends = 'guid="0x0000000000200000",node="leaf1",peer="dgx01",peer_port="mlx5_0/1",port="1"} 20'
    assert of_leaf.endswith('{cable="leaf1/1 - dgx01/ib1, HDR dac 2 m",counter="SymbolErrorCounter",' + ends)
    [spine] = told(lines, "link_up", 'node="spine1"', 'peer="leaf1"')
    assert 'cable="spine1/1/1 - leaf1/3/1, HDR aoc 20 m"' in spine
    # without a declared cable its name is its two ends, the same from both of them
    undeclared = told(lines, "link_up", 'cable="head/mlx5_0/1 - spine1/2"')
    assert len(undeclared) == 2
    # an error counter that is zero is there, so that its first rise is seen; not where a port gave no answer
    assert told(lines, "errors_total", 'node="dgx02"', "LinkDownedCounter")[0].endswith(" 0")
    assert not told(figures(unasked=1), "errors_total", 'node="dgx02"', "LinkDownedCounter")
    # waiting is no error
    assert told(lines, "transmit_wait_ticks_total", 'node="dgx02"')[0].endswith(" 4711")
    assert not told(lines, "errors_total", "PortXmitWait")


def test_traffic_is_in_bytes_also_where_the_tool_prints_the_nodes_guid():
    """PortXmitData counts words of four bytes: ibqueryerrors itself calls 1584 of them 6.188KB."""
    lines = figures()
    assert told(lines, "transmitted_bytes_total", 'node="dgx01"')[0].endswith(f" {1584 * 4}")
    assert told(lines, "received_bytes_total", 'node="leaf1"', ',port="3"')[0].endswith(f" {8280 * 4}")


def test_a_link_below_its_cables_speed_shows():
    """4X at 2.5 Gb/s a lane are 10 Gb/s: 1.25e9 bytes a second."""
    lines = figures()
    for node, declared in (("dgx01", 1.25e9), ("dgx02", 2.5e9)):
        assert told(lines, "link_rate_bytes_per_second", f'node="{node}"')[0].endswith(" 1250000000")
        assert told(lines, "link_declared_rate_bytes_per_second", f'node="{node}"')[0].endswith(f" {declared:.0f}")
    assert not told(lines, "link_declared_rate_bytes_per_second", 'node="head"')
    slow = figures(settings=SETTINGS | {"min_lane_gbps": 50})
    assert told(slow, "link_declared_rate_bytes_per_second", 'node="head"')[0].endswith(" 25000000000")


@pytest.mark.parametrize(("lane", "gbps"), [(25.78125, 100), (53.125, 200), (106.25, 400), (212.5, 800), (14.0625, 56)])
def test_a_lane_is_as_fast_as_its_name(lane, gbps):
    """EDR, HDR, NDR, XDR and FDR as iblinkinfo prints them, and HDR100's two lanes."""
    assert fabric.rate_bytes(4, lane) * 8 == gbps * 1e9
    assert fabric.rate_bytes(2, 53.125) * 8 == 100e9


def test_a_link_that_is_down_keeps_its_names_and_one_that_never_was_has_none():
    down = {
        key: link | ({"width": 0, "state": "Down/Polling", "peer": "", "peer_key": ""} if key == f"{SPINE}:1" else {})
        for key, link in NAMED.items()
    }
    lines = figures(links=down)
    [gone] = [line for line in told(lines, "link_up") if line.endswith(" 0")]
    assert 'node="spine1"' in gone and 'peer="leaf1"' in gone and "HDR aoc 20 m" in gone
    # its counters are the same series as before
    before = told(figures(), "errors_total", 'node="spine1"', 'peer="leaf1"', "LinkDownedCounter")
    assert told(lines, "errors_total", 'node="spine1"', 'peer="leaf1"', "LinkDownedCounter") == before != []
    assert not told(figures(), "link_up", f'guid="{SPINE}"', ',port="3"')


def test_each_sample_is_there_once():
    """The node exporter drops a whole file for one that is there twice, as two switches of the same description are."""
    lines = [line.rpartition(" ")[0] for line in figures(settings=SETTINGS) if not line.startswith("#")]
    assert len(lines) == len(set(lines))
    twins = {
        key.replace(SPINE, f"0x{number:016x}"): link for key, link in NAMED.items() for number in (8, 9) if SPINE in key
    }
    lines = [line.rpartition(" ")[0] for line in figures(links=twins, settings=SETTINGS) if not line.startswith("#")]
    assert len(lines) == len(set(lines))


def test_a_state_of_an_older_program_is_read():
    old = {key: {"name": link["name"], "port": link["port"], "peer": link["peer"]} for key, link in NAMED.items()}
    down = {key: link | {"width": 0, "state": "Down/Polling"} for key, link in NAMED.items()}
    assert len(told(figures(links=down, seen=old), "link_up")) == len(NAMED)


def test_a_counter_at_its_end_and_a_cable_elsewhere_are_told():
    problems, warnings = judge(NAMED, NAMED_ERRORS, **{key: WITH_NAMES[key] for key in ("names", "cables")})
    assert problems == []
    assert any("LinkDownedCounter of leaf1 port 1 is full at 255" in text for text in warnings)
    down = {key: link | {"width": 0, "state": "Down/Polling"} for key, link in NAMED.items()}
    problems, _ = judge(down, seen={"links": {f"{SPINE}:1": NAMED[f"{SPINE}:1"]}}, names=WITH_NAMES["names"])
    assert problems == ["the link of spine1 port 1 to leaf1 was up and is not any more"]
    swapped = [CABLES[0] | {"ends": ["leaf1/2", "dgx01/ib1"]}, CABLES[1] | {"ends": ["leaf1/1", "dgx02/ib1"]}]
    _, warnings = judge(NAMED, cables=swapped)
    assert "leaf1 port 1 goes to dgx01 port mlx5_0/1, declared is dgx02/ib1" not in warnings  # by its pair
    wrong = [CABLES[0], {"ends": ["leaf1/2", "dgx03/ib1"], "gbps": 10.0, "what": "HDR"}, *CABLES[2:]]
    wrong.append({"ends": ["leaf1/5", "dgx02/ib1"], "gbps": 10.0, "what": "HDR"})
    wrong.append({"ends": ["leaf1/6", "dgx02/ib2"], "gbps": 10.0, "what": "HDR"})
    _, warnings = judge(NAMED, cables=wrong)
    assert "leaf1 port 2 goes to dgx02 port mlx5_0/1, declared is dgx03/ib1" in warnings


def test_prometheus_takes_the_file():
    check_metrics(program("promtool"), "\n".join(figures()) + "\n")
