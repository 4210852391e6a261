"""A controller that was away: nodes that idled meanwhile use their own money up, never that of a job that runs."""

import pytest

from ironburst.controller import records, spending
from ironburst.document import BudgetDocument, ClusterDocument
from tests.fakes.world import World

BOOT_S, IDLE_S, DEAD_MAN_S, TICK_S = 120, 30, 1800, 30
HOUR = 3600.0


class Site(World):
    """Two rented nodes, and a ceiling that pays for what was set aside for them and for nothing more."""

    def __init__(self, folder, limit_s, longer_s):
        more = {"tick_s": TICK_S, "boot_s": BOOT_S, "idle_s": IDLE_S, "wait_limit_s": 1, "dead_man_s": DEAD_MAN_S}
        super().__init__(folder, usd_per_month=1000.0, **more)
        self.cloud.boot_s = BOOT_S - 15
        self.fill_home(limit_s=9 * HOUR)
        self.short = self.slurm.submit(limit_s=limit_s, runs_s=limit_s)
        self.long = self.slurm.submit(limit_s=longer_s, runs_s=longer_s)
        self.until(lambda: {self.slurm.state(job) for job in (self.short, self.long)} == {"RUNNING"}, 600)
        money = self.money()
        self.usd = money.spent_usd + money.committed_usd + 0.01
        said = self.document.model_dump(mode="json")
        said["budget"]["usd_per_month"] = self.usd
        self.document = ClusterDocument.model_validate(said)

    def done(self, job):
        return self.slurm.state(job) == "COMPLETED"

    def away(self, seconds):
        """Slurm and the rented nodes go on, and nobody looks."""
        end = self.clock.at + seconds
        while self.clock.at < end:
            self.slurm.live()
            self.clock.at = min(end, self.clock.at + 10)
        self.ledger.close()
        self.start()

    def money(self):
        return spending.budget(self.ledger, BudgetDocument(usd_per_month=1000.0), self.clock.now())

    def check(self):
        """The job that ran wasn't disturbed, and the ceiling held."""
        self.until(lambda: not self.cloud.alive() and not self.ledger.leases(), HOUR)
        assert self.done(self.long) and len(self.slurm.jobs[self.long].started) == 1, self.events("interrupted")
        assert self.money().spent_usd <= self.usd


@pytest.mark.parametrize("away_s", [60, 180, 270])
@pytest.mark.parametrize("longer_s", [760, 900, 1100])
def test_what_idled_meanwhile_is_ended_and_the_job_beside_it_goes_on(tmp_path, away_s, longer_s):
    site = Site(tmp_path, 600, longer_s)
    site.until(lambda: site.done(site.short), 1200)
    site.away(away_s)
    site.tick()
    site.check()


def test_one_that_was_told_to_end_needs_no_money_any_more(tmp_path):
    """Its end is confirmed; the controller dies before it sees that."""
    site = Site(tmp_path, 600, 760)
    site.until(lambda: site.done(site.short), 1200)
    site.until(lambda: records.TERMINATED in site.states(), 300)
    site.away(60)
    site.check()


@pytest.mark.parametrize("away_s", [1200, 1500, 1700])
def test_one_that_ended_itself_is_paid_until_slurm_missed_it_and_not_until_its_switchs_limit(tmp_path, away_s):
    """It was told when its lease ends; Slurm holds it for dead five minutes after it ended, and so long it counts."""
    site = Site(tmp_path, 600, 600 + away_s)
    site.until(lambda: site.done(site.short), 1200)
    (idle,) = (lease for lease in site.ledger.leases() if not site.slurm._on(lease.node))
    site.away(away_s)
    assert len(site.cloud.alive()) == 1, "the idle one ended itself"
    site.cloud.ended_shown_s = 0.0
    site.until(lambda: site.ledger.lease_of_instance(idle.instance_id) is None, 600)
    ended_s = site.cloud.all[idle.instance_id].ended_at
    to_s = site.ledger.lease_of_instance(idle.instance_id, open_only=False).to_s
    assert ended_s <= to_s <= ended_s + site.slurm.down_s + TICK_S
