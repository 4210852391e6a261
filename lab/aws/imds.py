"""The instance metadata service, version 2 only, for every host of the lab: who asks is known by the source address."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable
from http.server import ThreadingHTTPServer

from lab.aws.view import InstanceView
from lab.served import Answering

Lookup = Callable[[str], InstanceView | None]
Credentials = Callable[[InstanceView], dict[str, str] | None]


def tree(host: InstanceView, region: str, credentials: dict[str, str] | None = None) -> dict[str, str]:
    """Every path that a host may read -> text."""
    out = {
        "meta-data/instance-id": host.instance_id,
        "meta-data/instance-type": host.instance_type,
        "meta-data/local-ipv4": host.address,
        "meta-data/local-hostname": host.hostname,
        "meta-data/ami-id": host.image_id,
        "meta-data/ami-launch-index": str(host.launch_index),
        "meta-data/instance-life-cycle": host.market,
        "meta-data/placement/region": region,
        "meta-data/placement/availability-zone": host.zone,
    }
    if host.placement_group:
        out["meta-data/placement/group-name"] = host.placement_group
    if host.public_key:
        out["meta-data/public-keys/0/openssh-key"] = host.public_key
    if host.user_data is not None:
        out["user-data"] = host.user_data
    if host.tags_in_metadata:
        out.update({f"meta-data/tags/instance/{key}": value for key, value in host.tags.items() if "/" not in key})
    if host.spot_action:  # 404 until the warning; as the real one, seen by polling only
        out["meta-data/spot/instance-action"] = host.spot_action
    if host.role_arn and credentials:
        out["meta-data/iam/security-credentials/" + host.role_arn.rsplit("/", 1)[1]] = json.dumps(credentials)
    return out


class Imds(ThreadingHTTPServer):
    """Serves `lookup`'s instances; `credentials` gives the role's keys, or None; `clock` gives seconds."""

    daemon_threads = True

    def __init__(
        self,
        address: tuple[str, int],
        lookup: Lookup,
        region: str = "us-east-1",
        credentials: Credentials = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.clock = clock
        self.lookup, self.region, self.credentials, self.lock = lookup, region, credentials, threading.Lock()
        self.tokens: dict[str, tuple[str, float]] = {}  # token -> (instance id, end)
        super().__init__(address, Handler)

    def token(self, instance: str, seconds: int) -> str:
        token, now = secrets.token_urlsafe(40), self.clock()
        with self.lock:
            self.tokens = {t: v for t, v in self.tokens.items() if v[1] > now} | {token: (instance, now + seconds)}
        return token

    def valid(self, token: str, instance: str) -> bool:
        held = self.tokens.get(token)
        return bool(held and held[0] == instance and held[1] > self.clock())


class Handler(Answering):
    server: Imds

    def do_PUT(self) -> None:
        seconds = self.headers.get("X-aws-ec2-metadata-token-ttl-seconds", "")
        host = self.server.lookup(self.client_address[0])
        if self.headers.get("X-Forwarded-For") or (host and not host.metadata_enabled):
            return self.answer(403)  # a token never passes a proxy
        if self.path != "/latest/api/token" or not host:
            return self.answer(404)
        if not seconds.isdigit() or not 1 <= int(seconds) <= 21600:  # six hours, as the real service allows
            return self.answer(400)
        return self.answer(
            200, self.server.token(host.instance_id, int(seconds)), {"X-aws-ec2-metadata-token-ttl-seconds": seconds}
        )

    def do_GET(self) -> None:
        host = self.server.lookup(self.client_address[0])
        if not host or not self.server.valid(self.headers.get("X-aws-ec2-metadata-token", ""), host.instance_id):
            return self.answer(401)
        if not host.metadata_enabled:
            return self.answer(403)
        paths = tree(host, self.server.region, self.server.credentials(host))
        wanted = self.path.removeprefix("/latest/")
        if wanted == "meta-data/public-keys/" and host.public_key:
            return self.answer(200, f"0={host.key_name}")  # this list alone names its entries
        if wanted in paths:
            return self.answer(200, paths[wanted])
        below = [p.removeprefix(wanted.rstrip("/") + "/") for p in paths if p.startswith(wanted.rstrip("/") + "/")]
        names = sorted({p.split("/")[0] + ("/" if "/" in p else "") for p in below})
        return self.answer(200, "\n".join(names)) if names else self.answer(404)

    def answer(self, status: int, text: str = "", headers: dict[str, str] | None = None) -> None:
        self.send(status, text.encode(), {"Content-Type": "text/plain", **(headers or {})})
