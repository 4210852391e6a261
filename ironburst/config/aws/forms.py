"""Ids as AWS writes them."""

IMAGE, RESERVATION = r"^ami-[0-9a-f]{8,17}$", r"^cr-[0-9a-f]+$"
FORMS = {
    IMAGE: "write for example ami-0123456789abcdef0",
    RESERVATION: "write for example cr-0123456789abcdef0",
}
"""pattern: what to write"""
