"""A stack in Google Cloud: a hall's head, a fixed group, two pools, one of which has a fabric."""

import copy

PROJECT, REGION, ZONES = "gpu-prod-4711", "us-central1", ["us-central1-a", "us-central1-b"]
MUNGE_KEY = f"google-secretmanager:{PROJECT}/munge-key"
"""of the scheduler: rented nodes read it at boot"""
CLOUD = {
    "provider": "google",
    "project": PROJECT,
    "region": REGION,
    "price": {"a3-megagpu-8g": {"spot": 23.0}, "a3-ultragpu-8g": {"spot": 30.0}},
    "labels": {"cost-center": "4711"},
    "network": {
        "cidr": "10.90.0.0/16",
        "zones": ZONES,
        "fabric_cidr": "10.96.0.0/13",
        "hall_link": {
            "kind": "vpn",
            "hall": "hall-a",
            "peer_asn": 65010,
            "peer_address": "203.0.113.10",
            "shared_secret": "env:HALL_KEY",
        },
    },
    "groups": [
        {
            "name": "fixed",
            "instance_type": "g2-standard-96",
            "zone": ZONES[0],
            "count": 2,
            "image": "projects/ubuntu-os-cloud/global/images/family/ubuntu-2404-lts-amd64",
        }
    ],
    "pools": [
        {"name": "l4", "instance_type": "g2-standard-96", "zones": ZONES, "max_nodes": 4, "markets": ["on-demand"]},
        {"name": "a3", "instance_type": "a3-megagpu-8g", "zones": ZONES[:1], "max_nodes": 8, "markets": ["spot"]},
    ],
}


def cloud(**changes):
    """What is declared; `changes`: of its keys."""
    return copy.deepcopy(CLOUD) | changes
