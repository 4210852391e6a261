"""The program on a stack in Azure through the pulumi CLI and the stand-in of its azure-native plugin, on loopback: up,
a preview without a change, a launch into what was made, drift, destroy. The owned nodes are left out.
"""

import json

import pytest

from components.azure import reaper
from ironburst import document
from ironburst.adapters.azure.api import Api
from ironburst.adapters.azure.cloud import Azure
from ironburst.nodes import azure as names
from ironburst.ports import LaunchRequest
from lab.azure.server import Cloud
from lab.azure.workflows import Run
from lab.azure.world import Size
from tests import azure_stack
from tests.adapters.test_azure_reaper import send
from tests.azure_stack import SUBSCRIPTION
from tests.components.projects import cloud_project, done
from tests.contract.cloud_benches import AnyToken

GROUP = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/ironburst-lab"
IMAGE = f"{names.image(SUBSCRIPTION, 'lab', 't4')}/versions/1.0.0"


@pytest.fixture
def world():
    world = Cloud()
    world.subscription = SUBSCRIPTION
    world.sizes |= {"Standard_NC64as_T4_v3": Size(), "Standard_ND96isr_H100_v5": Size()}
    raw = {"id": IMAGE, "name": "1.0.0", "location": "eastus", "properties": {"provisioningState": "Succeeded"}}
    world.images[IMAGE.lower()] = raw
    yield world
    world.close()
    assert world.wrong == []


@pytest.fixture
def engine(tmp_path, world):
    """`engine("up", ...)` -> its finished process; `engine.declare(**changes)` changes the declaration."""
    settings = {"azure-native:subscriptionId": SUBSCRIPTION}
    settings |= {"azure-native:metadataHost": world.url.removeprefix("http://")}
    return cloud_project(tmp_path, settings, azure_stack.value(), VPN_SECRET="k3y-of-the-hall")


def port(world):
    api = Api(SUBSCRIPTION, credential=AnyToken(), endpoint=world.url, now=world.now)
    return Azure(api, "eastus", wait=lambda _: None, now=world.now)


def launch(world, engine, pool="t4"):
    """Two nodes, by the adapter, into the first place that the document has of a pool."""
    declared = document.parse(json.loads(done(engine("stack", "output", "cluster", "--json", "--show-secrets"))))
    place = declared.pool(pool).zones[0]
    request = LaunchRequest(
        token="ib-t1",
        launch="l",
        cluster="lab",
        pool=pool,
        zone=place.zone,
        market="on-demand",
        count=2,
        place=place.place.model_dump(),
        image_id=IMAGE,
        user_data="{}",
        hard_limit_s=7200,
    )
    (made,) = port(world).launch_all([request])
    assert isinstance(made, list), made
    return made


def test_a_stack_is_declared_launched_into_and_taken_away(engine, world):
    done(engine("stack", "init"))
    preview = done(engine("preview"))
    assert "Workflow" in preview and world.declared.ids() == set()
    done(engine("up", "--yes", "--skip-preview"))
    made = world.declared.ids()
    assert f"{GROUP}/providers/Microsoft.Network/virtualNetworks/nodes/subnets/nodes" in made and len(world.vms) == 1
    done(engine("preview", "--expect-no-changes"))
    done(engine("refresh", "--yes", "--expect-no-changes"))
    state = "".join(path.read_text() for path in (engine.folder / "state").rglob("*.json"))
    assert "k3y-of-the-hall" not in state

    nodes = launch(world, engine)
    assert len(nodes) == 2 and len(world.vms) == 3
    assert {each.id for each in port(world).instances("lab")} == {node.id for node in nodes}  # no fixed node
    # a destroy with rented nodes stops at their subnet; the controller's rights and the reaper are still there
    stopped = engine("destroy", "--yes", "--skip-preview")
    assert stopped.returncode and "is in use by" in stopped.stdout + stopped.stderr
    assert f"{GROUP}/providers/Microsoft.Logic/workflows/ib-lab-reaper" in world.declared.ids()
    port(world).terminate([node.id for node in nodes])
    world.passes(1)
    done(engine("destroy", "--yes", "--skip-preview"))
    assert world.declared.ids() == set() and world.left_over() == {}


def test_the_declared_reaper_ends_what_no_controller_looks_after(engine, world):
    """The program as it lies in the stack, with its identity's rights, on the machines that were launched into it: one
    that is off within a run, the other when its time is over.
    """
    engine.declare(groups=[])
    done(engine("stack", "init"))
    done(engine("up", "--yes", "--skip-preview"))
    launch(world, engine)
    (workflow,) = world.declared.held["azure-native:logic:Workflow"].values()
    (own,) = workflow["identity"]["userAssignedIdentities"]
    principal = world.declared.held["azure-native:managedidentity:UserAssignedIdentity"][own]["principalId"]
    assert f'"identity": "{own}"' in json.dumps(workflow["definition"])
    text = json.dumps(workflow["definition"]).replace(f'"{reaper.ARM}/subscriptions', f'"{world.url}/subscriptions')

    text = text.replace(f'"{reaper.ARM}@', f'"{world.url}@')
    token = world.identities.token(reaper.ARM, principal)

    def run():
        found = Run(json.loads(text), lambda *call: send(*call, token=token), world.now)
        world.passes(1)
        return found.failed

    one, other = world.vms.values()
    world.stops(one)
    assert run() == {} and list(world.vms.values()) == [other]
    world.passes(7200 + 60)
    assert len(world.vms) == 1 and run() == {}
    assert world.vms == {} == world.disks and list(world.groups) == ["ironburst-lab"]


def test_what_somebody_takes_away_is_made_again_and_a_new_pool_moves_nothing(engine, world):
    engine.declare(groups=[])
    done(engine("stack", "init"))
    done(engine("up", "--yes", "--skip-preview"))
    before = world.declared.ids()
    del world.declared.held["azure-native:logic:Workflow"][f"{GROUP}/providers/Microsoft.Logic/workflows/ib-lab-reaper"]
    done(engine("up", "--yes", "--skip-preview", "--refresh"))
    assert world.declared.ids() == before
    more = azure_stack.cloud()["pools"][1] | {"name": "more", "max_nodes": 1}
    engine.declare(pools=[*azure_stack.cloud()["pools"], more])
    said = done(engine("preview", "--diff"))
    assert "replace" not in said.lower() and "delete" not in said.lower()
