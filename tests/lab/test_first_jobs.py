"""What people submit on their first day, through the real sbatch and srun of hosts that the roles made: MPI, a
checkpoint at SIGTERM, mail.
"""

import shlex

import pytest

from lab.system import wait_for

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.usefixtures("converged")]
SAVES_S = 35  # longer than Slurm's own KillWait, 30 s
SAVES = f"""
import signal, time
def save(*_):
    time.sleep({SAVES_S})
    print("saved", flush=True)
    raise SystemExit
signal.signal(signal.SIGTERM, save)
print("ready", flush=True)
while True:
    time.sleep(1)
"""
# STAND-IN for the site's relay: takes each mail, and writes it down
SINK = """
import socketserver
class Relay(socketserver.StreamRequestHandler):
    def handle(self):
        say = lambda text: self.wfile.write(text.encode() + b"\\r\\n")
        say("220 relay")
        for line in self.rfile:
            word = line.split()[0].upper() if line.split() else b""
            if word == b"DATA":
                say("354 go on")
                with open("/tmp/mail", "ab") as file:
                    for line in self.rfile:
                        if line == b".\\r\\n":
                            break
                        file.write(line)
            elif word == b"QUIT":
                return say("221 bye")
            say("250 relay")
socketserver.TCPServer.allow_reuse_address = True
socketserver.ThreadingTCPServer(("", 2525), Relay).serve_forever()
"""


@pytest.fixture
def head(site):
    yield site.host("head")
    site.ssh("head", "scancel -u alice", check=False)


def alice(head, line, **options):
    return head.ssh(f"cd /shared/alice && exec runuser -u alice -- {line}", **options).stdout.strip()


def test_srun_starts_the_ranks_of_one_mpi_world(head):
    """Each rank of an MPI program asks PMIx which it is; without PMIx each is the only one of a world of its own."""
    ranks = alice(head, "srun -n2 --mem=10 sh -c 'echo $PMIX_RANK of $PMIX_NAMESPACE'", timeout=60).splitlines()
    assert sorted(rank.split(" of ")[0] for rank in ranks) == ["0", "1"]
    assert len({rank.split(" of ")[1] for rank in ranks}) == 1


def test_a_job_that_is_put_back_has_time_to_save(head):
    """`scontrol requeue` is what the controller does at a spot notice."""
    head.ssh(f"printf %s {shlex.quote(SAVES)} > /shared/alice/saves.py; rm -f /shared/alice/saves.out")
    step = "--open-mode=append -o saves.out --mem=10 --wrap 'srun python3 /shared/alice/saves.py'"
    job = alice(head, f"sbatch --parsable --requeue {step}")

    def says(word):
        return lambda: word in head.ssh("cat /shared/alice/saves.out", check=False).stdout

    wait_for(says("ready"), 60, "the job's start", pause=0.5)
    head.ssh(f"scontrol requeue {job}; scontrol hold {job}")
    assert wait_for(says("saved"), SAVES_S + 20, "the checkpoint", pause=1)


def test_mail_of_a_job_waits_for_the_relay_and_arrives(site, head):
    job = alice(
        head, "sbatch --parsable --mail-type=END --mail-user=anna@example.org --mem=10 -o /dev/null --wrap true"
    )
    wait_for(lambda: "anna@example.org" in head.ssh("postqueue -p").stdout, 60, "the queued mail", pause=0.5)
    site.ssh("dgx01", f"systemd-run --quiet --unit=relay python3 -c {shlex.quote(SINK)}")
    try:
        wait_for(lambda: site.ssh("dgx01", "ss -Hltn sport = 2525").stdout, 20, "the relay", pause=0.2)
        head.ssh("postqueue -f")  # it tries again by itself after minutes
        wait_for(lambda: site.ssh("dgx01", "cat /tmp/mail", check=False).stdout, 60, "the mail", pause=0.5)
        mail = site.ssh("dgx01", "cat /tmp/mail").stdout
    finally:
        site.ssh("dgx01", "systemctl stop relay; rm -f /tmp/mail")
    assert "To: anna@example.org" in mail and "From: slurm@example.org" in mail
    assert f"Job_id={job}" in mail and f"ironburst explain {job}" in mail
