"""A whole stack: its secrets, its file, `ironburst validate`."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from ironburst.cli import main
from ironburst.config import load, stack

ROOT = Path(__file__).parents[3]
LAB = ROOT / "stacks/Pulumi.lab.yaml"
NOW = datetime(2026, 11, 21, tzinfo=UTC)


@pytest.mark.parametrize("reference", ["env:IRONBURST_TEST_NOT_SET", "file:no/such/file"])
def test_a_reference_that_does_not_resolve(declared, reference):
    declared["halls"][0]["nodes"][0]["bmc"]["password"] = reference
    findings = list(stack.secret_references(load.from_value(declared)))
    assert [f.path for f in findings] == ["config.ironburst:cluster.halls[0].nodes[0].bmc.password"]
    assert "does not resolve" in findings[0].message


def stack_file(tmp_path, value):
    path = tmp_path / "Pulumi.test.yaml"
    path.write_text(yaml.safe_dump({"config": {load.KEY: value}}))
    return path


def test_validate_says_valid_and_exits_0(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert main(["validate", str(LAB)]) == 0
    assert "valid" in capsys.readouterr().out


def test_validate_exits_2_with_findings_as_json(tmp_path, capsys, declared):
    declared["budget"]["usd_per_month"] = 0
    assert main(["validate", str(stack_file(tmp_path, declared)), "--json"]) == 2
    report = json.loads(capsys.readouterr().out)
    assert not report["valid"]
    assert set(report["findings"][0]) == {"path", "value", "rule", "message", "severity", "file", "line"}
    assert report["findings"][0]["value"] == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "can't be read"),
        ("a: [", "is not YAML"),
        ("config: {}", "has no key"),
        ("- 1", "has no key"),
        ("", "has no key"),
    ],
)
def test_a_file_that_is_no_stack(tmp_path, capsys, text, words):
    path = tmp_path / "Pulumi.x.yaml"
    if text is not None:
        path.write_text(text)
    assert main(["validate", str(path)]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("path", sorted((ROOT / "stacks").glob("Pulumi.*.yaml")), ids=lambda p: p.name)
def test_every_stack_in_the_repository_is_valid(path):
    warnings = stack.load_valid(path, now=NOW).warnings
    assert [w for w in warnings if w.severity == "error"] == []


def test_el_8_is_refused_with_the_reason(tmp_path, capsys):
    declared = yaml.safe_load((ROOT / "stacks" / "Pulumi.lab.yaml").read_text())
    declared["config"]["ironburst:cluster"]["software"]["os"] = "rhel8"
    path = tmp_path / "Pulumi.lab.yaml"
    path.write_text(yaml.safe_dump(declared))
    assert main(["validate", str(path)]) == 2
    said = capsys.readouterr().err
    assert "software.os" in said and "rhel8 can't be managed (its Python is 3.6, Ansible needs 3.8)" in said


def beside(folder, declared, name="lab.cluster.yaml"):
    """A stack file whose declaration is in another one."""
    if "/" not in name:
        (folder / name).write_text(yaml.safe_dump(declared, sort_keys=False))
    return stack_file(folder, {"file": name})


def test_a_declaration_in_a_file_beside_the_stack_file(tmp_path, capsys, declared):
    path = beside(tmp_path, declared)
    assert load.load(path) == load.from_value(declared)
    assert main(["validate", str(path)]) == 0
    declared["budget"]["usd_per_month"] = 0
    beside(tmp_path, declared)
    capsys.readouterr()
    assert main(["validate", str(path), "--json"]) == 2
    finding = json.loads(capsys.readouterr().out)["findings"][0]
    line = (tmp_path / "lab.cluster.yaml").read_text().splitlines().index("  usd_per_month: 0") + 1
    assert (finding["file"], finding["line"]) == (str(tmp_path / "lab.cluster.yaml"), line)
    assert main(["validate", str(path)]) == 2
    assert f"{tmp_path / 'lab.cluster.yaml'}:{line}: error: config.ironburst:cluster.budget" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nowhere/lab.cluster.yaml", "in the stack file's folder"),
        ("../lab.cluster.yaml", "in the stack file's folder"),
        ("Pulumi.other.yaml", "which Pulumi takes for a stack file"),
        ("lab.cluster.json", "name a YAML file"),
        (["lab.cluster.yaml"], "name a YAML file"),
    ],
)
def test_a_file_that_cant_be_beside(tmp_path, capsys, declared, name, words):
    assert (
        main(
            [
                "validate",
                str(
                    beside(tmp_path, declared, name) if isinstance(name, str) else stack_file(tmp_path, {"file": name})
                ),
            ]
        )
        == 2
    )
    assert words in capsys.readouterr().err


def test_a_file_beside_that_is_missing_or_no_yaml(tmp_path, capsys):
    path = stack_file(tmp_path, {"file": "lab.cluster.yaml"})
    assert main(["validate", str(path)]) == 2
    assert "lab.cluster.yaml" in (said := capsys.readouterr().err) and "can't be read" in said
    (tmp_path / "lab.cluster.yaml").write_text("name: [")
    assert main(["validate", str(path)]) == 2
    assert "lab.cluster.yaml" in capsys.readouterr().err


def test_what_an_example_has_as_comments_is_valid(tmp_path):
    """Keys for some sites: in front of each stands `# `, and nothing else has to change."""
    text = (LAB.parent / "Pulumi.staging.yaml").read_text()
    whole, count = re.subn(r"(?m)^( *)# (\w+: \{)", r"\1\2", text)
    assert count == 3
    path = tmp_path / "Pulumi.staging.yaml"
    path.write_text(whole)
    cloud = stack.load_valid(path, now=NOW).config.cloud
    assert cloud.tags and cloud.iam and cloud.price["p5.48xlarge"].spot_max
