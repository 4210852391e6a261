#!/usr/bin/python3
"""ironburst-dead-man [--failed]: a rented node ends itself when nobody looks after it any more.

Once a minute (ironburst-dead-man.timer). The controller says in the comment of the node in Slurm, or in an annotation
of the Node in Kubernetes, that it lives, and for how long the lease is paid: `ironburst,at=WHEN,left=SECONDS`. Only
that the text changed counts, and when, by this node's own clock of uptime: no two clocks are compared, and a scheduler
that doesn't answer is no heartbeat. The node has its instance ended, as its cloud has it (ironburst_cloud.py beside
this file), and powers off,
- without jobs: when its lease has ended, or dead_man_s after the last heartbeat (without any: after the boot);
- with jobs: hard_limit_s after the last heartbeat, and not before its lease has ended.
In Kubernetes a job is a pod of a workload, as ironburst-kubelet has it; with slurm-bridge Slurm's are jobs, too. Where
the API server doesn't answer, every pod with a process here is one, but for those that it has called a DaemonSet's or
static before.

--failed: slurmd or kubelet can't start, for this node could not join or its gate did not pass: say why on the console,
which the cloud keeps, and power off at once. What applies here was written by ironburst-join
(/run/ironburst/dead-man.json).
"""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import ironburst_cloud as cloud

ROOT = Path(os.environ.get("IRONBURST_DEAD_MAN_ROOT", "/"))  # another root in tests
CONSOLE = os.environ.get("IRONBURST_DEAD_MAN_CONSOLE", "/dev/console")
BEAT = re.compile(r"\bComment=ironburst,at=([0-9]+),left=([0-9]+)")
STATE = re.compile(r"\bState=([A-Z_+]+)")
BUSY = {"ALLOCATED", "MIXED", "COMPLETING"}  # of a node's state: it has jobs, or something of one
OTHERS = re.compile(r"\bOthers=(\S*)")  # uids of pods that keep no node
# The control group of a pod's processes, by systemd's names and by cgroupfs's; a static pod's uid has no dashes
POD = re.compile(r"/kubepods\b.*?pod([0-9a-f]{8}(?:[_-][0-9a-f]{4}){3}[_-][0-9a-f]{12}|[0-9a-f]{32})(?=[./\n]|$)")
UNDECLARED = {"node": "", "dead_man_s": 1800.0, "hard_limit_s": float("inf")}  # ironburst-join didn't get so far
TOOL_S = 20.0  # so long a tool may take
END_TRIES, END_PAUSE_S = 3, 5.0  # so often the cloud is asked to end the instance
# slurmd or kubelet needs the others
UNITS = (
    "ironburst-join",
    "ironburst-metadata",
    "munge",
    "containerd",
    "ironburst-data",
    "ironburst-gate",
    "slurmd",
    "kubelet",
)
WORDS = 600  # characters of them on the console


# ---- what is decided: values in, values out


def listen(before, now_s, shown):
    """What is known now. `before`: at the last look, None at the first; `now_s`: seconds of uptime; `shown`: what the
    scheduler shows of the node, None if it didn't answer. A heartbeat is a text that differs from the one before: the
    first one that is read may be of the last lease of this name. ends_s: when the lease ends, None before the first
    heartbeat. others: uids of the pods that keep no node, from Kubernetes' last answer.
    """
    known = dict(before) if before else {"heard_s": now_s, "said": None, "ends_s": None}
    if shown is None:
        return known
    if OTHERS.search(shown):
        known["others"] = OTHERS.search(shown).group(1).split(",")
    beat = BEAT.search(shown)
    said = beat.group(0) if beat else ""
    if beat and known["said"] is not None and said != known["said"]:
        known["heard_s"], known["ends_s"] = now_s, now_s + int(beat.group(2))
    known["said"] = said
    return known


def verdict(known, now_s, busy, settings):
    """Why the node ends now; empty: it stays. `busy`: it has jobs."""
    silent_s, ends_s = now_s - known["heard_s"], known["ends_s"]
    if busy:
        if silent_s >= settings["hard_limit_s"] and (ends_s is None or now_s >= ends_s):
            return "its hard limit is over: no heartbeat of the controller for {:.0f} s".format(silent_s)
        return ""
    if silent_s >= settings["dead_man_s"]:
        return "it has no jobs, and no heartbeat of the controller for {:.0f} s".format(silent_s)
    return "it has no jobs, and its lease has ended" if ends_s is not None and now_s >= ends_s else ""


def says_busy(shown):
    """Whether the scheduler has jobs on the node, as far as it answered."""
    state = STATE.search(shown or "")
    return bool(state and BUSY & set(state.group(1).split("+")))


def last_words(failed):
    """One line for the console, of {unit: its last lines}."""
    said = []
    for unit, lines in failed.items():
        bad = [line for line in lines if "FAILED" in line] or lines[-3:]
        said.append("{} failed: {}".format(unit, "; ".join(bad) or "it said nothing"))
    return " ".join("; ".join(said or ["neither slurmd nor kubelet can start"]).split())[:WORDS]


# ---- the node


def output(*command):
    """What a tool prints; None if it is missing, fails, or takes too long."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=TOOL_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode(errors="replace") if done.returncode == 0 else None


def steps():
    """Whether a step of a job runs here: also of one that Slurm, out of reach, can't tell of. `slurmstepd infinity`,
    which holds a control group, is none.
    """
    for path in (ROOT / "proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().startswith(b"slurmstepd: ["):
                return True
        except OSError:  # it has just ended
            continue
    return False


def pods(but):
    """Whether a pod has processes here that isn't one of `but` (uids)."""
    for path in (ROOT / "proc").glob("[0-9]*/cgroup"):
        try:
            found = POD.search(path.read_text())
        except OSError:  # it has just ended
            continue
        if found and found.group(1).replace("_", "-") not in but:
            return True
    return False


def working(known):
    """Whether something of a job runs here, whatever the scheduler says. A pod that the API server no longer has counts
    until kubelet has ended it.
    """
    return steps() or pods(known.get("others") or ())


def read(path):
    """A JSON file's content; None if there is none that can be used."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


def write(path, value):
    """Replace a file at once. A full disk is no reason to stay: /run is memory."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(value) + "\n")
    os.replace(str(part), str(path))


def tell(text):
    """One line on the console and in the journal. It is never a reason to stay."""
    print(text, flush=True)
    try:
        with open(CONSOLE, "w") as console:
            console.write("\n" + text + "\n")
    except OSError:
        pass


def power_off(text):
    """Say why, and end: first what only the cloud can end, for a machine that is off asks for nothing."""
    tell(text)
    for left in reversed(range(END_TRIES)):
        try:
            cloud.end()
            break
        except Exception as error:  # whatever it is: off is better than on
            tell("ironburst-dead-man: the cloud doesn't end this instance: {}".format(error))
            if left:
                time.sleep(END_PAUSE_S)
    if output("systemctl", "poweroff", "--no-block") is None:
        output("systemctl", "poweroff", "--force")


def show(settings):
    """What the scheduler shows of this node; None if it doesn't answer."""
    if settings.get("scheduler") == "kubernetes":
        return output("ironburst-kubelet", "show")
    said = output("scontrol", "--oneliner", "show", "node", settings["node"]) if settings["node"] else None
    if said is not None and settings.get("scheduler") == "slurm-bridge":
        # heartbeat and jobs are Slurm's; which pods here are none of a job, only the cluster knows
        others = OTHERS.search(output("ironburst-kubelet", "show") or "")
        said = "{} {}".format(said.strip(), others.group(0)) if others else said
    return said


def close(settings, why):
    """No job is to start here now."""
    if settings.get("scheduler") == "kubernetes":
        output("ironburst-kubelet", "cordon")
    else:
        output("scontrol", "update", "nodename=" + settings["node"], "state=drain", "reason=ironburst: " + why)


def look(settings, now_s):
    """One look: the node stays, or ends."""
    path, shown = ROOT / "run/ironburst/heartbeat.json", show(settings)
    known = listen(read(path), now_s, shown)
    try:
        write(path, known)
    except OSError as error:
        print("dead-man: {} can't be written: {}".format(path, error), file=sys.stderr)
    busy = says_busy(shown) or working(known)
    why = verdict(known, now_s, busy, settings)
    if not why:
        return
    if shown is not None and not busy:  # then look again
        close(settings, why)
        again = show(settings)
        if says_busy(again) or working(listen(known, now_s, again)):
            return
    power_off("ironburst-dead-man: {} powers off: {}".format(settings["node"] or "this node", why))


def failed():
    """slurmd or kubelet can't start: last words, and off. A node that has jobs all the same stays."""
    if working(read(ROOT / "run/ironburst/heartbeat.json") or {}):
        return
    units = [unit for unit in UNITS if output("systemctl", "is-failed", unit + ".service") is not None]
    power_off("ironburst-join: " + last_words({unit: journal(unit) for unit in units}))


def journal(unit):
    """A unit's last lines."""
    output("journalctl", "--sync")  # also what a program wrote that has just ended
    match = "_SYSTEMD_UNIT={}.service".format(unit)
    return (output("journalctl", "--boot", "--quiet", "--lines=30", "--output=cat", match) or "").splitlines()


def main(argv):
    """The exit status."""
    settings = read(ROOT / "run/ironburst/dead-man.json")
    if settings is not None and not settings.get("dead_man_s"):
        return 0  # this machine is nobody's rented node, or one that was launched without a dead man's switch
    if "--failed" in argv:
        failed()
    else:
        look(settings or UNDECLARED, time.monotonic())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
