"""Who is woken by a fault: the controller's real metrics of a site in memory (tests.faults.story), through the rules,
in a real Prometheus. A quiet day wakes nobody, and each fault of the live table has its alert, or a reason for none.
"""

import ast
import math
from pathlib import Path

import pytest

from benchmarks import full_days
from ironburst.controller.tick import Controller
from ironburst.monitoring import rules
from tests import prometheus
from tests.fakes import T0, FakeClock
from tests.faults import story, watched
from tests.faults.test_adapters import FAULTS

APART_S = 10 * 86400.0  # no rule looks back so far: all stories are in one Prometheus, one after another
LASTS_S = 45 * 60.0

# Alerts of each fault as test_adapters.py has it, mended after some minutes
MENDED = {
    **dict.fromkeys(FAULTS, frozenset()),
    # an old ledger that is gone, leases that were found again; drained by whom; nodes that don't join
    **dict.fromkeys(
        (
            "an administrator drains the rented nodes",
            "credentials expired for 20 min",
            "nodes never join",
            "the ledger is gone",
            "the ledger is truncated",
        ),
        frozenset({"ControllerNeedsAPerson"}),
    ),
    # of which Alertmanager sends the first alone (receivers.INHIBITED has SlurmdbdDown)
    "slurmctld is away for 20 min": frozenset({"SlurmctldDown", "SlurmdbdDown", "ControllerSilent"}),
}
# Of those that stay until somebody mends them: three quarters of an hour
UNMENDED = {
    "credentials expired for 20 min": {"ControllerNeedsAPerson"},
    # rented nodes end themselves, jobs wait, and nobody here could do more: status and the page say so
    "the cloud's API is away for 20 min": set(),
    "launch: over the account's quota": set(),  # the market is closed for an hour, the sentence names the quota
    "nodes never join": {"ControllerNeedsAPerson"},
    "slurmctld is away for 20 min": {"SlurmctldDown", "SlurmdbdDown", "ControllerSilent"},
    "the clock is an hour ahead": {"ControllerSilent"},
    "the clock is an hour behind": {"ControllerSilent"},
    "the disk is full": {"ControllerSilent"},
    # the last good one counts, for as long as it takes
    "the document is an older one": set(),
    "the document is damaged": set(),
    "the document is gone": set(),
    "the document is of a newer version": set(),
    "the ledger is locked by another process": {"ControllerSilent"},
    "the ledger is truncated": {"ControllerDown"},
}
PAGES = {"ControllerSilent", "ControllerDown", "SlurmctldDown", "SlurmdbdDown"}


class Unrecorded(story.Story):
    """Without a record of the ticks, which is a quarter of the time."""

    def start(self):
        super().start()
        self.controller = Controller(self.slurm, self.cloud, self.ledger, self.clock)


class Told(watched.Watched, Unrecorded):
    lasts_s = 0.0

    def after(self, seconds, what):
        super().after(max(seconds, self.lasts_s), what)


def fired(folder, names, lasts_s=0.0):
    """{fault: names of the alerts}"""
    samples, spans = {}, {}
    for number, name in enumerate(sorted(names)):
        fault, began_s = FAULTS[name], T0 + number * APART_S
        told = Told(folder / str(number), FakeClock(began_s))
        told.reach(fault.fast if fault.fast in fault.stages else fault.stages[0])
        told.lasts_s = lasts_s
        fault.happens(told)
        told.end()
        spans[name] = began_s, told.clock.at
        for series, its in told.samples.items():
            samples.setdefault(series, []).extend(its)
    with prometheus.serving(folder, watched.openmetrics(samples)) as url:
        return {name: frozenset(watched.fired(url, *span)) for name, span in spans.items()}


def test_a_fault_that_nobody_mends_has_its_alert(tmp_path):
    assert fired(tmp_path, UNMENDED, LASTS_S) == UNMENDED
    known = rules.every()
    assert {name for name in set().union(*UNMENDED.values()) if known[name]["labels"]["severity"] == "page"} == PAGES


@pytest.mark.slow
def test_a_fault_that_is_mended_within_minutes_wakes_nobody_for_nothing(tmp_path):
    assert fired(tmp_path, FAULTS) == MENDED


class Day(watched.Watched, full_days.FullDay):
    """Without a fault, unless one is planned."""

    def __init__(self, folder, jobs, hours, *plan):
        folder.mkdir()
        super().__init__(1, folder, jobs=jobs, hours=hours)
        self.plan = [(self.began_s + hours / 2 * 3600, name) for name in plan]


def alerts_of(day, folder):
    assert day.run().good
    with prometheus.serving(folder, watched.openmetrics(day.samples)) as url:
        return watched.fired(url, day.began_s, day.clock.at)


def pages(found):
    return {name for name, severity in found.items() if severity == "page"}


def test_a_quiet_day_wakes_nobody(tmp_path):
    """Jobs are rented for, nodes come and go; a ticket about money that is spent fast is no fault."""
    day = Day(tmp_path / "day", 200, 24.0)
    found = alerts_of(day, tmp_path)
    assert day.outcome.rented >= 5 and day.clock.at - day.began_s > 23 * 3600
    assert pages(found) == set() and set(found) <= {"BudgetEnds", "SpendOverPlan"}, found


def test_a_day_on_which_the_controller_is_away_wakes_somebody(tmp_path):
    """That of above can fail."""
    day = Day(tmp_path / "day", 20, 4.0, "the controller is away for hours")
    assert "ControllerDown" in pages(alerts_of(day, tmp_path))


def test_moments_that_follow_each_other():
    assert watched.longest([0.0]) == 0.0 and watched.longest([0.0, 60.0, 120.0]) == 120.0
    assert watched.longest([0.0, 60.0, 600.0, 660.0, 720.0]) == 120.0
    assert not math.isinf(watched.longest([5.0]))


# ---- the live fault table (tests/faults/live): each of its faults is one of above, the fault of a rule, or no page

LIVE = Path(__file__).parent / "live"
NO_PAGE = {
    "converge": "who converges sees it: exit code 4, and a sentence in the receipt",
    "seconds": "it is over within seconds or minutes, before any rule's time",
    "job": "a user's own doing with a job, or the way that jobs go",
    "order": "an operator's own order, which status shows",
    "pulumi": "who runs Pulumi sees it: it ends with an error, and the next run takes up",
    "rented": "a rented node's matter: it is replaced, or ends itself (decision 105); the job runs again",
    "cloud": "a market or a pool is closed for a while and the sentence says why; jobs wait",
}
AS = {  # live test: a fault of UNMENDED or MENDED, a rule's own (its firing case is in alerts_test.yaml), or NO_PAGE's
    "test_launches_are_throttled": "launch: throttled",
    "test_every_call_is_throttled_for_a_while": "cloud",
    "test_an_answer_is_lost_after_the_launch": "launch: no answer, and it happened",
    "test_an_answer_is_lost_and_nothing_was_launched": "launch: no answer, and it didn't happen",
    "test_the_answer_is_lost_and_the_controller_with_it": "seconds",
    "test_a_token_was_used_with_other_parameters": "launch: the token was used with other parameters",
    "test_a_gang_gets_all_of_its_nodes_or_none": "capacity for a part of the gang",
    "test_no_zone_has_capacity_for_a_while": "no capacity in any zone",
    "test_the_account_has_reached_its_quota_of_spot": "launch: over the account's quota",
    "test_the_credentials_have_expired_for_a_while": "credentials expired for 20 min",
    "test_aws_gives_no_answer_while_a_node_boots": "the cloud's API is away for 20 min",
    "test_an_instance_never_joins": "nodes never join",
    "test_an_instance_has_no_network_from_its_boot_on": "nodes never join",
    "test_an_instance_joins_with_a_gpu_too_few": "nodes never join",
    "test_an_instances_clock_is_an_hour_off": "nodes never join",
    "test_an_instance_is_terminated_from_outside_while_it_boots": "an instance is ended by somebody else",
    "test_an_instance_is_terminated_from_outside_while_its_job_runs": "an instance is ended by somebody else",
    "test_an_instance_loses_its_network_for_a_minute": "the link is down for 1 min",
    "test_an_instance_loses_its_network_for_twenty_minutes": "the link is down for 20 min",
    "test_an_instance_reboots_under_its_job": "rented",
    "test_a_spot_notice_comes_while_the_node_boots": "spot notice",
    "test_a_spot_notice_comes_while_a_job_runs": "spot notice",
    "test_a_spot_notice_comes_while_the_node_drains": "spot notice",
    "test_a_spot_notice_comes_while_the_controller_is_away": "ControllerDown",
    "test_a_capacity_block_ends_under_a_job": "rented",
    "test_killed_at_a_step": "the controller is killed",
    "test_killed_again_and_again": "the controller is killed",
    "test_the_ledger_is_lost_while_a_job_runs": "the ledger is gone",
    "test_the_ledger_is_cut_off": "the ledger is truncated",
    "test_the_ledger_is_locked_by_another_process": "the ledger is locked by another process",
    "test_the_disk_of_the_ledger_is_full": "the disk is full",
    "test_the_document_is_gone_while_a_node_boots": "the document is gone",
    "test_the_document_is_damaged": "the document is damaged",
    "test_the_document_is_an_older_one": "the document is an older one",
    "test_the_document_is_of_a_newer_version": "the document is of a newer version",
    "test_the_clock_is_put_an_hour": "the clock is an hour ahead",
    "test_two_controllers_want_the_site": "a second controller with another ledger",
    "test_on_rented_nodes": "job",
    "test_it_goes_on_from_its_checkpoint_when_aws_takes_a_node_back": "spot notice",
    "test_an_interactive_job": "job",
    "test_a_notebook_answers_by_the_name_of_its_node": "job",
    "test_a_host_reboots_in_mid_converge": "converge",
    "test_apt_is_locked_by_somebody_else_for_a_while": "converge",
    "test_the_disk_of_a_host_is_full": "DiskFull",
    "test_a_host_no_longer_takes_our_ssh_key": "converge",
    "test_twenty_one_leases_of_three_names": "job",
    "test_the_engine_is_killed_between_two_resources": "pulumi",
    "test_a_provider_is_killed": "pulumi",
    "test_a_provider_is_killed_while_a_vpn_gateway_is_attached": "pulumi",
    "test_one_of_the_bmcs_hangs": "BmcSilent",
    "test_the_engine_is_killed_while_ec2_launches_a_fixed_node": "pulumi",
    "test_slurmctld_is_restarted_while_a_node_boots": "slurmctld is away for 1 min",
    "test_slurmctld_is_killed_while_a_job_runs_on_a_rented_node": "slurmctld is away for 1 min",
    "test_slurmctld_is_away_while_a_job_ends": "slurmctld is away for 20 min",
    "test_slurmctld_hangs_while_a_node_boots": "slurmctld is away for 20 min",
    "test_slurmctld_hangs_while_a_job_ends": "slurmctld is away for 20 min",
    "test_slurmctld_is_slow_for_a_jobs_whole_life": "Slurm is slow",
    "test_slurmdbd_is_restarted_while_a_job_runs": "seconds",
    "test_slurmdbd_hangs_while_a_job_is_rented_for": "SlurmdbdDown",
    "test_slurmdbd_is_down_for_a_jobs_whole_life": "SlurmdbdDown",
    "test_slurm_is_reconfigured_while_a_node_is_resumed": "seconds",
    "test_a_job_is_cancelled_while_its_node_boots": "the jobs are cancelled",
    "test_a_job_is_requeued_by_its_user_while_it_runs_on_a_rented_node": "the jobs are requeued by their user",
    "test_a_job_is_shortened_while_its_node_boots": "the jobs' limits are lowered",
    "test_a_job_is_made_bigger_while_its_node_boots": "job",
    "test_a_job_is_held_while_its_node_boots_and_released_later": "the jobs are held for a while",
    "test_an_administrator_drains_a_rented_node_while_a_job_runs_on_it": "an administrator drains the rented nodes",
    "test_an_administrator_drains_a_rented_node_while_it_boots": "an administrator drains the rented nodes",
    "test_slurmd_of_a_rented_node_is_killed_under_a_job": "seconds",
    "test_stop_now": "order",
    "test_stop_now_without_a_controller": "ControllerDown",
    "test_who_may": "order",
    "test_the_vpn_is_down_for_a_minute": "the link is down for 1 min",
    "test_a_job_ends_while_the_vpn_is_down": "the link is down for 20 min",
    "test_the_vpn_is_down_for_twenty_minutes": "the link is down for 20 min",
    "test_the_vpn_is_down_while_a_node_boots": "the link is down for 20 min",
}


def live_tests():
    trees = [ast.parse(path.read_text()) for path in sorted(LIVE.glob("test_*.py"))]
    names = [node.name for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {name for name in names if name.startswith("test_")}


def test_each_fault_of_the_live_table_has_its_alert_or_a_reason_for_none():
    assert set(AS) == live_tests()
    known = {*FAULTS, *NO_PAGE, *rules.every()}
    assert {name: what for name, what in AS.items() if what not in known} == {}
    assert set(NO_PAGE) <= set(AS.values()) and set(UNMENDED) <= set(FAULTS) == set(MENDED)
