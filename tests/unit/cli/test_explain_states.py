"""What is told of a job is so in each state that Slurm shows it in.

slurm_fixtures/24.11/states.json: `squeue --json` of 24.11.5 on the lab's head (data_parser v0.0.42; the fields that are
read), in the order in which they were seen: jobs of alice wait (an array, a heterogeneous job, one with
--time=UNLIMITED, one held, one with the comment of a job whose nodes are there), the running one is suspended, the
widened one comes back from a node without a lease, the running one is requeued and completes, and is back in the queue
while others run. sacct.txt: `sacct` there, afterwards.
"""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from ironburst import cli
from ironburst.adapters.slurm import answers as slurm_json
from ironburst.adapters.slurm import comments as slurm_comments
from ironburst.adapters.slurm import own as slurm_own
from ironburst.cli import explain_own, site_options
from ironburst.controller import job_story, status_report
from ironburst.controller.ledger import Ledger
from ironburst.controller.tick import Controller
from ironburst.page import view
from ironburst.page.seen import Look, PageFiles
from ironburst.ports import SchedulerError
from ironburst.system import local_time
from tests.fakes import FakeClock, FakeCloud, FakeSlurm, document

FIXTURES = Path("tests/adapters/slurm_fixtures/24.11")
STATES = json.loads((FIXTURES / "states.json").read_text())
SACCT = (FIXTURES / "sacct.txt").read_text().replace("|", "\x1f")
NOW = 1795780940.0
MEANT = re.compile(r"predicted|may start|being rented|can't be rented|waits")


class Played(FakeSlurm):
    """Shows the jobs of a state, with the comments that it was given since."""

    def __init__(self, clock):
        super().__init__(clock)
        self.state, self.given = "waiting", {}

    def observe(self):
        answer = STATES[self.state]
        read, (said, together) = slurm_json.read_jobs(answer), slurm_comments.comments(answer)
        called = {job.id: together.get(job.id) or job.called or str(job.id) for job in read.items}
        # a task that Slurm splits off its array takes the comment with it
        row = next((text for name, text in self.given.items() if "_[" in name), "")
        given = {id: self.given.get(name, row if "_" in name else "") for id, name in called.items()}
        comments = said | {id: text for id, text in given.items() if text}
        seen = super().observe()
        return replace(seen, jobs=tuple(read.items), comments=comments, together=together)

    def place(self, job, partitions, excluded, *, begin_now=False):
        """What comes of it, the states show."""

    def comment(self, said):
        for name in said:
            if name.isdigit() or "+" in name:
                rows = [job for job in STATES[self.state]["jobs"] if "COMPLETING" in job["job_state"]]
                assert name not in {str(job["job_id"]) for job in rows}, "Job has already finished"
        self.given |= said

    def rows(self):
        """What its users see, by what they call a job: (state, comment)."""
        return {
            job.called or str(job.id): (job, self.observe().comments.get(job.id, "")) for job in self.observe().jobs
        }


@pytest.fixture
def played(tmp_path):
    clock = FakeClock()
    clock.at = NOW
    slurm = Played(clock)
    ledger = Ledger(tmp_path / "ledger.sqlite")
    controller = Controller(slurm, FakeCloud(clock, slurm), ledger, clock)

    def show(state):
        slurm.state = state
        clock.at += 400
        for _ in range(2):
            controller.tick(document())
        return slurm

    show.slurm = slurm
    yield show, ledger
    ledger.close()


def walk(show):
    for state in STATES:
        slurm = show(state)
        for called, (job, comment) in slurm.rows().items():
            yield state, called, job, comment


def test_a_comment_is_so_in_each_state(played):
    show, _ = played
    seen = {}
    for state, called, job, comment in walk(show):
        where = f"{state}: {called} {job.state} says {comment!r}"
        seen.setdefault(job.state, []).append(comment)
        if job.state == "COMPLETING":
            continue  # Slurm takes no comment of it any more
        if job.on:
            assert comment in ("", f"ironburst: on {', '.join(job.on)}"), where
        else:
            assert comment.startswith("ironburst: ") and "ironburst: on " not in comment, where
    assert set(seen) == {"PENDING", "RUNNING", "SUSPENDED", "COMPLETING"}


def test_tasks_that_wait_together_have_one_comment_that_names_them(played):
    show, _ = played
    show("waiting")
    slurm = show("suspended")
    assert [name for name in slurm.given if name.startswith("10_")] == ["10_[0-3]"], "another name splits tasks off"
    assert re.match(r"ironburst: 10_0 and \d more: .+?(; 10_3: .+)?$", slurm.given["10_[0-3]"])


def test_a_row_that_squeue_cut_short_gets_no_comment(played, monkeypatch):
    show, _ = played
    cut = json.loads(json.dumps(STATES["waiting"]))
    next(job for job in cut["jobs"] if job["array_task_string"])["array_task_string"] = "0,2,4,6,8,..."
    monkeypatch.setitem(STATES, "waiting", cut)
    assert not [name for name in show("waiting").given if name.startswith("10_")]


def test_a_job_longer_than_its_partition_allows_is_never_predicted(played):
    show, _ = played
    told = [comment for _, _, job, comment in walk(show) if job.name == "unl"]
    assert set(told) == {
        "ironburst: it has no finite time limit, so its cost has no limit either: submit it with --time"
    }


def test_the_users_lines_are_so_in_each_state(played):
    show, _ = played
    for state, called, job, _ in walk(show):
        squeue = json.dumps(commented(show))
        (seen,) = [each for each in slurm_own.queue(lambda *_: squeue, NOW + 1e4) if each.called == called]  # noqa: B023
        text = explain_own.text(seen)
        if job.state == "PENDING":
            assert not re.match(r"it (runs|completes|was)", text), f"{state}: {called}: {text}"
            assert text != explain_own._NOTHING, f"{state}: {called}"
        else:
            assert job.on[0] in text and not MEANT.search(text), f"{state}: {called} {job.state}: {text}"


def commented(show):
    """The state's squeue with the comments that were given."""
    slurm = show.slurm
    answer = json.loads(json.dumps(STATES[slurm.state]))
    comments = slurm.observe().comments
    jobs = {job["job_id"]: job for job in answer["jobs"]}
    for id, text in comments.items():
        if id in jobs:
            jobs[id]["admin_comment"] = text
    for raw in answer["jobs"]:
        if raw["array_job_id"]["number"]:
            task = raw["array_task_id"]["number"] if raw["array_task_id"]["set"] else 0
            raw["admin_comment"] = comments.get(slurm_json.slurm_arrays.naming.task_of_array(10, task), "")
    return answer


def test_the_ledgers_story_status_and_the_page_are_so_in_each_state(played):
    show, ledger = played
    for state, called, job, _ in walk(show):
        told = job_story.gather(ledger, job.id, NOW)
        lines = job_story.lines(told)
        head = lines[1] if len(lines) > 1 else ""
        where = f"{state}: {called} {job.state}: {head}"
        if job.on:
            assert head.startswith(f"on {','.join(job.on)}"), where
            assert not any("looked at again" in line for line in lines), where
        else:
            assert not head.startswith("on "), where
            assert sum("looked at again" in line for line in lines) <= 1, where
    slurm = show("requeued")
    said = status_report.gather(document(), slurm.observe(), ledger, NOW)
    rows = {each["called"]: each for each in said["queue"]}
    page = view.queue(PageFiles(said, None, [], [], [], {}, lambda _: [], [], [], Look(None), ""))
    for each in (*page.jobs, *(view.JobLine(**_line(row)) for row in rows.values())):
        assert bool(each.why) == (each.state == "PENDING"), each
    # job 9 was on nodes, and is back in the queue
    assert job_story.lines(job_story.gather(ledger, 9, NOW))[1].startswith("was on dgx01")


def _line(row):
    return {name: row[name] for name in ("name", "user", "account", "state", "gpus", "why")} | {
        "id": row["called"],
        "where": "",
    }


def test_what_was_decided_before_is_not_told_as_if_it_held(played):
    """A job that is moved to a partition of which nothing is decided; a controller that is silent."""
    show, ledger = played
    slurm = show("waiting")
    last = ledger.last_decisions()
    assert {13, 14} <= last.keys()
    old = job_story.gather(ledger, 13, NOW + 4000)
    assert any("nothing was decided since" in line for line in job_story.lines(old))
    assert not any("nothing was decided since" in line for line in job_story.lines({**old, "asked_s": old["last_s"]}))
    moved = [replace(job, partitions=("long",)) for job in slurm.observe().jobs if job.id == 14]
    ledger.saw_jobs(moved, slurm.clock.now() + 10)
    assert 14 not in ledger.last_decisions()
    lines = job_story.lines(job_story.gather(ledger, 14, slurm.clock.now()))
    assert "nothing is decided of it now" in lines[1] and not any("looked at again" in line for line in lines)


def test_a_job_that_has_left_the_queue_was_on_its_nodes(played):
    show, ledger = played
    show("waiting")
    show("requeued")
    slurm = show("requeued")
    gone = next(job for job in slurm.observe().jobs if job.called == "10_0")
    ledger.left_queue(gone.id, NOW + 60)
    line = job_story.lines(job_story.gather(ledger, gone.id, NOW))[1]
    assert line == f"was on dgx02 from {local_time.at(gone.start_s)}; it was last seen {local_time.at(NOW + 60)}"


# ---- what an ordinary user is told


class Told:
    """Answers as the head's commands did; `said`: comments by what people call a job."""

    def __init__(self, state="waiting", **said):
        self.answer = json.loads(json.dumps(STATES[state]))
        for raw in self.answer["jobs"]:
            name = f"j{raw['job_id']}"
            raw["admin_comment"] = said.get(name, raw["admin_comment"])
        self.asked = []

    def show(self, *command):
        self.asked.append(command)
        if "squeue" in command:
            wanted = next((word.partition("=")[2] for word in command if word.startswith("--jobs=")), None)
            rows = [job for job in self.answer["jobs"] if wanted in (None, *self._names(job))]
            if wanted and not rows:  # as squeue says it of a job that slurmctld has forgotten
                raise SchedulerError("`squeue` failed: slurm_load_jobs error: Invalid job id specified")
            return json.dumps({"jobs": rows})
        wanted = next((word.partition("=")[2] for word in command if word.startswith("--jobs=")), None)
        rows = [line for line in SACCT.splitlines() if wanted in (None, line.split("\x1f")[0])]
        return "\n".join(rows) + "\n"

    def _names(self, raw):
        return [str(raw[key]["number"]) for key in ("array_job_id", "het_job_id")] + [str(raw["job_id"])]


@pytest.fixture
def user(tmp_path, monkeypatch):
    """A login node: no ledger, and Slurm's commands."""
    monkeypatch.delenv("IRONBURST_LEDGER", raising=False)
    monkeypatch.setattr(site_options, "LEDGER", str(tmp_path / "none.sqlite"))
    monkeypatch.setattr(explain_own.time, "time", lambda: NOW)

    def as_told(state="waiting", **said):
        told = Told(state, **said)
        monkeypatch.setattr(explain_own, "Slurm", lambda: told)
        return told

    return as_told


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("10_2", "Job 10_2: 10_0 and 3 more: predicted to start at home at"),
        ("10_[0-3]", "Job 10_0: 10_0 and 3 more: predicted"),
        ("11+1", "Job 11+1: nothing is said of it yet"),
        ("14", "Job 14: it may start on p5-1 or at home, whichever the scheduler finds first."),
        ("widened", "Job 14: it may start on p5-1 or at home"),
        ("het", "Job 11+1: nothing is said of it yet"),
        ("9", "Job 9: it runs on dgx01, dgx02 since "),
        ("2_0", "Job 2_0: it was on dgx01 from "),
        ("arr", "Job 10_3: 10_0 and 3 more"),
        ("5", "Job 5: it ended (CANCELLED) at "),
    ],
)
def test_a_user_may_ask_by_number_task_part_and_name(user, capsys, asked, words):
    user()
    assert cli.main(["explain", asked]) == 0
    assert words in capsys.readouterr().out


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("99999", "Slurm shows no job 99999: check the number"),
        ("10_900", "of an array that waits the next 100 are looked at"),
        ("no such; id", "none of your jobs of the last 30 days is called 'no such; id'"),
    ],
)
def test_what_nobody_has_is_told_in_a_sentence(user, capsys, asked, words):
    user()
    assert cli.main(["explain", asked]) == 2
    assert words in capsys.readouterr().err


def test_an_ended_jobs_meaning_is_not_told_as_if_it_still_waited(user, capsys):
    user()
    assert cli.main(["explain", "14"]) == 0
    for asked, words in (("2_0", "(CANCELLED)"), ("1", "it ended (CANCELLED)")):
        assert cli.main(["explain", asked]) == 0
        said = capsys.readouterr().out
        assert words in said
    assert "rented for about" not in said.splitlines()[-1], "the comment is of its first try, on other nodes or none"


def test_mine_has_what_runs_and_what_ended_with_its_cost(user, capsys):
    rented = "ironburst: on dgx01, dgx02, rented at $98.32 an hour (estimate)"
    told = user("suspended", j9=rented)
    (raw,) = [raw for raw in told.answer["jobs"] if raw["job_id"] == 9]
    raw["start_time"]["number"] = int(NOW) - 7200
    assert cli.main(["explain", "--mine"]) == 0
    said = capsys.readouterr().out
    assert "rented for about $196.64 so far" in said
    # and 3 s of the first try of job 1
    assert said.splitlines()[-1].startswith("rented for them: $196.72 (estimate")
    assert ("squeue", "--json", "--me") in told.asked
    assert cli.main(["explain", "--mine", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["usd"] == pytest.approx(98.32 * 2 + 98.32 * 3 / 3600)


def test_mine_without_accounting_says_so(user, capsys, monkeypatch):
    told = user()
    squeue = told.show

    def show(*command):
        if "sacct" in command:
            raise SchedulerError("`sacct` failed with exit code 1: Slurm accounting storage is disabled")
        return squeue(*command)

    monkeypatch.setattr(told, "show", show)
    assert cli.main(["explain", "--mine"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith("Slurm accounting storage is disabled")


@pytest.mark.parametrize("words", [["explain"], ["explain", "--mine", "4"]])
def test_one_job_or_all_of_mine(user, capsys, words):
    user()
    assert cli.main(words) == 2
    assert "write one job, or --mine for all of your own" in capsys.readouterr().err
