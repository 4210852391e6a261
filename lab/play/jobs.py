"""Jobs of a player: submitted as an ordinary user does, and waited for."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ironburst.controller.ledger import Ledger
from ironburst.nodes import naming
from lab.demo.burst import SPOKEN, over
from lab.play.kept_lab import BadInput, KeptLab
from lab.system import LabError

BEFORE_S = 30  # what the controller did just before is told, too
UNITS_S = {"s": 1, "m": 60, "h": 3600}
STATES = {
    "decided": "the controller has said something about it",
    "running": "it runs",
    "requeued": "Slurm has started it again, or will: its node is gone",
    "done": "it has ended",
    "drained": "of a node: it takes no new jobs",
}


SACCT = "sacct -a -X -n -P --array"
"""without steps; a row for each task of an array, also of those that wait together"""


@dataclass(frozen=True)
class Wanted:
    """What is asked of sbatch."""

    command: str = "sleep 90"
    nodes: int = 1
    gpus: int = 8
    """of each node"""
    limit_s: float = 1200
    name: str = "play"

    def script(self) -> str:
        """The batch script; BadInput for what no job can have."""
        if self.nodes < 1 or not 0 <= self.gpus <= 8:
            raise BadInput(f"--nodes {self.nodes} --gpus {self.gpus}: at least 1 node, with 0 to 8 GPUs each")
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}", self.name):
            raise BadInput(f"--name {self.name!r}: letters, digits, '_', '.' and '-', at most 40")
        minutes = max(1, -(-self.limit_s // 60))
        gres = f" --gres=gpu:{self.gpus}" if self.gpus else ""
        return (
            "#!/bin/bash\n"
            f"#SBATCH --job-name={self.name} --nodes={self.nodes} --ntasks-per-node=1{gres}\n"
            f"#SBATCH --time={minutes:.0f} --requeue --output={self.name}-%j.out --open-mode=append\n"
            f"{self.command}\n"
        )


def seconds(text: str) -> float:
    """Of 90s, 20m, 1h; BadInput for anything else."""
    if not (given := re.fullmatch(r"(\d{1,6})([smh])", text)):
        raise BadInput(f"{text!r} is no time: write 90s, 20m or 1h")
    return int(given[1]) * UNITS_S[given[2]]


def submit(lab: KeptLab, wanted: Wanted, user: str) -> int:
    """sbatch on the head; the job's id. LabError with sbatch's words where it refuses."""
    script = wanted.script()
    head = lab.node("head")
    done = head.ssh(lab.as_user(head, user, "sbatch --parsable"), check=False, stdin=script)
    if done.returncode:
        said = (done.stderr.strip() or "no message").splitlines()[-1]
        raise LabError(f"sbatch refused it: {said.removeprefix('sbatch: error: ')}")
    return int(done.stdout)


def job_ids(lab: KeptLab, asked: str) -> list[int]:
    """Of a number, a task (8_1) or a name (of several the newest); of an array each task. BadInput if there is none."""
    if not re.fullmatch(r"[A-Za-z0-9_.-]+", asked):
        raise BadInput(f"{asked!r} is no job's number or name")
    number = re.fullmatch(r"\d+(_\d+)?", asked)
    which, since = (f"-j {asked}", "") if number else (f"--name={asked}", "-S now-1days")
    # tasks that wait come late into the accounting, and jobs that are over leave the queue, which knows no such -j then
    listed = f"squeue -h -r -t all -o %i {which} 2>/dev/null; {SACCT} -o JobID {which} {since}"
    of: dict[int, set[int]] = {}
    for each in lab.head.root(listed).split():
        of.setdefault(int(re.split("[_+]", each)[0]), set()).add(naming.id_of(each))
    if not of:
        raise BadInput(f"Slurm knows no job {asked!r}: `ironburst lab shell head squeue` shows the queue")
    return sorted(of[max(of)])


def states_of(lab: KeptLab, jobs: Sequence[int]) -> dict[int, str]:
    """Slurm's state of each, also after it has left the queue; empty: it isn't in the accounting yet."""
    queued, ended = lab.head.queue(), dict[int, str]()
    if not all(job in queued for job in jobs):
        asked = ",".join(map(naming.called, jobs))
        for line in lab.head.root(f"{SACCT} -o JobID,State -j {asked}").splitlines():
            job, _, state = line.partition("|")
            ended[naming.id_of(job)] = state.split(" ")[0]
    return {job: queued.get(job) or ended.get(job, "") for job in jobs}


def wait(lab: KeptLab, asked: str, until: str, limit_s: float, say: Callable[[str], None]) -> str:
    """Say what the controller does until the job, or the node, is so far; then a sentence. LabError after `limit_s`, or
    where it can't come about any more.
    """
    look = _node_look(lab, asked) if until == "drained" else _job_look(lab, asked, until)
    began = time.time()
    told: set[tuple[float, str, str]] = set()
    while True:
        with lab.ledger() as ledger:
            _tell(ledger, began, told, say)
        now, so_far = look()
        if so_far:
            return now
        if time.time() - began > limit_s:
            raise LabError(f"{asked} was not {until} within {limit_s:g} s: {now}")
        time.sleep(0.5)


def _node_look(lab: KeptLab, node: str) -> Callable[[], tuple[str, bool]]:
    lab.node(node)

    def look() -> tuple[str, bool]:
        said = lab.head.root(f"sinfo --noheader --nodes={node} --format='%T|%E'").splitlines()
        state, _, reason = (said or ["unknown to Slurm|"])[0].partition("|")
        return f"node {node} {state}: {reason}", state.startswith("drain")

    return look


def _job_look(lab: KeptLab, asked: str, until: str) -> Callable[[], tuple[str, bool]]:
    """Of an array: done when all its tasks are, else so far when one of them is."""
    jobs = job_ids(lab, asked)
    first = naming.called(jobs[0])
    called = f"job {first}" if len(jobs) == 1 else f"{len(jobs)} tasks of job {first.partition('_')[0]}"

    def look() -> tuple[str, bool]:
        states = states_of(lab, jobs)
        counted = Counter(states.values())
        said = ", ".join(f"{count} {state}" if len(jobs) > 1 else state for state, count in counted.items())
        if all(map(over, states.values())):
            if until != "done":
                raise LabError(f"{called} {'is' if len(jobs) == 1 else 'are'} over ({said}): {until} comes no more")
            return f"{called} {said}", True
        if until == "decided":
            with lab.ledger() as ledger:
                decided = any(ledger.decisions(job) or ledger.leases_for(job) for job in jobs)
            return f"{called} {said}", decided or "RUNNING" in counted
        if until == "requeued":
            shown = lab.head.root(f"scontrol show job {first if len(jobs) == 1 else first.partition('_')[0]}")
            return f"{called} {said}", bool(re.search(r"Restarts=[1-9]", shown))
        running = (line.split() for line in lab.head.root("squeue -h -r -t running -o '%i %N'").splitlines())
        where = " ".join(sorted({nodes for job, nodes in running if naming.id_of(job) in jobs}))
        return f"{called} {said} on {where or 'no node yet'}", until.upper() in counted

    return look


def _tell(ledger: Ledger, began: float, told: set[tuple[float, str, str]], say: Callable[[str], None]) -> None:
    for event in ledger.events(began - BEFORE_S):
        key = (event.at_s, event.kind, event.text)
        if event.kind in {*SPOKEN, "joined"} and key not in told:
            told.add(key)
            say(f"{time.strftime('%H:%M:%S', time.localtime(event.at_s))}  {event.kind}: {event.text}")
