"""Every field of Slurm's answers that the readers are given is read, or named here with the reason why it isn't. One
that a new release brings fails until somebody has thought about it.
"""

import json
from pathlib import Path

import pytest

from ironburst.adapters.slurm import answers as slurm_json
from ironburst.adapters.slurm import arrays as slurm_arrays
from ironburst.adapters.slurm import bridge as slurm_bridge
from ironburst.adapters.slurm import comments as slurm_comments
from ironburst.adapters.slurm import defaults as slurm_defaults
from ironburst.adapters.slurm import fields as slurm_fields
from ironburst.adapters.slurm import occupancy as slurm_occupancy
from ironburst.ports import WrongShape

FIXTURES = Path(__file__).parent / "slurm_fixtures"
VERSIONS = ("23.02", "23.11", "24.11", "25.05", "26.05")

JOBS = {
    "the same as another field that is read": """
        association_id user_id group_id group_name cluster hold cpus memory_per_node job_size_str scheduled_nodes
        federation_origin federation_siblings_active federation_siblings_viable het_job_id_set step_id job_resources
        stderr_expanded stdin_expanded stdout_expanded licenses_allocated priority_by_partition
        threads_per_core sockets_per_board cores_per_socket oversubscribe thread_spec""",
    "about a job that has ended, or how it did": """
        derived_exit_code exit_code failed_node""",
    "where its steps or its tasks are on the nodes that it has: no other nodes follow": """
        batch_host cpu_frequency_minimum cpu_frequency_maximum cpu_frequency_governor tres_bind tres_freq
        tasks_per_core tasks_per_socket tasks_per_board container container_id container_type
        profile selinux_context memory_update_delay memory_update_margin network""",
    "in the CPUs that tres_req_str and minimum_cpus_per_node have": "cpus_per_task tasks_per_node core_spec max_cpus",
    "Slurm's own bookkeeping of when it looked, paid or preempted": """
        accrue_time last_sched_evaluation preempt_time preemptable_time pre_sus_time resize_time suspend_time nice
        billable_tres delay_boot cron""",
    "for people and programs of the site": """
        allocating_node extra mail_type mail_user mcs_label system_comment wckey command submit_line show_flags""",
    "a wish, not a demand: the job starts without": """
        prefer required_switches minimum_switches maximum_switch_wait_time""",
    "of federations and burst buffers of other machines": "cluster_features burst_buffer_state",
    "nothing that a rented node lacks": "contiguous reboot segment_size power flags",
}
NODES = {
    "the same as another field that is read": """
        hostname cpus effective_cpus real_memory alloc_memory alloc_cpus tres_used""",
    "what is free by the node's own count: we count the jobs on it": """
        alloc_idle_cpus free_mem cpu_load gres_used gres_drained tres_weighted""",
    "how the machine is made: tres says how much of it there is": """
        architecture boards burstbuffer_network_address cores cpu_binding operating_system sockets specialized_cores
        specialized_cpus specialized_memory temporary_disk threads gpu_spec res_cores_per_gpu mcs_label""",
    "jobs with demands on it aren't rented for": "active_features features weight extra reservation resume_after",
    "Slurm's own bookkeeping": """
        boot_time last_busy port version owner cluster_name next_state_after_reboot cert_flags suspend_time
        tls_cert_last_renewal topology""",
    "of other clouds, or ours by tags": "instance_id instance_type",
    "its power is Redfish's": "energy external_sensors power",
    "ours: the heartbeat (see the dead man's switch)": "comment",
}


class Watched(dict):
    """A row that knows which of its fields were asked for."""

    def __init__(self, row, asked):
        super().__init__(row)
        self.asked = asked

    def __getitem__(self, key):
        self.asked.add(key)
        return super().__getitem__(key)

    def get(self, key, default=None):
        self.asked.add(key)
        return super().get(key, default)

    def __or__(self, other):
        return Watched({**self, **other}, self.asked)


def load(version, name):
    return json.loads((FIXTURES / version / f"{name}.json").read_text())


def watched(answer, key):
    asked = set()
    return answer | {key: [Watched(row, asked) for row in answer[key]]}, asked


def names(reasons):
    return {name for text in reasons.values() for name in text.split()}


@pytest.mark.parametrize("version", VERSIONS)
def test_every_field_of_a_job_is_read_or_named(version):
    nodes, queue = slurm_json.nodes(load(version, "nodes")), load(version, "squeue")
    answer, asked = watched(queue | {"jobs": queue["jobs"] + load(version, "unusual")["jobs"]}, "jobs")
    for raw in answer["jobs"]:  # as without accounting, too: other fields are looked at then
        raw["tres_alloc_str"] = raw["tres_alloc_str"].partition(",gres")[0]
    assert slurm_json.read_jobs(slurm_defaults.applied(answer, nodes)).unreadable == ()
    slurm_json.shares(answer), slurm_comments.comments(answer), slurm_bridge.placeholders(answer)
    there = {name for raw in answer["jobs"] for name in raw}
    assert sorted(there - asked - names(JOBS)) == [], "new fields: read them, or say here why not"
    assert asked & names(JOBS) == set(), "named as not read, and read"
    assert asked - slurm_fields.JOB <= {slurm_arrays.TOGETHER}, "asked for, and not kept of a row"


@pytest.mark.parametrize("version", VERSIONS)
def test_every_field_of_a_node_is_read_or_named(version):
    shown, asked = watched(load(version, "nodes"), "nodes")
    slurm_json.read_nodes(shown), slurm_occupancy.occupancy(load(version, "squeue"), shown)
    for node in shown["nodes"]:
        node |= {"state": ["DOWN"], "reason": "Not responding"}
    slurm_json.read_nodes(shown)
    assert sorted(set(load(version, "nodes")["nodes"][0]) - asked - names(NODES)) == []
    assert asked & names(NODES) == set()
    assert asked == slurm_fields.NODE


def test_a_field_that_nobody_has_thought_about_is_found():
    answer, asked = watched({"jobs": [{"brand_new": 1}]}, "jobs")
    assert set(answer["jobs"][0]) - asked - names(JOBS) == {"brand_new"}


ANSWERS = sorted(path for path in FIXTURES.glob("*/*.json") if path.stem not in ("allocated_sacct", "states"))


def said(read, *answer):
    """What is read, or why it isn't."""
    try:
        return read(*answer)
    except WrongShape as error:
        return str(error)


@pytest.mark.parametrize("path", ANSWERS, ids=[f"{path.parent.name}-{path.stem}" for path in ANSWERS])
def test_a_row_with_what_is_read_of_it_reads_the_same(path):
    answer = json.loads(path.read_text())
    key, kept, read = (
        ("nodes", slurm_fields.node, slurm_json.read_nodes)
        if "nodes" in answer
        else ("jobs", slurm_fields.job, slurm_json.read_jobs)
    )
    less = answer | {key: [kept(raw) for raw in answer[key]]}
    assert read(less) == read(answer) and len(answer[key]) > 2
    if key == "jobs":
        nodes = slurm_json.nodes(load(path.parent.name, "nodes"))
        assert slurm_json.read_jobs(slurm_defaults.applied(less, nodes)) == slurm_json.read_jobs(
            slurm_defaults.applied(answer, nodes)
        )
        for each in (slurm_json.shares, slurm_comments.comments, slurm_bridge.placeholders, slurm_arrays.numbers):
            assert each(less) == each(answer)


NUMBERS = [
    *(0, 5, 1.5, -1, None, "7", "UNLIMITED", 0xFFFFFFFE, 0xFFFFFFFF, True, [], {}),
    *({"set": True, "infinite": False, "number": number} for number in (0, 5, 1.5, 0xFFFFFFFE, 0xFFFFFFFF, True, "7")),
    *({"set": has, "infinite": endless, "number": 3} for has in (True, False, 1) for endless in (True, False, None)),
    {"set": True, "infinite": False, "number": 5, "more": 1},
    {"set": True, "infinite": False},
]


@pytest.mark.parametrize("value", NUMBERS, ids=range(len(NUMBERS)))
@pytest.mark.parametrize("field", ["time_limit", "priority", "tasks", "array_task_id", "max_nodes", "restart_cnt"])
def test_a_number_in_any_shape_reads_the_same_or_is_refused_the_same(field, value):
    answer = load("24.11", "squeue")
    answer["jobs"][0][field] = value
    less = answer | {"jobs": [slurm_fields.job(raw) for raw in answer["jobs"]]}
    assert said(slurm_json.read_jobs, less) == said(slurm_json.read_jobs, answer)
