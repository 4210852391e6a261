#!/usr/bin/python3
"""ironburst-power-limit [--check] [--settle SECONDS] [--limit FILE]: hold this node's GPUs at the declared power limit.
A boot, a reload of the driver and a reset begin with the GPU's own one. Jobs may run meanwhile: they get slower.

FILE (default /etc/ironburst/power-limit): watts, of each GPU. Exit 0: as declared (--check) or made so; 3: --check
found a difference; 1: it can't be made so, or nvidia-smi is not understood. --settle: so long to wait for driver and
persistence daemon.
"""

import argparse
import re
import subprocess
import sys
import time

FIELDS = ("index", "power.limit", "power.min_limit", "power.max_limit", "persistence_mode")


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


def refuse(found, wanted):
    """Raises Failed where a GPU would not take the limit, or forget it."""
    for index, fields in found:
        least, most = watts(fields["power.min_limit"]), watts(fields["power.max_limit"])
        if least is None or most is None or watts(fields["power.limit"]) is None:
            raise Failed(
                "GPU %d has no power limit that can be set (nvidia-smi says %s): "
                "leave gpu_power_limit_w of these nodes out" % (index, fields["power.min_limit"])
            )
        if not least <= wanted <= most:
            raise Failed("GPU %d takes %g to %g W, declared is %g W" % (index, least, most, wanted))
    off = [str(index) for index, fields in found if fields["persistence_mode"] != "Enabled"]
    if off:
        raise Failed(
            "persistence mode is off on GPU %s, and the driver would forget the limit: look at nvidia-persistenced"
            % ", ".join(off)
        )


def differences(found, wanted):
    """GPUs with another limit: [(index, sentence)]."""
    told = []
    for index, fields in found:
        limit = watts(fields["power.limit"])
        if limit is None or abs(limit - wanted) >= 1:
            told.append((index, "GPU %d is limited to %s, declared are %g W" % (index, fields["power.limit"], wanted)))
    return told


def settled(wanted, seconds):
    """The GPUs, once they take the limit; as they are after so many seconds. Raises Failed."""
    end = time.monotonic() + seconds
    while True:
        try:
            found = seen()
            refuse(found, wanted)
            return found
        except Failed:
            if time.monotonic() >= end:
                raise
        time.sleep(1)


def main():
    """The exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only compare")
    parser.add_argument("--settle", type=float, default=0, metavar="SECONDS")
    parser.add_argument("--limit", default="/etc/ironburst/power-limit", metavar="FILE")
    arguments = parser.parse_args()
    try:
        with open(arguments.limit) as file:
            wanted = float(file.read())
        found = seen() if arguments.check else settled(wanted, arguments.settle)
        told = differences(found, wanted)
        print("; ".join(text for _, text in told) or "as declared")
        if arguments.check:
            return 3 if told else 0
        for index, _ in told:
            said = smi("-i", str(index), "-pl", "%g" % wanted)
            left = [text for gpu, text in differences(seen(), wanted) if gpu == index]
            if left:  # "not supported" is a warning of nvidia-smi's, with exit status 0
                raise Failed("%s, and nvidia-smi -pl says: %s" % (left[0], " ".join(said.split())))
    except (Failed, OSError, ValueError) as error:
        print("ironburst-power-limit: %s" % error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
