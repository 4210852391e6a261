"""The pure parts of the lab's hosts: identity, hardware, fabric file, specs, cache, checks."""

import re
import struct
import subprocess
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from lab import names
from lab.hosts import cache, check, fabric, hardware, rootfs
from lab.hosts.box import Box
from lab.hosts.host import Host, all_hosts
from lab.hosts.spec import HostSpec, bare_metal, cloud
from lab.system import LabError, locked, wait_for


def metal(name="dgx01"):
    return bare_metal(name)


def files_of(spec):
    return hardware.plan(spec.hardware, spec.name, spec.serial, spec.uuid, spec.address)


def test_published_identity():
    assert [(n, names.mac_of(n), names.serial_of(n)) for n in names.ADDRESSES] == [
        ("head", "52:54:00:4e:00:0a", "LAB-HEAD"),
        ("dgx01", "52:54:00:4e:00:0b", "LAB-DGX01"),
        ("dgx02", "52:54:00:4e:00:0c", "LAB-DGX02"),
    ]
    instances = ["i-0123456789abcdef0", "i-0123456789abcdef1"]
    everyone = [*names.ADDRESSES, *instances]
    for function in (names.mac_of, names.serial_of, names.uuid_of):
        assert len({function(name) for name in everyone}) == len(everyone)
    for name in instances:
        assert names.uuid_of(name).startswith("ec2") and str(uuid.UUID(names.uuid_of(name))) == names.uuid_of(name)
        assert int(names.mac_of(name)[:2], 16) & 3 == 2  # locally administered, unicast


def test_sysfs_and_smbios_state_the_same_identity():
    spec = metal()
    files = files_of(spec)
    table = files["firmware/dmi/tables/DMI"]
    assert files["devices-virtual/dmi/id/product_serial"] == "LAB-DGX01"
    assert b"\0LAB-DGX01\0" in table and uuid.UUID(spec.uuid).bytes_le in table
    entry = files["firmware/dmi/tables/smbios_entry_point"]
    assert sum(entry) % 256 == 0 and len(entry) == 24 and struct.unpack_from("<I", entry, 12)[0] == len(table)


def pci_ids(spec):
    return [(f.vendor, f.device) for f in hardware.pci_functions(spec.hardware)]


def test_gpu_machine():
    ids = pci_ids(metal())
    assert {i: ids.count(i) for i in set(ids)} == {(0x10DE, 0x2330): 8, (0x10DE, 0x22A3): 4, (0x15B3, 0x1021): 8}
    assert list(hardware.rdma_devices(metal().hardware)) == [f"mlx5_{i}" for i in range(8)]


def test_p5_instance_has_efa_and_no_infiniband():
    spec = cloud("i-0123456789abcdef0", "10.90.3.7", "p5.48xlarge")
    ids = pci_ids(spec)
    assert {i: ids.count(i) for i in set(ids)} == {(0x10DE, 0x2330): 8, (0x10DE, 0x22A3): 4, (0x1D0F, 0xEFA2): 32}
    devices = list(hardware.rdma_devices(spec.hardware))
    assert len(devices) == 32 and devices[:5] == ["rdmap79s0", "rdmap80s0", "rdmap81s0", "rdmap82s0", "rdmap96s0"]
    files = files_of(spec)
    assert files["class/infiniband/rdmap79s0/ports/1/link_layer"] == "Unspecified"
    assert files["devices-virtual/dmi/id/board_asset_tag"] == spec.name
    assert files["devices-virtual/dmi/id/sys_vendor"] == "Amazon EC2"
    assert spec.hostname == "ip-10-90-3-7" and spec.environment == {"AWS_ENDPOINT_URL": "http://10.78.0.1:5000"}


@pytest.mark.parametrize(
    "spec",
    [
        metal("head"),
        metal(),
        cloud("i-0123456789abcdef0", "10.90.3.7", "p5.48xlarge"),
        cloud("i-0123456789abcdef1", "10.90.3.8", "m7i.large"),
    ],
    ids=lambda spec: spec.hardware.product,
)
def test_pci_addresses_are_unique_and_guids_too(spec):
    addresses = [f.address for f in hardware.pci_functions(spec.hardware)]
    assert len(set(addresses)) == len(addresses) and addresses == sorted(addresses)
    files = files_of(spec)
    guids = [text for path, text in files.items() if path.endswith("/node_guid")]
    assert len(set(guids)) == len(guids) == spec.hardware.mlx5 + spec.hardware.efa
    assert all(re.fullmatch(r"([0-9a-f]{4}:){3}[0-9a-f]{4}", guid) for guid in guids)


def test_faults_are_written_in_place(tmp_path):
    spec = metal()
    hardware.write(tmp_path, spec.hardware, spec.name, spec.serial, spec.uuid, spec.address)
    state = tmp_path / "class/infiniband/mlx5_3/ports/1/state"
    inode = state.stat().st_ino
    hardware.set_link(tmp_path, "mlx5_3", up=False)
    assert state.read_text() == "1: DOWN\n" and state.stat().st_ino == inode
    hardware.set_link(tmp_path, "mlx5_3", up=True)
    assert state.read_text() == "4: ACTIVE\n"
    assert hardware.remove_gpu(tmp_path, 7) == "0000:88:00.0"
    assert len(list((tmp_path / "pci").glob("*/vendor"))) == 19
    assert (tmp_path / "class/infiniband/mlx5_0/device").readlink() == Path("../../../bus/pci/devices/0000:1a:00.0")


def test_spec_survives_json():
    for spec in (metal(), cloud("i-0123456789abcdef0", "10.90.3.7", "p5.48xlarge", image="ami-1", shared=False)):
        assert HostSpec.from_json(spec.to_json()) == spec
    with pytest.raises(LabError, match="'dgx77' has no known address"):
        bare_metal("dgx77")


def test_fabric_file_names_every_link_at_both_ends():
    text = fabric.topology(["head", "dgx01", "dgx02"])
    links, node = set(), None
    for line in filter(None, text.splitlines()):
        if line.startswith("["):
            port, peer, peer_port = re.fullmatch(r'\[(\d+)\] "(\w+)"\[(\d+)\]', line).groups()
            links.add((node, port, peer, peer_port))
        else:
            node = re.search(r'"(\w+)"', line)[1]
    assert len(links) == 2 * (3 + 4)  # three hosts, two uplinks from each of two leaves
    assert all((peer, peer_port, node, port) in links for node, port, peer, peer_port in links)


def test_check_names_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(check.os, "geteuid", lambda: 1000)
    with pytest.raises(LabError, match="needs root"):
        check.check(tmp_path)
    monkeypatch.setattr(check.os, "geteuid", lambda: 0)
    monkeypatch.setattr(check.shutil, "which", lambda name: None if name == "mmdebstrap" else "/bin/" + name)
    with pytest.raises(LabError, match=r"needs mmdebstrap, .*make lab-packages"):
        check.check(tmp_path)
    monkeypatch.setattr(check.shutil, "which", lambda name: "/bin/" + name)
    monkeypatch.setattr(check, "FREE_BYTES", 10**18)
    with pytest.raises(LabError, match="GB of free disk"):
        check.check(tmp_path)


def test_older_images_go_unless_a_lab_is_up(tmp_path):
    for name in ("base-old", "base-new", "repo-old"):
        (tmp_path / "cache" / name).mkdir(parents=True)
    box = tmp_path / "busy"
    box.mkdir()
    process = subprocess.Popen(["sleep", "60"], env={"LAB_BOX": str(box)})
    try:
        (box / "box.pid").write_text(str(process.pid))
        wait_for(lambda: Box("busy", tmp_path).is_up(), 10, "the process to have its environment")
        cache.forget_older(tmp_path, tmp_path / "cache" / "base-new")
        assert (tmp_path / "cache" / "base-old").is_dir()
    finally:
        process.kill()
        process.wait()
    cache.forget_older(tmp_path, tmp_path / "cache" / "base-new")
    assert sorted(path.name for path in (tmp_path / "cache").iterdir()) == ["base-new", "repo-old"]


def image(root):
    """An empty base image, built with the lab's key."""
    base = rootfs.base_path(root)
    for file in (base / rootfs.AUTHORIZED, rootfs.ssh_key(root).with_suffix(".pub")):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("ssh-ed25519 AAAA lab\n")
    return base


@pytest.mark.parametrize("key", ["ssh-ed25519 BBBB lab\n", None])
def test_an_image_that_opens_to_another_key_is_told(tmp_path, key):
    base, public = image(tmp_path), rootfs.ssh_key(tmp_path).with_suffix(".pub")
    assert rootfs.base_image(tmp_path) == base
    public.write_text(key) if key else public.unlink()
    with pytest.raises(LabError, match=r"built with another ssh key than .*id_ed25519: .*remove that folder") as told:
        rootfs.base_image(tmp_path)
    assert str(base) in str(told.value)


@pytest.mark.parametrize("prefix", ["", "Lab", "a b", "../x", "cache", "locks", "1a"])
def test_bad_prefix(prefix, tmp_path):
    with pytest.raises(LabError, match="lab prefix"):
        Box(prefix, tmp_path)


def test_a_lab_that_is_down_has_nothing_and_says_so(tmp_path):
    box = Box("nothing", tmp_path)
    assert not box.is_up() and not any(box.leftovers().values())
    with pytest.raises(LabError, match="is not up: start it with"):
        box.net_prefix()
    with pytest.raises(LabError, match="has no host 'dgx01'; it has: none"):
        _ = Host(box, "dgx01").spec


def test_a_host_keeps_its_spec_and_its_address(tmp_path):
    box = Box("specs", tmp_path)
    image(tmp_path)  # nothing is booted here
    first = cloud("i-0123456789abcdef0", "10.90.3.7", "p5.48xlarge")
    machine = Host(box, first.name)
    machine.define(first)
    machine.define(first)
    assert (machine.spec, machine.state()) == (first, "off")
    with pytest.raises(LabError, match="exists with another hostname, shared: destroy it first"):
        machine.define(replace(first, hostname="x", shared=False))
    second = cloud("i-0123456789abcdef1", "10.90.3.7", "p5.48xlarge")
    with pytest.raises(LabError, match=r"address 10.90.3.7 .* is taken by 'i-0123456789abcdef0'"):
        Host(box, second.name).define(second)
    with pytest.raises(LabError, match="no image 'ami-0'; it has: none"):
        Host(box, second.name).define(replace(second, address="10.90.3.8", image="ami-0"))
    assert [known.name for known in all_hosts(box)] == [first.name]


def test_a_lock_that_is_removed_still_excludes(tmp_path):
    path, inside, most = tmp_path / "a.lock", [], []

    def work(_):
        for _ in range(50):
            with locked(path, remove=True):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert (len(most), max(most), path.exists()) == (200, 1, False)
