"""Baking images of rented nodes in Azure: build machines, and versions of the pool's image in the stack's gallery.

A build machine is in a resource group of its own, as a launch is, without the tag ironburst:lease, by which the
controller knows its machines, and without an identity; the group says until when it may stay. A version that is made is
left out of `latest`; `publish` puts it in, and newer ones out.
"""

from __future__ import annotations

import copy
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from ironburst.adapters.answers import read
from ironburst.adapters.azure import errors, image_ids, launching
from ironburst.adapters.azure.api import Api, Json, refused
from ironburst.adapters.azure.instances import Id, instance
from ironburst.adapters.azure.launches import GroupLaunches
from ironburst.adapters.azure.sizes import Sizes
from ironburst.nodes import azure as names
from ironburst.nodes import naming
from ironburst.ports import Cloud, CloudError, Instance, OutcomeUnknown
from ironburst.ports.images import Build, Image

BUILD, IMAGE = "image-build", "image"
LONGEST_S = 4 * 3600
"""of a build machine, which the reaper takes then"""
_VERSIONS = "gallery_image_versions"
_LIST = f"{_VERSIONS}.list_by_gallery_image"
_MARKET_GB = 30  # of the disk of Azure's own Linux images; a larger one refuses the build machine
_STATES = {"Creating": "pending", "Updating": "available", "Succeeded": "available", "Deleting": "deregistered"}


def newest(api: Api, reference: str) -> str | None:
    """The id of the newest version that counts; None: there is none. Raises CloudError."""
    subscription, *path, version = parts(reference)
    if version:
        raise refused(f"{reference!r} is no id of an image in a gallery (.../galleries/GALLERY/images/NAME)")
    if subscription != api.subscription:
        raise refused(f"{reference!r}: images are baked in the subscription {api.subscription}")
    found = [each for each in versions(api, path) if read(_LIST, _counts, each)]
    return str(max(found, key=lambda each: read(_LIST, _number, each))["id"]) if found else None


def versions(api: Api, path: Sequence[str]) -> list[Json]:
    """Of an image, by resource group, gallery and name; none where it isn't there. Raises CloudError."""
    try:
        return api.all(_LIST, *path)
    except CloudError as error:
        if any(errors.is_missing(error, name) for name in path):
            return []
        raise


def parts(reference: str) -> list[str]:
    """Subscription, group, gallery, image, version (empty: none)."""
    found = re.fullmatch(image_ids.GALLERY, reference, re.IGNORECASE)
    if not found:
        raise refused(f"{reference!r} is no id of an image in a gallery (.../galleries/GALLERY/images/NAME)")
    return [part or "" for part in found.groups()]


def _counts(version: Json) -> bool:
    properties = version["properties"]
    held_back = (properties.get("publishingProfile") or {}).get("excludeFromLatest", False)
    return properties["provisioningState"] in ("Succeeded", "Updating") and not held_back


def _number(version: Json) -> tuple[int, ...]:
    return tuple(int(part) for part in version["name"].split("."))


class AzureImages:
    """The Images (ironburst.ports.images) of one region."""

    def __init__(
        self,
        api: Api,
        region: str,
        cloud: Cloud,
        *,
        wait: Callable[[float], object] = time.sleep,
        now: Callable[[], float] = time.time,
    ):
        """`cloud`: the same subscription's. `wait`, `now`: for tests."""
        self._api, self._region, self._cloud, self._now = api, region, cloud, now
        self._launches = GroupLaunches(api, Sizes(api, region, now), wait, now)
        self._made: dict[str, str] = {}  # name of an image -> the id of the image that it is a version of

    def security_groups(self, place: Mapping[str, Any]) -> tuple[str, ...]:
        """That of the nodes' network interfaces; their subnet has its own."""
        return tuple(filter(None, (place.get("security_group_id"),)))

    def launch(self, build: Build) -> str:
        """Start the build machine; its id. UnderWay: it is asked for, and not over."""
        (raw,) = self._launches.launch(self._launch(build))
        found: Instance = read("virtual_machines.get", instance, raw)
        return found.id

    def _launch(self, build: Build) -> launching.GroupLaunch:
        """As a launch of one node: of another size than the pool's it has not its capacity, and never its fabric."""
        place = dict(build.place) | {"vm_size": build.instance_type, "infiniband": False, "identity_id": ""}
        place |= {"os_disk_gb": build.root_gb} | ({} if build.as_nodes else {"capacity_reservation_group": ""})
        made = launching.of(build.request(BUILD, place), self._api.subscription)
        bodies = tuple(_of_build(body, build.base_image) for body in made.bodies)
        until = {launching.UNTIL: launching.moment(self._now() + LONGEST_S)}
        return replace(made, tags=_tags_of_build(made.tags) | until, bodies=bodies)

    def instance(self, token: str) -> Instance | None:
        """The build machine of a token; None: it isn't shown."""
        found = self._cloud.by_token(token)  # of a list, which doesn't show its power
        if isinstance(found, CloudError):
            raise found
        return next(iter(self._cloud.described([each.id for each in found])), None)

    def builds(self, cluster: str) -> list[Instance]:
        """By the tags of their launch."""
        wanted = {naming.ROLE_TAG: BUILD, naming.CLUSTER_TAG: cluster}
        call = "virtual_machines.list_all"
        found = [each for each in self._api.all(call) if wanted.items() <= (each.get("tags") or {}).items()]
        return self._cloud.described([read(call, instance, raw).id for raw in found])

    def console(self, instance_id: str) -> str:
        """What boot diagnostics have kept of its serial console."""
        return self._cloud.console(instance_id)

    def stop(self, instance_id: str) -> None:
        """A clean shutdown, and deallocated: only so is its disk taken for an image."""
        id = Id.of(instance_id)
        self._api.delete("virtual_machines.begin_deallocate", id.group, id.name)

    def end(self, ids: list[str]) -> None:
        """Delete build machines, with their groups."""
        self._cloud.terminate(ids)

    def create(self, build: Build, instance_id: str, name: str, tags: dict[str, str]) -> str:
        """Make a version of the pool's image of the stopped machine; it is none of `latest` yet."""
        id = Id.of(instance_id)
        self._made[name] = definition = names.image(self._api.subscription, build.cluster, build.pool)
        self._api.act("virtual_machines.generalize", id.group, id.name)
        machine = f"/subscriptions/{self._api.subscription}/resourceGroups/{id.group}/providers/Microsoft.Compute"
        own = {naming.CLUSTER_TAG: build.cluster, naming.POOL_TAG: build.pool, naming.ROLE_TAG: IMAGE}
        body = {
            "location": self._region,
            "tags": dict(build.place.get("tags") or {}) | tags | own | {"Name": name},
            "properties": {
                "publishingProfile": {"excludeFromLatest": True, "targetRegions": [{"name": self._region}]},
                "storageProfile": {"source": {"virtualMachineId": f"{machine}/virtualMachines/{id.name}"}},
            },
        }
        _, *path, _ = parts(definition)
        self._api.put(f"{_VERSIONS}.begin_create_or_update", *path, image_ids.version(name), body)
        return f"{definition}/versions/{image_ids.version(name)}"

    def named(self, name: str) -> str | None:
        """Our image of that name, which this bake has asked for; None: there is none."""
        id = f"{self._made[name]}/versions/{image_ids.version(name)}" if name in self._made else ""
        return id if id and self.image(id) else None

    def image(self, image_id: str) -> Image | None:
        """A version of an image, the newest of one, or one of the marketplace; None: there is none."""
        if image_ids.of_market(image_id):
            return self._of_market(image_id)
        subscription, *path, version = parts(image_id)
        if not version:
            found = newest(self._api, image_id) if subscription == self._api.subscription else None
            return self.image(found) if found else None
        try:
            raw = self._api.get(f"{_VERSIONS}.get", *path, version)
        except CloudError as error:
            if any(errors.is_missing(error, name) for name in (*path, version)):
                return None
            raise
        return _image(raw)

    def _of_market(self, image_id: str) -> Image | None:
        """What its disk needs isn't in the list: that of Azure's Linux images is counted."""
        publisher, offer, sku, version = image_id.split(":")
        listed = "virtual_machine_images.list"
        try:
            found = self._api.several(listed, self._region, publisher, offer, sku)
        except CloudError as error:
            if any(errors.is_missing(error, name) for name in (publisher, offer, sku)):
                return None
            raise
        known = sorted((str(read(listed, lambda raw: raw["name"], each)) for each in found), key=_by_number)
        chosen = known[-1] if known and version == "latest" else version
        if chosen not in known:
            return None
        return Image(":".join((publisher, offer, sku, chosen)), "available", root_device="os", root_gb=_MARKET_GB)

    def baked(self, cluster: str, pool: str) -> list[Image]:
        """By the tags that `create` sets."""
        wanted = {naming.CLUSTER_TAG: cluster, naming.POOL_TAG: pool, naming.ROLE_TAG: IMAGE}
        _, *path, _ = parts(names.image(self._api.subscription, cluster, pool))
        found = versions(self._api, path)
        return [_image(each) for each in found if wanted.items() <= (each.get("tags") or {}).items()]

    def in_use(self, image_ids: Sequence[str]) -> set[str]:
        """Those that a machine was made of."""
        if not image_ids:
            return set()
        call = "virtual_machines.list_all"
        sources = {read(call, instance, raw).image_id.lower() for raw in self._api.all(call)}
        return {image for image in image_ids if image.lower() in sources}

    def forget(self, image_id: str) -> list[str]:
        """Delete a version; Azure keeps nothing of it."""
        _, *path = parts(image_id)
        self._api.delete(f"{_VERSIONS}.begin_delete", *path)
        return []

    def published(self, parameter: str) -> str | None:
        """The version of the pool's image that counts; None: it has none."""
        return newest(self._api, parameter)

    def publish(self, parameter: str, image_id: str) -> None:
        """Let a version count, and none that is newer."""
        _, *path, _ = parts(parameter)
        wanted = _number({"name": image_id.rpartition("/")[2]})
        for each in versions(self._api, path):
            number = read(_LIST, _number, each)
            counts = bool(read(_LIST, _counts, each))
            if (number == wanted and not counts) or (number > wanted and counts):
                said = read(_LIST, lambda raw: {"source": raw["properties"]["storageProfile"]["source"]}, each)
                changed = {"publishingProfile": {"excludeFromLatest": number != wanted}, "storageProfile": said}
                self._api.put(f"{_VERSIONS}.begin_update", *path, each["name"], {"properties": changed})
        if (seen := self.published(parameter)) is None or seen.lower() != image_id.lower():
            raise OutcomeUnknown(f"{_VERSIONS}.begin_update: {parameter} doesn't name {image_id} yet")


def _by_number(version: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdigit() else 0 for part in version.split("."))


def _of_build(body: Mapping[str, Any], image: str) -> dict[str, Any]:
    """A machine's body without what makes it a lease's; of an image of the marketplace."""
    made: dict[str, Any] = copy.deepcopy(dict(body))
    made["tags"] = _tags_of_build(made["tags"])
    for nic in made["properties"]["networkProfile"]["networkInterfaceConfigurations"]:
        nic["tags"] = _tags_of_build(nic["tags"])
    if image_ids.of_market(image):
        keys = ("publisher", "offer", "sku", "version")
        made["properties"]["storageProfile"]["imageReference"] = dict(zip(keys, image.split(":"), strict=True))
    return made


def _tags_of_build(tags: Mapping[str, str]) -> dict[str, str]:
    return {key: text for key, text in tags.items() if key != naming.LEASE_TAG} | {naming.ROLE_TAG: BUILD}


def _image(raw: Json) -> Image:
    def made(raw: Json) -> Image:
        properties = raw["properties"]
        moment = str((properties.get("publishingProfile") or {}).get("publishedDate") or "")
        disk = (properties.get("storageProfile") or {}).get("osDiskImage") or {}
        return Image(
            id=raw["id"],
            state=_STATES.get(properties["provisioningState"], "failed"),
            root_device="os",
            root_gb=int(disk.get("sizeInGB") or 0),
            made=datetime.fromisoformat(moment).astimezone(UTC).isoformat() if moment else "",
        )

    found: Image = read(f"{_VERSIONS}.get", made, raw)
    return found
