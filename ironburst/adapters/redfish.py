"""A node's BMC over Redfish, with sushy: its inventory, and its power button.

Every error is a BmcError whose text is one sentence that names the node and the BMC. What the BMC itself wrote is never
repeated: a BMC may echo the login that it was given.
"""

from __future__ import annotations

import contextlib
import re
import ssl
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import requests
import sushy
from requests.adapters import HTTPAdapter
from sushy import auth, connector, exceptions
from urllib3.exceptions import IncompleteRead, ProtocolError, ReadTimeoutError

from ironburst.baremetal.cycle import ConsoleError
from ironburst.baremetal.hardware import GpuGroup, Hardware


class BmcError(ConsoleError):
    """A BMC that did not do what was asked of it."""


class BmcUnreachable(BmcError):
    """Nobody answers at the address, or not in time."""


class BmcLoginRefused(BmcError):
    """The BMC answers, but not to this user and password."""


class BmcIncompleteAnswer(BmcError):
    """The answer broke off, is not Redfish, or lacks what an inventory needs."""


class BmcUnavailable(BmcError):
    """The BMC answers with a server error (503 while it starts, for one)."""


@dataclass(frozen=True)
class BmcAccess:
    """How to reach one node's BMC. Its certificate has the fingerprint `sha256` (hexadecimal) or, without one, was
    signed by a CA of `ca_file` (PEM; None: the system's), unless `verify_tls` is false.
    `timeout_s`: seconds that one inventory read may take, roughly.
    """

    node: str
    address: str
    username: str
    password: str = field(repr=False)
    verify_tls: bool = True
    ca_file: str | None = None
    sha256: str | None = None
    timeout_s: float = 30.0


def read_hardware(access: BmcAccess) -> Hardware:
    """The node's inventory. Changes nothing on the BMC but for a session, which is closed again. Raises BmcError."""
    with _login(access) as root:
        system, systems = _host_system(access, root)
        gpus: Counter[str] = Counter()
        for listed in systems:  # HGX boards report their GPUs under a system of their own
            gpus.update(gpu.model or "unnamed GPU" for gpu in _processors(listed, sushy.PROCESSOR_TYPE_GPU))
        macs = {i.permanent_mac_address or i.mac_address for i in system.ethernet_interfaces.get_members()}
        return Hardware(
            serial=_text(system.serial_number),
            manufacturer=_text(system.manufacturer),
            model=_text(system.model),
            uuid=_text(system.uuid),
            macs=tuple(sorted(mac.lower() for mac in macs if mac)),
            gpus=tuple(GpuGroup(model, count) for model, count in sorted(gpus.items())),
            cpu_count=len(_processors(system, sushy.PROCESSOR_TYPE_CPU)),
            memory_gib=system.memory_summary.size_gib if system.memory_summary else None,
            power_state=system.power_state.value if system.power_state else None,
            bios_version=_text(system.bios_version),
            bmc_version=_bmc_version(system),
        )


def power_off(access: BmcAccess, *, graceful_s: float = 120.0, forced_s: float = 30.0) -> None:
    """Shut the node down and wait until it is off; by force when it takes longer than `graceful_s`. Raises BmcError."""
    with _login(access, limited=False) as root:
        system, _ = _host_system(access, root)
        if system.power_state == sushy.POWER_STATE_OFF:
            return
        if sushy.RESET_GRACEFUL_SHUTDOWN in system.get_allowed_reset_system_values():
            system.reset_system(sushy.RESET_GRACEFUL_SHUTDOWN)
            if _is_off_within(system, graceful_s):
                return
        system.reset_system(sushy.RESET_FORCE_OFF)
        if not _is_off_within(system, forced_s):
            raise BmcUnavailable(
                f"{access.node}: BMC {access.address} accepted ForceOff, but the node is still on after {forced_s:g} s"
            )


def _is_off_within(system: Any, limit_s: float) -> bool:
    deadline = time.monotonic() + limit_s
    while system.power_state != sushy.POWER_STATE_OFF:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)  # Redfish has no wait: poll, gently, for BMCs are slow computers
        system.refresh(force=True)
    return True


# ---- the session


class _Deadline:
    """Ends an inventory read that takes longer than it may."""

    def __init__(self, access: BmcAccess) -> None:
        self._access = access
        self._at: float | None = time.monotonic() + access.timeout_s

    def lift(self) -> None:
        """From now on an answer may take its time."""
        self._at = None

    def check(self, _: requests.Response) -> None:
        """sushy calls it with every answer. Raises BmcUnreachable after the deadline."""
        if self._at is not None and time.monotonic() > self._at:
            limit = f"{self._access.timeout_s:g} s (timeoutSeconds)"
            raise BmcUnreachable(
                f"{self._access.node}: BMC {self._access.address} did not finish its answers within {limit}"
            )


class _Pinned(HTTPAdapter):
    """Speaks to the one server whose certificate has this fingerprint."""

    def __init__(self, sha256: str) -> None:
        self._sha256 = sha256
        super().__init__()

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, assert_fingerprint=self._sha256, **kwargs)


def _trusted(access: BmcAccess) -> bool | str:
    """requests' `verify`: by itself it knows the CAs of its package certifi only, not those of the system.
    Raises BmcError.
    """
    if access.sha256 or not access.verify_tls:
        return False
    if access.ca_file:
        try:
            ssl.create_default_context(cafile=access.ca_file)
        except OSError as error:
            raise BmcError(
                f"{access.node}: the CAs of BMC {access.address}, {access.ca_file}, can't be read "
                f"({error.strerror or error}): give a file in PEM on this machine"
            ) from None
        return access.ca_file
    system = ssl.get_default_verify_paths()
    return system.cafile or system.capath or True


def _connected(access: BmcAccess, deadline: _Deadline) -> connector.Connector:
    """sushy's connector, deaf to proxies and ~/.netrc: a BMC is on an out-of-band network, with its own login."""
    # Two attempts, each within half of the time: a BMC that is busy for a moment is normal.
    link = connector.Connector(
        access.address,
        verify=_trusted(access),
        response_callback=deadline.check,
        server_side_retries=2,
        server_side_retries_delay=min(1.0, access.timeout_s / 10),
        default_request_timeout=access.timeout_s / 2,
        connect_timeout=min(5.0, access.timeout_s / 2),
    )
    # sushy has no settings for these two
    link._session.trust_env = False
    if access.sha256:
        link._session.mount("https://", _Pinned(access.sha256))
    return link


@contextlib.contextmanager
def _login(access: BmcAccess, *, limited: bool = True) -> Iterator[sushy.main.Sushy]:
    """A logged-in service root; `limited` to the time of one inventory read.
    BMCs have few session slots: it always logs out.
    """
    deadline = _Deadline(access)
    link = _connected(access, deadline)
    login = auth.SessionOrBasicAuth(access.username, access.password)
    try:
        root = sushy.main.Sushy(access.address, auth=login, connector=link)
        if not limited:
            deadline.lift()
        yield root
    except (exceptions.SushyError, requests.RequestException, ValueError, TypeError, AttributeError, KeyError) as error:
        raise _translated(error, access) from error
    finally:
        deadline.lift()
        with contextlib.suppress(Exception):  # the result is decided already, and a session ends by itself some time
            login.close()
        if login.get_session_resource_id() is not None:
            login.reset_session_attrs()  # else sushy's destructor tries again
        link.close()


# ---- the inventory


def _host_system(access: BmcAccess, root: sushy.main.Sushy) -> tuple[Any, list[Any]]:
    """The computer system with CPUs, and all that the BMC lists (HGX boards are listed as systems too)."""
    systems = root.get_system_collection().get_members()
    hosts = systems
    if len(systems) != 1:
        hosts = [system for system in systems if _processors(system, sushy.PROCESSOR_TYPE_CPU)]
    if len(hosts) != 1:
        names = ", ".join(system.identity for system in systems) or "none"
        raise BmcIncompleteAnswer(
            f"{access.node}: BMC {access.address} lists {len(hosts)} computer systems with CPUs (of: {names}), "
            "one is expected"
        )
    return hosts[0], systems


def _processors(system: Any, kind: Any) -> list[Any]:
    """The system's processors of this kind that are there (empty sockets are listed as Absent)."""
    if "Processors" not in system.json:
        return []
    return [
        processor
        for processor in system.processors.get_members()
        if processor.processor_type == kind and not (processor.status and processor.status.state == sushy.STATE_ABSENT)
    ]


def _bmc_version(system: Any) -> str | None:
    managers = system.managers if system.json.get("Links", {}).get("ManagedBy") else []
    return _text(managers[0].firmware_version) if managers else None


def _text(value: Any) -> str | None:
    """What a BMC says, without the padding that some add; empty is None."""
    return str(value).strip() or None if value is not None else None


# ---- errors


# What went wrong underneath, in this order -> the error, and its sentence behind "NODE: BMC ADDRESS ".
_CAUSES: tuple[tuple[tuple[type[BaseException], ...], type[BmcError], str], ...] = (
    (
        (exceptions.AccessError,),
        BmcLoginRefused,
        "refuses the login of user {username!r}: check bmcUsername and the secret behind passwordRef",
    ),
    (
        (requests.exceptions.SSLError,),
        BmcUnreachable,
        "has no TLS certificate that a CA of {ca_file} signed for this address: give caFile or certificateSha256",
    ),
    (
        (requests.exceptions.Timeout, ReadTimeoutError),
        BmcUnreachable,
        "does not answer within {timeout_s:g} s: check its address, its network and its power",
    ),
    (
        (requests.exceptions.ChunkedEncodingError, IncompleteRead),
        BmcIncompleteAnswer,
        "broke off in the middle of an answer: its inventory is incomplete, try again",
    ),
    (
        (ProtocolError,),
        BmcUnreachable,
        "closes the connection without an answer: check that Redfish is on, and that it is a BMC",
    ),
    (
        (requests.exceptions.ConnectionError,),
        BmcUnreachable,
        "cannot be reached: check its address, its network and its power",
    ),
)


_SHOWN = re.compile(r"Fingerprints did not match.*got \"([0-9a-f]{64})\"")  # urllib3's words


def _translated(error: BaseException, access: BmcAccess) -> BmcError:
    """The error as one sentence, by what went wrong underneath."""
    bmc = f"{access.node}: BMC {access.address}"
    causes = list(_causes(error))
    if shown := next(filter(None, map(_SHOWN.search, map(str, causes))), None):
        return BmcUnreachable(
            f"{bmc} shows a certificate with the SHA-256 {shown[1]}, declared is {access.sha256}: if its certificate "
            "was renewed, declare the new one; if not, somebody else answers there"
        )
    for kinds, translated, sentence in _CAUSES:
        if any(isinstance(cause, kinds) for cause in causes):
            told = sentence.format(
                username=access.username, timeout_s=access.timeout_s, ca_file=access.ca_file or "this machine's"
            )
            return translated(f"{bmc} {told}")
    for cause in causes:
        if isinstance(cause, exceptions.ServerSideError):
            return BmcUnavailable(
                f"{bmc} answers with the server error HTTP {cause.status_code}: wait until it has started, try again"
            )
        if isinstance(cause, exceptions.ResourceNotFoundError):
            return BmcIncompleteAnswer(
                f"{bmc} lacks a part of its Redfish inventory (HTTP 404): is this address a BMC with Redfish?"
            )
        if isinstance(cause, exceptions.HTTPError):
            return BmcUnavailable(f"{bmc} refuses a request with HTTP {cause.status_code}")
        if isinstance(cause, exceptions.InvalidParameterValueError | exceptions.MissingActionError):
            return BmcUnavailable(f"{bmc} does not offer the power action that is asked of it")
    return BmcIncompleteAnswer(f"{bmc} gave an answer that is not a complete Redfish document ({type(error).__name__})")


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what it was raised from or during; libraries nest the real one in `args` too."""
    seen: set[int] = set()
    queue: list[BaseException | None] = [error]
    while queue:
        cause = queue.pop()
        if cause is None or id(cause) in seen:
            continue
        seen.add(id(cause))
        yield cause
        queue += [cause.__cause__, cause.__context__]
        nested = (getattr(cause, "reason", None), *cause.args)  # OpenSSL's reason is a text
        queue += [each for each in nested if isinstance(each, BaseException)]
