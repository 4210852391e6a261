"""`ironburst init --from`: a new environment is valid, has none of the other's secrets, and says what it still has."""

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ironburst.cli import main
from ironburst.config.stack import load_valid

ROOT = Path(__file__).parents[3]


@pytest.fixture
def project(tmp_path, monkeypatch):
    for folder in ("stacks", "inventory"):
        shutil.copytree(ROOT / folder, tmp_path / folder, symlinks=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def init(capsys, stack, name, *more):
    code = main(["init", "--from", f"stacks/Pulumi.{stack}.yaml", "--name", name, *more])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize("stack", ["staging", "prod", "mixed"])
def test_it_is_valid_and_marks_what_only_a_person_knows(project, capsys, stack):
    code, out, _ = init(capsys, stack, "trial")
    path = project / "stacks/Pulumi.trial.yaml"
    text = path.read_text()
    made = load_valid(path, now=datetime.now(UTC)).config
    assert code == 0 and made.name == "trial" and not (project / "stacks/trial.lock.yaml").exists()
    assert f"aws-secretsmanager:{stack}/" not in text and "aws-secretsmanager:trial/munge-key" in text
    marked = [line for line in text.splitlines() if "# CHANGE: " in line]
    assert len(marked) == out.count("\n  line ") and any("bmc_cidr" in line for line in marked)
    other = load_valid(project / f"stacks/Pulumi.{stack}.yaml", now=datetime.now(UTC)).config
    assert made.cloud.network.cidr != other.cloud.network.cidr
    # comments stay, and nothing but names, references, the network and marks has changed
    old = (project / f"stacks/Pulumi.{stack}.yaml").read_text().splitlines()
    new = [line.partition(" # CHANGE: ")[0] for line in text.splitlines() if "ironburst init --from" not in line]
    changed = [line for line, before in zip(new, old, strict=True) if line != before]
    assert all("trial" in line or "cidr" in line for line in changed), changed


def test_its_inventory_is_made_too(project, capsys):
    code, _, err = init(capsys, "staging", "trial")
    assert code == 0 and "inventory/trial" in err
    assert "trial.json" in (project / "inventory/trial/stack.yml").read_text()
    assert (project / "inventory/trial/group_vars/all/common.yml").is_symlink()


def test_what_the_others_key_encrypted_does_not_come_along(project, capsys):
    code, _, _ = init(capsys, "lab", "trial")
    assert code == 0 and "encryptionsalt" not in (project / "stacks/Pulumi.trial.yaml").read_text()


@pytest.mark.parametrize(
    ("change", "name", "words"),
    [
        (
            ("aws:region: us-east-1", "aws:region: us-east-1\n  aws:token: {secure: v1:abc}"),
            "trial",
            "encrypted values",
        ),
        (
            (
                "    burst:",
                "    allow: [{rule: budget, reason: x, by: y, until: 2020-01-01}]\n    burst:",
            ),
            "trial",
            "has allowances",
        ),
        (("", ""), "staging", "is the other environment's"),
        (("", ""), "prod", "is there already"),
        (("", ""), "No Name", "no stack file was written"),
        (("name: staging", "name: 7"), "trial", "name"),
    ],
)
def test_what_cannot_be_copied_is_one_sentence(project, capsys, change, name, words):
    path = project / "stacks/Pulumi.staging.yaml"
    path.write_text(path.read_text().replace(*change))
    before = sorted(each.name for each in (project / "stacks").iterdir())
    code, out, err = init(capsys, "staging", name)
    assert (code, out) == (2, "") and words in err and len(err.splitlines()) == 1
    assert sorted(each.name for each in (project / "stacks").iterdir()) == before
