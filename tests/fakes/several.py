"""Several clouds in memory, behind the one that the controller sees of them."""

from ironburst.adapters.several_clouds import Part, SeveralClouds
from ironburst.document import OtherCloud, PoolZone
from ironburst.document.google import GooglePlace
from tests.fakes.cloud import FakeCloud
from tests.fakes.slurm import FakeSlurm
from tests.fakes.world import World

NODES = {"burst-p5": ["p5-1", "p5-2", "p5-3"], "burst-g5": ["g5-1", "g5-2", "g5-3"]}
IDS = {"aws": r"i-\d+", "google": r"z/n/\d+"}


class Second(FakeCloud):
    """Its ids are of another form, and it has no queues."""

    id_form = "z/n/{}"

    def __init__(self, clock, slurm):
        super().__init__(clock, slurm)
        self.images = {"family/g5": "image-1"}


class Together(SeveralClouds):
    """What the tests' Slurm sees of its nodes' clouds, and the controller's port."""

    ids = IDS

    def __init__(self, **clouds):
        self.clouds = clouds
        whose = {name: whose for whose, cloud in clouds.items() for name in cloud.images}
        whose |= {"q": "aws", "p5.48xlarge": "aws", "a3-highgpu-8g": "google"}
        super().__init__({name: Part(cloud, self.ids[name]) for name, cloud in clouds.items()}, whose, "aws")

    def booted(self, node):
        return next((up for cloud in self.clouds.values() if (up := cloud.booted(node))), None)

    def nodes_live(self):
        for cloud in self.clouds.values():
            cloud.nodes_live()

    def at(self, address):
        here = [fake for cloud in self.clouds.values() if (fake := cloud.at(address))]
        return max(here, key=lambda fake: fake.instance.alive, default=None)

    def alive(self):
        return [instance for cloud in self.clouds.values() for instance in cloud.alive()]


def in_two(document, **second):
    """A site's document with a pool g5 in a second cloud."""
    pool = document.pools[0]
    place = GooglePlace(machine_type="a3-highgpu-8g", network_interfaces=[], boot_disk_type="pd-ssd", boot_disk_gb=9)
    zones = [PoolZone(zone=f"us-central1-{zone}", place=place) for zone in "ab"]
    other = pool.model_copy(
        update={"name": "g5", "partition": "burst-g5", "nodes": NODES["burst-g5"], "instance_type": "a3-highgpu-8g"}
        | {"image": "family/g5", "notices": "", "zones": zones, "spot_max_usd_per_hour": {}}
        | second
    )
    there = OtherCloud(provider="google", region="us-central1", account="lab-project")
    return document.model_copy(update={"pools": [pool, other], "other_clouds": [there]})


class TwoClouds(World):
    """A site with a pool in each of two clouds."""

    def __init__(self, tmp_path, second=(), **burst):
        self._second = dict(second)
        super().__init__(tmp_path, **burst)

    def make(self, home):
        self.document = in_two(self.document, **self._second)
        self.slurm = FakeSlurm(self.clock, home=home, burst=NODES)
        self.first, self.second = FakeCloud(self.clock, self.slurm), Second(self.clock, self.slurm)
        self.second.addresses = "10.91.0"
        self.cloud = self.slurm.cloud = Together(aws=self.first, google=self.second)
