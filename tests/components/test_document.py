"""`ironburst document`: of a hall alone it says what Pulumi's output says; what only Pulumi knows it refuses."""

import json
from pathlib import Path

import pytest
import yaml

from ironburst import document
from ironburst.cli import main


@pytest.fixture
def hall(value):
    """The lab's declaration without its cloud."""
    return {key: part for key, part in value.items() if key not in ("cloud", "budget", "burst")}


def said(tmp_path, capsys, value):
    """(exit code, standard output, standard error) of the verb on a stack file with this declaration."""
    path = tmp_path / "Pulumi.hall.yaml"
    path.write_text(yaml.safe_dump({"config": {"ironburst:cluster": value}}))
    code = main(["document", str(path)])
    return code, *capsys.readouterr()


def test_it_is_what_pulumi_exports(cluster, hall, tmp_path, capsys):
    code, out, err = said(tmp_path, capsys, hall)
    assert code == 0 and json.loads(out) == cluster(hall).result
    assert "no versions are locked" in err and "ironburst lock" in err
    assert [host.name for host in document.parse(json.loads(out)).hosts] == ["head", "dgx01", "dgx02"]


def test_the_lock_beside_it_is_in_it(hall, tmp_path, capsys):
    path = tmp_path / "Pulumi.hall.yaml"
    path.write_text(yaml.safe_dump({"config": {"ironburst:cluster": hall}}))
    assert main(["lock", str(path)]) == 0
    capsys.readouterr()
    assert main(["document", str(path)]) == 0
    out, err = capsys.readouterr()
    locked = yaml.safe_load((tmp_path / "hall.lock.yaml").read_text())["groups"]["hall-a/dgx[01-02]"]["software"]
    host = next(host for host in json.loads(out)["hosts"] if host["name"] == "dgx01")
    packages = {role: specs for role, specs in host["software"]["packages"].items() if specs}
    assert packages == locked["packages"] and "no versions are locked" not in err
    stale = (tmp_path / "hall.lock.yaml").read_text().replace("os: debian13", "os: debian12")
    (tmp_path / "hall.lock.yaml").write_text(stale)
    assert main(["document", str(path)]) == 2
    out, err = capsys.readouterr()
    assert not out and "doesn't fit the stack" in err and "ironburst lock" in err


@pytest.mark.parametrize("kept", [["groups"], ["pools"]])
def test_what_only_pulumi_knows_is_refused(value, tmp_path, capsys, kept):
    for part in {"groups", "pools"} - {*kept}:
        value["cloud"].pop(part)
    if kept == ["groups"]:
        value["cloud"].pop("images"), value.pop("budget")
    code, out, err = said(tmp_path, capsys, value)
    name = {"groups": "group fixed", "pools": "pool p5"}[kept[0]]
    assert code == 2 and not out and err.count("\n") == 1, err
    assert f"declares {name}, whose ids and addresses only Pulumi knows: run `pulumi up`" in err


def test_an_invalid_stack_says_why(hall, tmp_path, capsys):
    code, out, err = said(tmp_path, capsys, hall | {"name": "Not a name"})
    assert code == 2 and not out and "name" in err and "Not a name" in err


def test_no_document_of_the_examples_with_a_cloud(capsys):
    for path in sorted(Path("stacks").glob("Pulumi.*.yaml")):
        assert main(["document", str(path)]) == 2, path
    assert "only Pulumi knows" in capsys.readouterr().err
