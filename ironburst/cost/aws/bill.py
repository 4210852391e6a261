"""What the lines of an AWS bill are for.

Codes in usage types: "Understand your usage reports" of EC2 and VPC (BoxUsage, SpotUsage, EBS:, PublicIPv4:,
DataTransfer-, NatGateway-, VpcEndpoint-), each behind a region's code (USE1-BoxUsage:p5.48xlarge). A usage type that
isn't here is no known cause: what it costs stays unexplained.
"""

from __future__ import annotations

import re

from ironburst.cost.bill_provider import Billed, BillProvider
from ironburst.cost.bill_row import BillRow
from ironburst.cost.causes import INSTANCE, UNEXPLAINED

_BY_USAGE = (
    (INSTANCE, re.compile(r"^(?:[A-Z0-9]+-)?(?:BoxUsage|SpotUsage|DedicatedUsage|HeavyUsage)(?::|$)")),
    ("reserved_unused", re.compile(r"(?:^|-)(?:UnusedBox|UnusedDed|Reservation):")),
    ("disk", re.compile(r"(?:^|-)EBS:(?!SnapshotExport)")),
    ("public_ipv4", re.compile(r"(?:^|-)(?:PublicIPv4|ElasticIP):")),
    ("stack", re.compile(r"(?:^|-)(?:NatGateway|VpcEndpoint|LoadBalancerUsage|LCUUsage|TransitGateway|VPN-Usage)")),
    ("data_transfer", re.compile(r"(?:^|-)DataTransfer-|-AWS-(?:In|Out)-(?:Bytes|ABytes)")),
    ("stack", re.compile(r"(?:^|-)(?:AmazonEKS-Hours|Requests|TimedStorage|CW:|KMS-|SecretsManager|VendedLog)")),
)


def id_of(resource: str) -> str:
    """An ARN's last part: arn:aws:ec2:us-east-1:123456789012:instance/i-1 is i-1. What is no ARN stays."""
    return resource.rpartition("/")[2] if resource.startswith("arn:") else resource


def use_of(usage_type: str) -> str:
    """What a usage type is for."""
    return next((use for use, pattern in _BY_USAGE if pattern.search(usage_type)), UNEXPLAINED)


def _instance(id: str) -> str:
    return "" if "/" in id else id


def _billed(row: BillRow) -> Billed:
    usage_type = row.text("x_UsageType") or row.text("SkuMeter")  # AWS' own, and FOCUS' since 1.1
    return Billed(
        resource=id_of(row.text("ResourceId")),
        use=use_of(usage_type),
        spot="SpotUsage" in usage_type,
        hours=row.number_of("ConsumedQuantity") or row.number_of("PricingQuantity") or 0.0,
        usd_per_hour=row.number_of("ContractedUnitPrice"),
    )


BILL = BillProvider("AWS", re.compile(r"^(?:AWS|Amazon)\b"), _instance, _billed)
