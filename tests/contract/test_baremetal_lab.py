"""The lab's BMCs as they run in a lab: what Redfish says of a host is what the host says of itself, and its button is
the host's power.
"""

import json
import os
import subprocess
import sys

import pytest

from lab.hosts.check import check
from lab.site import Site
from lab.system import LabError, wait_for

CLIENT = """
import dataclasses, json, sys, sushy
from ironburst.adapters.redfish import client as redfish
from ironburst.adapters.redfish import power as redfish_power
verb, address = sys.argv[1:3]
access = redfish.BmcAccess("dgx01", address, "admin", "a-lab-password", timeout_s=20)
if verb == "off":
    redfish_power.power_off(access)
if verb == "on":
    with redfish._login(access) as root:
        root.get_system("/redfish/v1/Systems/1").reset_system(sushy.RESET_ON)
print(json.dumps(dataclasses.asdict(redfish.read_hardware(access))))
"""


@pytest.fixture(scope="module")
def site():
    if os.geteuid() != 0:
        pytest.skip("a lab needs root")
    site = Site(f"f{os.getpid()}")
    try:
        check(site.box.root)
    except LabError as error:
        pytest.skip(str(error))
    site.up(start=["dgx01"], tied=True)
    try:
        argv = [sys.executable, "-m", "lab.bmc", "--prefix", site.prefix]
        site.box.spawn(argv, site.dir / "bmc.log", {"LAB_BMC_PASSWORD": "a-lab-password"})
        wait_for(lambda: "ready" in (site.dir / "bmc.log").read_text(), 20, "the BMCs")
        yield site
    finally:
        site.down()


def bmc(site, verb, address="http://10.78.8.11"):
    argv = [*site.box.net_prefix(), sys.executable, "-c", CLIENT, verb, address]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=90)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.lab
def test_redfish_and_the_host_agree(site):
    seen = bmc(site, "read")
    dmi = site.ssh(
        "dgx01",
        "cd /sys/class/dmi/id && cat product_serial product_uuid sys_vendor product_name ../../net/eth0/address",
    )
    expected = [seen["serial"], seen["uuid"], seen["manufacturer"], seen["model"], seen["macs"][0]]
    assert dmi.stdout.splitlines() == expected
    gpus = site.ssh("dgx01", "grep -l 0x030200 /sys/bus/pci/devices/*/class | wc -l").stdout
    assert int(gpus) == sum(group["count"] for group in seen["gpus"]) == 8
    head = bmc(site, "read", "http://10.78.8.10")
    assert (head["serial"], head["gpus"], head["power_state"]) == ("LAB-HEAD", [], "Off")


@pytest.mark.lab
def test_the_button_is_the_hosts_power(site):
    host = site.host("dgx01")
    assert bmc(site, "read")["power_state"] == "On"
    assert bmc(site, "off")["power_state"] == "Off" and host.state() == "off"
    bmc(site, "on")
    wait_for(lambda: host.state() == "on", 20, "dgx01 to be on")
    assert bmc(site, "read")["power_state"] == "On"
