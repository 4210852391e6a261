#!/usr/bin/python3
"""ironburst-gate [--settle SECONDS] [--json]: may this node take jobs? Writes or removes the stamp that the prolog reads.

Exit status 0: passed, /run/ironburst/gate.ok is there. 1: not passed, it is gone. The findings are in /run/ironburst/gate.json.
The judgement is in checks.py (ironburst/health in the repository), what is expected in /etc/ironburst/gate.json.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, os.environ.get("IRONBURST_GATE_LIB", "/usr/local/lib/ironburst"))
import checks  # noqa: E402

ROOT = Path(os.environ.get("IRONBURST_GATE_ROOT", "/"))  # another root in tests
TOOL_TIMEOUT_S = float(os.environ.get("IRONBURST_GATE_TOOL_TIMEOUT", "20"))
PAUSE_S = 1.0


def run(command):
    """A tool's outcome. A process that can't even be killed (a hung driver) is left behind, never waited for."""
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
        except FileNotFoundError:
            return checks.Outcome(None, "", "is not installed")
        except OSError as error:
            return checks.Outcome(None, "", f"can't be run: {error.strerror}")
        try:
            returncode = process.wait(TOOL_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            return checks.Outcome(None, "", f"did not answer in {TOOL_TIMEOUT_S:g} s")
        output.seek(0)
        return checks.Outcome(returncode, output.read().decode(errors="replace"))


def text_of(path):
    """The stripped content of a file of sysfs, "" if it can't be read."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def observe():
    ports = sorted((ROOT / "sys/class/infiniband").glob("*/ports/*"))
    links = tuple(
        checks.Link(port.parent.parent.name, port.name, text_of(port / "state"), text_of(port / "link_layer")) for port in ports
    )
    mounts = tuple(line.split()[4] for line in text_of(ROOT / "proc/self/mountinfo").splitlines() if len(line.split()) > 4)
    return checks.Observed(run(checks.LSPCI), run(checks.NVIDIA_SMI), links, mounts)


def judge():
    """The findings of one look."""
    try:
        expected = checks.expected_from(json.loads((ROOT / "etc/ironburst/gate.json").read_text()))
    except (OSError, ValueError) as error:
        return [checks.Finding("settings", False, f"no usable /etc/ironburst/gate.json: {error}")]
    return checks.evaluate(expected, observe())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--settle", type=float, default=0, metavar="SECONDS", help="look again until it passes, this long")
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    arguments = parser.parse_args()
    folder = ROOT / "run/ironburst"
    folder.mkdir(parents=True, exist_ok=True)
    stamp = folder / "gate.ok"
    deadline = time.monotonic() + arguments.settle
    while True:
        try:
            findings = judge()
        except Exception as error:  # fail closed, whatever it is
            findings = [checks.Finding("gate", False, f"the gate itself failed: {error!r}")]
        good = checks.passed(findings)
        if good or time.monotonic() + PAUSE_S > deadline:
            break
        stamp.unlink(missing_ok=True)
        time.sleep(PAUSE_S)
    report = {"passed": good, "findings": [dict(finding._asdict()) for finding in findings]}
    (folder / "gate.json").write_text(json.dumps(report))
    if good:
        stamp.touch()
    else:
        stamp.unlink(missing_ok=True)
    if arguments.json:
        print(json.dumps(report))
    else:
        for finding in findings:
            print(f"gate: {'ok    ' if finding.passed else 'FAILED'} {finding.check}: {finding.text}")
        print(f"gate: {'passed' if good else 'not passed, this node takes no jobs'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
