"""`ironburst shares`: the table, and what a scheduler is told."""

import json

import pytest
import yaml

from ironburst import cli, document
from tests.playbooks import sample

SHARES = [
    {"account": "vision", "guaranteed_gpus": 4, "over_quota": True, "weight": 2, "max_gpus": None, "nodes": ["dgx02"]},
    {"account": "nlp", "guaranteed_gpus": 4, "over_quota": True, "weight": 1, "max_gpus": None, "nodes": []},
]


@pytest.fixture
def shared(tmp_path, monkeypatch):
    path = tmp_path / "cluster.json"
    given = [document.Share(**share) for share in SHARES]
    path.write_text(sample.lab_document().model_copy(update={"shares": given}).model_dump_json())
    monkeypatch.setenv("IRONBURST_DOCUMENT", str(path))


def test_the_table(shared, capsys):
    assert cli.main(["shares"]) == 0
    first, *rows = capsys.readouterr().out.splitlines()
    assert first.split("  ")[0] == "account" and [row.split() for row in rows] == [
        ["vision", "4", "0", "8", "2", "8"],
        ["nlp", "4", "0", "8", "1", "0"],
    ]


def test_with_less_in_service_the_guarantees_are_less_and_it_is_told(shared, capsys):
    assert cli.main(["shares", "--gpus", "6", "--json"]) == 0
    rows = {row["account"]: row for row in json.loads(capsys.readouterr().out)}
    assert [rows[name]["guaranteed_gpus"] for name in ("vision", "nlp")] == [3, 3]
    assert [rows[name]["short_gpus"] for name in ("vision", "nlp")] == [1, 1]


@pytest.mark.parametrize(
    ("scheduler", "kinds"),
    [
        ("kubernetes", {"PriorityClass", "Namespace", "ResourceQuota", "ValidatingAdmissionPolicy"}),
        ("kueue", {"ResourceFlavor", "Cohort", "ClusterQueue", "LocalQueue"}),
    ],
)
def test_what_kubernetes_is_told_is_yaml(shared, capsys, scheduler, kinds):
    assert cli.main(["shares", "--for", scheduler]) == 0
    out = capsys.readouterr().out
    assert kinds <= {each["kind"] for each in yaml.safe_load_all(out)}
    assert "# kubectl taint node dgx02 ironburst.io/team=vision:NoSchedule --overwrite\n" in out


def test_kueue_covers_what_pods_ask_for_beside_gpus(tmp_path, monkeypatch, capsys):
    """A ClusterQueue admits nothing that asks for a resource that it doesn't cover, not even at home."""
    made = sample.lab_document()
    told = made.scheduler.model_copy(update={"home_resources": ["rdma/rdma_shared_device_a"]})
    path, given = tmp_path / "cluster.json", [document.Share(**share) for share in SHARES]
    path.write_text(made.model_copy(update={"shares": given, "scheduler": told}).model_dump_json())
    monkeypatch.setenv("IRONBURST_DOCUMENT", str(path))
    assert cli.main(["shares", "--for", "kueue"]) == 0
    queues = [each for each in yaml.safe_load_all(capsys.readouterr().out) if each["kind"] == "ClusterQueue"]
    for queue in queues:
        covered = [name for group in queue["spec"]["resourceGroups"] for name in group["coveredResources"]]
        assert {"hugepages-2Mi", "rdma/rdma_shared_device_a", "vpc.amazonaws.com/efa"} <= set(covered)
        assert len(covered) == len(set(covered))


def test_what_slurm_is_told_are_commands(shared, capsys):
    assert cli.main(["shares", "--for", "slurm"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("sacctmgr --immediate --quiet ") for line in lines)
    assert any("add qos vision-guaranteed " in line and "GrpTRES=gres/gpu=4" in line for line in lines)


@pytest.mark.parametrize(
    ("arguments", "words"), [(["--gpus", "99"], "the shared nodes have 8"), (["--gpus", "-1"], "have 8")]
)
def test_bad_input_is_one_sentence(shared, capsys, arguments, words):
    assert cli.main(["shares", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_without_shares_there_is_nothing_to_say(tmp_path, monkeypatch, capsys):
    path = tmp_path / "cluster.json"
    path.write_text(sample.lab_document().model_dump_json())
    assert cli.main(["shares", "--document", str(path)]) == 2
    assert "declares no `shares`" in capsys.readouterr().err
