"""job_submit.lua as Slurm calls it, in a real Lua: which jobs home can never run, and what becomes of them.

The requests are what slurmctld 24.11.5 hands to the script for each command line, as a job_submit.lua that lists all
fields showed them there; what the user doesn't say is NO_VAL, NO_VAL16 or nil. Some go through sbatch in
tests/lab/test_habits.py.
"""

import functools

import lupa.lua51
import lupa.lua54
import pytest
from sample import lab_document
from test_templates import render, slurm_kinds

NO_VAL16, NO_VAL, INFINITE, NO_VAL64 = 0xFFFE, 0xFFFFFFFE, 0xFFFFFFFF, float(0xFFFFFFFFFFFFFFFE)
UNSAID = {
    "min_nodes": NO_VAL,
    "max_nodes": NO_VAL,
    "min_cpus": 1,
    "pn_min_cpus": NO_VAL16,
    "cpus_per_task": NO_VAL16,
    "num_tasks": NO_VAL,
    "ntasks_per_node": NO_VAL16,
    "ntasks_per_tres": NO_VAL16,
    "sockets_per_node": NO_VAL16,
    "time_limit": NO_VAL,
    "het_job_offset": NO_VAL,
    "script": "#!/bin/sh",
    "requeue": 1,
}
UNAVAILABLE = 2014  # ESLURM_REQUESTED_NODE_CONFIG_UNAVAILABLE, slurm/slurm_errno.h of 23.02 to 25.11
WAITS = "home,burst-any"


def site():
    """Home and two pools, as SIZES has them."""
    built = lab_document()
    (p5,) = built.pools
    large = p5.slurm.model_copy(update={"cpus": 64, "memory_mb": 4000})
    small = p5.slurm.model_copy(update={"cpus": 4, "memory_mb": 500})
    p5 = p5.model_copy(update={"gpu": p5.gpu.model_copy(update={"model": "H200 SXM 141GB"}), "slurm": large})
    l4 = p5.gpu.model_copy(update={"model": "L4 24GB", "count": 1})
    g6 = p5.model_copy(
        update={"name": "g6", "partition": "burst-g6", "nodes": ["g6-1", "g6-2"], "gpu": l4, "slurm": small}
    )
    hosts = [
        host.model_copy(update={"slurm": host.slurm.model_copy(update={"cpus": 16, "memory_mb": 1000})})
        if host.partition == "home"
        else host
        for host in built.hosts
    ]
    return built.model_copy(update={"pools": [p5, g6], "hosts": hosts})


class Plugin:
    """The script with what slurmctld gives it."""

    def __init__(self, script, lua=lupa.lua54):
        self.said = []
        self._lua = lua.LuaRuntime()
        table = {
            "SUCCESS": 0,
            "ERROR": -1,
            "NO_VAL": NO_VAL,
            "NO_VAL16": NO_VAL16,
            "NO_VAL64": NO_VAL64,
            "log_user": self.said.append,
            "log_error": self._error,
        }
        self._lua.globals().slurm = self._lua.table_from(table)
        assert self._lua.execute(script) == 0

    def _error(self, text, *words):
        raise AssertionError((text, *words))

    def submit(self, **request):
        """(answer, the request as the script leaves it)."""
        job = self._lua.table_from({key: value for key, value in (UNSAID | request).items() if value is not None})
        return self._lua.globals().slurm_job_submit(job, None, 1500), job

    def modify(self, before, uid=1500, **request):
        job = self._lua.table_from(request)
        return self._lua.globals().slurm_job_modify(job, self._lua.table_from(before), None, uid), job


def script(**changes):
    return render("job_submit.lua.j2", site().model_copy(update=changes))


@pytest.fixture(params=[lupa.lua51, lupa.lua54], ids=["Lua 5.1", "Lua 5.4"])
def plugin(request):
    """Debian's and EL's Slurm take whichever Lua they were built with."""
    return Plugin(as_declared(), request.param)


as_declared = functools.cache(script)


def test_what_there_is_counts_alike_nodes_once_and_slices_by_their_profile():
    """As slurm.conf has them: Gres=gpu:h100:6,gpu:1g.10gb:14."""
    plain, slurm = {"gpu": None, "mig": None}, {"cpus": 16, "memory_mb": 1000}
    cut = [{"gpus": [0, 1], "profiles": {"1g.10gb": 7}}]
    gpu = {"model": "H100 SXM5 80GB", "count": 8}
    nodes = [{"name": "a"} | plain, {"name": "b", "gpu": gpu, "mig": cut}, {"name": "c"} | plain]
    assert slurm_kinds([each | {"slurm": slurm} for each in nodes]) == [
        {"nodes": 2, "cpus": 16, "memory_mb": 1000, "gpus": {}},
        {"nodes": 1, "cpus": 16, "memory_mb": 1000, "gpus": {"h100": 6, "1g.10gb": 14}},
    ]


NODE = {"tres_per_node": "gres/gpu:8"}
AT_HOME = {
    "--gpus=1": {"tres_per_job": "gres/gpu:1"},
    "": {},
    "-N2 --gpus-per-node=8": {"min_nodes": 2, "max_nodes": 2, "min_cpus": 2} | NODE,
    "-N1-3 --gpus-per-node=8": {"min_nodes": 1, "max_nodes": 3} | NODE,
    "--gpus=16": {"tres_per_job": "gres/gpu:16"},
    "-n16 --gpus-per-task=1": {"num_tasks": 16, "min_cpus": 16, "tres_per_task": "gres/gpu=1"},
    "-n2 -c16 --gpus-per-task=h100:8": {
        "num_tasks": 2,
        "min_cpus": 32,
        "cpus_per_task": 16,
        "tres_per_task": "cpu=16,gres/gpu:h100=8",
    },
    "-n32": {"num_tasks": 32, "min_cpus": 32},
    "--mem=0 --gpus=1": {"tres_per_job": "gres/gpu:1", "min_mem_per_node": 0},
    "--mem=1000 --gpus=1": {"tres_per_job": "gres/gpu:1", "min_mem_per_node": 1000},
    "--gres=gpu": {"tres_per_node": "gres/gpu"},
    "--gres=gpu:H100": {"tres_per_node": "gres/gpu:H100"},
    "-n3 --ntasks-per-node=99 --gpus=1": {"num_tasks": 3, "ntasks_per_node": 99, "tres_per_job": "gres/gpu:1"},
}
# command line: (request, nodes that Slurm is told of)
LARGER = {
    "-N3 --gpus-per-node=8": ({"min_nodes": 3, "max_nodes": 3, "min_cpus": 3} | NODE, 3),
    "-N3-5 --gpus-per-node=8": ({"min_nodes": 3, "max_nodes": 5} | NODE, 3),
    "--gres=gpu:h200:8": ({"tres_per_node": "gres/gpu:h200:8"}, None),
    "--gres=gpu:l4:1 (23.02)": ({"tres_per_node": "gres:gpu:l4:1"}, None),
    "--gpus=24": ({"tres_per_job": "gres/gpu:24"}, 3),
    "--gpus=h200:17": ({"tres_per_job": "gres/gpu:h200:17"}, 3),
    "-n24 --gpus-per-task=1": ({"num_tasks": 24, "min_cpus": 24, "tres_per_task": "gres/gpu=1"}, 3),
    "-n3 --gpus-per-task=8": ({"num_tasks": 3, "min_cpus": 3, "tres_per_task": "gres/gpu=8"}, 3),
    "-n5 --gpus-per-task=3": ({"num_tasks": 5, "min_cpus": 5, "tres_per_task": "gres/gpu=3"}, 3),
    "-n6 --ntasks-per-node=2 --gpus=1": ({"num_tasks": 6, "ntasks_per_node": 2, "tres_per_job": "gres/gpu:1"}, 3),
    "-n24 --ntasks-per-gpu=1": ({"num_tasks": 24, "min_cpus": 24, "ntasks_per_tres": 1}, 3),
    "--gpus-per-node=8 --cpus-per-gpu=4": ({"cpus_per_tres": "gres/gpu:4"} | NODE, None),
    "--gpus=24 --ntasks-per-gpu=1": (
        {"num_tasks": 24, "min_cpus": 24, "ntasks_per_tres": 1, "tres_per_job": "gres/gpu:24"},
        3,
    ),
    "-n40 --gpus-per-node=8": ({"num_tasks": 40, "min_cpus": 40} | NODE, None),
    "--mem=4000 --gpus=1": ({"tres_per_job": "gres/gpu:1", "min_mem_per_node": 4000}, None),
    "--mem-per-cpu=100 -c12 --gpus=1": (
        {"tres_per_job": "gres/gpu:1", "min_mem_per_cpu": 100, "cpus_per_task": 12, "pn_min_cpus": 12, "min_cpus": 12},
        None,
    ),
    "--mem-per-gpu=3000 --gpus=2": ({"tres_per_job": "gres/gpu:2", "mem_per_tres": "gres/gpu:3000"}, 2),
    "--cpus-per-gpu=20 --gpus=3": (
        {"tres_per_job": "gres/gpu:3", "cpus_per_tres": "gres/gpu:20", "min_cpus": 60},
        None,
    ),
    "-c17 --gpus=1": ({"tres_per_job": "gres/gpu:1", "cpus_per_task": 17, "pn_min_cpus": 17, "min_cpus": 17}, None),
    "--ntasks-per-node=40 --gpus=1": ({"tres_per_job": "gres/gpu:1", "ntasks_per_node": 40, "min_cpus": 40}, None),
    "-p home -N3 --gpus-per-node=8": ({"partition": "home", "min_nodes": 3, "max_nodes": 3} | NODE, 3),
    "salloc --no-requeue": ({"min_nodes": 3, "max_nodes": 3, "script": None, "requeue": 0} | NODE, 3),
    "--array": ({"min_nodes": 3, "max_nodes": 3, "array_inx": "0-9%2"} | NODE, 3),
    "--time of a pool": ({"min_nodes": 3, "max_nodes": 3, "time_limit": 60} | NODE, 3),
}
FIRST = "home can never run this job, and "
SIZES = (
    "home has 2 nodes of h100:8, 16 CPUs, 1000 MiB for 7-00:00; "
    "pool p5 has 3 nodes of h200:8, 64 CPUs, 4000 MiB for 0-01:00; "
    "pool g6 has 2 nodes of l4:1, 4 CPUs, 500 MiB for 0-01:00"
)
NOBODYS = {
    "-N4 --gpus-per-node=8": (
        {"min_nodes": 4, "max_nodes": 4} | NODE,
        "no pool can. It asks for 4 nodes, 8 GPUs a node",
    ),
    "--gres=gpu:16": ({"tres_per_node": "gres/gpu:16"}, "no pool can. It asks for 1 node, 16 GPUs a node"),
    "--gpus-per-socket=8 --sockets-per-node=2": (
        {"tres_per_socket": "gres/gpu:8", "sockets_per_node": 2},
        "no pool can. It asks for 1 node, 16 GPUs a node",
    ),
    "--gpus=25": ({"tres_per_job": "gres/gpu:25"}, "no pool can. It asks for 1 node, 25 GPUs"),
    "--gpus=24 -N2": (
        {"tres_per_job": "gres/gpu:24", "min_nodes": 2, "max_nodes": 2},
        "no pool can. It asks for 2 nodes, 24 GPUs",
    ),
    "--gres=gpu:b200:8": (
        {"tres_per_node": "gres/gpu:b200:8"},
        "no pool can. It asks for 1 node, 8 GPUs of type b200 a node",
    ),
    "--mem=5G --gpus=1": (
        {"tres_per_job": "gres/gpu:1", "min_mem_per_node": 5120},
        "no pool can. It asks for 1 node, 1 GPU, 5120 MiB a node",
    ),
    "--time": (
        {"min_nodes": 3, "max_nodes": 3, "time_limit": 61} | NODE,
        "no pool can. It asks for 3 nodes, 8 GPUs a node, 0-01:01",
    ),
    "--time=UNLIMITED": (
        {"tres_per_job": "gres/gpu:1", "time_limit": INFINITE},
        "no pool can. It asks for 1 node, 1 GPU, UNLIMITED",
    ),
    "--nodes=3": (
        {"min_nodes": 3, "max_nodes": 3, "min_cpus": 3},
        "it asks for no GPU, and only nodes with GPUs are rented. It asks for 3 nodes",
    ),
    "--constraint": (
        {"min_nodes": 3, "max_nodes": 3, "features": "fast"} | NODE,
        "it insists on --constraint=fast, which a rented node can't promise. It asks for 3 nodes, 8 GPUs a node",
    ),
    "MIG": (
        {"tres_per_node": "gres/gpu:1g.10gb:99"},
        "it asks for MIG slices, which aren't rented. It asks for 1 node, 99 GPUs of type 1g.10gb a node",
    ),
}


@pytest.mark.parametrize("line", AT_HOME)
def test_what_home_takes_is_as_it_was_submitted(plugin, line):
    answer, job = plugin.submit(**AT_HOME[line])
    assert (answer, job.partition, job.min_nodes) == (0, None, AT_HOME[line].get("min_nodes", NO_VAL))
    assert plugin.said == []


@pytest.mark.parametrize("line", LARGER)
def test_what_only_a_pool_takes_waits_for_rented_nodes(plugin, line):
    """Slurm counts no nodes in a partition without any, so it is told how many `--gpus=24` needs."""
    request, nodes = LARGER[line]
    answer, job = plugin.submit(**request)
    assert (answer, job.partition, job.min_nodes) == (0, WAITS, nodes or NO_VAL)


@pytest.mark.parametrize("line", NOBODYS)
def test_what_nobody_takes_is_refused_with_what_there_is(plugin, line):
    request, said = NOBODYS[line]
    answer, job = plugin.submit(**request)
    assert (answer, job.partition) == (UNAVAILABLE, None)
    assert plugin.said == [f"{FIRST}{said}; {SIZES}"]


def test_longer_than_home_and_not_than_a_pool_is_slurms_to_say():
    """PartitionTimeLimit: it is admitted, and rented for."""
    plugin = Plugin(script(pools=[pool.model_copy(update={"max_run_s": 14 * 86400}) for pool in site().pools]))
    answer, job = plugin.submit(tres_per_job="gres/gpu:1", time_limit=8 * 1440)
    assert (answer, job.partition) == (0, None)


@pytest.mark.parametrize(
    "request_",
    [
        {"partition": "fixed"},
        {"het_job_offset": 0},
        {"reservation": "course"},
    ],
)
def test_other_partitions_reservations_and_parts_are_slurms_alone(plugin, request_):
    answer, job = plugin.submit(**({"min_nodes": 9, "max_nodes": 9} | NODE | request_))
    assert (answer, job.partition) == (0, request_.get("partition"))


def test_slices_are_no_whole_gpus():
    plugin = Plugin(as_declared().replace('["h100"] = 8', '["1g.10gb"] = 14, ["h100"] = 6'))
    assert plugin.submit(tres_per_job="gres/gpu:h100:12")[0] == 0
    assert plugin.submit(tres_per_job="gres/gpu:h100:13")[0] == UNAVAILABLE


def test_an_empty_hall_has_jobs_too():
    plugin = Plugin(script(hosts=[host for host in site().hosts if host.partition != "home"]))
    answer, job = plugin.submit(tres_per_job="gres/gpu:1")
    assert (answer, job.partition) == (0, WAITS)
    plugin.submit()
    assert "home has no nodes for 7-00:00; pool p5 has" in plugin.said[-1]


def test_users_submit_to_the_waiting_partition_neither_nor_move_jobs_there(plugin):
    assert plugin.submit(partition=WAITS)[0] == -1
    assert plugin.modify({"partition": "home"}, partition=WAITS)[0] == -1
    assert "only the burst controller moves jobs to partition burst-any" in plugin.said[-1]


def test_a_larger_job_is_never_left_in_home_alone(plugin):
    """There Slurm would hold it (BadConstraints), whoever moved it."""
    for uid in (0, 1500):
        answer, job = plugin.modify({"partition": "burst-p5,home,burst-any"}, uid=uid, partition="home")
        assert (answer, job.partition) == (0, WAITS)
    answer, job = plugin.modify({"partition": "home,burst-p5"}, uid=0, partition="home")
    assert (answer, job.partition) == (0, "home")


def test_while_it_waits_its_user_excludes_what_he_likes(plugin):
    assert plugin.modify({"partition": WAITS}, exc_nodes="p5-1")[0] == 0
    assert plugin.modify({"partition": "home,burst-p5,burst-any"}, exc_nodes="p5-1")[0] == -1
