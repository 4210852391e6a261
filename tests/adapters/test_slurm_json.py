"""Slurm's answers: every known shape of its JSON, and answers that must not be believed."""

import copy
import json
import math
import re
from pathlib import Path

import pytest

from ironburst.adapters.slurm import answers as slurm_json
from ironburst.adapters.slurm import arrays as slurm_arrays
from ironburst.adapters.slurm import occupancy as slurm_occupancy
from ironburst.burst import Resources
from ironburst.nodes import naming
from ironburst.ports import WrongShape

FIXTURES = Path(__file__).parent / "slurm_fixtures"
VERSIONS = ("23.02", "23.11", "24.11", "25.05", "26.05")


def load(version, name):
    return json.loads((FIXTURES / version / f"{name}.json").read_text())


@pytest.mark.parametrize("version", VERSIONS)
def test_the_queue_of_every_version_reads_the_same(version):
    jobs = {job.id: job for job in slurm_json.jobs(load(version, "squeue"))}
    assert sorted(jobs) == [*(naming.task_of_array(3, task) for task in (1, 2, 3)), 1, 2, 4, 5, 6, 7, 9, 10]
    running = jobs[1]
    expected = ("RUNNING", 2, ("gpu2", "gpu3"), Resources(8, 1, 1000))
    assert (running.state, running.nodes, running.on, running.each) == expected
    assert (running.time_limit_s, running.end_s - running.start_s) == (180.0, 180.0)
    wide = jobs[2]
    assert wide.pending and wide.partitions == ("home", "burst") and wide.excluded == ("gpu7", "gpu8") and wide.on == ()
    assert wide.batch and wide.requeue and not wide.held and wide.end_s is None
    assert jobs[4].each == Resources(2, 2, 1000)
    assert jobs[6].held and jobs[7].dependency.startswith("afterok:2")
    assert not jobs[9].batch and not jobs[10].batch  # srun, salloc


@pytest.mark.parametrize("version", VERSIONS)
def test_the_nodes_of_every_version_read_the_same(version):
    nodes = {node.name: node for node in slurm_json.nodes(load(version, "nodes"))}
    assert nodes["gpu2"].open and nodes["gpu2"].total == Resources(8, 2, 1000) and nodes["gpu2"].partitions == ("home",)
    assert nodes["gpu6"].open and nodes["gpu6"].has("IDLE", "CLOUD") and nodes["gpu6"].address == "10.78.0.196"
    assert not nodes["gpu8"].open and nodes["gpu8"].has("DOWN", "DRAIN", "POWERED_DOWN")
    assert nodes["gpu8"].reason == "no lease"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("reason", "states", "known"),
    [
        ("Not responding", ["DOWN", "CLOUD"], True),
        ("bob: its fan is loud : Not responding", ["DOWN", "CLOUD", "DRAIN"], True),
        ("Not responding", ["IDLE", "CLOUD"], False),  # it is back
        ("Not responding : its fan is loud", ["DOWN", "CLOUD"], False),  # the time is of the last words
        ("Low RealMemory", ["DOWN", "CLOUD"], False),
    ],
)
def test_since_when_slurm_holds_a_node_for_dead(version, reason, states, known):
    raw = load(version, "nodes")
    of = {node["name"]: node for node in raw["nodes"]}
    of["gpu6"]["reason_changed_at"] = of["gpu8"]["reason_changed_at"]
    of["gpu6"] |= {"reason": reason, "state": states}
    nodes = {node.name: node for node in slurm_json.nodes(raw)}
    assert nodes["gpu6"].silent_s == (1795258766.0 if known else None)
    of["gpu6"]["reason_changed_at"] = "soon"
    assert all(node.silent_s is None for node in slurm_json.nodes(raw)), "it isn't worth the node's record"


@pytest.mark.parametrize("version", VERSIONS)
def test_who_is_on_which_node_reads_the_same_in_every_version(version):
    nodes = slurm_occupancy.occupancy(load(version, "squeue"), load(version, "nodes"))
    assert nodes["gpu2"].jobs == (1,) and nodes["gpu2"].busy and nodes["gpu2"].registered and nodes["gpu2"].available
    assert nodes["gpu8"].drained and not nodes["gpu8"].available and nodes["gpu8"].reason == "no lease"
    assert not nodes["gpu8"].registered
    assert nodes["gpu6"].jobs == () and nodes["gpu6"].end_s == 0 and not nodes["gpu6"].busy


def test_the_fixtures_that_are_derived_are_what_the_script_makes():
    for version in VERSIONS:
        release = load(version, "squeue")["meta"]["slurm"]["release"]
        assert ("derived" in release) == (version != "24.11")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("job_state", None),
        ("job_state", []),
        ("job_state", {"name": "PENDING"}),
        ("time_limit", {"minutes": 5}),
        ("time_limit", "soon"),
        ("partition", 7),
        ("node_count", [1]),
        ("batch_flag", "yes"),
        ("tres_req_str", 5),
        ("submit_time", True),
    ],
)
def test_one_job_of_an_unknown_shape_is_told_and_not_rented_for_and_the_others_are_read(field, value):
    answer = load("24.11", "squeue")
    before = {job.id: job for job in slurm_json.jobs(answer)}
    next(job for job in answer["jobs"] if job["job_id"] == 4)[field] = value
    read = slurm_json.read_jobs(answer)
    (told,) = read.unreadable
    assert re.match(r"job 4 in Slurm's JSON has a shape that isn't known: .*23\.02 to 26\.05", told)
    jobs = {job.id: job for job in read.items}
    odd = jobs.pop(4)
    assert odd.pending and odd.held and odd.on == () and jobs == {id: job for id, job in before.items() if id != 4}


@pytest.mark.parametrize("damage", [{"name": None, "submit_time": True}, {"job_state": None}, {"time_limit": "soon"}])
def test_a_running_job_of_an_unknown_shape_keeps_its_nodes(damage):
    answer = load("24.11", "squeue")
    next(job for job in answer["jobs"] if job["job_id"] == 1).update(damage)
    job = next(job for job in slurm_json.jobs(answer) if job.id == 1)
    assert job.on == ("gpu2", "gpu3") and not job.pending
    nodes = slurm_occupancy.occupancy(answer, load("24.11", "nodes"))
    assert nodes["gpu2"].busy and nodes["gpu2"].jobs == (1,) and nodes["gpu2"].end_s in (math.inf, job.end_s)


@pytest.mark.parametrize("damage", [{"nodes": 7}, {"nodes": None}, {"nodes": ""}, {"job_id": None}, {"job_id": "x"}])
def test_a_running_job_whose_nodes_are_not_known_is_no_job_less(damage):
    """A node must never look idle because its job couldn't be read."""
    answer = load("24.11", "squeue")
    next(job for job in answer["jobs"] if job["job_id"] == 1).update({"time_limit": "soon"} | damage)
    with pytest.raises(WrongShape, match=r"job .* has a shape that isn't known"):
        slurm_json.jobs(answer)


def test_an_answer_of_which_most_is_unknown_is_another_slurm():
    answer = load("24.11", "squeue")
    for row in answer["jobs"]:
        del row["batch_flag"]
    with pytest.raises(WrongShape, match="no field 'batch_flag'"):
        slurm_json.jobs(answer)


@pytest.mark.parametrize("row", [None, 7, "gpu2", []])
def test_a_row_that_is_no_job_is_no_job_less(row):
    answer = load("24.11", "squeue")
    answer["jobs"].append(row)
    with pytest.raises(WrongShape):
        slurm_json.jobs(answer)


@pytest.mark.parametrize("damage", [{"state": []}, {"tres": 5}, {"partitions": 7}])
def test_one_node_of_an_unknown_shape_is_told_and_used_by_nobody(damage):
    answer = load("24.11", "nodes")
    next(node for node in answer["nodes"] if node["name"] == "gpu2").update(damage)
    read = slurm_json.read_nodes(answer)
    (told,) = read.unreadable
    node = next(node for node in read.items if node.name == "gpu2")
    assert told.startswith("node gpu2 ") and not node.open and not node.launchable
    assert len(read.items) == len(answer["nodes"])
    occupancy = slurm_occupancy.occupancy(load("24.11", "squeue"), answer)["gpu2"]
    assert occupancy.busy and not occupancy.available


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("word", "said", "reason"),
    [
        ("Priority", "", "Priority"),
        ("None", "None", "None"),
        (
            "ReqNodeNotAvail",
            "ReqNodeNotAvail, Reserved for maintenance",
            "ReqNodeNotAvail, Reserved for maintenance",
        ),
        ("ReqNodeNotAvail", "ReqNodeNotAvail, UnavailableNodes:gpu1", "ReqNodeNotAvail, UnavailableNodes:gpu1"),
        ("AccountNotAllowed", "uid 7 not in group", "AccountNotAllowed, uid 7 not in group"),
        ("Resources", None, "Resources"),
        ("ReqNodeNotAvail", "UnavailableNodes:" + "g" * 9000, "ReqNodeNotAvail, UnavailableNodes:" + "g" * 166),
    ],
)
def test_why_a_job_waits_is_the_word_and_what_slurm_says_of_it(version, word, said, reason):
    answer = load(version, "squeue")
    row = next(job for job in answer["jobs"] if job["job_id"] == 4)
    row["state_reason"], row["state_description"] = word, said
    (job,) = [job for job in slurm_json.jobs(answer) if job.id == 4]
    assert job.reason == reason and job.reason_word == word


def test_a_missing_field_is_named():
    answer = load("24.11", "squeue")
    del answer["jobs"][0]["job_state"]
    assert "no field 'job_state'" in slurm_json.read_jobs(answer).unreadable[0]


@pytest.mark.parametrize("answer", [{}, [], {"jobs": None}, {"Jobs": []}, None])
def test_an_answer_without_jobs_is_no_empty_queue(answer):
    with pytest.raises(WrongShape, match="has no list 'jobs'"):
        slurm_json.jobs(answer)


def test_errors_in_the_answer_are_errors():
    answer = copy.deepcopy(load("24.11", "squeue")) | {"errors": [{"error": "no slurmctld"}], "jobs": []}
    with pytest.raises(WrongShape, match="no slurmctld"):
        slurm_json.jobs(answer)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (5, 5),
        (0, 0),
        (None, None),
        (4294967294, None),
        (4294967295, math.inf),
        ("UNLIMITED", math.inf),
        ("7", 7),
        ({"set": True, "infinite": False, "number": 5}, 5),
        ({"set": False, "infinite": False, "number": 0}, None),
        ({"set": True, "infinite": True, "number": 0}, math.inf),
    ],
)
def test_numbers_in_all_their_forms(value, expected):
    assert slurm_json.number(value) == expected


def test_a_job_without_a_finite_limit_has_none():
    answer = load("24.11", "squeue")
    answer["jobs"][0]["time_limit"] = {"set": True, "infinite": True, "number": 0}
    assert slurm_json.jobs(answer)[0].time_limit_s is None


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", []),
        ("dgx01", ["dgx01"]),
        ("p5-[1-3],head", ["p5-1", "p5-2", "p5-3", "head"]),
        ("dgx[09-11,20]", ["dgx09", "dgx10", "dgx11", "dgx20"]),
        ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
    ],
)
def test_host_lists(text, names):
    assert slurm_json.expand(text) == names


def test_memory_and_typed_gpus():
    assert slurm_json.tres("cpu=4,mem=1.5G,node=2,billing=4,gres/gpu=16,gres/gpu:h100=16") == Resources(16, 4, 1536)
    assert slurm_json.tres("cpu=1,mem=2T,gres/gpu:h100=8") == Resources(8, 1, 2 * 1024 * 1024)
    assert slurm_json.tres("cpu=1,mem=512K") == Resources(0, 1, 1)


@pytest.mark.parametrize(
    ("asked", "each"),
    [
        ({"tres_per_node": "gres/gpu:8"}, 8),
        ({"tres_per_node": "gres:gpu:h100:4"}, 4),
        ({"tres_per_node": "gres/gpu"}, 1),
        ({"tres_per_job": "gres/gpu:a100=16"}, 8),
        ({"tres_per_task": "cpu=1,gres/gpu:2", "tasks": {"set": True, "infinite": False, "number": 4}}, 4),
        ({"tres_per_node": "gres/gpu:1g.10gb:2"}, 0),
        ({"tres_per_node": "gres/shard:8"}, 0),
        ({"tres_per_node": ""}, 0),
    ],
)
def test_gpus_that_accounting_does_not_count(asked, each):
    """slurm.conf's own default: AccountingStorageTRES has no gres/gpu. As 24.11 answers then."""
    answer = load("24.11", "squeue")
    raw = next(job for job in answer["jobs"] if "PENDING" in job["job_state"])
    raw |= {"node_count": {"set": True, "infinite": False, "number": 2}, "tres_per_job": "", "tres_per_task": ""}
    raw |= {"tres_req_str": "cpu=2,mem=50M,node=2,billing=2", "tres_alloc_str": "", "tres_per_node": ""} | asked
    (job,) = slurm_json.jobs(answer | {"jobs": [raw]})
    assert job.each.gpus == each


def array(together="1-3", at_once=0, **more):
    """Array 3 as squeue says it, and other rows of it: {task: state}."""
    answer = load("24.11", "squeue")
    raw = next(job for job in answer["jobs"] if job["job_id"] == 3)
    raw |= {"array_task_string": together, "array_max_tasks": {"set": True, "infinite": False, "number": at_once}}
    figure = {"set": True, "infinite": False}
    rows = [raw] if together else []
    for number, (task, state) in enumerate(more.items()):
        task_id = figure | {"number": int(task[1:])}
        row = raw | {"job_id": 300 + number, "array_task_string": "", "array_task_id": task_id, "job_state": [state]}
        rows.append(row | ({"nodes": "gpu2", "node_count": figure | {"number": 1}} if state == "RUNNING" else {}))
    return slurm_json.jobs(answer | {"jobs": rows})


@pytest.mark.parametrize(
    ("together", "tasks"),
    [
        ("1-3", [1, 2, 3]),
        ("7", [7]),
        ("1,3-9:2%4", [1, 3, 5, 7, 9]),
        ("0-4999", list(range(100))),
        ("1-3,9,...", [1, 2, 3, 9]),
    ],
)
def test_tasks_of_an_array_are_jobs_of_their_own(together, tasks):
    found = array(together)
    assert [job.called for job in found] == [f"3_{task}" for task in tasks]
    assert sorted(found, key=lambda job: job.id) == list(found), "in their order"
    assert all(naming.called(job.id) == job.called and naming.scheduler_of(job.id) == "slurm" for job in found)


def test_a_task_keeps_its_id_when_slurm_splits_it_off():
    before = {job.called: job.id for job in array("1-3")}
    after = {job.called: job.id for job in array("3", t1="RUNNING", t2="PENDING")}
    assert before == after


def test_a_task_that_was_split_off_has_a_number_of_its_own():
    """What its prolog has as SLURM_JOB_ID; those that still wait in the array's row have none."""
    answer = load("24.11", "squeue")
    raw = next(job for job in answer["jobs"] if job["job_id"] == 3)
    figure = {"set": True, "infinite": False}
    rest = raw | {"array_task_string": "2-3"}
    split = raw | {"job_id": 307, "array_task_string": "", "array_task_id": figure | {"number": 1}}
    whole = raw | {"job_id": 9, "array_job_id": figure | {"number": 0}, "array_task_id": {"set": False}}
    found = slurm_arrays.numbers({"jobs": [rest, split, whole, "no row", {"array_job_id": figure | {"number": 5}}]})
    assert found == {naming.task_of_array(3, 1): 307}


@pytest.mark.parametrize(
    ("at_once", "more", "shown"),
    [
        (2, {}, ["3_4", "3_5"]),
        (2, {"t1": "RUNNING"}, ["3_4", "3_1"]),
        (3, {"t1": "RUNNING", "t2": "PENDING"}, ["3_4", "3_1", "3_2"]),
    ],
)
def test_no_more_tasks_are_shown_than_may_run_at_a_time(at_once, more, shown):
    assert [job.called for job in array("4-9%2", at_once, **more)] == shown


def test_a_task_that_may_not_run_yet_says_so():
    waiting = array("4-9%1", 1, t1="RUNNING")[0]
    assert (waiting.called, waiting.reason_word) == ("3_4", "JobArrayTaskLimit")


def test_what_slurm_does_not_count_takes_no_place_under_the_throttle():
    """job_array_start_test: tasks that are ending (it may take hours) or have ended run no more."""
    found = array("4-9%2", 2, t1="COMPLETED", t2="COMPLETING")
    assert [(job.called, job.reason_word) for job in found if job.pending] == [("3_4", "None"), ("3_5", "None")]


def test_an_array_of_an_unknown_shape_is_one_job():
    (found,) = array("one-two")
    assert found.id == 3


def test_a_mig_slice_is_no_gpu():
    assert slurm_json.tres("cpu=4,mem=1G,gres/gpu=20,gres/gpu:1g.10gb=12,gres/gpu:h100=6,gres/gpu:3g.40gb=2").gpus == 6
    assert slurm_json.tres("cpu=1,mem=1G,gres/gpu:1g.10gb=1").gpus == 0
    answer = load("24.11", "nodes")
    row = next(row for row in answer["nodes"] if "gpu" in row["gres"])
    for told in ("cpu=16,mem=1000M,billing=16,gres/gpu=20", "cpu=16,mem=1000M,billing=16"):
        row |= {"gres": "gpu:h100:6(S:0-1),gpu:1g.10gb+me:12,gpu:3g.40gb:2(S:0)", "tres": told}
        node = next(node for node in slurm_json.nodes(answer) if node.name == row["name"])
        assert node.total.gpus == 6
    row |= {"gres": "gpu:1g.10gb:56", "tres": "cpu=16,mem=1000M,billing=16,gres/gpu=56"}
    assert next(node for node in slurm_json.nodes(answer) if node.name == row["name"]).total.gpus == 0


@pytest.mark.parametrize(
    ("word", "type"),
    [
        ("gres/gpu:8", ""),
        ("gres/gpu:h100:8", "h100"),
        ("gres:gpu:H100:8", "h100"),
        ("gres/gpu:1g.10gb:1", "1g.10gb"),
        ("gres/gpu:1g.10gb=1", "1g.10gb"),
        ("gres/gpu=8", ""),
    ],
)
def test_the_gpu_type_that_a_job_insists_on(word, type):
    answer = load("24.11", "squeue")
    answer["jobs"][0]["tres_per_node"] = word
    assert slurm_json.jobs(answer)[0].gpu_type == type


@pytest.mark.parametrize("version", VERSIONS)
def test_deadline_licences_and_what_a_comment_says(version):
    answer = load(version, "squeue")
    row = answer["jobs"][0]
    row["deadline"] = 1795300000 if version == "23.02" else {"set": True, "infinite": False, "number": 1795300000}
    row |= {"licenses": "matlab:2,fluent@db:1", "comment": "mine; data=imagenet,c4 fabric=infiniband"}
    job, plain = slurm_json.jobs(answer)[:2]
    expected = (1795300000.0, ("matlab", "fluent@db"), ("imagenet", "c4"), "infiniband")
    assert (job.deadline_s, job.licences, job.data, job.fabric) == expected
    assert (plain.deadline_s, plain.licences, plain.data, plain.fabric) == (None, (), (), "")
    assert job.demands == plain.demands == ""


def test_one_licence_of_several_is_a_demand():
    answer = load("24.11", "squeue")
    answer["jobs"][0] |= {"licenses": "matlab:1|fluent:1", "comment": "metadata=x"}
    job = slurm_json.jobs(answer)[0]
    assert job.licences == job.data == () and job.demands == "one of the licences matlab:1|fluent:1"


@pytest.mark.parametrize("version", VERSIONS)
def test_tasks_of_an_array_are_called_as_squeue_calls_them(version):
    answer = load(version, "squeue")
    assert {job.id: job.called for job in slurm_json.jobs(answer) if job.called} == {
        naming.task_of_array(3, task): f"3_{task}" for task in (1, 2, 3)
    }
    task = next(job for job in answer["jobs"] if job["job_id"] == 3)
    task |= {"array_task_id": {"set": True, "infinite": False, "number": 0}, "array_task_string": ""}
    het = next(job for job in answer["jobs"] if job["job_id"] == 4)
    het |= {"het_job_id": {"set": True, "infinite": False, "number": 2}, "het_job_offset": 1}
    assert {job.id: job.called for job in slurm_json.jobs(answer) if job.called} == {
        naming.task_of_array(3, 0): "3_0",
        4: "2+1",
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_the_folders_of_a_job_are_where_it_works_reads_and_writes(version):
    jobs = {job.id: job for job in slurm_json.jobs(load(version, "squeue"))}
    assert all(job.folders == ("/shared/alice",) for job in jobs.values())


@pytest.mark.parametrize(
    ("works", "output", "folders"),
    [
        ("/home/ann", "/scratch/ann/log/slurm-7.out", ("/home/ann", "/scratch/ann/log")),
        ("/home/ann", "logs/slurm-7.out", ("/home/ann", "/home/ann/logs")),
        ("/home/ann", "/home/ann/%j/out", ("/home/ann",)),
        ("/home/ann/../bob/", "/dev/null", ("/home/bob",)),
        ("", "", ()),
    ],
)
def test_patterns_devices_and_relative_paths(works, output, folders):
    raw = load("24.11", "squeue")["jobs"][0] | {
        "current_working_directory": works,
        "standard_output": output,
        "standard_error": output,
        "standard_input": "/dev/null",
    }
    assert slurm_json.jobs({"jobs": [raw]})[0].folders == folders


def test_an_expedited_requeue_is_a_pending_job_that_may_be_put_back():
    """Slurm 25.11 to 26.05, by their sources (job_mgr.c, data_parser v0.0.44): the lab's 24.11 refuses the option."""
    (raw,) = [each for each in load("26.05", "squeue")["jobs"] if each["job_id"] == 2]
    asked = {**raw, "flags": [*raw["flags"], "EXPEDITED_REQUEUE"]}
    again = {**asked, "job_state": ["PENDING", "EXPEDITING"], "restart_cnt": 1}
    still_on_its_nodes = {**again, "job_state": ["PENDING", "COMPLETING", "EXPEDITING"], "nodes": "gpu2"}
    told = [slurm_json.jobs({"jobs": [each]})[0] for each in (asked, again, still_on_its_nodes)]
    assert [(job.state, job.pending, job.requeue) for job in told] == [
        ("PENDING", True, True),
        ("PENDING", True, True),
        ("COMPLETING", False, True),
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_nothing_of_a_job_shows_the_options_of_a_spank_plugin(version):
    """Pyxis's `--container-image` is one (its args.c): of containers Slurm shows only its own `--container`."""
    shown = {key for each in load(version, "squeue")["jobs"] for key in each if "contain" in key or "spank" in key}
    assert shown <= {"container", "container_id", "container_type"}
