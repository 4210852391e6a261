"""moto's server in this process with everything of this package put into it.

One Cloud a process: moto's state, and the methods that are replaced here, are global to it.
"""

from __future__ import annotations

import collections
import datetime as dt
import json
import logging
import random
import re
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2 import utils as ec2_utils
from moto.ec2.models import ec2_backends
from moto.ec2.models.amis import Ami, AmiBackend
from moto.ec2.models.elastic_network_interfaces import Attachment, NetworkInterface
from moto.ec2.models.instances import Instance, InstanceState, StateReason
from moto.ec2.models.subnets import Subnet
from moto.ec2.responses import EC2Response
from moto.events.models import events_backends
from moto.moto_api._internal.models import moto_api_backend
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from moto.sts.models import sts_backends
from werkzeug.serving import make_server

from lab.aws import (
    account_gaps,
    budgets_gaps,
    clock,
    disks,
    ec2_gaps,
    events_gaps,
    iam,
    iam_gaps,
    iam_late,
    iam_limits,
    images,
    limits,
    link_gaps,
    placement,
    spot,
    vpn_gaps,
)
from lab.aws.capacity import Capacity
from lab.aws.eks import Eks
from lab.aws.faults import Ec2Error, FaultLayer
from lab.aws.launch_spec import Params, plain
from lab.aws.launching import Launcher, once
from lab.aws.power import Power
from lab.aws.rolesanywhere import RolesAnywhere
from lab.aws.view import InstanceView, view_of

ACCOUNT = "123456789012"
STATE_CHANGE = "EC2 Instance State-change Notification"
IMAGE_ID = re.compile(r"ami-([0-9a-f]{8}|[0-9a-f]{17})")
FILTERS = {
    "instance-lifecycle": "lifecycle",
    "placement-group-name": "placement.group_name",
    "client-token": "client_token",
    "capacity-reservation-id": "capacity_reservation_id",
    "spot-instance-request-id": "spot_instance_request_id",
}
Hook = Callable[[InstanceView], None]
Bake = Callable[[InstanceView, str], None]
log = logging.getLogger(__name__)


class QuietHandler(MotoRequestHandler):
    """No access log: `calls` has every request."""

    def log_request(self, *args: object) -> None:
        pass


class Cloud:
    """The API at `url` from construction until close()."""

    _alive = False

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        region: str = "us-east-1",
        seed: int | None = None,
        on_launch: Hook | None = None,
        on_terminate: Hook | None = None,
        on_bake: Bake | None = None,
        on_stop: Hook | None = None,
        on_start: Hook | None = None,
        on_console: Callable[[InstanceView], str] | None = None,
    ):
        """on_launch boots a host (the instance is `pending` until it returns, and dies if it raises). on_bake makes the
        image folder that it is given the name of (the image is `pending` until it returns, and `failed` if it raises).
        on_stop shuts a host down, whose disk stays; on_start boots it again; on_console gives what it wrote.
        All hooks but the last run one after another in a thread of their own, so that no API call waits for a boot.
        Port 0: any free one.

        Raises OSError if the address can't be listened on.
        """
        if Cloud._alive:
            raise RuntimeError("a Cloud is open in this process already: close it first (moto's state is global)")
        listener = socket.create_server((host, port), backlog=128)
        Cloud._alive = True
        self.url = f"http://{host}:{listener.getsockname()[1]}"
        self.region, self.on_launch, self.on_terminate, self.on_bake = region, on_launch, on_terminate, on_bake
        self.on_stop, self.on_start, self.on_console = on_stop, on_start, on_console
        self.power = Power(self)
        self.lock, self.capacity = threading.RLock(), Capacity()
        self.launcher = Launcher(self.capacity, random.Random(seed), self._started)
        # instance id -> what on_launch was given, until on_terminate has returned
        self.hosts: dict[str, InstanceView] = {}
        self._hooks, self._timers, self._saved = ThreadPoolExecutor(1, "hooks"), [], []
        self._credentials: dict[tuple[str, str], dict[str, str]] = {}
        self.organization: list[dict[str, Any]] = []  # its service control policies; new: none
        self._patch()
        moto_api_backend.reset()
        self.eks = Eks(RolesAnywhere(DomainDispatcherApplication(create_backend_app), ACCOUNT), ACCOUNT)
        self.layer = FaultLayer(self.eks)
        self.fault, self.calls = self.layer.add, self.layer.calls
        with listener:  # ours, because werkzeug ends the process where a port is taken
            self._server = make_server(
                host, port, self.layer, threaded=True, request_handler=QuietHandler, fd=listener.fileno()
            )
        threading.Thread(target=self._server.serve_forever, args=(0.05,), name="aws-api", daemon=True).start()

    @property
    def backend(self) -> Any:
        """moto's EC2 of the lab's account and region."""
        return ec2_backends[ACCOUNT][self.region]

    def reset(self) -> None:
        """As new: no resources, capacity, faults or recorded calls. Hosts that still run are not ended."""
        self.settle()
        self._cancel_timers()
        moto_api_backend.reset()
        clock.reset()
        iam_late.late()
        own = self.capacity.block_offerings, self.capacity.groups, self.capacity.spot_usd
        for table in (self.capacity, *own, self.layer.faults, self.calls, self.hosts, self._credentials):
            table.clear()
        self.organization.clear()

    def pass_by(self, seconds: float) -> None:
        """Put the cloud's clock forward: sessions end, and what IAM was told arrives."""
        clock.forward(seconds)

    def close(self) -> None:
        self._cancel_timers()
        self._server.shutdown()
        self._server.server_close()
        self._hooks.shutdown()
        self._unpatch()

    def settle(self) -> None:
        """Wait until the hooks called so far have returned."""
        self._hooks.submit(lambda: None).result()

    def _cancel_timers(self) -> None:
        while self._timers:
            self._timers.pop().cancel()

    def _unpatch(self) -> None:
        for owner, name, old in reversed(self._saved):
            setattr(owner, name, old) if old is not None else delattr(owner, name)
        Cloud._alive = False

    def _patch(self) -> None:
        def replace(owner: Any, name: str, new: Any) -> None:
            self._saved.append((owner, name, owner.__dict__.get(name)))
            setattr(owner, name, new)

        def action(name: str, method: Callable[[Any, Params], Any]) -> Callable:
            def call(response: Any) -> ActionResult:
                if name != "run_instances":  # it looks at the request first
                    response.error_on_dryrun()
                return ActionResult(method(response.ec2_backend, plain(response.params)))

            return call

        def attachment(eni: Any) -> Any:
            made = Attachment(eni) if eni.attachment_id else None
            if made:
                made.network_card_index = getattr(eni, "network_card_index", 0)
            return made

        actions = {
            **placement.ACTIONS,
            **ec2_gaps.ACTIONS,
            **vpn_gaps.ACTIONS,
            **account_gaps.ACTIONS,
            **link_gaps.ACTIONS,
            **{name: getattr(self.capacity, name) for name in Capacity.ACTIONS},
            "describe_spot_price_history": partial(spot.describe_spot_price_history, self.capacity),
            "run_instances": once(self.launcher.run_instances, self.lock),
            "create_fleet": once(self.launcher.create_fleet, self.lock),
            "create_image": lambda backend, p: images.create_image(backend, p, self._baking),
            "deregister_image": images.deregister_image,
            "get_console_output": self.power.get_console_output,
        }
        if self.on_launch:
            actions |= {"stop_instances": self.power.stop_instances, "start_instances": self.power.start_instances}
        replace(EC2Response, "reboot_instances", self._refused_with_hosts(EC2Response.reboot_instances))
        for name, method in actions.items():
            replace(EC2Response, name, action(name, method))
        ends = Instance.terminate
        replace(Instance, "terminate", lambda instance: self._terminate(instance, ends))
        replace(Subnet, "get_available_subnet_ip", lambda subnet, instance: self.launcher.address(subnet, instance))
        replace(NetworkInterface, "attachment", property(attachment))
        replace(AmiBackend, "_load_amis", lambda _backend: None)  # only what register_image gives can boot
        disks.patch(replace)
        iam_gaps.patch(replace)
        iam_limits.patch(replace)
        ec2_gaps.patch(replace)
        vpn_gaps.patch(replace)
        link_gaps.patch(replace)
        limits.patch(replace)
        budgets_gaps.patch(replace)
        account_gaps.patch(replace)
        events_gaps.patch(replace)
        iam.patch(replace, ACCOUNT, self.organization)
        ec2_utils.filter_dict_attribute_mapping.update(FILTERS)

    def _refused_with_hosts(self, method: Callable) -> Callable:
        """A reboot changes nothing on a host of the lab: refuse rather than pretend."""

        def call(response: Any) -> Any:
            if self.on_launch:
                raise Ec2Error(
                    "UnsupportedOperation", "The lab's cloud has no reboot instances: stop and start instead."
                )
            return method(response)

        return call

    # ---- images
    def register_image(
        self,
        folder: str,
        image_id: str | None = None,
        name: str = "",
        *,
        root_device: str = disks.ROOT_DEVICE,
        root_gb: int = disks.ROOT_GB,
        owner: str = ACCOUNT,
    ) -> str:
        """An image id for something that on_launch can boot. Registering the same id again replaces it.

        Raises ValueError for an id that EC2 wouldn't have."""
        image_id = image_id or images.new_id()
        if not IMAGE_ID.fullmatch(image_id):
            raise ValueError(f"image id {image_id!r}: must be ami- and 8 or 17 hexadecimal digits, as EC2's are")
        image = Ami(
            self.backend,
            image_id,
            name=name or image_id,
            owner_id=owner,
            virtualization_type="hvm",
            architecture="x86_64",
            root_device_type="ebs",
            hypervisor="xen",
            region_name=self.region + "a",
        )
        disks.registered(image, root_device, root_gb)
        images.boots(image)
        image.folder = folder
        self.backend.amis[image_id] = image
        return image_id

    def _baking(self, instance: Any, image: Any) -> None:
        self._hooks.submit(self._bake, view_of(instance), image)

    def _bake(self, view: InstanceView, image: Any) -> None:
        try:
            if self.on_bake:
                self.on_bake(view, image.id)
        except Exception as error:
            log.exception("%s: the bake of %s failed", image.id, view.instance_id)
            image.state = "failed"
            image.state_reason = StateReason(f"Server.InternalError: {error}", "Server.InternalError")
        else:
            image.folder = image.id if self.on_bake else view.image_folder
            image.state = "available"

    # ---- life of an instance
    def _started(self, instance: Any) -> None:
        if (seconds := self.capacity.seconds_left(instance)) is not None:
            # with which code EC2 says so isn't documented
            self._end_in(seconds, instance, "Server.CapacityBlockEnded", "Capacity Block ended")
        self._hooks.submit(self._boot, instance) if self.on_launch else self._boot(instance)

    def _boot(self, instance: Any) -> None:
        if instance.state != "pending":
            return  # ended before its turn came: there is nothing to boot
        if self.on_launch:
            view = view_of(instance)
            self.hosts[instance.id] = view
            try:
                self.on_launch(view)
            except Exception as error:  # as EC2 does: pending, then terminated with a reason
                log.exception("%s: the launch hook failed", instance.id)
                self._end(instance, "Server.InternalError", f"Internal error on launch: {error}")
        with self.lock:
            if instance.state != "pending":
                return
            instance._state = InstanceState("running", 16)
        self._event(instance, STATE_CHANGE, state="running")

    def _terminate(self, instance: Any, ends: Callable[[Any], Any]) -> Any:
        with self.lock:
            if instance.state == "terminated":  # moto would trip over the interface that is gone
                return instance._state
            view, before = view_of(instance), ends(instance)
            for card in instance.nics.values():
                self.backend.tags.pop(card.id, None)
        self._event(instance, STATE_CHANGE, state="terminated")
        self._hooks.submit(self._destroy, view)
        return before

    def _destroy(self, view: InstanceView) -> None:
        if view.instance_id not in self.hosts:
            return
        try:
            if self.on_terminate:
                self.on_terminate(view)
        except Exception:  # it stays in `hosts`, so the list of leftovers shows it
            log.exception("%s: the terminate hook failed", view.instance_id)
        else:
            del self.hosts[view.instance_id]

    def _end(self, instance: Any, code: str, message: str) -> None:
        if instance.state != "terminated":
            instance.terminate()
            instance.state_reason = StateReason(f"{code}: {message}", code)

    def powered_off(self, instance_id: str) -> None:
        """The machine has powered itself off: the instance stops, or ends where its launch says so."""
        instance = next((i for i in self.backend.all_instances() if i.id == instance_id), None)
        if instance is None or instance.state != "running":
            return
        if instance.instance_initiated_shutdown_behavior == "terminate":
            self._end(instance, "Client.InstanceInitiatedShutdown", "Instance initiated shutdown")
        else:
            instance._state = InstanceState("stopped", 80)
            self._event(instance, STATE_CHANGE, state="stopped")

    def run_hook(self, hook: Callable[[Any], None], instance: Any) -> None:
        """Call it in the thread of hooks."""
        self._hooks.submit(hook, instance)

    def state_changed(self, instance: Any, state: str) -> None:
        """Tell EventBridge."""
        self._event(instance, STATE_CHANGE, state=state)

    def _event(self, instance: Any, kind: str, **detail: Any) -> None:
        region, account = instance.region_name, instance.owner_id
        event = {
            "Source": "aws.ec2",
            "DetailType": kind,
            "Detail": json.dumps({"instance-id": instance.id, **detail}),
            "Resources": [f"arn:aws:ec2:{region}:{account}:instance/{instance.id}"],
        }
        events_backends[account][region].put_events([event])

    def interrupt(self, instance_id: str, notice: float = 120.0) -> None:
        """EC2 takes a spot instance back: the rebalance hint and the warning now, the end after `notice` seconds.

        Raises LookupError for an instance that isn't there, ValueError for one that isn't a live spot instance."""
        instance = next((i for i in self.backend.all_instances() if i.id == instance_id), None)
        if not instance:
            raise LookupError(f"no instance {instance_id}")
        if instance.lifecycle != "spot" or instance.state not in ("pending", "running"):
            raise ValueError(
                f"{instance_id} is {instance.state} and {instance.lifecycle or 'on-demand'}: only a live spot instance "
                "can be interrupted"
            )
        at = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=notice)
        instance.spot_action = json.dumps({"action": "terminate", "time": at.strftime("%Y-%m-%dT%H:%M:%SZ")})
        self._event(instance, "EC2 Instance Rebalance Recommendation")
        self._event(instance, "EC2 Spot Instance Interruption Warning", **{"instance-action": "terminate"})
        self._end_in(notice, instance, "Server.SpotInstanceTermination", "Spot instance termination")

    def _end_in(self, seconds: float, instance: Any, code: str, message: str) -> None:
        timer = threading.Timer(seconds, self._end, (instance, code, message))
        timer.daemon = True
        self._timers.append(timer)
        timer.start()

    def forget_ended(self) -> None:
        """As EC2 does within an hour of an instance's end."""
        with self.lock:
            for id, reservation in list(self.backend.reservations.items()):
                if all(instance.state == "terminated" for instance in reservation.instances):
                    del self.backend.reservations[id]

    # ---- what hosts ask
    def instances(self) -> list[InstanceView]:
        """Every instance, ended ones too."""
        return [view_of(i) for i in self.backend.all_instances()]

    def instance_at(self, address: str) -> InstanceView | None:
        """The live instance with a private address."""
        live = (i for i in self.backend.all_instances() if i.state in ("pending", "running"))
        return next((view_of(i) for i in live if i.private_ip == address), None)

    def credentials(self, view: InstanceView) -> dict[str, str] | None:
        """The role's credentials for one instance, as the metadata service sends them; renewed an hour before they
        end. None: no role, or one that doesn't trust EC2.
        """
        if not view.role_arn or not iam.may_be_taken_by(ACCOUNT, self.region, view.role_arn, "ec2.amazonaws.com"):
            return None
        key, now = (view.instance_id, view.role_arn), dt.datetime.now(dt.UTC)
        with self.lock:
            held = self._credentials.get(key)
            if not held or dt.datetime.fromisoformat(held["Expiration"]) - now < dt.timedelta(hours=1):
                role = sts_backends[ACCOUNT]["aws"].assume_role(
                    self.region, view.instance_id, view.role_arn, "", 6 * 3600, ""
                )
                held = self._credentials[key] = {
                    "Code": "Success",
                    "LastUpdated": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
                    "Type": "AWS-HMAC",
                    "AccessKeyId": role.access_key_id,
                    "SecretAccessKey": role.secret_access_key,
                    "Token": role.session_token,
                    "Expiration": (now + dt.timedelta(hours=6)).strftime("%Y-%m-%dT%H:%M:%SZ"),
                }
            return held


def recent_calls(cloud: Cloud) -> dict[str, int]:
    """How often each API action was called."""
    return dict(collections.Counter(action for action, _ in list(cloud.calls)))
