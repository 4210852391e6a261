"""The kinds of resources that the stand-in implements, by token, and those that it refuses with a reason."""

from __future__ import annotations

from lab.aws_plugin.resources import (
    compute,
    iam,
    launch_template,
    messaging,
    monitoring,
    network,
    rolesanywhere,
    routing,
    security,
    storage,
    vpn,
)
from lab.aws_plugin.spec import Resource

MODULES = (
    *(network, routing, security, compute, launch_template, vpn, iam, messaging, monitoring, storage),
    rolesanywhere,
)
RESOURCES: dict[str, Resource] = {spec.token: spec for module in MODULES for spec in module.SPECS}
DIRECT_CONNECT = "aws:directconnect/gatewayAssociation:GatewayAssociation"
CAPACITY_BLOCK = "aws:ec2/capacityBlockReservation:CapacityBlockReservation"
REFUSED = {
    DIRECT_CONNECT: "the lab's AWS has no Direct Connect gateway: use hall_link kind vpn in the lab's stack",
    CAPACITY_BLOCK: "it buys capacity on create: reference a capacity block by its id instead",
}
