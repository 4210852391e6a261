"""`ironburst init --from-slurm`: saved answers of three sites, old and new shapes, become valid stack files."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ironburst import cli
from ironburst.config import load, stack

FIXTURES = Path(__file__).parents[2] / "adapters/slurm_fixtures"
NOW = datetime(2026, 11, 21, tzinfo=UTC)
META = {"meta": {"Slurm": {"version": {"major": 22, "micro": 3, "minor": 5}, "release": "22.05.3"}}, "errors": []}


def node(name, gres, cpus=128, memory_mb=1_031_000, **more):
    """As scontrol of Slurm 22.05 has it (data_parser v0.0.38), what isn't read left out."""
    old = {"name": name, "gres": gres, "cpus": cpus, "real_memory": memory_mb, "partitions": ["gpu"], "state": "idle"}
    return old | {"state_flags": [], "address": f"192.168.7.{10 + int(name[-2:])}"} | more


def saved(folder, **answers):
    folder.mkdir(exist_ok=True)
    for name, answer in answers.items():
        (folder / f"{name}.json").write_text(json.dumps(answer))
    return folder


def old_shapes(folder):
    """Eight A100 of 80 GB each, two kinds of nodes, CPU nodes beside; numbers and states as plain values."""
    a100 = [node(f"gpu{n:02}", "gpu:a100:8(S:0-1)") for n in (1, 2, 3)]
    others = [node("gpu04", "gpu:a100:8(S:0-1)", 256, 2_064_000), node("cpu01", "", partitions=["cpu"])]
    accounts = {"accounts": [{"name": "root"}, {"name": "vision"}, {"name": "nlp"}]}
    return saved(folder, nodes={"nodes": a100 + others} | META, accounts=accounts)


def new_shapes(folder):
    """Numbers as {set, infinite, number}, states as lists; names with capitals and underscores; a partition of V100."""
    figure = {"set": True, "infinite": False}
    rows = [
        node(f"DGX_{n:02}", "gpu:h200:8", partitions=["long", "short"], state=["IDLE", "PLANNED"]) for n in range(1, 5)
    ]
    rows += [node("old_01", "gpu:v100:4", partitions=["old"], state=["DOWN"])]
    rows += [node("aws_01", "gpu:h200:8", partitions=["cloud"], state=["IDLE", "CLOUD"])]
    for row in rows:
        row["cpus"], row["real_memory"] = figure | {"number": row["cpus"]}, figure | {"number": row["real_memory"]}
    meta = {"meta": {"slurm": {"release": "25.11.1"}}}
    associations = {"associations": [{"account": "physics", "user": ""}, {"account": "physics", "user": "ann"}]}
    return saved(folder, nodes={"nodes": rows} | meta, associations=associations)


def sinfo_alone(folder):
    row = {
        "nodes": {"nodes": ["n[01-02]"]},
        "node": {"state": ["IDLE"]},
        "gres": {"total": "gpu:h100:8(S:0-1)"},
        "cpus": {"maximum": 112},
        "memory": {"maximum": 2_000_000},
        "partition": {"name": "batch"},
    }
    return saved(folder, sinfo={"sinfo": [row], "meta": {"slurm": {"release": "24.11.5"}}})


SITES = {
    "old shapes": (old_shapes, ["--platform", "a100=dgx-a100-640gb"]),
    "new shapes": (new_shapes, ["--platform", "h200=dgx-h200", "--network", "10.4.0.0/22"]),
    "sinfo alone": (sinfo_alone, ["--platform", "h100=dgx-h100", "--network", "10.4.0.0/22"]),
}


def init(folder, out, *more):
    asked = [
        "--name",
        "site",
        "--head",
        "10.0.0.5",
        "--region",
        "us-east-1",
        "--budget",
        "5000",
        "--output",
        str(out),
        *more,
    ]
    return cli.main(["init", "--from-slurm", str(folder), *asked])


@pytest.mark.parametrize("site", SITES)
def test_a_site_becomes_a_stack_file_that_validates(tmp_path, capsys, site):
    make, flags = SITES[site]
    out = tmp_path / "Pulumi.site.yaml"
    assert init(make(tmp_path / "answers"), out, *flags) == 0
    assert f"{out}: valid; next: `ironburst lock" in capsys.readouterr().out
    assert cli.main(["validate", str(out)]) == 0
    declared = stack.load_valid(out, now=NOW).config
    assert not declared.slurm.managed and all(not nodes.managed for nodes in declared.halls[0].nodes)
    names = [name for nodes in declared.halls[0].nodes for name in nodes.names]
    expected = {
        "old shapes": (["gpu01", "gpu02", "gpu03", "gpu04"], "gpu", "22.05"),
        "new shapes": (["DGX_01", "DGX_02", "DGX_03", "DGX_04"], "long", "25.11"),
        "sinfo alone": (["n01", "n02"], "batch", "24.11"),
    }[site]
    assert (names, declared.slurm.home_partition, declared.software.slurm) == expected
    assert cli.main(["slurm", "snippet", str(out)]) == 0


# Slurm of the head: of rented nodes, which may be two releases older
OF_RENTED = {"23.02": "22.05", "23.11": "23.11", "24.11": "24.11", "25.05": "25.05", "26.05": "25.11"}


@pytest.mark.parametrize("version", OF_RENTED)
def test_every_shape_of_nodes_is_read(tmp_path, version):
    answers = saved(tmp_path / "answers", nodes=json.loads((FIXTURES / version / "nodes.json").read_text()))
    flags = ("--platform", "h100=dgx-h100", "--network", "10.0.0.0/24")
    assert init(answers, tmp_path / "Pulumi.site.yaml", *flags) == 0
    declared = load.load(tmp_path / "Pulumi.site.yaml")
    assert declared.halls[0].nodes[0].names == ["gpu2"] and declared.software.slurm == OF_RENTED[version]


def test_accounts_and_what_is_left_out_are_told(tmp_path, capsys):
    out = tmp_path / "Pulumi.site.yaml"
    assert init(new_shapes(tmp_path / "answers"), out, *SITES["new shapes"][1]) == 0
    assert "not in partition long, so left out: old_01" in capsys.readouterr().err
    assert "budget.accounts): physics" in out.read_text() and "aws_01" not in out.read_text()


@pytest.mark.parametrize(
    ("site", "flags", "words"),
    [
        ("old shapes", [], "8 x a100 may be dgx-a100-320gb, dgx-a100-640gb"),
        ("new shapes", ["--platform", "h200=dgx-h200", "--network", "x"], "'x' is not an IPv4 network"),
        ("new shapes", ["--platform", "h200=dgx-h20"], "Unknown platform 'dgx-h20': did you mean 'dgx-h200'?"),
        ("sinfo alone", ["--platform", "h100=dgx-h100"], "--network is needed: Slurm knows the nodes by names"),
        ("sinfo alone", ["--partition", "x"], "partitions with some: batch"),
        ("old shapes", ["--platform", "a100=dgx-a100-640gb", "--rent", "p5"], "write TYPE=NODES"),
        ("old shapes", ["--platform", "a100=dgx-a100-640gb", "--wait", "20"], "is not a duration"),
        ("old shapes", ["--platform", "a100=dgx-a100-640gb", "--rent", "p4d.24xlarge=2"], "less_gpu_memory: true"),
    ],
)
def test_what_is_not_sure_is_refused_and_nothing_is_written(tmp_path, capsys, site, flags, words):
    out = tmp_path / "Pulumi.site.yaml"
    assert init(SITES[site][0](tmp_path / "answers"), out, *flags) == 2
    assert words in capsys.readouterr().err and not out.exists()


def test_bad_folders(tmp_path, capsys):
    for folder, words in (
        (tmp_path / "none", "is no folder"),
        (saved(tmp_path / "empty"), "has no nodes (no .json)"),
        (saved(tmp_path / "cpus", nodes={"nodes": [node("cpu01", "")]}), "no node has GPUs in its Gres"),
        (saved(tmp_path / "odd", nodes={"nodes": [{"name": "x"}]}), "a node has a shape that isn't known"),
    ):
        assert init(folder, tmp_path / "Pulumi.site.yaml") == 2
        assert words in capsys.readouterr().err
    (tmp_path / "empty/nodes.json").write_text("slurm_load_node error")
    assert init(tmp_path / "empty", tmp_path / "Pulumi.site.yaml") == 2
    assert "can't be read as JSON" in capsys.readouterr().err


def test_a_file_that_is_there_is_kept(tmp_path, capsys):
    out = tmp_path / "Pulumi.site.yaml"
    out.write_text("mine")
    assert init(old_shapes(tmp_path / "answers"), out) == 2
    assert out.read_text() == "mine" and "is there already" in capsys.readouterr().err
