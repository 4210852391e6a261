"""Google's adapter before the lab's Compute Engine, where the tests' sites have their cloud in memory: the real port,
and nodes that live as its machines do. Time is the site's.
"""

from dataclasses import replace

from google.auth.credentials import AnonymousCredentials

from ironburst.adapters.google import launching
from ironburst.adapters.google.api import Api
from ironburst.adapters.google.cloud import Google
from ironburst.adapters.google.instances import instance
from lab.google.description import ROOT
from lab.google.server import Cloud
from tests.fakes import dead_man
from tests.fakes.cloud import FakeCloud

IMAGE = "projects/lab-project/global/images/ib-1"
TYPE = "p5.48xlarge"  # the site's document declares that one, whatever it is called
PLACE = {"machine_type": TYPE, "network_interfaces": [{"subnetwork": "regions/us-east/subnetworks/nodes"}]}
PLACE |= {"boot_disk_type": "hyperdisk-balanced", "boot_disk_gb": 200}
PORT = (
    "instances",
    "described",
    "by_token",
    "console",
    "terminate",
    "prolong",
    "spot_prices",
    "acknowledge",
    "troubles",
)


class GoogleCloud(FakeCloud):
    """A FakeCloud whose machines are the stand-in's."""

    region, zones, place, spot = "us", ("us-east-1a", "us-east-1b"), PLACE, 20.0

    def __init__(self, clock, slurm):
        super().__init__(clock, slurm)
        self.lab = Cloud(region=self.region, zones=self.zones, seed=7, clock=lambda: clock.at)
        self.lab.images["ib-1"], self.lab.spot_usd[self.place["machine_type"]] = "ironburst-lab-p5", self.spot
        self.lab.delays.insert_s, self.lab.delays.roll_back_s, self.lab.delays.delete_s = 90.0, 40.0, 60.0
        self.nodes = {}  # name of a machine -> its node
        self.switches = {}  # and its dead man's switch
        self.connect()

    def connect(self):
        """By a new process."""
        api = Api("lab-project", credentials=AnonymousCredentials(), endpoint=self.lab.url_of_api)
        self.port = Google(api, self.region, wait=self.clock.wait, now=self.clock.now)

    def __getattribute__(self, name):
        return getattr(self.port, name) if name in PORT else super().__getattribute__(name)

    def image_id(self, reference):
        return IMAGE

    def interruptions(self, queues):
        """The document's pools have a queue, which Google hasn't."""
        return []

    def launch_all(self, requests):
        asked = [replace(request, place=self.place) for request in requests]
        for request in asked:
            said = launching.json.loads(request.user_data)
            its = dict(zip(launching.of(request).names, said["nodes"], strict=True))
            self.nodes |= its
            for name, node in its.items():  # what is asked for again is there already
                self.switches.setdefault(name, dead_man.switch_of(said, node))
        return self.port.launch_all(asked)

    def _machines(self):
        self.lab.settle()
        return list(self.lab.vms.values())

    def _up(self):
        return [
            vm for vm in self._machines() if vm.raw["status"] == "RUNNING" and self.clock.at >= vm.made_s + self.boot_s
        ]

    def booted(self, node):
        return next((instance(vm.raw) for vm in self._up() if self.nodes.get(vm.name) == node), None)

    def alive(self):
        return [instance(vm.raw) for vm in self._machines()]

    def at(self, address):
        """A machine that is gone answers no more."""
        for vm in self._machines():
            if instance(vm.raw).address == address and vm.raw["status"] in ("RUNNING", "STAGING"):
                return None
        return Gone(self.lab, address, self.clock) if address else None

    def nodes_live(self):
        """A node that ends itself asks for it three times, and is off whatever the answer."""
        for vm in self._up():
            switch = self.switches.get(vm.name)
            if switch and switch.ends(self.clock.at, self.slurm):
                dead_man.close(self.slurm, self.nodes[vm.name])
                if not any(self._deleted(vm) for _ in range(3)):
                    self.lab.stops(vm)

    def _deleted(self, vm):
        url = f"{ROOT}projects/{self.lab.project}/zones/{vm.zone}/instances/{vm.name}"
        answer = self.lab.handle("DELETE", url, b"", {})
        return answer is not None and (answer[0] < 400 or b"resourceNotReady" in answer[1])


class Gone:
    """Since when nothing answers at an address."""

    since = {}  # noqa: RUF012 by stand-in and address, for all that ask

    def __init__(self, lab, address, clock):
        self.ended_at = self.since.setdefault((id(lab), address), clock.at)
