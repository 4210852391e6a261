"""Names and ids as Azure writes them (ARM)."""

UUID = r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
"""of a subscription, a tenant, a principal; small letters, as Azure prints them"""
_GROUP = r"/subscriptions/[0-9a-f-]{36}/resourceGroups/[A-Za-z0-9._()-]{1,90}/providers"
_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}"
SUBNET = f"^{_GROUP}/Microsoft\\.Network/virtualNetworks/{_NAME}/subnets/{_NAME}$"
SECURITY_GROUP = f"^{_GROUP}/Microsoft\\.Network/networkSecurityGroups/{_NAME}$"
CIRCUIT = f"^{_GROUP}/Microsoft\\.Network/expressRouteCircuits/{_NAME}$"
RESERVATION = f"^{_GROUP}/Microsoft\\.Compute/capacityReservationGroups/{_NAME}$"
VAULT = f"^{_GROUP}/Microsoft\\.KeyVault/vaults/[A-Za-z][A-Za-z0-9-]{{1,22}}[A-Za-z0-9]$"
IMAGE = (
    r"^([A-Za-z0-9._-]+:[A-Za-z0-9._-]+:[A-Za-z0-9._-]+:(latest|[0-9.]+)"
    f"|{_GROUP}/Microsoft\\.Compute/(images/{_NAME}|galleries/[A-Za-z0-9._]+/images/{_NAME}(/versions/[0-9.]+)?))$"
)
PUBLIC_KEY = r"^(ssh-rsa|ssh-ed25519) [A-Za-z0-9+/]+=*( [^\n]*)?\n?$"
_ID = "write its id, as `az ... show --query id` prints it: /subscriptions/..."
FORMS = {
    UUID: "write its id, as in 0b1f6471-1bf0-4dda-aec3-cb9272f09590: small letters",
    SUBNET: _ID,
    SECURITY_GROUP: _ID,
    CIRCUIT: _ID,
    RESERVATION: _ID,
    VAULT: _ID,
}
"""pattern: what to write"""
