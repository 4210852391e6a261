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

    def disk(self, node, *links):
        (self.folder / "dev" / node).touch()
        for link in links:
            (self.folder / "dev/disk/by-id" / link).symlink_to(self.folder / "dev" / node)

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
