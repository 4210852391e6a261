"""The lab's switchboard beside Google's API, with the calls of lab/aws/control.py that a demo makes: JSON over HTTP,
loopback only.

| call | body | answer |
|---|---|---|
| GET /lab/health | | {"url", "instances"} |
| GET, POST /lab/capacity | {"instance_type", "zone", "market", "count"}; count null = unlimited | every row |
| POST /lab/interrupt | {"instance_id", "notice_s"}: ZONE/NAME/NUMBER; spot is taken back, told so long before | {} |
| POST /lab/images | {"name", "family"}: a stock image | {"image_id"} |
| POST /lab/secrets | {"name", "value"}: projects/P/secrets/NAME; value null: it is taken away | {} |
| POST /lab/subjects | {"token", "email", "owner"}: who signs in with a token from outside | {} |
| POST /lab/impersonators | {"email", "account"}: who may be which service account | {} |
| POST /lab/metadata | {"key", "value"}: of the project; value null: it is taken away | {} |
| GET /lab/instances | | every instance |
| GET /lab/calls | | call -> how often |
| GET /lab/leftovers | | kind -> names |

Errors are {"error": one sentence} with status 400, 404 or 500.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from lab.google.leftovers import leftovers
from lab.google.server import Cloud

MODELS = {"spot": "SPOT", "on-demand": "STANDARD", "capacity-block": "RESERVATION_BOUND"}
_MARKETS = {model: market for market, model in MODELS.items()}
_STATES = {"TERMINATED": "stopped", "STOPPING": "stopping", "RUNNING": "running", "STAGING": "pending"}
Json = dict[str, Any]


class Control(ThreadingHTTPServer):
    """Serves one Cloud."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], cloud: Cloud):
        self.cloud = cloud
        super().__init__(address, _Handler)
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def get_health(self, _: Json) -> Any:
        return {"url": self.cloud.url_of_api, "instances": len(self.cloud.vms)}

    def get_capacity(self, _: Json) -> Any:
        return [
            {"instance_type": kind, "zone": zone, "market": _MARKETS[model], "count": count}
            for (kind, zone, model), count in sorted(self.cloud.capacity.items())
        ]

    def post_capacity(self, body: Json) -> Any:
        key = (body["instance_type"], body["zone"], MODELS[body["market"]])
        if body["count"] is None:
            self.cloud.capacity.pop(key, None)
        else:
            self.cloud.capacity[key] = body["count"]
        return self.get_capacity({})

    def post_interrupt(self, body: Json) -> Any:
        number = body["instance_id"].rpartition("/")[2]
        if number not in self.cloud.vms:
            raise LookupError(f"there is no instance {body['instance_id']}")
        self.cloud.preempt(self.cloud.vms[number], body.get("notice_s"))
        return {}

    def post_images(self, body: Json) -> Any:
        self.cloud.images[body["name"]] = body.get("family", "")
        return {"image_id": f"projects/{self.cloud.project}/global/images/{body['name']}"}

    def post_secrets(self, body: Json) -> Any:
        if body["value"] is None:
            self.cloud.secrets.pop(body["name"], None)
        else:
            self.cloud.secrets[body["name"]] = body["value"].encode()
        return {}

    def post_subjects(self, body: Json) -> Any:
        self.cloud.iam.subjects[body["token"]] = body["email"]
        if body.get("owner"):
            self.cloud.iam.owners.add(body["email"])
        return {}

    def post_impersonators(self, body: Json) -> Any:
        self.cloud.iam.impersonators.add((body["email"], body["account"]))
        return {}

    def post_metadata(self, body: Json) -> Any:
        if body["value"] is None:
            self.cloud.metadata.pop(body["key"], None)
        else:
            self.cloud.metadata[body["key"]] = body["value"]
        return {}

    def get_instances(self, _: Json) -> Any:
        return [
            {
                "instance_id": f"{vm.zone}/{vm.name}/{number}",
                "instance_type": vm.machine_type,
                "zone": vm.zone,
                "address": vm.raw["networkInterfaces"][0]["networkIP"],
                "market": _MARKETS.get(vm.model, vm.model),
                "state": _STATES.get(vm.raw["status"], vm.raw["status"].lower()),
            }
            for number, vm in self.cloud.vms.items()
        ]

    def get_calls(self, _: Json) -> Any:
        return Counter(each.id for each in self.cloud.calls)

    def get_leftovers(self, _: Json) -> Any:
        return leftovers(self.cloud)


_CALLS = {
    ("GET", "/lab/health"): Control.get_health,
    ("GET", "/lab/capacity"): Control.get_capacity,
    ("POST", "/lab/capacity"): Control.post_capacity,
    ("POST", "/lab/interrupt"): Control.post_interrupt,
    ("POST", "/lab/images"): Control.post_images,
    ("POST", "/lab/secrets"): Control.post_secrets,
    ("POST", "/lab/subjects"): Control.post_subjects,
    ("POST", "/lab/impersonators"): Control.post_impersonators,
    ("POST", "/lab/metadata"): Control.post_metadata,
    ("GET", "/lab/instances"): Control.get_instances,
    ("GET", "/lab/calls"): Control.get_calls,
    ("GET", "/lab/leftovers"): Control.get_leftovers,
}


class _Handler(BaseHTTPRequestHandler):
    server: Control

    def _serve(self) -> None:
        text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        method = _CALLS.get((self.command, self.path))
        if method is None:
            return self._answer(404, {"error": f"{self.command} {self.path}: no such call; see lab/google/control.py"})
        try:
            with self.server.cloud.settled():
                answer = method(self.server, json.loads(text or "{}"))
        except (LookupError, ValueError) as error:
            return self._answer(400, {"error": f"{type(error).__name__}: {error}"})
        return self._answer(200, answer)

    do_GET = do_POST = _serve

    def _answer(self, status: int, value: Any) -> None:
        content = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Nothing is printed."""
