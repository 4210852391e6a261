"""Baking images of rented nodes in Compute Engine: build instances, images, and the family that a pool boots of.

A build instance has no label ironburst-lease, by which the controller and its reaper know their instances, and no
service account: nothing on it can ask Google for anything. An image that is made is in no family; `publish` puts it
into its pool's, and takes newer ones out, for the newest of a family is what counts.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ironburst.adapters.answers import read
from ironburst.adapters.google import errors, launching
from ironburst.adapters.google.api import Api, Json, refused
from ironburst.adapters.google.cloud import Google
from ironburst.adapters.google.instances import Id, instance, tail
from ironburst.adapters.google.launches import Launches
from ironburst.ports import CloudError, Instance, OutcomeUnknown
from ironburst.ports.images import Build, Image

CALLS = {
    "disks": ("aggregatedList",),
    "images": ("delete", "get", "insert", "list", "patch"),
    "instances": ("stop",),
}
"""beside a controller's"""
ROLE, BUILD, IMAGE = "ironburst-role", "image-build", "image"
LONGEST_S = 4 * 3600
"""of a build instance: it powers itself off before"""
_NAME = 63
_STATES = {"PENDING": "pending", "READY": "available", "FAILED": "failed", "DELETING": "deregistered"}


class GoogleImages:
    """The Images (ironburst.ports.images) of one region."""

    def __init__(self, api: Api, region: str, *, wait: Callable[[float], object] = time.sleep):
        """`api`: with CALLS. `wait`: for tests."""
        self._api, self._region = api, region
        self._google, self._launches = Google(api, region, wait=wait), Launches(api, wait)

    def security_groups(self, place: Mapping[str, Any]) -> tuple[str, ...]:
        """The nodes' network tags, by which firewall rules know them."""
        return tuple(place.get("network_tags") or ())

    def launch(self, build: Build) -> str:
        """Start the build instance; its id. UnderWay: it is asked for, and not over."""
        (made,) = self._launches.launch(_launch(build), lambda: None)
        return made.id

    def instance(self, token: str) -> Instance | None:
        """The build instance of a token; None: it isn't shown."""
        found = self._google.by_token(token)
        if isinstance(found, CloudError):
            raise found
        return found[0] if found else None

    def builds(self, cluster: str) -> list[Instance]:
        """By the labels of their launch."""
        query = f'(labels.{ROLE} = "{BUILD}") (labels.{launching.CLUSTER} = "{launching.label_value(cluster)}")'
        found = self._api.listed_everywhere("instances", "instances", self._region, query)
        return [read("instances.aggregatedList", instance, raw) for raw in found]

    def console(self, instance_id: str) -> str:
        """The last MiB of its first serial port."""
        return self._google.console(instance_id)

    def stop(self, instance_id: str) -> None:
        """A clean shutdown; the machine stays as TERMINATED, with its disk."""
        id = Id.of(instance_id)
        self._api.call("instances", "stop", zone=id.zone, instance=id.number)

    def end(self, ids: list[str]) -> None:
        """Delete build instances, and their disks with them."""
        self._google.terminate(ids)

    def create(self, build: Build, instance_id: str, name: str, tags: dict[str, str]) -> str:
        """Make an image of the build instance's boot disk; it is in no family yet."""
        id = Id.of(instance_id)
        raw = self._api.call("instances", "get", zone=id.zone, instance=id.number)
        disk = read("instances.get", lambda raw: next(each["source"] for each in raw["disks"] if each["boot"]), raw)
        own = {launching.CLUSTER: build.cluster, launching.POOL: build.pool, ROLE: IMAGE}
        labels = {key: launching.label_value(value) for key, value in own.items()}
        said = {_key(key): launching.label_value(value)[:_NAME] for key, value in tags.items()}
        body = {
            "name": _name(name),
            "description": f"rented nodes of pool {build.pool}",
            "sourceDisk": disk.partition("/v1/")[2] or disk,
            "labels": dict(build.place.get("labels") or {}) | said | labels,
        }
        self._api.call("images", "insert", body=body)
        return self._reference(body["name"])

    def named(self, name: str) -> str | None:
        """Our image of that name; None: there is none."""
        found = self._get(self._api.project, _name(name))
        return self._reference(found["name"]) if found else None

    def image(self, image_id: str) -> Image | None:
        """An image and its state, or the newest of a family; None: there is none."""
        project, family, name = self._parts(image_id)
        found = self._newest(project, name) if family else self._get(project, name)
        return _image(found, project) if found else None

    def baked(self, cluster: str, pool: str) -> list[Image]:
        """By the labels that `create` sets."""
        wanted = {launching.CLUSTER: cluster, launching.POOL: pool, ROLE: IMAGE}
        query = " ".join(f'(labels.{key} = "{launching.label_value(value)}")' for key, value in wanted.items())
        return [_image(raw, self._api.project) for raw in self._listed(query)]

    def in_use(self, image_ids: Sequence[str]) -> set[str]:
        """Those that a disk with our labels was made of: an instance doesn't say its image, its boot disk does."""
        if not image_ids:
            return set()
        disks = self._api.listed_everywhere("disks", "disks", self._region, f"labels.{launching.CLUSTER}:*")
        sources = {str(each.get("sourceImage", "")).partition("/v1/")[2] for each in disks}
        return {image for image in image_ids if image in sources}

    def forget(self, image_id: str) -> list[str]:
        """Delete an image; Compute Engine keeps nothing of it."""
        _, _, name = self._parts(image_id)
        self._api.call("images", "delete", image=name)
        return []

    def published(self, parameter: str) -> str | None:
        """The image that the pool's family names; None: it has none."""
        return self._google.image_id(parameter)

    def publish(self, parameter: str, image_id: str) -> None:
        """Put an image into the pool's family, and out of it whatever is newer."""
        family, (_, _, name) = tail(parameter), self._parts(image_id)
        before = [str(raw["name"]) for raw in self._listed(f'family = "{family}"')]
        self._api.call("images", "patch", image=name, body={"family": family})
        for other in before:
            if other != name and self._newest_is_not(family, name):
                self._api.call("images", "patch", image=other, body={"family": ""})
        if self._newest_is_not(family, name):
            raise OutcomeUnknown(f"images.patch: {family} doesn't name {name} yet")

    def _newest_is_not(self, family: str, name: str) -> bool:
        found = self._newest(self._api.project, family)
        return found is None or found.get("name") != name

    def _newest(self, project: str, family: str) -> Json | None:
        return self._there("getFromFamily", project, family=family)

    def _get(self, project: str, name: str) -> Json | None:
        return self._there("get", project, image=name)

    def _there(self, method: str, project: str, **named: str) -> Json | None:
        try:
            return self._api.call("images", method, project=project, **named)
        except CloudError as error:
            if errors.is_missing(error, "images"):
                return None
            raise

    def _listed(self, query: str) -> list[Json]:
        return [raw for page in self._api.pages("images", "list", filter=query) for raw in page.get("items", [])]

    def _reference(self, name: str) -> str:
        return f"projects/{self._api.project}/global/images/{name}"

    def _parts(self, image_id: str) -> tuple[str, bool, str]:
        """Project, whether it is a family, and its name."""
        found = re.fullmatch(r"(?:projects/([^/]+)/global/images/)?(family/)?([a-z][-a-z0-9]*)", image_id)
        if not found:
            raise refused(f"{image_id!r} names no image (projects/PROJECT/global/images/NAME)")
        return found[1] or self._api.project, bool(found[2]), found[3]


def _name(name: str) -> str:
    """A name as images have it: small letters, 63 at most; of a longer one the end is a hash of it all."""
    small = re.sub(r"[^a-z0-9-]", "-", name.lower())
    if len(small) <= _NAME:
        return small
    return f"{small[: _NAME - 9]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _key(key: str) -> str:
    return re.sub(r"[^a-z0-9_-]", "-", key.lower())[:_NAME]


def _launch(build: Build) -> launching.Launch:
    """As a launch of one node: on another type than the pool's it has neither its cards, its disks nor its capacity."""
    place = dict(build.place) | {"machine_type": build.instance_type, "max_run_s": LONGEST_S, "service_account": ""}
    place |= {"boot_disk_gb": build.root_gb, "boot_disk_mb_s": build.root_mb_s, "placement_policy": ""}
    if not build.as_nodes:
        place |= {"network_interfaces": place["network_interfaces"][:1], "local_ssds": 0, "boot_disk_mb_s": None}
        place |= {"boot_disk_type": "pd-balanced", "reservation": "", "reservation_bound": False}
    made = launching.of(build.request(BUILD, place))
    properties = made.body["instanceProperties"]
    boot = properties["disks"][0]["initializeParams"]
    for labelled in (properties, boot):
        labelled["labels"] = {key: value for key, value in labelled["labels"].items() if key != launching.LEASE}
        labelled["labels"] |= {ROLE: BUILD}
    return made


def _image(raw: Json, project: str) -> Image:
    def made(raw: Json) -> Image:
        moment = str(raw.get("creationTimestamp") or "")
        when = datetime.fromisoformat(moment).astimezone(UTC).isoformat() if moment else ""
        return Image(
            id=f"projects/{project}/global/images/{raw['name']}",
            state=_STATES.get(raw.get("status", "READY"), "pending"),
            root_device="boot",
            root_gb=int(raw.get("diskSizeGb") or 0),
            made=when,
        )

    found: Image = read("images.get", made, raw)
    return found
