"""The guard of an install medium, run by a real shell: it alone lets a disk be written."""

import json
import os
import shutil
import subprocess

import pytest

from ironburst.baremetal import install_scripts
from ironburst.baremetal.install_scripts import ALREADY, REFUSED, Target
from lab.bmc.installer import MOUNT

TARGET = Target("dgx03", "CHG-4711", "S3", "S64XNE0R")
OLD, SIZE, MIB = b"old signature..." * 32, 3 * 2048, 1 << 20
"""a sector, a disk's sectors"""
SHELLS = [name for name in ("dash", "bash", "busybox") if shutil.which(name)]


class Machine:
    """Folders in the place of /sys and /dev: a disk is a file, its partitions are folders."""

    def __init__(self, folder, serial="S3", links=("nvme-SAMSUNG_MZQL2_S64XNE0R",), node="nvme0n1"):
        self.folder, self.node = folder, node
        (folder / "sys/class/dmi/id").mkdir(parents=True)
        (folder / "sys/class/dmi/id/product_serial").write_text(f"{serial}\n")
        (folder / "dev/disk/by-id").mkdir(parents=True)
        self.disk(node, *links)
        (folder / "bin").mkdir()
        for name, text in MOUNT.items():
            (folder / "bin" / name).write_text(text)
            (folder / "bin" / name).chmod(0o755)

    def disk(self, node, *links, size=SIZE):
        (self.folder / "dev" / node).write_bytes(OLD * size)
        self.block(node, size)
        for link in links:
            (self.folder / "dev/disk/by-id" / link).symlink_to(self.folder / "dev" / node)

    def block(self, name, size, under=""):
        folder = self.folder / "sys/class/block" / under / name
        folder.mkdir(parents=True)
        (folder / "size").write_text(f"{size}\n")
        (folder / "holders").mkdir()
        return folder

    def part(self, name, size=SIZE, of=None):
        (self.folder / "dev" / name).write_bytes(OLD * size)
        return self.block(name, size, of or self.node)

    def program(self, name, text):
        (self.folder / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (self.folder / "bin" / name).chmod(0o755)

    def installed(self, text, part="p1"):
        place = self.folder / "dev" / f"{self.node}{part}" / install_scripts.NOTE
        place.parent.mkdir(parents=True)
        place.write_text(text)

    def run(self, script, shell="dash", *words):
        argv = [shell, "sh"] if shell == "busybox" else [shell]
        env = {"PATH": f"{self.folder}/bin:{os.environ['PATH']}", "TMPDIR": str(self.folder)}
        env |= {"IRONBURST_SYS": str(self.folder / "sys"), "IRONBURST_DEV": str(self.folder / "dev")}
        return subprocess.run([*argv, "-s", *words], input=script, text=True, capture_output=True, env=env)


def said(machine, target=TARGET, shell="dash"):
    done = machine.run(install_scripts.guard(target), shell)
    return done.returncode, done.stdout.strip(), done.stderr.strip()


@pytest.mark.parametrize("shell", SHELLS)
def test_an_empty_disk_of_the_declared_machine_may_be_written(tmp_path, shell):
    machine = Machine(tmp_path)
    assert said(machine, shell=shell) == (0, f"{tmp_path}/dev/nvme0n1", "")


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"serial": "S4"}, "the serial number of this machine is 'S4', declared is 'S3'"),
        ({"serial": ""}, "the serial number of this machine is '', declared is 'S3'"),
        ({"links": ["nvme-SAMSUNG_MZQL2_S64XNE0R9"]}, "it has no disk 'S64XNE0R'"),
        ({"links": ["nvme-SAMSUNG_MZQL2_S64XNE0R-part1"]}, "it has no disk 'S64XNE0R'"),
        ({"links": []}, "it has no disk 'S64XNE0R'"),
    ],
)
def test_another_machine_or_disk_is_refused(tmp_path, shell, changes, words):
    code, out, err = said(Machine(tmp_path, **changes), shell=shell)
    assert (code, out) == (REFUSED, "") and err == f"ironburst: dgx03 is not installed: {words}"


def test_two_disks_of_one_name_are_refused(tmp_path):
    machine = Machine(tmp_path)
    machine.disk("sdb", "ata-OTHER_S64XNE0R")
    assert "more than one of its disks" in said(machine)[2]


@pytest.mark.parametrize(
    "link", ["wwn-0x5000c500a1b2c3d4", "ata-ST4000_0x5000c500a1b2c3d4", "virtio-0x5000c500a1b2c3d4"]
)
def test_a_disk_is_named_by_serial_number_or_wwn(tmp_path, link):
    machine = Machine(tmp_path, links=[link], node="sda")
    assert said(machine, Target("dgx03", "CHG-4711", "S3", "0x5000c500a1b2c3d4"))[:2] == (0, f"{tmp_path}/dev/sda")


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("part", ["p1", "p2"])
def test_what_is_installed_is_not_installed_again(tmp_path, shell, part):
    machine = Machine(tmp_path)
    machine.installed(install_scripts.note(TARGET), part)
    assert said(machine, shell=shell)[:2] == (ALREADY, "")


def test_the_same_installation_in_another_chassis_stays(tmp_path):
    """Its disk has moved with it: what counts is the node and the mark."""
    machine = Machine(tmp_path)
    machine.installed(install_scripts.note(Target("dgx03", "CHG-4711", "OLD", "S64XNE0R")))
    assert said(machine)[0] == ALREADY


def test_another_mark_is_installed_anew(tmp_path):
    machine = Machine(tmp_path)
    machine.installed(install_scripts.note(Target("dgx03", "CHG-1", "S3", "S64XNE0R")))
    assert said(machine)[:2] == (0, f"{tmp_path}/dev/nvme0n1")


@pytest.mark.parametrize("shell", SHELLS)
def test_another_nodes_disk_is_refused(tmp_path, shell):
    machine = Machine(tmp_path)
    machine.installed(install_scripts.note(Target("dgx04", "CHG-4711", "S4", "S64XNE0R")))
    code, _, err = said(machine, shell=shell)
    assert code == REFUSED and "another node's" in err and "dgx04" in err


def test_a_mark_that_begins_alike_is_another(tmp_path):
    machine = Machine(tmp_path)
    machine.installed(install_scripts.note(Target("dgx03", "CHG-47111", "S3", "S64XNE0R")))
    assert said(machine)[0] == 0


@pytest.mark.parametrize("neighbour", ["sdaa1", "sdb1"])
def test_the_note_of_another_disk_is_not_read(tmp_path, neighbour):
    machine = Machine(tmp_path, links=["ata-X_S64XNE0R"], node="sda")
    place = tmp_path / "dev" / neighbour / install_scripts.NOTE
    place.parent.mkdir(parents=True)
    place.write_text(install_scripts.note(TARGET))
    assert said(machine)[0] == 0


@pytest.mark.parametrize("shell", SHELLS)
def test_the_last_thing_written_is_what_the_guard_reads(tmp_path, shell):
    machine, root = Machine(tmp_path), tmp_path / "target"
    done = machine.run(install_scripts.finish(TARGET), shell, str(root))
    assert done.returncode == 0, done.stderr
    text = (root / "boot/efi" / install_scripts.NOTE).read_text()
    assert json.loads(text) == {"node": "dgx03", "mark": "CHG-4711", "serial": "S3", "disk": "S64XNE0R"}
    assert (root / "etc/ironburst/install.json").read_text() == text
    machine.installed(text)
    assert said(machine)[0] == ALREADY


def test_the_mark_of_a_note():
    text = install_scripts.note(TARGET)
    assert install_scripts.mark_in(text, "dgx03") == "CHG-4711"
    bad = [text, "", "[]", "{}", '{"node": "dgx04", "mark": 3}', "{"]
    assert [install_scripts.mark_in(each, "dgx04") for each in bad] == [None] * 6


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(("code", "expected"), [(0, "write /dev/x"), (ALREADY, "started anew")])
def test_what_follows_from_the_guard(tmp_path, shell, code, expected):
    machine = Machine(tmp_path)
    (tmp_path / "guard").write_text(f"echo /dev/x; exit {code}")
    (tmp_path / "bin/reboot").write_text("#!/bin/sh\necho started anew")
    (tmp_path / "bin/reboot").chmod(0o755)
    for line in (install_scripts.guarded(f"{tmp_path}/guard", "echo write $disk"),):
        for text in (line, " ".join(line.split())):  # the preseed has it in one line
            assert machine.run(text, shell).stdout.strip() == expected


def untouched(machine, name):
    return set((machine.folder / "dev" / name).read_bytes()) == set(OLD)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_disk_that_may_be_written_forgets_what_it_was_part_of(tmp_path, shell):
    """The installers would ask, or clear the other disks of the same RAID or volume group, too."""
    machine = Machine(tmp_path)
    machine.disk("nvme1n1", "nvme-OTHER")
    machine.disk("nvme0n10", "nvme-ANOTHER")
    machine.part("nvme0n1p1", 100)
    machine.part("nvme0n1p2")
    machine.part("nvme1n1p1", of="nvme1n1")
    assert said(machine, shell=shell)[0] == 0
    for name, size in (("nvme0n1", SIZE), ("nvme0n1p2", SIZE), ("nvme0n1p1", 100)):
        now = (tmp_path / "dev" / name).read_bytes()
        assert len(now) == size * 512 and not any(now[:MIB]) and not any(now[-MIB:]), name
    assert not any((tmp_path / "dev/nvme0n1").read_bytes()[:MIB])
    middle = (tmp_path / "dev/nvme0n1").read_bytes()[MIB:-MIB]
    assert set(middle) == set(OLD)
    assert all(untouched(machine, name) for name in ("nvme1n1", "nvme1n1p1", "nvme0n10"))


@pytest.mark.parametrize("shell", SHELLS)
def test_what_is_made_of_the_disk_is_taken_apart_from_its_top(tmp_path, shell):
    """A live system has assembled it: a volume on a RAID of a partition, and a volume on another partition."""
    machine = Machine(tmp_path)
    raid = machine.block("md127", SIZE)
    for name, volume in (("dm-0", "old-root"), ("dm-1", "data-it's")):
        (machine.block(name, SIZE) / "dm").mkdir()
        (tmp_path / "sys/class/block" / name / "dm/name").write_text(f"{volume}\n")
    (raid / "holders/dm-0").mkdir()
    (machine.part("nvme0n1p2") / "holders/md127").mkdir()
    (machine.part("nvme0n1p3") / "holders/dm-1").mkdir()
    done = f"{tmp_path}/done"
    machine.program("mdadm", f'echo "mdadm $*" >> {done}')
    machine.program("dmsetup", f'echo "dmsetup $*" >> {done}')
    assert said(machine, shell=shell)[0] == 0
    assert (tmp_path / "done").read_text().splitlines() == [
        "dmsetup remove old-root",
        f"mdadm --stop {tmp_path}/dev/md127",
        "dmsetup remove data-it's",
    ]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_disk_that_is_in_use_is_refused_and_whole(tmp_path, shell):
    machine = Machine(tmp_path)
    machine.block("md127", SIZE)
    (machine.part("nvme0n1p2") / "holders/md127").mkdir()
    machine.program("mdadm", "echo mdadm: fail to stop array >&2; exit 1")
    code, out, err = said(machine, shell=shell)
    assert (code, out) == (REFUSED, "") and "its disk 'S64XNE0R' is in use: md127 can't be stopped" in err
    assert untouched(machine, "nvme0n1") and untouched(machine, "nvme0n1p2")


def test_a_disk_that_can_not_be_written_is_refused(tmp_path):
    machine = Machine(tmp_path)
    machine.program("dd", "exit 1")
    assert said(machine)[0] == REFUSED


@pytest.mark.parametrize("text", ["installed", "another node's", "another machine"])
def test_a_disk_that_may_not_be_written_keeps_every_byte(tmp_path, text):
    machine = Machine(tmp_path, serial="S4" if text == "another machine" else "S3")
    if text == "installed":
        machine.installed(install_scripts.note(TARGET))
    if text == "another node's":
        machine.installed(install_scripts.note(Target("dgx04", "CHG-4711", "S4", "S64XNE0R")))
    machine.part("nvme0n1p2")
    assert said(machine)[0] != 0 and untouched(machine, "nvme0n1") and untouched(machine, "nvme0n1p2")
