"""The program itself: small, and driven by the stack's one key."""

import json
import runpy
from pathlib import Path

import pulumi
import pytest
import yaml

ROOT = Path(__file__).parents[2]


def configured(monkeypatch, value, region="us-east-1"):
    monkeypatch.setenv("PULUMI_CONFIG", json.dumps({"ironburst:cluster": json.dumps(value), "aws:region": region}))


def test_the_program_is_small():
    lines = (ROOT / "__main__.py").read_text().splitlines()
    assert len(lines) <= 30


def test_the_project_names_our_plugin_alone_and_keeps_stacks_in_their_folder():
    project = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())
    assert project["name"] == "ironburst" and project["stackConfigDir"] == "stacks"
    assert project["plugins"] == {"providers": [{"name": "baremetal", "path": "plugins/baremetal"}]}


def test_it_exports_the_document(run, value, monkeypatch):
    configured(monkeypatch, value)
    exported = {}
    monkeypatch.setattr(pulumi, "export", exported.__setitem__)

    def program():
        runpy.run_path(str(ROOT / "__main__.py"))
        return exported

    result = run(program).result
    assert result["cluster"]["cluster"] == "lab" and result["cluster"]["version"] == 1
    assert len(result["estimates"]) == 2
    assert result["controller_role_arn"].endswith("lab-controller")


def test_a_bad_declaration_is_one_sentence_and_touches_nothing(run, value, monkeypatch):
    value["cloud"]["pools"][0]["instance_type"] = "p5.48xlrage"
    configured(monkeypatch, value)
    registered = []
    with pytest.raises(pulumi.RunError, match="did you mean 'p5.48xlarge'"):
        run(lambda: runpy.run_path(str(ROOT / "__main__.py")) and registered.append(1))
    assert registered == []


def test_two_regions_are_refused(run, value, monkeypatch):
    configured(monkeypatch, value, region="eu-west-1")
    with pytest.raises(pulumi.RunError, match="aws:region"):
        run(lambda: runpy.run_path(str(ROOT / "__main__.py")))
