"""Step 6: a training job of two ranks, as people copy it from examples/, on two rented nodes. The cloud takes one of
them back, and the job goes on from the step that it had saved.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from ironburst.controller.ledger import Ledger
from lab.demo import refusal
from lab.demo.burst import SUBMIT_FOLDER, Head, take_back
from lab.demo.inside import Inside
from lab.packages import environment
from lab.system import CHECKOUT, wait_for

JOBS = CHECKOUT / "examples/slurm"
STEPS, STEP_S = 400, 0.05
LIMIT_S = 240
# A rank a node, where a node has no GPU that PyTorch could use; all else is the example's
SUBMIT = f"sbatch --parsable --ntasks-per-node=1 --time=10 ddp-srun.sbatch --steps {STEPS} --step-seconds {STEP_S}"
BEGAN = re.compile(r"^2 ranks on (\S+), from step (\d+)$", re.MULTILINE)
SAVED = re.compile(r"^saved at step (\d+) because of SIGTERM$", re.MULTILINE)
DONE = re.compile(rf"^done: {STEPS} steps, loss ", re.MULTILINE)


@dataclass(frozen=True)
class Training:
    """What the job printed. Steps are the program's."""

    starts: tuple[tuple[str, int], ...]
    """(nodes, from which step) of each start"""
    saved: tuple[int, ...]
    """at which step it saved because it was told to stop"""
    interrupted: str
    """the node that was taken back"""
    done: bool

    def good(self) -> bool:
        """It was interrupted, went on from where it had saved, and came to its end."""
        went_on = len(self.starts) > 1 and len(self.saved) == len(self.starts) - 1
        return self.done and went_on and tuple(step for _, step in self.starts[1:]) == self.saved

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"survived": self.good()}

    def text(self) -> str:
        starts = "; then ".join(f"on {nodes} from step {step}" for nodes, step in self.starts)
        end = f"to its {STEPS} steps" if self.done else "NOT to its end"
        return f"PyTorch, two ranks {starts}, {end}; {self.interrupted} was taken back"


def seen(text: str, interrupted: str) -> Training:
    """Of the job's output."""
    starts = tuple((nodes, int(step)) for nodes, step in BEGAN.findall(text))
    return Training(starts, tuple(map(int, SAVED.findall(text))), interrupted, bool(DONE.search(text)))


def run(inside: Inside, ledger: Ledger, say: Callable[[str], None]) -> Training:
    """Fill the hall, submit the job, take one of its nodes back when it has trained for a while, wait for its end.
    LabError if one of these doesn't come.
    """
    shared = inside.site.dir / "shared"
    environment.put(shared / "env", inside.box.root)
    for file in JOBS.iterdir():
        shutil.copy(file, shared / "alice")
    room = next(room for room in inside.cloud.rooms if any(room.capacity.values()))  # one may sell nothing
    place = {"instance_type": room.instance_type, "zone": max(room.capacity)[0], "market": "spot"}
    room.control(inside, "POST", "/lab/capacity", **place, count=4)
    head = Head(inside)
    full = int(head.alice("sbatch --parsable", stdin=refusal.script("full-hall", 60)))
    wait_for(lambda: head.queue().get(full) == "RUNNING", LIMIT_S, "a job that fills the hall", pause=0.2)
    job = int(head.alice(SUBMIT))
    output = shared / SUBMIT_FOLDER.removeprefix("/shared/") / f"slurm-{job}.out"
    say(f"job {full} fills the hall; job {job} is examples/slurm/ddp-srun.sbatch: PyTorch, a rank on each of two nodes")

    def text() -> str:
        return output.read_text() if output.exists() else ""

    wait_for(lambda: BEGAN.search(text()), LIMIT_S, f"job {job} trains (see {output})", pause=0.2)
    first = seen(text(), "")
    say(f"it trains on {first.starts[0][0]}")
    lease = next(lease for lease in ledger.leases() if lease.market == "spot" and lease.state == "ready")
    take_back(inside, lease, "while it trains", say)
    wait_for(lambda: head.queue().get(job) == "PENDING", LIMIT_S, f"job {job} back in the queue", pause=0.2)
    head.alice(f"scontrol update jobid={job} starttime=now")  # Slurm lets a requeued job wait two minutes
    wait_for(lambda: DONE.search(text()), LIMIT_S, f"job {job} ends (see {output})", pause=0.2)
    head.alice(f"scancel {full}")
    result = seen(text(), lease.node)
    say(result.text())
    wait_for(lambda: not ledger.leases(), LIMIT_S, "every lease is given back", pause=0.2)
    return result
