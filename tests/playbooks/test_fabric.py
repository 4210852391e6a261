"""Partitions of the fabric, and the judgement over its links, counters and subnet managers."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from ansible.errors import AnsibleFilterError
from programs import load

from ironburst.ports.service import SchedulerError

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
