"""The lab's instances as nodes of the lab's cluster: what they can't do is what a real node couldn't. The test is the
administrator, and approves by hand.
"""

import base64
import datetime as dt
import json
import secrets
import threading

import pytest
from cryptography import x509

from lab.aws.cloud import Cloud
from lab.aws.imds import Imds
from lab.aws.testing import Clients, network
from lab.kubernetes import authority
from lab.kubernetes.access import Api, Refused
from lab.kubernetes.instances import InstanceProcesses
from lab.kubernetes.kubelet import BOOTSTRAP, CERTIFICATE, CSRS
from lab.system import wait_for
from tests import planes
from tests.lab_cloud import TRUSTS_EC2

pytestmark = [pytest.mark.slow, planes.BUILT]
LIMIT_S = 60
GROUP = "system:bootstrappers:ironburst"
QUICK = [word for name in ("boot", "restart", "gate", "switch") for word in (f"--{name}-s", "0.2")] + [
    "--deadline-s",
    "2",
]
JOIN = "ironburst/join"
CA = "etc/ironburst/cluster-ca.crt"
GATE, GATED, BEAT = "ironburst.io/GatePassed", "ironburst.io/not-ready", "ironburst.io/beat"


@pytest.fixture(scope="module")
def plane():
    with planes.running("inst") as plane:
        group = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": GROUP}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:node-bootstrapper"}
        body = {"metadata": {"name": "ironburst-join"}, "subjects": [group], "roleRef": role}
        plane.api().call("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", body)
        yield plane


@pytest.fixture
def api(plane):
    return plane.api()


class World:
    """A cloud whose instances are processes, with addresses of loopback."""

    def __init__(self, plane, folder):
        self.plane, self.folder, self.cloud, self.endpoint = plane, folder, None, ""
        self.imds = Imds(("127.0.0.1", 0), lambda address: self.cloud.instance_at(address))
        self.cloud = Cloud(seed=7, on_launch=self.launch, on_terminate=lambda view: self.machines.terminate(view))
        self.imds.credentials = self.cloud.credentials
        self.machines = InstanceProcesses(plane, folder, self.imds.server_address[:2], self.cloud.url, QUICK)
        threading.Thread(target=self.imds.serve_forever, args=(0.02,), daemon=True).start()
        self.clients, self.image = Clients(self.cloud.url), self.cloud.register_image("")
        _, self.subnet = network(self.clients("ec2"), "127.90.0.0/16", "127.90.0.0/20")
        iam = self.clients("iam")
        iam.create_role(RoleName="node", AssumeRolePolicyDocument=TRUSTS_EC2)
        iam.create_instance_profile(InstanceProfileName="node")
        iam.add_role_to_instance_profile(InstanceProfileName="node", RoleName="node")
        secret = self.clients("secretsmanager").create_secret(Name=JOIN, SecretString="nobody.yet")["ARN"]
        may = {"Effect": "Allow", "Action": "secretsmanager:GetSecretValue", "Resource": secret}
        self.may(may)

    def may(self, *statements):
        document = json.dumps({"Version": "2012-10-17", "Statement": list(statements)})
        self.clients("iam").put_role_policy(RoleName="node", PolicyName="node", PolicyDocument=document)

    def launch(self, view):
        self.machines.launch(view)

    def token(self, left_s=600.0):
        """A bootstrap token, put where nodes read it; its id."""
        id, secret = secrets.token_hex(3), secrets.token_hex(8)
        ends = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=left_s)
        data = {"token-id": id, "token-secret": secret, "usage-bootstrap-authentication": "true"}
        data |= {"auth-extra-groups": GROUP, "expiration": ends.strftime("%Y-%m-%dT%H:%M:%SZ")}
        body = {"type": "bootstrap.kubernetes.io/token", "metadata": {"name": f"bootstrap-token-{id}"}}
        body["stringData"] = data
        self.plane.api().call("POST", "/api/v1/namespaces/kube-system/secrets", body)
        self.clients("secretsmanager").put_secret_value(SecretId=JOIN, SecretString=f"{id}.{secret}")
        return id

    def rent(self, name, **said):
        """One instance that is to be this node; its id."""
        user_data = {
            "ironburst": 1,
            "scheduler": "kubernetes",
            "nodes": [name],
            "region": "us-east-1",
            "api_server": self.plane.layout().server,
            "ca": self.plane.layout().authority.read_text(),
            "join_token": f"aws-secretsmanager:{JOIN}",
            "labels": {"ironburst.io/site": "cloud-us-east-1a"},
            "dead_man_s": 600,
            "hard_limit_s": 6000,
        }
        got = self.clients("ec2").run_instances(
            ImageId=self.image,
            InstanceType="p5.48xlarge",
            MinCount=1,
            MaxCount=1,
            SubnetId=self.subnet,
            UserData=json.dumps(user_data | said),
            IamInstanceProfile={"Name": "node"},
            InstanceInitiatedShutdownBehavior="terminate",
        )
        return got["Instances"][0]["InstanceId"]

    def console(self, instance):
        path = self.folder / f"{instance}.console"
        return path.read_text() if path.exists() else ""

    def says(self, instance, words):
        return wait_for(lambda: words in self.console(instance), LIMIT_S, f"{words!r}; see {self.folder}")

    def state(self, instance):
        """As its API says, after a look at the power as the daemon does it."""
        for view in list(self.cloud.hosts.values()):
            if self.machines.is_off(view):
                self.cloud.powered_off(view.instance_id)
        return next(view.state for view in self.cloud.instances() if view.instance_id == instance)

    def end(self, *instances):
        self.clients("ec2").terminate_instances(InstanceIds=list(instances))
        self.cloud.settle()

    def close(self):
        live = [view.instance_id for view in self.cloud.instances() if view.state != "terminated"]
        if live:
            self.end(*live)
        self.cloud.close()
        self.imds.shutdown()
        self.imds.server_close()


@pytest.fixture(scope="module")
def world(plane, tmp_path_factory):
    world = World(plane, tmp_path_factory.mktemp("instances"))
    yield world
    world.close()


def requests_of(api, name):
    """Signing requests that would make their bearer this node."""
    found = api.call("GET", CSRS)["items"]
    texts = {each["metadata"]["name"]: base64.b64decode(each["spec"]["request"]) for each in found}
    subject = f"CN=system:node:{name},O=system:nodes"
    return [
        each
        for each in found
        if x509.load_pem_x509_csr(texts[each["metadata"]["name"]]).subject.rfc4514_string() == subject
    ]


def decide(api, request, kind="Approved"):
    said = {"type": kind, "status": "True", "reason": "Test", "message": "by hand"}
    path = f"{CSRS}/{request['metadata']['name']}/approval"
    api.call("PUT", path, request | {"status": {"conditions": [said]}})


def asked(api, name):
    return wait_for(lambda: requests_of(api, name), LIMIT_S, f"a signing request of {name}")[0]


def node(api, name):
    try:
        return api.call("GET", f"/api/v1/nodes/{name}")
    except Refused as refusal:
        assert refusal.status == 404
        return None


def conditions(it):
    return {each["type"]: each["status"] for each in it["status"]["conditions"]}


def joined(api, name):
    decide(api, asked(api, name))
    return wait_for(
        lambda: (it := node(api, name)) and conditions(it).get(GATE) == "True" and it, LIMIT_S, f"the gate of {name}"
    )


def test_without_an_approval_no_node_comes_and_with_one_it_does(world, api):
    world.token()
    instance = world.rent("p5-1")
    request = asked(api, "p5-1")
    assert GROUP in request["spec"]["groups"] and request["spec"]["username"].startswith("system:bootstrap:")
    # a second later it has looked several times; nobody else approves, though csrapproving runs
    world.says(instance, "asked for a certificate")
    threading.Event().wait(2)
    assert not requests_of(api, "p5-1")[0]["status"] and node(api, "p5-1") is None
    decide(api, request)
    it = wait_for(lambda: node(api, "p5-1"), LIMIT_S, "the node")
    assert {"key": GATED, "effect": "NoSchedule"} in it["spec"]["taints"]
    assert it["metadata"]["labels"]["ironburst.io/site"] == "cloud-us-east-1a"
    address = it["status"]["addresses"][0]["address"]  # as kubelet finds it: its machine's
    assert world.cloud.instance_at(address).instance_id == instance
    seen = []

    def complete():
        it = node(api, "p5-1")
        seen.append((conditions(it).get("Ready"), "nvidia.com/gpu" in it["status"]["allocatable"]))
        return it["status"]["allocatable"].get("nvidia.com/gpu") == "8"

    wait_for(complete, LIMIT_S, "its GPUs")
    assert ("True", False) in seen and ("False", True) not in seen  # Ready first, the GPUs later
    wait_for(lambda: conditions(node(api, "p5-1")).get(GATE) == "True", LIMIT_S, "the gate")
    wait_for(lambda: not (world.folder / instance / BOOTSTRAP).exists(), LIMIT_S, "the end of its token")
    # the node's own rights: of its own Node alone, and no other's; nor may it approve
    own = Api(
        world.plane.layout().server, world.folder / instance / CA, certificate=world.folder / instance / CERTIFICATE
    )
    with pytest.raises(Refused, match=r"other|not allowed|forbidden"):
        own.call("PATCH", "/api/v1/nodes/other", {"metadata": {"labels": {"a": "b"}}})
    with pytest.raises(Refused, match="forbidden"):
        own.call("PATCH", "/api/v1/nodes/p5-1", {"spec": {"taints": []}})
    with pytest.raises(Refused, match=r"cannot (update|patch)"):
        decide(own, request)
    world.end(instance)
    quiet = wait_for(
        lambda: (it := node(api, "p5-1")) and conditions(it)["Ready"] == "Unknown" and it, LIMIT_S, "its silence"
    )
    assert conditions(quiet)[GATE] == "True"  # its last word: nobody was there to write another
    api.call("DELETE", "/api/v1/nodes/p5-1")


def test_a_denied_node_never_comes(world, api):
    world.token()
    instance = world.rent("p5-2")
    decide(api, asked(api, "p5-2"), "Denied")
    world.says(instance, "is Denied: by hand; it starts again")
    assert node(api, "p5-2") is None
    world.end(instance)


def test_an_expired_token_is_401(world, api):
    world.token(left_s=-5)
    instance = world.rent("p5-3")
    world.says(instance, "cannot create certificate signing request: 401")
    assert not requests_of(api, "p5-3")
    world.end(instance)


def test_a_server_of_another_authority_is_refused(world, api):
    world.token()
    instance = world.rent("p5-4", ca=authority.files("127.0.0.1")["ca.crt"])
    world.says(instance, "CERTIFICATE_VERIFY_FAILED")
    assert not requests_of(api, "p5-4")
    world.end(instance)


def test_labels_that_a_node_may_not_give_itself_are_refused(world, api):
    world.token()
    instance = world.rent("p5-5", labels={"node-restriction.kubernetes.io/team": "a"})
    decide(api, asked(api, "p5-5"))
    world.says(instance, "is not allowed to set the following labels")
    assert node(api, "p5-5") is None
    world.end(instance)


def test_a_role_without_the_right_ends_the_instance_with_last_words(world):
    world.token()
    world.may({"Effect": "Deny", "Action": "*", "Resource": "*"})
    instance = world.rent("p5-6")
    wait_for(lambda: world.state(instance) == "terminated", LIMIT_S, "the end of p5-6")
    words = world.console(instance)
    assert "ironburst-join: ironburst-join failed: join: the bootstrap token" in words
    assert "AccessDeniedException" in words


def test_without_a_heartbeat_it_powers_itself_off_and_with_one_it_stays(world, api):
    arn = world.clients("secretsmanager").describe_secret(SecretId=JOIN)["ARN"]
    world.may({"Effect": "Allow", "Action": "secretsmanager:GetSecretValue", "Resource": arn})
    world.token()
    # on one clock: the first is beaten for as long as the second needs to end
    kept, lost = (world.rent(name, dead_man_s=8) for name in ("p5-7", "p5-8"))
    for name in ("p5-7", "p5-8"):
        joined(api, name)
    beats = 0

    def ended():
        nonlocal beats
        beats += 1
        words = {"metadata": {"annotations": {BEAT: f"ironburst,at={beats},left=3600"}}}
        api.call("PATCH", "/api/v1/nodes/p5-7", words)
        return world.state(lost) == "terminated"

    wait_for(ended, LIMIT_S, "the end of p5-8", pause=0.3)
    assert "p5-8 powers off: it has no jobs, and no heartbeat of the controller for" in world.console(lost)
    assert world.state(kept) == "running" and not node(api, "p5-7")["spec"].get("unschedulable")
    assert node(api, "p5-8")["spec"]["unschedulable"]  # no pod was to start there at the last moment
    world.end(kept)
    for name in ("p5-7", "p5-8"):
        api.call("DELETE", f"/api/v1/nodes/{name}")


def test_it_joins_though_the_api_server_was_away(world, api, plane):
    world.token()
    plane.kill("kube-apiserver")
    try:
        instance = world.rent("p5-9")
        world.says(instance, "had no answer")
    finally:
        plane.start("kube-apiserver")
    assert conditions(joined(api, "p5-9"))[GATE] == "True"
    world.end(instance)
    api.call("DELETE", "/api/v1/nodes/p5-9")
