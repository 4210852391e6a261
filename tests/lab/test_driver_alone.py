"""The driver alone on two hosts of inventory/example-static, as somebody would begin; only their addresses are the
lab's. All roles: test_static_inventory.py (slow).
"""

import os

import pytest

from lab.hosts.spec import bare_metal
from tests import sites
from tests.lab.static_inventory import Static, repositories_by_hand

pytestmark = pytest.mark.lab
HOSTS = {"gpu01": "10.78.0.21", "gpu02": "10.78.0.22"}


@pytest.fixture(scope="module")
def site():
    with sites.running(f"t-alone-{os.getpid()}", hall={}) as site:
        for name, address in HOSTS.items():
            site.start_host(bare_metal(name, address, hosts=HOSTS, files=repositories_by_hand(site)))
        assert set(site.wait(list(HOSTS), 120).values()) == {"running"}
        yield site


@pytest.mark.slow
def test_the_driver_alone_in_check_mode_for_real_and_again(site):
    static = Static(site, edits={"10.1.0.11": HOSTS["gpu01"], "10.1.0.12": HOSTS["gpu02"]})
    drivers = {name: ["nvidia_driver"] for name in HOSTS}
    for run, options in (("check", ["--check"]), ("real", []), ("again", [])):
        recap, said = static.roles(drivers, *options)
        for name in HOSTS:
            assert recap[name]["failed"] == 0 and (recap[name]["changed"] == 0) == (run == "again"), (run, said[-4000:])
    assert sites.drivers(site, *HOSTS) == {name: {"580.95.05"} for name in HOSTS}
