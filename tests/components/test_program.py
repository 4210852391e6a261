"""The program itself: small, and driven by the stack's one key."""

import json
import runpy
from pathlib import Path

import pulumi
import pytest
import yaml

from tests.fakes.solver import solutions

ROOT = Path(__file__).parents[2]


def configured(monkeypatch, value, region="us-east-1"):
    monkeypatch.setenv("PULUMI_CONFIG", json.dumps({"ironburst:cluster": json.dumps(value), "aws:region": region}))


def test_the_program_is_small():
    lines = (ROOT / "__main__.py").read_text().splitlines()
    assert len(lines) <= 30


def test_the_project_names_our_plugin_alone_and_keeps_stacks_in_their_folder():
    project = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())
    assert project["name"] == "ironburst" and project["stackConfigDir"] == "stacks"
    assert project["plugins"] == {"providers": [{"name": "baremetal", "path": "providers/baremetal"}]}


def test_it_exports_the_document(run, value, monkeypatch):
    configured(monkeypatch, value)
    exported = {}
    monkeypatch.setattr(pulumi, "export", exported.__setitem__)

    def program():
        runpy.run_path(str(ROOT / "__main__.py"))
        return exported

    result = run(program).result
    assert result["cluster"]["cluster"] == "lab" and result["cluster"]["version"] == 6
    assert [each.split(",")[0] for each in result["estimates"]] == ["fixed group fixed", "network", "burst pool p5"]
    assert result["controller_role_arn"].endswith("lab-controller")


def test_a_bad_declaration_is_one_sentence_and_touches_nothing(run, value, monkeypatch):
    value["cloud"]["pools"][0]["instance_type"] = "p5.48xlrage"
    configured(monkeypatch, value)
    registered = []
    with pytest.raises(pulumi.RunError, match=r"did you mean 'p5.48xlarge'"):
        run(lambda: runpy.run_path(str(ROOT / "__main__.py")) and registered.append(1))
    assert registered == []


def test_the_declaration_may_be_in_a_file_beside_the_stack_file(run, value, monkeypatch, tmp_path):
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / "lab.cluster.yaml").write_text(yaml.safe_dump(value))
    (tmp_path / "__main__.py").write_text((ROOT / "__main__.py").read_text())
    exported = {}
    monkeypatch.setattr(pulumi, "export", exported.__setitem__)
    configured(monkeypatch, {"file": "lab.cluster.yaml"})
    assert run(lambda: runpy.run_path(str(tmp_path / "__main__.py")) and exported).result["cluster"]["cluster"] == "lab"
    configured(monkeypatch, {"file": "nobodys.cluster.yaml"})
    with pytest.raises(pulumi.RunError, match=r"nobodys.cluster.yaml: can't be read"):
        run(lambda: runpy.run_path(str(tmp_path / "__main__.py")))


def test_two_regions_are_refused(run, value, monkeypatch):
    configured(monkeypatch, value, region="eu-west-1")
    with pytest.raises(pulumi.RunError, match="aws:region"):
        run(lambda: runpy.run_path(str(ROOT / "__main__.py")))


def program(run, monkeypatch, value, stack):
    configured(monkeypatch, value)
    monkeypatch.setattr(pulumi, "get_stack", lambda: stack)
    exported, warned = {}, []
    monkeypatch.setattr(pulumi, "export", exported.__setitem__)
    monkeypatch.setattr(pulumi.log, "warn", lambda message, *_, **__: warned.append(message))
    return run(lambda: runpy.run_path(str(ROOT / "__main__.py")) and exported).result, warned


def test_it_goes_by_the_lock_of_its_stack(run, value, monkeypatch):
    value["software"]["driver"] = "580"  # alone it would get the newest
    result, warned = program(run, monkeypatch, value, "lab")
    drivers = {host["software"]["driver"] for host in result["cluster"]["hosts"]}
    assert drivers == {None, "580.95.05"} and all("http://" in each for each in warned)


def test_the_software_is_solved_once(run, value, monkeypatch):
    made = solutions(monkeypatch)
    program(run, monkeypatch, value, "lab")
    assert len(made) == 1
    program(run, monkeypatch, value, "nobodys")
    assert len(made) == 2, "and once without a lock"


def test_without_a_lock_it_solves_and_warns(run, value, monkeypatch):
    result, warned = program(run, monkeypatch, value, "nobodys")
    of_lock = [each for each in warned if "http://" not in each]  # of the lab's BMCs
    assert len(of_lock) == 1 and "no versions are locked" in of_lock[0]
    assert result["cluster"]["hosts"][1]["software"]["driver"] == "580.95.05"


def test_a_stale_lock_stops_it_and_names_the_command(run, value, monkeypatch):
    value["software"]["driver"] = "580.105.08"
    with pytest.raises(pulumi.RunError, match=r"doesn't fit the stack.*run `ironburst lock .*stacks/Pulumi.lab.yaml`"):
        program(run, monkeypatch, value, "lab")


def test_a_conflict_stops_it_and_names_the_rule(run, value, monkeypatch):
    value["software"]["driver"] = "535"
    with pytest.raises(pulumi.RunError, match=r"ways out: driver: 580 .*\(CUD-001\)"):
        program(run, monkeypatch, value, "lab")
