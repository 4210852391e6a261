"""Looks for Redfish services in a network: one connection to each address, at a limited rate. No login here."""

from __future__ import annotations

import hashlib
import http.client
import json
import ssl
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from ironburst.adapters.redfish import client as redfish
from ironburst.baremetal.discovered import Discovered
from ironburst.baremetal.said import text

AT_ONCE, TIMEOUT_S, MOST_BYTES = 32, 3.0, 256 * 1024
SERVICE_ROOT = "/redfish/v1/"


def look(
    addresses: Iterable[str], *, port: int, plain: bool, ca_file: str | None, per_second: float
) -> Iterator[Discovered]:
    """The Redfish services at these addresses, in their order. Raises OSError where `ca_file` can't be read."""
    trusting = None if plain else ssl.create_default_context(cafile=ca_file)
    pace = _Pace(per_second)

    def one(address: str) -> Discovered | None:
        pace.wait()
        return _service(address, port, plain, trusting)

    with ThreadPoolExecutor(AT_ONCE) as threads:
        yield from filter(None, threads.map(one, addresses))


def read(found: Iterable[Discovered], *, username: str, password: str, insecure: bool) -> Iterator[Discovered]:
    """Each with its inventory, where its certificate may be trusted (`insecure`: whatever it is). The password is tried
    once at each BMC, known by its UUID: one that two addresses lead to is not asked twice.
    """
    asked: set[str] = set()

    def one(each: Discovered) -> Discovered:
        if not (each.trusted or insecure):
            return replace(each, why="not read: no CA known here signed its certificate (--ca-file, --insecure)")
        access = redfish.BmcAccess(
            node=each.address,
            address=each.url,
            username=username,
            password=password,
            sha256=each.sha256,  # the one that was seen a moment ago, and no other
            timeout_s=60.0,
        )
        try:
            return replace(each, hardware=redfish.read_hardware(access))
        except redfish.BmcError as error:
            return replace(each, why=f"not read: {str(error).removeprefix(f'{each.address}: ')}")

    once = []
    for each in found:
        again = each.uuid is not None and each.uuid in asked
        asked.add(each.uuid or each.address)
        once.append(replace(each, why="the same BMC as another address") if again else each)
    with ThreadPoolExecutor(AT_ONCE) as threads:
        yield from threads.map(lambda each: each if each.why else one(each), once)


class _Pace:
    """Lets that many pass a second."""

    def __init__(self, per_second: float) -> None:
        self._every_s, self._next, self._lock = 1 / per_second, 0.0, threading.Lock()

    def wait(self) -> None:
        """Returns when it is our turn."""
        with self._lock:
            now = time.monotonic()
            mine = max(now, self._next)
            self._next = mine + self._every_s
        time.sleep(max(0.0, mine - now))


def _service(address: str, port: int, plain: bool, trusting: ssl.SSLContext | None) -> Discovered | None:
    unverified = ssl.create_default_context()
    unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE  # nothing secret is sent
    link = (
        http.client.HTTPConnection(address, port, timeout=TIMEOUT_S)
        if plain
        else http.client.HTTPSConnection(address, port, timeout=TIMEOUT_S, context=unverified)
    )
    try:
        link.request("GET", SERVICE_ROOT, headers={"Accept": "application/json", "Connection": "close"})
        answer = link.getresponse()
        shown = getattr(link.sock, "getpeercert", None)
        certificate = shown(binary_form=True) if shown else None
        body = json.loads(answer.read(MOST_BYTES)) if answer.status == 200 else None
    except (OSError, http.client.HTTPException, ValueError, RecursionError):
        return None
    finally:
        link.close()
    if not isinstance(body, dict) or text(body, "RedfishVersion") is None:
        return None
    scheme, usual = ("http", 80) if plain else ("https", 443)
    return Discovered(
        address=address,
        url=f"{scheme}://{address}" + (f":{port}" if port != usual else ""),
        maker=text(body, "Vendor") or next((key for key in body.get("Oem") or {} if isinstance(key, str)), None),
        product=text(body, "Product", "Name"),
        uuid=text(body, "UUID"),
        sha256=hashlib.sha256(certificate).hexdigest() if certificate else None,
        trusted=trusting is not None and _trusted(address, port, trusting),
    )


def _trusted(address: str, port: int, context: ssl.SSLContext) -> bool:
    link = http.client.HTTPSConnection(address, port, timeout=TIMEOUT_S, context=context)
    try:
        link.connect()
    except OSError:
        return False
    finally:
        link.close()
    return True
