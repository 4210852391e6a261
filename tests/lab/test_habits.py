"""What people ask of sbatch, salloc and srun, on a live Slurm: each is rented for, or is said why not."""

import pytest

from ironburst.adapters.slurm import Slurm
from ironburst.burst import Budget, Policy, Pool, Resources, Snapshot, decide
from ironburst.ports import SchedulerError
from lab.system import LabError, wait_for

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.usefixtures("converged")]
SLEEP = "--wrap 'sleep 500'"
ONE = "--gres=gpu:1 -c 1 --time=9"
RENTED = "rented for"
# what is asked for: what is decided
SUBMITTED = {
    f"sbatch {ONE} {SLEEP}": RENTED,
    f"sbatch --gres=gpu:h100:4 -c 1 --time=9 {SLEEP}": RENTED,
    f"sbatch --gpus-per-node=4 -c 1 --time=9 {SLEEP}": RENTED,
    f"sbatch --gpus=2 -N1 -c 1 --time=9 {SLEEP}": RENTED,
    f"sbatch -p home {ONE} {SLEEP}": RENTED,
    f"sbatch --no-requeue {ONE} {SLEEP}": RENTED,
    f"sbatch --requeue {ONE} {SLEEP}": RENTED,
    f"sbatch --exclusive --mem=500 {ONE} {SLEEP}": RENTED,
    f"sbatch --nice=100 {ONE} {SLEEP}": RENTED,
    f"sbatch -N2 --gres=gpu:4 -c 1 --time=9 {SLEEP}": RENTED,
    f"sbatch --deadline=now+5hours {ONE} {SLEEP}": RENTED,
    f"sbatch --array=1-2 {ONE} {SLEEP}": RENTED,
    f"salloc --no-shell {ONE}": RENTED,
    f"srun {ONE} sleep 500": RENTED,
    f"sbatch --gres=gpu:1 -c 1 {SLEEP}": RENTED,  # its limit is the partition's DefaultTime
    f"sbatch --nodes=3 {ONE} {SLEEP}": RENTED,  # home has two nodes
    f"sbatch --nodes=3-5 {ONE} {SLEEP}": RENTED,
    f"sbatch --gpus=24 --mem=500 --time=9 {SLEEP}": RENTED,
    f"sbatch -n3 --gpus-per-task=8 --mem=500 --time=9 {SLEEP}": RENTED,
    f"sbatch --nodes=3 --no-requeue --exclusive {ONE} {SLEEP}": RENTED,
    f"sbatch --nodes=3 --array=1-2 {ONE} {SLEEP}": RENTED,
    f"salloc --no-shell --nodes=3 {ONE}": RENTED,
    f"srun --nodes=3 {ONE} sleep 500": RENTED,
    f"sbatch {ONE} --dependency=afterok:BUSY {SLEEP}": "dependency",
    f"sbatch {ONE} --begin=now+1hour {SLEEP}": "begin",
    f"sbatch {ONE} --hold {SLEEP}": "held",
    f"sbatch {ONE} -w dgx01 {SLEEP}": "demands",
    f"sbatch {ONE} --reservation=maint {SLEEP}": "demands",
    f"sbatch {ONE} : {ONE} {SLEEP}": "demands",
    f"sbatch -c 1 --time=9 {SLEEP}": "no_gpu",
    f"sbatch {ONE} --mem=900 {SLEEP}": "too_large",
    f"sbatch {ONE} --comment data=imagenet {SLEEP}": "data",
    f"sbatch {ONE} --comment fabric=infiniband {SLEEP}": "fabric",
    f"sbatch {ONE} -D /tmp {SLEEP}": "folder",
    f"sbatch {ONE} -o /var/tmp/out.txt {SLEEP}": "folder",
}
REFUSED_BY_SLURM = (
    f"sbatch {ONE} -C no-such-feature {SLEEP}",
    f"sbatch {ONE} -p burst-p5 {SLEEP}",
    f"sbatch {ONE} --requeue=expedite {SLEEP}",  # of 25.11
)
# what neither home nor a pool could ever take: why
NOBODYS = {
    f"sbatch --gres=gpu:a100:1 {SLEEP}": "no pool can. It asks for 1 node, 1 GPU of type a100 a node",
    f"sbatch {ONE} --mem=90G {SLEEP}": "no pool can. It asks for 1 node, 1 GPU a node, 92160 MiB a node, 0-00:09",
    f"sbatch --gres=gpu:1 --time=UNLIMITED {SLEEP}": "no pool can. It asks for 1 node, 1 GPU a node, UNLIMITED",
    f"sbatch --nodes=4 --gres=gpu:8 {SLEEP}": "no pool can. It asks for 4 nodes, 8 GPUs a node",
    f"sbatch --nodes=3 {SLEEP}": "it asks for no GPU, and only nodes with GPUs are rented. It asks for 3 nodes",
    "srun --gpus=25 true": "no pool can. It asks for 1 node, 25 GPUs",
    "salloc --nodes=3 --gres=gpu:8 -C fast true": "it insists on --constraint=fast, which a rented node can't promise",
}


# QOS: what it says
QOS = {
    "h-urgent": "Priority=1000",
    "h-user": "MaxTRESPerUser=gres/gpu=1",
    "h-job": "MaxTRESPerJob=gres/gpu=1",
    "h-group": "GrpTRES=gres/gpu=1",
    "h-wall": "MaxWall=5",
    "h-deny": "MaxTRESPerJob=gres/gpu=1 Flags=DenyOnLimit",
}
TWO = "--gres=gpu:2 -c 1 --time=9"
# what is asked for with a QOS: what is decided
IN_A_QOS = {
    f"sbatch --qos=h-urgent {TWO} {SLEEP}": RENTED,
    f"sbatch --qos=h-user {ONE} {SLEEP}": RENTED,  # within its limit
    f"sbatch --qos=h-user {TWO} {SLEEP}": "share",
    f"sbatch --qos=h-job {TWO} {SLEEP}": "share",
    f"sbatch --qos=h-group {TWO} {SLEEP}": "share",
    f"sbatch --qos=h-wall {ONE} {SLEEP}": "share",
}


def alice(site, line, **options):
    done = site.ssh("head", f"cd /shared/alice && exec runuser -u alice -- {line}", check=False, **options)
    return done.stdout.strip() if done.returncode == 0 else ""


def pool(now_s):
    return Pool(
        name="p5",
        partition="burst-p5",
        nodes=("p5-1", "p5-2", "p5-3"),
        instance_type="p5.48xlarge",
        each=Resources(8, 4, 800),
        gpu_type="h100",
        markets=("on-demand", "spot"),
        usd_per_hour={"on-demand": 50.0, "spot": 20.0},
        zones=("a",),
        boot_s=60.0,
        idle_s=60.0,
        max_run_s=360000.0,
        fabric="efa",
    )


def decided(site, inside, name):
    """{job: RENTED or the code of why not}, each job as if it were alone in the queue and home were full."""
    seen = Slurm(inside.argv(*inside.head_prefix())).observe()
    now_s = float(site.ssh("head", "date +%s").stdout)
    policy = Policy("home", 0.0, spot_max_nodes=2, folders=("/shared",))
    running = [job for job in seen.jobs if job.on]
    codes = set()
    for job in (each for each in seen.jobs if each.pending and each.name == name):
        budget = Budget(1e6, 0.0, 0.0, now_s + 864000.0)
        snapshot = Snapshot(now_s + 60, (*running, job), seen.nodes, (pool(now_s),), budget=budget)
        decision = decide(snapshot, policy)
        said = [*decision.waits, *decision.infeasible]
        codes |= (
            {RENTED}
            if any(job.id in each.jobs for each in decision.launches)
            else {each.code for each in said if each.job == job.id}
        )
    return codes


@pytest.fixture
def full(site):
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


def test_each_habit_is_rented_for_or_is_said_why_not(site, inside, full):
    found, names = {}, {}
    for n, line in enumerate(SUBMITTED):
        names[line] = f"habit{n}"
        told = line.replace("BUSY", full).replace(" ", f" --job-name=habit{n} ", 1)
        if line.startswith("sbatch"):
            assert alice(site, told), line
        else:  # they wait for their nodes
            assert alice(site, f"sh -c '{told} >/dev/null 2>&1 </dev/null & echo there'") == "there"

    def there():
        shown = set(site.ssh("head", "squeue -h -t PD -o %j").stdout.split())
        return shown >= set(names.values())

    wait_for(there, 60, "all jobs in the queue", pause=1)
    for line, name in names.items():
        found[line] = decided(site, inside, name)
    wrong = {line: found[line] for line, wanted in SUBMITTED.items() if found[line] != {wanted}}
    assert wrong == {}


def test_what_home_can_never_run_waits_where_it_is_rented_for(site, full):
    """Admitted by Slurm, with a reason, and no job of home's waits behind it."""
    larger = alice(site, f"sbatch --parsable --nodes=3 {ONE} {SLEEP}")
    alice(site, f"sbatch --job-name=small {ONE} {SLEEP}")
    shown = ["burst-any", "PENDING", "PartitionDown"]

    def seen():
        return site.ssh("head", f"squeue -h -j {larger} -o '%P %T %r'").stdout.replace("home,", "").split() == shown

    wait_for(seen, 60, "its reason", pause=1)
    site.ssh("head", f"scancel {full}")

    def starts():
        return site.ssh("head", "squeue -h -u alice -n small -o %T").stdout.strip() == "RUNNING"

    wait_for(starts, 90, "a small job at home", pause=1)
    assert seen()


@pytest.mark.parametrize("line", NOBODYS)
def test_what_nobody_could_ever_run_is_refused_with_the_reason(site, line):
    done = site.ssh("head", f"cd /shared/alice && exec runuser -u alice -- {line}", check=False)
    assert done.returncode and "Requested node configuration is not available" in done.stderr
    assert f"home can never run this job, and {NOBODYS[line]}" in done.stderr
    assert "; home has 2 nodes of h100:8, " in done.stderr and "; pool p5 has 3 nodes of h100:8, " in done.stderr


@pytest.fixture
def limited(site, full):
    """QOS with limits, which alice may use."""
    names = ",".join(QOS)
    lines = [f"sacctmgr -i add qos {name} set {said}" for name, said in QOS.items()]
    site.ssh("head", " && ".join([*lines, f"sacctmgr -i modify user alice set qos+={names}"]))
    yield
    site.ssh("head", "scancel -u alice", check=False)
    site.ssh("head", f"sacctmgr -i modify user alice set qos-={names}; sacctmgr -i delete qos {names}", check=False)


def test_a_qos_with_a_limit_is_a_share_and_one_with_priority_is_rented_for(site, inside, limited):
    names, found = {}, {}
    for n, line in enumerate(IN_A_QOS):
        names[line] = f"qos{n}"
        assert alice(site, line.replace(" ", f" --job-name=qos{n} ", 1)), line
    wanted = {line: {code} for line, code in IN_A_QOS.items()}

    def as_wanted():
        found.update({line: decided(site, inside, name) for line, name in names.items()})
        return found == wanted

    try:  # Slurm says a reason when it has looked at the job, which the settling time is for
        wait_for(as_wanted, 90, "the reasons that Slurm gives", pause=2)
    except LabError:
        said = site.ssh("head", "squeue -o '%i %j %q %T %r %Q'").stdout
        pytest.fail(f"{ {line: each for line, each in found.items() if each != wanted[line]} }\n{said}")
    assert alice(site, f"sbatch --qos=h-deny {TWO} {SLEEP}") == "", "DenyOnLimit: Slurm refuses it"
    assert alice(site, f"sbatch --qos=no-such {ONE} {SLEEP}") == ""


def test_what_an_admin_does_to_a_job_is_decided_on(site, inside, full):
    job = alice(site, f"sbatch --parsable --job-name=admins {ONE} {SLEEP}")
    site.ssh("head", f"scontrol hold {job}")
    assert decided(site, inside, "admins") == {"held"}
    alice(site, f"scontrol release {job}")
    assert decided(site, inside, "admins") == {"held"}, "by an admin, so its user can't"
    site.ssh("head", f"scontrol release {job} && scontrol update jobid={job} priority=5000")
    assert site.ssh("head", f"squeue -h -j {job} -o %Q").stdout.strip() == "5000"
    assert decided(site, inside, "admins") == {RENTED}
    site.ssh("head", f"scontrol update jobid={job} nice=1000")
    assert decided(site, inside, "admins") == {RENTED}
    alice(site, f"sbatch --job-name=self --priority=90000 {ONE} {SLEEP}")
    assert int(site.ssh("head", "squeue -h -u alice -n self -o %Q").stdout) < 90000, "only an operator may"
    assert decided(site, inside, "self") == {RENTED}


def test_a_job_that_is_put_back_waits_for_its_time(site, inside, full):
    site.ssh("head", f"scontrol update jobid={full} requeue=1 && scontrol requeue {full}")
    wait_for(lambda: "Restarts=1" in site.ssh("head", f"scontrol show job {full}").stdout, 60, "a restart", pause=0.5)
    assert decided(site, inside, "busy") == {"begin"}


def test_a_job_that_its_user_changes_is_decided_on_anew(site, inside, full):
    job = alice(site, f"sbatch --parsable --job-name=changed {ONE} {SLEEP}")
    assert decided(site, inside, "changed") == {RENTED}
    alice(site, f"scontrol update jobid={job} reqnodelist=dgx01")
    assert decided(site, inside, "changed") == {"demands"}
    alice(site, f"scontrol hold {job}")
    assert decided(site, inside, "changed") == {"held"}


@pytest.mark.parametrize("line", REFUSED_BY_SLURM)
def test_what_slurm_itself_refuses_never_comes_to_us(site, full, line):
    assert alice(site, line) == ""


def test_a_comment_is_shown_beside_the_job_and_leaves_the_users_own(site, inside, full):
    job = alice(site, f"sbatch --parsable --comment data=c4 --job-name=told {ONE} {SLEEP}")
    slurm, text = Slurm(inside.argv(*inside.head_prefix())), "ironburst: being rented for it: p5-1 (spot); it's 'late'"
    try:
        slurm.comment({job: text, "99999999": "ironburst: gone"})
    except SchedulerError as error:
        pytest.fail(str(error))
    assert slurm.observe().comments[int(job)] == text
    shown = [line.strip() for line in alice(site, f"scontrol show job {job}").splitlines()]
    assert f"AdminComment={text}" in shown and "Comment=data=c4" in shown
