"""The lab's fixed names and addresses, as pure functions of the host name: the same in every lab.

A stack file, a BMC and the host itself (DMI, eth0) all state these, so that they can be compared.
"""

import hashlib
import ipaddress
import re
import uuid

HALL_GATEWAY = "10.78.0.1"
VPC_GATEWAY = "10.90.0.1"
VPC_NETWORK = ipaddress.ip_network("10.90.0.0/16")
METADATA_ADDRESS = "169.254.169.254"
AWS_ENDPOINT = f"http://{HALL_GATEWAY}:5000"
GOOGLE_PORT = 5002
GOOGLE_ENDPOINT = f"http://{HALL_GATEWAY}:{GOOGLE_PORT}"
GOOGLE_VARIABLES = {
    "CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE": f"{GOOGLE_ENDPOINT}/compute/v1/",
    "CLOUDSDK_API_ENDPOINT_OVERRIDES_SERVICEUSAGE": f"{GOOGLE_ENDPOINT}/",
    "CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDRESOURCEMANAGER": f"{GOOGLE_ENDPOINT}/",
    "CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER": f"http://{HALL_GATEWAY}:{GOOGLE_PORT + 1}/",
}
AZURE_PORT = 5004
WIRE_SERVER = "168.63.129.16"  # of Azure: who listens there is the lab's
AZURE_VARIABLES = {
    "AZURE_RESOURCE_MANAGER_URL": f"http://{HALL_GATEWAY}:{AZURE_PORT}",
    "AZURE_RETAIL_PRICES_URL": f"http://{HALL_GATEWAY}:{AZURE_PORT}/api/retail/prices",
    "AZURE_KEYVAULT_URL": f"http://{HALL_GATEWAY}:{AZURE_PORT + 1}",
}
REPOSITORY_URL = f"http://{HALL_GATEWAY}"
BMC_GATEWAY = "10.78.8.1"

ADDRESSES = {"head": "10.78.0.10", "dgx01": "10.78.0.11", "dgx02": "10.78.0.12"}
BMC_ADDRESSES = {"head": "10.78.8.10", "dgx01": "10.78.8.11", "dgx02": "10.78.8.12"}


def is_instance(name: str) -> bool:
    """True for a cloud instance's host (EC2's id, i-0123..., or another cloud's name), False for a bare-metal one."""
    return re.fullmatch(r"i-[0-9a-f]{8,17}|(ib|fixed|image)-.+", name) is not None


def mac_of(name: str) -> str:
    """MAC of eth0. Known bare metal: 52:54:00:4e:00:<last octet of its address>; others: from a hash of the name."""
    if name in ADDRESSES:
        return f"52:54:00:4e:00:{int(ADDRESSES[name].rsplit('.', 1)[1]):02x}"
    digest = hashlib.sha256(name.encode()).digest()
    return ":".join(f"{byte:02x}" for byte in bytes([0x02]) + digest[:5])


def serial_of(name: str) -> str:
    """Serial number: LAB-DGX01 for bare metal; as on EC2, "ec2" and the UUID for an instance."""
    return uuid_of(name) if is_instance(name) else f"LAB-{name.upper()}"


def uuid_of(name: str) -> str:
    """SMBIOS UUID, lower case; an instance's begins with ec2, as on EC2."""
    value = str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{name}.lab.invalid"))
    return "ec2" + value[3:] if name.startswith("i-") else value


def cloud_hostname(address: str) -> str:
    """EC2's ip-name of a private address: 10.90.3.7 -> ip-10-90-3-7."""
    return "ip-" + address.replace(".", "-")
