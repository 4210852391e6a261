"""`--on dask:ADDRESS` on a site's own machines, by the how-to's commands as they stand there: a Dask scheduler on the
head, a worker over SSH, and workers as jobs of a real Slurm. They say the same as one process, byte for byte.

What the test sets: names, numbers and a folder of wheels, as lab hosts reach no registry.
"""

import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from lab.system import CHECKOUT, wait_for
from tests import wheels

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.usefixtures("converged")]
NODE, WORKERS = "dgx01", 3  # one over SSH, two of Slurm's
HERE = {"node1": NODE, "1-8": "1-2", "nworkers 16": "nworkers 1", "cpus-per-task=16": "cpus-per-task=1", "=1G": "=900M"}
JOBS = "submit_s,duration_s,num_gpus\n" + "".join(f"{n * 400},{1200 + n % 7 * 900},{1 + n % 16}\n" for n in range(300))
FEW = "--nodes 2,8 --jobs 300 --json"
PIP = "PIP_NO_INDEX=1 PIP_FIND_LINKS=/shared/dask-wheels PIP_DISABLE_PIP_VERSION_CHECK=1"
PATIENCE_S = 600  # of a loaded machine
# Debian's Python makes none without it
VENV = """set -e
install -d -o alice /shared/dask
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-venv > /dev/null
"""
ASK = """import sys
from distributed import Client
client = Client("tcp://head:8786", timeout=60)
{}
"""
WHERE = ASK.format("print(*(worker['host'] for worker in client.scheduler_info(n_workers=-1)['workers'].values()))")
PLAYED = ASK.format("print(client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.transition_counter))")
END = ASK.format("client.shutdown()")


def how_to():
    """The commands of the section, by their first words; without comments and without the shell's `&`."""
    section = (CHECKOUT / "docs/how-to/try.md").read_text().split("### On many machines")[1]
    block = re.search(r"```sh\n(.*?)```", section, re.DOTALL)[1]
    for name, here in HERE.items():
        assert name in block
        block = block.replace(name, here)
    lines = [re.sub(r"( &)?\s*(#.*)?$", "", line) for line in block.splitlines()]
    return {
        next(word for word in ("venv", "export", "scheduler", "ssh", "sbatch", "ironburst ") if word in line): line
        for line in lines
        if line
    }


@pytest.fixture(scope="module")
def folder(site, tmp_path_factory):
    """What the hosts share: wheels, the jobs, the stack file."""
    shared = site.dir / "shared"
    (shared / "dask-wheels").mkdir()
    wheel = wheels.build(tmp_path_factory.mktemp("wheel"), shared / "dask-wheels")
    python = site.ssh("head", "python3 -c 'import sys; print(\"%d.%d\" % sys.version_info[:2])'").stdout.strip()
    fetch = ["download", "--quiet", "--only-binary=:all:", "--python-version", python, "--dest", shared / "dask-wheels"]
    subprocess.run([sys.executable, "-m", "pip", *map(str, fetch), f"{wheel}[dask]"], check=True, timeout=PATIENCE_S)
    (shared / "alice" / "jobs.txt").write_text(JOBS)
    stack = CHECKOUT / "stacks/Pulumi.prod.yaml"
    (shared / "alice" / "stacks").mkdir()
    (shared / "alice" / "stacks" / stack.name).write_text(stack.read_text())
    return shared


def test_workers_over_ssh_and_of_slurm_say_the_same_as_one_process(site, folder):
    line = how_to()
    head = site.host("head")
    head.ssh(VENV, timeout=PATIENCE_S)

    def alice(command, **options):
        whole = f"{line['export']}; cd /shared/alice; {command}"
        return head.ssh(f"runuser -u alice -- bash -c {shlex.quote(whole)}", timeout=PATIENCE_S, **options).stdout

    alice(f"export {PIP}; {line['venv']}")
    with ThreadPoolExecutor() as threads:
        alone = alice(f"{line['ironburst '].partition(' --on ')[0]} {FEW}")
        threads.submit(alice, line["scheduler"], check=False)
        try:
            wait_for(lambda: "8786" in head.ssh("ss -Hltn").stdout, PATIENCE_S, "the scheduler", pause=1)
            over_ssh = line["ssh"].partition(f"ssh {NODE} ")[2]
            threads.submit(site.ssh, NODE, over_ssh, timeout=PATIENCE_S, check=False)
            alice(line["sbatch"])

            def hosts():
                there = alice(f"python -c {shlex.quote(WHERE)}").split()
                return there if len(there) == WORKERS else []

            nodes = wait_for(hosts, PATIENCE_S, "the workers", pause=2)
            assert site.host(NODE).spec.address in nodes and head.spec.address not in nodes
            shared_out = alice(f"{line['ironburst ']} {FEW}")
            assert int(alice(f"python -c {shlex.quote(PLAYED)}")) > 0
        finally:
            alice(f"python -c {shlex.quote(END)}", check=False)
    assert shared_out == alone
