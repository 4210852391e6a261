"""What may be written of installations, and what is said of the rest."""

import copy
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from ironburst.baremetal import declared
from ironburst.config import load
from ironburst.config.checks import check
from ironburst.config.finding import ConfigError

LAB = yaml.safe_load((Path(__file__).parents[3] / "stacks/Pulumi.lab.yaml").read_text())["config"]["ironburst:cluster"]
INSTALL = {
    "mark": "CHG-1",
    "medium": "https://10.0.9.5/{node}-{mark}.iso",
    "disks": ["D1", "0x5000c500a1b2c3d4"],
    "authorized_keys": ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOps ops@dc1"],
    "mirror": "http://10.0.0.5/debian",
}


def site(install, **nodes):
    value = copy.deepcopy(LAB)
    dgx = value["halls"][0]["nodes"][1]
    dgx |= {"install": INSTALL | install} | nodes
    return {key: given for key, given in value.items() if given is not None}


def said(install, **nodes):
    """Every finding of an installation, as (path's end, sentence)."""
    value = site(install, **nodes)
    dgx = value["halls"][0]["nodes"][1]
    value["halls"][0]["nodes"][1] = {key: given for key, given in dgx.items() if given is not None}
    try:
        config = load.from_value(value)
    except ConfigError as error:
        return [(finding.path.split("nodes[1].")[-1], finding.message) for finding in error.findings]
    findings = check(config, datetime(2026, 11, 25, tzinfo=UTC))
    return [
        (finding.path.split("nodes[1].")[-1], finding.message)
        for finding in findings
        if finding.rule in ("install", "one-a-node", "duplicate")
    ]


def test_a_good_one():
    assert said({}) == [] == said({"allow_install": []}) == said({"allow_install": "dgx[01-02]"})


@pytest.mark.parametrize(
    ("install", "nodes", "path", "words"),
    [
        ({"allow_install": ["dgx09"]}, {}, "install.allow_install", "'dgx09' is none of these nodes: dgx01, dgx02"),
        ({"disks": ["D1"]}, {}, "install.disks", "gives 1 values for 2 nodes"),
        ({"disks": ["D1", "D1"]}, {}, "install.disks", "'D1' is given twice"),
        ({"disks": ["/dev/sda", "D2"]}, {}, "install.disks[0]", "/dev/sda"),
        ({}, {"serials": None}, "serials", "is needed to install"),
        ({}, {"bmc": None}, "bmc", "is needed to install"),
        ({"medium": "https://10.0.9.5/ubuntu.iso"}, {}, "install.medium", "needs {node} and {mark}"),
        ({"medium": "https://10.0.9.5/{node}-{mark}/x.iso"}, {}, "install.medium", "needs {node} and {mark}"),
        ({"medium": "https://10.0.9.5/{node}-{mark}-{os}.iso"}, {}, "install.medium", "no other word"),
        ({"mark": "a b"}, {}, "install.mark", ""),
        ({"mark": "a/b"}, {}, "install.mark", ""),
        ({"dns": ["10.0.0.53"]}, {}, "install", "dns without a gateway"),
        ({"authorized_keys": ["-----BEGIN OPENSSH PRIVATE KEY-----"]}, {}, "install.authorized_keys[0]", ""),
        ({"mirror": None}, {}, "install.mirror", "netinst"),
    ],
)
def test_what_is_refused(install, nodes, path, words):
    ((where, sentence),) = said(install, **nodes)
    assert where == path and words in sentence


def test_what_the_provider_is_told():
    config = load.from_value(site({"allow_install": ["dgx02"], "boot": "http", "timeout": "30m"}))
    first, second = declared.node_inputs(config.halls[0].nodes[1], ssh_user="ops")
    assert [each["install"]["allow"] for each in (first, second)] == [False, True]
    assert second["install"] | {"knownHosts": "k"} == {
        "mark": "CHG-1",
        "medium": "https://10.0.9.5/dgx02-CHG-1.iso",
        "boot": "http",
        "allow": True,
        "hostAddress": "10.78.0.12",
        "sshUser": "ops",
        "knownHosts": "k",
        "timeoutSeconds": 1800,
    }


def test_what_a_medium_is_made_of():
    config = load.from_value(site({}))
    hall = config.halls[0]
    seed = declared.seed(config, hall, hall.nodes[1], "dgx02", "private", "public")
    assert (seed.target.serial, seed.target.disk, seed.os) == ("LAB-DGX02", "0x5000c500a1b2c3d4", "debian13")
    assert seed.network.address == "10.78.0.12/21" and seed.network.mac == "52:54:00:4e:00:0c"
