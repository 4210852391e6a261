"""A node's BMC over Redfish, with sushy: its inventory, and its power button.

Every error is a BmcError whose text is one sentence that names the node and the BMC. What the BMC itself wrote is never
repeated: a BMC may echo the login that it was given.
"""

from __future__ import annotations

import contextlib
import http.client
import logging
import re
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import requests
import sushy
from requests.utils import DEFAULT_CA_BUNDLE_PATH
from sushy import connector, exceptions
from urllib3.exceptions import ProtocolError, ReadTimeoutError, SSLError
from urllib3.util.ssl_ import create_urllib3_context

from ironburst.adapters.redfish.link import OneHost, OneLogin, TooMuch
from ironburst.adapters.redfish.reading import DROPPED, HttpRefused, LoginRefused, NotReached, Reading
from ironburst.baremetal import documents, inventory, makers, telemetry
from ironburst.baremetal.cycle import ConsoleError, Panel
from ironburst.baremetal.hardware import Hardware
from ironburst.baremetal.node import NodeInputs
from ironburst.baremetal.panel import panel
from ironburst.baremetal.telemetry import Telemetry


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
    `timeout_s`: seconds that one inventory read may take, roughly; a slow BMC has 150 documents and no $expand.
    """

    node: str
    address: str
    username: str
    password: str = field(repr=False)
    verify_tls: bool = True
    ca_file: str | None = None
    sha256: str | None = None
    timeout_s: float = 120.0
    serial: str | None = None  # declared: no other machine is switched off

    @property
    def answer_s(self) -> float:
        """Seconds that a BMC is waited for that doesn't answer at all."""
        return min(self.timeout_s, 30.0)


def hush() -> None:
    """sushy and urllib3 log addresses and answers, in pieces; our errors say it in a sentence."""
    for name in ("sushy", "urllib3"):
        logging.getLogger(name).addHandler(logging.NullHandler())
        logging.getLogger(name).propagate = False


def access_of(inputs: NodeInputs, password: str) -> BmcAccess:
    """How to reach the BMC of a declared node."""
    return BmcAccess(
        node=inputs.name,
        address=inputs.bmc_address,
        username=inputs.bmc_username,
        password=password,
        verify_tls=inputs.verify_tls,
        ca_file=inputs.ca_file,
        sha256=inputs.certificate_sha256,
        timeout_s=inputs.timeout_seconds,
        serial=inputs.serial,
    )


def read_hardware(access: BmcAccess, *, sensors: bool = False) -> Hardware:
    """The node's inventory; with `sensors`, their readings, too. Changes nothing on the BMC but for a session, which is
    closed again. Raises BmcError.
    """
    with _reading(access) as link:
        return inventory.hardware(documents.read(link.get, several=link.several, sensors=sensors))


def read_declared(access: BmcAccess, declared: NodeInputs) -> tuple[Hardware, Panel | None]:
    """As read_hardware, but settings of the BIOS only where some are declared; and what it shows of an installation
    that is. None: none is, or it can't be read beside.
    """
    without = () if declared.bios else ("bios",)
    with _reading(access) as link:
        if declared.install is None:
            return inventory.hardware(documents.read(link.get, several=link.several, without=without)), None
        found = documents.read(link.get, several=link.several, without=without, links=makers.WITH_MEDIA)
        hardware = inventory.hardware(found.besides("virtual_media"))
        shown = panel(found, inventory.find_host(found), by_http=declared.install.boot == "http")
        return hardware, shown


def read_telemetry(access: BmcAccess) -> Telemetry:
    """The node's temperatures, power and power supplies, in few requests. Raises BmcError."""
    with _reading(access) as link:
        return telemetry.look(link.get, link.several)


def reset_type(system: Any, *wanted: Any) -> Any:
    """The first of these ways to reset that the BMC offers for the machine; the first one where it offers none."""
    kinds = system.get_allowed_reset_system_values()
    return next((each for each in wanted if each in kinds), wanted[0])


# ---- the session


class _Deadline:
    """Ends an inventory read that takes longer than it may."""

    def __init__(self, access: BmcAccess) -> None:
        self._access = access
        self._at: float | None = time.monotonic() + access.timeout_s

    def lift(self) -> None:
        """From now on an answer may take its time."""
        self._at = None

    def check(self, _: object = None) -> None:
        """Called with every part of an answer. Raises BmcUnreachable after the deadline."""
        if self._at is not None and time.monotonic() > self._at:
            limit = f"{self._access.timeout_s:g} s (timeoutSeconds)"
            raise BmcUnreachable(
                f"{self._access.node}: BMC {self._access.address} did not finish its answers within {limit}"
            )


def _tls(access: BmcAccess) -> ssl.SSLContext | None:
    """By itself requests knows the CAs of its package certifi, and not those of the system. Raises BmcError."""
    if not access.address.lower().startswith("https:"):
        return None
    if access.sha256 or not access.verify_tls:
        return create_urllib3_context(cert_reqs=ssl.CERT_NONE)
    system = ssl.get_default_verify_paths()
    context = create_urllib3_context()
    try:
        if access.ca_file:
            context.load_verify_locations(access.ca_file)
        else:
            theirs = None if system.capath else DEFAULT_CA_BUNDLE_PATH
            context.load_verify_locations(system.cafile or theirs, system.capath)
    except OSError as error:
        raise BmcError(
            f"{access.node}: the CAs of BMC {access.address}, {access.ca_file or system.cafile}, can't be read "
            f"({error.strerror or error}): give a file in PEM on this machine"
        ) from None
    return context


def _connected(access: BmcAccess, deadline: _Deadline) -> connector.Connector:
    """sushy's connector, deaf to proxies and ~/.netrc: a BMC is on an out-of-band network, with its own login."""
    context = _tls(access)
    # Two attempts, each within half of the time: a BMC that is busy for a moment is normal.
    link = connector.Connector(
        access.address,
        verify=access.verify_tls and not access.sha256,
        server_side_retries=2,
        server_side_retries_delay=min(1.0, access.answer_s / 10),
        default_request_timeout=access.answer_s / 2,
        connect_timeout=min(5.0, access.answer_s / 2),
    )
    # sushy has no settings for these
    link._session.trust_env = False
    for scheme in ("http://", "https://"):
        link._session.mount(scheme, OneHost(access.address, deadline.check, context, access.sha256))
    return link


@contextlib.contextmanager
def _login(access: BmcAccess, *, limited: bool = True) -> Iterator[sushy.main.Sushy]:
    """A logged-in service root; `limited` to the time of one inventory read.
    BMCs have few session slots: it always logs out.
    """
    deadline = _Deadline(access)
    link = _connected(access, deadline)
    login = OneLogin(access.username, access.password)
    try:
        root = sushy.main.Sushy(access.address, auth=login, connector=link)
        if not limited:
            deadline.lift()
        yield root
    except BmcError:
        raise
    except Exception as error:  # sushy meets a BMC's nonsense with whatever Python says to it
        raise _translated(error, access) from error
    finally:
        deadline.lift()
        with contextlib.suppress(Exception):  # the result is decided already, and a session ends by itself some time
            login.close()
        if login.get_session_resource_id() is not None:
            login.reset_session_attrs()  # else sushy's destructor tries again
        link.close()


@contextlib.contextmanager
def _reading(access: BmcAccess) -> Iterator[Reading]:
    """A login to read by, for the time of one inventory read."""
    deadline = _Deadline(access)
    login = access.username, access.password
    link = Reading(access.address, login, _tls(access), access.sha256, access.answer_s, deadline.check)
    try:
        link.log_in()
        yield link
    except BmcError:
        raise
    except documents.Incomplete as error:
        raise BmcIncompleteAnswer(f"{access.node}: BMC {access.address} {error}") from None
    except Exception as error:
        raise _translated(error, access) from error
    finally:
        deadline.lift()
        link.close()


# ---- documents and the machine, by sushy


def _document(link: connector.Connector, path: str) -> Any:
    """What a BMC answers to a GET. None: none. Raises documents.RequestRefused where others may be answered."""
    try:
        return link.get(path).json()
    except exceptions.ResourceNotFoundError:
        return None
    except exceptions.AccessError as error:
        if error.status_code == 403:
            raise documents.RequestRefused(error, "this user may not read it (HTTP 403)") from None
        raise
    except (exceptions.ServerSideError, exceptions.HTTPError) as error:
        raise documents.RequestRefused(error, f"the BMC answers with HTTP {error.status_code}") from None


def _host_system(access: BmcAccess, root: sushy.main.Sushy) -> Any:
    """The computer system with CPUs (HGX boards are listed as systems, too)."""
    systems = root.get_system_collection().get_members()
    hosts = systems if len(systems) == 1 else [system for system in systems if _has_a_cpu(system)]
    if len(hosts) != 1:
        names = ", ".join(system.identity for system in systems) or "none"
        raise BmcIncompleteAnswer(
            f"{access.node}: BMC {access.address} lists {len(hosts)} computer systems with CPUs (of: {names}), "
            "one is expected"
        )
    return hosts[0]


def _has_a_cpu(system: Any) -> bool:
    """Empty sockets are listed as Absent. Asked until one is found, and a board has eight GPUs."""
    if "Processors" not in system.json:
        return False
    for path in system.processors.members_identities:
        with contextlib.suppress(exceptions.ResourceNotFoundError):
            processor = system.processors.get_member(path)
            absent = processor.status and processor.status.state == sushy.STATE_ABSENT
            if processor.processor_type == sushy.PROCESSOR_TYPE_CPU and not absent:
                return True
    return False


# ---- errors


# What went wrong underneath, in this order -> the error, and its sentence behind "NODE: BMC ADDRESS ".
_CAUSES: tuple[tuple[tuple[type[BaseException], ...], type[BmcError], str], ...] = (
    (
        (exceptions.AccessError, LoginRefused),
        BmcLoginRefused,
        "refuses the login of user {username!r}: check that name and the secret that its password refers to",
    ),
    (
        (requests.exceptions.SSLError, SSLError, ssl.SSLError),
        BmcUnreachable,
        "has no TLS certificate that a CA of {ca_file} signed for this address: give caFile or certificateSha256",
    ),
    (
        (NotReached,),
        BmcUnreachable,
        "cannot be reached: check its address, its network and its power",
    ),
    (
        (requests.exceptions.Timeout, ReadTimeoutError, TimeoutError),
        BmcUnreachable,
        "does not answer within {answer_s:g} s: check its address, its network and its power",
    ),
    (
        (requests.exceptions.ChunkedEncodingError, http.client.IncompleteRead),
        BmcIncompleteAnswer,
        "broke off in the middle of an answer: its inventory is incomplete, try again",
    ),
    (
        (requests.exceptions.TooManyRedirects,),
        BmcIncompleteAnswer,
        "sends a request in circles: is this address a BMC with Redfish?",
    ),
    (
        (ProtocolError, *DROPPED),
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
    if too_much := next((cause for cause in causes if isinstance(cause, TooMuch)), None):
        return BmcIncompleteAnswer(f"{bmc} {too_much}")
    if shown := next(filter(None, map(_SHOWN.search, map(str, causes))), None):
        return BmcUnreachable(
            f"{bmc} shows a certificate with the SHA-256 {shown[1]}, declared is {access.sha256}: if its certificate "
            "was renewed, declare the new one; if not, somebody else answers there"
        )
    for kinds, translated, sentence in _CAUSES:
        if any(isinstance(cause, kinds) for cause in causes):
            told = sentence.format(
                username=access.username, answer_s=access.answer_s, ca_file=access.ca_file or "this machine's"
            )
            return translated(f"{bmc} {told}")
    for cause in causes:
        if isinstance(cause, exceptions.ServerSideError) or (
            isinstance(cause, HttpRefused) and cause.status_code >= 500
        ):
            return BmcUnavailable(
                f"{bmc} answers with the server error HTTP {cause.status_code}: wait until it has started, try again"
            )
        if isinstance(cause, exceptions.ResourceNotFoundError):
            return BmcIncompleteAnswer(
                f"{bmc} lacks a part of its Redfish inventory (HTTP 404): is this address a BMC with Redfish?"
            )
        if isinstance(cause, exceptions.HTTPError | HttpRefused):
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
