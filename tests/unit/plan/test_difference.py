"""`ironburst diff`: what differs comes first, what always does is counted, and no reference of a secret is shown."""

import json
from pathlib import Path

import pytest
import yaml

from ironburst.cli import main

ROOT = Path(__file__).parents[3]


@pytest.fixture
def stacks(tmp_path, monkeypatch):
    """`stacks(change)`: the folder of a project with staging and other, which is staging as `change` makes it."""

    def make(change=lambda declared: None, lock=lambda text: text):
        (tmp_path / "stacks").mkdir()
        text = (ROOT / "stacks/Pulumi.staging.yaml").read_text()
        stack = yaml.safe_load(text)
        change(stack["config"]["ironburst:cluster"])
        (tmp_path / "stacks/Pulumi.staging.yaml").write_text(text)
        (tmp_path / "stacks/Pulumi.other.yaml").write_text(yaml.safe_dump(stack))
        locked = (ROOT / "stacks/staging.lock.yaml").read_text()
        (tmp_path / "stacks/staging.lock.yaml").write_text(locked)
        (tmp_path / "stacks/other.lock.yaml").write_text(lock(locked))
        monkeypatch.chdir(tmp_path)

    return make


def diff(capsys, *options):
    code = main(["diff", "staging", "other", *map(str, options)])
    out, err = capsys.readouterr()
    return code, out, err


def test_equal_ones_have_no_difference(stacks, capsys):
    stacks()
    assert diff(capsys) == (0, "0 differences\n", "")


def test_the_lock_comes_before_the_config(stacks, capsys):
    stacks(
        lambda declared: declared["cloud"]["pools"][0].update(max_nodes=4),
        lambda text: text.replace("driver: 580.95.05", "driver: 580.105.08"),
    )
    code, out, _ = diff(capsys)
    rows = [line.split() for line in out.splitlines()]
    assert code == 0 and rows[1][0] == "lock" and {"580.95.05", "580.105.08"} <= set(rows[1])
    assert ["cloud", "pools.p5.max_nodes", "1", "4"] in rows


def test_a_pool_that_one_lacks_is_one_difference(stacks, capsys):
    def more(declared):
        declared["cloud"]["pools"].append(
            {"name": "p4d", "instance_type": "p4d.24xlarge", "max_nodes": 1, "zones": ["us-east-1a"]}
        )

    stacks(more)
    _, out, _ = diff(capsys)
    assert [line.split() for line in out.splitlines() if "p4d" in line] == [["cloud", "pools.p4d", "-", "there"]]


def own(declared):
    declared["name"] = "other"
    declared["halls"][0]["nodes"][1]["addresses"] = "10.20.0.12"
    declared["scheduler"]["munge_key"] = "aws-secretsmanager:other/munge-key"


def test_what_is_each_ones_own_is_counted_and_references_are_not_shown(stacks, capsys):
    stacks(own)
    _, out, _ = diff(capsys)
    assert out == "0 differences; 3 values of their own differ, too (--all)\n"
    _, out, _ = diff(capsys, "--all")
    assert "10.20.0.12" in out and "munge_key" in out and "munge-key" not in out
    _, out, _ = diff(capsys, "--json")
    assert "munge-key" not in out and all(each["own"] for each in json.loads(out))


def test_more_nodes_are_a_difference_but_not_their_names(stacks, capsys):
    def more(declared):
        declared["halls"][0]["nodes"][1] |= {
            "names": "dgx[01-02]",
            "addresses": "10.20.0.[11-12]",
            "units": [1, 9],
            "bmc": declared["halls"][0]["nodes"][1]["bmc"] | {"addresses": "https://10.20.8.[11-12]"},
        }

    stacks(more, lambda text: text.replace("nodes: dgx01", "nodes: dgx[01-02]"))
    _, out, _ = diff(capsys)
    assert [line.split() for line in out.splitlines()[1:-1]] == [["nodes", "dgx-h100.count", "1", "2"]]


def test_a_pool_without_an_image_comes_first(stacks, capsys, tmp_path):
    stacks(own)
    image = {"Name": "/ironburst/staging/p5/image", "Value": "ami-0123"}
    for name, parameters in (("a", [image]), ("b", [])):
        (tmp_path / name).write_text(json.dumps({"Parameters": parameters}))
    _, out, _ = diff(capsys, "--images", tmp_path / "a", tmp_path / "b")
    assert out.splitlines()[1].split() == ["image", "pool", "p5", "ami-0123", "none"]
    code, _, err = diff(capsys, "--images", tmp_path / "a", ROOT / "README.md")
    assert code == 2 and "get-parameters-by-path" in err


def test_a_stack_that_is_not_there_is_bad_input(stacks, capsys):
    stacks()
    code = main(["diff", "staging", "production"])
    assert code == 2 and "stacks/Pulumi.production.yaml" in capsys.readouterr().err
