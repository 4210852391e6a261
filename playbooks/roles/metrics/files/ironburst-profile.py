#!/usr/bin/python3
"""ironburst-profile start|stop: DCGM gives GPUs' counters to a job that wants to profile, from Slurm's prolog and
epilog.

A job asks by its comment: profile=nsys, ncu, torch or dcgm. What it asked for is in /run/ironburst/profiling/JOB, which
the job reads. Before Hopper nsys and ncu can't have the counters while DCGM has them: DCGM's profiling fields are
paused, which its host engine knows for the whole node only, from the first such job to the last one's end. From Hopper
on, and for torch and dcgm, nothing is paused. A job whose epilog never came is found by the next prolog or epilog
(`scontrol listpids` asks the node itself); /run is empty after a boot, and DCGM starts with its fields.
Exit status 0 always: no job fails for this. Python 3.6 (EL 8).
"""

import contextlib
import fcntl
import os
import re
import subprocess
import sys
import time

FOLDER, PAUSED = "/run/ironburst/profiling", ".paused"
ASKED = re.compile(r"(?:^|[\s;])profile=(nsys|ncu|torch|dcgm)(?=$|[\s,;])")
COUNTERS = ("nsys", "ncu")  # these need them
HOPPER = 9.0  # compute capability
TIMEOUT = 10  # seconds a question may take
TRIES, PAUSE = 3, 2.0  # DCGM refuses to resume for some seconds after a profiler has gone
NEW_S = 600  # a job this young may have no process yet
GONE = re.compile(r"does not exist|not found|No job steps", re.I)


def asked(argv):
    """(exit status or None, all it said) of a tool."""
    try:
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
        try:
            said = process.communicate(timeout=TIMEOUT)[0]
            return process.returncode, said
        except subprocess.TimeoutExpired:
            process.kill()  # not waited for: in the driver it may not end
    except OSError:
        pass
    return None, ""


def exclusive():
    """Whether one of the node's GPUs has counters for one only; in doubt it has."""
    code, said = asked(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"])
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    if code or not lines or not all(re.match(r"\d+\.\d+$", line) for line in lines):
        return True
    return any(float(line) < HOPPER for line in lines)


def told(folder, job):
    """What a job has asked for; empty: nothing."""
    try:
        with open(os.path.join(folder, job)) as file:
            return file.read().strip()
    except (OSError, ValueError):
        return ""


def jobs(folder):
    """Those that are known to profile."""
    return sorted(name for name in os.listdir(folder) if name.isdigit())


def gone(folder, job):
    """Whether a job surely has no process here any more."""
    with contextlib.suppress(OSError):
        if time.time() - os.stat(os.path.join(folder, job)).st_mtime < NEW_S:
            return False
    code, said = asked(["scontrol", "listpids", job])
    return bool(code and GONE.search(said))


def dcgm(word):
    """Whether `dcgmi profile --pause` or `--resume` was done."""
    for number in range(TRIES):
        code, said = asked(["dcgmi", "profile", "--" + word])
        if code == 0:
            return True
        if number + 1 < TRIES:
            time.sleep(PAUSE)
    print("ironburst-profile: dcgmi profile --%s: %s" % (word, " ".join(said.split()) or "no answer"), file=sys.stderr)
    return False


def agree(folder):
    """DCGM is paused as long as somebody needs the counters, and no longer."""
    wanted = any(told(folder, job) in COUNTERS for job in jobs(folder))
    marker = os.path.join(folder, PAUSED)
    paused = os.path.exists(marker)
    if wanted and not paused and exclusive():
        open(marker, "w").close()  # before: whoever ends this program, the next one resumes
        if not dcgm("pause"):
            os.remove(marker)
    elif paused and not wanted and dcgm("resume"):
        os.remove(marker)


def main(word, environment, folder=FOLDER):
    """What the prolog (start) and the epilog (stop) do."""
    job = environment.get("SLURM_JOB_ID", "")
    wish = ASKED.search(environment.get("SLURM_JOB_COMMENT", ""))
    if not job.isdigit() or (not os.path.isdir(folder) and not (word == "start" and wish)):
        return  # nobody profiles here, as on nearly every node
    os.makedirs(folder, mode=0o755, exist_ok=True)
    with open(os.path.join(folder, ".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if word == "start" and wish:
            path = os.path.join(folder, job)
            with open(path + ".new", "w") as file:
                file.write(wish.group(1) + "\n")
            os.chmod(path + ".new", 0o644)
            os.rename(path + ".new", path)
        for each in jobs(folder):
            if (word == "stop" and each == job) or (each != job and gone(folder, each)):
                os.remove(os.path.join(folder, each))
        agree(folder)


if __name__ == "__main__":
    try:
        main(sys.argv[1], os.environ)
    except Exception as error:  # whatever it is, the job starts
        print("ironburst-profile: %s: %s" % (type(error).__name__, error), file=sys.stderr)
