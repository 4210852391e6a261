"""The program on a stack in Google Cloud through the pulumi CLI and the stand-in of its gcp plugin, on loopback: up, a
preview without a change, a launch into what was made, drift, destroy. The owned nodes are left out.
"""

import csv
import json
import re

import pytest
from google.auth.credentials import AnonymousCredentials

from ironburst import document
from ironburst.adapters.google.api import Api
from ironburst.adapters.google.cloud import Google
from ironburst.ports import LaunchRequest, Refused
from lab.google.server import Cloud
from tests.components.conftest import lab_value
from tests.components.google_stack import MUNGE_KEY, PROJECT, REGION, ZONES, cloud
from tests.components.projects import ROOT, cloud_project, done


@pytest.fixture
def world():
    world = Cloud(project=PROJECT, region=REGION, zones=ZONES)
    world.images["ib-1"] = "ironburst-lab-l4"
    yield world
    world.close()
    assert world.wrong == []


@pytest.fixture
def engine(tmp_path, world):
    """`engine("up", ...)` -> its finished process; `engine.declare(**changes)` changes the declaration."""
    settings = {"gcp:project": PROJECT, "gcp:region": REGION, "gcp:computeCustomEndpoint": world.url_of_api}
    declaration = lab_value() | {"cloud": cloud()}
    declaration["scheduler"]["munge_key"] = MUNGE_KEY
    return cloud_project(tmp_path, settings, declaration, HALL_KEY="k3y-of-the-hall")


def port(world):
    return Google(
        Api(PROJECT, credentials=AnonymousCredentials(), endpoint=world.url_of_api), REGION, wait=lambda _: None
    )


def launch(world, engine, token="t1", pool="l4"):
    """Two nodes, by the adapter, into the first place that the document has of a pool."""
    declared = document.parse(json.loads(done(engine("stack", "output", "cluster", "--json", "--show-secrets"))))
    place = declared.pool(pool).zones[0]
    request = LaunchRequest(
        token=token,
        launch="l",
        cluster="lab",
        pool=pool,
        zone=place.zone,
        market="on-demand",
        count=2,
        place=place.place.model_dump(),
        image_id=f"projects/{PROJECT}/global/images/ib-1",
        user_data="{}",
    )
    (made,) = port(world).launch_all([request])
    return made


def reads(world, account, name):
    """Whether the stack lets an account read an object."""
    world.iam.tokens[account] = account
    return not world.iam.refusal(account, "storage.objects.get", f"projects/_/buckets/training/objects/{name}")


def worst_cases(preview):
    """{pool or group: dollars an hour at worst}, as a preview says them."""
    said = re.findall(r"(?:burst pool|fixed group) (\S+), .*?: at worst ([\d,.]+) USD an hour", preview)
    return {name: float(usd.replace(",", "")) for name, usd in said}


def by_the_catalogue():
    """The same by arithmetic: nodes times the dearest price of their markets, declared or else the table's."""
    with (ROOT / "ironburst/catalog/data/google_machine_types.csv").open() as file:
        table = csv.DictReader(line for line in file if not line.startswith("#"))
        listed = {row["machine_type"]: row for row in table}
    declared, found = cloud(), {}
    for each in [*declared["pools"], *declared["groups"]]:
        kind, nodes = each["instance_type"], each.get("max_nodes") or each["count"]
        prices = []
        for market in each.get("markets", ["on-demand"]):
            key = market.replace("-", "_")
            prices.append(float(declared["price"].get(kind, {}).get(key) or listed[kind][f"usd_{key}"]))
        found[each["name"]] = round(nodes * max(prices), 2)
    return found


def test_a_stack_is_declared_launched_into_and_taken_away(engine, world):
    groups, pools = cloud()["groups"], cloud()["pools"]
    groups[0]["data"] = pools[0]["data"] = ["imagenet"]
    engine.declare(data={"imagenet": {"gs": "training/imagenet"}}, groups=groups, pools=pools)
    done(engine("stack", "init"))
    preview = done(engine("preview"))
    assert "HaVpnGateway" in preview and world.declared.ids() == set()
    assert worst_cases(preview) == by_the_catalogue() and len(by_the_catalogue()) == 3
    done(engine("up", "--yes", "--skip-preview"))
    made = world.declared.ids()
    assert f"projects/{PROJECT}/regions/{REGION}/subnetworks/ib-lab-nodes" in made and len(world.vms) == 2
    done(engine("preview", "--expect-no-changes"))
    done(engine("refresh", "--yes", "--expect-no-changes"))
    state = "".join(path.read_text() for path in (engine.folder / "state").rglob("*.json"))
    assert "k3y-of-the-hall" not in state

    nodes = launch(world, engine)
    assert len(nodes) == 2 and len(world.vms) == 4
    accounts = {each["email"] for vm in world.vms.values() for each in vm.raw.get("serviceAccounts", [])}
    assert accounts == {f"ib-lab--nodes-l4@{PROJECT}.iam.gserviceaccount.com"}
    assert reads(world, *accounts, "imagenet/1") and not reads(world, *accounts, "imagenet-21k/1")
    assert reads(world, f"ib-lab--fixed-fixed@{PROJECT}.iam.gserviceaccount.com", "imagenet/1")
    assert not reads(world, f"ib-lab-nodes@{PROJECT}.iam.gserviceaccount.com", "imagenet/1")
    # a destroy with rented nodes stops at their subnet; the controller's rights are still there, and it ends them
    stopped = engine("destroy", "--yes", "--skip-preview")
    assert stopped.returncode and "resourceInUseByAnotherResource" in stopped.stdout + stopped.stderr
    email = f"ib-lab-controller@{PROJECT}.iam.gserviceaccount.com"
    assert any(email in each.member and "compute.instances.delete" in each.permissions for each in world.iam.bindings)
    port(world).terminate([node.id for node in nodes])
    world.passes(1)
    done(engine("destroy", "--yes", "--skip-preview"))
    assert world.declared.ids() == set() and world.vms == {} == world.disks


@pytest.mark.slow
def test_what_somebody_takes_away_is_made_again_and_a_new_pool_moves_nothing(engine, world):
    engine.declare(groups=[])
    done(engine("stack", "init"))
    done(engine("up", "--yes", "--skip-preview"))
    before = world.declared.ids()
    firewalls = world.declared.held["gcp:compute/firewall:Firewall"]
    del firewalls[f"projects/{PROJECT}/global/firewalls/ib-lab-from-hall-a"]
    done(engine("up", "--yes", "--skip-preview", "--refresh"))
    assert world.declared.ids() == before
    more = {"name": "more", "instance_type": "g2-standard-96", "zones": ZONES, "max_nodes": 1, "markets": ["on-demand"]}
    engine.declare(pools=[*cloud()["pools"], more])
    said = done(engine("preview", "--diff"))
    assert "replace" not in said.lower() and "delete" not in said.lower()


def test_what_the_adapter_asks_for_is_allowed_to_the_controller_and_to_no_other_cluster(engine, world):
    """With the rights that the stack gives, as the stand-in judges them. Which name a condition sees of an instance
    that a call names by its number isn't sourced: a refusal is tried again by its name.
    """
    engine.declare(groups=[])
    done(engine("stack", "init"))
    done(engine("up", "--yes", "--skip-preview"))
    nodes = launch(world, engine)
    world.iam.tokens["c"] = f"ib-lab-controller@{PROJECT}.iam.gserviceaccount.com"

    class Signed(AnonymousCredentials):
        def before_request(self, request, method, url, headers):
            headers["Authorization"] = "Bearer c"

    controller = Google(Api(PROJECT, credentials=Signed(), endpoint=world.url_of_api), REGION, wait=lambda _: None)
    assert {each.id for each in controller.instances("lab")} == {node.id for node in nodes}
    world.assumed.condition_sees = "number"
    controller.terminate([nodes[0].id])
    world.assumed.condition_sees = "name"
    controller.terminate([nodes[1].id])
    world.passes(1)
    assert world.vms == {}
    other = launch(world, engine, "t2")
    for vm in world.vms.values():
        vm.raw["name"] = "x" + vm.raw["name"]
    with pytest.raises(Refused):
        controller.terminate([f"{node.zone}/x{node.id.split('/', 1)[1]}" for node in other])
    assert len(world.vms) == 2
