"""The lab's switchboard (lab/switchboard.py) of Google Cloud, where an instance is ZONE/NAME/NUMBER and a secret
projects/P/secrets/NAME, and what else an operator does there once:

| call | body | answer |
|---|---|---|
| POST /lab/subjects | {"token", "email", "owner"}: who signs in with a token from outside | {} |
| POST /lab/impersonators | {"email", "account"}: who may be which service account | {} |
| POST /lab/metadata | {"key", "value"}: of the project; value null: it is taken away | {} |
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from lab.google.leftovers import leftovers
from lab.google.vm import Json
from lab.switchboard import Switchboard, put

_STATES = {"TERMINATED": "stopped", "STOPPING": "stopping", "RUNNING": "running", "STAGING": "pending"}


class Control(Switchboard):
    """Of one Cloud."""

    models: ClassVar = {"spot": "SPOT", "on-demand": "STANDARD", "capacity-block": "RESERVATION_BOUND"}

    def called(self) -> Iterable[str]:
        return (each.id for each in self.cloud.calls)

    def get_health(self, _: Json) -> Any:
        return {"url": self.cloud.url_of_api, "instances": len(self.cloud.vms)}

    def post_interrupt(self, body: Json) -> Any:
        number = body["instance_id"].rpartition("/")[2]
        if number not in self.cloud.vms:
            raise LookupError(f"there is no instance {body['instance_id']}")
        self.cloud.preempt(self.cloud.vms[number], body.get("notice_s"))
        return {}

    def post_images(self, body: Json) -> Any:
        self.cloud.images[body["name"]] = ""
        return {"image_id": f"projects/{self.cloud.project}/global/images/{body['name']}"}

    def post_secrets(self, body: Json) -> Any:
        put(self.cloud.secrets, body["name"], body["value"] and body["value"].encode())
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
        put(self.cloud.metadata, body["key"], body["value"])
        return {}

    def get_instances(self, _: Json) -> Any:
        return [
            {
                "instance_id": f"{vm.zone}/{vm.name}/{number}",
                "instance_type": vm.machine_type,
                "zone": vm.zone,
                "address": vm.raw["networkInterfaces"][0]["networkIP"],
                "market": self.market(vm.model),
                "state": _STATES.get(vm.raw["status"], vm.raw["status"].lower()),
            }
            for number, vm in self.cloud.vms.items()
        ]

    def get_leftovers(self, _: Json) -> Any:
        return leftovers(self.cloud)
