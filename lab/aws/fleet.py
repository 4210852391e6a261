"""CreateFleet of type instant."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, NamedTuple

from lab.aws.capacity import Capacity
from lab.aws.faults import Ec2Error
from lab.aws.launch_spec import Params, spec_of, zone_of

Launch = Callable[[Any, Params, int, int], Any]
TOO_LITTLE = ("InsufficientInstanceCapacity", "There is not enough capacity for this request.")


def create_fleet(launch: Launch, capacity: Capacity, backend: Any, p: Params) -> Params:
    """An instant fleet: pool after pool until the target is reached; what a pool could not give is in Errors."""
    if p.get("Type") != "instant":
        raise Ec2Error("InvalidParameterValue", "only fleets of type instant are emulated")
    asked, fleet = p["TargetCapacitySpecification"], {"FleetId": f"fleet-{uuid.uuid4()}", "Errors": [], "Instances": []}
    total, spot, fixed = (
        int(asked.get(k) or 0) for k in ("TotalTargetCapacity", "SpotTargetCapacity", "OnDemandTargetCapacity")
    )
    spot += total - spot - fixed if asked.get("DefaultTargetCapacityType") == "spot" else 0
    for market, goal in (("on-demand", total - spot), ("spot", spot)):
        if goal > 0:
            options = p.get("SpotOptions" if market == "spot" else "OnDemandOptions") or {}
            fill(launch, capacity, backend, p, market, goal, options, fleet)
    return fleet


class Offer(NamedTuple):
    """One launch template with one override, in one market."""

    spec: Params
    priority: float
    weight: float
    free: int
    shown: Params  # what the reply says of it


def offers(capacity: Capacity, backend: Any, p: Params, market: str) -> list[Offer]:
    """What the fleet may launch in this market, in the order given."""
    tags = [t for t in p.get("TagSpecifications", []) if t["ResourceType"] == "instance"]
    offered = []
    for config in p["LaunchTemplateConfigs"]:
        template = config["LaunchTemplateSpecification"]
        for over in config.get("Overrides") or [{}]:
            own = {k: over[k] for k in ("InstanceType", "SubnetId", "ImageId", "Placement") if k in over}
            spec = spec_of(backend, {"LaunchTemplate": template, **own, "TagSpecifications": tags})
            if over.get("AvailabilityZone"):
                spec["Placement"] = {**(spec.get("Placement") or {}), "AvailabilityZone": over["AvailabilityZone"]}
            if market == "spot":
                spec["InstanceMarketOptions"] = {"MarketType": "spot"}
            free = capacity.free(backend, spec["InstanceType"], zone_of(backend, spec)[1], market)
            template_and_overrides = {"LaunchTemplateSpecification": template, "Overrides": over}
            shown = {"LaunchTemplateAndOverrides": template_and_overrides, "Lifecycle": market}
            priority, weight = float(over.get("Priority", 1e9)), float(over.get("WeightedCapacity") or 1)
            offered.append(Offer(spec, priority, weight, free, shown))
    return offered


def fill(
    launch: Launch,
    capacity: Capacity,
    backend: Any,
    p: Params,
    market: str,
    goal: float,
    options: Params,
    fleet: Params,
) -> None:
    """One market's share of a fleet, appended to the reply."""
    offered = offers(capacity, backend, p, market)
    strategy = options.get("AllocationStrategy", "lowest-price")  # prices aren't modelled: the given order counts
    if "prioritized" in strategy:
        offered.sort(key=lambda offer: offer.priority)
    elif "capacity-optimized" in strategy:
        offered.sort(key=lambda offer: -offer.free)
    most = sum(offer.free * offer.weight for offer in offered)
    too_few = most < float(options.get("MinTargetCapacity") or 0)
    for offer in offered:
        if goal <= 0:
            break
        want = int(-(-goal // offer.weight))
        try:
            got = [] if too_few else launch(backend, offer.spec, 1, want).instances
            problem = TOO_LITTLE if len(got) < want else None
        except Ec2Error as error:
            got, problem = [], (error.error_code, error.message)
        goal -= len(got) * offer.weight
        for instance in got:
            instance.add_tags({"aws:ec2:fleet-id": fleet["FleetId"]})
        if got:
            launched = {"InstanceIds": [i.id for i in got], "InstanceType": offer.spec["InstanceType"]}
            fleet["Instances"].append({**offer.shown, **launched})
        if problem:
            fleet["Errors"].append({**offer.shown, "ErrorCode": problem[0], "ErrorMessage": problem[1]})
