"""What the demo says of its training job: the output is that of examples/slurm/ddp-srun.sbatch on two rented nodes of
the lab, one of which was taken back.
"""

from types import SimpleNamespace

import pytest

from lab.demo.summary import Summary, as_json
from lab.demo.training import seen

FIRST = """\
2 ranks on p5-[1-2], from step 0
slurmstepd-p5-1: error: *** JOB 16 ON p5-1 CANCELLED AT 2026-11-27T11:51:58 DUE TO JOB REQUEUE ***
slurmstepd-p5-1: error: *** STEP 16.0 ON p5-1 CANCELLED AT 2026-11-27T11:51:58 DUE TO JOB REQUEUE ***
srun: Job step aborted: Waiting up to 32 seconds for job step to finish.
srun: got SIGCONT
srun: forcing job termination
saved at step 36 because of SIGTERM
srun: error: p5-1: task 0: Exited with exit code 143
"""
SECOND = "2 ranks on p5-[2-3], from step 36\ndone: 400 steps, loss 0.0123\n"


def test_it_went_on_from_the_step_that_it_had_saved():
    told = seen(FIRST + SECOND, "p5-1")
    assert told.good() and told.as_json()["starts"] == (("p5-[1-2]", 0), ("p5-[2-3]", 36))
    starts = "on p5-[1-2] from step 0; then on p5-[2-3] from step 36"
    assert told.text() == f"PyTorch, two ranks {starts}, to its 400 steps; p5-1 was taken back"


@pytest.mark.parametrize(
    "output",
    [
        FIRST,  # it never came back
        FIRST + SECOND.replace("from step 36", "from step 0"),  # it began anew
        FIRST.replace("saved", "lost") + SECOND,
        SECOND,  # it was never interrupted
    ],
)
def test_what_did_not_come_about_is_not_told(output):
    assert not seen(output, "p5-1").good()


def test_a_demo_whose_training_did_not_go_on_is_not_good():
    told = SimpleNamespace(jobs=[SimpleNamespace(fate="home", gpu_hours=1.0)], run_twice=0, spent_usd=0.0, leases=())
    result = Summary("engine", history=told, leftovers={"cloud": 0}, kept=True, training=seen(FIRST, "p5-1"))
    assert not result.good() and not as_json(result)["training"]["survived"]
    result.training = seen(FIRST + SECOND, "p5-1")
    assert result.good()
