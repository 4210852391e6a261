#!/usr/bin/python3
"""ironburst-links --folder FOLDER: bit error rates of this host's InfiniBand cards as a text file of the node exporter.

Asked of NVIDIA's mlxlink, or of mstlink, the same of Debian's and EL's package mstflint; a host without both has no
file. 15E-255 is the firmware's zero. A card that gives no answer has no samples. Python 3.6 (EL 8).
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

CARDS = Path("/sys/class/infiniband")
FILE = "ironburst-links.prom"
TIMEOUT = 20  # seconds for one card
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
FIELD = re.compile(r"^([A-Z][^:]*?)\s*:\s*(\S.*?)\s*$", re.M)
RATE = re.compile(r"\d+(\.\d+)?(E-?\d+)?$", re.I)
METRICS = (
    ("symbol_ber", "Symbol BER", "Share of bits that were wrong after all corrections"),
    ("effective_ber", "Effective Physical BER", "Share of bits that error correction left wrong"),
    ("raw_ber", "Raw Physical BER", "Share of bits that arrived wrong"),
)


def rates(text):
    """{metric: bit error rate} of `mlxlink --show_counters`; "N/A", as of a port that is down, is none."""
    fields = dict(FIELD.findall(COLOUR.sub("", text)))
    found = {name: fields.get(field, "") for name, field, _ in METRICS}
    return {name: float(value) for name, value in found.items() if RATE.match(value)}


def samples(by_card):
    """Lines of the file. `by_card`: {(device, port): rates()}"""
    out = []
    for name, _, told in METRICS:
        full = "ironburst_infiniband_" + name
        lines = [
            '%s{device="%s",port="%s"} %r' % (full, device, port, its[name])
            for (device, port), its in sorted(by_card.items())
            if name in its
        ]
        out += ["# HELP %s %s" % (full, told), "# TYPE %s gauge" % full] + lines if lines else []
    return out


def ports(cards):
    """(device, port) of InfiniBand, not of Ethernet."""
    for layer in sorted(cards.glob("*/ports/*/link_layer")):
        if layer.read_text().strip() == "InfiniBand":
            yield layer.parents[2].name, layer.parent.name


def asked(argv):
    """A tool's output; empty: it gave none."""
    pipe = subprocess.PIPE
    options = {"stdin": subprocess.DEVNULL, "stdout": pipe, "stderr": subprocess.DEVNULL, "universal_newlines": True}
    try:
        done = subprocess.run(argv, timeout=TIMEOUT, **options)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def main():
    """The exit status: 1 where a card gave no answer."""
    parser = argparse.ArgumentParser(description="bit error rates of this host's InfiniBand cards")
    parser.add_argument("--folder", required=True)
    parser.add_argument("--cards", type=Path, default=CARDS)
    arguments = parser.parse_args()
    path = os.path.join(arguments.folder, FILE)
    tool = shutil.which("mlxlink") or shutil.which("mstlink")
    if not tool:
        if os.path.exists(path):
            os.remove(path)
        return 0
    found = {
        (device, port): rates(asked([tool, "-d", device, "--show_counters"])) for device, port in ports(arguments.cards)
    }
    new = os.path.join(arguments.folder, ".%s.new" % FILE)  # the exporter reads only *.prom
    with open(new, "w") as file:
        file.write("".join("%s\n" % each for each in samples(found)))
    os.chmod(new, 0o644)
    os.replace(new, path)
    silent = sorted(device for (device, _), its in found.items() if not its)
    if silent:
        print("links: no bit error rates of %s" % ", ".join(silent), file=sys.stderr)
    return 1 if silent else 0


if __name__ == "__main__":
    sys.exit(main())
