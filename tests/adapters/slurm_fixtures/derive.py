"""Makes the fixtures of the Slurm versions that were not run here out of the captured ones of 24.11.

24.11/ is captured: `squeue --json` and `scontrol show node --json` of Slurm 24.11.5 (data_parser v0.0.42) in the lab,
minified. 24.11/unusual.json is `squeue --json` of a slurmctld 24.11.5 with four nodes of 8 GPUs that no slurmd runs on,
without accounting, after twelve unusual submissions, all of which wait (recorded for issue 44,
shared/cases/accidents/squeue_24.11.5_real.json). 24.11/allocated.json is the same submissions, one after the other, to
a slurmctld 24.11.5 (Debian 13) of four such nodes with a slurmd each (192 CPUs in two sockets, 1,000,000 MiB, 8 GPUs,
DefMemPerGPU=100000, no accounting), while each ran; the lists of cores are left out.
24.11/allocated_sacct.txt and .json are what its `sacct` says of them with a slurmdbd, as the cost report asks and as
`sacct -X --json` (steps left out); _typed: with AccountingStorageTRES=gres/gpu,gres/gpu:h100.

The others are DERIVED, not captured: the captured values, with the fields that each version's data_parser adds, drops
or writes in another form, as read in the field tables (JOB_INFO, NODE in parsers.c) of
Slurm's public source at these tags:
  23.02  v0.0.39  (slurm-23-11-10-1 carries it)   23.11  v0.0.40  slurm-23-11-10-1
  25.05  v0.0.43  slurm-25-05-5-1                 26.05  v0.0.45  slurm-26-05-3-1
Run from this folder: python3 derive.py
"""

import copy
import json
from pathlib import Path

HERE = Path(__file__).parent
TIMES_39 = (
    "accrue_time",
    "deadline",
    "eligible_time",
    "end_time",
    "last_sched_evaluation",
    "pre_sus_time",
    "preempt_time",
    "preemptable_time",
    "resize_time",
    "start_time",
    "submit_time",
    "suspend_time",
)
NODE_TIMES_39 = ("boot_time", "last_busy", "reason_changed_at", "slurmd_start_time")


def drop(row, *names):
    for name in names:
        row.pop(name, None)


def v40_job(job):
    drop(job, "priority_by_partition", "required_switches")
    job |= {"minimum_switches": 0, "exclusive": [], "oversubscribe": False, "show_flags": [], "power": {"flags": []}}


def v40_node(node):
    drop(node, "gpu_spec", "res_cores_per_gpu")
    node |= {"external_sensors": {}, "power": {}}


def v39_job(job):
    v40_job(job)
    job["job_state"] = job["job_state"][0]
    for name in TIMES_39:
        job[name] = job[name]["number"]
    job["exit_code"] = job["derived_exit_code"] = {"set": True, "infinite": False, "number": 0}


def v39_node(node):
    v40_node(node)
    drop(node, "instance_id", "instance_type")
    for name in NODE_TIMES_39:
        node[name] = node[name]["number"]


def v43_job(job):
    job |= {
        "licenses_allocated": "",
        "segment_size": 0,
        "stderr_expanded": "",
        "stdin_expanded": "/dev/null",
        "stdout_expanded": "",
    }


def v43_node(node):
    drop(node, "tres_weighted")
    node |= {"cert_flags": [], "tls_cert_last_renewal": {"set": True, "infinite": False, "number": 0}, "topology": ""}


def v45_job(job):
    v43_job(job)
    drop(job, "shared", "power")
    step = {
        "sluid": "",
        "job_id": {"set": True, "infinite": False, "number": job["job_id"]},
        "step_het_component": {"set": False, "infinite": False, "number": 0},
        "step_id": "",
    }
    job |= {
        "step_id": step,
        "container_type": "",
        "memory_update_delay": 0,
        "memory_update_margin": 0,
        "submit_line": "",
    }


def v45_node(node):
    v43_node(node)
    drop(node, "external_sensors", "power")
    node["suspend_time"] = {"set": False, "infinite": True, "number": 0}


VERSIONS = {
    "23.02": ("v0.0.39", v39_job, v39_node),
    "23.11": ("v0.0.40", v40_job, v40_node),
    "25.05": ("v0.0.43", v43_job, v43_node),
    "26.05": ("v0.0.45", v45_job, v45_node),
}


def main():
    for version, (parser, job, node) in VERSIONS.items():
        for name, key, change in (
            ("squeue", "jobs", job),
            ("unusual", "jobs", job),
            ("allocated", "jobs", job),
            ("nodes", "nodes", node),
        ):
            answer = copy.deepcopy(json.loads((HERE / "24.11" / f"{name}.json").read_text()))
            for row in answer[key]:
                change(row)
            major, minor = version.split(".")
            answer["meta"]["plugin"]["data_parser"] = f"data_parser/{parser}"
            answer["meta"]["slurm"] |= {
                "version": {"major": major, "minor": minor, "micro": "0"},
                "release": f"{version} (derived)",
            }
            (HERE / version).mkdir(exist_ok=True)
            (HERE / version / f"{name}.json").write_text(json.dumps(answer, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
