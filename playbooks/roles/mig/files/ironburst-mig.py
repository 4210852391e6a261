#!/usr/bin/python3
"""ironburst-mig [--check] [--layout FILE]: make the MIG instances of this node as declared (a fresh boot has none).

FILE (default /etc/ironburst/mig.json): {"0": {"1g.10gb": 7}, "1": {}}: GPU index -> {profile: instances}; {} is a whole
GPU without MIG. Exit 0: as declared (--check) or made so; 3: --check found a difference; 1: it can't be made so, or
nvidia-smi is not understood.
"""

import argparse
import collections
import json
import re
import subprocess
import sys

ROW = re.compile(r"\|\s+(\d+)\s+MIG (\S+)\s+(\d+)\s+(\d+)\s+(\d+:\d+)\s*\|")
PROFILE = re.compile(r"\|\s+(\d+)\s+MIG (\S+)\s+(\d+)\s+(\d+)/(\d+)\s")
NOTHING = re.compile(r"No (MIG-enabled devices|GPU instances|compute instances) found", re.I)


class Failed(Exception):
    """Why the layout can't be made; one sentence."""


def smi(*argv, **options):
    """Output of nvidia-smi; "" where it says that there are no instances. Raises Failed."""
    try:
        done = subprocess.run(
            ["nvidia-smi"] + list(argv),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=options.get("timeout", 120),
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failed("nvidia-smi can't be asked: %s" % error) from None
    text = done.stdout.decode(errors="replace")
    if NOTHING.search(text):
        return ""
    if done.returncode:
        raise Failed("nvidia-smi %s failed (exit %d): %s" % (" ".join(argv), done.returncode, " ".join(text.split())))
    return text


def instances(text):
    """{gpu: Counter of profiles} from `nvidia-smi mig -lgi`."""
    layouts = collections.defaultdict(collections.Counter)
    for gpu, profile, _, _, _ in ROW.findall(text):
        layouts[int(gpu)][profile] += 1
    if text and not layouts:
        raise Failed("nvidia-smi mig -lgi is not understood: " + " ".join(text.split())[:200])
    return layouts


def profiles(text):
    """{gpu: {profile: most instances}} from `nvidia-smi mig -lgip`."""
    most = collections.defaultdict(dict)
    for gpu, profile, _, _, total in PROFILE.findall(text):
        most[int(gpu)][profile] = int(total)
    return most


def modes(text):
    """{gpu: (current, pending)} from --query-gpu=index,mig.mode.current,mig.mode.pending."""
    rows = [[field.strip() for field in line.split(",")] for line in text.splitlines() if line.strip()]
    if not rows or any(len(row) != 3 or not row[0].isdigit() for row in rows):
        raise Failed("nvidia-smi does not tell the MIG mode: " + " ".join(text.split())[:200])
    return {int(row[0]): (row[1], row[2]) for row in rows}


def seen():
    """({gpu: MIG is on}, {gpu: Counter of profiles})"""
    on = {gpu: current == "Enabled" for gpu, (current, _) in ask_modes().items()}
    return on, instances(smi("mig", "-lgi")) if any(on.values()) else {}


def ask_modes():
    """{gpu: (current, pending)} of this node."""
    return modes(smi("--query-gpu=index,mig.mode.current,mig.mode.pending", "--format=csv,noheader"))


def differences(wanted, on, layouts):
    """GPUs that are not as declared: [(gpu, sentence)]."""
    told = []
    for gpu, layout in sorted(wanted.items()):
        if gpu not in on:
            raise Failed(
                "the layout names GPU %d, this node has GPUs %s" % (gpu, ", ".join(map(str, sorted(on))) or "none")
            )
        there = dict(layouts.get(gpu, {}))
        if bool(layout) != on[gpu] or there != layout:
            told.append(
                (gpu, "GPU %d has %s, declared is %s" % (gpu, text_of(on[gpu], there), text_of(bool(layout), layout)))
            )
    return told


def text_of(on, layout):
    """A layout as sentences say it."""
    if not on:
        return "no MIG"
    return (
        " + ".join("%d × %s" % (count, profile) for profile, count in sorted(layout.items())) or "MIG without instances"
    )


def slices(profile):
    """Compute slices of a profile: 3 of "3g.40gb"; 0 of one that is not named so."""
    match = re.match(r"(\d+)g\.", profile)
    return int(match.group(1)) if match else 0


def make(gpu, layout, on):
    """Make one GPU's layout. Needs a GPU that nobody uses."""
    index = str(gpu)
    if on:
        smi("mig", "-i", index, "-dci")
        smi("mig", "-i", index, "-dgi")
    if bool(layout) != on:
        set_mode(index, bool(layout))
    if layout:
        check_profiles(gpu, layout, profiles(smi("mig", "-i", index, "-lgip")).get(gpu, {}))
        # the largest first: small ones would take the places that a large one needs
        names = [name for name in sorted(layout, key=slices, reverse=True) for _ in range(layout[name])]
        smi("mig", "-i", index, "-cgi", ",".join(names), "-C")


def set_mode(index, on):
    """Switch MIG on or off, with a reset where the GPU needs one. Raises Failed."""
    wanted = "Enabled" if on else "Disabled"
    smi("-i", index, "-mig", "1" if on else "0")
    if ask_modes()[int(index)][0] != wanted:
        smi("-i", index, "--gpu-reset")  # Ampere: the mode changes with a reset
    if ask_modes()[int(index)][0] != wanted:
        raise Failed("GPU %s: MIG stays pending: something uses the GPU; drain the node and reboot it" % index)


def check_profiles(gpu, layout, known):
    """Raises Failed for profiles that this GPU has not, or not so often. known: {profile: most instances}."""
    for name, count in sorted(layout.items()):
        if name not in known:
            raise Failed("GPU %d has no MIG profile %s; it has %s" % (gpu, name, ", ".join(sorted(known)) or "none"))
        if count > known[name]:
            raise Failed("GPU %d takes %d × %s at most, declared are %d" % (gpu, known[name], name, count))


def main():
    """The exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only compare")
    parser.add_argument("--layout", default="/etc/ironburst/mig.json")
    arguments = parser.parse_args()
    try:
        with open(arguments.layout) as file:
            wanted = {int(gpu): layout for gpu, layout in json.load(file).items()}
        on, layouts = seen()
        told = differences(wanted, on, layouts)
        print("; ".join(text for _, text in told) or "as declared")
        if arguments.check:
            return 3 if told else 0
        for gpu, _ in told:
            make(gpu, wanted[gpu], on[gpu])
        left = differences(wanted, *seen())
        if left:
            raise Failed("nvidia-smi took the layout, but " + "; ".join(text for _, text in left))
    except (Failed, OSError, ValueError) as error:
        print("ironburst-mig: %s" % error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
