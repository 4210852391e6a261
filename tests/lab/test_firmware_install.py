"""A machine from an empty disk to its first login: real firmware loads the medium over HTTP, the real Debian installer
obeys the preseed, the guard lets it write the declared disk, and the disk starts. Slow: emulated without KVM.
"""

import copy
import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from ironburst.cli import main
from lab.system import wait_for
from tests.lab import emulated_machine

LAB = yaml.safe_load((Path(__file__).parents[2] / "stacks/Pulumi.lab.yaml").read_text())
ADDRESS, SERIAL, MAC, DISK = "10.78.0.11", "LAB-DGX01", "52:54:00:4e:00:0b", "DISK-DGX01"
LIMIT_S = 5400
OF_A_CD = {"cdrom-detect/eject"}
"""questions that only an installer on a CD knows"""


@pytest.fixture(scope="module")
def hall(tmp_path_factory):
    emulated_machine.need()
    with emulated_machine.Hall("ibfirmware", tmp_path_factory.mktemp("firmware")) as hall:
        yield hall


def declared(hall, key):
    value = copy.deepcopy(LAB)
    dgx = value["config"]["ironburst:cluster"]["halls"][0]["nodes"][1]
    dgx["install"] = {
        "mark": "CHG-1",
        "medium": f"http://{emulated_machine.SERVER}:{emulated_machine.PORT}/{{node}}-{{mark}}.efi",
        "boot": "http",
        "allow_install": ["dgx01"],
        "disks": [DISK, "DISK-DGX02"],
        "authorized_keys": [key.with_suffix(".pub").read_text().strip()],
        "known_hosts": str(hall.folder / "known_hosts"),
        "mirror": f"http://{emulated_machine.SERVER}:{emulated_machine.PORT}/debian",
    }
    stack = hall.folder / "Pulumi.x.yaml"
    stack.write_text(yaml.safe_dump(value))
    return stack


@pytest.mark.slow
def test_from_an_empty_disk_to_the_first_login(hall, capsys):
    key = hall.folder / "id"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    stack = declared(hall, key)
    assert main(["node", "medium", "dgx01", str(stack), "--out", str(hall.folder / "media")]) == 0
    emulated_machine.efi_medium(hall, hall.folder / "media/dgx01-CHG-1", hall.media / "dgx01-CHG-1.efi")
    capsys.readouterr()
    assert main(["node", "netboot", str(stack), "--interface", "tap0"]) == 0
    (hall.folder / "dnsmasq.conf").write_text(capsys.readouterr().out + "user=root\nleasefile-ro\nlog-dhcp\n")
    hall.spawn(["dnsmasq", "--no-daemon", "-C", str(hall.folder / "dnsmasq.conf")], "dnsmasq.log")
    machine = emulated_machine.start(hall, serial=SERIAL, mac=MAC, disk_serial=DISK)

    def asked(*command):
        options = ("BatchMode=yes", "StrictHostKeyChecking=yes", f"UserKnownHostsFile={hall.folder}/known_hosts")
        ssh = ["ssh", "-F", "none", "-i", str(key), *(word for option in options for word in ("-o", option))]
        argv = ["ip", "netns", "exec", hall.name, *ssh, "-o", "ConnectTimeout=20", f"root@{ADDRESS}", *command]
        return subprocess.run(argv, capture_output=True, text=True, timeout=120)

    def installed():
        assert machine.poll() is None, (hall.folder / "qemu.log").read_text()
        answer = asked("cat", "/etc/ironburst/install.json")
        return json.loads(answer.stdout) if answer.returncode == 0 else None

    note = wait_for(installed, LIMIT_S, f"the installed host; its console: {hall.folder}/console.log", pause=10)
    assert note == {"node": "dgx01", "mark": "CHG-1", "serial": SERIAL, "disk": DISK}
    assert asked("hostname").stdout.strip() == "dgx01"
    on_disk = asked("cat", "/boot/efi/ironburst/install.json")
    assert json.loads(on_disk.stdout) == note
    served = (hall.folder / "http.log").read_text()
    assert "GET /dgx01-CHG-1.efi" in served
    templates = asked("cat", "/var/log/installer/cdebconf/templates.dat").stdout
    preseed = (hall.folder / "media/dgx01-CHG-1/preseed.cfg").read_text().splitlines()
    questions = {line.split()[1] for line in preseed if line.startswith("d-i ")}
    assert questions - set(re.findall(r"^Name: (\S+)", templates, re.MULTILINE)) == OF_A_CD
