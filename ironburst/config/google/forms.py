"""Names and ids as Google Cloud writes them."""

NAME = r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?"
"""of a resource (RFC 1035)"""
PROJECT_ID = r"[a-z][-a-z0-9]{4,28}[a-z0-9]"
_PROJECT = r"([a-z0-9.-]+:)?" + PROJECT_ID  # with an organization's domain before it
PROJECT = f"^{_PROJECT}$"
IMAGE = f"^projects/{_PROJECT}/global/images/(family/)?{NAME}$"
RESERVATION = f"^(projects/{_PROJECT}/reservations/)?{NAME}$"
NETWORK = f"^(projects/{_PROJECT}/global/networks/)?{NAME}$"
SUBNETWORK = f"^(projects/{_PROJECT}/regions/[a-z0-9-]+/subnetworks/)?{NAME}$"
BILLING = r"^[0-9A-F]{6}(-[0-9A-F]{6}){2}$"
FORMS = {
    PROJECT: "write its id, as in gpu-prod-4711: small letters, digits and -",
    IMAGE: "write for example projects/ubuntu-os-accelerator-images/global/images/family/NAME",
    RESERVATION: "write its name, or projects/PROJECT/reservations/NAME of a shared one",
    NETWORK: "write its name, or projects/PROJECT/global/networks/NAME of a shared one",
    SUBNETWORK: "write its name, or projects/PROJECT/regions/REGION/subnetworks/NAME of a shared one",
    BILLING: "write for example 01A2B3-C4D5E6-F7A8B9",
}
"""pattern: what to write"""
