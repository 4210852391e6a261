"""The queue asked for what is read of it: the same jobs as `squeue --json` says, on five releases."""

import copy
import json
import os
import select
from pathlib import Path

import pytest

from benchmarks import slurm_queue
from ironburst.adapters.bridged import SlurmQueue
from ironburst.adapters.slurm import answers as slurm_json
from ironburst.adapters.slurm import arrays as slurm_arrays
from ironburst.adapters.slurm import comments as slurm_comments
from ironburst.adapters.slurm import defaults as slurm_defaults
from ironburst.adapters.slurm import fields as slurm_fields
from ironburst.adapters.slurm.narrow import AGAIN, MANY, Narrow, NoText
from ironburst.adapters.slurm.scheduler import Slurm
from ironburst.adapters.slurm.stream import Streamed
from ironburst.ports import SchedulerError
from tests.fakes import scontrol

FIXTURES = Path(__file__).parent / "slurm_fixtures"
VERSIONS = ("23.02", "23.11", "24.11", "25.05", "26.05")
NAMES = ("squeue", "unusual", "allocated")


def load(version, name):
    return json.loads((FIXTURES / version / f"{name}.json").read_text())


def mark(narrow):
    return narrow.command[1].removeprefix("SLURM_TIME_FORMAT=").removesuffix("%s")


def everything(queue, version):
    """All that a look makes of a queue."""
    less = {"jobs": [slurm_fields.job(raw) for raw in queue["jobs"]]}
    jobs = slurm_json.read_jobs(slurm_defaults.applied(less, slurm_json.nodes(load(version, "nodes"))))
    return jobs, *(each(less) for each in (slurm_json.shares, slurm_comments.comments, slurm_arrays.numbers))


class Slurmctld:
    """A queue, asked in both ways."""

    def __init__(self, rows, version):
        self.rows, self.version, self.asked = rows, version, []

    def json(self, ids):
        self.asked += ids
        return [slurm_fields.job(row) for row in self.rows if row["job_id"] in ids]

    def look(self, narrow, size=1 << 20, **more):
        text = scontrol.show_jobs(self.rows, self.version, mark(narrow), **more).encode()
        return narrow.read((text[at : at + size] for at in range(0, len(text), size)), self.json)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("version", VERSIONS)
def test_the_same_jobs_as_the_json_has(version, name):
    slurm = Slurmctld(load(version, name)["jobs"], version)
    for size in (1 << 20, 1000, 7):
        rows = slurm.look(Narrow(), size)
        assert everything({"jobs": rows}, version) == everything({"jobs": slurm.rows}, version)


def waiting(version="24.11", **more):
    """A batch job that waits, as recorded."""
    raw = next(raw for raw in load(version, "squeue")["jobs"] if raw["job_id"] == 4)
    return copy.deepcopy(raw) | more


def running(version="24.11", **more):
    return copy.deepcopy(next(raw for raw in load(version, "squeue")["jobs"] if raw["job_id"] == 1)) | more


def figure(number):
    return {"set": True, "infinite": False, "number": number}


def told(raw, version="24.11"):
    """What is made of a job by text and by JSON, and whether the JSON had to be asked."""
    slurm = Slurmctld([raw], version)
    rows = slurm.look(Narrow())
    by_text, by_json = (everything({"jobs": jobs}, version) for jobs in (rows, slurm.rows))
    assert by_text == by_json
    return bool(slurm.asked)


ARRAY = {"array_job_id": figure(100)}
UNSET = {"set": False, "infinite": False, "number": 0}
SAID = {
    "a name with spaces": {"name": "a name of it "},
    "a name that looks like fields": {"name": "x UserId=root(0) Account=rich QOS=high"},
    "comments": {"comment": "data=imagenet,c4; fabric=ib ", "admin_comment": 'ironburst: waits; "a" = b '},
    "a limit of days": {"time_limit": figure(3 * 1440 + 62)},
    "no limit": {"time_limit": {"set": True, "infinite": True, "number": 0}},
    "the partition's limit": {"time_limit": {"set": False, "infinite": False, "number": 0}},
    "a least time": {"time_minimum": figure(10)},
    "a deadline": {"deadline": figure(1795300000)},
    "a hold": {"priority": figure(0), "state_reason": "JobHeldUser"},
    "two partitions": {"partition": "home,other"},
    "temporary disk": {"minimum_tmp_disk_per_node": figure(2048)},
    "odd temporary disk": {"minimum_tmp_disk_per_node": figure(2049)},
    "features": {"features": "fast&ib", "batch_features": "fast", "batch_host": "n1"},
    "nodes": {"required_nodes": "n[1-3]", "excluded_nodes": "n[5-6],n9", "scheduled_nodes": "n1"},
    "licences": {"licenses": "matlab:2,fluent@server:1"},
    "one of the licences": {"licenses": "matlab:1|fluent:1"},
    "a reservation": {"resv_name": "maint"},
    "a dependency": {"dependency": "afterok:1(unfulfilled),afterany:2_*(failed)", "state_reason": "Dependency"},
    "exclusive": {"shared": ["none"]},
    "its user's nodes": {"shared": ["user"]},
    "its group's nodes": {"shared": ["mcs"]},
    "part of the network": {"shared": ["topo"]},
    "shared nodes": {"shared": ["oversubscribe"]},
    "no requeue": {"requeue": False, "restart_cnt": 3},
    "GPUs for tasks": {"tres_per_task": "cpu=3,gres/gpu=2", "tasks": figure(4), "tres_per_node": ""},
    "tasks for GPUs": {"tres_per_job": "gres/gpu:4", "tasks_per_tres": figure(2), "tres_per_node": ""},
    "CPUs for GPUs": {"cpus_per_tres": "gres/gpu:4"},
    "GPUs for sockets": {"tres_per_socket": "gres/gpu:4", "sockets_per_node": figure(2), "tres_per_node": ""},
    "a typed GPU": {"tres_per_node": "gres/gpu:h100:8"},
    "files elsewhere": {"standard_output": "/scratch/x/1.out", "standard_error": "/dev/null"},
    "a part of a heterogeneous job": {"het_job_id": figure(7), "het_job_offset": figure(1), "het_job_id_set": "7-8"},
    "tasks of an array": ARRAY | {"array_task_string": "1,3,5-9:2%4", "array_max_tasks": figure(4)},
    "tasks that are cut off": ARRAY | {"array_task_string": "1-3,9,..."},
    "a bit of memory a CPU": {"memory_per_cpu": figure(100), "node_count": figure(1)},
    "a range of nodes": {"node_count": figure(4), "max_nodes": figure(4), "tres_req_str": "cpu=2,mem=100M,node=4"},
    "any number of nodes": {"node_count": figure(2), "max_nodes": figure(4), "tres_req_str": "cpu=2,mem=100M,node=2"},
}
NOT_SAID = {
    "a sentence of Slurm": {"state_description": "ReqNodeNotAvail, UnavailableNodes:n1", "state_reason": "Resources"},
    "flags beside the state": {"job_state": ["PENDING", "SPECIAL_EXIT"]},
    "on its nodes still": {"job_state": ["PENDING", "COMPLETING"], "nodes": "gpu2"},
    "a line in its name": {"name": "x\n   UserId=root(0) GroupId=root(0) MCS_label=N/A"},
    "another line in its name": {"name": "x\n   HetJobIdSet=7"},
    "a line in its comment": {"comment": "two\nlines data=x"},
    "a line that looks like another in its comment": {"comment": "data=x\n   Extra=y"},
    "a comment of the system's": {"system_comment": "x"},
    "a line in its folder": {"current_working_directory": "/home/a\nb"},
    "files of srun": {"batch_flag": False, "standard_output": "/scratch/srun.out"},
    "a user that nobody knows": {"user_name": "1234", "user_id": 1234},
    "a task, or the rest of an array": ARRAY | {"array_task_string": "5"},
    "one task of an array": ARRAY | {"array_task_string": "", "array_task_id": figure(5)},
    "sizes": {"job_size_str": "1,3", "max_nodes": figure(3), "node_count": figure(1)},
    "more nodes than its most": {
        "node_count": figure(5),
        "max_nodes": figure(4),
        "tres_req_str": "cpu=2,mem=100M,node=5",
    },
    "memory for each GPU of a range": {
        "memory_per_tres": "gres/gpu:2048",
        "node_count": figure(4),
        "max_nodes": figure(9),
        "tres_req_str": "cpu=2,mem=100M,node=2",
    },
}


def of_release(version, changes):
    """Forms of a field that a release doesn't have."""
    raw = waiting(version)
    changes = {key: value for key, value in changes.items() if key in raw}
    flat = [key for key in changes if isinstance(changes[key], dict) and not isinstance(raw[key], dict)]
    return raw | changes | {key: changes[key]["number"] for key in flat}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("what", sorted(SAID))
def test_what_the_text_says_needs_no_json(version, what):
    raw = of_release(version, SAID[what])
    if isinstance(raw["job_state"], str):
        raw["job_state"] = "PENDING"
    elsewhere = what == "files elsewhere" and version >= "25.05"  # there the JSON has patterns that the text expands
    assert told(raw, version) is elsewhere


@pytest.mark.parametrize("version", [version for version in VERSIONS if version > "23.02"])
@pytest.mark.parametrize("what", sorted(NOT_SAID))
def test_of_what_the_text_does_not_say_the_json_is_asked(version, what):
    said = what == "memory for each GPU of a range" and version < "24.11"
    assert told(of_release(version, NOT_SAID[what]), version) is not said


def test_a_running_job_has_its_gpus_in_accounting_or_in_the_json():
    assert told(running()) is False
    plain = {"tres_req_str": "cpu=2,mem=50M,node=1", "tres_alloc_str": "cpu=2,mem=50M,node=1", "tres_per_node": ""}
    plain |= {"tres_per_job": "", "tres_per_task": ""}
    detail = {"gres_detail": ["gpu:8(IDX:0-7)"]}
    assert told(running() | plain | detail) is True, "nobody counts GPUs"
    slurm = Slurmctld([running() | plain | {"job_id": 2}, running(), running() | plain | {"job_id": 3}], "24.11")
    slurm.look(Narrow())
    assert slurm.asked == [], "a job of the same answer shows that they are counted"


def test_what_has_ended_is_not_in_the_queue():
    """squeue lists it no more; scontrol does for MinJobAge."""
    states = [
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "TIMEOUT",
    ]
    rows = [waiting(job_id=n, job_state=[state]) for n, state in enumerate(states, 10)]
    slurm = Slurmctld([*rows, waiting()], "24.11")
    assert [row["job_id"] for row in slurm.look(Narrow())] == [4] and slurm.asked == []


def test_a_job_that_ends_between_the_two_answers_is_gone():
    slurm, narrow = Slurmctld([waiting(name="a\nb"), waiting(job_id=5)], "24.11"), Narrow()
    slurm.json = lambda ids: []
    assert [row["job_id"] for row in slurm.look(narrow)] == [5]


def test_of_an_unchanged_queue_nothing_is_read_or_asked():
    slurm, narrow = Slurmctld(load("24.11", "squeue")["jobs"] + load("24.11", "unusual")["jobs"][:1], "24.11"), Narrow()
    slurm.rows[-1]["job_id"] = 77
    first, made, asked = slurm.look(narrow), narrow.made, len(slurm.asked)
    then = slurm.look(narrow, now_s=1795262500.0)  # Slurm has looked at them again, and they have run for longer
    assert made == len(slurm.rows) and asked and (narrow.made, len(slurm.asked)) == (made, asked)
    assert all(one is other for one, other in zip(first, then, strict=True))
    slurm.rows[3]["priority"] = figure(12345)
    assert sum(one is other for one, other in zip(first, slurm.look(narrow), strict=True)) == len(first) - 1


BROKEN = {
    "nothing": lambda text: "",
    "no jobs": lambda text: "No jobs in the system\n",
    "JSON": lambda text: '{"jobs": []}',
    "an end within a record": lambda text: text[:200],
    "times without the mark": lambda text: text.replace("@", ""),
}


@pytest.mark.parametrize("how", sorted(BROKEN))
def test_what_is_no_record_is_no_answer(how):
    narrow = Narrow()
    text = scontrol.show_jobs(load("24.11", "squeue")["jobs"], "24.11", mark(narrow))
    with pytest.raises(NoText):
        narrow.read([BROKEN[how](text).encode()], lambda ids: [])


def test_nobody_knows_the_mark():
    assert mark(Narrow()) != mark(Narrow()) and len(f"{mark(Narrow())}%s") < 32, "parse_time.c takes no longer format"


def test_whole_nodes_in_26_05_are_as_squeues_column_says():
    """Its JSON doesn't say it (asked.EXCLUSIVE_COLUMNS)."""
    raw = waiting("26.05", exclusive="NODE")
    (row,) = Slurmctld([raw], "26.05").look(Narrow())
    assert slurm_json.job(row).exclusive == "node" and "shared" not in row


@pytest.mark.parametrize("name", ["show_job", "show_job_v0.0.40"])
def test_a_real_slurm_says_the_same_in_both_ways(name):
    """24.11/show_job.txt: `scontrol show job` of a slurmctld 24.11.5 (Debian 13) with four slurmds, at
    one moment with `squeue --json=v0.0.42` and `=v0.0.40` (of which the fields that are read are kept). 89 jobs of odd
    kinds run, wait or are held, some with names, comments and folders that look like records.
    """
    narrow, asked = Narrow(), []
    narrow._mark = b"0123456789abcdef0123@"  # as recorded
    rows = [slurm_fields.job(raw) for raw in load("24.11", name)["jobs"]]
    nodes = slurm_json.nodes(load("24.11", "show_job_nodes"))

    def ask(ids):
        asked.extend(ids)
        return [row for row in rows if row["job_id"] in ids]

    queue = {"jobs": narrow.read([(FIXTURES / "24.11/show_job.txt").read_bytes()], ask)}
    for read in (
        lambda queue: slurm_json.read_jobs(slurm_defaults.applied(queue, nodes)),
        slurm_json.shares,
        slurm_comments.comments,
        slurm_arrays.numbers,
    ):
        assert read(queue) == read({"jobs": rows})
    assert len(rows) == 89 and len(asked) < 30, "most is in the text"


HOSTILE = ["x\n\nJobId=5 JobName=y", "x\n\nJobId=999 JobName=y\n   UserId=root(0)", "\n\n", "x\n\n"]


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("field", ["name", "comment", "current_working_directory", "standard_output"])
def test_an_empty_line_that_a_user_writes_is_asked_about_and_the_others_are_not(field, text):
    rows = [waiting(job_id=n) for n in range(1, 10)]
    rows[5][field] = text
    slurm, narrow = Slurmctld(rows, "24.11"), Narrow()
    for _ in range(2):
        slurm.asked.clear()
        found = slurm.look(narrow)
        assert everything({"jobs": found}, "24.11") == everything({"jobs": rows}, "24.11")
        assert set(slurm.asked) <= {5, 6, 7, 999}


# ---- by the adapter


PROGRAMS = {
    "squeue": 'echo "squeue $*" >>{0}/log; cat {0}/queue.json',
    "scontrol": """echo "scontrol $*" >>{0}/log
case "$*" in "show job") sed "s/@@/${{SLURM_TIME_FORMAT%\\%s}}/g" {0}/jobs.txt; exit $(cat {0}/code);;
*) cat {0}/nodes.json;; esac""",
    "find": "true",
}


class Head:
    """Of a Slurm whose programs print files."""

    def __init__(self, folder, monkeypatch, rows, nodes):
        for name, does in PROGRAMS.items():
            (folder / name).write_text(f"#!/bin/bash\n{does.format(folder)}\n")
            (folder / name).chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
        self.folder, self.slurm = folder, Slurm()
        (folder / "nodes.json").write_text(json.dumps(nodes, indent=2))
        self.says(rows)

    def says(self, rows, text=None, code=0):
        (self.folder / "queue.json").write_text(json.dumps({"jobs": rows}, indent=2))
        (self.folder / "jobs.txt").write_text(scontrol.show_jobs(rows, "24.11", "@@") if text is None else text)
        (self.folder / "code").write_text(str(code))

    def look(self):
        """What is seen, and what was asked about jobs."""
        (self.folder / "log").write_text("")
        seen = self.slurm.observe()
        return seen, [line for line in (self.folder / "log").read_text().splitlines() if "show node" not in line]


@pytest.fixture
def head(tmp_path, monkeypatch):
    monkeypatch.setattr("ironburst.adapters.slurm.scheduler.WIDE", 10_000)
    return Head(tmp_path, monkeypatch, load("24.11", "squeue")["jobs"], load("24.11", "nodes"))


WHOLE, TEXT = "squeue --json", "scontrol show job"


def whole(head):
    """What is seen by JSON alone."""
    head.slurm._narrows = False
    seen, head.slurm = head.slurm.observe(), Slurm()
    return seen


def test_a_large_queue_is_asked_for_what_is_read_as_soon_as_it_shows_that_it_is_large(head):
    first = whole(head)
    assert head.look() == (first, [WHOLE, TEXT, "squeue --json --jobs=9,10"]), "an srun and a salloc"
    assert head.look() == (first, [TEXT])
    rows = load("24.11", "squeue")["jobs"]
    rows[3]["priority"] = figure(77)
    head.says(rows)
    seen, asked = head.look()
    assert asked == [TEXT] and [job.priority for job in seen.jobs if job.priority == 77] == [77]


def test_a_queue_that_is_known_to_be_large_is_asked_so_at_once(head):
    """`status` knows it by the controller's last tick."""
    first = whole(head)
    head.slurm = Slurm(jobs=MANY)
    assert head.look() == (first, [TEXT, "squeue --json --jobs=9,10"])
    head.slurm = Slurm(jobs=MANY - 1)
    assert head.look()[1][0] == WHOLE


def test_no_more_of_a_large_answer_is_read_than_shows_that_it_is_large(head):
    """squeue is ended: it would go on for a gigabyte."""
    first = whole(head)
    squeue = (head.folder / "squeue").read_text()
    endless = 'case "$*" in *--jobs*);; *) while :; do echo "      {},"; done;; esac'
    (head.folder / "squeue").write_text(f"{squeue}{endless}\n")
    assert head.look() == (first, [WHOLE, TEXT, "squeue --json --jobs=9,10"])


def test_after_an_answer_that_never_comes_the_text_is_asked(head, monkeypatch):
    """squeue of 100,000 jobs has nothing to say for long, and then a gigabyte."""
    monkeypatch.setattr("ironburst.adapters.slurm.scheduler.WIDE", 10_000_000)
    first, squeue = whole(head), (head.folder / "squeue").read_text()
    head.slurm = Slurm(timeout_s=0.5)
    (head.folder / "squeue").write_text("#!/bin/bash\nexec sleep 60\n")
    with pytest.raises(SchedulerError, match="gave no answer"):
        head.slurm.observe()
    (head.folder / "squeue").write_text(squeue)
    head.slurm._timeout_s = 60.0
    assert head.look() == (first, [TEXT, "squeue --json --jobs=9,10"])


def test_the_limit_is_of_silence_not_of_reading(monkeypatch):
    limits = []

    class Poll:
        def __init__(self):
            self.of = poll()

        def __getattr__(self, name):
            return getattr(self.of, name)

        def poll(self, limit_ms):
            limits.append(limit_ms)
            return self.of.poll(limit_ms)

    poll = select.poll
    monkeypatch.setattr(select, "poll", Poll)
    streamed = Streamed(lambda text: sum(map(len, text)))
    streamed.run(["sh", "-c", "echo a; echo b"], input=b"", timeout=60.0, env=os.environ)
    assert streamed.answer == 4 and set(limits) == {60_000.0}


def test_a_small_queue_is_read_as_it_was(head, monkeypatch):
    monkeypatch.setattr("ironburst.adapters.slurm.scheduler.WIDE", 10_000_000)
    assert [head.look()[1] for _ in range(3)] == [[WHOLE]] * 3


@pytest.mark.parametrize("text, code", [("", 0), ("No jobs in the system\n", 0), ("slurm_load_jobs error", 1)])
def test_where_the_text_is_none_the_json_is_asked_and_the_text_later_again(head, text, code):
    first = whole(head)
    head.says(load("24.11", "squeue")["jobs"], text, code)
    assert head.look() == (first, [WHOLE, TEXT, WHOLE])
    assert [head.look() for _ in range(AGAIN - 2)] == [(first, [WHOLE])] * (AGAIN - 2)
    assert head.look() == (first, [WHOLE, TEXT, WHOLE])


def test_a_job_that_ended_while_it_was_asked_about_alone_is_gone(head):
    rows = [waiting(job_id=n) for n in range(20, 24)]
    head.says(rows)
    head.look()
    head.says([*rows, waiting(job_id=24, name="a\nb")])
    (head.folder / "squeue").write_text(
        "#!/bin/sh\necho 'slurm_load_jobs error: Invalid job id specified' >&2\nexit 1\n"
    )
    assert [job.id for job in head.look()[0].jobs] == [20, 21, 22, 23]


def test_of_many_jobs_all_are_asked_about(head, monkeypatch):
    monkeypatch.setattr("ironburst.adapters.slurm.scheduler._NAMED", 1)
    assert head.look()[1] == [WHOLE, TEXT, WHOLE]


def test_slurm_bridges_jobs_are_read_from_json(head):
    head.slurm = SlurmQueue()
    assert [head.look()[1] for _ in range(3)] == [[WHOLE]] * 3


def test_what_a_look_costs_is_what_the_benchmark_allows():
    found = slurm_queue.counts(jobs=700, nodes=70)
    assert found.keys() == slurm_queue.MOST.keys()
    assert {what: cost for what, cost in found.items() if cost > slurm_queue.MOST[what]} == {}
