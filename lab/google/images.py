"""Images, and the disks that they are made of and into; machines that are stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from lab.google.description import Call
from lab.google.vm import Json
from lab.google.world import Refusal, World

Zonal = Iterable[tuple[str, Json]]


class Images:
    """Of one project. `everywhere`: an aggregated list; `fits`: whether a call's filter finds a resource."""

    def __init__(
        self,
        world: World,
        everywhere: Callable[[Call, str, Zonal], Json],
        fits: Callable[[Call, Json], bool],
        page: Callable[[Call, list[Any]], tuple[list[Any], Json]],
    ):
        self.world, self._everywhere, self._fits, self._page = world, everywhere, fits, page
        self.known: dict[str, Callable[[Call], Json]] = {
            "disks.aggregatedList": self._disks,
            "images.delete": self._delete,
            "images.get": self._get,
            "images.getFromFamily": self._newest,
            "images.insert": self._insert,
            "images.list": self._list,
            "images.patch": self._patch,
            "instances.stop": self._stop,
        }

    def _shown(self, name: str) -> Json:
        facts = self.world.image_facts.get(name, {})
        family = self.world.images[name]
        shown = {"kind": "compute#image", "id": "4711", "name": name, "status": "READY", "diskSizeGb": "30"}
        shown |= {"creationTimestamp": "2026-11-01T00:00:00.000-08:00", "architecture": "X86_64"}
        shown["selfLink"] = self.world.url("global", "images", name)
        return shown | ({"family": family} if family else {}) | facts

    def _found(self, call: Call) -> str:
        name = call.parameters["image"]
        if name not in self.world.images:
            raise self.world.missing("global", "images", name)
        return name

    def _get(self, call: Call) -> Json:
        return self._shown(self._found(call))

    def _newest(self, call: Call) -> Json:
        family = call.parameters["family"]
        for name, of in reversed(self.world.images.items()):
            if of == family:
                return self._shown(name)
        raise self.world.missing("global", "images", "family", family)

    def _list(self, call: Call) -> Json:
        found = [raw for raw in map(self._shown, self.world.images) if self._fits(call, raw)]
        page, more = self._page(call, found)
        return {"kind": "compute#imageList"} | more | ({"items": page} if page else {})

    def _insert(self, call: Call) -> Json:
        body, world = call.body, self.world
        name = body.get("name", "")
        if name in world.images:
            link = f"projects/{world.project}/global/images/{name}"
            raise Refusal(409, "alreadyExists", f"The resource '{link}' already exists")
        source = next((url for url in world.disks if url.endswith(body.get("sourceDisk", "?"))), None)
        if source is None:
            text = f"Invalid value for field 'resource.sourceDisk': '{body.get('sourceDisk')}'. It isn't there."
            raise Refusal(400, "invalid", text)
        vm = world.vms.get(world.disks[source])
        if vm and vm.raw["status"] == "RUNNING":
            text = f"The disk resource '{source}' is already being used by '{vm.raw['selfLink']}'"
            raise Refusal(400, "resourceInUseByAnotherResource", text)
        size = str(world.made_of.get(source, {}).get("diskSizeGb", "10"))
        world.images[name] = body.get("family", "")
        kept = {key: body[key] for key in ("labels", "description") if key in body}
        facts = {"status": "PENDING", "diskSizeGb": size, "creationTimestamp": world.stamp(), **kept}
        world.image_facts[name] = facts

        def ready(well: bool) -> None:
            facts["status"] = "READY" if well else "FAILED"

        def copies() -> None:
            world.machines.bake(vm, name, ready) if vm else ready(True)

        world.after(world.delays.image_s, copies)
        return self._operation("insert", name)

    def _patch(self, call: Call) -> Json:
        name = self._found(call)
        if wrong := call.body.keys() - {"family", "description", "deprecated"}:
            raise Refusal(400, "invalid", f"Invalid value for field 'resource.{min(wrong)}': it can't be changed")
        self.world.images[name] = call.body.get("family", self.world.images[name])
        return self._operation("patch", name)

    def _delete(self, call: Call) -> Json:
        name = self._found(call)
        del self.world.images[name]
        self.world.image_facts.pop(name, None)
        return self._operation("delete", name)

    def _operation(self, kind: str, name: str) -> Json:
        number = self.world.number()
        said = {"kind": "compute#operation", "id": number, "name": f"operation-{number}", "operationType": kind}
        return said | {"status": "RUNNING", "targetLink": self.world.url("global", "images", name)}

    def _stop(self, call: Call) -> Json:
        vm = self.world.find(call.parameters["zone"], call.parameters["instance"])
        operation = self.world.operation("stop", vm.zone, vm)
        vm.raw["status"] = "STOPPING"

        def stopped() -> None:
            self.world.stops(vm)
            self.world.done(operation)

        self.world.after(self.world.delays.delete_s, stopped)
        return operation

    def _disks(self, call: Call) -> Json:
        return {"kind": "compute#diskAggregatedList"} | self._everywhere(call, "disks", self._every_disk())

    def _every_disk(self) -> Zonal:
        for url, number in self.world.disks.items():
            zone, name = url.rpartition("/zones/")[2].split("/")[0], url.rpartition("/")[2]
            made, vm = self.world.made_of.get(url, {}), self.world.vms.get(number)
            raw: Json = {"kind": "compute#disk", "name": name, "selfLink": url, "status": "READY"}
            raw |= {"sizeGb": str(made.get("diskSizeGb", "10")), "labels": made.get("labels", {})}
            raw |= {"zone": self.world.url("zones", zone), "users": [vm.raw["selfLink"]] if vm else []}
            if image := made.get("sourceImage"):
                raw["sourceImage"] = self.world.url("global", "images", image.rpartition("/")[2])
            yield zone, raw
