"""The demo's input: a slice of the Philly trace, time-compressed, as sbatch scripts. data/README.md has source and
licence.
"""

from __future__ import annotations

import csv
import hashlib
import math
from dataclasses import dataclass
from pathlib import Path

SLICE = Path(__file__).with_name("data") / "philly_slice.csv"
COMPRESSION = 450  # one hour of the trace is 8 s of the demo
GPUS_PER_NODE = 8


@dataclass(frozen=True)
class TraceJob:
    """One job of the trace. Times are seconds of the demo, after compression."""

    number: int
    submit_s: float
    run_s: float
    gpus: int
    virtual_cluster: str

    @property
    def name(self) -> str:
        return f"philly-{self.number:02d}"

    @property
    def nodes(self) -> int:
        return max(1, math.ceil(self.gpus / GPUS_PER_NODE))

    @property
    def limit_minutes(self) -> int:
        """What the user asks for: the run time and a fifth more, in Slurm's whole minutes."""
        return max(1, math.ceil(self.run_s * 1.2 / 60))


def jobs(path: Path = SLICE, compression: float = COMPRESSION) -> list[TraceJob]:
    """The slice in order of submit; the first job is submitted at 0."""
    with path.open() as file:
        rows = sorted(
            (int(r["submit_s"]), int(r["duration_s"]), int(r["num_gpus"]), r["vc"]) for r in csv.DictReader(file)
        )
    first = rows[0][0]
    return [
        TraceJob(number, (submit - first) / compression, run / compression, gpus, vc)
        for number, (submit, run, gpus, vc) in enumerate(rows, 1)
    ]


def script(job: TraceJob) -> str:
    """The batch script. It works (here: sleeps), then leaves a result with its checksum in the submit folder.

    A run that ends appends one line to runs-<name>: two lines would mean that the job ran twice.
    """
    return f"""#!/bin/bash
#SBATCH --job-name={job.name} --nodes={job.nodes} --ntasks-per-node=1 --gres=gpu:{job.gpus // job.nodes}
#SBATCH --time={job.limit_minutes} --requeue --output={job.name}-%j.out --open-mode=append
set -eu
srun --ntasks-per-node=1 sh -c 'echo "$SLURM_NODEID $SLURMD_NODENAME $(hostname)"' \
  | sort > nodes-{job.name} < /dev/null
sleep {job.run_s:.1f}
result="job=$SLURM_JOB_ID name={job.name} gpus={job.gpus} nodes=$SLURM_JOB_NODELIST \
restarts=${{SLURM_RESTART_COUNT:-0}}"
printf '%s\\n%s\\n' "$result" "$(printf %s "$result" | sha256sum | cut -d' ' -f1)" > result-{job.name}.tmp
mv result-{job.name}.tmp result-{job.name}
echo "$SLURM_JOB_ID" >> runs-{job.name}
"""


def checksum(result: str) -> str:
    """The checksum that the script wrote beside this result line."""
    return hashlib.sha256(result.encode()).hexdigest()
