"""The lab's BMC emulator on the loopback, before a machine in memory: what the contract tests of bare metal share."""

from contextlib import contextmanager

from lab.bmc import Bmc, Machine

PASSWORD = "correct-horse-4711"
MACHINE = Machine("dgx01", "LAB-DGX01", "8b1e7f0e-0000-4000-8000-00000000000b", ("52:54:00:4e:00:0b",))


class MemoryPower:
    """A machine without a host: its power is a flag. `stubborn` ignores a clean shutdown."""

    def __init__(self, on=True, stubborn=False):
        self.on, self.stubborn, self.calls = on, stubborn, []

    def is_on(self):
        return self.on

    def start(self):
        self.on = True
        self.calls.append("start")

    def stop(self):
        self.on = self.stubborn
        self.calls.append("stop")

    def off(self):
        self.on = False
        self.calls.append("off")


@contextmanager
def serving(folder, machine=MACHINE, **more):
    """The BMC and the power of `machine`; its faults and its log of requests lie in `folder`."""
    power = MemoryPower()
    with Bmc(
        machine, power, PASSWORD, port=0, faults=folder / "faults.json", log=folder / "requests.jsonl", **more
    ) as bmc:
        yield bmc, power
