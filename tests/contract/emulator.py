"""The lab's BMC emulator on the loopback, before a machine in memory: what the contract tests of bare metal share."""

import shutil
from contextlib import contextmanager

from ironburst.baremetal import install_scripts
from lab.bmc import Bmc, Machine, installer

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

    def start_from(self, url):
        self.on = True
        self.calls.append(f"start from {url}")
        return False


@contextmanager
def serving(folder, machine=MACHINE, power=None, **more):
    """The BMC and the power of `machine`; its faults and its log of requests lie in `folder`."""
    power = power or MemoryPower()
    with Bmc(
        machine, power, PASSWORD, port=0, faults=folder / "faults.json", log=folder / "requests.jsonl", **more
    ) as bmc:
        yield bmc, power


class InstallableMachine(MemoryPower):
    """A machine with one disk, in folders: started from a medium it runs that medium's real guard, and then `write`s.
    `media`: {URL: the medium as a folder}; `outcomes`: of each start from one; `writes`: how often its disk was made
    anew.
    """

    def __init__(self, folder, media, serial="LAB-DGX01", disk="LABDISK01"):
        super().__init__(on=False)
        self.folder, self.media, self.outcomes, self.writes, self.system = folder, media, [], 0, False
        installer.machine_folder(folder, serial, disk)

    def start(self):
        super().start()
        self.system = (self.folder / "root").exists()

    def stop(self):
        super().stop()
        self.system = False

    def off(self):
        super().off()
        self.system = False

    def start_from(self, url):
        self.on, self.system = True, False
        if url not in self.media:
            self.outcomes.append("no medium")
            return False
        self.outcomes.append(installer.start(self.folder, self.media[url], self._write).outcome)
        return self.outcomes[-1] in ("installed", "already")

    def _write(self):
        self.writes += 1
        root = self.folder / "root"
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()
        return root

    def says(self):
        """The note of its host, as ssh would bring it; None: it does not answer."""
        note = self.folder / "root/etc/ironburst/install.json"
        return note.read_text() if self.on and self.system and note.exists() else None


def medium(folder, target):
    """An install medium, as a folder."""
    (folder / "ironburst").mkdir(parents=True)
    (folder / "ironburst/guard.sh").write_text(install_scripts.guard(target))
    (folder / "ironburst/finish.sh").write_text(install_scripts.finish(target))
    return folder
