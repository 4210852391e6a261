"""A real Karpenter beside a control plane of the lab. Its cloud is a stand-in, Karpenter's own for kwok: an instance is
there at once, never refused, and no machine. A NodePool's template has the label commands.ALIVE.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from lab.kubernetes import access, binaries
from lab.kubernetes.access import ADMIN, Api
from lab.kubernetes.control_plane import ControlPlane, free_ports
from lab.system import LabError, wait_for

CLASS = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
_API = "/apis/karpenter.kwok.sh/v1alpha1"
_SERVED_S = 60


def instance_type(name: str, usd_per_hour: Mapping[str, float], resources: Mapping[str, str]) -> dict[str, Any]:
    """What may be launched: a price by market, and what a node has."""
    return {
        "name": name,
        "offerings": [_offering(market, usd) for market, usd in usd_per_hour.items()],
        "architecture": "amd64",
        "operatingSystems": ["linux"],
        "resources": {"memory": "384Gi", "ephemeral-storage": "600Gi", "pods": "110", **resources},
    }


def _offering(market: str, usd_per_hour: float) -> dict[str, Any]:
    at = {"karpenter.sh/capacity-type": market, "topology.kubernetes.io/zone": "lab-1a"}
    requirements = [{"key": key, "operator": "In", "values": [value]} for key, value in at.items()]
    return {"Price": usd_per_hour, "Available": True, "Requirements": requirements}


def start(plane: ControlPlane, types: Sequence[Mapping[str, Any]]) -> subprocess.Popen[bytes]:
    """Make its kinds and its node class, and start it; it dies with this process. LabError if it isn't built."""
    if not binaries.karpenter_built():
        raise LabError("Karpenter isn't built: `python -m lab.kubernetes.karpenter` builds it (minutes, once)")
    program, api = binaries.karpenter(), plane.api()
    for each in _kinds():
        api.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", each)
    wait_for(lambda: _served(api), _SERVED_S, "Karpenter's kinds")
    made = {"apiVersion": _API.removeprefix("/apis/"), "kind": CLASS["kind"], "metadata": {"name": CLASS["name"]}}
    api.call("POST", f"{_API}/kwoknodeclasses", {**made, "spec": {}})
    file = plane.folder / "karpenter-types.json"
    file.write_text(json.dumps(list(types)))
    metrics, probe = free_ports(2)
    environment = os.environ | {
        "KUBECONFIG": str(plane.layout().kubeconfig(ADMIN)),
        "INSTANCE_TYPES_FILE_PATH": str(file),
        "DISABLE_LEADER_ELECTION": "true",
        "METRICS_PORT": str(metrics),
        "HEALTH_PROBE_PORT": str(probe),
    }
    with (plane.folder / "log" / "karpenter.log").open("a") as output:
        return subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", str(program)], env=environment, stdout=output, stderr=output
        )


def _kinds() -> list[dict[str, Any]]:
    """Its CustomResourceDefinitions, of the module that it is built from."""
    module = binaries.OPTIONAL / binaries.KARPENTER.name
    command = ["go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/karpenter"]
    done = subprocess.run(command, cwd=module, capture_output=True, text=True)
    if done.returncode:
        raise LabError(f"Karpenter's kinds can't be found: {done.stderr.strip()}")
    source = Path(done.stdout.strip())
    files = [*sorted((source / "pkg/apis/crds").glob("*.yaml")), *sorted((source / "kwok/apis/crds").glob("*.yaml"))]
    return [each for file in files for each in yaml.safe_load_all(file.read_text()) if each]


def _served(api: Api) -> bool:
    try:
        return all(api.call("GET", path)["resources"] for path in ("/apis/karpenter.sh/v1", _API))
    except (access.Refused, LabError):  # a group that is new has no answer in JSON for a moment
        return False


if __name__ == "__main__":
    try:
        print(binaries.karpenter())
    except LabError as error:
        sys.exit(str(error))
