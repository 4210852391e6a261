"""Why a bill and the ledger's estimates differ: the known causes, and the lines that show one by what they are for.

Codes in usage types: "Understand your usage reports" of EC2 and VPC (BoxUsage, SpotUsage, EBS:, PublicIPv4:,
DataTransfer-, NatGateway-, VpcEndpoint-), each behind a region's code (USE1-BoxUsage:p5.48xlarge). A usage type that
isn't here is no known cause: what it costs stays unexplained.
"""

from __future__ import annotations

import re

from ironburst.cost.bill import Line

CAUSES = {
    "rounding": "rounding to whole seconds and decimals, and the minimum of 60 s",
    "began_sooner": "began sooner than the ledger has it",
    "began_later": "began later than the ledger has it",
    "ran_on": "ran on after the end that the ledger has",
    "ended_sooner": "ended sooner than the ledger has it",
    "spot_price": "spot price of the hour instead of the assumed one",
    "other_price": "another price on demand than the assumed one",
    "other_market": "billed in another market than it was rented in",
    "savings_plan": "covered by a Savings Plan",
    "reserved": "covered by a Reserved Instance",
    "discount": "discount of the account",
    "credit": "credit",
    "refund": "refund",
    "tax": "tax",
    "fee": "fee of bought capacity or of a commitment",
    "disk": "disks (EBS)",
    "data_transfer": "data transfer",
    "public_ipv4": "public IPv4 addresses",
    "stack": "other services of the stack (gateways, endpoints, requests, logs)",
    "reserved_unused": "reserved capacity that nothing ran in",
    "fixed_node": "fixed nodes of the stack, which the controller doesn't rent",
    "image_build": "instances that images were baked on",
    "karpenter": "Karpenter's nodes: the bill less their estimates",
    "not_billed_yet": "not billed yet: the file ends before, or a day after",
    "missing": "rented by the ledger, and not in the bill",
    "no_instance": "in the ledger without an instance (carried over)",
    "orphan": "in the bill with our tags, and unknown to the ledger",
    "unexplained": "unexplained",
}
_INSTANCE = re.compile(r"^(?:[A-Z0-9]+-)?(?:BoxUsage|SpotUsage|DedicatedUsage|HeavyUsage)(?::|$)")
_BY_USAGE = (
    ("reserved_unused", re.compile(r"(?:^|-)(?:UnusedBox|UnusedDed|Reservation):")),
    ("disk", re.compile(r"(?:^|-)EBS:(?!SnapshotExport)")),
    ("public_ipv4", re.compile(r"(?:^|-)(?:PublicIPv4|ElasticIP):")),
    ("stack", re.compile(r"(?:^|-)(?:NatGateway|VpcEndpoint|LoadBalancerUsage|LCUUsage|TransitGateway|VPN-Usage)")),
    ("data_transfer", re.compile(r"(?:^|-)DataTransfer-|-AWS-(?:In|Out)-(?:Bytes|ABytes)")),
    ("stack", re.compile(r"(?:^|-)(?:AmazonEKS-Hours|Requests|TimedStorage|CW:|KMS-|SecretsManager|VendedLog)")),
)


def is_instance(line: Line) -> bool:
    """Whether it is for an instance's hours."""
    return line.kind in ("usage", "savings_plan", "reserved") and bool(_INSTANCE.match(line.usage_type))


def beside(line: Line) -> str:
    """The cause of a line of ours that is for no instance's hours: nothing of it is in the estimates."""
    if line.kind in ("discount", "credit", "refund", "tax", "fee"):
        return line.kind
    if line.kind == "unknown":
        return "unexplained"
    if line.kind == "negation":
        return "savings_plan"
    return next((cause for cause, pattern in _BY_USAGE if pattern.search(line.usage_type)), "unexplained")


def price(line: Line, market: str) -> str:
    """Why an instance's hour costs another price than the ledger assumes for a lease of this market."""
    if line.kind in ("savings_plan", "reserved"):
        return line.kind
    if line.spot != (market == "spot"):
        return "other_market"
    return "spot_price" if line.spot else "other_price"
