"""A ledger of each form that was ever written, by the program of its commit (ledgers/write.py): it is read as it is,
brought up to date, moved into PostgreSQL, and its controller goes on.
"""

import gzip
import hashlib
import re
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from ironburst.controller import copies, postgresql, records, schema, spending
from ironburst.controller.job_story import gather, lines
from ironburst.controller.ledger import Ledger
from tests.fakes.world import World
from tests.postgresql import ledger_file

KEPT = sorted((Path(__file__).parent / "ledgers").glob("*.gz"))
COMMITS = [path.name.split("-")[4].partition(".")[0] for path in KEPT]
NOW_S = 1795262554.0  # of the last tick of each
STATES = ["ended", "ready", "ready", "launched"]


@pytest.fixture(params=KEPT, ids=COMMITS)
def old(request, tmp_path):
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(gzip.decompress(request.param.read_bytes()))
    return path


def contents(path, columns):
    with closing(postgresql.database(path, read_only=True)) as db:
        return copies.contents(db, columns)


def columns(path):
    with closing(schema.opened(path, read_only=True)) as db:
        return copies.tables(db)


def paid(ledger):
    return spending.spent(ledger, spending.rates(ledger, NOW_S), NOW_S)


def test_it_is_read_before_a_controller_of_this_version_has_opened_it(old):
    before = old.read_bytes()
    with closing(Ledger(old, read_only=True)) as ledger:
        assert [lease.state for lease in ledger.leases(open_only=False)] == STATES
        for job in (1, 3, 4):
            assert lines(gather(ledger, job, NOW_S))
        assert ledger.open_runs() == [] and ledger.rates_paid_after(0.0) is not None
    assert old.read_bytes() == before


def test_brought_up_to_date_it_has_all_that_it_had(old):
    had = columns(old)
    was = contents(old, had)
    Ledger(old).close()
    assert contents(old, had) == was
    Ledger(old).close()
    assert contents(old, had) == was, "once more changes nothing"


def test_what_was_spent_is_the_same_in_all_of_them(old, tmp_path):
    with closing(Ledger(old)) as ledger:
        ended, *open_leases = ledger.leases(open_only=False)
        usd = sum(paid(ledger).month.values())
    # by hand: 24 $ for the time of the one that ended, and what the others have run
    hours = [(ended.to_s - ended.from_s, 24.0)] + [
        (max(NOW_S - each.from_s, 60.0), each.usd_per_hour) for each in open_leases
    ]
    assert usd == pytest.approx(sum(seconds / 3600 * price for seconds, price in hours), abs=0.001)


def test_it_moves_into_postgresql(old, tmp_path):
    had, target = copies.in_use(columns(old)), ledger_file(tmp_path / "moved")
    was = contents(old, had)
    copies.restore(old, target)
    assert contents(target, had) == was
    with closing(Ledger(target)) as ledger:
        assert [lease.state for lease in ledger.leases(open_only=False)] == STATES
        ledger.event("moved", "here", NOW_S)
        assert ledger.events()[-1].kind == "moved"


def test_its_controller_goes_on(old, tmp_path):
    """Of its instances and jobs nothing is there any more: the leases end, and a new job is rented for."""
    world = World(tmp_path, ledger=old)
    world.clock.at = NOW_S + 60
    world.fill_home()
    job = world.slurm.submit(limit_s=600, runs_s=60)
    world.until(lambda: world.slurm.state(job) == "COMPLETED" and not world.ledger.leases(), 7200)
    assert world.cloud.alive() == []
    assert {lease.state for lease in world.ledger.leases(open_only=False)} == {records.ENDED}
    assert len(world.ledger.leases(open_only=False)) >= len(STATES) + 1


def test_each_form_that_was_committed_is_here():
    """schema.sql of each kept file's commit, and of all that came before this one, by its text without comments."""
    git = ["git", "log", "--format=%h", "--reverse", "--", "ironburst/controller/schema.sql"]
    asked = subprocess.run(git, cwd=Path(__file__).parent.parents[2], capture_output=True, text=True)
    if asked.returncode or len(asked.stdout.split()) < len(KEPT):
        pytest.skip("no history here")
    forms = {commit: form(commit) for commit in [*asked.stdout.split(), *COMMITS]}
    assert {*forms.values()} == {forms[commit] for commit in COMMITS}


def form(commit):
    shown = subprocess.run(
        ["git", "show", f"{commit}:ironburst/controller/schema.sql"], cwd=Path(__file__).parents[3], capture_output=True
    )
    text = re.sub(r"--.*|\s+", " ", shown.stdout.decode()).replace('"', "")
    return hashlib.sha256(" ".join(text.split()).encode()).hexdigest()[:12]
