#!/usr/bin/python3
"""ironburst-metrics --folder FOLDER [-- COMMAND...]: Slurm's and the controller's figures as a text file of the node
exporter.

COMMAND prints what `ironburst status --json` prints. What can't be asked is told as `ironburst_up{source=...} 0`, never
as old or invented figures. Python 3.6 (EL 8).
"""

import argparse
import collections
import json
import os
import subprocess
import sys
import time

FILE = "ironburst.prom"
TIMEOUT = 30  # seconds a question may take
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


def slurm(nodes, jobs):
    """Samples of `sinfo --Node` (partition|node|state|gres|gresused) and `squeue` (partition|state|reason|nodes|tres)
    listings.

    Raises ValueError for a line that isn't understood.
    """
    out = ["# TYPE slurm_nodes gauge", "# HELP slurm_nodes Nodes of a partition by state"]
    drained = ["# TYPE slurm_nodes_drained gauge"]
    rows = [row.split("|") for row in nodes.splitlines() if row]
    if any(len(row) != 3 for row in rows):
        raise ValueError("sinfo's listing is not understood")
    for (partition, state), number in sorted(collections.Counter((row[0], state_of(row[2])) for row in rows).items()):
        out.append(line("slurm_nodes", number, partition=partition, state=state))
    for partition, number in sorted(collections.Counter(row[0] for row in rows if "drain" in row[2]).items()):
        drained.append(line("slurm_nodes_drained", number, partition=partition))
    rows = [row.split("|") for row in jobs.splitlines() if row]
    if any(len(row) != 3 for row in rows):
        raise ValueError("squeue's listing is not understood")
    out += drained + ["# TYPE slurm_jobs gauge", "# HELP slurm_jobs Jobs by partition and state"]
    for (partition, state), number in sorted(collections.Counter((row[0], row[1].lower()) for row in rows).items()):
        out.append(line("slurm_jobs", number, partition=partition, state=state))
    out.append("# TYPE slurm_jobs_pending gauge")
    for reason, number in sorted(
        collections.Counter(row[2].split(",")[0][:60] for row in rows if row[1] == "PENDING").items()
    ):
        out.append(line("slurm_jobs_pending", number, reason=reason))
    return out


def state_of(text):
    """The base state of `mixed+drain`, `idle~`, `down*`; unknown words raise ValueError."""
    base = text.lower().rstrip("*~#!%$@^-").split("+")[0]
    base = {"drained": "idle", "draining": "mixed", "drng": "mixed", "drain": "idle"}.get(base, base)
    if base not in NODE_STATES:
        raise ValueError("sinfo's state %r is not known" % text)
    return base


def controller(said):
    """Samples of what `ironburst status --json` printed. Raises KeyError, TypeError where something is missing."""
    out = ["# TYPE ironburst_leases gauge", "# HELP ironburst_leases Rented nodes by state, market and type"]
    for (state, market, kind), number in sorted(
        collections.Counter((x["state"], x["market"], x["instance_type"]) for x in said["leases"]).items()
    ):
        out.append(line("ironburst_leases", number, state=state, market=market, instance_type=kind))
    money = said["money"]
    out += [
        "# TYPE ironburst_usd_spent gauge",
        "# HELP ironburst_usd_spent Estimate of this month",
        line("ironburst_usd_spent", float(money["spent_usd"])),
    ]
    out += ["# TYPE ironburst_usd_committed gauge", line("ironburst_usd_committed", float(money["committed_usd"]))]
    if money["usd_per_month"] is not None:
        out += ["# TYPE ironburst_usd_budget gauge", line("ironburst_usd_budget", float(money["usd_per_month"]))]
    out += ["# TYPE ironburst_closed_offers gauge", line("ironburst_closed_offers", len(said["closed"]))]
    out += ["# TYPE ironburst_document_serial gauge", line("ironburst_document_serial", said["serial"])]
    if said["last_tick"]:
        out += [
            "# TYPE ironburst_last_tick_seconds gauge",
            line("ironburst_last_tick_seconds", float(said["last_tick"]["at_s"])),
        ]
    out.append("# TYPE ironburst_pending_jobs gauge")
    for code, number in sorted(
        collections.Counter(
            job["code"] or "undecided" for job in said["queue"] if job["state"].lower() == "pending"
        ).items()
    ):
        out.append(line("ironburst_pending_jobs", number, code=code))
    return out


def ask(argv):
    """Output of a command. Raises OSError, TimeoutExpired, and ValueError if it failed."""
    pipe = subprocess.PIPE
    options = {"stdin": subprocess.DEVNULL, "stdout": pipe, "stderr": pipe, "universal_newlines": True}
    done = subprocess.run(argv, timeout=TIMEOUT, **options)
    if done.returncode:
        raise ValueError("%s: %s" % (argv[0], " ".join(done.stderr.split()) or "exit status %d" % done.returncode))
    return done.stdout


def gather(command):
    """All lines of the file, and the problems met."""
    sources = {
        "slurm": lambda: slurm(
            ask(["sinfo", "--noheader", "--Node", "--format=%R|%N|%T"]),
            ask(["squeue", "--noheader", "--format=%P|%T|%r"]),
        )
    }
    if command:
        sources["controller"] = lambda: controller(json.loads(ask(command)))
    out, problems = [], []
    ups = ["# TYPE ironburst_up gauge", "# HELP ironburst_up Whether a source of figures answered"]
    for source, samples in sources.items():
        try:
            out += samples()
            ups.append(line("ironburst_up", 1, source=source))
        except (OSError, ValueError, KeyError, TypeError, subprocess.TimeoutExpired) as error:
            problems.append("%s: %s" % (source, error if str(error) else type(error).__name__))
            ups.append(line("ironburst_up", 0, source=source))
    out += ups + ["# TYPE ironburst_metrics_time_seconds gauge", line("ironburst_metrics_time_seconds", time.time())]
    return out, problems


def main():
    """The exit status."""
    parser = argparse.ArgumentParser(description="Slurm's and the controller's figures for the node exporter")
    parser.add_argument("--folder", required=True)
    parser.add_argument("command", nargs="*")
    arguments = parser.parse_args()
    lines, problems = gather(arguments.command)
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
