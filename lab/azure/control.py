"""The lab's switchboard (lab/switchboard.py) of Azure, where an instance is GROUP/NAME/VMID, a secret VAULT/NAME and a
stock image one of the marketplace or of a gallery, and what else an operator does there once:

| call | body | answer |
|---|---|---|
| POST /lab/identities | {"header", "principal", "owner"}: who has tokens of the identity endpoint | {} |
"""

from __future__ import annotations

from collections.abc import Iterable
from email.utils import formatdate
from typing import Any, ClassVar

from lab.azure.key_vault import KeyVault
from lab.azure.metadata import Metadata
from lab.azure.server import Cloud
from lab.azure.world import Json
from lab.switchboard import Switchboard, put


class AzureControl(Switchboard):
    """Of one Cloud, its metadata service and its vaults."""

    models: ClassVar = {"spot": "Spot", "on-demand": "Regular"}

    def __init__(self, address: tuple[str, int], cloud: Cloud, metadata: Metadata, vaults: KeyVault):
        self.metadata, self.vaults = metadata, vaults
        super().__init__(address, cloud)

    def within(self, zone: str) -> str:
        return zone.partition("-")[2]

    def zone(self, within: str) -> str:
        return "-".join(filter(None, (self.cloud.region, within)))

    def called(self) -> Iterable[str]:
        return (each.name for each in self.cloud.calls)

    def get_health(self, _: Json) -> Any:
        return {"url": self.cloud.url, "instances": len(self.cloud.vms)}

    def post_interrupt(self, body: Json) -> Any:
        group, name, number = body["instance_id"].split("/")
        vm = self.cloud.vms.get(self.cloud.vm_id(group, name).lower())
        if vm is None or vm.properties["vmId"] != number:
            raise LookupError(f"there is no instance {body['instance_id']}")
        at_s = self.cloud.now() + body["notice_s"]
        self.metadata.schedule("Preempt", vm, formatdate(at_s, usegmt=True))
        self.cloud.after(body["notice_s"], lambda: self.cloud.evict(vm))
        return {}

    def post_images(self, body: Json) -> Any:
        name = body["name"]
        if name.startswith("/"):
            raw = {"id": name, "name": name.rpartition("/")[2], "location": self.cloud.region}
            self.cloud.images[name.lower()] = raw | {"properties": {"provisioningState": "Succeeded"}}
        else:
            sku, _, version = name.rpartition(":")
            self.cloud.market.setdefault(sku, []).append(version)
        return {"image_id": name}

    def post_secrets(self, body: Json) -> Any:
        put(self.vaults.held, body["name"], body["value"])
        return {}

    def post_identities(self, body: Json) -> Any:
        self.cloud.identities.headers[body["header"]] = body["principal"]
        if body.get("owner"):
            self.cloud.identities.owners.add(body["principal"])
        return {}

    def get_instances(self, _: Json) -> Any:
        return [
            {
                "instance_id": f"{vm.group.lower()}/{vm.name}/{vm.properties['vmId']}",
                "instance_type": vm.size,
                "zone": self.zone(vm.zone),
                "market": self.market(vm.priority),
                "state": "stopping" if vm.properties["provisioningState"] == "Deleting" else vm.power or "pending",
            }
            for vm in self.cloud.vms.values()
        ]

    def get_leftovers(self, _: Json) -> Any:
        """Kind -> names; kinds without any are left out."""
        declared = {
            token.rpartition(":")[2]: sorted(there) for token, there in self.cloud.declared.held.items() if there
        }
        own = {"image versions": sorted(self.cloud.images), "secrets": sorted(self.vaults.held)}
        return {kind: names for kind, names in {**self.cloud.left_over(), **own, **declared}.items() if names}
