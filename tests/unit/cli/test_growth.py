"""`ironburst size --halls`: rent, more nodes, or more in the nodes of today."""

import json
from pathlib import Path

import pytest
import yaml

from ironburst import cli
from tests.unit.config.test_checks import put

EXAMPLE = Path(__file__).parents[3] / "docs/how-to/sysadmin/hall.yaml"
PCIE = "generic-pcie-server-8-gpu-l40s"


@pytest.fixture
def trace(tmp_path):
    """Eleven nodes of 8 GPUs are busy all the time, for 30 hours."""
    path = tmp_path / "jobs.csv"
    jobs = [f"{at},{4 * 3600},88" for at in range(0, 30 * 3600, 4 * 3600)]
    path.write_text("\n".join(["submit_s,duration_s,num_gpus", *jobs, ""]))
    return path


@pytest.fixture
def stack(tmp_path):
    """The example of a hall, with a pool to rent from."""
    whole = yaml.safe_load(EXAMPLE.read_text())
    cluster = whole["config"]["ironburst:cluster"]
    prod = yaml.safe_load(Path("stacks/Pulumi.prod.yaml").read_text())["config"]["ironburst:cluster"]
    whole["config"]["aws:region"] = "us-east-1"
    cluster |= {key: prod[key] for key in ("cloud", "budget", "burst") if key in prod}
    cluster["cloud"]["network"]["hall_link"]["hall"] = "hall-a"
    cluster["scheduler"]["munge_key"] = "aws-secretsmanager:hall/munge-key"

    def written(**changes):
        for path, value in changes.items():
            put(cluster, path.replace("__", "."), value)
        path = tmp_path / "Pulumi.hall.yaml"
        path.write_text(json.dumps(whole))
        return str(path)

    return written


def asked(trace, stack, *more):
    return ["size", str(trace), "--config", stack, "--owned-usd-per-gpu-hour", "1", *more]


def test_more_nodes_have_their_racks_and_the_limit_that_they_meet(trace, stack, capsys):
    argv = asked(trace, stack(), "--halls", "--nodes", "11")
    assert cli.main([*argv, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [each["nodes"] for each in said["candidates"]] == [8, 11]  # those of today are looked at, too
    growth = said["growth"]
    assert (growth["nodes"], growth["best_nodes"], growth["more_nodes"]) == (8, 11, 3)
    assert growth["rent"]["rented_usd"] == said["candidates"][0]["rented_usd"] > 0
    (own,) = growth["own"]
    rooms = {room["rack"]: room for room in own["halls"][0]["rooms"]}
    assert own["platform"] == "dgx-h100" and sum(room["count"] for room in rooms.values()) == 3 - own["no_room"]
    assert all(room["then"] for room in rooms.values()) and own["no_room"] > 0
    assert cli.main(argv) == 0
    text = capsys.readouterr().out
    rent = growth["rent"]
    assert (
        f"  rent: {rent['rented_node_hours']:,.0f} node-hours of p5.48xlarge a year for {rent['rented_usd']:,.0f} USD"
        in text
    )
    assert (
        f"  more nodes: {3 - own['no_room']} of 3 more dgx-h100 have room\n    hall-a r01: none: circuit a1 is full: "
        in text
    )
    board = "its 8 GPUs are on one board of its maker's: none can be added; free sockets for memory aren't known"
    assert f"  in dgx[01-08] (dgx-h100): {board}: give what `ironburst node show NODE STACK_FILE --json` prints" in text
    assert "unknown: how much memory jobs ask for is in no history that is read" in text
    assert "unknown: what a node, a GPU or a memory module costs" in text
    assert cli.main(asked(trace, stack(), "--nodes", "11", "--json")) == 0
    assert "growth" not in json.loads(capsys.readouterr().out)


def test_all_that_have_room_stand_somewhere(trace, stack, capsys):
    wide = {f"halls[0].circuits[{n}].breaker_a": 80 for n in range(10)}
    rack = {f"halls[0].racks[{n}].{key}": 90 for n in (0, 1) for key in ("power_kw", "cooling_kw")}
    path = stack(**wide, **rack, **{"halls[0].cooling_kw": 132})
    assert cli.main(asked(trace, path, "--halls", "--nodes", "11")) == 0
    text = capsys.readouterr().out
    assert "  more nodes: 2 of 3 more dgx-h100 have room\n    hall-a r01: 1, then r01 has no 8 free units" in text
    assert "    hall-a r02: 1, then hall hall-a is full: of what its other racks leave, it has " in text
    assert "    hall-a r03: none: rack r03 is full: it has 27.8 kW of power and may have 22 kW" in text


def test_what_is_not_limited_and_not_needed_is_said(trace, stack, capsys):
    free = [{"name": f"r0{n}", "units": 48} for n in (1, 2, 3)]
    path = stack(**{"halls[0].racks": free, "halls[0].circuits": []})
    assert cli.main(asked(trace, path, "--halls", "--nodes", "11")) == 0
    text = capsys.readouterr().out
    assert "0 of 3 more dgx-h100 have room" in text
    assert "hall-a r01, r02, r03: no limits are declared, so nobody can say" in text
    assert cli.main(asked(trace, path, "--halls", "--nodes", "4", "--rented-usd-per-gpu-hour", "0.5")) == 0
    assert "  more nodes: none are cheaper\n" in capsys.readouterr().out
    assert cli.main(asked(trace, path, "--halls", "--nodes", "4", "--wait-p50", "0", "--wait-p95", "0")) == 0
    text = capsys.readouterr().out
    assert "of today (no candidate keeps the wanted waits):" in text and "jobs wait too long" in text


def inventory(folder, gpus, slots, node="dgx01", **memory):
    path = folder / f"{node}.json"
    told = [{"id": str(n), "lanes": lanes, "filled": filled} for n, (lanes, filled) in enumerate(slots)]
    hardware = {"gpus": [{"model": "L40S", "count": gpus}] if gpus else [], "slots": told} | memory
    path.write_text(json.dumps({"node": node, "hardware": hardware}))
    return ["--inventory", str(path)]


@pytest.mark.parametrize(
    ("gpus", "slots", "words"),
    [
        (4, [(16, True)] * 4 + [(16, False)] * 3 + [(8, False)], "has 4 of 8 GPUs of its platform, and 3 free slots"),
        (4, [(16, False)] * 6, "6 free slots of 16 lanes: 4 more as far as that goes"),
        (8, [(16, False)], "1 free slots of 16 lanes: 0 more"),
        (0, [(16, None), (None, False)], "0 free slots of 16 lanes, 2 of which its BMC says too little: 0 more"),
        (4, [], "has 4 of 8 GPUs of its platform; its BMC says nothing of slots"),
    ],
)
def test_free_slots_of_pcie_servers_are_what_their_bmc_says(trace, stack, tmp_path, capsys, gpus, slots, words):
    nodes = yaml.safe_load(EXAMPLE.read_text())["config"]["ironburst:cluster"]["halls"][0]["nodes"]
    for each in nodes[1:]:
        each |= {"platform": PCIE, "height": 4}
    free = [{"name": f"r0{n}", "units": 48} for n in (1, 2, 3)]
    nothing = {"halls[0].racks": free, "halls[0].circuits": [], "halls[0].cooling_kw": None}
    path = stack(**{"halls[0].nodes": nodes} | nothing)
    more = ["--halls", "--nodes", "8", *inventory(tmp_path, gpus, slots)]
    assert cli.main(asked(trace, path, *more)) == 0
    text = capsys.readouterr().out
    assert f"  in dgx01 ({PCIE}): " in text and words in text
    assert f"  in dgx[02-08] ({PCIE}): free slots aren't known; free sockets for memory aren't known: give what" in text


@pytest.mark.parametrize(
    ("memory", "words"),
    [
        ({}, "its BMC says nothing of memory modules"),
        ({"dimms": [], "free_sockets": 0}, "its BMC says nothing of memory modules"),
        (
            {"dimms": [{"gib": 64}] * 16, "free_sockets": 8},
            "memory: 16 modules, 1024 GiB in all, and 8 free sockets: 1536 GiB with 8 more of 64 GiB",
        ),
        (
            {"dimms": [{"gib": 64}] * 8 + [{"gib": 32}] * 8, "free_sockets": 8},
            "memory: 16 modules, 768 GiB in all, and 8 free sockets",
        ),
        (
            {"dimms": [{"gib": 64}] * 15 + [{"gib": None}], "free_sockets": 8},
            "memory: 16 modules, and 8 free sockets",
        ),
        (
            {"dimms": [{"gib": 64}] * 16, "free_sockets": 0},
            "1024 GiB in all; its BMC lists no free socket: there is none, or it lists modules alone",
        ),
    ],
)
def test_what_more_memory_has_room_is_what_the_bmc_says(trace, stack, tmp_path, capsys, memory, words):
    """Of a DGX, too: its modules are no part of its GPUs' board."""
    assert cli.main(asked(trace, stack(), "--halls", "--nodes", "8", *inventory(tmp_path, 8, [], **memory))) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("  in dgx01 (dgx-h100): "))
    assert "none can be added; " in line and line.endswith(words)


@pytest.mark.parametrize(
    ("more", "text", "words"),
    [
        ([], "{}", "--inventory says what nodes could take in, which is asked with --halls"),
        (["--halls"], "{}", "dgx01.json: give what `ironburst node show NODE STACK_FILE --json` prints"),
        (["--halls"], "[7]", "dgx01.json: give what"),
        (["--halls"], '{"node": 3, "hardware": {"gpus": 3, "slots": []}}', "dgx01.json: give what"),
        (["--halls"], '{"node": "dgx77", "hardware": {"gpus": [], "slots": []}}', "dgx77 is no node of"),
        (["--halls"], None, "dgx01.json can't be read: No such file"),
    ],
)
def test_bad_inventories_are_one_sentence(trace, stack, tmp_path, capsys, more, text, words):
    path = tmp_path / "dgx01.json"
    if text is not None:
        path.write_text(text)
    assert cli.main(asked(trace, stack(), *more, "--inventory", str(path))) == 2
    said = capsys.readouterr()
    assert words in said.err and said.err.count("\n") == 1 and said.out == ""
