"""The clouds that are held to the port's contract (test_clouds), each with what breaks it on demand."""

from collections.abc import Mapping
from types import MappingProxyType

import boto3
import pytest
from azure.core.credentials import AccessToken
from google.auth.credentials import AnonymousCredentials

from ironburst.adapters.aws.cloud import Aws
from ironburst.adapters.azure.api import Api as AzureApi
from ironburst.adapters.azure.cloud import Azure
from ironburst.adapters.google.api import Api
from ironburst.adapters.google.cloud import Google
from ironburst.adapters.no_cloud import NoCloud
from ironburst.adapters.several_clouds import Part, SeveralClouds
from ironburst.ports import LaunchRequest, Throttled
from ironburst.wiring import clouds
from ironburst.wiring.google import GOOGLE
from lab.aws.cloud import Cloud
from lab.aws.testing import REGION, Clients, network
from lab.azure import server as azure_lab
from lab.azure.world import Size
from lab.google import server as google_lab
from tests.fakes import FakeClock, FakeCloud, FakeSlurm

ZONE, IMAGE, TYPE = "us-east-1a", "ami-0123456789abcdef0", "p5.48xlarge"


class Bench:
    """A cloud behind its port. `rents`: it has instances at all; `shows_images`: its lists say what each was made from;
    `unknown`: ids that it never gave; `no_image`: a reference that names none.
    """

    rents = shows_images = True
    zone, image = ZONE, IMAGE
    unknown = ("i-0123456789abcdef0", "i-0123456789abcdef1")
    no_image = "/ironburst/lab/nothing/image"
    place: Mapping[str, object] = MappingProxyType({})

    def request(self, **changed):
        """A launch of one node."""
        given = {"token": "ib-1", "launch": "l1", "cluster": "lab", "pool": "p5", "market": "on-demand"}
        given |= {"count": 1, "zone": self.zone, "place": self.place, "image_id": self.image}
        given |= changed
        nodes = ", ".join(f'"p5-{n + 1}"' for n in range(given["count"]))
        return LaunchRequest(**{"user_data": f'{{"nodes": [{nodes}]}}'} | given)

    def ask(self, *requests):
        """The answers."""
        return self.port.launch_all(list(requests))

    def launched(self, **changed):
        """The instances of a launch that is granted."""
        (answer,) = self.ask(self.request(**changed))
        assert isinstance(answer, list), answer
        return answer

    def ended(self, ids):
        """Those that have ended by the cloud's word, as soon as they have."""
        return self.port.terminate(ids)

    def passes(self, seconds):
        """Time, where it passes by itself only for some."""


class OfAws(Bench):
    """AWS's adapter before the lab's stand-in of AWS: its API over HTTP."""

    def __init__(self, monkeypatch):
        self.cloud = Cloud(seed=7)
        self._patch = monkeypatch
        monkeypatch.setenv("AWS_ENDPOINT_URL", self.cloud.url)
        self.port = Aws(REGION, boto3.Session("lab", "lab", region_name=REGION), read_timeout_s=5)
        ec2 = Clients(self.cloud.url)("ec2")
        self.cloud.register_image("baked", IMAGE)
        subnet = network(ec2)[1]
        data = {"InstanceType": TYPE, "NetworkInterfaces": [{"DeviceIndex": 0, "SubnetId": subnet}]}
        data |= {"MetadataOptions": {"HttpTokens": "required"}}
        made = ec2.create_launch_template(LaunchTemplateName="p5", LaunchTemplateData=data)["LaunchTemplate"]
        self.place = {"launch_template_id": made["LaunchTemplateId"], "subnet_id": subnet}

    def close(self):
        self.cloud.close()

    def capacity(self, count):
        self.cloud.capacity[TYPE, ZONE, "on-demand"] = count

    def throttles_a_launch(self):
        self.cloud.fault("RunInstances", "RequestLimitExceeded", status=503)

    def throttles_a_list(self):
        self.cloud.fault("DescribeInstances", "RequestLimitExceeded", status=503, times=9)

    def loses_an_answer(self):
        self.cloud.fault("RunInstances", drop=True, after=True)

    def answers_in_part(self):
        """The next answer lacks an instance that was started."""

        def cut(parsed, **_):
            del parsed["Instances"][1:]
            events.unregister("after-call.ec2.RunInstances", cut)

        events = self.port._ec2_once.meta.events
        events.register("after-call.ec2.RunInstances", cut)

    def lists_late(self, ids):
        """EC2's lists by filters show an instance some seconds after its launch; by its id it is known sooner."""
        backend, real = self.cloud.backend, type(self.cloud.backend).describe_instances

        def describe_instances(filters=None):
            found = real(backend, filters=filters)
            for each in found:
                each.instances = [instance for instance in each.instances if instance.id not in ids]
            return [each for each in found if each.instances]

        self._patch.setattr(backend, "describe_instances", describe_instances)


class OfGoogle(Bench):
    """Google's adapter before the lab's stand-in of Compute Engine: its API over HTTP. A launch and an end take time,
    which passes while somebody waits.
    """

    shows_images = False
    zone, kind = "us-central1-a", "a3-highgpu-8g"
    image = "projects/lab-project/global/images/ib-1"
    unknown = ("us-central1-a/ib-lab-p5-l0-0/4711", "us-central1-a/ib-lab-p5-l0-1/4712")
    no_image = "projects/lab-project/global/images/family/ironburst-lab-nothing"

    def __init__(self, _):
        nic = {"subnetwork": "regions/us-central1/subnetworks/nodes", "nic_type": "GVNIC"}
        disk = {"boot_disk_type": "hyperdisk-balanced", "boot_disk_gb": 200}
        self.place = {"machine_type": self.kind, "network_interfaces": [nic], **disk}
        self.cloud = google_lab.Cloud(seed=7)
        self.cloud.images["ib-1"] = "ironburst-lab-p5"
        self.cloud.delays.insert_s = self.cloud.delays.delete_s = self.cloud.delays.roll_back_s = 0.9
        self.port = self.connected()

    def connected(self, timeout_s=30.0):
        """By a process of its own."""
        api = Api(
            "lab-project", credentials=AnonymousCredentials(), endpoint=self.cloud.url_of_api, timeout_s=timeout_s
        )
        return Google(api, "us-central1", wait=self.cloud.passes, now=self.cloud.now)

    def close(self):
        self.cloud.close()
        assert self.cloud.wrong == []

    def ended(self, ids):
        assert self.port.terminate(ids) <= set(ids)  # who is on its way out may cost money
        self.cloud.passes(1)
        return self.port.terminate(ids)

    def capacity(self, count):
        """Of launches that take a moment it is looked at before they begin: one that is taken back has what others
        want meanwhile.
        """
        self.cloud.capacity[self.kind, self.zone, "STANDARD"] = count
        self.cloud.assumed.capacity_at_once = self.cloud.delays.insert_s < 1

    def throttles_a_launch(self):
        self.cloud.fault("instances.bulkInsert", 403, reason="rateLimitExceeded")

    def throttles_a_list(self):
        self.cloud.fault("*", 403, reason="rateLimitExceeded", times=2)

    def loses_an_answer(self):
        self.cloud.fault("instances.bulkInsert", drop=True, after=True, times=2)  # httplib2 asks once more by itself

    def answers_in_part(self):
        """The next list of its instances, and the look for the other one, lack one that was started."""
        missing = lambda answer: answer | {"items": answer["items"][:1]}  # noqa: E731
        self.cloud.fault("instances.list", rewrite=missing, when=lambda _: bool(self.cloud.vms))
        self.cloud.fault("instances.get", 503)

    def lists_late(self, ids):
        self.cloud.delays.list_s = 60.0

    def works_at_launches(self, seconds):
        self.cloud.delays.insert_s = seconds

    def passes(self, seconds):
        self.cloud.passes(seconds)


class AnyToken:
    """A credential of azure-identity's kind, without a login."""

    def get_token(self, *_, **__):
        return AccessToken("lab", 2**40)


class OfAzure(Bench):
    """Azure's adapter before the lab's stand-in of ARM: its API over HTTP. A launch and an end take time, which passes
    while somebody waits.
    """

    zone, kind = "eastus-1", "Standard_ND96isr_H100_v5"
    gone = "6f2f1a52-5a0c-5d0e-9f57-6d3f4a3a2d10"
    unknown = (f"ib-0/ib-0-0/{gone}", f"ib-0/ib-0-1/{gone}")

    def __init__(self, _):
        self.cloud = azure_lab.Cloud(seed=7)
        within = f"/subscriptions/{self.cloud.subscription}/resourceGroups/hall/providers"
        self.gallery = f"{within}/Microsoft.Compute/galleries/ironburst/images"
        self.no_image = f"{self.gallery}/nothing"
        self.image = self.bakes("1.0.0")
        self.cloud.sizes[self.kind] = Size()
        disk = {"os_disk_type": "Premium_LRS", "os_disk_gb": 200, "ssh_public_key": "ssh-ed25519 AAAAC3Nz ironburst"}
        subnet = f"{within}/Microsoft.Network/virtualNetworks/nodes/subnets/p5"
        self.place = {"vm_size": self.kind, "subnet_id": subnet, "infiniband": True, **disk}
        self.cloud.delays.create_s = self.cloud.delays.delete_s = 0.9
        self.port = self.connected()

    def bakes(self, version, **properties):
        """A version of the image p5."""
        id = f"{self.gallery}/p5/versions/{version}"
        stored = {"provisioningState": "Succeeded", "storageProfile": {}} | properties
        self.cloud.images[id.lower()] = {"id": id, "name": version, "location": "eastus", "properties": stored}
        return id

    def connected(self, timeout_s=30.0):
        """By a process of its own."""
        cloud = self.cloud
        api = AzureApi(
            cloud.subscription, credential=AnyToken(), endpoint=cloud.url, timeout_s=timeout_s, now=cloud.now
        )
        return Azure(api, "eastus", prices_url=cloud.url_of_prices, wait=cloud.passes, now=cloud.now)

    def close(self):
        self.cloud.close()
        assert self.cloud.wrong == []

    def ended(self, ids):
        assert self.port.terminate(ids) <= set(ids)  # who is on its way out may cost money
        self.cloud.passes(1)
        return self.port.terminate(ids)

    def capacity(self, count):
        """Of a cluster, which a gang is in as a whole: one that doesn't fit takes nothing from the next one."""
        self.cloud.clusters[self.kind] = count

    def throttles_a_launch(self):
        self.cloud.fault("virtual_machines.create_or_update", 429, reason="TooManyRequests")

    def throttles_a_list(self):
        self.cloud.fault("*", 429, reason="TooManyRequests", times=2)

    def loses_an_answer(self):
        self.cloud.fault("virtual_machines.create_or_update", drop=True, after=True)

    def answers_in_part(self):
        """The answer to one of its machines, and the next list of them, lack one that was started."""
        self.cloud.fault(
            "virtual_machines.list", rewrite=lambda answer: answer | {"value": answer["value"][:1]}, times=9
        )
        self.cloud.fault("virtual_machines.create_or_update", 503, after=True)

    def lists_late(self, ids):
        self.cloud.delays.list_s = 60.0

    def works_at_launches(self, seconds):
        self.cloud.delays.create_s = seconds

    def passes(self, seconds):
        self.cloud.passes(seconds)


class InMemory(Bench):
    """What the controller's tests and the benchmarks rent in: no provider's, and held to the same."""

    def __init__(self, _):
        self.clock = FakeClock()
        self.port = FakeCloud(self.clock, FakeSlurm(self.clock))

    def close(self):
        pass

    def capacity(self, count):
        self.port.capacity[ZONE, "on-demand"] = count

    def throttles_a_launch(self):
        self.port.errors = [Throttled("slower", "RequestLimitExceeded")]

    def throttles_a_list(self):
        self.port.unlisted = Throttled("slower", "RequestLimitExceeded")

    def loses_an_answer(self):
        self.port.lost_answers = 1

    def lists_late(self, ids):
        self.port.hidden |= set(ids)

    def works_at_launches(self, seconds):
        self.port.under_way_s = seconds

    def passes(self, seconds):
        self.clock.at += seconds


class OfNone(Bench):
    """No cloud: nothing can break it, and it rents nothing."""

    rents = False

    def __init__(self, _):
        self.port = NoCloud()

    def close(self):
        pass


class OfThree:
    """Three clouds as one, of which the tests rent in one: its bench, but for the port."""

    def __init__(self, rented, patch):
        self._all = {name: BENCHES[name](patch) for name in THREE}
        self._it = self._all[rented]
        parts = {name: Part(bench.port, IDS[name]) for name, bench in self._all.items()}
        whose = {bench.no_image: name for name, bench in self._all.items()}
        self.port = SeveralClouds(parts, whose, "aws")
        self._it.place = {"provider": rented, **self._it.place}

    def __getattr__(self, name):
        return getattr(self._it, name)

    def ask(self, *requests):
        return self.port.launch_all(list(requests))

    def launched(self, **changed):
        (answer,) = self.ask(self.request(**changed))
        assert isinstance(answer, list), answer
        return answer

    def ended(self, ids):
        mine = self._it.port
        self._it.port = self.port
        try:
            return self._it.ended(ids)
        finally:
            self._it.port = mine

    def close(self):
        for bench in self._all.values():
            bench.close()


BENCHES = {"aws": OfAws, "google": OfGoogle, "azure": OfAzure, "in memory": InMemory, None: OfNone}
"""by the name in ironburst.wiring.clouds; beside them the tests' own, and those of clouds without a row yet"""
THREE = ("aws", "azure", "google")
IDS = {
    **{name: row.instance_ids for name, row in clouds.PROVIDERS.items() if name},
    "azure": r"[^/]+/[^/]+/[0-9a-f-]{36}",
    "google": GOOGLE.instance_ids,
}
OF_THREE = {name: f"{name} of three" for name in THREE}
RENTING = sorted([name for name, bench in BENCHES.items() if bench.rents and name] + [*OF_THREE.values()])


@pytest.fixture
def bench(request, monkeypatch):
    """The one that a test is parametrised with."""
    rented, _, of_three = (request.param or "").partition(" of ")
    made = OfThree(rented, monkeypatch) if of_three else BENCHES[request.param](monkeypatch)
    yield made
    made.close()
