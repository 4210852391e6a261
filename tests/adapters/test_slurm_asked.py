"""What jobs with unusual options ask for, in the words of a real slurmctld, with accounting of GPUs and without."""

import json
from pathlib import Path

import pytest

from ironburst.adapters.slurm import accounting as slurm_accounting
from ironburst.adapters.slurm import answers as slurm_json
from ironburst.adapters.slurm import arrays as slurm_arrays
from ironburst.adapters.slurm import asked as slurm_asked
from ironburst.adapters.slurm import defaults as slurm_defaults
from ironburst.adapters.slurm import fields as slurm_fields
from ironburst.ports import Node, Resources, WrongShape
from ironburst.replay import traces

FIXTURES = Path(__file__).parent / "slurm_fixtures"
VERSIONS = ("23.02", "23.11", "24.11", "25.05", "26.05")
NODES = [Node(f"n{n}", ("home",), Resources(8, 192, 1_000_000), ("IDLE",)) for n in range(1, 5)]
# by job of unusual.json: (nodes, GPUs of each, CPUs of each, MiB of each, with 100000 MiB for each GPU by default)
ASKED = {
    1: (1, 1, 1, 100_000),
    2: (1, 1, 1, 1000),  # --mem=1000
    3: (2, 8, 1, 800_000),  # --gpus=16
    4: (2, 8, 32, 800_000),  # -n16 --gpus-per-task=1 --cpus-per-task=4
    5: (2, 8, 8, 800_000),  # -N2 --ntasks-per-node=8
    6: (2, 8, 1, 800_000),  # -N2-4
    7: (1, 4, 4, 400_000),  # -n4 --ntasks-per-gpu=1
    8: (1, 8, 2, 800_000),  # --gpus-per-socket=4 --sockets-per-node=2
    9: (1, 8, 1, 800_000),
    10: (1, 1, 1, 100_000),
    11: (1, 1, 1, 100_000),
    12: (2, 8, 96, 800_000),  # -n192 --gpus=16
}


# The folder that the jobs were submitted from is renamed in these records.
# by job of allocated.json: (nodes, GPUs of each), as `scontrol -d show job` says it (JOB_GRES and GRES of each node)
ALLOCATED = {id: asked[:2] for id, asked in ASKED.items()} | {
    1: (1, 8),  # --exclusive: all that the node has
    2: (1, 8),
    6: (4, 8),  # -N2-4: four were idle
}


def number(n):
    return {"set": True, "infinite": False, "number": n}


def queue(version="24.11"):
    return json.loads((FIXTURES / version / "unusual.json").read_text())


def row(id=1, **changes):
    return next(raw for raw in queue()["jobs"] if raw["job_id"] == id) | changes


def read(raw):
    (job,) = slurm_json.jobs(slurm_defaults.applied({"jobs": [raw]}, NODES))
    return job


@pytest.mark.parametrize("version", VERSIONS)
def test_unusual_submissions_are_read_as_what_they_need(version):
    jobs = slurm_json.jobs(slurm_defaults.applied(queue(version), NODES))
    found = {job.id: (job.nodes, job.each.gpus, job.each.cpus, job.each.memory_mb) for job in jobs}
    assert found == ASKED


@pytest.mark.parametrize("version", VERSIONS)
def test_while_they_run_they_have_what_slurm_allocated(version):
    answer = json.loads((FIXTURES / version / "allocated.json").read_text())
    jobs = slurm_json.jobs(answer)
    assert {job.id: (job.nodes, job.each.gpus) for job in jobs} == ALLOCATED
    for job, raw in zip(jobs, answer["jobs"], strict=True):
        assert job.nodes * job.each.gpus == sum(int(each.split(":")[2].split("(")[0]) for each in raw["gres_detail"])
        least = job.exclusive == "node" or job.id in (1, 2)  # 26.05 doesn't say who shares
        assert least or (job.each.cpus, job.each.memory_mb) == ASKED[job.id][2:]


@pytest.mark.parametrize("name", ["allocated_sacct.txt", "allocated_sacct_typed.txt"])
def test_once_they_ran_the_accounting_has_what_slurm_allocated(name):
    path = FIXTURES / "24.11" / name
    tries = slurm_accounting.runs(path.read_text().splitlines(), path)
    counted = {each.job: (len(each.nodes), each.gpus // len(each.nodes)) for each in tries}
    assert counted == ALLOCATED and all(each.gpus % len(each.nodes) == 0 for each in tries)


def test_their_history_as_json_has_the_gpus_that_slurm_allocated():
    trace = traces.read(FIXTURES / "24.11" / "allocated_sacct.json")
    assert list(trace.gpus) == [nodes * gpus for nodes, gpus in ALLOCATED.values()]


@pytest.mark.parametrize("id", ASKED)
def test_they_read_the_same_where_accounting_counts_gpus(id):
    """AccountingStorageTRES=gres/gpu: `tres_req_str` has those of the fewest nodes."""
    bare = row(id)
    nodes, gpus, *_ = ASKED[id]
    counted = row(id, tres_req_str=f"{bare['tres_req_str']},gres/gpu={nodes * gpus}")
    assert read(counted) == read(bare)


@pytest.mark.parametrize("version", VERSIONS)
def test_who_shares_a_node(version):
    """26.05's JSON says nothing of it (JOB_INFO of data_parser v0.0.45: removed), its squeue has a column."""
    asked = queue(version)
    assert slurm_asked.lacks_exclusive(asked) == (version == "26.05")
    if version == "26.05":
        # job_exclusive_display_string of src/common/slurm_protocol_defs.c; rows as for `sbatch --exclusive[=user]`
        columns = "".join(f"{raw['job_id']:<20}{COLUMN.get(raw['job_id'], 'NO'):<20}\n" for raw in asked["jobs"])
        asked = slurm_asked.with_exclusive(asked, columns)
    said = {job.id: job.exclusive for job in slurm_json.jobs(asked)}
    assert {id: word for id, word in said.items() if word} == {1: "node", 2: "node", 10: "user"}


COLUMN = {1: "NODE", 2: "NODE", 10: "USER"}


@pytest.mark.parametrize(("word", "exclusive", "insists"), [("MCS", "node", False), ("TOPO", "", True)])
def test_other_words_of_the_column(word, exclusive, insists):
    bare = {key: value for key, value in row().items() if key != "shared"}
    job = read(slurm_asked.with_exclusive({"jobs": [bare]}, f"1 {word}\n")["jobs"][0])
    assert (job.exclusive, bool(job.demands)) == (exclusive, insists)


@pytest.mark.parametrize(
    "columns", ["squeue: error: Invalid job format specification: Exclusive", "7 NODE NO", "NODE 7"]
)
def test_a_column_of_another_shape_is_no_answer(columns):
    with pytest.raises(WrongShape, match="Exclusive"):
        slurm_asked.with_exclusive(queue("26.05"), columns)


@pytest.mark.parametrize(
    ("shared", "exclusive", "insists"),
    [
        (["mcs"], "node", False),
        (["oversubscribe"], "", False),
        ([], "", False),
        ("none", "node", False),
        (["topo"], "", True),
    ],
)
def test_other_ways_to_share(shared, exclusive, insists):
    job = read(row(shared=shared))
    assert (job.exclusive, bool(job.demands)) == (exclusive, insists)


@pytest.mark.parametrize(
    ("gpus", "least", "most", "guess", "nodes"),
    [
        (8, 1, 4, 4, 1),  # -N1-4 --gpus=8: Slurm would spread it, one node has them
        (20, 1, 4, 4, 3),
        (20, 2, 0, 2, 3),  # a slurmctld that hasn't guessed yet
        (64, 1, 4, 4, 4),  # too large: what its user allows at most
        (16, 2, 2, 2, 2),
    ],
)
def test_gpus_in_all_take_the_fewest_nodes_that_have_them(gpus, least, most, guess, nodes):
    asked = f"cpu={least},mem=1000M,node={least},billing=1"
    raw = row(3, tres_per_job=f"gres/gpu:{gpus}", node_count=number(guess), max_nodes=number(most), tres_req_str=asked)
    assert read(raw).nodes == nodes


def test_what_it_asks_of_each_node_is_at_least_what_it_says_of_each_node():
    assert read(row(minimum_cpus_per_node=number(64))).each.cpus == 64  # --mincpus
    assert read(row(5, cpus_per_tres="gres/gpu:12")).each.cpus == 96  # --cpus-per-gpu


def test_a_running_job_has_what_gres_detail_says():
    """--gpus-per-socket, without accounting of GPUs."""
    raw = row(8, job_state=["RUNNING"], nodes="n1", tres_alloc_str="cpu=2,mem=1000M,node=1", sockets_per_node=number(0))
    assert slurm_json.jobs({"jobs": [raw | {"gres_detail": ["gpu:h100:8(IDX:0-7)"]}]})[0].each.gpus == 8


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tres_per_node": "gres/gpu:h100:4,gres/gpu:a100:4"}, "GPUs of the types h100, a100 together"),
        ({"minimum_tmp_disk_per_node": number(5000)}, "5000 MiB of temporary disk"),
        ({"features": "a100*2&ib"}, "the features a100*2&ib"),
        ({"batch_features": "big"}, "the batch host's features big"),
        ({"required_nodes": "n1"}, "the nodes n1"),
    ],
)
def test_what_a_rented_node_cannot_promise(changes, words):
    assert read(row(**changes)).demands == words


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"state_reason": "JobHeldUser"}, " by its user (scontrol release)"),
        ({"state_reason": "JobHeldAdmin"}, " by an administrator, or by Slurm itself (an administrator releases it)"),
        (
            {"state_reason": "JobHeldUser", "state_description": "launch failed requeued held"},
            " by Slurm (launch failed requeued held)",
        ),
        ({"state_reason": "BadConstraints"}, " (BadConstraints)"),
    ],
)
def test_who_holds_a_job(changes, words):
    job = read(row(priority=number(0), **({"state_description": ""} | changes)))
    assert job.held and job.held_by == words


def test_nobody_holds_one_with_a_priority():
    assert (read(row()).held, read(row()).held_by) == (False, "")


def test_the_least_limit():
    assert read(row(time_minimum=number(30))).time_min_s == 1800.0 and read(row()).time_min_s is None


def test_the_types_of_a_nodes_gpus():
    nodes = json.loads((FIXTURES / "24.11" / "nodes.json").read_text())
    for gres, types in (
        ("gpu:H100:8(S:0-1)", {"h100": 8}),
        ("gpu:h100:4,gpu:a100:4", {"h100": 4, "a100": 4}),
        ("gpu:8", {}),
    ):
        raw = next(raw for raw in nodes["nodes"] if raw["name"] == "gpu2") | {"gres": gres}
        assert slurm_json.nodes(nodes | {"nodes": [raw]})[0].gpu_types == types


def test_an_arrays_throttle_is_slurms_own():
    """And not how many tasks are looked at; tasks that were put back and are held take nobody's place."""

    def task(n, state, priority=1):
        split = {"job_id": 5000 + n, "array_job_id": number(5000), "array_task_id": number(n), "array_task_string": ""}
        return row(**split, job_state=[state], priority=number(priority))

    def waiting(busy, at_once):
        whole = {"job_id": 5000, "array_job_id": number(5000), "array_task_string": "500-999"}
        rows = slurm_arrays.tasks_apart([*busy, row(**whole, array_max_tasks=number(at_once))])
        shown = [raw for raw in rows if slurm_arrays.TOGETHER in raw]
        return len(shown), shown[0]["state_reason"] == "JobArrayTaskLimit"

    running = [task(n, "RUNNING") for n in range(150)]
    assert waiting(running, 0) == (slurm_arrays.TASKS_SHOWN, False)
    assert waiting(running, 160) == (10, False) and waiting(running, 150) == (1, True)
    assert waiting([task(1, "RUNNING"), task(2, "PENDING", 0), task(3, "PENDING", 0)], 2) == (1, False)


def test_sizes_have_a_least_and_a_most():
    assert slurm_asked.sizes_of(row(6))[:2] == (2, 4) and slurm_asked.sizes_of(row(5))[:2] == (2, 2)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_function_by_kind_names_every_field_that_it_reads(version):
    """And never gives one kind's answer for another."""
    names = ("squeue", "unusual", "allocated")
    rows = [row for name in names for row in json.loads((FIXTURES / version / f"{name}.json").read_text())["jobs"]]
    for raw in [*rows, *map(slurm_fields.job, rows)]:
        for function in (slurm_asked.asks, slurm_asked.sizes_of, slurm_asked.demands):
            assert outcome(function, raw) == outcome(function.__wrapped__, raw)


def outcome(function, raw):
    try:
        return function(raw)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return type(error)
