"""One range of steps under the profiler that the job asked for (profile.sh): torch's writes a trace a rank; of nsys and
ncu it is told when to begin and to end. Without a wish it does nothing.
"""

import os
from pathlib import Path

import torch


class Profiled:
    """Call step(number) at the beginning of each step, and end() behind the last one."""

    def __init__(self, rank):
        self.kind, self.running = os.environ.get("PROFILE", ""), None
        first, _, last = os.environ.get("PROFILE_STEPS", "20-24").partition("-")
        self.first, self.last = int(first), int(last or first)
        self.path = Path(os.environ.get("PROFILE_TO", ".")) / f"torch-rank{rank}.json"

    def step(self, number):
        """Begin with the first step of the range, end behind its last one."""
        if number == self.first and self.kind == "torch":
            self.running = torch.profiler.profile(record_shapes=True)
            self.running.start()
        elif number == self.first and self.kind in ("nsys", "ncu"):
            self.running = torch.cuda.profiler
            self.running.start()
        elif number > self.last:
            self.end()

    def end(self):
        """End the range, if it is open; write what torch has seen."""
        if self.running is None:
            return
        if torch.cuda.is_available():
            torch.cuda.synchronize()  # kernels of the range may still run
        self.running.stop()
        if self.kind == "torch":
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.running.export_chrome_trace(str(self.path))
        self.running = None
