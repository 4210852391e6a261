"""From which release of Slurm which other is reached (SchedMD's upgrade guide, branch slurm-25.11)."""

import pytest

from ironburst.software import slurm_upgrade


@pytest.mark.parametrize(
    ("said", "release"),
    [
        ("slurm-wlm 24.11.5\n", "24.11"),
        ("slurm 25.05.8\n", "25.05"),
        ("slurm 25.11.0-0rc1\n", "25.11"),
        ("", ""),
        ("slurmctld: error: no", ""),
    ],
)
def test_what_the_daemon_says_of_itself(said, release):
    assert slurm_upgrade.release_of(said) == release


@pytest.mark.parametrize(
    ("release", "read"),
    [  # the guide's table
        ("23.02", ("21.08", "22.05")),
        ("23.11", ("22.05", "23.02")),
        ("24.05", ("23.02", "23.11")),
        ("24.11", ("23.02", "23.11", "24.05")),
        ("25.05", ("23.11", "24.05", "24.11")),
        ("25.11", ("24.05", "24.11", "25.05")),
    ],
)
def test_a_release_reads_those_of_the_guide(release, read):
    assert slurm_upgrade.reads(release) == read


@pytest.mark.parametrize(
    ("installed", "declared", "step"),
    [
        ("22.05", "24.11", "23.11"),
        ("23.11", "25.11", "25.05"),
        ("21.08", "25.11", "23.02"),
        ("20.11", "23.11", "22.05"),
    ],
)
def test_a_jump_too_far_names_the_step_between(installed, declared, step):
    said = slurm_upgrade.refused(installed, declared)
    assert f"declare {step} first" in said and installed in slurm_upgrade.reads(step)


@pytest.mark.parametrize("declared", slurm_upgrade.RELEASES)
def test_every_way_ends_and_each_step_of_it_is_allowed(declared):
    for installed in slurm_upgrade.RELEASES[: slurm_upgrade.RELEASES.index(declared)]:
        at, steps = installed, 0
        while said := slurm_upgrade.refused(at, declared):
            at, steps = said.split("declare ")[1].split()[0], steps + 1
            assert steps < 10
        assert at in slurm_upgrade.reads(declared)


def test_no_way_back_and_nothing_said_of_the_unknown():
    assert "can't read a newer one's state" in slurm_upgrade.refused("25.05", "24.11")
    assert slurm_upgrade.refused("24.11", "24.11") == slurm_upgrade.refused("19.05", "24.11") == ""
