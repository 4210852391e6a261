"""The Slurm adapter: commands as they are run, and what claims a site."""

import json
import os
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ironburst.adapters.slurm import answers as slurm_json
from ironburst.adapters.slurm.scheduler import Slurm
from ironburst.nodes import naming
from ironburst.ports import Claim, SchedulerError, SchedulerMissing, WrongShape
from ironburst.shares import Quota, TeamShare
from ironburst.shares.slurm import OURS, SHOW_QOS, qos_of

FIXTURES = Path(__file__).parent / "slurm_fixtures"
VERSIONS = ("23.02", "23.11", "24.11", "25.05", "26.05")


def load(version, name):
    return json.loads((FIXTURES / version / f"{name}.json").read_text())


# ---- commands


@pytest.fixture
def recorder(tmp_path):
    """A prefix that writes down its arguments, one a line, and answers with `answer` and `code`."""
    script, log = tmp_path / "prefix", tmp_path / "log"
    (tmp_path / "answer").write_text("")
    (tmp_path / "code").write_text("0")
    script.write_text(
        f'#!/bin/sh\nfor a; do echo "$a" >> {log}; done\n'
        f"cat {tmp_path}/answer\necho oops >&2\nexit $(cat {tmp_path}/code)\n"
    )
    script.chmod(script.stat().st_mode | stat.S_IEXEC)
    return tmp_path


def said(recorder):
    return (recorder / "log").read_text().splitlines()


def test_a_job_is_placed_by_one_update(recorder):
    Slurm([str(recorder / "prefix")]).place(7, ["home", "burst-p5"], ["p5-2", "p5-3"])
    assert said(recorder) == ["scontrol", "update", "jobid=7", "partition=home,burst-p5", "excnodelist=p5-2,p5-3"]


def test_a_job_is_told_in_its_own_output_and_ended_by_its_own_name(recorder):
    """Of an array task, too: its id alone would be another task's, or all of them."""
    slurm, task = Slurm([str(recorder / "prefix")]), naming.task_of_array(100, 3)
    slurm.notify(task, "ironburst: it's idle; $(reboot)")
    assert said(recorder) == ["scontrol", "notify", "100_3", "ironburst: it's idle; $(reboot)"]
    slurm.end_job(task)
    assert said(recorder)[-2:] == ["scancel", "100_3"]


def test_the_delay_of_a_requeue_can_be_lifted_and_exclusions_cleared(recorder):
    Slurm([str(recorder / "prefix")]).place(7, ["home"], [], begin_now=True)
    assert said(recorder)[2:] == ["jobid=7", "partition=home", "excnodelist=", "starttime=now"]


def test_a_reason_with_a_space_stays_one_argument_here_and_behind_ssh(recorder):
    Slurm([str(recorder / "prefix")]).drain(["p5-1"], "spot interruption; it's over")
    assert said(recorder)[-1] == "reason=spot interruption; it's over"
    (recorder / "ssh").symlink_to(recorder / "prefix")
    (recorder / "log").unlink()
    Slurm([str(recorder / "ssh"), "root@head"]).drain(["p5-1"], "it's over")
    assert said(recorder) == ["root@head", """scontrol update nodename=p5-1 state=drain 'reason=it'"'"'s over'"""]


def test_one_heartbeat_is_one_scontrol_with_one_update_for_all_that_are_paid_as_long(tmp_path):
    script = tmp_path / "prefix"
    script.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\ncat >> {tmp_path}/stdin\n')
    script.chmod(0o755)
    Slurm([str(script)]).beat({"p5-1": 600, "p5-2": 600, "p4-1": 3660}, 1_795_262_400.7)
    assert (tmp_path / "calls").read_text() == "scontrol\n"
    assert (tmp_path / "stdin").read_text().splitlines() == [
        "update nodename=p5-1,p5-2 comment=ironburst,at=1795262400,left=600",
        "update nodename=p4-1 comment=ironburst,at=1795262400,left=3660",
    ]


def test_no_rented_node_hears_no_heartbeat(recorder):
    Slurm([str(recorder / "prefix")]).beat({}, 0.0)
    assert not (recorder / "log").exists()


TEAMS = [TeamShare("vision", 8), TeamShare("nlp", 4)]
NOW = {"vision": Quota(6, 2), "nlp": Quota(4, 2)}


def shown(recorder, *lines):
    (recorder / "answer").write_text("".join(f"{line}\n" for line in lines))


def test_limits_are_written_where_slurm_has_others(recorder):
    over, first = "nlp-over,vision-over", "share of ironburst|1000|gres/gpu="
    shown(
        recorder,
        f"vision-guaranteed|{first}8|{over}",
        f"nlp-guaranteed|{first}4|{over}",
        "vision-over|share of ironburst|1||",
        "nlp-over|share of ironburst|1|gres/gpu=2|",
        "normal||0||",
    )
    Slurm([str(recorder / "prefix")]).limit(TEAMS, NOW, 16)
    show, shell = said(recorder)[:6], said(recorder)[6:]
    assert show == list(SHOW_QOS) and shell[:2] == ["sh", "-c"]
    write = "sacctmgr --immediate --quiet modify qos where Name="
    wanted = (("vision-guaranteed", 6), ("vision-over", 2))
    assert shell[2] == "; ".join(
        [*(f"{write}{name} set GrpTRES=gres/gpu={gpus} || failed=$?" for name, gpus in wanted), "exit $failed"]
    )


def test_what_is_so_already_is_not_written(recorder):
    rows = qos_of(TEAMS, NOW).items()
    shown(
        recorder, *(f"{name}|{OURS}|{qos.priority}|gres/gpu={qos.gpus}|{','.join(qos.preempt)}" for name, qos in rows)
    )
    Slurm([str(recorder / "prefix")]).limit(TEAMS, NOW, 16)
    assert said(recorder) == list(SHOW_QOS)


def test_a_qos_that_is_missing_is_told_after_the_others_are_written(recorder):
    shown(recorder, "vision-over|share of ironburst|1||", "nlp-guaranteed|somebody's|5|gres/gpu=9|")
    with pytest.raises(SchedulerError, match="no QOS nlp-guaranteed, nlp-over, vision-guaranteed: converge the head"):
        Slurm([str(recorder / "prefix")]).limit(TEAMS, NOW, 16)
    assert "Name=vision-over set GrpTRES=gres/gpu=2 " in said(recorder)[-1]


@pytest.mark.parametrize("version", VERSIONS)
def test_what_a_running_job_counts_in_is_its_qos(version):
    queue = load(version, "squeue")
    assert slurm_json.shares(queue) == {}
    for job in queue["jobs"]:
        job["qos"] = "research-over"
    assert slurm_json.shares(queue) == {1: "over"}  # the others wait, and are tried in several
    queue["jobs"][0]["qos"] = "vision-over"  # not its own account's
    assert slurm_json.shares(queue) == {}


@pytest.mark.parametrize("name", ["", "-f", "a b", "x;reboot", "../etc", "a,b", "$(id)"])
def test_only_names_are_taken_for_names(recorder, name):
    with pytest.raises(SchedulerError, match="is no name"):
        Slurm([str(recorder / "prefix")]).put_permit([name])
    assert not (recorder / "log").exists()


def test_a_failing_command_is_one_sentence(recorder):
    (recorder / "code").write_text("1")
    with pytest.raises(SchedulerError, match=r"^`scontrol requeue Incomplete 7` failed with exit code 1: oops$"):
        Slurm([str(recorder / "prefix")]).requeue(7)


def test_many_jobs_are_put_back_by_one_call_and_those_that_are_refused_are_named(tmp_path):
    """scontrol goes on after one that is refused, says so on stderr, and exits with 1."""
    script = tmp_path / "prefix"
    script.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/log\n'
        'echo "Invalid job id specified for job 8" >&2\n'
        'echo "100_3: Job is pending execution" >&2\necho "100_4: No error" >&2\nexit 1\n'
    )
    script.chmod(0o755)
    slurm = Slurm([str(script)])
    third, fourth = (naming.task_of_array(100, task) for task in (3, 4))
    refused = slurm.requeue(7, 8, third, fourth)
    assert (tmp_path / "log").read_text() == "scontrol requeue Incomplete 7,8,100_3,100_4\n"
    assert set(refused) == {8, third} and "pending execution" in refused[third]
    assert slurm.requeue() == {}


def test_an_arrays_task_is_never_called_by_the_arrays_own_id(tmp_path):
    """The last task of an array has its id, and `scontrol requeue 3` stops all of its tasks."""
    answer = load("24.11", "squeue")
    task = next(job for job in answer["jobs"] if job["job_id"] == 3)
    task |= {"array_task_id": {"set": True, "infinite": False, "number": 0}, "array_task_string": ""}
    (tmp_path / "squeue.json").write_text(json.dumps(answer))
    (tmp_path / "nodes.json").write_text(json.dumps(load("24.11", "nodes")))
    script = tmp_path / "prefix"
    script.write_text(
        f'#!/bin/sh\ncase "$1 $2" in "squeue "*) cat {tmp_path}/squeue.json ;;\n'
        f'"scontrol show") cat {tmp_path}/nodes.json ;; find*) ;; *) echo "$@" >> {tmp_path}/log ;; esac\n'
    )
    script.chmod(0o755)
    slurm = Slurm([str(script)])
    slurm.observe()
    task = naming.task_of_array(3, 0)
    slurm.requeue(1, task)
    slurm.place(task, ["home"], [])
    said = (tmp_path / "log").read_text().splitlines()
    assert said == ["scontrol requeue Incomplete 1,3_0", "scontrol update jobid=3_0 partition=home excnodelist="]


@pytest.mark.parametrize(
    ("name", "read"),
    [
        (b"caf\xe9", "caf\ufffd"),
        (rb"half \ud83d", "half ?"),
        (rb"\ud83d\ude00", "\U0001f600"),
        (rb"\\ud83d", r"\ud83d"),
    ],
    ids=["latin-1", "half a pair", "a pair", "a backslash"],
)
def test_a_name_in_any_encoding_is_read(tmp_path, name, read):
    answer = json.dumps(load("24.11", "squeue")).encode()
    (tmp_path / "squeue.json").write_bytes(answer.replace(b'"name": "wrap"', b'"name": "' + name + b'"', 1))
    (tmp_path / "nodes.json").write_text(json.dumps(load("24.11", "nodes")))
    script = tmp_path / "prefix"
    script.write_text(
        f'#!/bin/sh\ncase "$1" in squeue) cat {tmp_path}/squeue.json ;; scontrol) cat {tmp_path}/nodes.json ;; esac\n'
    )
    script.chmod(0o755)
    observation = Slurm([str(script)]).observe()
    assert read in {job.name for job in observation.jobs} and observation.unreadable == ()
    for job in observation.jobs:
        job.name.encode()  # sqlite and files take it


@pytest.mark.parametrize("version", ["24.11", "26.05"])
@pytest.mark.parametrize("fails", [False, True])
def test_who_wants_a_node_alone_is_asked_for_where_the_queue_does_not_say_it(tmp_path, version, fails):
    """Once for all that wait; where that isn't answered, the rest of what is seen counts."""
    for name in ("unusual", "nodes"):
        (tmp_path / f"{name}.json").write_text(json.dumps(load(version, name)))
    script = tmp_path / "prefix"
    column = "echo 'Invalid job format specification' >&2; exit 1" if fails else "printf '1 NODE\\n3 NO\\n'"
    script.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/log\ncase "$*" in "squeue --json") cat {tmp_path}/unusual.json ;;'
        f" squeue*) {column} ;; scontrol*) cat {tmp_path}/nodes.json ;; esac\n"
    )
    script.chmod(0o755)
    seen = Slurm([str(script)]).observe()
    asked = [line for line in (tmp_path / "log").read_text().splitlines() if "Exclusive" in line]
    assert len(asked) == (version == "26.05") and all("--states=PENDING" in line for line in asked)
    exclusive = {job.id: job.exclusive for job in seen.jobs}
    assert exclusive[1] == ("" if fails and version == "26.05" else "node") and exclusive[3] == ""
    assert any("nodes of their own" in text for text in seen.unreadable) == (fails and version == "26.05")


def test_an_answer_that_is_no_json_is_no_empty_queue(recorder):
    (recorder / "answer").write_text("slurm_load_jobs error: Unable to contact slurm controller")
    with pytest.raises(WrongShape, match="something other than JSON"):
        Slurm([str(recorder / "prefix")]).observe()


def test_no_slurm_here_says_what_to_do():
    with pytest.raises(SchedulerError, match="--slurm-prefix"):
        Slurm(["/nonexistent/prefix"]).observe()


def test_a_hanging_command_has_an_end(tmp_path):
    script = tmp_path / "hang"
    script.write_text("#!/bin/sh\nexec sleep 60\n")
    script.chmod(0o755)
    with pytest.raises(SchedulerError, match=r"no answer in 0\.2 s"):
        Slurm([str(script)], timeout_s=0.2).requeue(1)


# ---- the claim


@pytest.fixture(params=["here", "ssh"])
def head(tmp_path, request):
    """Slurm on this machine, with a spool of its own; or behind something that hands its words to a shell, as ssh."""
    ssh = tmp_path / "ssh"
    ssh.write_text('#!/bin/sh\nexec sh -c "$*"\n')
    ssh.chmod(0o755)
    return Slurm([str(ssh)] if request.param == "ssh" else [], spool=str(tmp_path))


def aged(tmp_path, seconds):
    """The claim was made so long ago."""
    at = time.time() - seconds
    os.utime(tmp_path / "controller", (at, at))


def test_who_claims_a_site_holds_it_until_the_claim_is_stale(head, tmp_path):
    said = '{"spent": {"": 5.0}, "host": "it\'s $HOME"}'
    assert head.claim("a1", said, 600) == Claim("", 0, "")
    for owner, text in (("b2", "{}"), ("a1", said)):
        found = head.claim(owner, text, 600)
        assert (found.owner, found.said) == ("a1", said) and found.age_s < 60
    aged(tmp_path, 590)
    assert head.claim("b2", "{}", 600)[0] == "a1" and (tmp_path / "controller").read_text().startswith("a1 ")
    aged(tmp_path, 605)
    previous = head.claim("b2", "", 600)
    assert previous.owner == "a1" and 605 <= previous.age_s < 700 and previous.said == said
    assert head.claim("a1", "{}", 600)[::2] == ("b2", said)  # it said nothing yet: what was known is kept
    head.claim("b2", "{}", 600)
    assert (tmp_path / "controller").read_text() == "b2 {}\n"


def test_who_only_looks_changes_nothing(head, tmp_path):
    assert head.claim("", "", 0) == Claim("", 0, "") and not (tmp_path / "controller").exists()
    head.claim("a1", "x", 600)
    aged(tmp_path, 5000)
    assert head.claim("", "", 0)[::2] == ("a1", "x") and (tmp_path / "controller").read_text() == "a1 x\n"


def test_a_claim_from_the_future_begins_to_age_when_it_is_seen(head, tmp_path):
    head.claim("a1", "x", 600)
    aged(tmp_path, -86400)
    found = head.claim("b2", "y", 600)
    assert (found.owner, found.said) == ("a1", "x") and found.age_s < 60
    assert (tmp_path / "controller").stat().st_mtime <= time.time()


def test_of_many_who_claim_at_once_one_holds_the_site(head):
    with ThreadPoolExecutor(8) as pool:
        before = list(pool.map(lambda n: (f"c{n}", head.claim(f"c{n}", "x", 600).owner), range(8)))
    holder = head.claim("", "", 600).owner
    assert [name for name, found in before if found in ("", name)] == [holder]
    assert {found for name, found in before if name != holder} == {holder}


def test_a_claim_that_cannot_be_written_is_an_error(tmp_path):
    with pytest.raises(SchedulerError, match="none/controller on the head can't be claimed: failed with exit code"):
        Slurm([], spool=str(tmp_path / "none")).claim("a1", "x", 600)
    (tmp_path / "controller.new").mkdir()  # as good as a full disk
    with pytest.raises(SchedulerError, match="exit code 74"):
        Slurm([], spool=str(tmp_path)).claim("a1", "x", 600)
    (tmp_path / "controller").write_text("a1 x\n")
    aged(tmp_path, 500)
    assert Slurm([], spool=str(tmp_path)).claim("a1", "y", 600).age_s >= 500
    assert Slurm([], spool=str(tmp_path)).claim("b2", "", 100) == Claim("a1", 0, "x")  # it is kept fresh at least


def test_slurm_that_is_there_and_not_on_the_path_is_not_missing(tmp_path):
    """A converge takes a missing one for a first installation, and converges all nodes at once."""
    prefix = tmp_path / "prefix"
    prefix.write_text('#!/bin/sh\ncase "$1" in sh) echo 4711 ;; *) exit 127 ;; esac\n')
    prefix.chmod(0o755)
    with pytest.raises(SchedulerError, match="Slurm is there all the same") as told:
        Slurm([str(prefix)]).occupancy()
    assert not isinstance(told.value, SchedulerMissing)
    prefix.write_text("#!/bin/sh\nexit 127\n")
    with pytest.raises(SchedulerMissing):
        Slurm([str(prefix)]).occupancy()
