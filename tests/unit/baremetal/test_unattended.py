"""The unattended files: as they were reviewed (the files beside this test), and as the distributions' tools read them.

`UPDATE=1 pytest` writes them anew.
"""

import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from pykickstart.constants import KS_SCRIPT_POST, KS_SCRIPT_PRE
from pykickstart.parser import KickstartParser
from pykickstart.version import makeVersion

from ironburst.baremetal.install_scripts import Target
from ironburst.baremetal.unattended import DISK, MEDIUM, Network, Seed, files

REVIEWED = Path(__file__).parent / "unattended"
SEED = Seed(
    target=Target("dgx03", "CHG-4711", "S3", "S64XNE0R"),
    os="ubuntu2404",
    user="root",
    authorized_keys=("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOps ops@dc1",),
    host_key="-----BEGIN OPENSSH PRIVATE KEY-----\nbWFkZSB1cA==\n-----END OPENSSH PRIVATE KEY-----\n",
    host_key_public="ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHost dgx03",
    network=Network("10.0.1.13/24", "52:54:00:00:00:03", "10.0.1.1", ("10.0.0.53", "10.0.0.54")),
)
SEEDS = {
    "ubuntu2404": SEED,
    "ubuntu2204-dhcp": replace(
        SEED, os="ubuntu2204", user="ops", network=Network("10.0.1.13/24"), mirror="http://10.0.0.5/ubuntu"
    ),
    "rhel9": replace(SEED, os="rhel9"),
    "rhel10-dhcp": replace(
        SEED, os="rhel10", user="ops", network=Network("10.0.1.13/24"), mirror="http://10.0.0.5/rocky"
    ),
    "debian13": replace(SEED, os="debian13"),
    "debian12-dhcp": replace(
        SEED, os="debian12", user="ops", network=Network("10.0.1.13/24"), mirror="http://10.0.0.5/debian"
    ),
}
MAIN = {"ubuntu": "user-data", "rhel": "ks.cfg", "debian": "preseed.cfg"}


def main_file(seed):
    return files(seed)[MAIN[seed.os.rstrip("0123456789")]]


@pytest.mark.parametrize("name", SEEDS)
def test_as_reviewed(name):
    path = REVIEWED / name
    if os.environ.get("UPDATE"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(main_file(SEEDS[name]))
    assert main_file(SEEDS[name]) == path.read_text()


@pytest.mark.parametrize("name", SEEDS)
def test_the_guard_comes_before_the_disk_and_no_password_is_usable(name):
    text = main_file(SEEDS[name])
    assert "guard.sh" in text and "S64XNE0R" in text + files(SEEDS[name])["ironburst/guard.sh"]
    # the last two: partman would clear the other disks of a RAID, and volume groups of /dev/sdaa for /dev/sda
    for risky in ("/dev/sda", "/dev/nvme0n1", "device_remove_md", "device_remove_lvm"):
        assert risky not in text


def test_an_ubuntu_asks_the_guard_first_and_writes_its_disk_alone():
    wanted = json.loads(main_file(SEED).removeprefix("#cloud-config\n"))["autoinstall"]
    assert list(wanted)[:2] == ["version", "early-commands"]
    assert wanted["storage"]["layout"]["match"] == {"path": DISK} and f"s|{DISK}|$disk|" in wanted["early-commands"][0]
    assert subprocess.run(["sh", "-n"], input=wanted["early-commands"][0], text=True).returncode == 0
    assert subprocess.run(["sh", "-n"], input=wanted["late-commands"][0], text=True).returncode == 0


@pytest.mark.parametrize("name", ["debian13", "debian12-dhcp"])
def test_a_preseed_is_read_by_debconf_and_its_commands_by_a_shell(name):
    text = main_file(SEEDS[name])
    if shutil.which("debconf-set-selections"):
        done = subprocess.run(["debconf-set-selections", "-c"], input=text, text=True, capture_output=True)
        assert (done.returncode, done.stderr) == (0, "")
    commands = [line.split(" string ", 1)[1] for line in text.splitlines() if "_command string" in line]
    assert len(commands) == 2
    for command in commands:
        assert subprocess.run(["sh", "-n"], input=command, text=True).returncode == 0


def answers(seed):
    """{question: answer} of a preseed."""
    lines = (line.split(maxsplit=3) for line in main_file(seed).splitlines()[1:])
    return {question: "".join(answer) for _, question, _, *answer in lines}


@pytest.mark.parametrize("lost", ["", "authorized_keys", "ssh_host_ed25519_key"])
def test_a_debian_has_its_mark_only_if_it_has_its_keys(lost, tmp_path):
    medium, target = tmp_path / "medium", tmp_path / "target"
    (target / "etc/ssh").mkdir(parents=True)
    medium.mkdir()
    for name, text in files(SEEDS["debian13"]).items():
        if (path := medium / name.removeprefix("ironburst/")) != medium / lost:
            path.write_text(text)
    command = answers(SEEDS["debian13"])["preseed/late_command"]
    done = subprocess.run(["sh", "-c", command.replace(MEDIUM, str(medium)).replace("/target", str(target))])
    assert (done.returncode == 0) == (not lost)
    assert (target / "etc/ironburst/install.json").exists() == (target / "boot/efi/ironburst").exists() == (not lost)


def test_a_debian_mirror_is_asked_as_it_is_declared():
    seed = SEEDS["debian12-dhcp"]
    plain, secure = answers(seed), answers(replace(seed, mirror="https://mirror.dc1:8443/debian"))
    assert (plain["mirror/protocol"], plain["mirror/http/hostname"]) == ("http", "10.0.0.5")
    assert (secure["mirror/protocol"], secure["mirror/https/hostname"]) == ("https", "mirror.dc1:8443")
    assert not any("mirror/http/" in question for question in secure)


@pytest.mark.parametrize("reached", [True, False])
def test_a_debian_whose_hall_reaches_its_mirror_alone_asks_for_no_other(reached, tmp_path):
    """Else the installer shows an error, which waits for a key."""
    said = tmp_path / "said"
    for name, text in {
        "sh": "echo /dev/vda",  # the guard's answer
        "debconf-get": "echo security",
        "wget": f'[ "${{@: -1}}" = http://security/debian-security/ ] && exit {0 if reached else 4}',
        "debconf-set": f'echo "$1=$2" >> {said}',
    }.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{text}\n")
        (tmp_path / name).chmod(0o755)
    command = answers(SEEDS["debian12-dhcp"])["partman/early_command"].replace("/tmp/", f"{tmp_path}/")
    path = f"{tmp_path}:{os.environ['PATH']}"
    subprocess.run(["/bin/sh", "-c", command], check=True, env={"PATH": path})
    disk = ["partman-auto/disk=/dev/vda", "grub-installer/bootdev=/dev/vda"]
    assert said.read_text().splitlines() == disk + ([] if reached else ["apt-setup/services-select="])


def test_a_debian_disk_is_for_the_system_and_not_for_swap():
    wanted = answers(SEEDS["debian13"])
    assert int(wanted["partman-auto/cap-ram"]) <= 1024  # MB
    assert wanted["partman-partitioning/default_label"] == wanted["partman-partitioning/choose_label"] == "gpt"


@pytest.mark.parametrize(("name", "version"), [("rhel9", "RHEL9"), ("rhel10-dhcp", "RHEL10")])
def test_a_kickstart_is_read_by_pykickstart(name, version):
    read = KickstartParser(makeVersion(version), errorsAreFatal=True, missingIncludeIsFatal=False)
    read.readKickstartFromString(main_file(SEEDS[name]))
    (before,) = [script for script in read.handler.scripts if script.type == KS_SCRIPT_PRE]
    (after,) = [script for script in read.handler.scripts if script.type == KS_SCRIPT_POST]
    assert "guard.sh" in before.script and "finish.sh" in after.script
    for script in (before, after):
        assert subprocess.run(["sh", "-n"], input=script.script, text=True).returncode == 0


@pytest.mark.parametrize(("name", "version"), [("rhel9", "RHEL9"), ("rhel10-dhcp", "RHEL10")])
def test_a_kickstart_takes_the_whole_of_its_disk_and_no_other(name, version, tmp_path):
    read = KickstartParser(makeVersion(version), errorsAreFatal=True, missingIncludeIsFatal=False)
    read.readKickstartFromString(main_file(SEEDS[name]))
    (tmp_path / "sh").write_text("#!/bin/sh\necho /dev/vda\n")  # the guard's answer
    (tmp_path / "sh").chmod(0o755)
    script = read.handler.scripts[0].script.replace("/tmp/", f"{tmp_path}/")
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    subprocess.run(["/bin/sh", "-c", script], check=True, env=env)
    disk = KickstartParser(makeVersion(version), errorsAreFatal=True)
    disk.readKickstart(str(tmp_path / "disk.ks"))
    told = disk.handler
    assert told.ignoredisk.onlyuse == told.clearpart.drives == ["/dev/vda"] and told.bootloader.bootDrive == "/dev/vda"
    assert told.autopart.autopart and told.autopart.nohome  # else / has 70 GiB at most, and /home the rest
    assert told.zerombr.zerombr  # Anaconda labels no blank disk without it, and knows of no other disk


def test_the_medium_holds_what_the_host_is_known_by():
    made = files(SEED)
    assert made["ironburst/ssh_host_ed25519_key"] == SEED.host_key
    assert made["ironburst/authorized_keys"] == SEED.authorized_keys[0] + "\n"


@pytest.mark.skipif("AUTOINSTALL_SCHEMA" not in os.environ, reason="names subiquity's own autoinstall-schema.json")
@pytest.mark.parametrize("name", ["ubuntu2404", "ubuntu2204-dhcp"])
def test_an_autoinstall_is_what_subiquitys_own_schema_allows(name):
    schema = json.loads(Path(os.environ["AUTOINSTALL_SCHEMA"]).read_text())
    wanted = json.loads(main_file(SEEDS[name]).removeprefix("#cloud-config\n"))["autoinstall"]
    jsonschema.validate(wanted, schema)
    # its schema takes unknown keys, and its server refuses them
    assert wanted.keys() <= schema["properties"].keys()
