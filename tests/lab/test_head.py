"""The head as the role slurm_head makes it: users are kept out of burst partitions and the controller isn't, nodes that
aren't there stop nothing, and the controller is a service that may do little else.
"""

import re

import pytest

from ironburst.adapters.slurm.scheduler import Slurm
from lab.demo import rights, service
from lab.system import LabError, wait_for

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.usefixtures("converged")]
NODE, OTHERS = "p5-1", "p5-2,p5-3"
CALM_S = 5  # sbatch must answer within it; a name that has to be resolved costs 10 s and more


@pytest.fixture
def head(site):
    """The head, with an empty queue and no rented nodes before and after."""

    def clean():
        site.ssh("head", f"rm -f /var/spool/ironburst/leases/*; scancel -u alice; {OVER}", check=False, timeout=90)

    clean()
    yield site.host("head")
    clean()


OVER = "for i in $(seq 60); do squeue -h | grep -q . || exit 0; sleep 1; done; exit 1"


def alice(head, line, **options):
    done = head.ssh(f"cd /shared/alice && exec runuser -u alice -- {line}", check=False, **options)
    return done.stdout.strip() if done.returncode == 0 else f"refused: {done.stderr.strip()}"


def controller(head, line):
    """As the controller's user."""
    return head.ssh(f"runuser -u ironburst -- {line}").stdout.strip()


def states(head, job):
    return set(head.ssh(f"squeue -h -r -j {job} -o %T", check=False).stdout.split())


def wait_state(head, what, *wanted, seconds=60):
    def there():
        return set(head.ssh(f"sinfo -h -N -n {NODE} -o %T").stdout.split()) & set(wanted)

    wait_for(there, seconds, what, pause=0.5)


def powered_down(head, nodes):
    shown = head.ssh(f"timeout {CALM_S} scontrol --oneliner show node {nodes}").stdout
    return shown.count("+DRAIN+POWERED_DOWN ") == len(nodes.split(","))


@pytest.fixture
def rented(site, head):
    """dgx02 plays the node p5-1 that was rented: its slurmd has that name, as on an instance."""
    wait_for(lambda: powered_down(head, NODE), 120, "a node that is off, after the test before", pause=0.5)
    controller(head, f"touch /var/spool/ironburst/leases/{NODE}")
    controller(head, f"scontrol update nodename={NODE} state=power_up")
    wait_state(head, "powering up", "drained#", "mixed#", "idle#", "draining#", "drain#")
    site.ssh("dgx02", "systemctl stop slurmd")
    unit = "systemd-run --quiet --unit=rented -p EnvironmentFile=-/etc/default/slurmd"
    site.ssh("dgx02", f"{unit} slurmd -D -N {NODE} --conf-server {site.host('head').spec.address} -b")

    def joined():
        return f"NodeAddr={site.host('dgx02').spec.address}" in head.ssh(f"scontrol show node {NODE}").stdout

    wait_for(joined, 60, "the rented node's address", pause=0.5)
    controller(head, f"scontrol update nodename={NODE} state=resume")
    yield NODE
    head.ssh("scancel -u alice", check=False)
    controller(head, f"scontrol update nodename={NODE} state=power_down_force reason=end")
    site.ssh("dgx02", "systemctl stop rented; systemctl start slurmd")
    wait_for(lambda: head.ssh("sinfo -h -n dgx02 -p home -o %t").stdout.strip() == "idle", 150, "dgx02", pause=0.5)


@pytest.mark.parametrize(
    "line",
    [
        "sbatch -p burst-p5 --wrap true",
        "sbatch -p home,burst-p5 --wrap true",
        "sbatch -p burst-p5,home --array=0-3 --wrap true",
        "env SBATCH_PARTITION=burst-p5 sbatch --wrap true",
        "srun -p burst-p5 true",
        "salloc -p home,burst-p5 true",
    ],
)
def test_users_submit_to_no_burst_partition(head, line):
    said = alice(head, line)
    assert said.startswith("refused") and "partition burst-p5 takes no jobs: submit to home" in said


@pytest.mark.parametrize(
    ("folder", "line", "told"),
    [
        ("/home/alice", "sbatch --gres=gpu:8 --wrap true", True),
        ("/home/alice", "sbatch --gpus=8 --wrap true", True),
        ("/shared/alice", "sbatch --chdir=/tmp --gpus-per-node=1 --wrap true", True),
        ("/shared/alice", "sbatch --gres=gpu:8 --wrap true", False),
        ("/home/alice", "sbatch --wrap true", False),  # no GPU, so nothing is ever rented for it
    ],
)
def test_who_submits_from_home_is_told_at_once_that_the_job_stays_there(head, folder, line, told):
    """The first thing that people do after a login: submit where they are."""
    head.ssh("install -d -o alice /home/alice")
    done = head.ssh(f"cd {folder} && runuser -u alice -- {line} 2>&1").stdout
    works = "/tmp" if "--chdir" in line else folder
    said = f"this job stays at home: rented nodes have no {works} (they have /shared): submit from there"
    assert "Submitted batch job" in done and (said in done) == told


def test_users_move_no_job_there_and_keep_what_the_controller_excluded(head):
    job = alice(head, "sbatch --parsable --hold --wrap true")
    for partitions in ("burst-p5", "home,burst-p5"):
        said = alice(head, f"scontrol update jobid={job} partition={partitions}")
        assert said.startswith("refused") and "only the burst controller moves jobs" in said
    controller(head, f"scontrol update jobid={job} partition=home,burst-p5 excnodelist={OTHERS}")
    for nodes in ("", "p5-2"):
        said = alice(head, f"scontrol update jobid={job} excnodelist={nodes}")
        assert said.startswith("refused") and "only the burst controller says which" in said
    shown = head.ssh(f"scontrol show job {job}").stdout
    assert "Partition=home,burst-p5" in shown and "ExcNodeList=p5-[2-3]" in shown.replace(OTHERS, "p5-[2-3]")
    assert alice(head, f"scontrol update jobid={job} partition=home timelimit=5") == ""  # all else is the user's


def test_root_and_the_controller_have_no_jobs(head):
    for line in ("sbatch --wrap true", "srun true", "runuser -u ironburst -- sbatch --wrap true"):
        with pytest.raises(LabError):
            head.ssh(f"cd /tmp && {line}")


def test_what_the_controller_moved_starts_there_also_requeued_and_after_a_restart(site, head, rented):
    busy = alice(head, "sbatch --parsable -w dgx01 --exclusive --time=9 --wrap 'sleep 500'")
    wait_for(lambda: states(head, busy) == {"RUNNING"}, 60, "a full hall", pause=0.5)
    submit = "sbatch --parsable --requeue --gres=gpu:1 --time=9 -x dgx02"
    job = alice(head, f"{submit} --wrap 'sleep 500'")
    controller(head, f"scontrol update jobid={job} partition=home,burst-p5 excnodelist={OTHERS},dgx02")
    wait_for(lambda: states(head, job) == {"RUNNING"}, 90, "its start", pause=0.5)
    assert head.ssh(f"squeue -h -j {job} -o '%P %N'").stdout.split() == ["burst-p5", NODE]

    controller(head, f"scontrol requeue {job}")
    wait_for(lambda: states(head, job) == {"PENDING"}, 60, "the requeue", pause=0.5)
    head.ssh("systemctl restart slurmctld")
    wait_for(lambda: head.ssh("scontrol ping", check=False).stdout.count("UP"), 60, "slurmctld", pause=0.5)
    controller(head, f"scontrol update jobid={job} starttime=now")
    wait_for(lambda: states(head, job) == {"RUNNING"}, 90, "its second start", pause=0.5)
    assert head.ssh(f"squeue -h -j {job} -o '%P %N'").stdout.split() == ["burst-p5", NODE]
    head.ssh(f"scancel {job}")

    array = alice(head, f"{submit} --array=0-2 --wrap 'sleep 500'")
    controller(head, f"scontrol update jobid={array} partition=home,burst-p5 excnodelist={OTHERS},dgx02")
    wait_for(lambda: states(head, array) == {"RUNNING"}, 90, "the array's start", pause=0.5)
    assert set(head.ssh(f"squeue -h -r -j {array} -o %N").stdout.split()) == {NODE}


def test_what_has_ended_is_not_put_back(head):
    """As it may have between the controller's look and its call; without `Incomplete` it would run again."""
    for line, end in (("true", ""), ("sleep 500", "scancel"), ("false", "")):
        job = alice(head, f"sbatch --parsable --requeue --time=1 --wrap '{line}'")
        wait_for(lambda job=job: states(head, job) != {"PENDING"}, 90, "its start", pause=0.5)
        if end:
            head.ssh(f"{end} {job}")

        def ended(job=job):
            return head.ssh(f"squeue -h -t all -j {job} -o %T").stdout.strip() in ("COMPLETED", "CANCELLED", "FAILED")

        wait_for(ended, 60, "its end", pause=0.5)
        assert controller(head, f"scontrol requeue Incomplete {job}") == "" and ended()


def test_what_waits_for_rented_nodes_takes_none_of_anothers(head, rented):
    """As a job that is larger than home waits: with a node open in burst-p5 that it fits on."""
    busy = alice(head, "sbatch --parsable -N2 --exclusive --time=9 --wrap 'sleep 500'")
    wait_for(lambda: states(head, busy) == {"RUNNING"}, 60, "a full hall", pause=0.5)
    job = alice(head, "sbatch --parsable --requeue --gres=gpu:1 --time=9 --wrap 'sleep 500'")
    controller(head, f"scontrol update jobid={job} partition=home,burst-any")

    def shown(form):
        return head.ssh(f"squeue -h -j {job} -o '{form}'").stdout.strip()

    wait_for(lambda: shown("%r") == "PartitionDown", 60, "the reason", pause=0.5)
    looked = head.ssh("scontrol show job " + job).stdout
    wait_for(lambda: head.ssh("scontrol show job " + job).stdout != looked, 60, "another look at it", pause=0.5)
    assert states(head, job) == {"PENDING"}
    assert alice(head, f"scontrol update jobid={job} partition=home") == "" and shown("%P") == "home,burst-any"

    controller(head, f"scontrol update jobid={job} partition=home,burst-p5,burst-any excnodelist={OTHERS}")
    wait_for(lambda: shown("%P %N") == f"burst-p5 {NODE}", 90, "its start", pause=0.5)
    controller(head, f"scontrol requeue {job}")
    wait_for(lambda: states(head, job) == {"PENDING"}, 60, "the requeue", pause=0.5)
    controller(head, f"scontrol update jobid={job} partition=home,burst-any excnodelist= starttime=now")
    head.ssh("systemctl restart slurmctld")
    wait_for(lambda: head.ssh("scontrol ping", check=False).stdout.count("UP"), 60, "slurmctld", pause=0.5)
    wait_for(lambda: shown("%r") == "PartitionDown", 60, "the reason again", pause=0.5)
    assert shown("%P %T") == "home,burst-any PENDING"


def test_a_task_of_an_array_is_moved_by_itself_and_stays_the_same_job(site, inside, head, rented):
    """Slurm splits it off its array for that, and gives it another id of its own."""
    busy = alice(head, "sbatch --parsable -w dgx01 --exclusive --time=9 --wrap 'sleep 500'")
    wait_for(lambda: states(head, busy) == {"RUNNING"}, 60, "a full hall", pause=0.5)
    submit = "sbatch --parsable --array=1-4%3 --gres=gpu:8 -c 1 --time=9 -x dgx02"
    array = int(alice(head, f"{submit} --wrap 'sleep 500'"))
    slurm = Slurm(inside.argv(*inside.head_prefix()))

    def seen():
        found = {job.called: job for job in slurm.observe().jobs if job.called.startswith(f"{array}_")}
        return {f"{array}_{task}": found[f"{array}_{task}"] for task in (1, 2, 3)} if len(found) == 3 else {}

    before = wait_for(seen, 30, "three tasks, as many as may run at a time", pause=0.5)
    second = before[f"{array}_2"]
    slurm.place(second.id, ["home", "burst-p5"], [*OTHERS.split(","), "dgx02"])
    wait_for(lambda: seen()[second.called].on == (NODE,), 90, "the second task on the rented node", pause=0.5)
    after = seen()
    assert {name: job.id for name, job in after.items()} == {name: job.id for name, job in before.items()}
    others = [job for job in after.values() if job.id != second.id]
    assert all(job.pending and job.partitions == ("home",) and "p5-2" not in job.excluded for job in others)
    assert slurm.requeue(second.id) == {}
    wait_for(lambda: seen()[second.called].pending, 60, "the task in the queue", pause=0.5)
    assert all(job.restarts == 0 for job in seen().values() if job.id != second.id)


@pytest.mark.parametrize("resolver", ["", "nameserver 192.0.2.53"], ids=["no resolver", "a silent resolver"])
def test_a_gang_that_was_refused_stops_nothing(head, resolver):
    head.ssh("cat > /etc/resolv.conf", stdin=resolver + "\n")
    nodes, log = f"{NODE},p5-2", "/var/log/slurm/slurmctld.log"
    lines = int(head.ssh(f"wc -l < {log}").stdout)
    wait_for(lambda: powered_down(head, nodes), 90, "two nodes that are powered down", pause=0.5)
    busy = alice(head, "sbatch --parsable -N2 --exclusive --time=9 --wrap 'sleep 500'")
    wait_for(lambda: states(head, busy) == {"RUNNING"}, 60, "a full hall", pause=0.5)
    for node in nodes.split(","):
        controller(head, f"touch /var/spool/ironburst/leases/{node}")
    controller(head, f"scontrol update nodename={nodes} state=resume")  # the gang itself has Slurm power them up
    gang = alice(head, "sbatch --parsable -N2 --exclusive --gres=gpu:8 --time=9 --wrap true")
    controller(head, f"scontrol update jobid={gang} partition=home,burst-p5 excnodelist=")
    shown = "squeue; sinfo -N; tail -40 /var/log/slurm/slurmctld.log"
    try:
        wait_for(lambda: states(head, gang) & {"CONFIGURING"}, 60, "a gang on nodes that never come", pause=0.5)
    except LabError as error:
        raise LabError(f"{error}: {head.ssh(shown).stdout}") from None
    head.ssh("rm /var/spool/ironburst/leases/*")
    controller(head, f"scontrol update nodename={nodes} state=power_down_force reason=refused")

    def given_back():
        assert alice(head, f"timeout {CALM_S} sbatch --parsable --wrap true").isdigit()
        assert head.ssh(f"timeout {CALM_S} squeue", check=False).returncode == 0
        return powered_down(head, nodes)

    wait_for(given_back, 90, "both nodes powered down", pause=1)
    said = head.ssh(f"tail -n +{lines + 1} {log}").stdout
    assert not re.findall(r"getaddrinfo.*|Unable to resolve.*", said)


def test_the_controller_runs_as_a_service_that_may_do_little_else(inside, head):
    keys = "aws_access_key_id = nobody\naws_secret_access_key = nobody\n"  # no account was declared: AWS will refuse
    inside.aws_config.write_text(f"[profile {rights.PROFILE}]\n{keys}")
    service.install(inside)
    service.start(inside, "controller")

    def told():
        made = head.ssh("stat -c '%a %U' /shared/ironburst/ledger.sqlite", check=False).stdout.strip()
        return made == "640 ironburst" and head.ssh("systemctl is-active ironburst", check=False).stdout.strip()

    try:
        assert wait_for(told, 60, "the ledger", pause=0.5) == "active"
        assert head.ssh("stat -c '%a %U' /shared/ironburst").stdout.split() == ["750", "ironburst"]
        shown = head.ssh("systemd-analyze security ironburst --no-pager").stdout
        exposure = float(re.search(r"Overall exposure level for ironburst.service: ([\d.]+)", shown)[1])
        assert exposure < 2.0, shown
        pid = head.ssh("systemctl show ironburst --property=MainPID --value").stdout.strip()
        status = head.ssh(f"cat /proc/{pid}/status").stdout
        assert re.search(r"Cap(Eff|Bnd):\s0+\n", status) and "NoNewPrivs:\t1" in status and "Uid:\t0" not in status
        # what it could do if it were somebody else's: its sandbox, asked from inside
        inner = f"nsenter -t {pid} -m -- runuser -u ironburst -- sh -c"
        for command in ("touch /etc/x", "touch /usr/local/sbin/x", "ls /root", "cat /etc/slurm/slurmdbd.conf"):
            assert head.ssh(f"{inner} '{command}'", check=False).returncode != 0, command
        head.ssh("systemctl kill --signal=KILL ironburst")
        wait_for(
            lambda: head.ssh("systemctl show ironburst -p MainPID --value").stdout.strip() not in ("0", pid),
            60,
            "its return",
            pause=0.5,
        )
    finally:
        log = head.ssh("systemctl disable --quiet --now ironburst; journalctl -u ironburst -o cat -n 40").stdout
    assert "Traceback" not in log, log
