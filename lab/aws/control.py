"""The lab's own switchboard beside the AWS API: capacity, faults, interruptions, images, and what is left. JSON over
HTTP, loopback only.

| call | body | answer |
|---|---|---|
| GET /lab/health | | {"url", "instances", "hosts"} |
| GET, POST /lab/capacity | {"instance_type", "zone", "market", "count"}; count null = unlimited | every row |
| POST /lab/capacity-block | BlockBody: one that is bought already | {"reservation_id"} |
| GET, POST, DELETE /lab/faults | FaultBody | every fault, with "hits" |
| POST /lab/interrupt | {"instance_id", "notice_s"} | {} |
| POST /lab/organization | OrganizationBody: its service control policies, null: none of that kind | its policies |
| POST /lab/hall | {"up", "networks"}: how many tunnels of each VPN are up, what comes by BGP | {} |
| POST /lab/clock | {"forward_s"}: the cloud's clock, by which sessions end | {} |
| GET, POST /lab/images | {"image_id", "folder", "name"}; see ImageBody | every image; {"image_id"} |
| GET /lab/instances, /lab/hosts | | every instance (ended too) / those with a host |
| DELETE /lab/instances | | the ended are forgotten, as EC2 does within an hour: [] |
| GET /lab/calls | | API action -> number of calls |
| GET /lab/leftovers | | kind -> names |

Errors are {"error": one sentence} with status 400, 404 or 500.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from http.server import ThreadingHTTPServer
from pathlib import PurePath
from typing import Any, Literal

import pydantic

from lab.aws import organization
from lab.aws.capacity import MARKETS
from lab.aws.cloud import Cloud, recent_calls
from lab.aws.leftovers import leftovers
from lab.aws.vpn_gaps import hall_answers
from lab.served import Answering

DEFAULT_PORT = 5001


class Body(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")


class CapacityBody(Body):
    instance_type: str
    zone: str
    market: Literal[MARKETS]
    count: int | None = pydantic.Field(ge=0)


class BlockBody(Body):
    instance_type: str
    zone: str
    count: int = pydantic.Field(ge=1)
    ends_in_s: float = pydantic.Field(gt=0)  # until EC2 takes its instances; the block itself ends later


class FaultBody(Body):
    action: str  # an API action, or "*"
    code: str = ""
    status: int = 400
    message: str = "injected by the lab"
    times: int = 1  # -1: until deleted
    match: dict[str, str] = {}  # flat query parameters that must be equal, e.g. {"InstanceType": "p5.48xlarge"}
    delay_s: float = 0.0
    drop: bool = False  # close the connection without a reply
    after: bool = False  # the call takes effect first: outcome unknown


class InterruptBody(Body):
    instance_id: str
    notice_s: float = pydantic.Field(default=120.0, ge=0)


class HallBody(Body):
    up: int = pydantic.Field(default=2, ge=0, le=2)
    networks: list[str] = []


class OrganizationBody(Body):
    tag: str | None = None  # no launch without it
    boundary: str | None = None  # no role without this policy (its ARN)


class ClockBody(Body):
    forward_s: float = pydantic.Field(ge=0)


class ImageBody(Body):
    folder: str | None = None  # a baked image's folder (its last part counts); None: the lab's base image
    image_id: str | None = None  # None: a new one
    name: str = ""


class ControlError(Exception):
    """One sentence and the HTTP status to send it with."""

    def __init__(self, message: str, status: int = 400):
        super().__init__(message)
        self.status = status


class Control(ThreadingHTTPServer):
    """Serves one Cloud; `image_known` says whether a baked image's folder name exists."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], cloud: Cloud, image_known: Callable[[str], bool] = lambda _: True):
        self.cloud, self.image_known = cloud, image_known
        super().__init__(address, Handler)

    @property
    def url(self) -> str:
        return "http://{}:{}".format(*self.server_address[:2])

    # ---- one method a call, listed in CALLS
    def get_health(self) -> Any:
        return {
            "url": self.cloud.url,
            "instances": len(self.cloud.backend.all_instances()),
            "hosts": len(self.cloud.hosts),
        }

    def get_capacity(self) -> Any:
        return [
            {"instance_type": t, "zone": z, "market": m, "count": n}
            for (t, z, m), n in sorted(self.cloud.capacity.items())
        ]

    def post_capacity(self, body: CapacityBody) -> Any:
        key = (body.instance_type, body.zone, body.market)
        if body.count is None:
            self.cloud.capacity.pop(key, None)
        else:
            self.cloud.capacity[key] = body.count
        return self.get_capacity()

    def post_block(self, body: BlockBody) -> Any:
        capacity = self.cloud.capacity
        return {
            "reservation_id": capacity.block(
                self.cloud.backend, body.instance_type, body.zone, body.count, body.ends_in_s
            )
        }

    def get_faults(self) -> Any:
        return [{k: v for k, v in dataclasses.asdict(f).items() if k != "when"} for f in self.cloud.layer.faults]

    def post_faults(self, body: FaultBody) -> Any:
        values = body.model_dump()
        match, delay = values.pop("match"), values.pop("delay_s")
        self.cloud.fault(**values, delay=delay, when=lambda params: all(params.get(k) == v for k, v in match.items()))
        return self.get_faults()

    def delete_faults(self) -> Any:
        self.cloud.layer.faults.clear()
        return []

    def post_interrupt(self, body: InterruptBody) -> Any:
        try:
            self.cloud.interrupt(body.instance_id, body.notice_s)
        except LookupError as error:
            raise ControlError(str(error), 404) from None
        return {}

    def post_organization(self, body: OrganizationBody) -> Any:
        self.cloud.organization[:] = [
            *([organization.no_launch_without(body.tag)] if body.tag else []),
            *([organization.no_role_without(body.boundary)] if body.boundary else []),
        ]
        return self.cloud.organization

    def post_hall(self, body: HallBody) -> Any:
        hall_answers(self.cloud.backend, body.up, body.networks)
        return {}

    def post_clock(self, body: ClockBody) -> Any:
        self.cloud.pass_by(body.forward_s)
        return {}

    def get_images(self) -> Any:
        return [
            {"image_id": i.id, "folder": i.folder or None, "name": i.name}
            for i in self.cloud.backend.amis.values()
            if hasattr(i, "folder")
        ]

    def post_images(self, body: ImageBody) -> Any:
        folder = PurePath(body.folder).name if body.folder else ""
        if folder and not self.image_known(folder):
            raise ControlError(
                f"folder: this lab has no baked image {body.folder!r}; bake it first, or leave folder out for the "
                "base image"
            )
        return {"image_id": self.cloud.register_image(folder, body.image_id, body.name)}

    def get_instances(self) -> Any:
        return [dataclasses.asdict(view) for view in self.cloud.instances()]

    def delete_instances(self) -> Any:
        self.cloud.forget_ended()
        return []

    def get_hosts(self) -> Any:
        return [dataclasses.asdict(view) for view in list(self.cloud.hosts.values())]

    def get_calls(self) -> Any:
        return recent_calls(self.cloud)

    def get_leftovers(self) -> Any:
        self.cloud.settle()  # hosts that are being ended aren't left over
        left = leftovers(self.cloud.url, self.cloud.region)
        return left | ({"hosts": sorted(self.cloud.hosts)} if self.cloud.hosts else {})


# (verb, path) -> what answers it, and the shape of its body
CALLS: dict[tuple[str, str], tuple[Callable[..., Any], type[Body] | None]] = {
    ("GET", "/lab/health"): (Control.get_health, None),
    ("GET", "/lab/capacity"): (Control.get_capacity, None),
    ("POST", "/lab/capacity"): (Control.post_capacity, CapacityBody),
    ("POST", "/lab/capacity-block"): (Control.post_block, BlockBody),
    ("GET", "/lab/faults"): (Control.get_faults, None),
    ("POST", "/lab/faults"): (Control.post_faults, FaultBody),
    ("DELETE", "/lab/faults"): (Control.delete_faults, None),
    ("POST", "/lab/interrupt"): (Control.post_interrupt, InterruptBody),
    ("POST", "/lab/organization"): (Control.post_organization, OrganizationBody),
    ("POST", "/lab/hall"): (Control.post_hall, HallBody),
    ("POST", "/lab/clock"): (Control.post_clock, ClockBody),
    ("GET", "/lab/images"): (Control.get_images, None),
    ("POST", "/lab/images"): (Control.post_images, ImageBody),
    ("GET", "/lab/instances"): (Control.get_instances, None),
    ("DELETE", "/lab/instances"): (Control.delete_instances, None),
    ("GET", "/lab/hosts"): (Control.get_hosts, None),
    ("GET", "/lab/calls"): (Control.get_calls, None),
    ("GET", "/lab/leftovers"): (Control.get_leftovers, None),
}


class Handler(Answering):
    server: Control

    def serve(self) -> None:
        """Answer one call; the caller gets its answer, or one sentence."""
        text = self.body()
        call = f"{self.command} {self.path}"
        try:
            if (self.command, self.path) not in CALLS:
                raise ControlError(f"{call}: no such call; see lab/aws/control.py", 404)
            method, body = CALLS[self.command, self.path]
            arguments = [body.model_validate_json(text or "{}")] if body else []
            self.send(200, method(self.server, *arguments))
        except pydantic.ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) or "body"
            given = f", not {first['input']!r}" if first["type"] != "missing" else ""
            self.send(400, {"error": f"{where}: {first['msg']}{given}"})
        except (ControlError, ValueError) as error:
            self.send(getattr(error, "status", 400), {"error": str(error)})
        except Exception as error:  # the caller gets a sentence, the log the rest
            self.send(500, {"error": f"{call} failed: {type(error).__name__}: {error}"})
            raise

    do_GET = do_POST = do_DELETE = serve
