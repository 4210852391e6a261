"""The nodes of a gang find each other, and their head, by the names that Slurm gives them, before the gang's first
step; names are used again by instances at other addresses.
"""

import pytest

from tests.faults.live.live import until

pytestmark = [pytest.mark.lab, pytest.mark.slow]
GANGS, NODES = 7, ("p5-1", "p5-2", "p5-3")
# As every template for PyTorch and MPI begins; then what each node finds, and whether the first one is reached there
JOB = """#!/bin/bash
#SBATCH --job-name=names --nodes=3 --ntasks-per-node=1 --gres=gpu:8 --time=5 --output=names-%j.out
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)
export MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))
srun sh -c 'for node in p5-1 p5-2 p5-3 head; do
  echo "$SLURMD_NODENAME $(hostname) $node $(getent ahostsv4 $node | head -n1 | cut -d" " -f1)"; done'
srun python3 -c '
import os, socket
where = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if os.environ["SLURM_PROCID"] == "0":
    server = socket.create_server(where)
    print("reached", len([server.accept() for _ in "ab"]))
else:
    for _ in range(600):
        if socket.socket().connect_ex(where) == 0:
            break
        __import__("time").sleep(0.1)
'
while [ ! -e go-names-$SLURM_JOB_ID ]; do sleep 0.2; done
"""


def test_twenty_one_leases_of_three_names(live):
    seen = set()
    for _ in range(GANGS):
        job = int(live.head.alice("sbatch --parsable", stdin=JOB))
        until(lambda job=job: "RUNNING" in live.job_state(job), 90, f"job {job} running")
        asked = live.head.root(f"for node in {' '.join(NODES)}; do getent ahostsv4 $node | head -n1; done")
        addresses = {lease.node: live.host(lease).spec.address for lease in live.leases()}
        assert [line.split()[0] for line in asked.splitlines()] == [addresses[node] for node in NODES]
        (live.folder / f"go-names-{job}").touch()  # it is over in a second otherwise, before anybody has looked
        until(lambda job=job: live.job_state(job) == "COMPLETED", 60, f"the end of job {job}")
        lines = (live.folder / f"names-{job}.out").read_text().splitlines()
        printed = [line for line in lines if not line.startswith("srun: ")]  # a step waited for the one before it
        expected = addresses | {"head": "10.78.0.10"}
        wanted = [f"{node} {node} {name} {expected[name]}" for node in NODES for name in expected]
        assert sorted(printed) == sorted([*wanted, "reached 2"])
        seen |= set(addresses.values())
        until(live.left_over, 120, "nothing left over")
        gone = live.head.root(f"for node in {' '.join(NODES)}; do getent ahostsv4 $node | head -n1; done")
        assert {line.split()[0] for line in gone.splitlines()} == {"233.252.0.1"}
    assert len(seen) > len(NODES), "an instance never came to another address: this shows nothing"
