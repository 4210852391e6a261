"""Who signs in at Azure as a managed identity may do what the declared roles let him, and a launch by the controller's
role needs nothing that this role lacks. Its machines are up when their agents say so.

The endpoint: Azure's page "How to use managed identities for App Service" (REST endpoint reference).
"""

import pytest
import requests

from ironburst.adapters.azure.api import Api
from ironburst.adapters.azure.cloud import Azure
from ironburst.config.azure import rights
from ironburst.ports import LaunchFailed, Refused, UnderWay
from lab.azure.declared import GIVEN, ROLE
from lab.azure.identities import ENDPOINT
from lab.azure.metadata import Metadata
from lab.azure.server import Cloud
from lab.azure.wire_server import WireServer
from lab.machines import Machines
from tests.contract.cloud_benches import OfAzure

HEAD = "4a5d1c1e-7a52-4d6e-9a53-0f3c4b1f2a11"


@pytest.fixture
def bench(monkeypatch):
    """Its controller is signed in as HEAD."""
    bench = OfAzure(monkeypatch)
    cloud = bench.cloud
    cloud.identities.strict = True
    cloud.identities.headers["s3cret"] = HEAD
    for name, value in {"ENDPOINT": cloud.url + ENDPOINT, "HEADER": "s3cret"}.items():
        monkeypatch.setenv(f"IDENTITY_{name}", value)
    monkeypatch.setenv("AZURE_RESOURCE_MANAGER_URL", cloud.url)
    api = Api(cloud.subscription, now=cloud.now)
    bench.port = Azure(api, "eastus", prices_url=cloud.url_of_prices, wait=cloud.passes, now=cloud.now)
    yield bench
    bench.close()


def give(cloud, actions):
    """A role with these actions, in the subscription."""
    scope = f"/subscriptions/{cloud.subscription}"
    for token, said in {
        ROLE: {"roleDefinitionId": "r", "permissions": [{"actions": list(actions), "dataActions": []}]},
        GIVEN: {
            "roleAssignmentName": "g",
            "roleDefinitionId": f"{scope}/providers/Microsoft.Authorization/roleDefinitions/r",
            "principalId": HEAD,
        },
    }.items():
        cloud.declared._post(token, "", said | {"scope": scope})


def test_the_controllers_role_launches_prolongs_and_ends(bench):
    give(bench.cloud, [*rights.LOOKING, *rights.LAUNCHING])
    (nodes,) = bench.ask(bench.request(count=2))
    assert {each.id for each in bench.port.instances("lab")} == {node.id for node in nodes}
    bench.port.prolong({node.id: 4e9 for node in nodes})
    bench.port.spot_prices([bench.kind])
    bench.ended([node.id for node in nodes])
    assert bench.cloud.left_over() == {}


@pytest.mark.parametrize("lacks", sorted({*rights.LAUNCHING} & {f"Microsoft.{each}" for each in (
    "Compute/virtualMachines/write", "Network/networkInterfaces/write", "Network/virtualNetworks/subnets/join/action",
    "Compute/virtualMachineScaleSets/write", "Resources/subscriptions/resourceGroups/write", "Resources/tags/write",
)}))  # fmt: skip
def test_without_one_of_its_actions_nothing_is_launched(bench, lacks):
    give(bench.cloud, {*rights.LOOKING, *rights.LAUNCHING} - {lacks})
    (answer,) = bench.ask(bench.request(count=1))
    assert not isinstance(answer, list) and lacks in str(answer)


def test_without_a_role_and_without_a_sign_in_it_is_refused_in_one_sentence(bench, monkeypatch):
    with pytest.raises(Refused, match=f"AuthorizationFailed: The client '{HEAD}'.*virtualMachines/read"):
        bench.port.instances("lab")
    monkeypatch.setenv("IDENTITY_HEADER", "somebody else's")
    with pytest.raises(Refused, match=r"sign in .`az login`., or set") as refused:
        Azure(Api(bench.cloud.subscription), "eastus").instances("lab")
    assert "\n" not in str(refused.value)


class TestOfMachinesThatReport:
    @pytest.fixture
    def up(self, bench):
        """The bench on a world whose machines have agents; `up(vm)`: one of them says that it is."""
        old, bench.cloud = bench.cloud, Cloud(seed=7, machines=Machines())
        for name in ("images", "sizes", "delays"):
            setattr(bench.cloud, name, getattr(old, name))
        old.close()
        bench.port = bench.connected()
        asking = []
        wire = WireServer(bench.cloud, Metadata(bench.cloud, who=lambda _: asking[-1]), ("127.0.0.1", 0))
        url, headers = f"http://127.0.0.1:{wire.server_port}/machine", {"x-ms-version": "2012-11-30"}

        def up(vm, state="Ready"):
            asking.append(vm)
            goal = requests.get(f"{url}/?comp=goalstate", headers=headers, timeout=10).text
            its = goal.partition("<ContainerId>")[2].partition("<")[0]
            ids = f"<ContainerId>{its}</ContainerId><InstanceId>{its}</InstanceId>"
            said = f"<Health>{ids}<State>{state}</State></Health>"
            return requests.post(f"{url}?comp=health", said, headers=headers, timeout=10).status_code

        yield up
        for server in (wire.metadata, wire):
            server.shutdown()
            server.server_close()

    def test_a_launch_is_over_when_all_have_reported(self, bench, up):
        asked = bench.request(count=2)
        assert isinstance(bench.ask(asked)[0], UnderWay)
        one, other = bench.cloud.vms.values()
        assert (up(one), up(other, "NotReady")) == (200, 400)
        bench.cloud.passes(60)
        assert isinstance(bench.ask(asked)[0], UnderWay)
        assert up(other) == 200 and len(bench.ask(asked)[0]) == 2

    def test_one_that_never_does_is_taken_back_with_all_others(self, bench, up):
        asked = bench.request(count=2)
        assert isinstance(bench.ask(asked)[0], UnderWay)
        up(next(iter(bench.cloud.vms.values())))
        bench.cloud.passes(1300)
        answers = []
        while not answers or isinstance(answers[-1], UnderWay):
            answers += bench.ask(asked)
            bench.cloud.passes(30)
        assert isinstance(answers[-1], LaunchFailed) and "OSProvisioningTimedOut" in str(answers[-1])
        assert bench.cloud.left_over() == {}
