"""`ironburst hall plan`: files, exit codes, Slurm's topology, and a large hall in time."""

import gc
import json
import time
from pathlib import Path

import pytest
import yaml

from ironburst.cli import main
from tests.unit.config.test_checks import put

EXAMPLE = Path(__file__).parents[3] / "docs/how-to/sysadmin/hall.yaml"


def stack(folder, change=lambda value: None):
    whole = yaml.safe_load(EXAMPLE.read_text())
    change(whole["config"]["ironburst:cluster"])
    path = folder / "Pulumi.hall.yaml"
    path.write_text(json.dumps(whole))  # YAML, too, and written faster
    return path


def test_a_plan_with_its_page_and_tables(tmp_path, capsys):
    asked = ["hall", "plan", str(EXAMPLE), "--html", str(tmp_path / "a/page"), "--csv", str(tmp_path)]
    asked += ["--netbox", str(tmp_path / "netbox")]
    assert main(asked) == 0
    said = capsys.readouterr()
    assert said.out.startswith("hall-a: 3 racks, 20 machines, 138 cables; 0 errors, 2 warnings\n")
    written = {path.name: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    tables = [f"hall-a-{each}.csv" for each in ("cables", "ports", "power", "circuits")]
    assert {"hall.html", *tables} == {name for name in written if "netbox" not in name}
    assert len(written) == 5 + 13 and b"dgx01,gpu,NVIDIA,dgx-h100,planned" in written["hall-a-netbox-08-devices.csv"]
    assert written["hall-a-ports.csv"].count(b"\r\n") == 139 and all(name in said.err for name in written)


def test_a_broken_rule_is_exit_code_2_and_planned_all_the_same(tmp_path, capsys):
    path = stack(tmp_path, lambda value: put(value, "halls[0].circuits[0].breaker_a", 34))
    assert main(["hall", "plan", str(path), "--json"]) == 2
    (hall,) = json.loads(capsys.readouterr().out)["halls"]
    found = [each for each in hall["findings"] if each["severity"] == "error"]
    assert [each["rule"] for each in found] == ["HW-004"] and len(hall["circuits"]) == 10
    assert "circuit a1" in found[0]["message"] and len(found[0]["ways_out"]) == 3


@pytest.mark.parametrize(
    ("path", "given", "words"),
    [
        ("halls[0].nodes[1].units", [1, 2, 17, 25], "both take unit"),
        ("halls[0].cables[0].ends", ["dgx[01-08]/ib1", "leaf1/1"], "gives 8 ports at one end and 1 at the other"),
        ("halls[0].racks[0].depth", 3, "did you mean 'depth_mm'"),
        ("halls", [], "declares no halls"),
    ],
)
def test_what_cannot_be_planned_is_said_in_a_sentence(tmp_path, capsys, path, given, words):
    assert main(["hall", "plan", str(stack(tmp_path, lambda value: put(value, path, given)))]) == 2
    said = capsys.readouterr()
    assert words in said.err and said.out == ""


def test_a_folder_that_cannot_be_written(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["hall", "plan", str(EXAMPLE), "--csv", str(tmp_path / "file")]) == 2
    assert "can't be written" in capsys.readouterr().err


def test_slurms_topology_is_all_that_is_printed(capsys):
    assert main(["hall", "plan", str(EXAMPLE), "--topology", "conf"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[1:] == ["SwitchName=leaf1-leaf8 Nodes=dgx[01-08]", "SwitchName=spine1-spine2 Switches=leaf1-leaf8"]
    assert main(["hall", "plan", str(EXAMPLE), "--topology", "yaml"]) == 0
    (said,) = yaml.safe_load(capsys.readouterr().out)
    assert said["tree"]["switches"][0] == {"switch": "leaf1-leaf8", "nodes": "dgx[01-08]"}


def large(value):
    """100 racks with 8 nodes and 2 circuits each; 32 nodes have 8 leaves, which have 32 uplinks: 800 nodes, 13,000
    cables.
    """
    hall = value["halls"][0]
    hall["cidr"], hall["bmc_cidr"] = "10.30.0.0/18", None
    head, node = hall["nodes"][0] | {"bmc": None}, {**hall["nodes"][1], "bmc": None}
    head["addresses"], head["rack"], head["units"] = "10.30.40.1", "n01", [48]
    node["chassis"] = {"power_w": 5000, "weight_kg": 60}
    hall |= {"circuits": [], "racks": [], "cables": [], "switches": [], "cooling_kw": 8000, "nodes": [head]}
    for r in range(1, 101):
        circuits = [{"name": f"c{r}{f}", "feed": f, "volts": 415, "phases": 3, "breaker_a": 100} for f in "AB"]
        pdus = [{"name": f"p{r}{f}", "circuit": f"c{r}{f}"} for f in "AB"]
        name, first, at = f"r{r:03}", (r - 1) * 8 + 1, [r % 10 * 0.6, r // 10 * 2.4]
        limits = {"max_weight_kg": 1500, "power_kw": 45, "cooling_kw": 50, "units": 60, "at_m": at}
        hall["circuits"] += circuits
        hall["racks"].append({"name": name, "pdus": pdus, **limits})
        nodes = {"names": f"dgx[{first:03}-{first + 7:03}]", "rack": name, "units": [1 + 7 * n for n in range(8)]}
        addresses = f"10.30.{r // 25}.[{r % 25 * 8 + 1}-{r % 25 * 8 + 8}]"
        hall["nodes"].append(node | nodes | {"height": 7, "addresses": addresses})
    unit = {"kind": "leaf", "ports": 64, "rack": None, "chassis": {"power_w": 1700}}
    for su in range(1, 26):
        first = (su - 1) * 32 + 1
        hall["switches"].append({**unit, "names": f"leaf{su}x[1-8]", "rails": list(range(1, 9))})
        hall["switches"][-1]["subnet_manager"] = su == 1
        for rail in range(1, 9):
            low = {"type": "multimode", "speed": "NDR", "length_m": 50}
            ends = [f"dgx[{first:03}-{first + 31:03}]/ib{rail}", f"leaf{su}x{rail}/[1-32]"]
            hall["cables"].append({**low, "ends": ends})
        up = [f"leaf{su}x[1-8]/[33-64]", f"spine[1-16]/[{(su - 1) * 16 + 1}-{su * 16}]"]
        hall["cables"].append({"ends": up, "type": "single-mode", "speed": "NDR", "length_m": 60})
    hall["switches"].append({**unit, "names": "spine[1-16]", "kind": "spine", "ports": 400})
    hall["racks"].append({"name": "n01", "units": 48})


SECONDS_A_MILLION = 0.06
"""where the whole plan took 1.5 s"""


def counted(most):
    number = 0
    while number < most:
        number += 1


def seconds(call, *args):
    """What it returned, and its processor time."""
    before = time.process_time()
    said = call(*args)
    return said, time.process_time() - before


def test_a_hall_of_800_nodes_is_planned_in_time(tmp_path, capsys):
    """At most 2 s of processor time from the file to page, tables and JSON, on a processor that counts to a million in
    SECONDS_A_MILLION; a busy one has as much more time as it counts slower. What else is in memory, and who comes in
    between, only makes it slower: the best of three counts.
    """
    asked = ["hall", "plan", str(stack(tmp_path, large)), "--json", "--html", str(tmp_path), "--csv", str(tmp_path)]
    tried = []
    gc.collect()
    gc.freeze()  # a plan has a process of its own, without what other tests left
    try:
        while len(tried) < 3 and not any(spent <= 2 * slower for spent, slower in tried):
            capsys.readouterr()
            _, before = seconds(counted, 1_000_000)
            code, spent = seconds(main, asked)
            _, after = seconds(counted, 1_000_000)
            assert code == 0
            tried.append((spent, max(1.0, before / SECONDS_A_MILLION, after / SECONDS_A_MILLION)))
    finally:
        gc.unfreeze()
    (hall,) = json.loads(capsys.readouterr().out)["halls"]
    assert hall["findings"] == []
    assert len(hall["ports"]) == 800 * 8 + 25 * 256 and len(hall["topology"]) == 26
    assert any(spent <= 2 * slower for spent, slower in tried), tried


SAMPLE = Path(__file__).parents[1] / "hall/samples/ibnetdiscover.txt"


def renamed(value):
    put(value, "halls[0].nodes[1].names", ["n1", "n2", "dgx03", "dgx04"])
    put(value, "halls[0].nodes[1].infiniband_links", 2)
    ends = [["n1/ib1", "n2/ib1", "n1/ib2", "n2/ib2"], ["leaf1/1", "leaf1/2", "leaf2/1", "leaf2/3"]]
    value["halls"][0]["cables"] = [{"ends": ends, "type": "multimode", "speed": "NDR", "length_m": 10}]


def test_swapped_cables_are_named(tmp_path, capsys):
    assert main(["hall", "verify", str(stack(tmp_path, renamed)), "--ibnetdiscover", str(SAMPLE)]) == 2
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("error: n1/ib1 and n2/ib1 are swapped") and said[-1] == "hall-a: 3 differences"
    assert sum("has a link to spine1" in each or "has a link to leaf" in each for each in said) == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "nothing to verify against"),
        (["--ibnetdiscover", "/none"], "can't be read"),
        (["--ibnetdiscover", str(EXAMPLE)], "no switch and no HCA"),
        (["--lldp", "dgx01"], "write HOST=FILE"),
        (["--lldp", "dgx09=x"], "no node or switch of hall-a"),
        (["--lldp", f"dgx01={EXAMPLE}"], "isn't the output of `lldpctl -f json`"),
        (["--hall", "hall-b", "--ibnetdiscover", str(SAMPLE)], "name one of hall-a"),
    ],
)
def test_what_cannot_be_verified_is_said_in_a_sentence(capsys, options, words):
    assert main(["hall", "verify", str(EXAMPLE), *options]) == 2
    said = capsys.readouterr()
    assert words in said.err and said.out == ""
