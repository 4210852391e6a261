"""The lab's switchboard beside the API of Google Cloud's or Azure's stand-in, with the calls of lab/aws/control.py that
a demo makes: JSON over HTTP, loopback only.

| call | body | answer |
|---|---|---|
| GET /lab/health | | {"url", "instances"} |
| GET, POST /lab/capacity | {"instance_type", "zone", "market", "count"}; count null = unlimited | every row |
| POST /lab/interrupt | {"instance_id", "notice_s"}: spot is taken back, told so long before | {} |
| POST /lab/images | {"name"}: a stock image | {"image_id"} |
| POST /lab/secrets | {"name", "value"}; value null: it is taken away | {} |
| GET /lab/instances | | every instance |
| GET /lab/calls | | call -> how often |
| GET /lab/leftovers | | kind -> names |

Errors are {"error": one sentence} with status 400 or 404.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from lab.served import Answering, Server

Json = dict[str, Any]


class Switchboard(Server):
    """Serves one stand-in: GET /lab/NAME is its method `get_NAME`, POST /lab/NAME `post_NAME`."""

    models: ClassVar[Mapping[str, str]]
    """market -> what the cloud calls it"""

    def __init__(self, address: tuple[str, int], cloud: Any):
        self.cloud = cloud
        super().__init__(address, _Handler)

    def market(self, model: str) -> str:
        """What the cloud's own word is here."""
        return next((market for market, its in self.models.items() if its == model), model)

    def within(self, zone: str) -> str:
        """A zone as the stand-in's capacity has it."""
        return zone

    def zone(self, within: str) -> str:
        """The other way round."""
        return within

    def called(self) -> Iterable[str]:
        """The name of each call that was made."""
        raise NotImplementedError

    def get_calls(self, _: Json) -> Any:
        return Counter(self.called())

    def get_capacity(self, _: Json) -> Any:
        return [
            {"instance_type": kind, "zone": self.zone(within), "market": self.market(model), "count": count}
            for (kind, within, model), count in sorted(self.cloud.capacity.items())
        ]

    def post_capacity(self, body: Json) -> Any:
        key = (body["instance_type"], self.within(body["zone"]), self.models[body["market"]])
        put(self.cloud.capacity, key, body["count"])
        return self.get_capacity({})


def put(held: dict[Any, Any], key: Any, value: Any) -> None:
    """Under that key; None: it is taken away."""
    if value is None:
        held.pop(key, None)
    else:
        held[key] = value


class _Handler(Answering):
    server: Switchboard

    def _serve(self) -> None:
        body = self.body()
        method = getattr(self.server, f"{self.command.lower()}_{self.path.removeprefix('/lab/')}", None)
        if method is None:
            return self.send(404, {"error": f"{self.command} {self.path}: no such call; see lab/switchboard.py"})
        try:
            with self.server.cloud.settled():
                answer = method(json.loads(body or "{}"))
        except (LookupError, ValueError) as error:
            return self.send(400, {"error": f"{type(error).__name__}: {error}"})
        return self.send(200, answer)

    do_GET = do_POST = _serve
