"""Small EC2 actions and checks that moto lacks and our components use: instance placement, dependencies, filters."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from moto.ec2.models.core import TaggedEC2Resource
from moto.ec2.models.instances import Instance
from moto.ec2.models.nat_gateways import NatGatewayBackend
from moto.ec2.models.security_groups import SecurityGroupBackend
from moto.ec2.models.subnets import SubnetBackend
from moto.ec2.models.vpcs import VPCBackend
from moto.ec2.utils import generic_filter

from lab.aws.faults import Ec2Error
from lab.aws.launch_spec import Params
from lab.aws.placement import need_group

Replace = Callable[[Any, str, Any], None]


# ---- stopped instances
def stopped(backend: Any, instance_id: str) -> Any:
    instance = backend.get_instance(instance_id)
    if instance.state != "stopped":
        raise Ec2Error("IncorrectInstanceState", f"The instance '{instance_id}' is not in the 'stopped' state.")
    return instance


def modify_instance_placement(backend: Any, p: Params) -> Params:
    instance = stopped(backend, p["InstanceId"])
    if p.get("GroupName"):
        need_group(backend, p["GroupName"])
    instance.placement.group_name = p.get("GroupName", instance.placement.group_name)
    instance.placement.tenancy = p.get("Tenancy", instance.placement.tenancy)
    return {"Return": True}


def modify_instance_capacity_reservation_attributes(backend: Any, p: Params) -> Params:
    stopped(backend, p["InstanceId"]).capacity_reservation_specification = p["CapacityReservationSpecification"]
    return {"Return": True}


# ---- what is in use can't be deleted
def before(replace: Replace, owner: Any, name: str, check: Callable[..., None]) -> None:
    """Put a check, which raises EC2's refusal, in front of a moto method."""
    method = owner.__dict__[name]

    def call(backend: Any, *args: Any, **kwargs: Any) -> Any:
        check(backend, *args, **kwargs)
        return method(backend, *args, **kwargs)

    replace(owner, name, call)


def guard(replace: Replace, owner: Any, name: str, blockers: Callable[..., list[str]]) -> None:
    """DependencyViolation of a moto method while `blockers` names anything."""

    def check(backend: Any, *args: Any, **kwargs: Any) -> None:
        if dependents := blockers(backend, *args, **kwargs):
            raise Ec2Error(
                "DependencyViolation",
                f"{(list(args) + list(kwargs.values()))[-1]} has dependencies and cannot be deleted: "
                + ", ".join(dependents[:3]),
            )

    before(replace, owner, name, check)


def in_subnet(backend: Any, subnet_id: str) -> list[str]:
    gateways = [gateway for gateway in backend.nat_gateways.values() if gateway.state != "deleted"]
    return [
        *(interface.id for interface in backend.enis.values() if interface.subnet.id == subnet_id),
        *(gateway.id for gateway in gateways if gateway.subnet_id == subnet_id),
        *(e.id for e in backend.transit_gateway_attachments.values() if subnet_id in getattr(e, "subnet_ids", [])),
    ]


def using_group(backend: Any, _name: str | None = None, group_id: str | None = None) -> list[str]:
    return [e.id for e in backend.enis.values() if any(group_id == g.id for g in e.group_set)]


def in_vpc(backend: Any, vpc_id: str) -> list[str]:
    return (
        [g.id for g in backend.internet_gateways.values() if g.vpc and g.vpc.id == vpc_id]
        + [e.id for e in backend.vpc_end_points.values() if e.vpc_id == vpc_id and e.state != "deleted"]
        + [g.id for g in backend.groups.get(vpc_id, {}).values() if g.name != "default"]
    )


# ---- NAT gateways and endpoints
def all_or_nothing(create: Callable[..., Any]) -> Callable[..., Any]:
    """moto makes the interface, and leaves it behind where the address is another gateway's."""

    def call(backend: Any, *args: Any, **kwargs: Any) -> Any:
        before = set(backend.enis)
        try:
            return create(backend, *args, **kwargs)
        except Exception:
            for made in set(backend.enis) - before:
                del backend.enis[made]
            raise

    return call


def delete_nat_gateway(backend: Any, nat_gateway_id: str) -> Any:
    """moto's leaves the interface behind, and the address bound to it."""
    gateway = backend.nat_gateways.get(nat_gateway_id)
    if not gateway:
        raise Ec2Error("NatGatewayNotFound", f"NatGateway {nat_gateway_id} was not found")
    for address in backend.addresses:
        if address.eni is gateway._eni:
            backend.disassociate_address(association_id=address.association_id)
    backend.enis.pop(gateway._eni.id, None)
    gateway.state = "deleted"
    return gateway


def typed(create: Callable[..., Any]) -> Callable[..., Any]:
    """CreateVpcEndpoint without a type makes a Gateway endpoint; moto would be unable to delete it."""

    def call(backend: Any, vpc_id: str, service_name: str, endpoint_type: str | None, *args: Any, **kwargs: Any) -> Any:
        return create(backend, vpc_id, service_name, endpoint_type or "Gateway", *args, **kwargs)

    return call


# ---- what is shown
def by_tags(describe: Callable[..., Any]) -> Callable[..., Any]:
    """moto takes no notice of this call's filters of tags, and shows what everybody has."""
    signature = inspect.signature(describe)

    def call(backend: Any, *args: Any, **kwargs: Any) -> Any:
        asked = signature.bind(backend, *args, **kwargs).arguments.get("filters") or {}
        of_tags = {name: values for name, values in asked.items() if name.startswith("tag")}
        return generic_filter(of_tags, describe(backend, *args, **kwargs))

    return call


def own_tags(resource: Any) -> list[dict[str, str]]:
    """moto looks through the tags of every resource, for each network card of each instance of a list."""
    return [{"key": key, "value": value} for key, value in resource.ec2_backend.tags.get(resource.id, {}).items()]


def until_its_end(name: str) -> property:
    """Of an ended instance DescribeInstances shows neither address nor network cards."""
    shown = Instance.__dict__[name].fget
    nothing: list[Any] | None = [] if name == "network_interfaces" else None
    return property(lambda instance: nothing if instance.state == "terminated" else shown(instance))


def patch(replace: Replace) -> None:
    """Install the checks and read-only attributes; actions are installed by the caller from ACTIONS."""
    replace(TaggedEC2Resource, "get_tags", own_tags)
    for name in ("network_interfaces", "private_ip_address", "public_ip_address"):
        replace(Instance, name, until_its_end(name))
    replace(NatGatewayBackend, "create_nat_gateway", all_or_nothing(NatGatewayBackend.create_nat_gateway))
    replace(NatGatewayBackend, "delete_nat_gateway", delete_nat_gateway)
    replace(NatGatewayBackend, "describe_nat_gateways", by_tags(NatGatewayBackend.describe_nat_gateways))
    replace(VPCBackend, "create_vpc_endpoint", typed(VPCBackend.create_vpc_endpoint))
    guard(replace, SubnetBackend, "delete_subnet", in_subnet)
    guard(replace, SecurityGroupBackend, "delete_security_group", using_group)
    guard(replace, VPCBackend, "delete_vpc", in_vpc)


ACTIONS = {f.__name__: f for f in (modify_instance_placement, modify_instance_capacity_reservation_attributes)}
