"""CreateFleet of type instant."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from lab.aws.capacity import Capacity
from lab.aws.faults import Ec2Error
from lab.aws.launch_spec import Params, spec_of, zone_of

Launch = Callable[[Any, Params, int, int], Any]


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
    pools = []
    tags = [t for t in p.get("TagSpecifications", []) if t["ResourceType"] == "instance"]
    for config in p["LaunchTemplateConfigs"]:
        for over in config.get("Overrides") or [{}]:
            spec = spec_of(
                backend,
                {
                    "LaunchTemplate": config["LaunchTemplateSpecification"],
                    **{k: over[k] for k in ("InstanceType", "SubnetId", "ImageId", "Placement") if k in over},
                    "TagSpecifications": tags,
                },
            )
            if over.get("AvailabilityZone"):
                spec["Placement"] = {**(spec.get("Placement") or {}), "AvailabilityZone": over["AvailabilityZone"]}
            if market == "spot":
                spec["InstanceMarketOptions"] = {"MarketType": "spot"}
            free = capacity.free(backend, spec["InstanceType"], zone_of(backend, spec)[1], market)
            shown = {
                "LaunchTemplateAndOverrides": {
                    "LaunchTemplateSpecification": config["LaunchTemplateSpecification"],
                    "Overrides": over,
                }
            }
            pools.append((spec, over, float(over.get("WeightedCapacity") or 1), free, {**shown, "Lifecycle": market}))
    strategy = options.get("AllocationStrategy", "lowest-price")  # prices aren't modelled: the given order counts
    if "prioritized" in strategy:
        pools.sort(key=lambda pool: float(pool[1].get("Priority", 1e9)))
    elif "capacity-optimized" in strategy:
        pools.sort(key=lambda pool: -pool[3])
    too_few = sum(free * weight for _, _, weight, free, _ in pools) < float(options.get("MinTargetCapacity") or 0)
    for spec, _, weight, _, shown in pools:
        if goal <= 0:
            break
        want = int(-(-goal // weight))
        try:
            got = [] if too_few else launch(backend, spec, 1, want).instances
            problem = (
                ("InsufficientInstanceCapacity", "There is not enough capacity for this request.")
                if len(got) < want
                else None
            )
        except Ec2Error as error:
            got, problem = [], (error.error_code, error.message)
        goal -= len(got) * weight
        for instance in got:
            instance.add_tags({"aws:ec2:fleet-id": fleet["FleetId"]})
        if got:
            fleet["Instances"].append(
                {**shown, "InstanceIds": [i.id for i in got], "InstanceType": spec["InstanceType"]}
            )
        if problem:
            fleet["Errors"].append({**shown, "ErrorCode": problem[0], "ErrorMessage": problem[1]})
