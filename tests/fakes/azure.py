"""Azure's adapter before the lab's ARM, where the tests' sites have their cloud in memory: the real port, and nodes
that live as its machines do. Time is the site's.
"""

import json
from dataclasses import replace

from ironburst.adapters.azure import launching
from ironburst.adapters.azure.api import Api
from ironburst.adapters.azure.cloud import Azure
from ironburst.adapters.azure.instances import instance
from lab.azure.server import Cloud
from lab.azure.world import Size
from tests.contract.cloud_benches import AnyToken
from tests.fakes import dead_man
from tests.fakes.cloud import FakeCloud
from tests.fakes.google import PORT, Gone

TYPE = "p5.48xlarge"  # the site's document declares that one, whatever it is called
ZONES = {"us-east-1a": "useast-1", "us-east-1b": "useast-2"}  # and those


class AzureCloud(FakeCloud):
    """A FakeCloud whose machines are the stand-in's."""

    region, zones, kind, spot = "useast", ZONES, TYPE, 20.0

    def __init__(self, clock, slurm):
        super().__init__(clock, slurm)
        self.lab = Cloud(region=self.region, seed=7, clock=lambda: clock.at)
        self.lab.sizes[self.kind], self.lab.spot_usd[self.kind] = Size(), self.spot
        self.lab.delays.create_s, self.lab.delays.delete_s = 90.0, 60.0
        within = f"/subscriptions/{self.lab.subscription}/resourceGroups/hall/providers"
        self.image = f"{within}/Microsoft.Compute/galleries/ironburst/images/p5/versions/1.0.0"
        stored = {"provisioningState": "Succeeded", "storageProfile": {}}
        self.lab.images[self.image.lower()] = {"id": self.image, "name": "1.0.0", "location": self.region} | {
            "properties": stored
        }
        subnet = f"{within}/Microsoft.Network/virtualNetworks/nodes/subnets/p5"
        self.place = {"vm_size": self.kind, "subnet_id": subnet, "infiniband": True, "os_disk_type": "Premium_LRS"}
        self.place |= {"os_disk_gb": 200, "ssh_public_key": "ssh-ed25519 AAAAC3Nz ironburst"}
        self.nodes = {}  # name of a machine -> its node
        self.switches = {}  # and its dead man's switch
        self.connect()

    def connect(self):
        """By a new process."""
        api = Api(self.lab.subscription, credential=AnyToken(), endpoint=self.lab.url, now=self.clock.now)
        self.port = Azure(api, self.region, prices_url=self.lab.url_of_prices, wait=self.clock.wait, now=self.clock.now)

    def __getattribute__(self, name):
        return getattr(self.port, name) if name in PORT else super().__getattribute__(name)

    def image_id(self, reference):
        return self.image

    def interruptions(self, queues):
        """The document's pools have a queue, which Azure hasn't."""
        return []

    def launch_all(self, requests):
        asked = [replace(each, place=self.place, zone=self.zones[each.zone]) for each in requests]
        for request in asked:
            said = json.loads(request.user_data)
            its = dict(zip(launching.of(request, self.lab.subscription).names, said["nodes"], strict=True))
            self.nodes |= its
            for name, node in its.items():  # what is asked for again is there already
                self.switches.setdefault(name, dead_man.switch_of(said, node))
        ours = {azures: said for said, azures in self.zones.items()}
        return [
            [replace(each, zone=ours[each.zone]) for each in answer] if isinstance(answer, list) else answer
            for answer in self.port.launch_all(asked)
        ]

    def _machines(self):
        """{machine: the port's instance} of those that are there."""
        self.lab.settle()
        return {vm.name: (vm, self._instance(vm)) for vm in list(self.lab.vms.values())}

    def _instance(self, vm):
        for nic in self.lab.nics.values():
            if nic["properties"].get("virtualMachine", {}).get("id") == vm.raw["id"]:
                address = nic["properties"]["ipConfigurations"][0]["properties"]["privateIPAddress"]
                return replace(instance(vm.raw, self.lab.view(vm)), address=address)
        return instance(vm.raw, self.lab.view(vm))

    def _up(self, vm):
        up = vm.power == "running" and self.clock.at >= vm.made_s + self.boot_s
        return up and vm.properties["provisioningState"] == "Succeeded"

    def booted(self, node):
        machines = self._machines().values()
        return next((shown for vm, shown in machines if self.nodes.get(vm.name) == node and self._up(vm)), None)

    def alive(self):
        return [shown for _, shown in self._machines().values()]

    def at(self, address):
        """A machine that is gone answers no more."""
        for vm, shown in self._machines().values():
            there = vm.properties["provisioningState"] in ("Creating", "Succeeded") and vm.power != "stopped"
            if shown.address == address and there:
                return None
        return Gone(self.lab, address, self.clock) if address else None

    def nodes_live(self):
        """A node that ends itself is off, and paid for until somebody deletes it."""
        self.lab.settle()
        for vm in list(self.lab.vms.values()):
            switch = self.switches.get(vm.name)
            if switch and self._up(vm) and switch.ends(self.clock.at, self.slurm):
                dead_man.close(self.slurm, self.nodes[vm.name])
                self.lab.stops(vm)
