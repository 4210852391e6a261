"""Lines of sacct as tries of jobs."""

from pathlib import Path

import pytest

from ironburst.adapters.slurm.accounting import COLUMNS, command, runs
from ironburst.nodes import naming
from ironburst.replay.formats import TraceError

HEAD = "|".join(COLUMNS)


def read(*lines):
    return runs([HEAD, *lines], Path("sacct"))


def test_lines_of_slurm_24_11():
    """As the lab's slurmdbd answered (tests/lab/test_beside.py)."""
    (home, rented) = read(
        "1|1|1795561837|1795561837|1795562037|200|billing=1,cpu=1,gres/gpu=8,mem=50M,node=1|alice|physics|dgx01|COMPLETED",
        "3|3|1795561837|1795561897|1795561902|5|billing=1,cpu=1,gres/gpu=8,mem=1000M,node=1|alice|physics|p5-1|COMPLETED",
    )
    assert (home.gpus, home.elapsed_s, home.nodes, home.account) == (8, 200, ("dgx01",), "physics")
    assert (rented.start_s or 0) - rented.submit_s == 60 and rented.busy == 1.0


def test_a_job_that_went_back_to_the_queue_has_a_line_a_try():
    first, second = read(
        "7|7|1000|1100|1400|300|billing=1,cpu=8,gres/gpu=8,node=1|bob|nlp|p5-1|REQUEUED",
        "7|7|1400|1600|1700|100|billing=1,cpu=8,gres/gpu:h100=8,gres/gpu=8,node=1|bob|nlp|dgx01|COMPLETED",
    )
    assert (first.job, first.nodes, first.gpus, first.elapsed_s) == (7, ("p5-1",), 8, 300)
    assert (second.submit_s, second.start_s, second.end_s, second.user, second.account) == (
        1400,
        1600,
        1700,
        "bob",
        "nlp",
    )


def test_steps_are_left_out_and_tasks_are_jobs_of_their_own():
    steps = [f"12.{step}|8_3.{step}|1|2|3|1|gres/gpu=1|||dgx01|COMPLETED" for step in ("batch", "extern", "0")]
    (task,) = read("12|8_3|1|2|3|1|billing=1,gres/gpu=1|bob|nlp|dgx01|CANCELLED by 1001", *steps)
    assert (task.job, task.called) == (naming.task_of_array(8, 3), "8_3")
    (waiting,) = read("8|8_[4-9%2]|1|Unknown|Unknown|0||bob|nlp|None assigned|PENDING")
    assert (waiting.job, waiting.start_s, waiting.nodes, waiting.gpus) == (8, None, (), 0)
    assert read("9|9+0|1|2|3|1|gres/gpu=1|bob|nlp|dgx01|COMPLETED")[0].job == 9


def test_what_runs_has_no_end_and_what_was_lost_has_one():
    on = "billing=1,gres/gpu=4,node=3|bob|nlp|gpu[01-02],big7"
    assert read(f"1|1|10|20|Unknown|500|{on}|RUNNING")[0].end_s is None
    lost = read(f"1|1|10|20|Unknown|500|{on}|NODE_FAIL")[0]
    assert lost.end_s == 520 and lost.nodes == ("gpu01", "gpu02", "big7")


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["JobID|State"], "sacct, line 1: it has no column JobIDRaw; as sacct --parsable2 prints them"),
        ([], "sacct, line 1: it has no column JobIDRaw"),
        ([HEAD, "1|2"], "sacct, line 2 has 2 values; the first line names 11"),
        ([HEAD, "x|x|1|2|3|1|gres/gpu=1|a|b|n1|COMPLETED"], "line 2: JobIDRaw is 'x'; allowed is a job's number"),
        ([HEAD, "1|1|1|2|3|1|gres/gpu=1|a|b|n[a-b]|COMPLETED"], "NodeList is 'n.a-b.'"),
        ([HEAD, "1|1|1|2|3|1|gres/gpu=many|a|b|n1|COMPLETED"], "AllocTRES is 'gres/gpu=many'"),
        ([HEAD, "1|1|1|2|3|soon|gres/gpu=1|a|b|n1|COMPLETED"], "ElapsedRaw is 'soon'; allowed is a number"),
    ],
)
def test_a_damaged_answer_is_one_sentence(lines, said):
    with pytest.raises(TraceError, match=said):
        runs(lines, Path("sacct"))


def test_slurm_is_asked_in_utc_with_every_try():
    words = command(1795262400.0, 1795348800.0)
    assert words[:4] == ("env", "TZ=UTC", "SLURM_TIME_FORMAT=%s", "sacct") and "--duplicates" in words
    assert "--starttime=2026-11-21T12:00:00" in words and "--endtime=2026-11-22T12:00:00" in words
