"""Jobs of a researcher (alice) on the lab's head, through the real sbatch, srun and salloc, and what is decided of
them.
"""

from contextlib import contextmanager
from dataclasses import replace

from ironburst.adapters.slurm.scheduler import Slurm
from ironburst.burst import Budget, Policy, Pool, Resources, Snapshot, decide
from lab.system import wait_for

SLEEP = "--wrap 'sleep 500'"
ONE = "--gres=gpu:1 -c 1 --time=9"
RENTED = "rented for"
HOME = "/shared/alice"


def alice(site, line, folder=HOME, **options):
    """What a command of hers prints; empty: it was refused."""
    done = site.ssh("head", f"cd {folder} && exec runuser -u alice -- {line}", check=False, **options)
    return done.stdout.strip() if done.returncode == 0 else ""


def pool():
    return Pool(
        name="p5",
        partition="burst-p5",
        nodes=("p5-1", "p5-2", "p5-3"),
        instance_type="p5.48xlarge",
        each=Resources(8, 16, 1000),
        gpu_type="h100",
        markets=("on-demand", "spot"),
        usd_per_hour={"on-demand": 50.0, "spot": 20.0},
        zones=("a",),
        boot_s=60.0,
        idle_s=60.0,
        max_run_s=360000.0,
        fabric="efa",
    )


def seen_on(inside):
    """What the controller sees, and when."""
    return Slurm(inside.argv(*inside.head_prefix())).observe(), float(inside.site.ssh("head", "date +%s").stdout)


def decided(seen, now_s, name, *, of_pool=None, of_policy=None, of_budget=None):
    """{RENTED and the market, or the code of why not}, each job of that name as if it were alone in the queue; the rest
    of the site as given.
    """
    policy = Policy("home", 0.0, spot_max_nodes=2, folders=("/shared",))
    policy, rented = replace(policy, **of_policy or {}), replace(pool(), **of_pool or {})
    running = [job for job in seen.jobs if job.on]
    codes = set()
    for job in (each for each in seen.jobs if each.pending and each.name == name):
        budget = replace(Budget(1e6, 0.0, 0.0, now_s + 864000.0), **of_budget or {})
        decision = decide(Snapshot(now_s + 60, (*running, job), seen.nodes, (rented,), budget=budget), policy)
        launched = {f"{RENTED}, {each.market}" for each in decision.launches if job.id in each.jobs}
        said = [*decision.waits, *decision.infeasible]
        codes |= launched or {each.code for each in said if each.job == job.id}
    return codes


@contextmanager
def full_hall(site):
    """A hall that is full for long, and a reservation; the id of the job that fills it."""
    site.ssh("head", "scancel -u alice; scontrol delete reservationname=maint", check=False)
    reserve = "scontrol create reservationname=maint users=alice starttime=now+1hour duration=60 nodes=dgx02"
    site.ssh("head", reserve)
    busy = alice(site, "sbatch --parsable -N2 --exclusive --time=50 --job-name=busy --wrap 'sleep 3000'")
    wait_for(
        lambda: site.ssh("head", f"squeue -h -j {busy} -o %T").stdout.strip() == "RUNNING", 60, "a full hall", pause=0.5
    )
    yield busy
    site.ssh("head", "scancel -u alice; scontrol delete reservationname=maint", check=False)
