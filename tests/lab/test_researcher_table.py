"""Each row of the table of options in docs/how-to/researcher, with jobs through real sbatch, srun and salloc on a live
Slurm: what the row says is what is decided, or what Slurm answers.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ironburst import cli
from ironburst.adapters.slurm.scheduler import Slurm
from ironburst.burst import Resources
from ironburst.burst.budget import Ceiling
from ironburst.cli import explain_own, site_options
from lab.system import LabError, wait_for
from tests.lab.researcher import HOME, ONE, RENTED, SLEEP, alice, decided, full_hall, seen_on

PAGE = Path("docs/how-to/researcher/README.md")
REFUSED = "refused by Slurm"
SPOT, ON_DEMAND = f"{RENTED}, spot", f"{RENTED}, on-demand"
TWO = "--gres=gpu:2 -c 1 --time=9"
# QOS: what it says
QOS = {
    "h-urgent": "Priority=1000",
    "h-user": "MaxTRESPerUser=gres/gpu=1",
    "h-job": "MaxTRESPerJob=gres/gpu=1",
    "h-group": "GrpTRES=gres/gpu=1",
    "h-wall": "MaxWall=5",
    "h-deny": "MaxTRESPerJob=gres/gpu=1 Flags=DenyOnLimit",
}
PATIENT = {"wait_limit_s": 1e6}
RESEARCHS_CEILING = (Ceiling("month", 0.01, 0.0, 1e12, account="research"),)


@dataclass
class Case:
    """A command line of a researcher's, and what comes of it. `line`: its program, then its options."""

    line: str
    comes: str = SPOT
    pool: dict = field(default_factory=dict)
    policy: dict = field(default_factory=dict)
    budget: dict = field(default_factory=dict)
    folder: str = HOME
    wrap: bool = True  # sbatch only


def sbatch(options, comes=SPOT, **more):
    return Case(f"sbatch {options}", comes, **more)


# the first cell of a row: jobs that show what its second cell says
ROWS = {
    "`--gpus`, `--gpus-per-node`, `--gpus-per-task`, `--gres=gpu:8`": [
        sbatch("--gpus=2 -N1 -c 1 --time=9"),
        sbatch("--gpus-per-node=4 -c 1 --time=9"),
        sbatch("--ntasks=2 --gpus-per-task=1 -N1 -c 1 --time=9"),
        sbatch("--gres=gpu:8 -c 1 --time=9"),
        sbatch("-c 1 --time=9", "no_gpu"),
        sbatch("--gres=gpu:1g.10gb:1 -c 1 --time=9", REFUSED),  # no node of the lab's is cut into slices
    ],
    "`--gres=gpu:h100:8`": [
        sbatch("--gres=gpu:h100:8 -c 1 --time=9"),
        sbatch("--gres=gpu:h100:8 -c 1 --time=9", "gpu_type", pool={"gpu_type": "l40s"}),
        sbatch("--gres=gpu:8 -c 1 --time=9", pool={"gpu_type": "l40s"}),
        sbatch("--gres=gpu:a100:1 -c 1 --time=9", REFUSED),  # a type that home hasn't got
    ],
    "`--nodes`, `--cpus-per-task`, `--mem`": [
        sbatch("--nodes=2 --gres=gpu:4 -c 1 --time=9"),
        sbatch("--nodes=2 --gres=gpu:4 -c 1 --time=9", "too_many_nodes", pool={"nodes": ("p5-1",)}),
        sbatch(f"--nodes=3 {ONE}", ON_DEMAND),  # home has two
        sbatch(f"--nodes=3-5 {ONE}", ON_DEMAND),
        sbatch("--gpus=24 --mem=500 --time=9", ON_DEMAND),
        sbatch("-n3 --gpus-per-task=8 --mem=500 --time=9", ON_DEMAND),
        sbatch(f"--nodes=3 --no-requeue --exclusive {ONE}", ON_DEMAND),
        sbatch(f"--nodes=3 --array=1-2 {ONE}", ON_DEMAND),
        Case(f"salloc --no-shell --nodes=3 {ONE}", ON_DEMAND),
        Case(f"srun --nodes=3 {ONE} sleep 500", ON_DEMAND),
        sbatch("--nodes=4 --gres=gpu:8", REFUSED),  # nor has any pool
        sbatch(f"{ONE} --cpus-per-task=8", "too_large", pool={"each": Resources(8, 4, 1000)}),
        sbatch(f"{ONE} --mem=900", "too_large", pool={"each": Resources(8, 16, 800)}),
        sbatch(f"--exclusive --mem=500 {ONE}"),
        sbatch(f"{ONE} --mem=90G", REFUSED),  # more than any node of home's has
    ],
    "`--time`": [
        sbatch("--gres=gpu:1 -c 1"),  # its limit is the partition's DefaultTime
        sbatch("--gres=gpu:1 -c 1 --time=61", "too_long", pool={"max_run_s": 3600.0}),
        sbatch("--gres=gpu:1 -c 1 --time=9", "over_budget", budget={"usd_per_month": 0.01}),
        sbatch("--gres=gpu:1 -c 1 --time=UNLIMITED", REFUSED),
    ],
    "`--deadline`": [
        sbatch(f"{ONE} --deadline=now+30minutes", pool={"boot_s": 900.0}, policy=PATIENT),
        sbatch(f"{ONE} --deadline=now+5hours", "home_soon", policy=PATIENT),
        sbatch(f"{ONE} --deadline=now+5minutes", REFUSED),  # it couldn't end by then
    ],
    "`--licenses=matlab:2,fluent`": [
        sbatch(f"{ONE} --licenses=matlab:2,fluent", pool={"licences": ("matlab", "fluent")}),
        sbatch(f"{ONE} --licenses=matlab:2,fluent", "licences", pool={"licences": ("matlab",)}),
    ],
    "`--licenses` with a vertical bar (one of several; Slurm 25.05)": [
        sbatch(f"{ONE} --licenses='matlab|fluent'", REFUSED),  # the lab has 24.11
    ],
    '`--comment="data=NAME,NAME"`': [
        sbatch(f'{ONE} --comment="data=imagenet,c4"', pool={"data": ("c4", "imagenet")}),
        sbatch(f'{ONE} --comment="data=imagenet,c4"', "data", pool={"data": ("c4",)}),
    ],
    '`--comment="fabric=NAME"`': [
        sbatch(f'{ONE} --comment="fabric=efa"'),
        sbatch(f'{ONE} --comment="data=c4 fabric=efa"', pool={"data": ("c4",)}),
        sbatch(f'{ONE} --comment="fabric=infiniband"', "fabric"),
    ],
    '`--comment="profile=nsys"`': [sbatch(f'{ONE} --comment="profile=nsys"')],
    "`--mail-type`, `--mail-user`": [sbatch(f"--mail-type=ALL {ONE}")],
    "`--mpi`": [Case(f"srun --mpi=pmix {ONE} sleep 500", ON_DEMAND)],
    "`--constraint`": [
        sbatch(f"{ONE} --constraint=fast", "demands"),
        sbatch(f"{ONE} --constraint=no-such-feature", REFUSED),
    ],
    "`--nodelist`, `--reservation`": [
        sbatch(f"{ONE} --nodelist=dgx01", "demands"),
        sbatch(f"{ONE} --reservation=maint", "demands"),
    ],
    "`--exclude`": [sbatch(f"{ONE} --exclude=dgx02")],
    "`--array`": [sbatch(f"{ONE} --array=1-3"), sbatch(f"{ONE} --array=1-500%20")],
    "a heterogeneous job (`#SBATCH hetjob`, `sbatch … : …`)": [sbatch(f"{ONE} : {ONE}", "demands")],
    "`--dependency`, `--begin`, `--hold`": [
        sbatch(f"{ONE} --dependency=afterok:BUSY", "dependency"),
        sbatch(f"{ONE} --begin=now+1hour", "begin"),
        sbatch(f"{ONE} --hold", "held"),
    ],
    "`--qos`": [
        sbatch(f"--qos=h-urgent {TWO}"),
        sbatch(f"--qos=h-user {ONE}"),  # within its limit
        sbatch(f"--qos=h-user {TWO}", "share"),
        sbatch(f"--qos=h-job {TWO}", "share"),
        sbatch(f"--qos=h-group {TWO}", "share"),
        sbatch(f"--qos=h-wall {ONE}", "share"),
        sbatch(f"--qos=h-deny {TWO}", REFUSED),  # DenyOnLimit
        sbatch(f"--qos=no-such {ONE}", REFUSED),
    ],
    "`--priority`, `--nice`": [sbatch(f"{ONE} --nice=100"), sbatch(f"{ONE} --priority=90000")],
    "`--requeue=expedite` (Slurm 25.11)": [
        sbatch(f"{ONE} --requeue"),
        sbatch(f"{ONE} --requeue=expedite", REFUSED),  # the lab has 24.11
    ],
    "`--container-image` and the other options of pyxis": [
        sbatch(f"{ONE} --container-image=ubuntu", REFUSED),  # where pyxis isn't installed: the lab has none
    ],
    "`srun`, `salloc`": [
        Case(f"srun {ONE} sleep 500", ON_DEMAND),
        Case(f"salloc --no-shell {ONE}", ON_DEMAND),
    ],
    "`--no-requeue`": [sbatch(f"{ONE} --no-requeue", ON_DEMAND)],
    "`--chdir`, `--input`, `--output`, `--error`, and where you submit from": [
        sbatch(f"{ONE} --chdir=/tmp", "folder"),
        sbatch(f"{ONE} --input=/etc/hostname", "folder"),
        sbatch(f"{ONE} --output=/var/tmp/out.txt", "folder"),
        sbatch(f"{ONE} --error=/var/tmp/err.txt", "folder"),
        sbatch(ONE, "folder", folder="/home/alice"),
        sbatch(f"{ONE} --input=/dev/null --output=/shared/alice/o-%j.txt"),
    ],
    "`--account`": [
        sbatch(f"--account=research {ONE}", policy={"accounts": ("research",)}),
        sbatch(f"--account=research {ONE}", "not_opted_in", policy={"accounts": ("vision",)}),
        sbatch(f"--account=research {ONE}", pool={"account": "research"}),
        sbatch(f"--account=research {ONE}", "account", pool={"account": "vision"}),
        sbatch(
            f"--account=research {ONE}",
            "over_budget",
            budget={"accounts": {"research": 0.01}, "ceilings": RESEARCHS_CEILING},
        ),
        sbatch(f"--account=no-such {ONE}", REFUSED),
    ],
    # not of the table
    "": [
        sbatch(f"-p home {ONE}"),
        sbatch(f"-p burst-p5 {ONE}", REFUSED),
    ],
}
LICENCES = "Licenses=matlab:4,fluent:4"


def in_the_lab(test):
    return pytest.mark.lab(pytest.mark.slow(pytest.mark.usefixtures("converged")(test)))


def test_each_row_of_the_page_has_its_jobs_and_no_other_has():
    table = PAGE.read_text().split("| you write |")[1].split("\n\n")[0]
    cells = [re.split(r"(?<!\\)\|", line)[1].strip() for line in table.splitlines()[2:]]
    assert cells == [row for row in ROWS if row] and all(ROWS.values())


@pytest.fixture(scope="module")
def full(site, inside, converged):
    """A full hall with licences, features, QOS and a reservation; the id of the job that fills it."""
    qos = [f"sacctmgr -i add qos {name} set {said}" for name, said in QOS.items()]
    names = ",".join(QOS)
    made = [
        *qos,
        f"sacctmgr -i modify user alice set qos+={names}",
        f"echo {LICENCES} >> /etc/slurm/slurm.conf",
        "scontrol reconfigure",
        "scontrol update nodename=dgx01,dgx02 availablefeatures=fast activefeatures=fast",
    ]
    site.ssh("head", " && ".join(made))
    wait_for(lambda: "matlab" in site.ssh("head", "scontrol show lic").stdout, 30, "the licences", pause=0.5)
    with full_hall(site) as busy:
        yield busy
    undone = [
        f"sed -i '/^{LICENCES}$/d' /etc/slurm/slurm.conf",
        "scontrol update nodename=dgx01,dgx02 availablefeatures= activefeatures=",
        "scontrol reconfigure",
        f"sacctmgr -i modify user alice set qos-={names}",
        f"sacctmgr -i delete qos {names}",
    ]
    site.ssh("head", "; ".join(undone), check=False)


@pytest.fixture(scope="module")
def submitted(site, full):
    """(row, number of its case): the name that its job has, or REFUSED."""
    names, script = {}, []
    for n, (row, cases) in enumerate(ROWS.items()):
        for m, case in enumerate(cases):
            name = names[row, m] = f"row{n}-{m}"
            line = case.line.replace("BUSY", full).replace(" ", f" --job-name={name} ", 1)
            line = f"cd {case.folder} && runuser -u alice -- " + line.replace(" : ", f" : --job-name={name} ")
            quiet = ">/dev/null 2>&1 </dev/null"
            if case.line.startswith("sbatch"):
                script.append(f"({line} {SLEEP} {quiet} && echo {name})")
            else:  # they wait for their nodes
                script.append(f"({line}) {quiet} & echo {name}")
    taken = site.ssh("head", "bash -s", stdin="\n".join([*script, "true"])).stdout.split()
    return {case: name if name in taken else REFUSED for case, name in names.items()}


@in_the_lab
def test_each_row_is_so(site, inside, submitted):
    wanted = {(row, case.line): case.comes for row, cases in ROWS.items() for case in cases}
    found = {}

    def as_wanted():
        seen, now_s = seen_on(inside)
        for row, cases in ROWS.items():
            for m, case in enumerate(cases):
                if submitted[row, m] == REFUSED:
                    found[row, m] = {REFUSED}
                    continue
                variant = {"of_pool": case.pool, "of_policy": case.policy, "of_budget": case.budget}
                found[row, m] = decided(seen, now_s, submitted[row, m], **variant)
        return not wrong()

    def wrong():
        told = ((row, m, case) for row, cases in ROWS.items() for m, case in enumerate(cases))
        return {(row, case.line): (found[row, m], case.comes) for row, m, case in told if found[row, m] != {case.comes}}

    try:  # Slurm says a reason when it has looked at the job, which the settling time is for
        wait_for(as_wanted, 90, "the reasons that Slurm gives", pause=2)
    except LabError:
        said = site.ssh("head", "squeue -r -o '%i %j %q %T %r' | head -80").stdout
        pytest.fail("\n".join(f"{row}: {what}" for row, what in wrong().items()) + f"\n{said}")
    assert len(wanted) > len(ROWS)


@in_the_lab
def test_alice_is_told_the_truth_of_tasks_that_wait_and_of_what_has_ended(site, inside, full, monkeypatch, capsys):
    slurm = Slurm(inside.argv(*inside.head_prefix()))
    as_alice = type("Hers", (), {"show": lambda _, *command: slurm.show("runuser", "-u", "alice", "--", *command)})
    monkeypatch.setattr(explain_own, "Slurm", as_alice)
    monkeypatch.setattr(explain_own.os, "getuid", lambda: 1500)
    monkeypatch.setattr(site_options, "LEDGER", "/nonexistent/ledger.sqlite")
    monkeypatch.delenv("IRONBURST_LEDGER", raising=False)
    array = alice(site, f"sbatch --parsable --array=0-3 --job-name=tasks {ONE} {SLEEP}")
    row = f"{array}_[0-3]"
    assert set(slurm.observe().together.values()) >= {row}
    slurm.comment({row: f"ironburst: {array}_0 and 3 more: predicted"})
    assert site.ssh("head", f"squeue -h -j {array} -o %i").stdout.split() == [row], "no task is split off"
    for asked in (f"{array}_2", row, "tasks"):
        assert cli.main(["explain", asked]) == 0
        assert f"{array}_0 and 3 more: predicted" in capsys.readouterr().out
    short = alice(site, f"sbatch --parsable --job-name=short --nodelist=dgx01 {ONE} {SLEEP}")
    slurm.comment({short: "ironburst: it may start on p5-1 or at home, whichever the scheduler finds first"})
    alice(site, f"scancel {short}")
    slurm.comment({full: "ironburst: on dgx01, dgx02, rented at $98.32 an hour (estimate)"})  # as of rented nodes
    # Slurm's accounting hears of it some seconds later
    told = f"Job {short}: it ended (CANCELLED) at "

    def has_ended():
        cli.main(["explain", short])
        return told in capsys.readouterr().out

    wait_for(has_ended, 60, "the accounting", pause=1)
    assert cli.main(["explain", "--mine"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"it runs on dgx01, dgx02 since .*; rented for about \$\d+\.\d\d so far", said)
    assert "it may start on" not in said and "(estimate; the time that they ran)" in said
