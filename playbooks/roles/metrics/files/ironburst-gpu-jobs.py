#!/usr/bin/python3
"""ironburst-gpu-jobs start|stop: which job has which GPU, for DCGM's exporter (--hpc-job-mapping-dir), from Slurm's
prolog and epilog.

A file a GPU, named by its index as nvidia-smi and DCGM count; in it the job's number. Slurm's numbers are those of the
device files (/dev/nvidia3), which needn't be in that order: they are translated by the PCI bus id. A GPU that jobs
share (shards, MPS) and a slice have no file: their figures belong to nobody. `start` replaces what a job left behind
on its GPUs, `stop` takes its own files, and /run is empty after a boot. Exit status 0 always: no job fails for this.
Python 3.6 (EL 8).
"""

import contextlib
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

JOBS, SLICES, GPUS = "/run/ironburst/gpu-jobs", "/run/ironburst/slices", "/proc/driver/nvidia/gpus"
SMI = ["nvidia-smi", "--query-gpu=index,pci.bus_id,uuid", "--format=csv,noheader"]
TIMEOUT = 5  # seconds: a GPU that fell off the bus holds nvidia-smi up, and no job waits for that
SHARED = ("SLURM_SHARDS_ON_NODE", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE")
MINOR = re.compile(r"^Device Minor:\s*(\d+)\s*$", re.M)
INDEX = re.compile(r"\d+$")


def bus(text):
    """A PCI bus id as nvidia-smi (00000000:C1:00.0) and /proc (0000:c1:00.0) write it."""
    domain, rest = text.strip().lower().split(":", 1)
    return int(domain, 16), rest


def indices(text):
    """{PCI bus id or UUID: index} of SMI's answer; a line that isn't understood, as of a lost GPU, is left out."""
    found = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) == 3 and INDEX.match(cells[0]) and cells[1].count(":") == 2 and cells[2].startswith("GPU-"):
            found[bus(cells[1])] = found[cells[2]] = cells[0]
    return found


def asked(argv):
    """nvidia-smi's answer; empty: there is none."""
    try:
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, universal_newlines=True)
        try:
            return process.communicate(timeout=TIMEOUT)[0]
        except subprocess.TimeoutExpired:
            process.kill()  # not waited for: in the driver it may not end
    except OSError:
        pass
    return ""


def read(path):
    """A small file's text; empty: it isn't there."""
    try:
        with open(path) as file:
            return file.read()
    except (OSError, ValueError):
        return ""


def minors(folder):
    """{number of the device file: PCI bus id}, according to the driver."""
    try:
        names = os.listdir(folder)
    except OSError:
        return {}
    said = {
        name: MINOR.search(read(os.path.join(folder, name, "information"))) for name in names if name.count(":") == 2
    }
    return {int(found.group(1)): bus(name) for name, found in said.items() if found}


def minors_by_smi(text):
    """{number of the device file: UUID} from `nvidia-smi -q -x`: slower, and where /proc has no such folder."""
    try:
        found = [
            (gpu.findtext("minor_number", ""), gpu.findtext("uuid", "")) for gpu in ET.fromstring(text).findall("gpu")
        ]
    except ET.ParseError:
        return {}
    return {int(minor): uuid for minor, uuid in found if INDEX.match(minor)}


def gpus(environment, slices):
    """Indices of the whole GPUs that a prolog's environment names; `slices`: the devices' UUIDs by Slurm's number, of a
    node that has slices; empty: of others.
    """
    named = environment.get("SLURM_JOB_GPUS") or environment.get("CUDA_VISIBLE_DEVICES") or ""
    index, listed = indices(asked(SMI)), slices.split()
    by_minor = minors(GPUS) or minors_by_smi(asked(["nvidia-smi", "-q", "-x"])) if index and not listed else {}
    found = []
    for each in named.split(","):
        each = each.strip()
        if INDEX.match(each):
            number = int(each)
            each = (listed[number] if number < len(listed) else None) if listed else by_minor.get(number)
        found.append(index.get(each))
    return sorted({each for each in found if each is not None}, key=int)


def start(environment, jobs=JOBS):
    """The job's GPUs are its own from now on."""
    job = environment.get("SLURM_JOB_ID", "")
    if not job.isdigit() or not (environment.get("SLURM_JOB_GPUS") or environment.get("CUDA_VISIBLE_DEVICES")):
        return
    os.makedirs(jobs, mode=0o755, exist_ok=True)
    os.chmod(jobs, 0o755)
    shared = any(environment.get(name) for name in SHARED)
    for gpu in gpus(environment, read(SLICES)):
        path = os.path.join(jobs, gpu)
        if shared:
            remove(path)
            continue
        new = os.path.join(jobs, ".%s.new" % gpu)  # DCGM's exporter reads only names of digits
        with open(new, "w") as file:
            file.write(job + "\n")
        os.chmod(new, 0o644)
        os.rename(new, path)


def stop(environment, jobs=JOBS):
    """Whatever has this job's number goes."""
    job = environment.get("SLURM_JOB_ID", "")
    for name in os.listdir(jobs) if job and os.path.isdir(jobs) else ():
        path = os.path.join(jobs, name)
        if read(path).strip() == job:
            remove(path)


def remove(path):
    """A file that may be gone already."""
    with contextlib.suppress(OSError):
        os.remove(path)


if __name__ == "__main__":
    try:
        {"start": start, "stop": stop}[sys.argv[1]](os.environ)
    except Exception as error:  # whatever it is, the job starts
        print("ironburst-gpu-jobs: %s: %s" % (type(error).__name__, error), file=sys.stderr)
