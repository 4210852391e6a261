"""AWS in memory, Google Cloud and Azure by their real adapters before the lab's stand-ins, as one: a pool in each."""

from itertools import count, product

from ironburst.document import OtherCloud, PoolZone
from ironburst.document.azure import AzurePlace
from ironburst.document.google import GooglePlace
from tests.fakes import direct
from tests.fakes.azure import AzureCloud
from tests.fakes.cloud import FakeCloud
from tests.fakes.google import PLACE, GoogleCloud
from tests.fakes.several import IDS, Together

TYPES = {"aws": "p5.48xlarge", "google": "a3-highgpu-8g", "azure": "Standard_ND96isr_H100_v5"}
POOLS = {"aws": "p5", "google": "g5", "azure": "z5"}
USD = {
    "aws": {"on-demand": 55.04, "spot": 24.0},
    "google": {"on-demand": 60.0, "spot": 26.0},
    "azure": {"on-demand": 65.0, "spot": 28.0},
}
IDS = IDS | {"google": r"[^/]+/[^/]+/\d+", "azure": r"[^/]+/[^/]+/[0-9a-f-]{36}"}


class OnGoogle(GoogleCloud):
    """With zones and a type of its own."""

    region, zones, spot = "us-central1", ("us-central1-a", "us-central1-b"), USD["google"]["spot"]
    place = PLACE | {"machine_type": TYPES["google"]} | {
        "network_interfaces": [{"subnetwork": "regions/us-central1/subnetworks/nodes"}]
    }  # fmt: skip

    def connect(self):
        super().connect()
        direct.google(self.port._api, self.lab)

    def storm(self):
        """Spot takes all that runs."""
        taken = [vm for vm in self.lab.vms.values() if vm.model == "SPOT" and vm.raw["status"] == "RUNNING"]
        for vm in taken:
            self.lab.preempt(vm)

    def out_of_capacity(self, left):
        places = product(self.zones, ("SPOT", "STANDARD"))
        self.lab.capacity |= {(TYPES["google"], *place): left for place in places}

    def left_over(self):
        return {what: list(there) for what, there in (("machines", self.lab.vms), ("disks", self.lab.disks)) if there}


class OnAzure(AzureCloud):
    """The same."""

    region, kind, spot = "eastus", TYPES["azure"], USD["azure"]["spot"]
    zones = {zone: zone for zone in ("eastus-1", "eastus-2")}  # noqa: RUF012 nobody changes it

    def connect(self):
        super().connect()
        direct.azure(self.port._api, self.lab)

    def storm(self):
        taken = [vm for vm in self.lab.vms.values() if vm.priority == "Spot" and vm.power == "running"]
        for vm in taken:
            self.lab.evict(vm)

    def out_of_capacity(self, left):
        self.lab.capacity |= {(self.kind, zone, each): left for zone in "12" for each in ("Spot", "Regular")}

    def left_over(self):
        for _ in range(3):  # what an evicted or a failed launch leaves is looked after later
            self.lab.passes(700)
            self.port.instances("lab")
        return self.lab.left_over()


class Trio(Together):
    """All three. `first`: the class of the one in memory."""

    ids, first = IDS, FakeCloud

    def __init__(self, clock, slurm):
        made = {"aws": self.first(clock, slurm), "google": OnGoogle(clock, slurm), "azure": OnAzure(clock, slurm)}
        super().__init__(**made)
        self._whose |= {type: whose for whose, type in TYPES.items()} | {f"image of {whose}": whose for whose in TYPES}
        self.clouds["azure"].lab._addresses = count(20_000)  # others than Google's
        self.clouds["aws"].images = {"image of aws": "ami-1"}
        slurm.cloud = self

    @property
    def boot_s(self):
        return self.clouds["aws"].boot_s

    @boot_s.setter
    def boot_s(self, seconds):
        for cloud in self.clouds.values():
            cloud.boot_s = seconds

    def connect(self):
        """By a new process."""
        for whose in ("google", "azure"):
            self.clouds[whose].connect()

    def at(self, address):
        """Addresses of the three are each its own only in AWS; whoever still has it answers."""
        here = [cloud.at(address) for cloud in self.clouds.values()]
        return None if None in here[1:] else here[0] or max(filter(None, here[1:]), key=lambda gone: gone.ended_at)

    def close(self):
        for whose in ("google", "azure"):
            self.clouds[whose].lab.close()

    def wrong(self):
        """Answers of the stand-ins that the API's descriptions don't have."""
        return [wrong for whose in ("google", "azure") for wrong in self.clouds[whose].lab.wrong]

    def left_over(self):
        """What is there still, when all is well again."""
        for whose in ("google", "azure"):
            self.clouds[whose].lab.faults.clear()
        return {whose: left for whose in ("google", "azure") if (left := self.clouds[whose].left_over())}


def in_three(document, nodes):
    """A site's document with a pool in each; `nodes`: how many each has."""
    pool, zones = document.pools[0], {"google": OnGoogle.zones, "azure": tuple(OnAzure.zones)}
    google = GooglePlace(**OnGoogle.place)
    disk = {"os_disk_type": "Premium_LRS", "os_disk_gb": 200}
    azure = AzurePlace(vm_size=TYPES["azure"], subnet_id="s", ssh_public_key="ssh-ed25519 A", **disk)
    pools = [pool.model_copy(update={"image": "image of aws", "nodes": pool.nodes[:nodes]})]
    for whose, place in (("google", google), ("azure", azure)):
        name = POOLS[whose]
        its = {
            "name": name,
            "partition": f"burst-{name}",
            "nodes": burst(nodes)[f"burst-{name}"],
            "instance_type": TYPES[whose],
            "usd_per_hour": USD[whose],
            "zones": [PoolZone(zone=zone, place=place) for zone in zones[whose]],
            "image": f"image of {whose}",
            "notices": "",
        }
        pools.append(pool.model_copy(update=its))
    others = [
        OtherCloud(provider="google", region=OnGoogle.region, account="lab-project"),
        OtherCloud(provider="azure", region=OnAzure.region, account="lab"),
    ]
    return document.model_copy(update={"pools": pools, "other_clouds": others})


def burst(nodes):
    """Slurm's partitions of rented nodes."""
    return {f"burst-{name}": [f"{name}-{n}" for n in range(1, nodes + 1)] for name in POOLS.values()}
