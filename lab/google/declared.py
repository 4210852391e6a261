"""What Pulumi declares in the stand-in's project: each resource by its type and id, as pulumi-gcp writes its inputs.
What one names has to be there, and what another one names can't be taken away, machines included.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from lab.google.iam import Binding
from lab.google.vm import Json, Vm
from lab.google.world import GOOGLE, Refusal, World

ROOT = "/lab/declared"


class Kind(NamedTuple):
    """`id`: its form, of inputs. `refers`: inputs that name another resource. `makes`: its computed outputs."""

    id: str
    refers: tuple[str, ...] = ()
    makes: Callable[[World, Json], Json] | None = None


def _gateway(_world: World, _said: Json) -> Json:
    return {"vpnInterfaces": [{"id": n, "ipAddress": f"198.51.100.{10 + n}"} for n in (0, 1)]}


def _attachment(_world: World, _said: Json) -> Json:
    return {"cloudRouterIpAddress": "169.254.100.1/29", "customerRouterIpAddress": "169.254.100.2/29"}


def _account(world: World, said: Json) -> Json:
    email = f"{said['accountId']}@{world.project}.iam.gserviceaccount.com"
    name = f"projects/{world.project}/serviceAccounts/{email}"
    return {"email": email, "member": f"serviceAccount:{email}", "name": name, "uniqueId": world.number()}


def _role(world: World, said: Json) -> Json:
    return {"name": f"projects/{world.project}/roles/{said['roleId']}"}


def _pool(_world: World, said: Json) -> Json:
    return {"name": f"projects/1/locations/global/workloadIdentityPools/{said['workloadIdentityPoolId']}"}


def _channel(world: World, _said: Json) -> Json:
    return {"name": f"projects/{world.project}/notificationChannels/{world.number()}"}


def _instance(world: World, said: Json) -> Json:
    """A machine, which is there at once."""
    number, zone, name = world.number(), said["zone"], said["name"]
    disk = world.url("zones", zone, "disks", name)
    nics = []
    for n, nic in enumerate(said["networkInterfaces"]):
        host = next(world.addresses)
        nics.append({"name": f"nic{n}", "networkIP": world.address(n, host, nic.get("subnetwork", "")), **nic})
    raw: Json = {
        "kind": "compute#instance",
        "id": number,
        "name": name,
        "zone": world.url("zones", zone),
        "selfLink": world.url("zones", zone, "instances", name),
        "machineType": world.url("zones", zone, "machineTypes", said["machineType"]),
        "status": "RUNNING",
        "creationTimestamp": world.stamp(),
        "disks": [{"index": 0, "kind": "compute#attachedDisk", "boot": True, "autoDelete": True, "source": disk}],
        "networkInterfaces": nics,
        "labels": said.get("labels", {}),
        "scheduling": {"onHostMaintenance": "TERMINATE", "automaticRestart": True},
    }
    world.add(Vm(raw, zone, world.now()), said["bootDisk"]["initializeParams"]["image"].rpartition("/")[2])
    world.disks[disk] = number
    shown = [{**nic, "networkIp": made["networkIP"]} for nic, made in zip(said["networkInterfaces"], nics, strict=True)]
    return {"instanceId": number, "networkInterfaces": shown, "currentStatus": "RUNNING"}


_REGIONAL = "projects/{project}/regions/{region}"
KINDS = {
    "gcp:compute/network:Network": Kind("projects/{project}/global/networks/{name}"),
    "gcp:compute/subnetwork:Subnetwork": Kind(_REGIONAL + "/subnetworks/{name}", ("network",)),
    "gcp:compute/firewall:Firewall": Kind("projects/{project}/global/firewalls/{name}", ("network",)),
    "gcp:compute/router:Router": Kind(_REGIONAL + "/routers/{name}", ("network",)),
    "gcp:compute/routerNat:RouterNat": Kind("{project}/{region}/{router}/{name}", ("router", "subnetworks.name")),
    "gcp:compute/routerInterface:RouterInterface": Kind("{region}/{router}/{name}", ("router", "vpnTunnel")),
    "gcp:compute/routerPeer:RouterPeer": Kind(_REGIONAL + "/routers/{router}/{name}", ("router", "interface")),
    "gcp:compute/haVpnGateway:HaVpnGateway": Kind(_REGIONAL + "/vpnGateways/{name}", ("network",), _gateway),
    "gcp:compute/externalVpnGateway:ExternalVpnGateway": Kind("projects/{project}/global/externalVpnGateways/{name}"),
    "gcp:compute/vPNTunnel:VPNTunnel": Kind(
        _REGIONAL + "/vpnTunnels/{name}", ("vpnGateway", "peerExternalGateway", "router")
    ),
    "gcp:compute/interconnectAttachment:InterconnectAttachment": Kind(
        _REGIONAL + "/interconnectAttachments/{name}", ("router",), _attachment
    ),
    "gcp:compute/resourcePolicy:ResourcePolicy": Kind(_REGIONAL + "/resourcePolicies/{name}"),
    "gcp:compute/instance:Instance": Kind(
        "projects/{project}/zones/{zone}/instances/{name}",
        ("networkInterfaces.subnetwork", "resourcePolicies"),
        _instance,
    ),
    "gcp:serviceaccount/account:Account": Kind(
        "projects/{project}/serviceAccounts/{accountId}@{project}.iam.gserviceaccount.com", (), _account
    ),
    "gcp:serviceaccount/iAMMember:IAMMember": Kind("{serviceAccountId}/{role}/{member}", ("serviceAccountId",)),
    "gcp:projects/iAMCustomRole:IAMCustomRole": Kind("projects/{project}/roles/{roleId}", (), _role),
    "gcp:projects/iAMMember:IAMMember": Kind("{project}/{role}/{member}", ("role",)),
    "gcp:secretmanager/secretIamMember:SecretIamMember": Kind("projects/{project}/secrets/{secretId}/{role}/{member}"),
    "gcp:storage/bucketIAMMember:BucketIAMMember": Kind("b/{bucket}/{role}/{member}/{condition[title]}"),
    "gcp:iam/workloadIdentityPool:WorkloadIdentityPool": Kind(
        "projects/{project}/locations/global/workloadIdentityPools/{workloadIdentityPoolId}", (), _pool
    ),
    "gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider": Kind(
        "projects/{project}/locations/global/workloadIdentityPools/{workloadIdentityPoolId}/providers/"
        "{workloadIdentityPoolProviderId}",
        ("workloadIdentityPoolId",),
    ),
    "gcp:monitoring/notificationChannel:NotificationChannel": Kind(
        "projects/{project}/notificationChannels/{displayName}-{labels[email_address]}", (), _channel
    ),
    "gcp:billing/budget:Budget": Kind("billingAccounts/{billingAccount}/budgets/{displayName}"),
}
ROLE = "gcp:projects/iAMCustomRole:IAMCustomRole"
BUILT_IN = "roles/"
STORAGE_ROLES = {"roles/storage.objectViewer": frozenset({"storage.objects.get", "storage.objects.list"})}
"""what nodes need of them"""


class Declared:
    """Of one project: `held`, {type: {id: inputs and outputs}}."""

    def __init__(self, world: World):
        self.world = world
        self.held: dict[str, dict[str, Json]] = {token: {} for token in KINDS}
        self._lock = threading.Lock()  # who asks without a server holds none

    def ids(self) -> set[str]:
        """Of all that is there."""
        return {its_id for resources in self.held.values() for its_id in resources}

    def handle(self, verb: str, path: str, body: bytes) -> tuple[int, bytes]:
        """/lab/declared/TYPE[?id]: POST makes, PUT changes, GET shows, DELETE takes away."""
        token, _, its_id = path.removeprefix(ROOT + "/").partition("?")
        said = json.loads(body) if body else {}
        try:
            if token not in KINDS:
                raise Refusal(501, "notImplemented", f"this stand-in doesn't know {token}")
            with self._lock:
                return 200, json.dumps(getattr(self, f"_{verb.lower()}")(token, its_id, said)).encode()
        except Refusal as error:
            return error.status, json.dumps({"reason": error.reason, "message": str(error)}).encode()

    def _post(self, token: str, _id: str, said: Json) -> Json:
        kind, world = KINDS[token], self.world
        said = {"project": world.project, "region": world.region, **said}
        its_id = kind.id.format(**{"condition": {"title": ""}, **said})
        if its_id in self.held[token]:
            raise Refusal(409, "alreadyExists", f"The resource '{its_id}' already exists")
        self._refers(token, said)
        made = kind.makes(world, said) if kind.makes else {}
        self.held[token][its_id] = {**said, "selfLink": GOOGLE + its_id, **made}
        self._bindings()
        return {"id": its_id, **self.held[token][its_id]}

    def _put(self, token: str, its_id: str, said: Json) -> Json:
        self._get(token, its_id, {})
        self._refers(token, said)
        kept = self.held[token][its_id]
        computed = KINDS[token].makes is not None
        fixed = ("vpnInterfaces", "networkInterfaces", "email", "name") if computed else ()
        self.held[token][its_id] = {**kept, **said, **{key: kept[key] for key in fixed if key in kept}}
        self._bindings()
        return {"id": its_id, **self.held[token][its_id]}

    def _get(self, token: str, its_id: str, _said: Json) -> Json:
        vm = self._machine(token, its_id)
        if its_id not in self.held[token] or (token.endswith(":Instance") and vm is None):
            raise Refusal(404, "notFound", f"The resource '{its_id}' was not found")
        return {"id": its_id, **self.held[token][its_id]}

    def _delete(self, token: str, its_id: str, _said: Json) -> Json:
        said = self._get(token, its_id, {})
        for user in self._users(its_id, said):
            text = f"The {token.rpartition(':')[2]} resource '{its_id}' is already being used by '{user}'"
            raise Refusal(400, "resourceInUseByAnotherResource", text)
        if vm := self._machine(token, its_id):
            self.world.remove(vm)
        del self.held[token][its_id]
        self._bindings()
        return {}

    def _machine(self, token: str, its_id: str) -> Vm | None:
        if not token.endswith(":Instance"):
            return None
        return next((vm for vm in self.world.vms.values() if vm.raw["selfLink"].endswith(its_id)), None)

    def _refers(self, token: str, said: Json) -> None:
        for path in KINDS[token].refers:
            for named in _values(said, path):
                if not named.startswith(BUILT_IN) and not self.knows(named):
                    raise Refusal(404, "notFound", f"{path}: the resource '{named}' was not found")

    def cidr(self, named: str) -> str:
        """The range of a subnetwork; empty: none of that name is declared."""
        held = self.held["gcp:compute/subnetwork:Subnetwork"]
        return str(held.get(named.removeprefix(GOOGLE), {}).get("ipCidrRange", ""))

    def knows(self, named: str) -> bool:
        """Whether a resource of that id, link or name is declared."""
        return any(
            named.removeprefix(GOOGLE) in (its_id, said.get("name"), said.get("workloadIdentityPoolId"))
            for resources in self.held.values()
            for its_id, said in resources.items()
        )

    def _users(self, its_id: str, said: Json) -> Iterator[str]:
        names = {its_id, said.get("selfLink"), GOOGLE + its_id}
        for token, resources in self.held.items():
            for other, using in resources.items():
                if names & {value for path in KINDS[token].refers for value in _values(using, path)}:
                    yield other
        for vm in self.world.vms.values():
            used = {nic.get("subnetwork") for nic in vm.raw["networkInterfaces"]}
            if names & used:
                yield vm.name

    def _bindings(self) -> None:
        """What the roles come to."""
        roles = {said["name"]: said["permissions"] for said in self.held[ROLE].values()}
        found = []
        for said in self.held["gcp:projects/iAMMember:IAMMember"].values():
            condition = (said.get("condition") or {}).get("expression", "")
            found.append(Binding(said["member"], frozenset(roles.get(said["role"], ())), condition))
        readers = self.held["gcp:secretmanager/secretIamMember:SecretIamMember"].values()
        reads = frozenset({"secretmanager.versions.access"})
        found += (Binding(said["member"], reads) for said in readers)
        for said in self.held["gcp:storage/bucketIAMMember:BucketIAMMember"].values():
            condition = (said.get("condition") or {}).get("expression", "")
            at = f"projects/_/buckets/{said['bucket']}"
            found.append(Binding(said["member"], STORAGE_ROLES[said["role"]], condition, at))
        self.world.iam.bindings = found


def _values(said: Any, path: str) -> Iterator[str]:
    """What is at a path, in each element of a list."""
    head, _, rest = path.partition(".")
    at = said.get(head) if isinstance(said, dict) else None
    for each in at if isinstance(at, list) else [at]:
        if rest and each is not None:
            yield from _values(each, rest)
        elif isinstance(each, str):
            yield each
