"""A search for exceptions: invented stack files and damaged locks. `ironburst lock` solves, or refuses with a rule or a
sentence.
"""

import copy
import json
import random
from pathlib import Path
from typing import get_args

import pytest
import yaml

from ironburst import catalog
from ironburst.cli import main
from ironburst.config import load, lockfile
from ironburst.software import rules
from ironburst.software.model import Os
from ironburst.software.solve import state

ROOT = Path(__file__).parents[3]
FACTS = catalog.software_facts()
STACKS = 40  # of each kind
CHOICES = {
    "driver": [*["580"] * 6, "580.95.05", "595", 570, "535", "620", "999", None],
    "cuda": [*[None] * 6, "12.9", "13.0", "12.8", "11.8", "14.0"],
    "kernel_module": [*[None] * 5, "auto", "open", "proprietary"],
    "rdma": [None, "inbox", "doca-ofed"],
    "peer_memory": [*[None] * 5, "auto", "dma-buf", "peermem", "none"],
    "gds": [None, None, None, True],
    "container_runtime": [None, "docker", ["apptainer", "enroot"]],
    "profile": [None, None, *catalog.profiles()],
    "slurm": [*["24.11"] * 5, None],
    "os": get_args(Os),
    "kernel": [None, None, None, "5.4.0", "6.12.57"],
    "nccl": [None, None, "2.28.9"],
}
PLATFORMS = list(catalog.platforms())
TYPES = ["p5.48xlarge", "p4d.24xlarge", "g5g.16xlarge", "g4dn.12xlarge", "p3dn.24xlarge", "g6f.xlarge"]
PROFILES = ["1g.10gb", "1g.5gb", "7g.80gb", "1g.24gb", "2g.20gb"]


def invented(base, dice):
    value = copy.deepcopy(base)
    value["software"] = {key: given for key, options in CHOICES.items() if (given := dice.choice(options)) is not None}
    nodes = value["halls"][0]["nodes"]
    nodes[1]["platform"] = dice.choice(PLATFORMS)
    more = copy.deepcopy(nodes[1])
    more.update(
        names="x01",
        addresses="10.78.0.13",
        macs=None,
        serials=None,
        units=[20],
        height=4,
        platform=dice.choice(PLATFORMS),
    )
    more["bmc"]["addresses"] = "http://10.78.8.13"
    if dice.random() < 0.3:
        nodes.append(more)
    if dice.random() < 0.1:
        more["software"] = {"driver": "580", "cuda": "12.9"}
    if dice.random() < 0.15:
        nodes[1]["mig"] = [{"profiles": {dice.choice(PROFILES): dice.choice([1, 3, 7])}}]
    if dice.random() < 0.1:
        nodes[1]["secure_boot"] = True
    value["cloud"]["pools"][0]["instance_type"] = dice.choice(TYPES)
    value["cloud"]["price"] = {kind: {"on_demand": 1.0, "spot": 1.0} for kind in TYPES}
    return value


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    return tmp_path


def test_an_invented_stack_is_solved_or_refused_with_a_rule(folder, capsys, monkeypatch):
    monkeypatch.setattr("ironburst.software.remedies.TRIALS", 40)  # tried in full by tests of solve
    dice, base, path = random.Random(4), load.read_value(ROOT / "stacks/Pulumi.lab.yaml"), folder / "Pulumi.x.yaml"
    states = []
    for _ in range(STACKS):
        path.write_text(yaml.safe_dump({"config": {load.KEY: invented(base, dice)}}))
        if dice.random() < 0.5:
            lockfile.path_of_lock(path).unlink(missing_ok=True)
        flags = dice.choice([[], ["--upgrade"]])
        code = main(["lock", str(path), "--json", *flags])
        report = json.loads(capsys.readouterr().out)
        states.append(report["state"])
        if code == 2:
            assert (report["state"] == "invalid" and report["errors"]) or {
                each["rule"] for each in report["conflicts"]
            } <= FACTS.rules.keys()
            assert report["state"] == "invalid" or report["conflicts"]
            continue
        assert code == 0 and main(["lock", str(path), "--check"]) == 0
        plan = lockfile.plan(load.load(path), path)
        assert plan.fits
        for group in lockfile.groups(load.load(path)):
            if group.gpu:
                hits = rules.check_node(state(group, plan.lock[group.name].software, FACTS), FACTS)
                assert [hit for hit in hits if hit.severity == "error"] == []
        capsys.readouterr()
    assert states.count("written") > 7 and states.count("conflict") > 7


def test_a_lock_damaged_anywhere_is_refused_or_says_the_same(folder, capsys):
    """Whatever happens to its bytes: it is read as what it was, or refused, or told as stale; never an exception."""
    dice, path = random.Random(5), folder / "Pulumi.lab.yaml"
    path.write_text((ROOT / "stacks/Pulumi.lab.yaml").read_text())
    assert main(["lock", str(path)]) == 0
    lock = lockfile.path_of_lock(path)
    good, meaning = lock.read_bytes(), lockfile.read(lock)
    refused = 0
    for _ in range(STACKS):
        data, at = bytearray(good), dice.randrange(len(good))
        kind = dice.choice(["change", "cut", "end"])
        if kind == "change":
            data[at] = dice.randrange(256)
        else:
            del data[at : at + dice.randrange(1, 40) if kind == "cut" else None]
        lock.write_bytes(bytes(data))
        code = main(["lock", str(path), "--check"])
        assert code in (0, 2)
        if code == 0:
            assert lockfile.read(lock) == meaning
        refused += code == 2
        capsys.readouterr()
    assert refused > STACKS / 2
