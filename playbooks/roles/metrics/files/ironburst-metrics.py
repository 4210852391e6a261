#!/usr/bin/python3
"""ironburst-metrics --folder FOLDER: Slurm's figures as a text file of the node exporter.

What can't be asked is reported as `ironburst_up{source="slurm"} 0`, never as old or invented figures; the controller's
own are scraped from `ironburst run`. Python 3.6 (EL 8).
"""

import argparse
import collections
import os
import re
import subprocess
import sys
import time

FILE = "ironburst.prom"
TIMEOUT = 30  # seconds a question may take
FAILED = (OSError, ValueError, subprocess.TimeoutExpired)
NO_DATABASE = "not running a supported accounting_storage plugin"  # a site without slurmdbd, in sacctmgr's words
LABELS = ("partition", "state")
OFF = re.compile("[~#%]$|power")  # Slurm's marks of a node that is powered down, or on its way
NODE_STATES = (
    *("idle", "mixed", "allocated", "completing", "planned", "down", "error", "fail", "unknown", "future"),
    *("powered_down", "powering_up", "powering_down", "powered_off", "reserved", "blocked", "inval", "reboot"),
)


def line(name, value, **labels):
    """One sample. Values of labels are escaped as Prometheus wants them."""
    quoted = ",".join(
        '%s="%s"' % (key, str(labels[key]).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n"))
        for key in sorted(labels)
    )
    return "%s%s %s" % (name, "{%s}" % quoted if quoted else "", repr(value) if isinstance(value, float) else value)


def family(name, told, samples):
    """Lines of one metric; none without samples."""
    return ["# HELP %s %s" % (name, told), "# TYPE %s gauge" % name] + samples if samples else []


def slurm(nodes, jobs):
    """Samples of `sinfo --Node` (partition|node|state|since) and `squeue` (partition|state|reason) listings.

    Raises ValueError for a line that isn't understood.
    """
    rows = [row.split("|") for row in nodes.splitlines() if row]
    if any(len(row) != 4 for row in rows):
        raise ValueError("sinfo's listing is not understood")
    queue = [row.split("|", 2) for row in jobs.splitlines() if row]
    if any(len(row) != 3 for row in queue):
        raise ValueError("squeue's listing is not understood")
    drained = [row for row in rows if "drain" in row[2]]
    # a rented node that is off waits behind its drain, always
    since = {node: since_s(text) for _, node, state, text in drained if not OFF.search(state)}
    states = collections.Counter((row[0], state_of(row[2])) for row in rows)
    kinds = collections.Counter((row[0], row[1].lower()) for row in queue)
    reasons = collections.Counter(row[2].split(",")[0][:60] for row in queue if row[1] == "PENDING")
    out = []
    for name, told, counted in (
        ("slurm_nodes", "Nodes of a partition by state", [(dict(zip(LABELS, key)), n) for key, n in states.items()]),
        (
            "slurm_nodes_drained",
            "Nodes of a partition that take no new job",
            [({"partition": key}, n) for key, n in collections.Counter(row[0] for row in drained).items()],
        ),
        ("slurm_jobs", "Jobs by partition and state", [(dict(zip(LABELS, key)), n) for key, n in kinds.items()]),
        (
            "slurm_jobs_pending",
            "Jobs that wait by Slurm's reason",
            [({"reason": key}, n) for key, n in reasons.items()],
        ),
    ):
        # until 0.3: without ironburst_ they are Slurm 25.11's own, with another meaning
        for full, say in (("ironburst_" + name, told), (name, "Deprecated: ironburst_%s" % name)):
            out += family(full, say, sorted(line(full, n, **labels) for labels, n in counted))
    name = "ironburst_slurm_node_drained_since_timestamp_seconds"
    told = "Since when a node takes no new job"
    return out + family(name, told, [line(name, at, node=node) for node, at in sorted(since.items()) if at is not None])


def since_s(text):
    """Of Slurm's local time; None: it doesn't say."""
    try:
        return int(time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%S")))
    except (ValueError, OverflowError):
        return None


def state_of(text):
    """The base state of `mixed+drain`, `idle~`, `down*`; unknown words raise ValueError."""
    base = text.lower().rstrip("*~#!%$@^-").split("+")[0]
    base = {"drained": "idle", "draining": "mixed", "drng": "mixed", "drain": "idle"}.get(base, base)
    if base not in NODE_STATES:
        raise ValueError("sinfo's state %r is not known" % text)
    return base


def ask(argv):
    """Output of a command. Raises OSError, TimeoutExpired, and ValueError if it failed."""
    pipe = subprocess.PIPE
    plain = {key: value for key, value in os.environ.items() if key != "SLURM_TIME_FORMAT"}
    options = {"env": plain, "stdin": subprocess.DEVNULL, "stdout": pipe, "stderr": pipe, "universal_newlines": True}
    done = subprocess.run(argv, timeout=TIMEOUT, **options)
    if done.returncode:
        raise ValueError("%s: %s" % (argv[0], " ".join(done.stderr.split()) or "exit status %d" % done.returncode))
    return done.stdout


def gather():
    """All lines of the file, and the problems met."""
    out, problems, up = [], [], {}
    answers = []
    for argv in (
        ["sinfo", "--noheader", "--Node", "--format=%R|%N|%T|%H"],
        ["squeue", "--noheader", "--format=%P|%T|%r"],
    ):
        try:
            answers.append(ask(argv))
            up["slurmctld"] = 1
        except FAILED as error:
            problems.append("slurm: %s" % (error if str(error) else type(error).__name__))
            if not isinstance(error, OSError):  # a command that isn't there says nothing of the daemon
                up["slurmctld"] = 0
            break
    try:
        out += slurm(*answers) if len(answers) == 2 else []
    except ValueError as error:
        problems.append("slurm: %s" % error)
    try:
        ask(["sacctmgr", "--noheader", "--parsable2", "show", "cluster", "format=Cluster"])
        up["slurmdbd"] = 1
    except FAILED as error:
        if not isinstance(error, OSError) and NO_DATABASE not in str(error):
            problems.append("slurmdbd: %s" % (error if str(error) else type(error).__name__))
            up["slurmdbd"] = 0
    slurm_said = not any(problem.startswith("slurm:") for problem in problems)
    for name, told, samples in (
        (
            "ironburst_slurm_up",
            "Whether a daemon answers",
            [({"daemon": key}, value) for key, value in sorted(up.items())],
        ),
        ("ironburst_up", "Whether a source of figures answered", [({"source": "slurm"}, int(slurm_said))]),
        ("ironburst_metrics_time_seconds", "When these figures were asked for", [({}, time.time())]),
    ):
        out += family(name, told, [line(name, value, **labels) for labels, value in samples])
    return out, problems


def main():
    """The exit status."""
    parser = argparse.ArgumentParser(description="Slurm's figures for the node exporter")
    parser.add_argument("--folder", required=True)
    arguments = parser.parse_args()
    lines, problems = gather()
    new = os.path.join(arguments.folder, ".%s.new" % FILE)  # the exporter reads only *.prom
    with open(new, "w") as file:
        file.write("\n".join(lines) + "\n")
    os.chmod(new, 0o644)
    os.replace(new, os.path.join(arguments.folder, FILE))
    for problem in problems:
        print("metrics: %s" % problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
