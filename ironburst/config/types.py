"""Value types of the configuration: durations, ranges, secret references, addresses."""

from __future__ import annotations

import ipaddress
import re
from datetime import datetime
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
)

from ironburst.nodes.ranges import RangeError, expand
from ironburst.system import secrets

LONGEST = 366 * 86400
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
DURATION_PATTERN = r"^(\d+)([smhd])$"
FOLDER_PATTERN = r"^(/[A-Za-z0-9._-]+)+$"
NAME_PATTERN = r"^[a-z]([a-z0-9-]{0,30}[a-z0-9])?$"


def unit_seconds(text: str) -> int | None:
    """`0s`, `10s`, `15m`, `2h`, `7d` -> seconds; None for anything else."""
    match = re.fullmatch(DURATION_PATTERN, text)
    return int(match[1]) * _UNITS[match[2]] if match else None


def seconds(value: Any) -> int:
    """`10s`, `15m`, `2h`, `7d` -> seconds. Raises ValueError."""
    given = unit_seconds(value) if isinstance(value, str) else None
    if not given:
        raise ValueError("is not a duration; write a number above zero with a unit, as in 30s, 15m, 2h or 7d")
    if given > LONGEST:
        raise ValueError("is longer than a year; write a shorter duration")
    return given


def duration_text(value: int) -> str:
    """Seconds as people write them: 90 -> `90s`, 7200 -> `2h`."""
    for unit in ("d", "h", "m"):
        if value and value % _UNITS[unit] == 0:
            return f"{value // _UNITS[unit]}{unit}"
    return f"{value}s"


def _range(value: Any) -> list[str]:
    items = value if isinstance(value, list) else [value]
    if not all(isinstance(item, str) for item in items) or not items:
        raise ValueError("is not a name or a range; write text such as dgx[01-04], or a list of texts")
    try:
        return [name for item in items for name in expand(item)]
    except RangeError as error:
        raise ValueError(str(error)) from None


def _any_network(value: str) -> str:
    """This host's own, too."""
    try:
        network = ipaddress.IPv4Network(value, strict=False)
    except ValueError:
        raise ValueError("is not an IPv4 network; write for example 10.0.0.0/16") from None
    if "/" not in value:
        raise ValueError(f"is not an IPv4 network: it has no length; write for example {value}/24")
    if network.is_link_local:
        raise ValueError("is for one link alone; take one of 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16")
    if network.is_multicast or network.is_reserved or network.prefixlen == 0:
        raise ValueError("holds no network of hosts; take one of 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16")
    if str(network) != value:
        raise ValueError(f"is not an IPv4 network, but an address in one; write {network}")
    return value


def _network(value: str) -> str:
    if ipaddress.IPv4Network(_any_network(value)).is_loopback:
        raise ValueError("is this host's own; take one of 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16")
    return value


def _address(value: str) -> str:
    try:
        return str(ipaddress.IPv4Address(value))
    except ValueError:
        raise ValueError("is not an IPv4 address; write for example 10.0.0.5") from None


def _fingerprint(value: str) -> str:
    """SHA-256 of a certificate as openssl prints it, with or without colons -> 64 small hexadecimal digits.
    Raises ValueError.
    """
    digits = value.replace(":", "").lower()
    if not re.fullmatch(r"[0-9a-f]{64}", digits):
        raise ValueError(
            "is not the SHA-256 of a certificate, 64 hexadecimal digits: `openssl s_client -connect ADDRESS:443 "
            "</dev/null | openssl x509 -noout -fingerprint -sha256` prints it"
        )
    return digits


def _mac(value: str) -> str:
    mac = value.lower().replace("-", ":")
    if not re.fullmatch(r"([0-9a-f]{2}:){5}[0-9a-f]{2}", mac):
        raise ValueError("is not a MAC address; write for example 52:54:00:12:34:56")
    if int(mac[:2], 16) & 1 or mac == "00:00:00:00:00:00":
        raise ValueError("is no card's MAC address: it is a group's, or nobody's; write the card's own")
    return mac


def _certificates(value: str) -> str:
    labels = re.findall(r"-----BEGIN ([A-Z0-9 ]+)-----", value)
    if set(labels) != {"CERTIFICATE"}:
        found = ", ".join(sorted(set(labels))) or "no PEM at all"
        raise ValueError(f"has {found}; write certificates alone (-----BEGIN CERTIFICATE-----), never a key")
    return value


def _account(value: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9_.-]*", value):
        raise ValueError("is not a Slurm account; Slurm's are lower case: letters, digits, and _ . - inside")
    return value


def _moment(value: Any) -> Any:
    """Text or YAML's own; pydantic would take a number for seconds since 1970."""
    if isinstance(value, int | float):
        raise ValueError("is no point in time; write for example 2026-12-01T11:30:00Z")
    return value


def _mail(value: str) -> str:
    if not re.fullmatch(r"[^\s@<>,;\"']+@([A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?\.)+[A-Za-z]{2,}", value):
        raise ValueError("is no mail address; write for example platform@example.org, one an item")
    return value


def _ports(value: str) -> str:
    first, _, last = value.partition("-")
    if not (first.isdecimal() and last.isdecimal() and 0 < int(first) <= int(last) <= 65535):
        raise ValueError("is no range of ports: write for example 61001-64000, from 1 to 65535, the lower one first")
    return value


def _reference(value: str) -> str:
    try:
        secrets.check(value)
    except secrets.SecretError as error:
        raise ValueError(str(error)) from None
    return value


def _node_label(key: str) -> str:
    """As NodeRestriction lets a kubelet set it on its own node. Raises ValueError."""
    prefix, _, name = key.rpartition("/")
    if not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?", name) or (
        prefix and not re.fullmatch(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", prefix)
    ):
        raise ValueError("is no key of a label; write name or prefix/name, as in nvidia.com/gpu.product")
    if f".{prefix}".endswith((".kubernetes.io", ".k8s.io")):
        raise ValueError("belongs to Kubernetes: a node may not label itself so; choose a prefix of your own")
    return key


_TEXT_OR_LIST = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}

Duration = Annotated[
    int,
    BeforeValidator(seconds),
    PlainSerializer(duration_text, return_type=str),
    WithJsonSchema({"type": "string", "pattern": DURATION_PATTERN, "examples": ["30s", "15m", "2h", "7d"]}),
]
Range = Annotated[list[str], BeforeValidator(_range), WithJsonSchema({**_TEXT_OR_LIST, "examples": ["dgx[01-04]"]})]
Network = Annotated[str, AfterValidator(_network), Field(examples=["10.0.0.0/16"])]
BmcNetwork = Annotated[str, AfterValidator(_any_network), Field(examples=["10.0.0.0/16"])]
Address = Annotated[str, AfterValidator(_address)]
Moment = Annotated[datetime, BeforeValidator(_moment)]
Mail = Annotated[str, AfterValidator(_mail)]
Ports = Annotated[str, AfterValidator(_ports), WithJsonSchema({"type": "string", "pattern": r"^\d+-\d+$"})]
Folder = Annotated[str, Field(pattern=FOLDER_PATTERN, examples=["/shared"])]
Mac = Annotated[str, AfterValidator(_mac)]
Fingerprint = Annotated[str, AfterValidator(_fingerprint)]
SecretRef = Annotated[
    str, AfterValidator(_reference), Field(examples=["env:BMC_PASSWORD", secrets.in_store("hall/bmc")])
]
NodeLabel = Annotated[str, AfterValidator(_node_label)]
NodeLabelValue = Annotated[str, Field(pattern=r"^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$")]
Name = Annotated[str, Field(pattern=NAME_PATTERN)]
Certificates = Annotated[str, AfterValidator(_certificates)]
Account = Annotated[str, AfterValidator(_account)]
Usd = Annotated[float, Field(gt=0, allow_inf_nan=False)]


def checked(kind: Any, value: object) -> Any:
    """A value of one of these types. Raises ValueError with what is wrong in one sentence."""
    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        raise ValueError(str(error.errors()[0]["msg"]).removeprefix("Value error, ")) from None
