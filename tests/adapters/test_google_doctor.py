"""Doctor against the lab's Google Cloud: each check is seen ok, and made to fail."""

import re
from datetime import UTC, datetime

import pytest
from google.auth.credentials import AnonymousCredentials

from ironburst import ports
from ironburst.adapters.google.api import Api
from ironburst.adapters.google.cloud import Google
from ironburst.adapters.google.doctor import GoogleProject
from ironburst.config.google.models import GoogleCloud
from ironburst.config.load import from_value
from ironburst.doctor.google import capacity, images, orphans, quotas, rights, services
from ironburst.doctor.google import examine as google
from ironburst.doctor.google.site import GoogleSite
from lab.google import server
from tests import google_stack

CHECKS = (services, rights, quotas, capacity, images, orphans)
ZONE, KIND, FAMILY = "us-central1-a", "a3-highgpu-8g", "ironburst-lab--h100"


class Made:
    """A project as `up` and a bake leave it."""

    def __init__(self):
        cloud = self.cloud = server.Cloud(seed=7)
        cloud.images |= {
            "ironburst-lab-h100-1": FAMILY,
            "ironburst-lab-l4-1": "ironburst-lab--l4",
            "ubuntu-1": "ubuntu",
        }
        cloud.metrics |= {"GPUS_ALL_REGIONS": (64, 8), "NVIDIA_L4_GPUS": (16, 0), "SSD_TOTAL_GB": (8000, 500)}
        cloud.metrics |= {"PREEMPTIBLE_NVIDIA_H100_GPUS": (32, 0), "PREEMPTIBLE_NVIDIA_L4_GPUS": (8, 0)}
        cloud.spot_usd |= {KIND: 50.6, "g2-standard-48": 2.2}
        cloud.reservations["ours"] = (ZONE, KIND, 4)

    def site(self, change=lambda cloud: None):
        value = google_stack.value()
        change(value["cloud"])
        config = from_value(value)
        root = self.cloud.url_of_api.removesuffix("compute/v1/")
        project = GoogleProject("lab-project", "us-central1", credentials=AnonymousCredentials(), endpoint=root)
        return GoogleSite(config, config.cloud_by_class(GoogleCloud), project, datetime(2026, 11, 28, tzinfo=UTC))


@pytest.fixture
def made():
    it = Made()
    yield it
    it.cloud.close()
    assert it.cloud.wrong == []


def shown(findings):
    return "\n".join(f"{each.state} {each.check}: {each.looked_at}: {each.seen} -> {each.todo}" for each in findings)


def test_a_project_in_order_is_ok_in_every_check(made):
    findings = list(google.check(made.site()))
    assert {each.state for each in findings} == {"ok"}, shown(findings)
    assert {each.check for each in findings} == {module.CHECK for module in CHECKS}


def test_nothing_is_changed(made):
    list(google.check(made.site()))
    reading = re.compile(r"compute\.\w+\.(get|list|aggregatedList|getFromFamily|capacityHistory)")
    assert [each.id for each in made.cloud.calls if not reading.fullmatch(each.id)] == []


def pool(number=0, **changes):
    return lambda cloud: cloud["pools"][number].update(changes)


def reserved(**more):
    return pool(markets=["on-demand"], reservation="ours", **more)


def rented(made, end):
    place = {"machine_type": KIND, "network_interfaces": [{"subnetwork": "n"}], "boot_disk_type": "pd-ssd"}
    place |= {"boot_disk_gb": 9}
    asked = ports.LaunchRequest("ib-1", "l1", "lab", "h100", ZONE, "on-demand", 1, place, "ubuntu-1", "")
    api = Api("lab-project", credentials=AnonymousCredentials(), endpoint=made.cloud.url_of_api)
    Google(api, "us-central1", wait=made.cloud.passes).launch_all([asked])
    made.cloud.passes(5)
    (vm,) = made.cloud.vms.values()
    end(vm)


def keeps_its_disk(made):
    def end(vm):
        vm.raw["disks"][0]["autoDelete"] = False
        made.cloud.remove(vm)

    rented(made, end)


def address(made):
    labels = {"ironburst-cluster": "lab"}
    made.cloud.static_addresses.append({"name": "vpn-1", "status": "RESERVED", "labels": labels})


def facts(name, **changed):
    return lambda made: made.cloud.image_facts.setdefault(name, {}).update(changed)


def of_metric(name, limit, usage=0):
    return lambda made: made.cloud.metrics.update({name: (limit, usage)})


# what is broken: how, or what is declared; which check says it; its state; of what is seen, of what to do
NOTHING = lambda made: None  # noqa: E731
BROKEN = {
    "an API": (
        lambda made: made.cloud.disabled.add("secretmanager.googleapis.com"),
        None,
        services,
        "fail",
        "isn't enabled",
        "gcloud services enable secretmanager.googleapis.com",
    ),
    "a right to look": (
        lambda made: made.cloud.refused.add("compute.regions.get"),
        None,
        rights,
        "fail",
        "compute.regions.get",
        "service account",
    ),
    "a right to launch": (
        lambda made: made.cloud.refused.add("compute.instances.create"),
        None,
        rights,
        "fail",
        "compute.instances.create",
        "service account",
    ),
    "a quota of a model": (
        of_metric("PREEMPTIBLE_NVIDIA_H100_GPUS", 8),
        None,
        quotas,
        "fail",
        "PREEMPTIBLE_NVIDIA_H100_GPUS is 8",
        "ask for 16",
    ),
    "a quota in use": (
        of_metric("NVIDIA_L4_GPUS", 16, 12),
        None,
        quotas,
        "warn",
        "of which 12 are in use",
        "NVIDIA_L4_GPUS",
    ),
    "GPUs of a new project": (
        of_metric("GPUS_ALL_REGIONS", 0),
        None,
        quotas,
        "fail",
        "GPUS_ALL_REGIONS is 0",
        "in the project",
    ),
    "disks": (of_metric("SSD_TOTAL_GB", 500), None, quotas, "fail", "SSD_TOTAL_GB is 500", "ask for"),
    "a model without a metric": (
        NOTHING,
        pool(instance_type="a3-ultragpu-8g", root_disk_type=None),
        quotas,
        "unknown",
        "no metric",
        "look whether",
    ),
    "a zone that isn't there": (
        NOTHING,
        lambda cloud: cloud["network"].update(zones=["us-central1-a", "us-central1-x"]),
        capacity,
        "fail",
        "no such zone",
        "us-central1-b",
    ),
    "a region that is down": (
        lambda made: setattr(made.cloud, "status", "DOWN"),
        None,
        capacity,
        "warn",
        "DOWN",
        "status page",
    ),
    "a type that a zone lacks": (
        lambda made: made.cloud.not_offered.add((ZONE, KIND)),
        None,
        capacity,
        "fail",
        f"{ZONE} has no {KIND}",
        "machine-types list",
    ),
    "a reservation that isn't there": (
        lambda made: made.cloud.reservations.clear(),
        reserved(),
        capacity,
        "fail",
        "no such reservation",
        "reservations list",
    ),
    "a reservation of another type": (
        lambda made: made.cloud.reservations.update(ours=(ZONE, "a2-highgpu-8g", 4)),
        reserved(),
        capacity,
        "fail",
        "of a2-highgpu-8g",
        "declare that type",
    ),
    "an open reservation": (
        lambda made: made.cloud.reservation_facts.update(ours={"specificReservationRequired": False}),
        reserved(),
        capacity,
        "warn",
        "without naming it",
        "--require-specific",
    ),
    "a reservation to come": (
        lambda made: made.cloud.reservation_facts.update(ours={"status": "CREATING"}),
        reserved(),
        capacity,
        "warn",
        "CREATING",
        "wait",
    ),
    "a small reservation": (
        lambda made: made.cloud.reservations.update(ours=(ZONE, KIND, 1)),
        reserved(),
        capacity,
        "warn",
        "has 1 machines, and 2",
        "enlarged",
    ),
    "spot that isn't sold": (
        lambda made: made.cloud.spot_usd.clear(),
        None,
        capacity,
        "fail",
        "isn't sold as spot",
        "leave spot out",
    ),
    "spot above its ceiling": (
        lambda made: made.cloud.spot_usd.update({KIND: 61.0}),
        None,
        capacity,
        "warn",
        "61 an hour now, above 60",
        "spot_max",
    ),
    "a pool without an image": (
        lambda made: made.cloud.images.pop("ironburst-lab-h100-1"),
        None,
        images,
        "fail",
        "isn't there",
        "ironburst image h100",
    ),
    "a group's image": (
        lambda made: made.cloud.images.pop("ubuntu-1"),
        None,
        images,
        "fail",
        "isn't there",
        "group fixed",
    ),
    "an image that isn't ready": (
        facts("ironburst-lab-h100-1", status="PENDING"),
        None,
        images,
        "fail",
        "is PENDING",
        "bake",
    ),
    "an image of another architecture": (
        facts("ironburst-lab-h100-1", architecture="ARM64"),
        None,
        images,
        "fail",
        "of aarch64",
        "bake",
    ),
    "an image above the disk": (
        facts("ironburst-lab-h100-1", diskSizeGb="300"),
        None,
        images,
        "fail",
        "needs 300 GB",
        "root_disk_gb: 300",
    ),
    "a disk of nobody": (keeps_its_disk, None, orphans, "warn", "no machine has it", "gcloud compute disks delete"),
    "a machine that was stopped": (
        lambda made: rented(made, made.cloud.stops),
        None,
        orphans,
        "warn",
        "it is stopped",
        "gcloud compute instances delete",
    ),
    "an address of nobody": (address, None, orphans, "warn", "nothing has it", "gcloud compute addresses delete"),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_each_check_finds_what_is_broken_and_says_what_to_do(made, broken):
    breaks, change, module, state, seen, todo = BROKEN[broken]
    breaks(made)
    findings = list(module.check(made.site(change or (lambda cloud: None))))
    wrong = [each for each in findings if each.state != "ok"]
    assert any(each.state == state and seen in each.seen and todo in each.todo for each in wrong), shown(findings)


def test_every_check_is_broken_once():
    assert {row[2] for row in BROKEN.values()} == set(CHECKS)


@pytest.mark.parametrize("name", ["regions.get", "images.getFromFamily", "disks.aggregatedList"])
def test_a_question_without_a_right_is_unknown_and_hides_no_other(made, name):
    made.cloud.fault(name, 403, reason="forbidden", times=-1)
    findings = list(google.check(made.site()))
    assert {"unknown", "ok"} <= {each.state for each in findings}, shown(findings)
    assert all("right to look" in each.todo for each in findings if each.state == "unknown")


def test_nobody_there_is_one_finding(made):
    site = made.site()
    made.cloud.close()
    (finding,) = google.check(site)
    assert (finding.check, finding.state, finding.todo) == ("services", "unknown", "run again when it answers")
