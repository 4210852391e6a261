"""The program of role scratch on real block devices of this machine: loop devices over files. Needs root; touches only
its own.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.lab
PROGRAM = Path(__file__).resolve().parents[2] / "playbooks/roles/scratch/files/ironburst-scratch.py"
SIZE = 1_100_000_000  # sparse


@pytest.fixture
def device(tmp_path):
    """A blank loop device (not an NVMe one: it has to be declared)."""
    if os.geteuid():
        pytest.skip("loop devices need root")
    if not os.access("/usr/sbin/mkfs.ext4", os.X_OK):
        pytest.skip("mkfs.ext4 is not installed on this machine")
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(SIZE)
    made = subprocess.run(["losetup", "--find", "--show", str(image)], capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"no loop device: {made.stderr.strip()}")
    yield made.stdout.strip()
    subprocess.run(["losetup", "--detach", made.stdout.strip()], check=True)


def scratch(verb, *devices):
    settings = json.dumps({"path": "/ironburst-test", "devices": list(devices), "filesystem": "ext4"})
    done = subprocess.run(
        [sys.executable, str(PROGRAM), verb, "--settings", settings], capture_output=True, text=True, timeout=60
    )
    return done.returncode, json.loads(done.stdout) if done.stdout else done.stderr


def first_megabyte(device):
    with Path(device).open("rb") as raw:
        return raw.read(1 << 20)


def test_a_blank_device_gets_a_file_system_once(device):
    code, plan = scratch("plan", device)
    assert (code, plan["state"]) == (0, "create"), plan
    wipefs = ["wipefs", "--no-act", "--parsable", device]
    assert subprocess.run(wipefs, capture_output=True, text=True).stdout == ""  # a plan writes nothing
    code, made = scratch("apply", device)
    assert (code, made["state"], made["target"]) == (0, "ready", device), made
    assert scratch("apply", device)[1]["uuid"] == made["uuid"]


@pytest.mark.parametrize("kind", ["swap", "ext4", "encrypted"])
def test_a_device_with_a_signature_is_left_as_it_is(device, kind):
    if kind == "encrypted":
        with Path(device).open("r+b") as raw:
            raw.write(b"LUKS\xba\xbe\x00\x01".ljust(1024, b"\0"))
    else:
        make = {"swap": ["mkswap", device], "ext4": ["mkfs.ext4", "-q", device]}[kind]
        subprocess.run(make, check=True, capture_output=True)
    before = first_megabyte(device)
    code, said = scratch("apply", device)
    assert code == 1 and "has a signature" in said
    assert first_megabyte(device) == before


def test_a_device_that_somebody_holds_is_left_alone(device):
    holder = os.open(device, os.O_RDWR | os.O_EXCL)  # as a mount, an array or device-mapper does
    try:
        code, said = scratch("apply", device)
        assert code == 1 and f"{device} can't be taken for scratch: it is in use; nothing was changed" in said
    finally:
        os.close(holder)
    assert scratch("plan", device)[1]["state"] == "create"
