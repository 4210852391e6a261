"""Doctor against the lab's Azure: each check is seen ok, and made to fail."""

import re
from datetime import UTC, datetime

import pytest

from ironburst import ports
from ironburst.adapters.azure.api import Api
from ironburst.adapters.azure.cloud import Azure
from ironburst.adapters.azure.doctor import AzureSubscription
from ironburst.config.azure.models import AzureCloud
from ironburst.config.load import from_value
from ironburst.doctor.azure import capacity, images, orphans, providers, quotas, reaper, rights
from ironburst.doctor.azure import examine as azure
from ironburst.doctor.azure.site import AzureSite
from ironburst.nodes import azure as names
from lab.azure import server
from lab.azure.world import Reservation, Size, Workflow
from tests import azure_stack
from tests.contract.cloud_benches import AnyToken

CHECKS = (providers, rights, quotas, capacity, images, orphans, reaper)
ND, NC = "Standard_ND96isr_H100_v5", "Standard_NC64as_T4_v3"
UBUNTU = "Canonical:ubuntu-24_04-lts:server"


class Made:
    """A subscription as `up` and bakes leave it."""

    def __init__(self):
        cloud = self.cloud = server.Cloud(seed=7)
        cloud.sizes |= {ND: Size(able={"LowPriorityCapable": "True"}), NC: Size("Standard NCASv3 Family", 64)}
        cloud.quota |= {
            "standardNDSH100v5Family": 0,
            "Standard NCASv3 Family": 256,
            "cores": 512,
            "lowPriorityCores": 200,
        }
        cloud.spot_usd[ND] = 30.0
        cloud.market[UBUNTU] = ["24.04.202611010"]
        for pool in ("h100", "t4"):
            definition = names.image(cloud.subscription, "lab", pool)
            cloud.definitions[definition.lower()] = {}
            raw = {"id": f"{definition}/versions/1.0.0", "name": "1.0.0", "location": "eastus"}
            stored = {"osDiskImage": {"sizeInGB": 200}}
            raw |= {"properties": {"provisioningState": "Succeeded", "storageProfile": stored}}
            cloud.images[raw["id"].lower()] = raw
        group = names.resource_group("lab")
        cloud.groups[group] = {"id": cloud.id("resourceGroups", group), "name": group, "location": "eastus"} | {
            "tags": {"ironburst:cluster": "lab"},
            "properties": {"provisioningState": "Succeeded"},
        }
        cloud.workflows[names.reaper("lab")] = Workflow(runs=[(cloud.now() - 120, "Succeeded"), (0.0, "Failed")])
        held = ("resourceGroups", "capacity", "providers", "Microsoft.Compute", "capacityReservationGroups", "t4")
        self.reservation = cloud.id(*held)
        cloud.reservations["t4"] = Reservation(NC, "1", 4)

    def site(self, change=lambda cloud: None):
        value = azure_stack.value()
        value["cloud"]["subscription"] = self.cloud.subscription
        change(value["cloud"])
        config = from_value(value)
        subscription = AzureSubscription(
            self.cloud.subscription,
            "eastus",
            credential=AnyToken(),
            endpoint=self.cloud.url,
            prices_url=self.cloud.url_of_prices,
        )
        now = datetime.fromtimestamp(self.cloud.now(), UTC)
        return AzureSite(config, config.cloud_by_class(AzureCloud), subscription, now)


@pytest.fixture
def made():
    it = Made()
    yield it
    it.cloud.close()
    assert it.cloud.wrong == []


def shown(findings):
    return "\n".join(f"{each.state} {each.check}: {each.looked_at}: {each.seen} -> {each.todo}" for each in findings)


def test_a_subscription_in_order_is_ok_in_every_check(made):
    findings = list(azure.check(made.site()))
    assert {each.state for each in findings} == {"ok"}, shown(findings)
    assert {each.check for each in findings} == {module.CHECK for module in CHECKS}


def test_nothing_is_changed(made):
    list(azure.check(made.site()))
    reading = re.compile(r"\w+\.(get|list\w*|permissions|runs|workflow)")
    assert [each.name for each in made.cloud.calls if not reading.fullmatch(each.name)] == []


def pool(number=0, **changes):
    return lambda cloud: cloud["pools"][number].update(changes)


def reserved(made, **more):
    return pool(1, capacity_reservation_group=made.reservation, **more)


def rented(made, end):
    cloud = made.cloud
    subnet = (
        f"/subscriptions/{cloud.subscription}/resourceGroups/x/providers/Microsoft.Network/virtualNetworks/v/subnets/s"
    )
    place = {"vm_size": ND, "subnet_id": subnet, "os_disk_type": "Premium_LRS", "os_disk_gb": 200}
    place |= {"ssh_public_key": "ssh-ed25519 AAAA x"}
    image = names.image(cloud.subscription, "lab", "h100") + "/versions/1.0.0"
    asked = ports.LaunchRequest("ib-1", "l1", "lab", "h100", "eastus-1", "spot", 1, place, image, "")
    api = Api(cloud.subscription, credential=AnyToken(), endpoint=cloud.url)
    Azure(api, "eastus", wait=cloud.passes).launch_all([asked])
    cloud.passes(5)
    (vm,) = cloud.vms.values()
    end(vm)


def keeps(made):
    """Its disk and its interface are nobody's, and its group has no machine."""

    def end(vm):
        vm.properties["storageProfile"]["osDisk"]["deleteOption"] = "Detach"
        vm.properties["networkProfile"]["networkInterfaces"][0]["properties"]["deleteOption"] = "Detach"
        made.cloud.remove(vm)

    rented(made, end)


def of_image(made, pool="h100"):
    return made.cloud.images[f"{names.image(made.cloud.subscription, 'lab', pool)}/versions/1.0.0".lower()]


def defined(**changed):
    def act(made):
        made.cloud.definitions[names.image(made.cloud.subscription, "lab", "h100").lower()] |= changed

    return act


def quota(name, limit, usage=0):
    return lambda made: (made.cloud.quota.update({name: limit}), made.cloud.in_use.update({name: usage}))


def workflow(**changed):
    return lambda made: made.cloud.workflows.update({names.reaper("lab"): Workflow(**changed)})


def size(name, **changed):
    return lambda made: made.cloud.sizes.update({name: Size(**changed)})


# what is broken: how, or what is declared; which check says it; its state; of what is seen, of what to do
NOTHING = lambda made: None  # noqa: E731
BROKEN = {
    "a resource provider": (
        lambda made: made.cloud.providers.update({"Microsoft.Logic": "NotRegistered"}),
        None,
        providers,
        "fail",
        "it is NotRegistered",
        "az provider register --namespace Microsoft.Logic",
    ),
    "a right to look": (
        lambda made: made.cloud.refused.append("Microsoft.Compute/skus/*"),
        None,
        rights,
        "fail",
        "lacks Microsoft.Compute/skus/read",
        "ironburst rights",
    ),
    "a right to launch": (
        lambda made: setattr(made.cloud, "actions", ["*/read", "*/action"]),
        None,
        rights,
        "fail",
        "Microsoft.Compute/disks/delete",
        "ironburst rights",
    ),
    "a quota of a family": (
        quota("Standard NCASv3 Family", 64),
        None,
        quotas,
        "fail",
        "64 vCPUs, of which 0 are in use, and 192 may be wanted",
        "ask for 192 vCPUs of standardncasv3family",
    ),
    "a quota that was never granted": (quota("lowPriorityCores", 0), None, quotas, "fail", "0 vCPUs", "spot vCPUs"),
    "a quota in use": (quota("cores", 512, 400), None, quotas, "warn", "of which 400", "ask for 192"),
    "a size that the region lacks": (
        lambda made: made.cloud.sizes.pop(ND),
        None,
        capacity,
        "fail",
        f"eastus has no {ND}",
        "az vm list-skus",
    ),
    "a size that a zone lacks": (
        size(NC, family="Standard NCASv3 Family", cores=64, zones=("2",)),
        None,
        capacity,
        "fail",
        "zones that do: 2",
        "declare such a zone",
    ),
    "a size that the subscription isn't offered": (
        size(ND, restricted="NotAvailableForSubscription"),
        None,
        capacity,
        "fail",
        "NotAvailableForSubscription",
        "support request",
    ),
    "a size that isn't spot": (
        size(ND, able={"LowPriorityCapable": "False"}),
        None,
        capacity,
        "fail",
        "isn't offered as spot",
        "leave spot out",
    ),
    "a reservation that isn't there": (
        lambda made: made.cloud.reservations.clear(),
        reserved,
        capacity,
        "fail",
        "isn't there",
        "az capacity reservation group list",
    ),
    "a reservation of another type": (
        lambda made: made.cloud.reservations.update(t4=Reservation(NC, "1", 4, "Open")),
        reserved,
        capacity,
        "fail",
        "of the type Open",
        "as what it is",
    ),
    "a reservation of another size": (
        lambda made: made.cloud.reservations.update(t4=Reservation(ND, "1", 4)),
        reserved,
        capacity,
        "fail",
        "reserves no",
        "have some reserved",
    ),
    "a small reservation": (
        lambda made: made.cloud.reservations.update(t4=Reservation(NC, "1", 1)),
        reserved,
        capacity,
        "warn",
        "has 1 places, and 2",
        "enlarged",
    ),
    "spot that isn't sold": (
        lambda made: made.cloud.spot_usd.clear(),
        None,
        capacity,
        "fail",
        "sold as spot",
        "leave spot out",
    ),
    "spot above its ceiling": (
        lambda made: made.cloud.spot_usd.update({ND: 61.0}),
        None,
        capacity,
        "warn",
        "61 an hour now, above 60",
        "spot_max",
    ),
    "a pool without an image": (
        lambda made: made.cloud.images.clear(),
        None,
        images,
        "fail",
        "no version that counts",
        "ironburst image h100",
    ),
    "a group's image": (lambda made: made.cloud.market.clear(), None, images, "fail", "isn't there", "group fixed"),
    "an image that isn't ready": (
        lambda made: of_image(made)["properties"].update(provisioningState="Creating"),
        None,
        images,
        "fail",
        "no version that counts",
        "bake",
    ),
    "an image of another architecture": (
        defined(architecture="Arm64"),
        None,
        images,
        "fail",
        "of aarch64",
        "bake",
    ),
    "an image of the first generation": (
        defined(hyperVGeneration="V1"),
        None,
        images,
        "fail",
        "generation 1",
        "bake",
    ),
    "an image above the disk": (
        lambda made: of_image(made)["properties"]["storageProfile"]["osDiskImage"].update(sizeInGB=300),
        None,
        images,
        "fail",
        "needs 300 GB",
        "root_disk_gb: 300",
    ),
    "a disk of nobody": (keeps, None, orphans, "warn", "no machine has it", "az group delete --name ib-1"),
    "a group without a machine": (keeps, None, orphans, "warn", "it has no machine", "az group delete --name ib-1"),
    "a machine that was stopped": (
        lambda made: rented(made, made.cloud.stops),
        None,
        orphans,
        "warn",
        "it is stopped",
        "az group delete",
    ),
    "no reaper": (lambda made: made.cloud.workflows.clear(), None, reaper, "fail", "isn't there", "pulumi up"),
    "a reaper that is off": (workflow(state="Disabled"), None, reaper, "fail", "it is Disabled", "enable it"),
    "a reaper that never ran": (workflow(), None, reaper, "fail", "never ran", "trigger"),
    "a reaper that has stopped": (
        lambda made: workflow(runs=[(made.cloud.now() - 3600, "Succeeded")])(made),
        None,
        reaper,
        "fail",
        "60 minutes ago",
        "trigger",
    ),
    "a reaper that may not": (
        lambda made: workflow(runs=[(made.cloud.now() - 60, "Failed")])(made),
        None,
        reaper,
        "fail",
        "ended as Failed",
        "role",
    ),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_each_check_finds_what_is_broken_and_says_what_to_do(made, broken):
    breaks, change, module, state, seen, todo = BROKEN[broken]
    breaks(made)
    change = change(made) if change is reserved else change or (lambda cloud: None)
    findings = list(module.check(made.site(change)))
    wrong = [each for each in findings if each.state != "ok"]
    assert any(each.state == state and seen in each.seen and todo in each.todo for each in wrong), shown(findings)


def test_every_check_is_broken_once():
    assert {row[2] for row in BROKEN.values()} == set(CHECKS)


def test_a_reservation_that_fits_is_ok_and_asks_no_quota(made):
    site = made.site(reserved(made))
    (found,) = [each for each in capacity.check(site) if each.looked_at == "reservations of pool t4"]
    assert (found.state, found.seen) == ("ok", "4 places, 0 in use")
    assert quotas.needs(site, site.subscription.sizes())["standardncasv3family"] == 64, "the group's alone"


@pytest.mark.parametrize("name", ["usage.list", "gallery_images.get", "disks.list", "operations.runs"])
def test_a_question_without_a_right_is_unknown_and_hides_no_other(made, name):
    made.cloud.fault(name, 403, reason="AuthorizationFailed", times=-1)
    findings = list(azure.check(made.site()))
    assert {"unknown", "ok"} <= {each.state for each in findings}, shown(findings)
    assert all("right to look" in each.todo for each in findings if each.state == "unknown")


def test_nobody_there_is_one_finding(made):
    site = made.site()
    made.cloud.close()
    (finding,) = azure.check(site)
    assert (finding.check, finding.state, finding.todo) == ("providers", "unknown", "run again when it answers")
