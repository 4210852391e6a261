"""`ironburst lock`: the file beside the stack, sticky, checked, refused when damaged; validate and the Pulumi program
go by it.
"""

import copy
import dataclasses
import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from ironburst import catalog
from ironburst.cli import main
from ironburst.config import load, lockfile
from ironburst.config.stack import load_valid
from ironburst.document import build
from tests.fakes.solver import solutions

ROOT = Path(__file__).parents[3]
STACKS = sorted((ROOT / "stacks").glob("Pulumi.*.yaml"))
NOW = datetime(2026, 11, 21, tzinfo=UTC)
DGX = "hall-a/dgx[01-02]"


class Stack:
    """A stack file in a folder of its own, with its lock."""

    def __init__(self, folder: Path):
        self.file, self.lock = folder / "Pulumi.lab.yaml", folder / "lab.lock.yaml"
        self.value = load.read_value(ROOT / "stacks/Pulumi.lab.yaml")
        for nodes in self.value["halls"][0]["nodes"]:
            nodes["bmc"]["addresses"] = nodes["bmc"]["addresses"].replace("http:", "https:")  # nothing to warn of
        self.value["cloud"]["price"] = {"p5.48xlarge": {"on_demand": 50.0}}
        self.software = self.value["software"]
        self.save()

    def save(self):
        self.file.write_text(yaml.safe_dump({"config": {"aws:region": "us-east-1", load.KEY: self.value}}))

    def run(self, *flags, verb="lock"):
        return main([verb, str(self.file), *flags])

    def locked(self):
        return yaml.safe_load(self.lock.read_text())["groups"]

    def edit(self, old, new):
        text = self.lock.read_text()
        assert old in text
        self.lock.write_text(text.replace(old, new))


@pytest.fixture
def stack(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)  # the lab's secrets are named relative to it
    return Stack(tmp_path)


@pytest.mark.parametrize("path", STACKS, ids=lambda path: path.name)
def test_the_locks_in_the_repository_fit_their_stacks(path):
    plan = lockfile.plan(load.load(path), path)
    assert plan.fits, f"run `ironburst lock {path.name}`: {[str(change) for change in plan.changes]}"
    assert lockfile.text(path, plan.lock) == lockfile.path_of_lock(path).read_text(), (
        "written by another version: lock anew"
    )


def test_the_lock_has_a_set_for_every_group_and_says_who_wrote_it(stack):
    assert stack.run() == 0
    assert list(stack.locked()) == ["hall-a/head", DGX, "group/fixed", "pool/p5"]
    dgx = stack.locked()[DGX]
    assert (dgx["nodes"], dgx["gpu"], dgx["gpus"], dgx["partition"]) == ("dgx[01-02]", "H100 SXM5 80GB", 8, "home")
    assert (dgx["software"]["driver"], dgx["software"]["cuda"]) == ("580.95.05", "13.0")
    head = stack.lock.read_text().splitlines()[:2]
    assert all(line.startswith("#") for line in head) and "Pulumi.lab.yaml" in head[0] and "`ironburst lock`" in head[0]
    assert oct(stack.lock.stat().st_mode)[-3:] == "644"


def test_locking_again_changes_not_a_byte(stack):
    stack.run()
    before, time = stack.lock.read_bytes(), stack.lock.stat().st_mtime_ns
    assert stack.run() == 0 and stack.run("--upgrade") == 0
    assert (stack.lock.read_bytes(), stack.lock.stat().st_mtime_ns) == (before, time)


def test_another_date_of_the_catalogue_alone_changes_nothing(stack):
    stack.run()
    stack.edit("catalogue: '2026-11-21'", "catalogue: '2026-10-01'")
    assert stack.run("--check") == 0 and stack.run() == 0
    assert "2026-10-01" in stack.lock.read_text()


def test_a_branch_stays_at_its_locked_version_until_an_upgrade(stack, capsys):
    stack.run()
    stack.software["driver"] = 580  # as people write it, without quotes
    stack.save()
    assert stack.run("--check") == 0
    assert stack.run() == 0 and stack.locked()[DGX]["software"]["driver"] == "580.95.05"
    capsys.readouterr()
    assert stack.run("--upgrade") == 0
    out = capsys.readouterr().out
    assert f"{DGX}: driver 580.95.05 -> 580.178.04 (newest of branch 580 that the partition can take; security: " in out
    assert f"{DGX}: fabric_manager 580.95.05 -> 580.178.04 (follows the driver)" in out
    assert {one["software"]["driver"] for one in stack.locked().values()} == {None, "580.178.04"}
    assert stack.run("--check") == 0


def test_an_upgrade_names_the_security_bulletins_that_the_newer_driver_has(stack, capsys):
    stack.software["driver"] = "580"
    stack.save()
    stack.run()
    stack.edit("580.178.04", "580.126.20")
    capsys.readouterr()
    assert stack.run("--upgrade") == 0
    said = capsys.readouterr()
    of_driver = next(line for line in said.out.splitlines() if line.startswith(f"{DGX}: driver "))
    assert "security: NVIDIA bulletins 5821 (2026-05), 5861 (2026-09): CVE-2025-33221" in of_driver
    assert "and 10 more, CVSS up to 8.8)" in of_driver and "5747" not in of_driver, "which 580.126.20 has"
    assert said.err == "", "nothing lacks"


def test_an_upgrade_to_a_driver_that_closes_nothing_names_no_bulletin(stack, capsys, monkeypatch):
    stack.software["driver"] = "580"
    stack.save()
    stack.run()
    stack.edit("580.178.04", "580.173.02")
    facts = catalog.software_facts()
    known = tuple(each for each in facts.bulletins if each.bulletin != "5861")
    monkeypatch.setattr(catalog, "software_facts", lambda: dataclasses.replace(facts, bulletins=known))
    capsys.readouterr()
    assert stack.run("--upgrade") == 0
    out = capsys.readouterr().out
    assert f"{DGX}: driver 580.173.02 -> 580.178.04 (newest of branch 580 that the partition can take)" in out
    assert "bulletin" not in out


def test_a_declared_driver_without_the_fixes_is_warned_of_by_an_upgrade(stack, capsys):
    stack.run()
    capsys.readouterr()
    assert stack.run() == 0 and "bulletin" not in capsys.readouterr().err
    assert stack.run("--upgrade") == 0
    (line,) = capsys.readouterr().err.splitlines()
    groups = f"{DGX}, group/fixed, pool/p5"
    assert f"warning: {groups}: driver 580.95.05 lacks the fixes of NVIDIA bulletins 5747 (2026-01), 5821" in line
    assert "580.178.04 has them: let the stack ask for it, or for branch 580" in line
    stack.run("--upgrade", "--json")
    (sentence,) = json.loads(capsys.readouterr().out)["insecure"]
    assert sentence in line


def test_only_what_must_change_changes(stack):
    stack.software.update(driver="580", container_toolkit=None, dcgm="4.4.1")
    stack.save()
    stack.run()
    stack.edit("580.178.04", "580.105.08")
    assert stack.run("--check") == 0, "another version that the stack allows fits"
    stack.software["dcgm"] = "4.6.0"
    stack.save()
    assert stack.run() == 0
    software = stack.locked()[DGX]["software"]
    assert (software["driver"], software["dcgm"]) == ("580.105.08", "4.6.0")


def test_nodes_that_are_added_keep_what_was_locked(stack):
    stack.software["driver"] = "580"
    stack.save()
    stack.run()
    stack.edit("580.178.04", "580.105.08")
    nodes = stack.value["halls"][0]["nodes"][1]
    more = copy.deepcopy(nodes)
    more.update(names="dgx03", addresses="10.78.0.13", macs=["52:54:00:4e:00:0d"], serials=["LAB-DGX03"], units=[17])
    more["bmc"]["addresses"] = "http://10.78.8.13"
    stack.value["halls"][0]["nodes"].append(more)
    stack.value["cloud"]["pools"][0]["max_nodes"] = 4
    stack.save()
    assert stack.run("--check") == 2
    assert stack.run() == 0
    assert {name: one["software"]["driver"] for name, one in stack.locked().items()} == {
        "hall-a/head": None,
        **dict.fromkeys([DGX, "hall-a/dgx03", "group/fixed", "pool/p5"], "580.105.08"),
    }


def test_a_renamed_range_is_the_same_group(stack):
    stack.software["driver"] = "580"
    stack.save()
    stack.run()
    stack.edit("580.178.04", "580.142")
    stack.lock.write_text(stack.lock.read_text().replace("driver: 580.142", "driver: '580.142'"))
    stack.edit(": 580.142\n", ": '580.142'\n")
    nodes = stack.value["halls"][0]["nodes"][1]
    nodes.update(names="dgx01", addresses="10.78.0.11", macs=None, serials=None, units=[1])
    nodes["bmc"]["addresses"] = "http://10.78.8.11"
    stack.save()
    assert stack.run() == 0 and stack.locked()["hall-a/dgx01"]["software"]["driver"] == "580.142"


# ---- --check


def test_check_says_whether_it_is_there_and_fits(stack, capsys):
    assert stack.run("--check") == 2
    assert "isn't there: run `ironburst lock" in capsys.readouterr().out and not stack.lock.exists()
    stack.run()
    assert stack.run("--check") == 0
    stack.software["cuda"] = "13.1"
    stack.save()
    before = stack.lock.read_bytes()
    capsys.readouterr()
    assert stack.run("--check") == 2
    out = capsys.readouterr().out
    assert f"{DGX}: cuda 13.0 -> 13.1 (as declared)" in out and "doesn't fit the stack: run `ironburst lock" in out
    assert stack.lock.read_bytes() == before


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("nccl: 2.30.7", "nccl: 2.29.0", "the catalogue doesn't know 2.29.0"),
        ("fabric_manager: 580.95.05", "fabric_manager: 580.105.08", "fabric_manager 580.105.08 -> 580.95.05"),
        ("nvidia-open=580.95.05-*", "nvidia-open=580.105.08-*", "packages.nvidia_driver"),
        ("kernel_module: open", "kernel_module: proprietary", "kernel_module proprietary -> open"),
        ("os: debian13", "os: debian12", "os debian12 -> debian13"),
        ("gds: false", "gds: true", "gds true -> false"),
    ],
)
def test_an_edited_lock_is_told(stack, capsys, old, new, words):
    stack.run()
    stack.edit(old, new)
    capsys.readouterr()
    assert stack.run("--check") == 2
    assert words in capsys.readouterr().out
    assert stack.run("--no-secrets", verb="validate") == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "doesn't fit the stack" in error and "run `ironburst lock" in error
    assert stack.run() == 0 and stack.run("--check") == 0


DAMAGED = {
    "not YAML": "a: [",
    "not a lock": "- 1",
    "empty": "",
    "another version": "version: 2\ngroups: {}",
    "no groups": "version: 1\ngroups: {}",
    "groups of another kind": "version: 1\ngroups: [1]",
    "a group without software": "version: 1\ngroups: {a: {nodes: a}}",
    "a bad range": None,
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_lock_is_refused_in_one_sentence(stack, capsys, name):
    stack.run()
    text = DAMAGED[name] or stack.lock.read_text().replace("nodes: dgx[01-02]", "nodes: dgx[02-01]")
    stack.lock.write_text(text)
    capsys.readouterr()
    for arguments in ({}, {"flags": "--check"}, {"flags": "--upgrade"}, {"verb": "validate"}):
        assert stack.run(*filter(None, [arguments.get("flags")]), verb=arguments.get("verb", "lock")) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1 and "lab.lock.yaml" in error and "restore it from version control" in error
    assert stack.lock.read_text() == text, "a lock that can't be read is never written over"


@pytest.mark.parametrize(
    ("pattern", "new"),
    [
        (r"driver: 580\.95\.05", "driver: 580"),
        (r"cuda: '13\.0'", "cuda: 13.0"),
        (r"gds: false", "gds: maybe"),
        (r"nvlsm: false", "nvlsm: null"),
        (r"      nccl: 2.30.7\n", ""),
        (r"      nccl: 2.30.7\n", "      nccl: 2.30.7\n      nckl: 2.30.7\n"),
        (r"container_runtimes: \[containerd\]", "container_runtimes: containerd"),
        (r"packages:\n        nvidia_driver: \[.*\]", "packages:\n        nvidia_driver: 3"),
    ],
)
def test_a_lock_with_a_wrong_value_is_refused_with_its_place(stack, capsys, pattern, new):
    stack.run()
    stack.lock.write_text(re.sub(pattern, new, stack.lock.read_text(), count=2))
    assert stack.run() == 2
    assert " at hall-a/" in capsys.readouterr().err


def test_conflicts_have_rule_ids_and_leave_the_lock_alone(stack, capsys):
    stack.run()
    before = stack.lock.read_bytes()
    stack.software.update(driver="535")
    stack.save()
    capsys.readouterr()
    assert stack.run("--json") == 2
    report = json.loads(capsys.readouterr().out)
    assert report["state"] == "conflict" and {each["rule"] for each in report["conflicts"]} == {"CUD-001"}
    assert {each["group"] for each in report["conflicts"]} == {DGX, "group/fixed", "pool/p5"}
    assert all("driver: 580" in each["ways_out"] for each in report["conflicts"])
    assert stack.run() == 2 and "(CUD-001)" in capsys.readouterr().err
    assert stack.lock.read_bytes() == before


def test_json_says_state_changes_and_sets(stack, capsys):
    states = []
    for flags in (["--check"], [], [], ["--upgrade"], ["--check"]):
        stack.run(*flags, "--json")
        states.append(json.loads(capsys.readouterr().out)["state"])
    assert states == ["absent", "written", "fits", "fits", "fits"]
    stack.software["driver"] = "580.105.08"
    stack.save()
    stack.run("--check", "--json")
    report = json.loads(capsys.readouterr().out)
    first = next(each for each in report["changes"] if each["group"] == DGX)
    assert report["state"] == "stale"
    assert (first["key"], first["old"], first["new"]) == ("driver", "580.95.05", "580.105.08")
    assert report["groups"][DGX]["software"]["driver"] == "580.105.08"


def test_a_stack_file_that_is_wrong_elsewhere_is_refused(stack, capsys):
    stack.value["halls"][0]["nodes"][1]["platform"] = "dgx-h10"
    stack.save()
    assert stack.run() == 2 and "dgx-h100" in capsys.readouterr().err and not stack.lock.exists()
    assert main(["lock", str(stack.file.with_name("Pulumi.none.yaml"))]) == 2


# ---- who goes by it


def test_validate_warns_where_nothing_is_locked_and_refuses_a_stale_lock(stack, capsys):
    assert stack.run("--no-secrets", verb="validate") == 0
    assert "warning" in capsys.readouterr().err
    stack.run()
    capsys.readouterr()
    assert stack.run("--no-secrets", verb="validate") == 0 and capsys.readouterr().err == ""
    stack.software["driver"] = "580.105.08"
    stack.save()
    assert stack.run("--no-secrets", verb="validate") == 2
    assert "driver 580.95.05 -> 580.105.08 (as declared) and 11 more" in capsys.readouterr().err


@pytest.mark.parametrize("lock", ["fits", "absent", "damaged"])
def test_validate_solves_once(stack, monkeypatch, lock):
    if lock != "absent":
        stack.run()
    if lock == "damaged":
        stack.lock.write_text("- 1")
    made = solutions(monkeypatch)
    assert stack.run("--no-secrets", verb="validate") == (2 if lock == "damaged" else 0)
    assert len(made) == 1


@pytest.mark.parametrize("flags", [[], ["--check"], ["--upgrade"]])
def test_lock_solves_once(stack, monkeypatch, flags):
    stack.run()
    made = solutions(monkeypatch)
    assert stack.run(*flags) == 0 and len(made) == 1


def test_a_conflict_comes_before_a_damaged_lock(stack, capsys):
    stack.software.update(driver="535")
    stack.save()
    stack.lock.write_text("- 1")
    assert stack.run("--no-secrets", verb="validate") == 2
    assert "restore it" not in (said := capsys.readouterr().err) and "(CUD-001)" in said


def test_the_document_has_the_locked_sets(stack):
    stack.software["driver"] = "580"
    stack.save()
    stack.run()
    stack.edit("580.178.04", "580.105.08")
    whole = load_valid(stack.file, now=NOW)
    observed = build.Observed(
        instances={"fixed-1": {"id": "i-1", "address": "10.90.1.4"}},
        pool_zones={"p5": [{"zone": "us-east-1a", "place": {"subnet_id": "subnet-1", "launch_template_id": "lt-1"}}]},
    )
    built = build.build(whole.config, observed, whole.software)
    assert not whole.warnings and {host.software.driver for host in built.hosts} == {None, "580.105.08"}
    assert built.pool("p5").software.packages["nvidia_driver"] == ["nvidia-open=580.105.08-*"], (
        "image and metal have one lock"
    )
    assert built.software.driver == "580.105.08"


def test_a_profile_alone_is_enough(stack):
    stack.value["software"] = {"profile": "training-2026"}
    stack.save()
    assert stack.run() == 0
    software = stack.locked()[DGX]["software"]
    assert (software["driver"], software["cuda"], software["rdma"]) == ("580.178.04", "13.0", "doca-ofed")
    assert software["container_runtimes"] == ["containerd", "enroot"] and software["slurm"] == "24.11"


def test_pulumi_finds_no_stack_in_a_lock_file():
    """The CLI takes `Pulumi.<stack>.yaml` of stackConfigDir: a lock must not look like one."""
    for path in STACKS:
        assert not lockfile.path_of_lock(path).name.startswith("Pulumi.")
