"""dnsmasq's settings for nodes that may be installed."""

import copy
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from ironburst.cli import main

LAB = yaml.safe_load((Path(__file__).parents[3] / "stacks/Pulumi.lab.yaml").read_text())
INSTALL = {
    "mark": "CHG-1",
    "medium": "http://10.78.0.1:8080/{node}-{mark}.efi",
    "boot": "http",
    "disks": ["D1", "D2"],
    "authorized_keys": ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOps ops@dc1"],
    "mirror": "http://10.0.0.5/debian",
    "allow_install": ["dgx02"],
}


@pytest.fixture
def netboot(tmp_path, capsys):
    def printed(install=(), **nodes):
        value = copy.deepcopy(LAB)
        dgx = value["config"]["ironburst:cluster"]["halls"][0]["nodes"][1]
        dgx |= {"install": INSTALL | dict(install)} | nodes
        stack = tmp_path / "Pulumi.x.yaml"
        stack.write_text(yaml.safe_dump(value))
        code = main(["node", "netboot", str(stack), "--interface", "eth0"])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return printed


def test_only_nodes_that_may_be_installed_are_served(netboot):
    code, text, _ = netboot()
    assert code == 0
    assert "dhcp-host=52:54:00:4e:00:0c,set:dgx02,10.78.0.12,dgx02\n" in text
    assert "dhcp-boot=tag:http,tag:dgx02,http://10.78.0.1:8080/dgx02-CHG-1.efi\n" in text
    assert "dgx01" not in text and "dhcp-ignore=tag:!known" in text


def test_gateway_and_name_servers(netboot):
    assert "dhcp-option=option:router\n" in netboot()[1]
    _, text, _ = netboot({"gateway": "10.78.0.1", "dns": ["10.78.0.2", "10.78.0.3"]})
    assert "dhcp-option=option:router,10.78.0.1\n" in text
    assert "dhcp-option=option:dns-server,10.78.0.2,10.78.0.3\n" in text


def test_bad_input(netboot):
    code, _, said = netboot({"allow_install": []})
    assert code == 2 and "no node may be installed" in said
    code, _, said = netboot(macs=None)
    assert code == 2


@pytest.mark.skipif(not shutil.which("dnsmasq"), reason="dnsmasq is not installed (Debian's dnsmasq-base)")
def test_dnsmasq_takes_it(netboot, tmp_path):
    (tmp_path / "dnsmasq.conf").write_text(netboot({"gateway": "10.78.0.1", "dns": ["10.78.0.2"]})[1])
    ran = subprocess.run(["dnsmasq", "--test", "-C", tmp_path / "dnsmasq.conf"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
