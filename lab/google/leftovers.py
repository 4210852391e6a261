"""What a project of the stand-in still holds."""

from __future__ import annotations

from lab.google.server import Cloud


def leftovers(cloud: Cloud) -> dict[str, list[str]]:
    """Kind -> names; kinds without any are left out. Images aren't counted: in the lab they are given."""
    vms = list(cloud.vms.values())
    found = {
        "instances": [vm.name for vm in vms],
        "disks": [url.rpartition("/")[2] for url in cloud.disks],
        "network interfaces": [f"{vm.name}/{nic['name']}" for vm in vms for nic in vm.raw["networkInterfaces"]],
        "addresses": [str(each.get("name", each)) for each in cloud.static_addresses],
        "reservations in use": [vm.reservation for vm in vms if vm.reservation],
        "operations under way": [each["name"] for each in cloud.operations if each["status"] != "DONE"],
        "secrets": list(cloud.secrets),
    }
    declared = {
        token.rpartition(":")[2]: sorted(resources) for token, resources in cloud.declared.held.items() if resources
    }
    return {kind: names for kind, names in {**found, **declared}.items() if names}
