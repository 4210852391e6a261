"""The roles of the GPU's own software on a real host (driver, MIG and DKMS are the lab's labelled stubs)."""

import json
import os
import re

import pytest

from ironburst import document
from lab.demo.inside import Inside
from lab.system import wait_for
from tests import sites
from tests.playbooks import sample

pytestmark = [pytest.mark.lab, pytest.mark.slow]
ROLES = ["base", "nvidia_driver", "fabric_manager", "cuda", "nvidia_container_toolkit", "mig", "dcgm"]
NEWER = "580.105.08"


@pytest.fixture(scope="module")
def site():
    with sites.running(f"t-gpu-{os.getpid()}", "dgx01") as site:
        yield site


class Node:
    """dgx01 with only the GPU's own roles, and the playbooks on it."""

    def __init__(self, site):
        self.site = site
        self.inside = Inside(site)

    def declare(
        self, driver="580.95.05", gpus=(0,), profile="1g.10gb", count=7, roles=tuple(ROLES), limit=None, **software
    ):
        built = sample.lab_document(names=("dgx01",))
        host = built.host("dgx01")
        own = host.software
        packages = {role: [spec.replace(own.driver, driver) for spec in specs] for role, specs in own.packages.items()}
        changed = {"driver": driver, "fabric_manager": driver, "nscq": driver, "packages": packages} | software
        mig = [{"gpus": list(gpus), "profiles": {profile: count}}]
        data = host.model_dump() | {"roles": list(roles), "software": own.model_dump() | changed, "mig": mig}
        data["gpu_power_limit_w"] = limit
        hosts = [document.Host.model_validate(data)]
        document.publish(built.model_copy(update={"hosts": hosts}), self.inside.document)

    def play(self, *options, ok=(0,)):
        """(text, number of changed tasks); ansible's exit codes: 0, or 2 for a failed host."""
        playbook = ("ansible-playbook", "-i", "inventory/lab", "playbooks/site.yml")
        text = self.inside.run(["env", "ANSIBLE_NOCOLOR=1", *playbook, *options], ok=ok)
        return text, int(re.search(r"^dgx01 .*changed=(\d+)", text, re.MULTILINE)[1])

    def says(self, line):
        return self.site.ssh("dgx01", line, check=False).stdout.strip()


@pytest.fixture(scope="module")
def node(site):
    node = Node(site)
    node.declare()
    node.play()
    return node


def sentence(text):
    """The fail_msg of the run."""
    message = re.search(r"msg: (?:\|-|>-)?\s*(.+?)(?:\n\S|\n\n|\Z)", text[text.index("FAILED!") :], re.DOTALL)
    return " ".join(message[1].split())


def test_all_is_there_and_a_second_run_changes_nothing(node):
    smi = (
        "nvidia-smi --query-gpu=driver_version,persistence_mode,mig.mode.current --format=csv,noheader | sort | uniq -c"
    )
    expected = [["7", "580.95.05,", "Enabled,", "Disabled"], ["1", "580.95.05,", "Enabled,", "Enabled"]]
    assert [line.split() for line in node.says(smi).splitlines()] == expected
    assert (
        node.says("systemctl is-active nvidia-persistenced nvidia-fabricmanager nvidia-dcgm").split() == ["active"] * 3
    )
    assert node.says("systemctl is-enabled ironburst-mig") == "enabled"
    assert node.says("nvidia-smi mig -lgi | grep -c 'MIG 1g.10gb'") == "7"
    assert re.fullmatch(r"nvidia/580\.95\.05, \S+, x86_64: installed", node.says("dkms status"))
    assert "blacklist nouveau" in node.says("cat /etc/modprobe.d/ironburst-nouveau.conf")
    assert "iommu=pt" in node.says("cat /etc/default/grub.d/90-ironburst.cfg")
    assert "unlimited" in node.says("grep memlock /etc/security/limits.d/90-ironburst.conf")
    blocked = node.says("apt-config dump | grep Blacklist::")
    held = ("nvidia-open", "nvidia-fabricmanager", "cuda-toolkit-13-0", "libnccl2")
    assert all(f"^{name}$" in blocked.replace("\\", "") for name in held), blocked
    assert node.play()[1] == 0
    assert node.play("--check")[1] == 0


def test_the_driver_is_not_changed_under_a_process_that_uses_it(node):
    node.declare(driver=NEWER)
    # /dev/nvidia0 can't be opened here (the machine has no such device): a file of the same name is held instead
    hold = "systemd-run --quiet --unit=holder --property=StandardInput=file:/dev/nvidia0 sleep 300"
    node.site.ssh("dgx01", f"mv /dev/nvidia0 /dev/hidden && touch /dev/nvidia0 && {hold}")
    try:
        text, changed = node.play(ok=(2,))
        assert "nvidia-open=580.105.08-*" in sentence(text) and "in the place of what is there would dis" in sentence(
            text
        )
        assert re.search(r"sleep \(\d+\) with a GPU open on dgx01: end what uses the GPUs", sentence(text))
        assert changed == 1, text  # only the pin of versions, which is live
        assert node.says("dpkg-query -W -f '${Version}' nvidia-open") == "580.95.05-1"
        text, changed = node.play("--skip-tags", "drain")  # what `ironburst converge` runs under a job
        assert changed == 0 and node.says("dpkg-query -W -f '${Version}' nvidia-open") == "580.95.05-1"
    finally:
        node.site.ssh("dgx01", "systemctl stop holder; rm -f /dev/nvidia0; mv /dev/hidden /dev/nvidia0")


def test_an_idle_node_gets_the_new_driver_with_all_that_belongs_to_it(node):
    node.declare(driver=NEWER)
    node.play()
    versions = (
        "dpkg-query -W -f '${Version}\\n' nvidia-open nvidia-fabricmanager libnvidia-nscq nvidia-persistenced | sort -u"
    )
    assert node.says(versions) == f"{NEWER}-1"
    assert (
        node.says("nvidia-smi --query-gpu=driver_version,persistence_mode --format=csv,noheader | sort -u")
        == f"{NEWER}, Enabled"
    )
    assert node.says("systemctl is-active nvidia-fabricmanager nvidia-dcgm").split() == ["active"] * 2
    # made again: the new modules begin without instances
    assert node.says("nvidia-smi mig -lgi | grep -c 'MIG 1g.10gb'") == "7"
    assert node.play()[1] == 0


def test_a_module_that_is_not_built_for_the_running_kernel_is_built_or_the_reason_is_told(node):
    node.declare(driver=NEWER)
    node.site.ssh("dgx01", f"dkms remove nvidia/{NEWER}")
    assert node.play()[1] == 1 and "installed" in node.says("dkms status")
    node.site.ssh(
        "dgx01", f"dkms remove nvidia/{NEWER}; sed -i '/autoinstall)/s/$/ echo no headers; exit 1;/' /usr/sbin/dkms"
    )
    said = sentence(node.play(ok=(2,))[0])
    assert f"has no NVIDIA {NEWER} modules built for its running kernel" in said and "no headers" in said
    node.site.ssh("dgx01", f"sed -i 's/ echo no headers; exit 1;//' /usr/sbin/dkms; dkms install nvidia/{NEWER}")


def test_another_layout(node):
    node.declare(driver=NEWER, gpus=(1,), profile="3g.40gb", count=2)
    assert node.play()[1] == 5  # the file, DCGM's end, the instances, its start, the devices of containers
    assert node.says("nvidia-smi mig -lgi | grep -o 'MIG 3g.40gb'").split("\n") == ["MIG 3g.40gb"] * 2
    assert (
        node.says("nvidia-smi --query-gpu=mig.mode.current --format=csv,noheader").split()
        == ["Disabled", "Enabled"] + ["Disabled"] * 6
    )


LIMITED = {"driver": NEWER, "gpus": (1,), "profile": "3g.40gb", "count": 2, "roles": (*ROLES, "gpu_power_limit")}


def limits(node):
    return set(node.says("nvidia-smi --query-gpu=power.limit --format=csv,noheader").splitlines())


def changed(text):
    """Tasks that changed something, or would."""
    return re.findall(r"TASK \[([^\n]*)\][^\n]*\nchanged", text)


def capped(node, watts="500.00 W"):
    wait_for(lambda: limits(node) == {watts}, 30, f"a limit of {watts}, not {limits(node)}", pause=0.5)


def test_a_power_limit_is_set_and_kept(node):
    node.declare(**LIMITED, limit=500)
    node.play()
    assert limits(node) == {"500.00 W"} and node.says("systemctl is-enabled ironburst-power-limit") == "enabled"
    assert node.play()[1] == node.play("--check")[1] == 0
    node.says("systemctl restart nvidia-persistenced")  # the driver forgets it meanwhile
    capped(node)
    node.says("systemctl stop nvidia-persistenced")
    assert limits(node) == {"700.00 W"}
    node.says("systemctl start nvidia-persistenced")
    capped(node)
    node.site.host("dgx01").stop()
    node.site.host("dgx01").start()
    node.site.wait(["dgx01"])
    capped(node)
    node.play()  # what else a boot of the lab's host leaves


def test_a_limit_changed_by_hand_shows_and_is_taken_back(node):
    check = "/usr/local/sbin/ironburst-power-limit --check"
    assert node.says(check) == "as declared"
    node.says("nvidia-smi -i 3 -pl 650")
    assert node.says(check) == "GPU 3 is limited to 650.00 W, declared are 500 W"
    told = node.play("--check")[0]
    assert changed(told) == ["gpu_power_limit : The GPUs have the declared power limit"] and "650.00 W" in limits(node)
    node.play()
    capped(node)
    assert node.play()[1] == 0


def test_a_limit_changes_under_a_process_that_uses_the_gpu(node):
    hold = "systemd-run --quiet --unit=holder --property=StandardInput=file:/dev/nvidia0 sleep 300"
    node.site.ssh("dgx01", f"mv /dev/nvidia0 /dev/hidden && touch /dev/nvidia0 && {hold}")
    try:
        node.declare(**LIMITED, limit=450)
        node.play("--skip-tags", "drain")  # what `ironburst converge` runs under a job
        assert limits(node) == {"450.00 W"} and node.says("systemctl is-active holder") == "active"
    finally:
        node.site.ssh("dgx01", "systemctl stop holder; rm -f /dev/nvidia0; mv /dev/hidden /dev/nvidia0")


def test_a_limit_that_no_gpu_takes_is_refused_before_anything_is_written(node):
    node.declare(**LIMITED, limit=150)
    said = sentence(node.play(ok=(2,))[0])
    assert "its GPUs take 200 to 700 W each, declared are gpu_power_limit_w: 150; nothing was changed." in said
    assert limits(node) == {"450.00 W"} and node.says("cat /etc/ironburst/power-limit") == "450"
    none = json.dumps({"all": {"power.min_limit": "[N/A]", "power.max_limit": "[N/A]"}})
    node.site.ssh("dgx01", "cat > /etc/lab-gpu.json", stdin=none)
    try:
        node.declare(**LIMITED, limit=500)
        assert "8 of 8 GPUs have no power limit that can be set" in sentence(node.play(ok=(2,))[0])
        assert "Treating as warning" in node.says("nvidia-smi -pl 500")
    finally:
        node.site.ssh("dgx01", "rm /etc/lab-gpu.json")


def test_what_the_lock_gives_and_what_the_host_shows_must_agree(node):
    node.declare(
        driver=NEWER, gpus=(1,), profile="3g.40gb", count=2, fabric_manager=None, roles=("base", "nvidia_driver")
    )
    said = sentence(node.play(ok=(2,))[0])
    assert "4 \N{MULTIPLICATION SIGN} NVSwitch of H100 and H200 boards (10de:22a3) on the PCI bus" in said
    assert "no fabric manager" in said
