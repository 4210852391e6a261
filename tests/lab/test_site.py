"""Real hosts: boot, identity, network, packages, faults, images, and power from inside the box."""

import json
import os
import re
import subprocess
import sys

import pytest

from ironburst.baking.first_contact import host_keys
from lab import names
from lab.hosts import cabling, hardware, rootfs, spec
from lab.hosts.host import SSH_OPTIONS
from lab.packages import repository
from lab.system import CHECKOUT, LabError, wait_for
from tests import sites

pytestmark = pytest.mark.lab
INSTANCE = "i-0123456789abcdef0"
ADDRESS = "10.90.3.7"
FORGET = CHECKOUT / "playbooks/files/forget_host.sh"


@pytest.fixture(scope="module")
def site():
    """A lab with head, dgx01 and one rented p5 node; dgx02 stays off."""
    with sites.running(f"t-site-{os.getpid()}", "head", "dgx01") as site:
        site.start_host(spec.cloud(INSTANCE, ADDRESS, "p5.48xlarge"))
        site.wait([INSTANCE])
        yield site


def output(site, name, command):
    return site.ssh(name, command).stdout.strip()


def add_repositories(site, name):
    for served in ("nv", "debian"):
        for path, text in repository.client_files(served).items():
            site.ssh(name, f"cat > {path}", stdin=text)
    fetch = (
        f"import urllib.request as u; u.urlretrieve('{names.REPOSITORY_URL}/lab.gpg', '/usr/share/keyrings/lab.gpg')"
    )
    site.ssh(name, ["python3", "-c", fetch])
    site.ssh(name, "apt-get update -qq -o APT::Update::Error-Mode=any")


def test_hosts_have_booted_cleanly(site):
    assert site.wait(["head", "dgx01", INSTANCE]) == {"head": "running", "dgx01": "running", INSTANCE: "running"}
    assert {h["name"]: h["state"] for h in site.status()["hosts"]} == {
        "head": "on",
        "dgx01": "on",
        "dgx02": "off",
        INSTANCE: "on",
    }


@pytest.mark.parametrize("name", ["dgx01", INSTANCE])
def test_every_way_to_ask_gives_the_published_identity(site, name):
    published = site.host(name).spec
    asked = output(
        site,
        name,
        "cat /sys/class/dmi/id/product_serial /sys/devices/virtual/dmi/id/product_uuid /sys/class/net/eth0/address; "
        "dmidecode -s system-serial-number; dmidecode -s system-uuid; hostname",
    )
    assert asked.split() == [
        *(published.serial, published.uuid, published.mac),
        *(published.serial, published.uuid, published.hostname),
    ]
    assert output(site, name, "lspci -d 10de:2330 | wc -l; lspci -d 10de:22a3 | wc -l").split() == ["8", "4"]
    devices = output(site, name, "ls /sys/class/infiniband").split()
    assert sorted(devices) == sorted(hardware.rdma_devices(published.hardware))
    assert len(devices) == (32 if published.kind == "cloud" else 8)


def test_machine_ids_and_boot_ids_differ(site):
    ids = [output(site, name, "cat /etc/machine-id") for name in ("head", "dgx01", INSTANCE)]
    assert len(set(ids)) == 3 and all(ids)


def test_a_rented_host_reaches_the_hall_and_the_metadata_service(site):
    assert (
        output(
            site,
            INSTANCE,
            "ip -json route get 169.254.169.254 | python3 -c "
            '\'import json,sys; r=json.load(sys.stdin)[0]; print(r["gateway"], r["prefsrc"])\'',
        )
        == f"10.90.0.1 {ADDRESS}"
    )
    assert site.ssh(INSTANCE, "ping -c1 -W2 10.78.0.11 && ping -c1 -W2 169.254.169.254").returncode == 0
    assert output(site, INSTANCE, "hostname") == "ip-10-90-3-7"
    assert "dgx01" not in output(site, INSTANCE, "cat /etc/hosts")
    assert "AWS_ENDPOINT_URL=http://10.78.0.1:5000" in output(site, INSTANCE, "systemctl show-environment").split()
    assert "AWS_ENDPOINT_URL" not in output(site, "dgx01", "systemctl show-environment")


def test_alice_has_the_same_files_everywhere(site):
    site.ssh("dgx01", "runuser -u alice -- sh -c 'echo result > /shared/alice/out'")
    expected = ["result", "1500:1500"]
    assert output(site, INSTANCE, "cat /shared/alice/out; stat -c %u:%g /shared/alice/out").split() == expected


def test_install_from_the_signed_repository_and_refuse_a_wrong_key(site):
    add_repositories(site, "dgx01")
    version = "580.95.05-1"
    packages = [
        "nvidia-open",
        "nvidia-driver-cuda",
        "nvidia-kernel-open-dkms",
        "nvidia-modprobe",
        "nvidia-persistenced",
        "nvidia-fabricmanager",
    ]
    assert site.ssh("dgx01", "nvidia-smi", check=False).returncode == 127
    toolkit = ["nvidia-container-toolkit", "nvidia-container-toolkit-base"]
    toolkit += ["libnvidia-container-tools", "libnvidia-container1"]
    exact = [*(f"{name}={version}" for name in packages), *(f"{name}=1.18.0-1" for name in toolkit)]
    site.ssh("dgx01", ["apt-get", "install", "-y", "-qq", *exact])
    query = "nvidia-smi --query-gpu=index,driver_version,pci.bus_id --format=csv,noheader"
    rows = [row.split(", ") for row in output(site, "dgx01", query).splitlines()]
    assert [row[0] for row in rows] == list("01234567") and {row[1] for row in rows} == {"580.95.05"}
    assert "STUB" in output(site, "dgx01", "nvidia-smi")
    assert (
        output(site, "dgx01", "systemctl start nvidia-fabricmanager && systemctl is-active nvidia-fabricmanager")
        == "active"
    )
    # a key that did not sign: refused, also with the earlier lists there
    site.ssh(
        "dgx01",
        "cd /usr/share/keyrings; cp lab.gpg /root/good.gpg; cp debian-archive-keyring.gpg lab.gpg",
    )
    refused = site.ssh("dgx01", "apt-get update -o APT::Update::Error-Mode=any", check=False)
    site.ssh("dgx01", "mv /root/good.gpg /usr/share/keyrings/lab.gpg")
    assert refused.returncode == 100 and "Missing key" in refused.stdout + refused.stderr


def test_faults_show_in_the_host_and_a_restart_repairs_them(site):
    machine = site.host("dgx01")
    hardware.remove_gpu(machine.hardware_dir, 2)
    hardware.set_link(machine.hardware_dir, "mlx5_5", up=False)
    assert output(
        site,
        "dgx01",
        "lspci -d 10de:2330 | wc -l; nvidia-smi -L | wc -l; cat /sys/class/infiniband/mlx5_5/ports/1/state",
    ).split() == ["7", "7", "1:", "DOWN"]
    site.ssh("dgx01", "touch /root/stays")
    machine.off()
    assert machine.state() == "off" and site.ssh("dgx01", "true", check=False).returncode == 255
    machine.start()
    assert machine.wait() == "running"
    assert output(
        site, "dgx01", "ls /root/stays; nvidia-smi -L | wc -l; cat /sys/class/infiniband/mlx5_5/ports/1/state"
    ).split() == ["/root/stays", "8", "4:", "ACTIVE"]


def test_a_reboot_from_within_keeps_the_host_on(site):
    before = output(site, INSTANCE, "cat /proc/sys/kernel/random/boot_id; touch /root/kept")
    inside = subprocess.Popen(site.host(INSTANCE).ssh_argv("sleep 60"))  # who is inside holds nothing up
    site.ssh(INSTANCE, "systemctl reboot", check=False)

    def boot_id():
        return site.ssh(INSTANCE, "cat /proc/sys/kernel/random/boot_id", check=False).stdout.strip()

    wait_for(lambda: boot_id() not in ("", before), 20, "the reboot", pause=0.1)
    assert site.host(INSTANCE).state() == "on" and site.ssh(INSTANCE, "ls /root/kept").returncode == 0
    assert inside.wait(10) != 0


def test_power_works_from_inside_the_box(site):
    """As a BMC or the cloud's API does it."""
    code = (
        "import json, sys; from lab.site import Site; from lab.hosts.spec import bare_metal\n"
        "site = Site(sys.argv[1]); h = site.host('dgx02'); seen = [h.state()]\n"
        "h.start(bare_metal('dgx02')); seen += [h.state(), h.wait()]; h.stop(); seen.append(h.state())\n"
        "h.start(); h.off(); h.off(); h.wipe(); seen.append(h.state()); print(json.dumps([site.box.inside(), seen]))"
    )
    site.spawn([sys.executable, "-c", code, site.prefix], "power", env={"PYTHONPATH": str(CHECKOUT)})
    log = site.log("power")
    wait_for(lambda: log.read_text().endswith("\n"), 30, "the process in the box")
    assert json.loads(log.read_text()) == [True, ["off", "on", "running", "off", "off"]]


def test_a_stock_instance_lets_nobody_in_as_root_and_has_a_key_of_its_own(site):
    """As Debian's image on EC2: the lab's key opens no root login, sudo is the login user's, `alice` is the hall's."""
    client = [*site.box.net_prefix(), "ssh", "-i", str(rootfs.ssh_key(site.box.root)), *SSH_OPTIONS]

    def answer() -> subprocess.CompletedProcess[str]:
        return subprocess.run([*client, f"root@{ADDRESS}", "true"], capture_output=True, text=True)

    # the instance was rebooted by another test: its sshd is last to come up
    wait_for(lambda: "Connection refused" not in answer().stderr, 20, "the instance's sshd", pause=0.1)
    refused = answer()
    assert refused.returncode == 255 and "Permission denied" in refused.stderr
    assert site.ssh(INSTANCE, "id alice", check=False).returncode == 1
    assert output(site, INSTANCE, "runuser -u admin -- sudo -n id -u") == "0"
    key = output(site, INSTANCE, "cut -d' ' -f1,2 /etc/ssh/ssh_host_ed25519_key.pub")
    assert host_keys(site.host(INSTANCE).console()) == [key]
    assert key != output(site, "dgx01", "cut -d' ' -f1,2 /etc/ssh/ssh_host_ed25519_key.pub")


def test_image_carries_software_and_no_identity(site):
    baker, rented = "i-00000000000000001", "i-00000000000000002"
    site.start_host(spec.cloud(baker, "10.90.9.1", "p5.48xlarge"))
    site.wait([baker])
    site.ssh(
        baker,
        "mkdir -p /etc/munge /etc/ironburst; touch /etc/munge/munge.key /etc/ironburst/node.env;"
        "mkdir -p /root/.ansible /home/admin/.ssh; echo key > /home/admin/.ssh/authorized_keys;"
        "echo soft > /opt/software; rm /etc/ssh/moduli",
    )
    old_id = output(site, baker, "cat /etc/machine-id; cut -d' ' -f2 /etc/ssh/ssh_host_ed25519_key.pub")
    site.ssh(baker, "sh -s", stdin=FORGET.read_text())  # the last task of playbooks/image.yml
    layer = site.bake_image(baker, "ami-0lab1") / "layer"
    assert site.host(baker).state() == "off"
    kept = [str(path.relative_to(layer)) for path in layer.rglob("*") if path.is_file()]
    identity = r"ssh_host_|munge\.key|node\.env|\.ssh/|\.ansible|lib/cloud/|random-seed|dbus/machine-id"
    assert [path for path in kept if re.search(identity, path)] == []
    assert (layer / "etc/machine-id").read_text() == ""
    site.destroy_host(baker)
    site.start_host(spec.cloud(rented, "10.90.9.2", "p5.48xlarge", image="ami-0lab1"))
    assert site.wait([rented]) == {rented: "running"}
    assert output(site, rented, "cat /opt/software; hostname").split() == ["soft", "ip-10-90-9-2"]
    gone = "ls /etc/munge/munge.key || ls /etc/ironburst/node.env || ls /etc/ssh/moduli"
    assert site.ssh(rented, gone, check=False).returncode == 2
    new_id = output(site, rented, "cat /etc/machine-id; cut -d' ' -f2 /etc/ssh/ssh_host_ed25519_key.pub")
    assert len(new_id.split()) == 2 and not set(new_id.split()) & set(old_id.split())
    with pytest.raises(LabError, match="no image 'ami-1'; it has: ami-0lab1"):
        site.start_host(spec.cloud("i-00000000000000003", "10.90.9.3", "p5.48xlarge", image="ami-1"))
    site.destroy_host(rented)
    assert {h.name for h in site.hosts()} == {"head", "dgx01", "dgx02", INSTANCE}


def test_the_fabric_is_swept_by_a_real_opensm(site):
    head, gpu = site.host("head"), site.host("dgx01")
    for name in ("head", "dgx01"):
        add_repositories(site, name)
        site.ssh(name, "DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends infiniband-diags")
    cabling.wait_active([head, gpu])
    cabling.link_down(head, gpu)
    wait_for(lambda: "State: Down" in gpu.ssh("ibstat").stdout, 10, "the port going down", pause=0.1)
    assert output(site, "dgx01", "cat /sys/class/infiniband/mlx5_0/ports/1/state") == "1: DOWN"
    cabling.link_up(head, gpu)
    cabling.wait_active([gpu])
