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


def stash(backend: Any, name: str) -> dict:
    """A table of ours in one moto backend (an account in a region); moto's reset empties it with the rest."""
    return backend.__dict__.setdefault("_lab", {}).setdefault(name, {})


def matches(p: Params, row: Params, names: dict[str, str]) -> bool:
    """Whether a row passes the request's Filters; names: filter name -> key of the row. A filter that isn't named
    matches nothing.
    """
    return all(str(row.get(names.get(f["Name"], ""))) in f["Values"] for f in p.get("Filters", []))


def tagged(p: Params, kind: str) -> list[Params]:
    """The request's tags for one kind of resource."""
    return [t for s in p.get("TagSpecifications", []) if s["ResourceType"] == kind for t in s["Tags"]]


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
        target = (asked.get("CapacityReservationTarget") or {}).get("CapacityReservationId")
        if target:
            return self.from_reservation(backend, target, kind, zone, market, least, most)
        if market == "capacity-block":
            raise Ec2Error("InvalidParameterCombination", "A capacity block launch must target a Capacity Reservation.")
        is_open = market == "on-demand" and asked.get("CapacityReservationPreference", "open") == "open"
        sources: list[Any] = [
            r["CapacityReservationId"]
            for r in self.reservations(backend)
            for _ in range(r["AvailableInstanceCount"])
            if is_open
            and r["InstanceMatchCriteria"] == "open"
            and r["State"] == "active"
            and (r["InstanceType"], r["AvailabilityZone"]) == (kind, zone)
        ][:most]
        sources += [(kind, zone, market)] * int(min(most - len(sources), self.free(backend, kind, zone, market)))
        if len(sources) >= least:
            return sources
        raise Ec2Error(
            "InsufficientInstanceCapacity",
            "There is no Spot capacity available that matches your request."
            if market == "spot"
            else f"We currently do not have sufficient {kind} capacity in the Availability Zone "
            f"you requested ({zone}). Our system will be working on provisioning additional capacity.",
            500,
        )

    def from_reservation(
        self, backend: Any, target: str, kind: str, zone: str, market: str, least: int, most: int
    ) -> list[str]:
        """A targeted launch: its hosts all come from one reservation."""
        row = self.row(backend, target)
        if (row["InstanceType"], row["AvailabilityZone"]) != (kind, zone) or (
            (row["ReservationType"] == "capacity-block") != (market == "capacity-block")
        ):
            raise Ec2Error(
                "InvalidParameterValue", f"The launch does not match the attributes of the reservation '{target}'"
            )
        if row["State"] != "active" or row["AvailableInstanceCount"] < least:
            raise Ec2Error(
                "ReservationCapacityExceeded",
                "The requested reservation does not have sufficient compatible and "
                "available capacity for this request.",
            )
        return [target] * min(most, row["AvailableInstanceCount"])

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
        if p.get("EndDate"):
            row["EndDate"] = p["EndDate"]
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
        more = int(p.get("InstanceCount") or row["TotalInstanceCount"]) - row["TotalInstanceCount"]
        if more > self.free(backend, row["InstanceType"], row["AvailabilityZone"], "on-demand"):
            raise Ec2Error("InsufficientInstanceCapacity", "Insufficient capacity.", 500)
        row["TotalInstanceCount"] += more
        row.update({k: p[k] for k in ("EndDate", "EndDateType", "InstanceMatchCriteria") if p.get(k)})
        if row["EndDateType"] == "unlimited":
            row.pop("EndDate", None)
        return {"Return": True}

    def cancel_capacity_reservation(self, backend: Any, p: Params) -> Params:
        self.row(backend, p["CapacityReservationId"])["State"] = "cancelled"
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
