"""MIG part of the lab's STUB of nvidia-smi: mode and instances of each GPU, until the next boot (or reload of the
driver), for H100 80 GB.

answer(arguments, count) -> (exit code, text): `-i N -mig 0|1`, `mig -lgi|-lgip|-cgi NAMES [-C]|-dci|-dgi [-i N]`, `-i N
--gpu-reset`.
"""

import json
import subprocess
from pathlib import Path

STATE = Path("/run/lab-nvidia/mig.json")
LINE = "+-------------------------------------------------------+"
# name: (profile id, instances, memory in eighths, slices): H100 80 GB
PROFILES = {
    "1g.10gb": (19, 7, 1, 1),
    "1g.20gb": (15, 4, 2, 1),
    "2g.20gb": (14, 3, 2, 2),
    "3g.40gb": (9, 2, 4, 3),
    "4g.40gb": (5, 1, 4, 4),
    "7g.80gb": (0, 1, 8, 7),
}


def state():
    return json.loads(STATE.read_text()) if STATE.exists() else {}


def mode(index):
    return "Enabled" if str(index) in state() else "Disabled"


def in_use(index):
    users = subprocess.run(
        ["find", "/proc", "-maxdepth", "3", "-path", "/proc/[0-9]*/fd/*", "-lname", f"/dev/nvidia{index}"],
        text=True,
        capture_output=True,
    )
    return bool(users.stdout.strip())


def answer(arguments, count):
    chosen = [arguments[at + 1] for at, word in enumerate(arguments[:-1]) if word in ("-i", "--id")]
    gpus = [index for one in chosen for index in one.split(",")] or [str(index) for index in range(count)]
    now, text = state(), ""
    if "-mig" in arguments:
        on = arguments[arguments.index("-mig") + 1] == "1"
        for index in gpus:
            if in_use(index):
                pending = f"MIG mode is in pending {'enable' if on else 'disable'} state"
                return 0, f"Warning: {pending} for GPU {index}: In use by another client (STUB)"
            now.setdefault(index, []) if on else now.pop(index, None)
            text += f"{'Enabled' if on else 'Disabled'} MIG Mode for GPU {index} (STUB)\n"
    elif "--gpu-reset" in arguments:
        text = "GPU was reset (STUB)"
    else:
        gpus = [index for index in gpus if index in now]
        if not gpus:
            return 6, "No MIG-enabled devices found."
        if "-lgip" in arguments:
            rows = [
                f"|   {i}  MIG {name:<14}{ID:>3}     {most}/{most}        "
                f"{m * 10 - 0.25:<6}     No     16     1     0   |"
                for i in gpus
                for name, (ID, most, m, _) in PROFILES.items()
            ]
            text = "\n".join([LINE, "| GPU instance profiles: (STUB)                         |", LINE, *rows, LINE])
        elif "-lgi" in arguments:
            rows = [
                f"|   {i}  MIG {name:<14}{PROFILES[name][0]:>4}     {number + 1:>4}          {number}:1     |"
                for i in gpus
                for number, name in enumerate(now[i])
            ]
            if not rows:
                return 6, "No GPU instances found: Not Found"
            text = "\n".join([LINE, "| GPU instances: (STUB)                                 |", LINE, *rows, LINE])
        elif "-cgi" in arguments:
            names = arguments[arguments.index("-cgi") + 1].split(",")
            for index in gpus:
                made = now[index] + names
                if any(name not in PROFILES for name in names):
                    return 1, f"Option {','.join(names)}: Invalid profile (STUB)"
                if sum(PROFILES[name][2] for name in made) > 8 or sum(PROFILES[name][3] for name in made) > 7:
                    return 6, f"Unable to create a GPU instance on GPU {index}: Insufficient Resources (STUB)"
                now[index] = made
                text += f"Successfully created {len(names)} GPU instances on GPU {index} (STUB)\n"
        elif "-dgi" in arguments:
            if not any(now[index] for index in gpus):
                return 6, "No GPU instances found: Not Found"
            if any(in_use(index) for index in gpus):
                return 6, f"Unable to destroy GPU instances of GPU {','.join(gpus)}: In use by another client (STUB)"
            now.update({index: [] for index in gpus})
            text = "Successfully destroyed the GPU instances (STUB)"
        elif "-dci" in arguments:
            if not any(now[index] for index in gpus):
                return 6, "No compute instances found: Not Found"
            text = "Successfully destroyed the compute instances (STUB)"
        else:
            return 2, f"nvidia-smi STUB: does not know {' '.join(arguments)}"
    STATE.write_text(json.dumps(now))
    return 0, text
