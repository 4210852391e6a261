"""Why a bill and the ledger's estimates differ: the known causes. Pure."""

from __future__ import annotations

CAUSES = {
    "rounding": "rounding to whole seconds and decimals, and the minimum of 60 s",
    "began_sooner": "began sooner than the ledger has it",
    "began_later": "began later than the ledger has it",
    "ran_on": "ran on after the end that the ledger has",
    "ended_sooner": "ended sooner than the ledger has it",
    "spot_price": "spot price of the hour instead of the assumed one",
    "other_price": "another price on demand than the assumed one",
    "other_market": "billed in another market than it was rented in",
    "savings_plan": "covered by a commitment to spend (Savings Plan, flexible CUD)",
    "reserved": "covered by a commitment to use (Reserved Instance, reservation, CUD)",
    "discount": "discount of the account",
    "credit": "credit",
    "refund": "refund or adjustment",
    "tax": "tax",
    "fee": "fee of bought capacity or of a commitment",
    "disk": "disks",
    "licence": "licences of software on instances",
    "data_transfer": "data transfer",
    "public_ipv4": "public IPv4 addresses",
    "stack": "other services of the stack (gateways, endpoints, requests, logs)",
    "reserved_unused": "reserved capacity that nothing ran in",
    "fixed_node": "fixed nodes of the stack, which the controller doesn't rent",
    "image_build": "instances that images were baked on",
    "karpenter": "Karpenter's nodes: the bill less their estimates",
    "correction": "corrections and late lines of earlier periods",
    "not_billed_yet": "not billed yet: the file ends before, or a day after",
    "missing": "rented by the ledger, and not in the bill",
    "no_instance": "in the ledger without an instance (carried over)",
    "orphan": "in the bill with our tags, and unknown to the ledger",
    "unexplained": "unexplained",
}
UNEXPLAINED = "unexplained"
INSTANCE = "instance"
"""what a line is for that belongs to an instance's price: no cause of a difference by itself"""
