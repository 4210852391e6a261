"""The kinds of resources that the stand-in implements, by token, and those that it refuses with a reason."""

from __future__ import annotations

from lab.aws_plugin.resources import (
    compute,
    eks,
    iam,
    launch_template,
    links,
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
    *(rolesanywhere, links, eks),
)
RESOURCES: dict[str, Resource] = {spec.token: spec for module in MODULES for spec in module.SPECS}
CAPACITY_BLOCK = "aws:ec2/capacityBlockReservation:CapacityBlockReservation"
REFUSED = {
    CAPACITY_BLOCK: "it buys capacity on create: reference a capacity block by its id instead",
}
