"""The demo's input as batch/v1 Jobs: the trace slice of `make demo`, compressed a little more. Pure."""

from __future__ import annotations

from typing import Any

from ironburst.nodes.naming import SITE_LABEL
from lab.demo import trace
from lab.demo.trace import TraceJob
from lab.kubernetes.nodes import NOTE

COMPRESSION = 600  # one hour of the trace is 6 s
SHORTEST_S = 12.0  # so long a job runs at least: a spot notice is to find one
NAMESPACE = "team-a"
NAME_LABEL = "batch.kubernetes.io/job-name"
LIMIT_S = 120  # what users ask for; none needs it
STOP_S = 1  # so long a pod takes to end when it is told to
Json = dict[str, Any]


def jobs() -> list[TraceJob]:
    """In order of submit."""
    return trace.jobs(compression=COMPRESSION)


def manifest(name: str, nodes: int, gpus: int, run_s: float, limit_s: int) -> Json:
    """A Job of one pod a node, each with `gpus` GPUs for `run_s` seconds. More than one start on one side: at home or
    where is rented, by their affinity to each other. What an eviction ends is made anew and counts as no failure.
    """
    together: Json = {}
    if nodes > 1:
        term = {"topologyKey": SITE_LABEL, "labelSelector": {"matchLabels": {NAME_LABEL: name}}}
        affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        together = {"affinity": affinity}
    resources = {"nvidia.com/gpu": str(gpus), "cpu": "1", "memory": "400Mi"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "parallelism": nodes,
            "completions": nodes,
            "completionMode": "Indexed",
            "backoffLimit": 2,
            "podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]},
            "template": {
                "metadata": {"annotations": {f"{NOTE}run-seconds": f"{run_s:.0f}", f"{NOTE}stop-seconds": f"{STOP_S}"}},
                "spec": {
                    "restartPolicy": "Never",
                    "activeDeadlineSeconds": limit_s,
                    "containers": [{"name": "work", "image": "work", "resources": {"limits": resources}}],
                    **together,
                },
            },
        },
    }


def of(job: TraceJob) -> Json:
    """The Job of a job of the trace."""
    return manifest(job.name, job.nodes, job.gpus // job.nodes, max(job.run_s, SHORTEST_S), LIMIT_S)
