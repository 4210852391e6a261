"""A cluster with nodes in the lab's Google Cloud, as a stack file declares it."""

from copy import deepcopy
from pathlib import Path

from ironburst.config.load import read_value

STACK = Path(__file__).parents[1] / "stacks" / "Pulumi.lab.yaml"
_CLOUD = {
    "provider": "google",
    "project": "lab-project",
    "region": "us-central1",
    "network": {
        "cidr": "10.90.0.0/16",
        "fabric_cidr": "10.96.0.0/16",
        "zones": ["us-central1-a", "us-central1-b"],
        "hall_link": {
            "kind": "vpn",
            "hall": "hall-a",
            "peer_address": "203.0.113.10",
            "peer_asn": 65010,
            "shared_secret": "env:VPN_SECRET",
        },
    },
    "groups": [
        {
            "name": "fixed",
            "instance_type": "g2-standard-48",
            "count": 1,
            "zone": "us-central1-a",
            "image": "projects/lab-project/global/images/family/ubuntu",
            "root_disk_gb": 100,
        }
    ],
    "pools": [
        {
            "name": "h100",
            "instance_type": "a3-highgpu-8g",
            "max_nodes": 2,
            "zones": ["us-central1-a", "us-central1-b"],
            "markets": ["spot"],
            "checkpoint": "30m",
        },
        {
            "name": "l4",
            "instance_type": "g2-standard-48",
            "max_nodes": 2,
            "zones": ["us-central1-a"],
            "markets": ["on-demand"],
        },
    ],
    "price": {"a3-highgpu-8g": {"spot_max": 60.0}},
}


def cloud():
    """A copy of it, to be changed."""
    return deepcopy(_CLOUD)


def value():
    """The whole declaration, as it is in a stack file."""
    said = read_value(STACK)
    said["scheduler"]["munge_key"] = "google-secretmanager:lab-project/munge-key"
    return said | {"cloud": cloud()}
