"""Spot's market: each instance type has a price in each zone that offers it, which moves when a test says so."""

from __future__ import annotations

import datetime as dt
from typing import Any

from moto.ec2.models.instance_types import INSTANCE_TYPES

from lab.aws.capacity import Capacity
from lab.aws.faults import Ec2Error
from lab.aws.launch_spec import Params

USD_A_VCPU = 0.1
"""that an hour costs where nobody said otherwise: of the size of what GPU instances cost"""
_AGES_S = ((6 * 3600, 0.9), (300, 1.0))  # a row of the history: its age, and the part of today's price


def usd(capacity: Capacity, kind: str, zone: str) -> float:
    """What an hour costs now."""
    return float(capacity.spot_usd.get((kind, zone), INSTANCE_TYPES[kind]["VCpuInfo"]["DefaultVCpus"] * USD_A_VCPU))


def need_price(capacity: Capacity, spec: Params, zone: str) -> None:
    """SpotMaxPriceTooLow for who offers less."""
    most = ((spec.get("InstanceMarketOptions") or {}).get("SpotOptions") or {}).get("MaxPrice")
    now = usd(capacity, spec["InstanceType"], zone)
    if most and float(most) < now:
        raise Ec2Error(
            "SpotMaxPriceTooLow",
            f"Your Spot request price of {float(most):g} is lower than the minimum required Spot request fulfillment "
            f"price of {now:g}.",
        )


def describe_spot_price_history(capacity: Capacity, backend: Any, p: Params) -> Params:
    """All rows, or with StartTime those that were in force then or later. No row for what isn't sold in a zone."""
    now = dt.datetime.now(dt.UTC)
    begins = p["StartTime"].astimezone(dt.UTC) if p.get("StartTime") else None
    products = p.get("ProductDescriptions") or ["Linux/UNIX"]
    rows = [
        {
            "AvailabilityZone": offer["Location"],
            "InstanceType": offer["InstanceType"],
            "ProductDescription": product,
            "SpotPrice": f"{usd(capacity, offer['InstanceType'], offer['Location']) * part:.6f}",
            "Timestamp": now - dt.timedelta(seconds=age_s),
        }
        for offer in backend.describe_instance_type_offerings(
            "availability-zone", {"instance-type": p["InstanceTypes"]} if p.get("InstanceTypes") else {}
        )
        for product in products
        for age_s, part in _AGES_S
        if begins is None or age_s == _AGES_S[-1][0] or begins < now - dt.timedelta(seconds=_AGES_S[-1][0])
    ]
    return {"SpotPriceHistory": rows, "NextToken": ""}  # EC2 ends its last page so, too
