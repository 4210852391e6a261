"""Which devices become scratch: only those that are certainly nobody's."""

import pytest
from programs import load

scratch = load("roles/scratch/files/ironburst-scratch.py")
SETTINGS = {"path": "/scratch", "devices": [], "filesystem": "xfs"}
TB = 10**12


def disk(name, **changes):
    """One device as lsblk --json --bytes --paths shows it."""
    values = {
        "name": f"/dev/{name}",
        "kname": f"/dev/{name}",
        "type": "disk",
        "size": 4 * TB,
        "fstype": None,
        "label": None,
        "uuid": None,
        "mountpoint": None,
        "tran": "nvme" if name.startswith("nvme") else "sata",
        "ro": False,
        "rm": False,
    }
    return values | changes


SYSTEM = disk("nvme0n1", children=[disk("nvme0n1p1", type="part", fstype="ext4", mountpoint="/", tran=None)])


def choose(*devices, signatures=None, **changes):
    on_disk = {device["name"]: [] for device in scratch.walk(devices)} | (signatures or {})
    return scratch.choose({"blockdevices": list(devices)}, SETTINGS | changes, on_disk)


def test_one_unused_device_is_used_whole():
    plan = choose(SYSTEM, disk("nvme1n1"))
    assert (plan["state"], plan["devices"], plan["target"]) == ("create", ["/dev/nvme1n1"], "/dev/nvme1n1")
    assert scratch.commands(plan, "xfs") == [["mkfs.xfs", "-q", "-L", "ib-scratch", "/dev/nvme1n1"]]
    assert plan["skipped"] == {"/dev/nvme0n1": "carries /dev/nvme0n1p1"}


def test_several_become_one_array_and_nothing_is_forced():
    plan = choose(SYSTEM, disk("nvme1n1"), disk("nvme2n1"))
    made, filesystem = scratch.commands(plan, "ext4")
    assert made[:3] == ["mdadm", "--create", "/dev/md/ironburst-scratch"]
    assert made[-2:] == ["/dev/nvme1n1", "/dev/nvme2n1"]
    assert "--level=0" in made and "--raid-devices=2" in made
    assert filesystem[-1] == "/dev/md/ironburst-scratch"
    assert not {"--force", "-f", "-F", "--assume-clean"} & set(made + filesystem)


USED = {
    "mounted": (disk("nvme1n1", mountpoint="/data"), {}, "is mounted at /data"),
    "swap": (disk("nvme1n1", fstype="swap", mountpoint="[SWAP]"), {}, "is mounted at [SWAP]"),
    "file system that udev knows": (disk("nvme1n1", fstype="xfs"), {}, "has a signature (xfs)"),
    "file system that only the device knows": (disk("nvme1n1"), {"/dev/nvme1n1": ["ext4"]}, "has a signature (ext4)"),
    "partition table without partitions": (
        disk("nvme1n1"),
        {"/dev/nvme1n1": ["gpt", "PMBR"]},
        "has a signature (PMBR, gpt)",
    ),
    "partition": (disk("nvme1n1", children=[disk("nvme1n1p1", type="part")]), {}, "carries /dev/nvme1n1p1"),
    "LVM": (disk("nvme1n1", fstype="LVM2_member", children=[disk("vg-lv", type="lvm")]), {}, "carries /dev/vg-lv"),
    "LVM that is not active": (disk("nvme1n1", fstype="LVM2_member"), {}, "has a signature (LVM2_member)"),
    "somebody's array": (
        disk("nvme1n1", fstype="linux_raid_member", label="host:data"),
        {},
        "has a signature (linux_raid_member)",
    ),
    "encrypted": (disk("nvme1n1"), {"/dev/nvme1n1": ["crypto_LUKS"]}, "has a signature (crypto_LUKS)"),
    "ZFS": (disk("nvme1n1", fstype="zfs_member"), {}, "has a signature (zfs_member)"),
    "unreadable": (disk("nvme1n1"), {"/dev/nvme1n1": None}, "can't be read for signatures"),
    "read-only": (disk("nvme1n1", ro="1"), {}, "is read-only"),
    "removable": (disk("nvme1n1", rm=True), {}, "is removable"),
    "tiny": (disk("nvme1n1", size=10**8), {}, "is smaller than 1 GB"),
}


@pytest.mark.parametrize("name", USED)
def test_a_device_that_holds_anything_is_never_taken(name):
    device, signatures, reason = USED[name]
    plan = choose(SYSTEM, device, signatures=signatures)
    assert plan["state"] == "refused" and plan["devices"] == []
    assert f"/dev/nvme1n1 {reason}" in plan["text"] and "no unused local NVMe device for /scratch" in plan["text"]
    declared = choose(SYSTEM, device, signatures=signatures, devices=["/dev/nvme1n1"])
    assert declared["state"] == "refused" and declared["text"].startswith(f"the declared device /dev/nvme1n1 {reason}")
    assert choose(SYSTEM, device, disk("nvme2n1"), signatures=signatures)["devices"] == ["/dev/nvme2n1"]


def test_only_nvme_is_taken_unasked():
    assert choose(SYSTEM, disk("sda"))["text"].startswith("no unused local NVMe device")
    assert choose(SYSTEM, disk("sda"), devices=["/dev/sda"])["devices"] == ["/dev/sda"]
    assert choose(disk("nvme1n1", tran="fc"))["state"] == "refused"  # a SAN that calls itself NVMe


@pytest.mark.parametrize(
    ("devices", "words"),
    [
        (["/dev/nvme9n1"], "/dev/nvme9n1 does not exist; there are /dev/nvme0n1, /dev/nvme0n1p1, /dev/nvme1n1"),
        (["/dev/nvme0n1p1"], "is a part, not a whole device"),
        (["/dev/nvme1n1", "/dev/nvme1n1"], "declared twice"),
    ],
)
def test_a_wrong_declaration_is_refused(devices, words):
    assert words in choose(SYSTEM, disk("nvme1n1"), devices=devices)["text"]


OURS = {"fstype": "xfs", "label": "ib-scratch", "uuid": "0b9"}


def test_what_is_there_stays():
    plan = choose(SYSTEM, disk("nvme1n1", **OURS), disk("nvme2n1"))
    assert (plan["state"], plan["uuid"], plan["devices"]) == ("ready", "0b9", [])
    assert choose(SYSTEM, disk("nvme1n1", **OURS, mountpoint="/scratch"))["state"] == "ready"


def test_an_array_is_seen_below_each_of_its_members():
    array = disk("md127", type="raid0", **OURS)
    members = [
        disk(f"nvme{n}n1", fstype="linux_raid_member", label="any:ironburst-scratch", children=[array]) for n in (1, 2)
    ]
    assert choose(SYSTEM, *members)["state"] == "ready"


@pytest.mark.parametrize(
    ("changes", "settings", "words"),
    [
        ({}, {"filesystem": "ext4"}, "is xfs, declared is ext4"),
        ({"mountpoint": "/old"}, {}, "is mounted at /old, declared is /scratch"),
    ],
)
def test_other_scratch_than_declared_is_refused(changes, settings, words):
    assert words in choose(SYSTEM, disk("nvme1n1", **OURS, **changes), **settings)["text"]


def member(number, **changes):
    return disk(f"nvme{number}n1", fstype="linux_raid_member", label="any:ironburst-scratch", **changes)


def test_an_interrupted_creation_is_finished():
    empty = disk("md127", type="raid0")
    plan = choose(SYSTEM, member(1, children=[empty]), member(2, children=[empty]))
    assert (plan["state"], plan["target"]) == ("format", "/dev/md127")
    assert scratch.commands(plan, "xfs") == [["mkfs.xfs", "-q", "-L", "ib-scratch", "/dev/md127"]]


def test_an_array_with_something_else_on_it_is_left_alone():
    data = disk("md127", type="raid0", fstype="ext4", label="data")
    assert "holds ext4" in choose(member(1, children=[data]), member(2, children=[data]))["text"]


def test_a_broken_array_is_not_replaced_by_the_device_that_is_left():
    plan = choose(SYSTEM, member(1), disk("nvme2n1"))
    assert plan["state"] == "refused" and "is a device missing?" in plan["text"]


def test_two_scratch_file_systems_are_refused():
    plan = choose(disk("nvme1n1", **OURS), disk("nvme2n1", **OURS))
    assert "two file systems are labelled ib-scratch" in plan["text"]
