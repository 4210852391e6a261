#!/usr/bin/python3
"""ironburst-scratch plan|apply|up [--settings FILE]: local scratch space on unused NVMe devices.

plan says as JSON what would be done and changes nothing; apply does it; up also mounts it (at the boot of a rented
node, whose devices are blank every time). Settings (/etc/ironburst/scratch.json): {"path": "/scratch", "devices": [] (=
every unused local NVMe), "filesystem": "xfs"|"ext4"}. Exit status 0: done or nothing to do, 1: refused or failed (one
sentence on stderr; with plan the sentence is in the JSON).

A device is used only if it is certainly nobody's: no signature of any kind on it, nothing mounted, no partition, no
holder. Python 3.6 (EL 8).
"""

import argparse
import errno
import json
import os
import shutil
import subprocess
import sys

NAME = "ironburst-scratch"  # of the array
LABEL = "ib-scratch"  # of the file system: xfs takes 12 characters
COLUMNS = "NAME,KNAME,TYPE,SIZE,FSTYPE,LABEL,UUID,MOUNTPOINT,TRAN,RO,RM"
SMALLEST = 10**9  # bytes; below that it is no scratch device
TIMEOUT = 600


class ScratchError(Exception):
    """Not to be done; the text is one sentence."""


# --- choosing: pure


def walk(devices):
    """Each device of lsblk's tree, and those below it."""
    for device in devices:
        yield device
        for below in walk(device.get("children") or []):
            yield below


def is_true(value):
    """lsblk says true or "1", by its version."""
    return value in (True, "1", 1)


def why_used(device, signatures):
    """Why this device is left alone, or None: it is nobody's. `signatures`: what was read from the device itself."""
    below = [child["name"] for child in walk(device.get("children") or [])]
    if device["type"] not in ("disk", "loop"):
        return "is a %s, not a whole device" % device["type"]
    if is_true(device["ro"]):
        return "is read-only"
    if is_true(device["rm"]):
        return "is removable"
    if int(device["size"]) < SMALLEST:
        return "is smaller than 1 GB"
    if device.get("mountpoint"):
        return "is mounted at %s" % device["mountpoint"]
    if below:
        return "carries %s" % ", ".join(below)
    if signatures is None:
        return "can't be read for signatures"
    kinds = sorted(set(signatures) | ({device["fstype"]} if device.get("fstype") else set()))
    if kinds:
        return "has a signature (%s)" % ", ".join(kinds)
    return None


def is_local_nvme(device):
    """Whether this is a whole NVMe device; an old lsblk tells no transport, so by its name."""
    nvme = device.get("tran") == "nvme" or (not device.get("tran") and device["name"].startswith("nvme"))
    return device["type"] == "disk" and nvme


def choose(lsblk, settings, signatures):
    """What to do, as {"state": "ready"|"format"|"create"|"refused", "devices", "target", "uuid", "text", "skipped"}.

    `lsblk`: output of lsblk --json --bytes --paths with COLUMNS; `settings`: as in the file; `signatures`: {path:
    [type]}.
    """
    top = lsblk["blockdevices"]
    plan = {"state": "refused", "devices": [], "target": None, "uuid": None, "text": "", "skipped": {}}
    ours = [device for device in walk(top) if device.get("label") == LABEL]
    if ours:
        return _existing(ours, settings, plan)
    members = [
        device
        for device in walk(top)
        if (device.get("label") or "").split(":")[-1] == NAME and device.get("fstype") == "linux_raid_member"
    ]
    return _unfinished(members, signatures, plan) if members else _unused(top, settings, signatures, plan)


def _existing(labelled, settings, plan):
    """The part of `choose` for a node with file systems of our label."""
    named = {device["kname"]: device for device in labelled}  # an array is listed once below each of its members
    if len(named) > 1:
        which = (LABEL, ", ".join(sorted(named)))
        text = "two file systems are labelled %s (%s): wipe the one that is not scratch"
        return dict(plan, text=text % which)
    scratch = next(iter(named.values()))
    name, kind, wanted = scratch["name"], scratch["fstype"], settings["filesystem"]
    if kind != wanted:
        ways = "drain the node and wipe %s to make it anew, or declare %s" % (name, kind)
        return dict(plan, text="scratch on %s is %s, declared is %s: %s" % (name, kind, wanted, ways))
    if scratch.get("mountpoint") and scratch["mountpoint"] != settings["path"]:
        where = (name, scratch["mountpoint"], settings["path"])
        text = "scratch on %s is mounted at %s, declared is %s: unmount it there, or declare that path"
        return dict(plan, text=text % where)
    return dict(plan, state="ready", target=name, uuid=scratch["uuid"], text="there is scratch on %s" % name)


def _unfinished(members, signatures, plan):
    """The part of `choose` for a node with an array of ours that has no file system yet."""
    arrays = {child["kname"]: child for member in members for child in member.get("children") or []}
    names = [member["name"] for member in members]
    if len(arrays) != 1 or not all(member.get("children") for member in members):
        ways = "is a device missing? Repair it, or wipe them by hand"
        text = "%s belong to an array of scratch that is not assembled: %s" % (", ".join(names), ways)
        return dict(plan, text=text)
    array = next(iter(arrays.values()))
    if array.get("fstype") or array.get("mountpoint") or signatures.get(array["name"], []) != []:
        holds = "the array %s of scratch holds %s" % (array["name"], array.get("fstype") or "something unknown")
        return dict(plan, text="%s: look what it is, and wipe it by hand if nobody needs it" % holds)
    text = "finish the array %s" % array["name"]
    return dict(plan, state="format", devices=names, target=array["name"], text=text)


def _unused(top, settings, signatures, plan):
    """The part of `choose` for a node that has no scratch yet."""
    known = {device["name"]: device for device in walk(top)}
    if settings["devices"]:
        for path in settings["devices"]:
            if path not in known:
                return dict(
                    plan,
                    text="the declared device %s does not exist; there are %s"
                    % (path, ", ".join(sorted(known)) or "none"),
                )
            reason = why_used(known[path], signatures.get(path))
            if reason:
                return dict(
                    plan,
                    text="the declared device %s %s: wipe it by hand if nobody needs what is on it, or declare another"
                    % (path, reason),
                )
        chosen = list(settings["devices"])
        if len(set(chosen)) != len(chosen):
            return dict(plan, text="a device is declared twice among %s: name each once" % ", ".join(chosen))
        skipped = {}
    else:
        reasons = {
            device["name"]: why_used(device, signatures.get(device["name"])) for device in top if is_local_nvme(device)
        }
        chosen = [name for name, reason in reasons.items() if reason is None]
        skipped = {name: reason for name, reason in reasons.items() if reason}
        if not chosen:
            said = "; ".join("%s %s" % item for item in sorted(skipped.items())) or "there is none at all"
            ways = "name devices, or declare no scratch for this node"
            return dict(
                plan,
                skipped=skipped,
                text="no unused local NVMe device for %s: %s; %s" % (settings["path"], said, ways),
            )
    target = chosen[0] if len(chosen) == 1 else "/dev/md/%s" % NAME
    text = "make %s on %s%s" % (settings["filesystem"], ", ".join(chosen), " (RAID 0)" if len(chosen) > 1 else "")
    return dict(plan, state="create", devices=chosen, target=target, skipped=skipped, text=text)


def commands(plan, filesystem):
    """The commands that carry out a plan of state create or format, in order."""
    steps = []
    if plan["state"] == "create" and len(plan["devices"]) > 1:
        count = "--raid-devices=%d" % len(plan["devices"])
        options = ["--run", "--level=0", "--homehost=any", "--name=%s" % NAME, count]
        steps.append(["mdadm", "--create", plan["target"], *options, *plan["devices"]])
    # without force: mkfs refuses a device that has come to hold something in between
    make = {"xfs": ["mkfs.xfs", "-q", "-L", LABEL], "ext4": ["mkfs.ext4", "-q", "-m", "0", "-L", LABEL]}[filesystem]
    return [*steps, [*make, plan["target"]]]


# --- the machine


def run(argv):
    """Output of a command. Raises ScratchError if it can't be run, hangs or fails."""
    pipe = subprocess.PIPE
    options = {"stdin": subprocess.DEVNULL, "stdout": pipe, "stderr": pipe, "universal_newlines": True}
    try:
        done = subprocess.run(argv, timeout=TIMEOUT, **options)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ScratchError("%s can't be run: %s" % (argv[0], error)) from None
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split())
        raise ScratchError("%s failed: %s" % (" ".join(argv), said or "no message"))
    return done.stdout


def read_signatures(path):
    """Types of all signatures on the device, read from the device and not from udev's memory; None: unreadable."""
    try:
        shown = run(["wipefs", "--no-act", "--parsable", path])
    except ScratchError:
        return None
    return [line.split(",")[-1] for line in shown.splitlines() if line and not line.startswith("#")]


def probed(device):
    """`device` of lsblk, with what its own first sectors say: udev's memory may be old, or not be there."""
    done = subprocess.run(
        ["blkid", "--probe", "--output", "export", device["name"]], stdout=subprocess.PIPE, universal_newlines=True
    )
    told = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    values = {"fstype": told.get("TYPE"), "label": told.get("LABEL"), "uuid": told.get("UUID")}
    return dict(
        device,
        children=[probed(child) for child in device.get("children") or []],
        **(values if "TYPE" in told else {}),
    )


def look(settings):
    """The plan for this machine as it is now."""
    lsblk = json.loads(run(["lsblk", "--json", "--bytes", "--paths", "--output", COLUMNS]))
    lsblk = {"blockdevices": [probed(device) for device in lsblk["blockdevices"]]}
    settings = dict(settings, devices=[os.path.realpath(path) for path in settings["devices"]])
    return choose(
        lsblk, settings, {device["name"]: read_signatures(device["name"]) for device in walk(lsblk["blockdevices"])}
    )


def must_be_free(path):
    """The kernel's own word: an exclusive open fails while anything at all holds the device."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_EXCL))
    except OSError as error:
        why = "it is in use" if error.errno == errno.EBUSY else error.strerror
        raise ScratchError("%s can't be taken for scratch: %s; nothing was changed" % (path, why)) from None


def apply(settings):
    """Carry out the plan; the plan as it is then. Raises ScratchError."""
    plan = look(settings)
    if plan["state"] == "refused":
        raise ScratchError(plan["text"])
    if plan["state"] != "ready":
        for path in plan["devices"] if plan["state"] == "create" else [plan["target"]]:
            must_be_free(path)
        for argv in commands(plan, settings["filesystem"]):
            run(argv)
        if shutil.which("udevadm"):
            run(["udevadm", "settle", "--timeout=30"])
        plan = look(settings)
        if plan["state"] != "ready":
            raise ScratchError("scratch was made, but is not seen: %s" % plan["text"])
    return plan


def up(settings):
    """The same, and mount it."""
    plan = apply(settings)
    if not os.path.ismount(settings["path"]):
        os.makedirs(settings["path"], exist_ok=True)
        run(["mount", "-o", "noatime", "UUID=%s" % plan["uuid"], settings["path"]])
        os.chmod(settings["path"], 0o1777)
    return plan


def main():
    """The exit status."""
    parser = argparse.ArgumentParser(description="local scratch space on unused NVMe devices")
    parser.add_argument("verb", choices=["plan", "apply", "up"])
    parser.add_argument("--settings", default="/etc/ironburst/scratch.json", help="file, or the JSON itself")
    arguments = parser.parse_args()
    try:
        text = arguments.settings
        if not text.startswith("{"):
            with open(text) as file:
                text = file.read()
        settings = json.loads(text)
        print(json.dumps({"plan": look, "apply": apply, "up": up}[arguments.verb](settings)))
    except (ScratchError, OSError, ValueError) as error:
        print("scratch: %s" % error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
