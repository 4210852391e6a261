"""The installation and the BIOS of owned nodes: who may be written to, and what has to be known of a node before."""

from __future__ import annotations

from ironburst.config.checks.common import Findings, owned_nodes
from ironburst.config.finding import Finding
from ironburst.config.models import ClusterConfig


def install(config: ClusterConfig) -> Findings:
    """An installation is for one machine and one disk, both known by serial number, behind a BMC."""
    for at, _, nodes in owned_nodes(config):
        if nodes.install is None:
            continue
        lacking = {"bmc": nodes.bmc is None, "serials": not nodes.serials, "addresses": not nodes.addresses}
        for key in [key for key, lacks in lacking.items() if lacks]:
            message = "is needed to install these nodes: a disk is written in the one machine that was meant"
            yield Finding(at(key), None, "install", message)
        if len(nodes.install.disks) != len(nodes.names):
            given, wanted = len(nodes.install.disks), len(nodes.names)
            message = f"gives {given} values for {wanted} nodes; give one each"
            yield Finding(at("install", "disks"), nodes.install.disks, "one-a-node", message)
        for name in nodes.install.allow_install:
            if name not in nodes.names:
                message = f"{name!r} is none of these nodes: {', '.join(nodes.names)}"
                yield Finding(at("install", "allow_install"), name, "install", message)
        for key, values in (("serials", nodes.serials or []), ("disks", nodes.install.disks)):
            twice = sorted({value for value in values if values.count(value) > 1})
            if twice:
                path = at("install", key) if key == "disks" else at(key)
                yield Finding(path, twice[0], "duplicate", f"{twice[0]!r} is given twice: each is one thing's own")
        if nodes.install.mirror is None and (nodes.os or config.software.os).startswith("debian"):
            message = "is not given: a netinst medium of Debian needs one, only its DVD has all packages"
            yield Finding(at("install", "mirror"), None, "install", message, "warning")


def bios(config: ClusterConfig) -> Findings:
    """Settings of a BIOS are read over a BMC; who may be set is one of the nodes, and has something to be set."""
    for at, _, nodes in owned_nodes(config):
        if nodes.bios and nodes.bmc is None:
            yield Finding(at("bmc"), None, "bios", "is needed for the settings in bios: they are read over it")
        if nodes.allow_bios and not nodes.bios:
            message = "lets nodes be set without a setting: write bios beside it, or leave it out"
            yield Finding(at("allow_bios"), nodes.allow_bios, "bios", message)
        for name in nodes.allow_bios:
            if name not in nodes.names:
                message = f"{name!r} is none of these nodes: {', '.join(nodes.names)}"
                yield Finding(at("allow_bios"), name, "bios", message)
