"""A site after two days of work: its document, ledger and ticks as real files, written by the real controller."""

from pathlib import Path

from ironburst.document import BudgetDocument
from tests.fakes import ASK
from tests.fakes.world import World

HOUR = 3600.0
HOSTILE = "<script>document.title='owned'</script>\"'&amp;"
ACCOUNTS = ("vision", "language", "")


class Operated(World):
    """Home is full; jobs were rented for on both days; then rented nodes stop joining, and the pool is closed."""

    def __init__(self, folder: Path):
        super().__init__(folder, home=3)
        budget = BudgetDocument(usd_per_month=20000.0, usd_per_day=4000.0, accounts={"vision": 3000.0})
        self.document = self.document.model_copy(update={"budget": budget})
        self.document_path = folder / "lab.json"
        self.document_path.write_text(self.document.model_dump_json())
        for account in ("vision", "language"):
            self.slurm.submit(limit_s=72 * HOUR, runs_s=72 * HOUR, account=account, name="pretrain", user="ann")
        for hour in range(20):
            self._work(hour)
            self.pass_by(HOUR, 300.0)
        self.slurm.gate_fails = {"p5-1", "p5-2", "p5-3"}
        self.slurm.nodes["dgx03"].states = {"DOWN", "NOT_RESPONDING"}
        self.slurm.nodes["dgx03"].adds("Not responding", self.clock.now())
        self.waits = self.slurm.submit(limit_s=2 * HOUR, name="eval-large", user="ben", account="vision")
        self.endless = self.slurm.submit(limit_s=None, name="notebook", user="cho")
        self.hostile = self.slurm.submit(limit_s=HOUR, name=HOSTILE, user='o"brien><b>', account="vision")
        self.pass_by(2 * HOUR, 60.0)
        self.ledger.close()

    def _work(self, hour: int) -> None:
        many = 1 + hour % 3 // 2
        for n in range(many):
            long_s = HOUR * (1 + (hour + n) % 3)
            account = ACCOUNTS[(hour + n) % 3]
            each = ASK if hour % 4 else ASK.__class__(4, 1, 1000)
            more = {"account": account, "name": f"train-{hour}-{n}", "user": ("ann", "ben", "cho")[n % 3], "each": each}
            self.slurm.submit(limit_s=long_s, runs_s=0.8 * long_s, **more)
