"""What identifies a host, and the specs of the two kinds: bare metal in the hall, instances in the cloud."""

from __future__ import annotations

import json
import uuid
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from lab import names
from lab.hosts import fabric, hardware, systems
from lab.hosts.hardware import Hardware
from lab.system import LabError


@dataclass(frozen=True)
class HostSpec:
    """All that identifies a host. It is stored when the host is defined or first started; `destroy` forgets it."""

    name: str  # bare metal: head, dgx01; cloud: the instance id
    address: str  # IPv4, in 10.78.0.0/16 (bare metal) or 10.90.0.0/16 (cloud)
    kind: str  # "bare_metal" or "cloud"
    hostname: str
    mac: str
    serial: str
    uuid: str
    gateway: str
    hardware: Hardware
    prefix_length: int = 16
    system: str = systems.USUAL  # what its disk holds (systems.py), under a baked image, too
    image: str | None = None  # id of a baked image (images/<id>), None: none
    shared: bool = True  # /shared is bound in (stand-in for NFS); False for fault tests
    environment: dict[str, str] = field(default_factory=dict)  # systemd's DefaultEnvironment
    # {name: address} for /etc/hosts: the lab's stand-in for the hall's DNS
    hosts: dict[str, str] = field(default_factory=dict)
    # {path without leading /: text} put on the disk at every start; "#!..." is executable, "-> target" a symbolic link
    files: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """As it is stored."""
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> HostSpec:
        """What `to_json` wrote."""
        values = json.loads(text)
        return cls(**(values | {"hardware": Hardware(**values["hardware"])}))


def bare_metal(name: str, address: str | None = None, **changes: Any) -> HostSpec:
    """Spec of a bare-metal host with the published identity of its name; `changes` override fields of HostSpec."""
    address = address or names.ADDRESSES.get(name)
    if address is None:
        known = ", ".join(names.ADDRESSES)
        raise LabError(
            f"bare-metal host {name!r} has no known address: give one in 10.78.0.0/16, or use one of {known}"
        )
    host = HostSpec(
        name=name,
        address=address,
        kind="bare_metal",
        hostname=name,
        mac=names.mac_of(name),
        serial=names.serial_of(name),
        uuid=names.uuid_of(name),
        gateway=names.HALL_GATEWAY,
        hardware=hardware.bare_metal(name),
        hosts=names.ADDRESSES,
        files=fabric.host_files(name, names.ADDRESSES),
    )
    return replace(host, **changes)


def google(name: str, address: str, machine_type: str, image: str | None = None) -> HostSpec:
    """Spec of an instance of the lab's Google Cloud, which is known by its name and has it as its hostname."""
    its_uuid = names.uuid_of(name)
    return HostSpec(
        name=name,
        address=address,
        kind="cloud",
        hostname=name,
        mac="42:01:" + ":".join(f"{int(part):02x}" for part in address.split(".")),  # as Google makes it
        serial=f"GoogleCloud-{its_uuid.replace('-', '').upper()}",
        uuid=its_uuid,
        gateway=names.VPC_GATEWAY,
        hardware=hardware.instance(machine_type),
        image=image,
        environment=names.GOOGLE_VARIABLES,
    )


def azure(name: str, address: str, size: str, vm_id: str, key: str, image: str | None = None) -> HostSpec:
    """Spec of a machine of the lab's Azure, which has its name as its hostname, and its vmId as SMBIOS has it. A stock
    image lets `key` in, as an organization's own may, beside the one that the machine was made with.
    """
    organization = json.dumps({"ssh_authorized_keys": [key]})
    return HostSpec(
        name=name,
        address=address,
        kind="cloud",
        hostname=name,
        mac=names.mac_of(name),
        serial="-".join(f"{number % 10_000:04}" for number in uuid.UUID(vm_id).fields),
        uuid=vm_id,
        gateway=names.VPC_GATEWAY,
        hardware=hardware.instance(size),
        image=image,
        environment=names.AZURE_VARIABLES,
        files={} if image else {"etc/cloud/cloud.cfg.d/90-organization.cfg": organization},
    )


def cloud(instance_id: str, address: str, instance_type: str, image: str | None = None, **changes: Any) -> HostSpec:
    """Spec of a cloud instance: hostname ip-A-B-C-D, knows no other host, and gets the AWS endpoint in systemd's
    environment.
    """
    host = HostSpec(
        name=instance_id,
        address=address,
        kind="cloud",
        hostname=names.cloud_hostname(address),
        mac=names.mac_of(instance_id),
        serial=names.serial_of(instance_id),
        uuid=names.uuid_of(instance_id),
        gateway=names.VPC_GATEWAY,
        hardware=hardware.instance(instance_type),
        image=image,
        environment={"AWS_ENDPOINT_URL": names.AWS_ENDPOINT},
    )
    return replace(host, **changes)
