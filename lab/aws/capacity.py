"""What can be launched where: a table of hosts, capacity reservations and capacity blocks.

The table holds totals, (instance type, zone, market) -> hosts. What is free is computed from the live instances, so
nothing is ever given back, and a total may change under running instances. A missing key is unlimited.
"""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

from lab.aws.faults import Ec2Error
from lab.aws.launch_spec import Params

MARKETS = ("on-demand", "spot", "capacity-block")
ONLY_RESERVED = "capacity-reservations-only"


def stash(backend: Any, name: str) -> dict:
    """A table of ours in one moto backend (an account in a region); moto's reset empties it with the rest."""
    return backend.__dict__.setdefault("_lab", {}).setdefault(name, {})


def matches(p: Params, row: Params, names: dict[str, str]) -> bool:
    """Whether a row passes the request's Filters; names: filter name -> key of the row. A filter that isn't named
    matches nothing.
    """
    return all(str(row.get(names.get(f["Name"], ""))) in f["Values"] for f in p.get("Filters", []))


def ended_early(instance_type: str) -> dt.timedelta:
    """How long before its end EC2 takes the instances of a capacity block; those of UltraServers sooner."""
    return dt.timedelta(minutes=60 if instance_type.startswith("p6e-") else 30)


def tagged(p: Params, kind: str) -> list[Params]:
    """The request's tags for one kind of resource."""
    return [t for s in p.get("TagSpecifications", []) if s["ResourceType"] == kind for t in s["Tags"]]


def too_few_reserved() -> Ec2Error:
    return Ec2Error(
        "ReservationCapacityExceeded",
        "The requested reservation does not have sufficient compatible and available capacity for this request.",
    )


class Capacity(dict):
    """(instance type, zone, market) -> hosts in all; methods named after an EC2 action serve it."""

    ACTIONS = (
        "create_capacity_reservation",
        "describe_capacity_reservations",
        "modify_capacity_reservation",
        "cancel_capacity_reservation",
        "describe_capacity_block_offerings",
        "purchase_capacity_block",
    )

    def __init__(self) -> None:
        super().__init__()
        self.block_offerings: list[Params] = []  # as DescribeCapacityBlockOfferings returns them
        self.spot_usd: dict[tuple[str, str], float] = {}  # (instance type, zone) -> an hour; missing: spot.usd
        self.groups: dict[str, list[str]] = {}  # ARN of a resource group -> its reservations (moto keeps no members)

    # ---- hosts
    def used(self, backend: Any, source: Any) -> int:
        return sum(i.state != "terminated" and getattr(i, "source", None) == source for i in backend.all_instances())

    def free(self, backend: Any, kind: str, zone: str, market: str) -> float:
        """Hosts that a launch could get now; what is reserved isn't free. May be infinite."""
        held = sum(
            r["TotalInstanceCount"]
            for r in self.reservations(backend)
            if market == "on-demand"
            and r["State"] == "active"
            and (r["InstanceType"], r["AvailabilityZone"], r["ReservationType"]) == (kind, zone, "default")
        )
        return max(0, self.get((kind, zone, market), float("inf")) - self.used(backend, (kind, zone, market)) - held)

    def allocate(self, backend: Any, spec: Params, zone: str, market: str, least: int, most: int) -> list[Any]:
        """Where each host comes from (a reservation's id, or a key of the table), or the error that EC2 sends."""
        kind, asked = spec["InstanceType"], spec.get("CapacityReservationSpecification") or {}
        target, preference = asked.get("CapacityReservationTarget") or {}, asked.get("CapacityReservationPreference")
        if len(target) > 1 or (target and preference not in (None, ONLY_RESERVED)):
            raise Ec2Error(
                "InvalidParameterCombination", "Specify one Capacity Reservation, one group or a preference."
            )
        group = self.arn_of(backend, spec)
        if reservation := target.get("CapacityReservationId"):
            return self.from_reservation(backend, reservation, kind, zone, market, least, most, group)
        if market == "capacity-block":
            raise Ec2Error("InvalidParameterCombination", "A capacity block launch must target a Capacity Reservation.")
        if market == "spot" and target:
            raise Ec2Error("InvalidParameterValue", "A Spot Instance can't run in a Capacity Reservation.")
        members = self.members(target.get("CapacityReservationResourceGroupArn"))
        is_open = market == "on-demand" and preference in (None, "open", ONLY_RESERVED)
        sources: list[Any] = [
            r["CapacityReservationId"]
            for r in self.reservations(backend)
            for _ in range(r["AvailableInstanceCount"])
            if (r["CapacityReservationId"] in members if target else is_open and r["InstanceMatchCriteria"] == "open")
            and (r["State"], r["ReservationType"]) == ("active", "default")
            and (r["InstanceType"], r["AvailabilityZone"]) == (kind, zone)
            and ((target and not group) or r.get("PlacementGroupArn") in (None, group))
        ][:most]
        if preference != ONLY_RESERVED:  # a group without room is no limit: the rest runs, and is paid, on demand
            sources += [(kind, zone, market)] * int(min(most - len(sources), self.free(backend, kind, zone, market)))
        if len(sources) >= least:
            return sources
        if preference == ONLY_RESERVED:
            raise too_few_reserved()
        raise Ec2Error(
            "InsufficientInstanceCapacity",
            "There is no Spot capacity available that matches your request."
            if market == "spot"
            else f"We currently do not have sufficient {kind} capacity in the Availability Zone "
            f"you requested ({zone}). Our system will be working on provisioning additional capacity.",
            500,
        )

    def members(self, arn: str | None) -> list[str]:
        """The reservations of a resource group."""
        if arn and arn not in self.groups:
            raise Ec2Error("InvalidParameterValue", f"The Capacity Reservation group '{arn}' does not exist")
        return self.groups[arn] if arn else []

    def arn_of(self, backend: Any, spec: Params) -> str | None:
        """The ARN of the placement group that a launch names."""
        name = (spec.get("Placement") or {}).get("GroupName")
        return stash(backend, "groups")[name]["GroupArn"] if name else None

    def from_reservation(
        self, backend: Any, target: str, kind: str, zone: str, market: str, least: int, most: int, group: str | None
    ) -> list[str]:
        """A targeted launch: its hosts all come from one reservation. In a placement group that isn't the
        reservation's EC2 gives as many as happen to lie close enough; here none do. A reservation in a placement group
        needs no mention of it.
        """
        row = self.row(backend, target)
        if (row["InstanceType"], row["AvailabilityZone"]) != (kind, zone) or (
            (row["ReservationType"] == "capacity-block") != (market == "capacity-block")
        ):
            raise Ec2Error(
                "InvalidParameterValue", f"The launch does not match the attributes of the reservation '{target}'"
            )
        if market == "capacity-block":
            self.need_begun(row)
            if group:  # EC2 places a block's instances itself; with which code it says so isn't documented
                raise Ec2Error("InvalidParameterCombination", "A capacity block takes no placement group.")
        elsewhere = group and row.get("PlacementGroupArn") != group
        if row["State"] != "active" or row["AvailableInstanceCount"] < least or elsewhere:
            raise too_few_reserved()
        return [target] * min(most, row["AvailableInstanceCount"])

    def seconds_left(self, instance: Any) -> float | None:
        """Until EC2 ends an instance with its capacity block; None: it is in none."""
        row = self.row(instance.ec2_backend, instance.source) if instance.lifecycle == "capacity-block" else {}
        ends = row.get("EndDate")
        return (ends - ended_early(instance.instance_type) - dt.datetime.now(dt.UTC)).total_seconds() if ends else None

    def need_begun(self, row: Params) -> None:
        """A capacity block takes instances from its start until EC2 begins to end them."""
        if row["State"] in ("scheduled", "payment-pending"):
            raise Ec2Error(
                "InvalidCapacityReservationState.PendingActivation", "Your Capacity Block is not active yet."
            )
        if row.get("EndDate") and row["EndDate"] - ended_early(row["InstanceType"]) <= dt.datetime.now(dt.UTC):
            raise too_few_reserved()

    # ---- capacity reservations and blocks
    def reservations(self, backend: Any) -> list[Params]:
        """Every reservation with its state and free count of this moment."""
        now = dt.datetime.now(dt.UTC)
        for row in stash(backend, "reservations").values():
            row["AvailableInstanceCount"] = row["TotalInstanceCount"] - self.used(backend, row["CapacityReservationId"])
            if row["State"] == "scheduled" and row["StartDate"] <= now:
                row["State"] = "active"
            if row["State"] in ("scheduled", "active") and row.get("EndDate") and row["EndDate"] <= now:
                row["State"] = "expired"
        return list(stash(backend, "reservations").values())

    def row(self, backend: Any, reservation_id: str) -> Params:
        for row in self.reservations(backend):
            if row["CapacityReservationId"] == reservation_id:
                return row
        raise Ec2Error(
            "InvalidCapacityReservationId.NotFound", f"The capacity reservation '{reservation_id}' does not exist"
        )

    def reserve(self, backend: Any, p: Params, **more: Any) -> Params:
        row = {
            "CapacityReservationId": f"cr-{uuid.uuid4().hex[:17]}",
            "OwnerId": backend.account_id,
            "State": "active",
            "InstanceType": p["InstanceType"],
            "InstancePlatform": p.get("InstancePlatform", "Linux/UNIX"),
            "Tenancy": "default",
            "AvailabilityZone": p["AvailabilityZone"],
            "TotalInstanceCount": int(p["InstanceCount"]),
            "ReservationType": "default",
            "AvailableInstanceCount": int(p["InstanceCount"]),
            "InstanceMatchCriteria": p.get("InstanceMatchCriteria", "open"),
            "EndDateType": p.get("EndDateType", "unlimited"),
            "StartDate": dt.datetime.now(dt.UTC),
            "CreateDate": dt.datetime.now(dt.UTC),
            "Tags": tagged(p, "capacity-reservation"),
            **more,
        }
        row |= {key: p[key] for key in ("EndDate", "PlacementGroupArn") if p.get(key)}
        stash(backend, "reservations")[row["CapacityReservationId"]] = row
        return {"CapacityReservation": row}

    def create_capacity_reservation(self, backend: Any, p: Params) -> Params:
        if self.free(backend, p["InstanceType"], p["AvailabilityZone"], "on-demand") < int(p["InstanceCount"]):
            raise Ec2Error("InsufficientInstanceCapacity", "Insufficient capacity.", 500)
        return self.reserve(backend, p)

    def describe_capacity_reservations(self, backend: Any, p: Params) -> Params:
        names = {"instance-type": "InstanceType", "availability-zone": "AvailabilityZone", "state": "State"}
        asked = p.get("CapacityReservationIds")
        rows = [self.row(backend, i) for i in asked] if asked else self.reservations(backend)
        return {"CapacityReservations": [r for r in rows if matches(p, r, names)]}

    def modify_capacity_reservation(self, backend: Any, p: Params) -> Params:
        row = self.row(backend, p["CapacityReservationId"])
        if row["ReservationType"] == "capacity-block":
            raise Ec2Error("UnsupportedOperation", "A Capacity Block can only be extended.")
        more = int(p.get("InstanceCount") or row["TotalInstanceCount"]) - row["TotalInstanceCount"]
        if more > self.free(backend, row["InstanceType"], row["AvailabilityZone"], "on-demand"):
            raise Ec2Error("InsufficientInstanceCapacity", "Insufficient capacity.", 500)
        row["TotalInstanceCount"] += more
        row.update({k: p[k] for k in ("EndDate", "EndDateType", "InstanceMatchCriteria") if p.get(k)})
        if row["EndDateType"] == "unlimited":
            row.pop("EndDate", None)
        return {"Return": True}

    def cancel_capacity_reservation(self, backend: Any, p: Params) -> Params:
        row = self.row(backend, p["CapacityReservationId"])
        if row["ReservationType"] == "capacity-block":
            raise Ec2Error("UnsupportedOperation", "A Capacity Block can't be cancelled.")
        row["State"] = "cancelled"
        return {"Return": True}

    def describe_capacity_block_offerings(self, _backend: Any, p: Params) -> Params:
        return {
            "CapacityBlockOfferings": [
                o
                for o in self.block_offerings
                if o["InstanceType"] == p.get("InstanceType", o["InstanceType"])
                and o["InstanceCount"] == int(p.get("InstanceCount", o["InstanceCount"]))
                and o["CapacityBlockDurationHours"] == int(p["CapacityDurationHours"])
            ]
        }

    def purchase_capacity_block(self, backend: Any, p: Params) -> Params:
        offer = next(
            (o for o in self.block_offerings if o["CapacityBlockOfferingId"] == p["CapacityBlockOfferingId"]), None
        )
        if not offer:
            raise Ec2Error(
                "InvalidCapacityBlockOfferingId.NotFound", "The offering does not exist or is no longer offered"
            )
        self.block_offerings.remove(offer)
        return self.reserve(
            backend,
            {**p, **offer},
            State="scheduled",
            ReservationType="capacity-block",
            EndDateType="limited",
            InstanceMatchCriteria="targeted",
            StartDate=offer["StartDate"],
            EndDate=offer["EndDate"],
        )

    def block(self, backend: Any, kind: str, zone: str, count: int, ends_in_s: float) -> str:
        """The id of a capacity block that was bought earlier and is open; EC2 takes its instances in `ends_in_s`."""
        now = dt.datetime.now(dt.UTC)
        bought = self.reserve(
            backend,
            {"InstanceType": kind, "AvailabilityZone": zone, "InstanceCount": count},
            ReservationType="capacity-block",
            EndDateType="limited",
            InstanceMatchCriteria="targeted",
            StartDate=now,
            EndDate=now + ended_early(kind) + dt.timedelta(seconds=ends_in_s),
        )
        return str(bought["CapacityReservation"]["CapacityReservationId"])
