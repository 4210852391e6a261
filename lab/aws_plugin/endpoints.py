"""The provider's configuration, and the fence around the lab: no request leaves it."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import boto3
from botocore.config import Config
from pulumi import _types
from pulumi_aws import _inputs as sdk_inputs
from pulumi_aws import provider as sdk

from lab.provider.fence import OutsideLab, in_lab
from lab.provider.schema import Problem, parse_tree, problems
from lab.provider.wire import UNKNOWN, Props

KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
ALIASES = {"events": ("events", "eventbridge", "cloudwatchevents")}
# The skip* switches and s3UsePathStyle change nothing here: the stand-in never makes those checks, and asks S3 by path.
SETTINGS = (
    "region accessKey secretKey token endpoints defaultTags{tags} skipRegionValidation skipCredentialsValidation "
    "skipMetadataApiCheck skipRequestingAccountId s3UsePathStyle"
)
NO_ENDPOINT = (
    "aws:endpoints is not set: this is the lab's stand-in for the aws plugin and speaks only to the lab's AWS; "
    'set aws:endpoints to it, for example [{ec2: "http://10.78.0.1:5000", ...}]'
)
OUTSIDE = (
    "is outside the lab: this stand-in for the aws plugin speaks only to "
    "literal addresses on loopback or in 10.78.0.0/16"
)


def parse(raw: Props) -> Props:
    """The engine sends every value as a string, structures as JSON text."""
    out = {k: v for k, v in raw.items() if k != "version" and not k.startswith("__")}
    for key in ("endpoints", "defaultTags"):
        if isinstance(out.get(key), str) and out[key] != UNKNOWN:
            try:
                out[key] = json.loads(out[key])
            except ValueError:
                out[key] = f"not JSON: {out[key]}"
    return out


def config_problems(raw: Props) -> Iterator[Problem]:
    config = parse(raw)
    endpoints = config.get("endpoints")
    settings = parse_tree(SETTINGS)
    settings["endpoints"] = {service: {} for service in _types.input_type_types(sdk_inputs.ProviderEndpointArgs)}
    yield from problems(sdk.ProviderArgs, settings, config)
    if not config.get("region"):
        yield "region", "is required: set aws:region"
    if endpoints == UNKNOWN:
        return
    if not endpoints:
        yield "endpoints", NO_ENDPOINT
    for i, entry in enumerate(endpoints if isinstance(endpoints, list) else []):
        for service, url in entry.items() if isinstance(entry, dict) else ():
            if url != UNKNOWN and not in_lab(str(url)):
                yield f"endpoints[{i}].{service}", f"{url!r} {OUTSIDE}"


@dataclass
class Clients:
    """boto3 clients by service and region, made on first use and fenced."""

    config: Props
    _made: dict[tuple[str, str], Any] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def region(self) -> str:
        return self.config["region"]

    @property
    def default_tags(self) -> dict[str, str]:
        return dict((self.config.get("defaultTags") or {}).get("tags") or {})

    @cached_property
    def account(self) -> str:
        """The account that the endpoint speaks for."""
        return self.client("sts").get_caller_identity()["Account"]

    def endpoint(self, service: str) -> str:
        for entry in self.config["endpoints"]:
            for name in ALIASES.get(service, (service,)):
                if entry.get(name):
                    return entry[name]
        raise OutsideLab(
            f"aws:endpoints has no entry {service!r}: add it, the stand-in never falls back to AWS's own endpoints"
        )

    def client(self, service: str, region: str | None = None) -> Any:
        key = (service, region or self.region)
        with self._lock:
            if key not in self._made:
                # No proxies; nothing of ~/.aws, and of the environment only what __main__ has left there.
                access, secret, token = (os.environ.get(name) for name in KEYS)
                made = boto3.session.Session(region_name=key[1]).client(
                    service,
                    endpoint_url=self.endpoint(service),
                    aws_access_key_id=self.config.get("accessKey") or access or "lab",
                    aws_secret_access_key=self.config.get("secretKey") or secret or "lab",
                    aws_session_token=self.config.get("token") or token,
                    config=Config(
                        proxies={},
                        retries={"mode": "standard", "total_max_attempts": 5},
                        connect_timeout=5,
                        read_timeout=60,
                    ),
                )
                made.meta.events.register("before-send", _fence)
                self._made[key] = made
            return self._made[key]


def _fence(request: Any, **_: Any) -> None:
    if not in_lab(request.url):
        raise OutsideLab(f"a request to {request.url} was stopped: it is outside the lab")
