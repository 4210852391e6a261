"""The program that saves a head's Slurm: how backups lie beside each other. tests/lab/test_slurm_packages.py restores
one on a real host.
"""

import os
import subprocess

import pytest
from programs import PLAYBOOKS

PROGRAM = PLAYBOOKS / "roles/slurm_head/files/ironburst-slurm-backup"
# What it calls, without a Slurm: `tar` is given the file to write behind its options
TOOLS = {
    "mariadb-dump": "echo dump",
    "slurmctld": "echo slurm 24.11",
    "tar": 'echo state > "$5"',
}


@pytest.fixture
def save(tmp_path):
    tools, folder = tmp_path / "bin", tmp_path / "saved"
    tools.mkdir()
    folder.mkdir()
    for name, line in TOOLS.items():
        (tools / name).write_text(f"#!/bin/sh\n{line}\n")
        (tools / name).chmod(0o755)

    def run(keep):
        command = ["sh", PROGRAM, "save", folder, str(keep)]
        env = os.environ | {"PATH": f"{tools}:{os.environ['PATH']}"}
        return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout.strip()

    run.folder = folder
    return run


def test_backups_of_one_second_lie_beside_each_other_whole(save):
    made = [save(keep=14) for _ in range(3)]
    assert sorted(made) == made and sorted(map(str, save.folder.iterdir())) == made
    for path in save.folder.iterdir():
        assert sorted(file.name for file in path.iterdir()) == ["slurm_acct.sql.gz", "state.tar.gz", "version"]


def test_the_oldest_go(save):
    (save.folder / "20260101T000000Z").mkdir()  # as an earlier version named them
    made = [save(keep=2) for _ in range(3)]
    assert sorted(map(str, save.folder.iterdir())) == made[1:]
