"""The clouds that are held to the port's contract (test_clouds), each with what breaks it on demand."""

from collections.abc import Mapping
from types import MappingProxyType

import boto3
import pytest

from ironburst.adapters.aws.cloud import Aws
from ironburst.adapters.no_cloud import NoCloud
from ironburst.ports import LaunchRequest, Throttled
from lab.aws.cloud import Cloud
from lab.aws.testing import REGION, Clients, network
from tests.fakes import FakeClock, FakeCloud, FakeSlurm

ZONE, IMAGE, TYPE = "us-east-1a", "ami-0123456789abcdef0", "p5.48xlarge"
UNKNOWN = ("i-0123456789abcdef0", "i-0123456789abcdef1")


class Bench:
    """A cloud behind its port. `rents`: it has instances at all."""

    rents = True
    place: Mapping[str, str] = MappingProxyType({})

    def request(self, **changed):
        """A launch of one node."""
        given = {"token": "ib-1", "launch": "l1", "cluster": "lab", "pool": "p5", "zone": ZONE, "market": "on-demand"}
        given |= {"count": 1, "place": self.place, "image_id": IMAGE}
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


class InMemory(Bench):
    """What the controller's tests and the benchmarks rent in: no provider's, and held to the same."""

    def __init__(self, _):
        clock = FakeClock()
        self.port = FakeCloud(clock, FakeSlurm(clock))

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


class OfNone(Bench):
    """No cloud: nothing can break it, and it rents nothing."""

    rents = False

    def __init__(self, _):
        self.port = NoCloud()

    def close(self):
        pass


BENCHES = {"aws": OfAws, "in memory": InMemory, None: OfNone}
"""by the name in ironburst.wiring.clouds; beside them the tests' own"""
RENTING = sorted(name for name, bench in BENCHES.items() if bench.rents and name)


@pytest.fixture
def bench(request, monkeypatch):
    """The one that a test is parametrised with."""
    made = BENCHES[request.param](monkeypatch)
    yield made
    made.close()
