"""`ironburst slurm snippet`: what is added to a Slurm that is there already."""

import os
import re
from pathlib import Path

import pytest
import yaml

from ironburst import cli, slurm_programs
from tests.unit.config.test_beside import BESIDE

ROLE = Path(__file__).parents[3] / "playbooks/roles/slurm_head"


@pytest.fixture
def stack(tmp_path):
    path = tmp_path / "Pulumi.beside.yaml"
    path.write_text(
        yaml.safe_dump({"config": {"aws:region": "us-east-1", "ironburst:cluster": yaml.safe_load(BESIDE)}})
    )
    return path


def test_it_prints_the_lines_and_the_programs_and_changes_nothing(stack, capsys):
    before = sorted(stack.parent.rglob("*"))
    assert cli.main(["slurm", "snippet", str(stack)]) == 0
    said = capsys.readouterr().out
    assert (
        "NodeName=p5-1,p5-2 CPUs=192 ThreadsPerCore=2 RealMemory=1992294 Gres=gpu:h100:8 State=CLOUD Weight=10" in said
    )
    assert "PartitionName=burst-p5 Nodes=p5-1,p5-2 DefaultTime=60 MaxTime=1440 SuspendTime=86400" in said
    assert "NodeName=p5-1,p5-2 Name=gpu Type=h100 File=/dev/nvidia[0-7]" in said
    assert "DGX_" not in said, "what is there stays as it is"
    assert all(slurm_programs.text(name) in said for name in slurm_programs.NAMES)
    assert sorted(stack.parent.rglob("*")) == before


def test_a_topology_needs_the_rented_nodes_and_is_not_everybodys(stack, capsys):
    assert cli.main(["slurm", "snippet", str(stack)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "# SwitchName=p5 Nodes=p5-1,p5-2" in lines and not any(line.startswith("SwitchName") for line in lines)


def test_it_writes_the_parts_into_a_folder(stack, tmp_path, capsys):
    assert cli.main(["slurm", "snippet", str(stack), "--folder", str(tmp_path / "out")]) == 0
    assert sorted(each.name for each in (tmp_path / "out").iterdir()) == [
        "gres.conf",
        "hosts",
        "install.sh",
        "ironburst-names",
        "ironburst-names.service",
        "ironburst-resume",
        "ironburst-suspend",
        "ironburst.service",
        "slurm.conf",
    ]
    assert (
        os.access(tmp_path / "out/ironburst-resume", os.X_OK) and "nothing else was changed" in capsys.readouterr().out
    )


def test_bad_input_is_a_sentence(tmp_path, capsys):
    assert cli.main(["slurm", "snippet", str(tmp_path / "none.yaml")]) == 2
    assert "can't be read" in capsys.readouterr().err


@pytest.mark.parametrize("name", [*slurm_programs.NAMES, slurm_programs.NAMES_UNIT])
def test_the_programs_are_those_of_the_role(name):
    template = ROLE / "templates" / f"{name}.j2"
    of_role = (template if template.exists() else ROLE.parent / "slurm_host/files" / name).read_text()
    assert slurm_programs.text(name) == of_role.replace(" Written by Ansible (role slurm_head)", "")


def test_the_unit_and_the_names_are_those_of_the_role(stack, tmp_path):
    assert cli.main(["slurm", "snippet", str(stack), "--folder", str(tmp_path / "out")]) == 0
    unit, defaults = (ROLE / "templates/ironburst.service.j2").read_text(), variables("defaults") | variables("vars")
    given = {"controller_document": "/srv/ironburst/beside.json"}
    for name in ("controller_user", "controller_document", "controller_program"):
        value = given.get(name) or defaults[f"slurm_head_{name}"]
        unit = unit.replace(f"{{{{ slurm_head_{name} }}}}", value)
    unit = re.sub(r"# .*\nEnvironment=IRONBURST_BACKUP=.*\n", "", unit)  # the role alone brings a timer of copies
    assert (tmp_path / "out/ironburst.service").read_text() == unit.split("\n", 1)[1]
    names = (tmp_path / "out/hosts").read_text().splitlines()
    assert names[1:-1] == [f"{defaults['slurm_head_nowhere']} {node}" for node in ("p5-1", "p5-2")]


def variables(folder):
    return yaml.safe_load((ROLE / folder / "main.yml").read_text())


def test_the_settings_are_those_of_the_role(stack, tmp_path):
    assert cli.main(["slurm", "snippet", str(stack), "--folder", str(tmp_path / "out")]) == 0
    said = (tmp_path / "out/slurm.conf").read_text()
    defaults = yaml.safe_load((ROLE / "defaults/main.yml").read_text())
    template = (ROLE / "templates/slurm.conf.j2").read_text()
    for key, name in (("ResumeTimeout", "resume_timeout"), ("SuspendTimeout", "suspend_timeout")):
        assert f"{key}={defaults[f'slurm_head_{name}']}" in said
    for key in re.findall(r"^(\w+)=", said, re.MULTILINE):
        assert f"{key}=" in template, f"the role's slurm.conf has no {key}"
