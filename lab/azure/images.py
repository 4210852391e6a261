"""Images: versions in galleries, made of machines that were generalized; and those of the marketplace."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lab.azure.description import Call
from lab.azure.world import Json, Refusal, Vm, World, image_name

PATH = ("resourceGroupName", "galleryName", "galleryImageName", "galleryImageVersionName")


class Images:
    """The calls of one subscription. `page`: makes a page of a list; `accepted`: an answer of what goes on."""

    def __init__(self, world: World, page: Callable[[Call, Iterable[Json]], Json]):
        self.world, self._page = world, page
        self.known = {
            "gallery_images.get": self._definition,
            "gallery_image_versions.create_or_update": self._put,
            "gallery_image_versions.delete": self._delete,
            "gallery_image_versions.get": self._one,
            "gallery_image_versions.list_by_gallery_image": self._list,
            "gallery_image_versions.update": self._patch,
            "virtual_machine_images.list": self._market,
            "virtual_machines.deallocate": self._deallocate,
            "virtual_machines.generalize": self._generalize,
        }

    def _id(self, call: Call) -> str:
        group, gallery, image, *version = (call.path[name] for name in PATH if name in call.path)
        kind = ("providers", "Microsoft.Compute", "galleries", gallery, "images", image)
        return self.world.id("resourceGroups", group, *kind, *(("versions", version[0]) if version else ()))

    def _there(self, call: Call) -> Json:
        found = self.world.images.get(self._id(call).lower())
        if found is None:
            name = "/".join(call.path[part] for part in PATH[1:] if part in call.path)
            text = f"The Resource 'Microsoft.Compute/galleries/images/versions/{name}' under resource group"
            raise Refusal(404, "ResourceNotFound", f"{text} '{call.path[PATH[0]]}' was not found.")
        return found

    def _definition(self, call: Call) -> Json:
        id = self._id(call)
        if id.lower() not in self.world.definitions and not self._versions(id):
            image, group = call.path["galleryImageName"], call.path["resourceGroupName"]
            text = f"The Resource 'Microsoft.Compute/galleries/images/{image}' under resource group '{group}'"
            raise Refusal(404, "ResourceNotFound", f"{text} was not found.")
        said = {"osType": "Linux", "osState": "Generalized", "hyperVGeneration": "V2", "architecture": "x64"}
        said |= {"identifier": {"publisher": "ironburst", "offer": "nodes", "sku": id.rpartition("/")[2]}}
        said |= self.world.definitions.get(id.lower(), {})
        return {"id": id, "name": id.rpartition("/")[2], "location": self.world.region, "properties": said}

    def _versions(self, id: str) -> list[Json]:
        return [raw for key, raw in self.world.images.items() if key.startswith(f"{id.lower()}/versions/")]

    def _list(self, call: Call) -> Json:
        found = self._versions(self._id(call))
        if not found:
            self._definition(call)  # which refuses where there is none
        return self._page(call, found)

    def _one(self, call: Call) -> Json:
        return self._there(call)

    def _put(self, call: Call) -> Json:
        id, properties = self._id(call), call.body["properties"]
        source = properties["storageProfile"].get("source", {}).get("virtualMachineId", "").lower()
        vm = self.world.vms.get(source)
        if vm is None:
            raise Refusal(404, "NotFound", f"The entity {source} was not found.")
        if not vm.generalized:
            raise Refusal(409, "OperationNotAllowed", f"{vm.name} isn't generalized: it can't be captured.")
        profile = properties.get("publishingProfile", {}) | {"publishedDate": self.world.stamp()}
        size = {"sizeInGB": vm.properties["storageProfile"]["osDisk"]["diskSizeGB"]}
        raw = call.body | {"id": id, "name": id.rpartition("/")[2]}
        raw["properties"] = properties | {"provisioningState": "Creating", "publishingProfile": profile}
        raw["properties"]["storageProfile"] = properties["storageProfile"] | {"osDiskImage": size}
        self.world.images[id.lower()] = raw
        name = image_name({"id": id})

        def ready(well: bool) -> None:
            raw["properties"]["provisioningState"] = "Succeeded" if well else "Failed"

        self.world.after(self.world.delays.image_s, lambda: self.world.machines.bake(vm, name, ready))
        return raw

    def _patch(self, call: Call) -> Json:
        raw = self._there(call)
        said = call.body["properties"]["publishingProfile"]
        raw["properties"]["publishingProfile"] = raw["properties"].get("publishingProfile", {}) | said
        raw["properties"]["provisioningState"] = "Updating"
        self._until(self.world.delays.create_s, raw)
        return raw

    def _until(self, seconds: float, raw: Json) -> None:
        self.world.after(seconds, lambda: raw["properties"].update(provisioningState="Succeeded"))

    def _delete(self, call: Call) -> None:
        self.world.images.pop(self._there(call)["id"].lower(), None)

    def _market(self, call: Call) -> list[Json]:
        name = ":".join(call.path[part] for part in ("publisherName", "offer", "skus"))
        if name not in self.world.market:
            raise Refusal(404, "NotFound", f"Artifact: VMImage was not found: {name}")
        return [{"name": version, "location": self.world.region} for version in self.world.market[name]]

    # ---- machines that images are made of
    def _vm(self, call: Call) -> Vm:
        return self.world.vm(call.path["resourceGroupName"], call.path["vmName"])

    def _deallocate(self, call: Call) -> None:
        self.world.deallocates(self._vm(call))

    def _generalize(self, call: Call) -> None:
        vm = self._vm(call)
        if vm.power not in ("deallocated", "stopped"):
            raise Refusal(409, "OperationNotAllowed", f"Cannot generalize {vm.name}: it isn't stopped.")
        vm.generalized = True
