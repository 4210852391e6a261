"""The stand-in over HTTP, and faults: calls that fail, wait, are lost, or are answered with something else."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from lab.azure import declared, identities
from lab.azure.calls import Answer, Calls
from lab.azure.description import Call, Wrong, call, check_answer
from lab.azure.identities import Identities
from lab.azure.world import Json, Refusal, World
from lab.served import LOOPBACK, Api, Fault

ARM = "https://management.azure.com"


class Http(NamedTuple):
    status: int
    body: bytes
    headers: Mapping[str, str] = {}


class Cloud(Api, World):
    """A subscription of Azure on the loopback."""

    reason = "InternalServerError"

    def __init__(self, address: tuple[str, int] = LOOPBACK, **world: Any):
        super().__init__(**world)
        self.declared = declared.Declared(self)
        self.identities = Identities(self.declared)
        self._answers = Calls(self, lambda: self.url)
        self.serve(address)
        self.url, self.url_of_prices = self.at, f"{self.at}/api/retail/prices"

    def handle(self, verb: str, url: str, body: bytes, headers: Mapping[str, str]) -> Http | None:
        """An answer; None: the connection is lost."""
        with self.settled():
            if url.startswith(declared.ROOT):
                return Http(*self.declared.handle(verb, unquote(url), body))
            if url.startswith(identities.ENDPOINT):
                return Http(*self.identities.answer(url, headers))
            if other := self._beside(verb, url):
                return other
            try:
                asked = _call(verb, url, body, headers)
                if asked is None:
                    raise Refusal(404, "InvalidResourceType", f"there is no call {verb} {url}")
                kind, _, token = headers.get("Authorization", "").partition(" ")
                if kind != "Bearer" or not self.identities.knows(token, ARM):
                    raise Refusal(401, "AuthenticationFailed", "Authentication failed: no token, or none of ours.")
                if refused := self.identities.refusal(token, asked):
                    raise Refusal(403, "AuthorizationFailed", refused)
            except Wrong as error:
                return _said(Refusal(400, error.code, str(error)))
            except Refusal as error:
                return _said(error)
            self.calls.append(asked)
            fault = self.hit(asked)
            true = self._true(asked) if fault is None or fault.after or fault.rewrite else None
        return self._faulty(fault, asked, true) if fault else true

    def _beside(self, verb: str, url: str) -> Http | None:
        """What isn't ARM: console logs, which need no token, and the price list."""
        split = urlsplit(url)
        if verb == "GET" and split.path.startswith("/blob/"):
            number = split.path.rpartition("/")[2]
            found = [self.machines.console(vm) for vm in self.vms.values() if vm.properties["vmId"] == number]
            return Http(200, found[0].encode()) if found and found[0] else Http(404, b"<Error>BlobNotFound</Error>")
        if verb == "GET" and split.path == "/api/retail/prices":
            wanted = parse_qs(split.query)["$filter"][0]
            items = [
                item for size, usd in self.spot_usd.items() if f"'{size}'" in wanted for item in _prices(size, usd)
            ]
            return Http(200, json.dumps({"BillingCurrency": "USD", "Items": items, "NextPageLink": None}).encode())
        return None

    def _true(self, asked: Call) -> Http:
        try:
            if asked.name == "operations.get":
                answer = Answer(200, dict(self._operation(asked.path["operation"])))
            else:
                answer = self._answers.answer(asked)
                check_answer(asked.name, answer.body)
        except Refusal as error:
            return _said(error)
        except Wrong as error:
            self.wrong.append(f"{asked.name}: {error}")
            raise
        headers = {}
        if answer.operation:
            place = f"/subscriptions/{self.subscription}/providers/Microsoft.Compute/locations/{self.region}/operations"
            headers["Azure-AsyncOperation"] = f"{self.url}{place}/{answer.operation}?api-version=2026-04-01"
            headers["Retry-After"] = "10"
        return Http(answer.status, b"" if answer.body is None else json.dumps(answer.body).encode(), headers)

    def _operation(self, name: str) -> Json:
        if name not in self.operations:
            raise Refusal(404, "NotFound", f"The entity was not found: {name}")
        return self.operations[name]

    def _faulty(self, fault: Fault, asked: Call, true: Http | None) -> Http | None:
        if fault.delay_s:
            time.sleep(fault.delay_s)
        if fault.drop:
            return None
        if fault.status:
            return _said(Refusal(fault.status, fault.reason, fault.message, **fault.headers), fault.more)
        if true is None:
            with self._lock:
                true = self._true(asked)
        if fault.rewrite:
            other = fault.rewrite(json.loads(true.body or b"{}"))
            return true._replace(body=other if isinstance(other, bytes) else json.dumps(other).encode())
        return true


def _call(verb: str, url: str, body: bytes, headers: Mapping[str, str]) -> Call | None:
    path = urlsplit(url).path
    if verb == "GET" and "/operations/" in path:
        if "api-version=" not in url:
            raise Wrong("The api-version query parameter (?api-version=) is required.", "MissingApiVersionParameter")
        return Call("operations.get", {"operation": path.rpartition("/")[2]}, {})
    return call(verb, url, body, {**headers, "x-path": path})


def _prices(size: str, usd: float) -> list[Json]:
    """As the retail price list has a size: on demand, spot, and both with Windows."""
    linux = {
        "currencyCode": "USD",
        "armSkuName": size,
        "productName": "Virtual Machines ND Series",
        "type": "Consumption",
    }
    spot = linux | {"skuName": f"{size} Spot", "unitPrice": usd}
    windows = spot | {"productName": "Virtual Machines ND Series Windows", "unitPrice": usd * 2}
    return [linux | {"skuName": size, "unitPrice": usd * 4}, windows, spot]


def _said(error: Refusal, more: Mapping[str, Any] = MappingProxyType({})) -> Http:
    said = {"error": {"code": error.code, "message": str(error), **more}}
    return Http(error.status, json.dumps(said).encode(), error.headers)
