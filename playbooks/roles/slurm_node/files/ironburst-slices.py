#!/usr/bin/python3
"""ironburst-slices: what Slurm needs of this node's MIG slices, made before each start of slurmd (as root).

Links: /dev/ironburst-mig/<gpu>-<profile>-<n>.{gpu,gi,ci} to the device files of the n-th slice of a profile, for
gres.conf, which can't know their numbers. List: /run/ironburst/slices, the UUID of each device by Slurm's number, one a
line; ironburst-task-prolog gives a job's tasks those of its own. The layout is /etc/ironburst/mig.json.
Exit 1, with a sentence: the slices aren't as declared, or nvidia-smi is not understood.
"""

import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

LISTED = re.compile(r"^GPU (\d+): .*\(UUID: (GPU-[0-9A-Za-z-]+)\)$|^ +MIG (\S+) +Device +(\d+): \(UUID: (MIG-\S+)\)$")
MINOR = re.compile(r"^DeviceFileMinor:\s*(\d+)", re.M)


class Failed(Exception):
    """Why Slurm can't have the slices; one sentence."""


def listed(text):
    """({gpu: UUID}, {(gpu, device): (profile, UUID)}) from `nvidia-smi -L`."""
    gpus, slices, gpu = {}, {}, None
    for line in text.splitlines():
        found = LISTED.match(line.rstrip())
        if not found:
            continue
        index, of_gpu, profile, device, of_slice = found.groups()
        if index is not None:
            gpu = int(index)
            gpus[gpu] = of_gpu
        elif gpu is not None:
            slices[gpu, int(device)] = (profile, of_slice)
    if not gpus:
        raise Failed("nvidia-smi -L names no GPU: " + " ".join(text.split())[:200])
    return gpus, slices


def placed(text):
    """({gpu: minor number}, {(gpu, device): (GPU instance, compute instance)}) from `nvidia-smi -q -x`."""
    minors, places = {}, {}
    try:
        for gpu, element in enumerate(ET.fromstring(text).findall("gpu")):
            minors[gpu] = int(element.findtext("minor_number", ""))
            for device in element.findall("mig_devices/mig_device"):
                names = ("index", "gpu_instance_id", "compute_instance_id")
                index, instance, compute = (int(device.findtext(name, "")) for name in names)
                places[gpu, index] = (instance, compute)
    except (ET.ParseError, ValueError) as error:
        raise Failed("nvidia-smi -q -x is not understood: %s" % error) from None
    return minors, places


def wanted(layout):
    """Devices of the node as Slurm numbers them, type after type: (gpu, profile, number), whole GPUs (profile None)
    first.
    """
    for gpu in sorted(layout):
        if not layout[gpu]:
            yield gpu, None, 0
    for profile in sorted({name for profiles in layout.values() for name in profiles}):
        for gpu in sorted(layout):
            for number in range(layout[gpu].get(profile, 0)):
                yield gpu, profile, number


def devices(layout, of_list, of_query, capabilities="/proc/driver/nvidia/capabilities"):
    """[(name of the links or None, {suffix: minor number of nvidia-cap, gpu: of the GPU}, UUID)] as `wanted` orders."""
    (gpus, slices), (minors, places) = of_list, of_query
    found = []
    for gpu, profile, number in wanted(layout):
        if gpu not in gpus:
            raise Failed("the layout names GPU %d, nvidia-smi has %s" % (gpu, ", ".join(map(str, sorted(gpus)))))
        if profile is None:
            found.append((None, {}, gpus[gpu]))
            continue
        same = [device for (on, device), (name, _) in sorted(slices.items()) if (on, name) == (gpu, profile)]
        if number >= len(same):
            raise Failed("GPU %d has %d slices %s, declared are more: converge the node" % (gpu, len(same), profile))
        place = places.get((gpu, same[number]))
        if place is None:
            raise Failed("nvidia-smi -q does not say where MIG device %d of GPU %d is" % (same[number], gpu))
        folder = os.path.join(capabilities, "gpu%d/mig/gi%d" % (minors[gpu], place[0]))
        caps = {"gi": os.path.join(folder, "access"), "ci": os.path.join(folder, "ci%d/access" % place[1])}
        files = {suffix: minor(path) for suffix, path in caps.items()}
        found.append(("%d-%s-%d" % (gpu, profile, number), dict(files, gpu=minors[gpu]), slices[gpu, same[number]][1]))
    return found


def minor(path):
    """Of a capability's device file. The driver's own tool makes the file where it is missing."""
    try:
        with open(path) as file:
            number = MINOR.search(file.read())
    except OSError as error:
        raise Failed("the driver does not say which device file a slice has: %s" % error) from None
    if not number:
        raise Failed("%s names no DeviceFileMinor" % path)
    if not os.path.exists("/dev/nvidia-caps/nvidia-cap" + number.group(1)):
        subprocess.run(["nvidia-modprobe", "-f", path], check=False, timeout=60)
    return int(number.group(1))


def write(found, dev="/dev", run="/run/ironburst"):
    """Make the links and the list; links of a former layout go."""
    folder = os.path.join(dev, "ironburst-mig")
    os.makedirs(folder, exist_ok=True)
    os.makedirs(run, exist_ok=True)
    links = {}
    for name, files, _ in found:
        for suffix, number in files.items():
            target = "nvidia%d" % number if suffix == "gpu" else "nvidia-caps/nvidia-cap%d" % number
            links["%s.%s" % (name, suffix)] = os.path.join(dev, target)
    for name, target in links.items():
        if not os.path.exists(target):
            raise Failed("%s is not there, by which Slurm would give slice %s to a job" % (target, name))
    for name in set(os.listdir(folder)) | set(links):
        path = os.path.join(folder, name)
        if os.path.lexists(path):
            os.remove(path)
        if name in links:
            os.symlink(links[name], path)
    with open(os.path.join(run, "slices.new"), "w") as file:
        file.write("".join(uuid + "\n" for _, _, uuid in found))
    os.chmod(file.name, 0o644)
    os.rename(file.name, os.path.join(run, "slices"))


def smi(*argv):
    """Output of nvidia-smi. Raises Failed."""
    try:
        done = subprocess.run(
            ["nvidia-smi"] + list(argv), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failed("nvidia-smi can't be asked: %s" % error) from None
    if done.returncode:
        raise Failed("nvidia-smi %s failed (exit %d)" % (" ".join(argv), done.returncode))
    return done.stdout.decode(errors="replace")


def main():
    """The exit status."""
    try:
        with open("/etc/ironburst/mig.json") as file:
            layout = {int(gpu): profiles for gpu, profiles in json.load(file).items()}
        write(devices(layout, listed(smi("-L")), placed(smi("-q", "-x"))))
    except (Failed, OSError, ValueError) as error:
        print("ironburst-slices: %s" % error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
