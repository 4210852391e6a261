"""What the docs promise and several places of the code have to keep: each said once more here, against those places."""

import re
from pathlib import Path

import yaml

from ironburst.config import spot_notice
from ironburst.config.models import Burst
from ironburst.controller import records
from ironburst.document.model import Scheduler
from ironburst.document.policy_model import Burst as BurstDocument
from ironburst.slurm_programs import snippet
from tests.fakes import dead_man

ROOT = Path(__file__).parents[2]
HEAD = ROOT / "playbooks/roles/slurm_head"
SLURM_CONF = (HEAD / "templates/slurm.conf.j2").read_text()


def test_accounting_is_enforced_and_the_tutorial_says_so():
    (enforced,) = re.findall(r"^AccountingStorageEnforce=(.*)$", SLURM_CONF, re.MULTILINE)
    assert "associations" in enforced.split(",")
    first_hall = (ROOT / "docs/tutorial/first-hall.md").read_text()
    assert "accounting is enforced, so a user needs an account in it. `users` in the stack file makes" in first_hall


def test_every_partition_has_a_default_time_as_the_policy_page_says():
    """So a job without --time has a limit, and is rented for; only an unlimited one stays at home
    (tests/adapters/test_slurm_json.py reads both, tests/unit/burst/test_eligibility.py judges them).
    """
    partitions = [line for line in SLURM_CONF.splitlines() if line.startswith("PartitionName=")]
    declared = [line for line in partitions if "Nodes=" in line and 'Nodes=""' not in line]
    assert declared and all("DefaultTime={{" in line and "MaxTime={{" in line for line in declared)
    hours = yaml.safe_load((HEAD / "defaults/main.yml").read_text())["slurm_head_default_time"] / 3600
    policy = (ROOT / "docs/policy.md").read_text()
    assert f"(`slurm_head_default_time`, {hours:g} h where ironburst sets Slurm up" in policy
    assert "Only a job whose limit is unlimited stays at home" in policy


# ---- numbers that stand in two places: derived where that is possible, else compared here


def defaults(role):
    return yaml.safe_load((ROOT / f"playbooks/roles/{role}/defaults/main.yml").read_text())


def test_the_snippet_has_the_heads_numbers():
    head, least = defaults("slurm_head"), (snippet.RESUME_S, snippet.SUSPEND_S, snippet.BACKSTOP_S, snippet.DEFAULT_S)
    names = ("resume_timeout", "suspend_timeout", "burst_suspend_time", "default_time")
    assert least == tuple(head[f"slurm_head_{name}"] for name in names)


def test_a_node_that_knows_nothing_yet_waits_as_long_as_one_that_is_told():
    declared = Burst().dead_man
    assert dead_man.program.UNDECLARED["dead_man_s"] == declared
    assert BurstDocument.model_fields["dead_man_s"].default == declared


def test_a_job_has_as_long_to_leave_as_ec2_gives_and_killwait_fits_into_it():
    assert records.STOP_S == spot_notice.NOTICE_S
    assert spot_notice.kill_wait_s(10) == Scheduler.model_fields["kill_wait_s"].default
    assert f"kill_wait_s | default({spot_notice.kill_wait_s(10)})" in SLURM_CONF
