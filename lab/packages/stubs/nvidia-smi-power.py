"""Power limits of the lab's STUB of nvidia-smi: of each GPU, until its persistence daemon ends (then a GPU that nobody
uses forgets it, as at a boot), for H100 80 GB.

Sentences and ranges as NVIDIA's tool was seen to give them: out of range (595.71), not supported (a warning, exit
status 0), without the right (in a container). Exit statuses 2 and 4 are those of its manual page.
"""

import json
import os
import re
from pathlib import Path

# in the folder of the persistence daemon's stub, which removes it
STATE = Path("/run/nvidia-persistenced/lab-power.json")
DEFAULTS = {
    "power.limit": "700.00 W",
    "power.default_limit": "700.00 W",
    "power.min_limit": "200.00 W",
    "power.max_limit": "700.00 W",
}


def limits():
    """{index: W} of GPUs whose limit was set."""
    return json.loads(STATE.read_text()) if STATE.exists() else {}


def shown(index):
    """What --query-gpu says of a GPU."""
    set_w = limits().get(str(index))
    return DEFAULTS | ({"power.limit": f"{set_w:.2f} W"} if set_w is not None else {})


def forget(indexes):
    """A reset."""
    left = {index: watts for index, watts in limits().items() if index not in indexes}
    if STATE.exists():
        STATE.write_text(json.dumps(left))


def answer(arguments, rows, root=None):
    """(exit status, text) of `-pl W`. rows: what --query-gpu would say of the chosen GPUs."""
    at = next(n for n, word in enumerate(arguments) if word in ("-pl", "--power-limit"))
    given = "".join(arguments[at + 1 : at + 2])
    if not re.fullmatch(r"\d+(\.\d+)?", given):
        return 2, f"Invalid combination of input arguments: -pl {given}. Please run 'nvidia-smi -h' for help. (STUB)"
    watts, text = float(given), ""
    for row in rows:
        bus = row["pci.bus_id"]
        if "N/A" in row["power.min_limit"]:
            text += f"Changing power management limit is not supported for GPU: {bus}.\n"
            text += "Treating as warning and moving on.\n"
            continue
        least, most = (float(row[f"power.{end}_limit"].split()[0]) for end in ("min", "max"))
        if not least <= watts <= most:
            return 2, text + (
                f"Provided power limit {watts:.2f} W is not a valid power limit which should be between {least:.2f} W "
                f"and {most:.2f} W for GPU {bus}\nTerminating early due to previous errors."
            )
        if not (os.geteuid() == 0 if root is None else root):
            return 4, text + (
                f"Failed to set power management limit for GPU {bus}: Insufficient Permissions\n"
                "Terminating early due to previous errors."
            )
        text += f"Power limit for GPU {bus} was set to {watts:.2f} W from {row['power.limit']}.\n"
        if row["persistence_mode"] == "Enabled":
            STATE.write_text(json.dumps(limits() | {row["index"]: watts}))
        else:  # the last client is this one
            text += f"Warning: persistence mode is disabled on device {bus}.\n"
    return 0, text + "All done."
