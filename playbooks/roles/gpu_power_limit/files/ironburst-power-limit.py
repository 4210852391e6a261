#!/usr/bin/python3
"""ironburst-power-limit [--check] [--settle SECONDS] [--limit FILE]: hold this node's GPUs at the declared power limit.
A boot, a reload of the driver and a reset begin with the GPU's own one. Jobs may run meanwhile: they get slower.

FILE (default /etc/ironburst/power-limit): watts, of each GPU. `power-cap` beside it is of `ironburst hall cap`: the
lesser one counts, and where neither is there each GPU's own default. Exit 0: as declared (--check) or made so; 3:
--check found a difference; 1: it can't be made so, or nvidia-smi is not understood. --settle: so long to wait for
driver and persistence daemon.
"""

import argparse
import os
import re
import subprocess
import sys
import time

FIELDS = ("index", "power.limit", "power.min_limit", "power.max_limit", "power.default_limit", "persistence_mode")
CAP = "power-cap"


class Failed(Exception):
    """Why the limit can't be set; one sentence."""


def smi(*argv):
    """Output of nvidia-smi. Raises Failed."""
    try:
        done = subprocess.run(
            ["nvidia-smi"] + list(argv), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failed("nvidia-smi can't be asked: %s" % error) from None
    text = " ".join(done.stdout.decode(errors="replace").split())
    if done.returncode:
        raise Failed("nvidia-smi %s failed (exit %d): %s" % (" ".join(argv), done.returncode, text))
    return done.stdout.decode(errors="replace")


def watts(text):
    """A number of watts; None: the GPU has none ("[N/A]", "[Not Supported]")."""
    match = re.match(r"^(\d+(\.\d+)?)( W)?$", text)
    return float(match.group(1)) if match else None


def gpus(text):
    """[(index, {field: text})] from nvidia-smi's answer for FIELDS. Raises Failed."""
    rows = [[field.strip() for field in line.split(",")] for line in text.splitlines() if line.strip()]
    if not rows or any(len(row) != len(FIELDS) or not row[0].isdigit() for row in rows):
        raise Failed("nvidia-smi does not tell the power limits: " + " ".join(text.split())[:200])
    return [(int(row[0]), dict(zip(FIELDS, row))) for row in rows]


def seen():
    """The GPUs of this node."""
    return gpus(smi("--query-gpu=" + ",".join(FIELDS), "--format=csv,noheader"))


def goal(limit):
    """(watts, words): what each GPU is to have; None: its own default. limit: path of the declared one's file."""
    told = []
    for path, words in ((limit, "declared"), (os.path.join(os.path.dirname(limit), CAP), "the hall's cap")):
        if os.path.exists(path):
            with open(path) as file:
                told.append((float(file.read()), words))
    return min(told) if told else (None, "its default")


def wanted_of(fields, wanted):
    """Watts; None: unknown."""
    return watts(fields["power.default_limit"]) if wanted is None else wanted


def refuse(found, wanted, words="declared"):
    """Raises Failed where a GPU would not take the limit, or forget it."""
    for index, fields in found:
        least, most = watts(fields["power.min_limit"]), watts(fields["power.max_limit"])
        if least is None or most is None or watts(fields["power.limit"]) is None:
            raise Failed(
                "GPU %d has no power limit that can be set (nvidia-smi says %s): "
                "leave gpu_power_limit_w of these nodes out" % (index, fields["power.min_limit"])
            )
        asked = wanted_of(fields, wanted)
        if asked is None or not least <= asked <= most:
            raise Failed("GPU %d takes %g to %g W, %s is %s W" % (index, least, most, words, asked and "%g" % asked))
    off = [str(index) for index, fields in found if fields["persistence_mode"] != "Enabled"]
    if off:
        raise Failed(
            "persistence mode is off on GPU %s, and the driver would forget the limit: look at nvidia-persistenced"
            % ", ".join(off)
        )


def differences(found, wanted, words="declared"):
    """GPUs with another limit: [(index, sentence)]."""
    told = []
    for index, fields in found:
        limit, asked = watts(fields["power.limit"]), wanted_of(fields, wanted)
        if limit is None or asked is None or abs(limit - asked) >= 1:
            shown = "none" if asked is None else "%g W" % asked
            told.append((index, "GPU %d is limited to %s, %s are %s" % (index, fields["power.limit"], words, shown)))
    return told


def settled(wanted, words, seconds):
    """The GPUs, once they take the limit; as they are after so many seconds. Raises Failed."""
    end = time.monotonic() + seconds
    while True:
        try:
            found = seen()
            refuse(found, wanted, words)
            return found
        except Failed:
            if time.monotonic() >= end:
                raise
        time.sleep(1)


def hold(limit, check=False, settle=0.0):
    """(what differed, as sentences; what each GPU is to have, in words). Raises Failed, OSError and ValueError."""
    wanted, words = goal(limit)
    found = seen() if check else settled(wanted, words, settle)
    told = differences(found, wanted, words)
    if told and not check:
        fields_of = dict(found)
        said = {index: smi("-i", str(index), "-pl", "%g" % wanted_of(fields_of[index], wanted)) for index, _ in told}
        for index, text in differences(seen(), wanted, words):  # "not supported" is a warning, with exit status 0
            raise Failed("%s, and nvidia-smi -pl says: %s" % (text, " ".join(said.get(index, "").split())))
    return [text for _, text in told], "as declared" if words == "declared" else words + (
        "" if wanted is None else ", %g W" % wanted
    )


def main():
    """The exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only compare")
    parser.add_argument("--settle", type=float, default=0, metavar="SECONDS")
    parser.add_argument("--limit", default="/etc/ironburst/power-limit", metavar="FILE")
    arguments = parser.parse_args()
    try:
        told, words = hold(arguments.limit, arguments.check, arguments.settle)
    except (Failed, OSError, ValueError) as error:
        print("ironburst-power-limit: %s" % error, file=sys.stderr)
        return 1
    print("; ".join(told) or words)
    return 3 if arguments.check and told else 0


if __name__ == "__main__":
    sys.exit(main())
