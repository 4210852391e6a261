"""StopInstances, StartInstances and GetConsoleOutput: what EC2 does to an instance whose disk stays. moto stops at
once, whatever runs, and shows one console for all.
"""

from __future__ import annotations

import base64
import hashlib
import logging
from collections.abc import Callable
from typing import Any, Protocol

from moto.core.types import Base64EncodedString
from moto.core.utils import utcnow
from moto.ec2.models.instances import InstanceState

from lab.aws.faults import Ec2Error
from lab.aws.launch_spec import Params
from lab.aws.view import InstanceView, view_of

CODES = {"pending": 0, "running": 16, "stopping": 64, "stopped": 80}
log = logging.getLogger(__name__)


def booted(view: InstanceView) -> str:
    """The console of an instance without a host: what cloud-init prints at the first boot."""
    kind = b"ssh-ed25519"
    parts = (kind, hashlib.sha256(view.instance_id.encode()).digest())
    key = base64.b64encode(b"".join(len(part).to_bytes(4) + part for part in parts)).decode()
    lines = ("-----BEGIN SSH HOST KEY KEYS-----", f"ssh-ed25519 {key} root@{view.hostname}")
    return "\r\n".join((*lines, "-----END SSH HOST KEY KEYS-----", ""))


class Owner(Protocol):
    """What Power needs of its cloud (lab.aws.cloud.Cloud)."""

    lock: Any
    on_stop: Callable[[InstanceView], None] | None
    on_start: Callable[[InstanceView], None] | None
    on_console: Callable[[InstanceView], str] | None

    def run_hook(self, hook: Callable[[Any], None], instance: Any) -> None:
        """Call it in the thread of hooks."""

    def state_changed(self, instance: Any, state: str) -> None:
        """Tell EventBridge."""


class Power:
    """Of a cloud's instances. A host behind an instance is shut down in the cloud's thread of hooks, so that no call
    waits for it.
    """

    def __init__(self, cloud: Owner):
        self.cloud = cloud

    def stop_instances(self, backend: Any, p: Params) -> Params:
        """To `stopping`, and `stopped` once the host is off. A one-time spot instance can't be."""
        instances = backend.get_multi_instances_by_id(p["InstanceIds"])
        for instance in instances:
            if instance.lifecycle == "spot":
                raise Ec2Error(
                    "UnsupportedOperation",
                    f"You can't stop the Spot Instance '{instance.id}' because it is associated with a one-time Spot "
                    "Instance request. You can only stop Spot Instances associated with persistent Spot Instance "
                    "requests.",
                )
            if instance.state not in ("running", "stopping", "stopped"):
                raise Ec2Error(
                    "IncorrectInstanceState",
                    f"The instance '{instance.id}' is not in a state from which it can be stopped.",
                )
        return {"StoppingInstances": [self._turn(each, "running", "stopping", self._stop) for each in instances]}

    def start_instances(self, backend: Any, p: Params) -> Params:
        """To `pending`, and `running` once the host is starting."""
        instances = backend.get_multi_instances_by_id(p["InstanceIds"])
        for instance in instances:
            if instance.state not in ("stopped", "pending", "running"):
                raise Ec2Error(
                    "IncorrectInstanceState",
                    f"The instance '{instance.id}' is not in a state from which it can be started.",
                )
        return {"StartingInstances": [self._turn(each, "stopped", "pending", self._start) for each in instances]}

    def get_console_output(self, backend: Any, p: Params) -> Params:
        """What the host has written so far with `Latest`; nothing yet without it, for that is minutes old."""
        instance = backend.get_instance(p["InstanceId"])
        latest = str(p.get("Latest", "")).lower() == "true"
        text = (self.cloud.on_console or booted)(view_of(instance)) if latest else ""
        # EC2 keeps the last 64 KiB
        output = Base64EncodedString.from_raw_string(text[-65536:])
        return {"InstanceId": instance.id, "Timestamp": utcnow(), "Output": output}

    def _turn(self, instance: Any, before: str, after: str, then: Any) -> Params:
        previous = instance.state
        if previous == before:
            instance._state = InstanceState(after, CODES[after])
            self.cloud.run_hook(then, instance)
        shown = {"Name": instance.state, "Code": CODES[instance.state]}
        return {
            "InstanceId": instance.id,
            "CurrentState": shown,
            "PreviousState": {"Name": previous, "Code": CODES[previous]},
        }

    def _stop(self, instance: Any) -> None:
        if self.cloud.on_stop:
            try:
                self.cloud.on_stop(view_of(instance))
            except Exception:  # as on EC2: it stays `stopping`
                log.exception("%s: the stop hook failed", instance.id)
                return
        self._becomes(instance, "stopping", "stopped")

    def _start(self, instance: Any) -> None:
        if self.cloud.on_start:
            try:
                self.cloud.on_start(view_of(instance))
            except Exception:
                log.exception("%s: the start hook failed", instance.id)
                return
        self._becomes(instance, "pending", "running")

    def _becomes(self, instance: Any, before: str, after: str) -> None:
        with self.cloud.lock:
            if instance.state != before:
                return  # ended meanwhile
            instance._state = InstanceState(after, CODES[after])
        self.cloud.state_changed(instance, after)
