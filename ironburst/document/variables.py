"""The document as variables of Ansible: which host has which. Pure, over decoded JSON.

What grows with the hosts no host has but one, the keeper: what needs the whole looks it up there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from ironburst.document.model import Ssh

WHOLE = ("hosts", "pools", "shares", "users", "topology")
"""Keys of the document that grow with the site, or name its hosts"""
OF_ALL = ("serial", "scheduler", "burst", "filesystem", "subnet_managers", "data_science", "data", "names")


def keeper(document: Mapping[str, Any]) -> str | None:
    """The host that has the whole: the head, or the first one where there is none; None: no host is managed."""
    names = [host["name"] for host in document["hosts"] if host.get("managed", True)]
    head = _head(document)
    return str(head) if head in names else next(iter(names), None)


def keepers(document: Mapping[str, Any]) -> list[str]:
    """The keeper first, and Slurm's second head, which is set up as the first one is."""
    names = {host["name"] for host in document["hosts"] if host.get("managed", True)}
    seconds = [(each.get("second_head") or {}).get("head", "") for each in schedulers(document)]
    return [name for name in (keeper(document) or "", *seconds) if name in names]


def schedulers(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One, or two. With slurm-bridge Slurm's has its cluster where one of Kubernetes has its own."""
    every = [document["scheduler"], *document.get("other_schedulers", ())]
    return [{**each, **(each.get("bridge") or {})} for each in every]


def scheduler_of(document: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """That of a host. `kind`: what the host says of it; empty, where there is only one."""
    every = schedulers(document)
    return next((each for each in every if each.get("kind") == kind), every[0])


def of_all(document: Mapping[str, Any]) -> dict[str, Any]:
    """Variables that every host has."""
    small = {f"cluster_{key}": document[key] for key in OF_ALL}
    its = keeper(document)
    cloud, others = document["cloud"] or {"provider": None, "region": None}, document.get("other_clouds", ())
    names = {"cluster_name": document["cluster"], "cluster_keeper": its or "localhost"}
    names |= {"cluster_provider": cloud["provider"], "cluster_region": cloud["region"]}
    names["cluster_regions"] = {each["provider"]: each["region"] for each in (cloud, *others) if each["provider"]}
    names["cluster_other_clouds"] = {each["provider"]: _of_cloud(each) for each in others}
    every = schedulers(document)
    # without a host, a play on the machine that runs it (image.yml) reads them there
    whole = {} if its else of_keeper(document) | {"cluster_software": document["software"]}
    if receiver := document.get("monitoring", {}).get("receiver"):
        names["cluster_receiver"] = receiver
    return {**names, "cluster_schedulers": every, **small, "cluster_scheduler": every[0], **whole}


def _of_cloud(other: Mapping[str, Any]) -> dict[str, Any]:
    """What its nodes have otherwise than the first cloud's."""
    return {f"cluster_{key}": other[key] for key in ("provider", "region", "data")}


def of_keeper(document: Mapping[str, Any]) -> dict[str, Any]:
    """Variables of only the keeper."""
    return {f"cluster_{key}": document[key] for key in WHOLE} | {"cluster_host_names": host_names(document)}


def host_names(document: Mapping[str, Any]) -> str:
    """A line of /etc/hosts for each declared host: one text for all of them, not one list each."""
    return "".join(f"{host['address']} {host['name']}\n" for host in document["hosts"] if host["address"])


def of_host(document: Mapping[str, Any], host: Mapping[str, Any]) -> dict[str, Any]:
    """Variables of one host: its own part of the document, how it is reached, and `cluster_software`. `node_locked`:
    {field: SHA-256 of its JSON, keys sorted} of what the lock fixes; by it validate.yml sees what an inventory changed.
    """
    variables = {f"node_{key}": value for key, value in host.items() if key not in ("name", "roles")}
    others = document.get("other_clouds", ())
    ssh = Ssh.model_validate(document["ssh"])
    user = ssh.user_at(host["kind"], host["os"])
    return variables | {
        "node_locked": {key: _digest(host[key]) for key in ("software", "os", "mig")},
        "ansible_host": host["address"],
        "ansible_user": user,
        "ansible_become": user != "root",
        # stock images of the cloud ask for no password
        "node_sudo_secret": ssh.sudo_secret if user != "root" and host["kind"] != "cloud" else "",
        "cluster_software": document["software"],
        **next((_of_cloud(each) for each in others if each["provider"] == host.get("provider")), {}),
        **({"cluster_scheduler": scheduler_of(document, host["scheduler"])} if host["scheduler"] else {}),
    }


def of_others(document: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """{host: variables}: what a host knows of others. slurm_node, slurm_login: `node_head_slurm`, the release on the
    head (null without one); imex: `node_imex`, the sorted addresses of its rack's trays; infiniband_fabric:
    `node_cables`, those of its hall's InfiniBand; prometheus: `node_monitoring`; logs: `node_logs`, the log centre.
    """
    hosts = document["hosts"]
    head = next((host for host in hosts if host["name"] == _head(document)), None)
    slurm = head["software"]["slurm"] if head and head["software"] else None
    racks: dict[tuple[str | None, str | None], list[str]] = {}
    for host in hosts:
        if "imex" in host["roles"]:
            racks.setdefault((host["hall"], host["rack"]), []).append(host["address"])
    trays = {place: sorted(addresses) for place, addresses in racks.items()}
    return {
        host["name"]: ({"node_head_slurm": slurm} if {"slurm_node", "slurm_login"} & {*host["roles"]} else {})
        | ({"node_imex": trays[host["hall"], host["rack"]]} if "imex" in host["roles"] else {})
        | ({"node_logs": document["monitoring"]["logs"]} if "logs" in host["roles"] else {})
        | ({"node_monitoring": document["monitoring"]} if "prometheus" in host["roles"] else {})
        | ({"node_cables": _cables(document, host["hall"])} if "infiniband_fabric" in host["roles"] else {})
        for host in hosts
    }


def _cables(document: Mapping[str, Any], hall: str | None) -> list[dict[str, Any]]:
    return list(document.get("halls", {}).get(hall or "", {}).get("cables", []))


def _head(document: Mapping[str, Any]) -> str:
    """Slurm's; empty: there is none."""
    return next((str(each["head"]) for each in schedulers(document) if each.get("head")), "")


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
