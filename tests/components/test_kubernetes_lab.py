"""What is declared in a cluster, by the pulumi CLI and the lab's stand-in for the kubernetes plugin, on a real API
server: it comes, stays, shows drift and goes; and what the controller may not do is refused.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

from ironburst.adapters.kubernetes import Access, quotas
from ironburst.adapters.kubernetes.client import JSON_PATCH, Client
from ironburst.adapters.kubernetes.joining import Joining
from ironburst.nodes.naming import NOT_READY_TAINT, RENTED_TAINT
from ironburst.shares import Quota, TeamShare
from ironburst.shares import kubernetes as shares
from lab.kubernetes import access
from lab.kubernetes.access import Refused
from lab.pulumi import binary
from lab.system import wait_for
from tests import planes
from tests.components.projects import done

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.slow, planes.BUILT]
PROGRAM = """
import json, os
from components import cluster_kinds
from components.kubernetes_cluster import KubernetesCluster, resolved
from ironburst.config.karpenter_models import KarpenterPool
from ironburst.config.scheduler_models import Kubernetes

declared = Kubernetes.model_validate(json.loads(os.environ["DECLARED"]))
kubeconfig = resolved(declared, {})
cluster_kinds.check(declared, kubeconfig)
pools = [KarpenterPool.model_validate(each) for each in json.loads(os.environ["KARPENTER"])]
teams = json.loads(os.environ["TEAMS"])
KubernetesCluster("lab", scheduler=declared, kubeconfig=kubeconfig, karpenter=pools, teams=teams)
"""
RBAC = "/apis/rbac.authorization.k8s.io/v1"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
CONTROLLER = "system:serviceaccount:ironburst-system:ironburst-controller"
TOKEN = {
    "token-id": "abcdef",
    "token-secret": "0123456789abcdef",
    "expiration": "2030-01-01T00:00:00Z",
    "usage-bootstrap-authentication": "true",
    "auth-extra-groups": "system:bootstrappers:ironburst",
    "description": "ours",
}
MADE = [
    "/api/v1/namespaces/ironburst-system",
    "/api/v1/namespaces/ironburst-system/serviceaccounts/ironburst-controller",
    f"{RBAC}/clusterroles/ironburst-lab",
    f"{RBAC}/clusterrolebindings/ironburst-lab",
    f"{RBAC}/clusterrolebindings/ironburst-lab-bootstrap",
    f"{RBAC}/namespaces/ironburst-system/roles/ironburst-lab",
    f"{RBAC}/namespaces/kube-system/roles/ironburst-lab",
    *(f"{ADMISSION}/validatingadmissionpolicies/ironburst-lab-{name}" for name in ("pods", "tokens", "approvals")),
    *(
        f"{ADMISSION}/validatingadmissionpolicybindings/ironburst-lab-{name}"
        for name in ("pods", "tokens", "approvals")
    ),
    "/api/v1/namespaces/ironburst-gpu",
    "/api/v1/namespaces/ironburst-gpu/configmaps/lab-helm-release-device-plugin",
    "/apis/node.k8s.io/v1/runtimeclasses/nvidia",
]


plane, api = planes.fixtures("comps")


@pytest.fixture(scope="module")
def engine(plane, tmp_path_factory):
    return made_engine(plane, tmp_path_factory.mktemp("stack"))


def made_engine(plane, folder, *, program=PROGRAM, declared=None, karpenter=(), teams=(), **scheduler):
    """`engine(*arguments)` of a stack in a folder of its own."""
    (folder / "Pulumi.yaml").write_text("name: ironburst\nruntime: {name: python}\n")
    (folder / "__main__.py").write_text(program)
    kubeconfig = plane.layout().kubeconfig("admin")
    declared = declared or {
        "kind": "kubernetes",
        "api_server": plane.layout().server,
        "ca": plane.layout().authority.read_text(),
        "kubeconfig": "env:NOBODYS",
        "admin_kubeconfig": f"file:{kubeconfig}",
        "join_token": "aws-secretsmanager:token",
        "cluster_dns": "10.96.0.10",
        "gpu_support": {"plugin": "device-plugin", "mig_strategy": "single"},
        **scheduler,
    }
    environment = {
        **os.environ,
        **binary.environment(folder),
        "PYTHONPATH": str(ROOT),
        "KARPENTER": json.dumps(list(karpenter)),
        "TEAMS": json.dumps(list(teams)),
    }

    def run(*verb, **changed):
        command = [str(binary.path()), *verb, "--stack", "test", "--cwd", str(folder)]
        given = {**environment, "DECLARED": json.dumps({**declared, **changed})}
        return subprocess.run(command, env=given, capture_output=True, text=True, timeout=300)

    run.folder, run.token = folder, kubeconfig.read_text().split("token: ")[1].split()[0]
    done(run("stack", "init"))
    return run


@pytest.fixture(scope="module")
def up(engine):
    """What the first `up` said."""
    return done(engine("up", "--yes", "--skip-preview"))


@pytest.fixture(scope="module")
def controller(plane, up):
    """The API as the controller."""
    return plane.api(impersonate=(CONTROLLER, "system:serviceaccounts"))


def there(api, path):
    try:
        api.call("GET", path)
    except Refused as refusal:
        if refusal.status == 404:
            return False
        raise
    return True


def refused(call):
    """What the API said: a right is missing, or a policy of ours forbids it."""
    with pytest.raises(Refused) as caught:
        call()
    assert caught.value.status == 403, caught.value
    return str(caught.value)


def pod(api, name):
    spec = {"containers": [{"name": "work", "image": "work"}]}
    api.call(
        "POST", "/api/v1/namespaces/default/pods", {"metadata": {"name": name, "labels": {"a": "b"}}, "spec": spec}
    )
    return f"/api/v1/namespaces/default/pods/{name}"


def secret(data, name="bootstrap-token-abcdef", kind="bootstrap.kubernetes.io/token"):
    return {"metadata": {"name": name}, "type": kind, "stringData": data}


def test_a_preview_makes_nothing_and_says_that_it_is_a_stand_in(engine, api):
    said = done(engine("preview"))
    assert "stand-in of the ironburst lab for the kubernetes plugin" in said
    assert "stand-in: chart not rendered" in said
    assert [path for path in MADE if there(api, path)] == []


def test_up_makes_all_of_it_and_a_second_one_changes_nothing(engine, api, up):
    assert [path for path in MADE if not there(api, path)] == []
    labels = api.call("GET", MADE[0])["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    again = done(engine("up", "--yes", "--skip-preview", "--expect-no-changes"))
    assert "unchanged" in again


def test_the_credentials_are_in_the_state_only_encrypted(engine, up):
    texts = [path.read_text(errors="replace") for path in engine.folder.rglob("*") if path.is_file()]
    assert any("ironburst-lab" in text for text in texts)
    assert not any(engine.token in text for text in texts)
    assert engine.token not in up


def test_the_types_of_the_policies_hold(api, up):
    """A policy whose expressions don't fit the kinds that it judges has warnings in its status."""

    def checked(name):
        status = api.call("GET", f"{ADMISSION}/validatingadmissionpolicies/ironburst-lab-{name}").get("status") or {}
        return status if status.get("observedGeneration") else None

    for name in ("pods", "tokens", "approvals"):
        status = wait_for(lambda name=name: checked(name), 30, f"the types of {name}")
        assert not (status.get("typeChecking") or {}).get("expressionWarnings"), name


def test_the_controller_changes_tolerations_and_nothing_else(api, controller):
    path = pod(api, "p1")
    container = api.call("GET", path)["spec"]["containers"][0]
    image = {"spec": {"containers": [{**container, "image": "other"}]}}
    wait_for(lambda: _denied(controller, path, image), 30, "the policy in force")
    assert "nothing of a pod but its tolerations" in refused(lambda: controller.call("PATCH", path, image))
    assert "no label, annotation or owner" in refused(
        lambda: controller.call("PATCH", path, {"metadata": {"labels": {"a": "c"}}})
    )
    refused(lambda: controller.call("PATCH", path, {"metadata": {"labels": None}}))
    refused(lambda: controller.call("PATCH", path, {"metadata": {"finalizers": ["example.com/x"]}}))
    refused(lambda: controller.call("PATCH", path, {"spec": {"activeDeadlineSeconds": 5}}))
    before = api.call("GET", path)["spec"]["tolerations"]
    more = [*before, {"key": NOT_READY_TAINT, "operator": "Exists", "effect": "NoSchedule"}]
    changed = controller.call("PATCH", path, {"spec": {"tolerations": more}})
    assert changed["spec"]["tolerations"] == more
    api.call("PATCH", path, image)  # nobody else is bound


def _denied(controller, path, change):
    try:
        controller.call("PATCH", f"{path}?dryRun=All", change)
    except Refused:
        return True
    return False


def test_the_controller_makes_bootstrap_tokens_and_no_other_secret(api, controller):
    path = "/api/v1/namespaces/kube-system/secrets"
    other = {"key": "value"}
    wait_for(
        lambda: _refuses(controller, f"{path}?dryRun=All", secret(other, "x", "Opaque")), 30, "the policy in force"
    )
    refused(lambda: controller.call("POST", path, secret(other, "x", "Opaque")))
    bad = [
        {**TOKEN, "auth-extra-groups": "system:masters"},
        {**TOKEN, "auth-extra-groups": "system:bootstrappers:ironburst,system:bootstrappers:kubeadm"},
        {**TOKEN, "usage-bootstrap-signing": "true"},
        {key: value for key, value in TOKEN.items() if key != "expiration"},
        {**TOKEN, "expiration": "never"},
        {**TOKEN, "usage-bootstrap-authentication": "false"},
        {**TOKEN, "expiration": ""},
    ]
    for data in bad:
        refused(lambda data=data: controller.call("POST", path, secret(data)))
    controller.call("POST", path, secret(TOKEN))
    refused(lambda: controller.call("GET", f"{path}/bootstrap-token-abcdef"))  # not even its own
    refused(lambda: controller.call("DELETE", f"{path}/bootstrap-token-abcdef"))
    refused(lambda: controller.call("POST", "/api/v1/namespaces/default/secrets", secret(TOKEN)))
    api.call("DELETE", f"{path}/bootstrap-token-abcdef")


def _refuses(controller, path, body):
    try:
        controller.call("POST", path, body)
    except Refused:
        return True
    return False


def test_the_adapters_own_calls_pass_with_the_accounts_token(plane, api, up, tmp_path):
    """As the ServiceAccount itself, with a token as `kubectl create token` makes it."""
    account = f"{MADE[1]}/token"
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
    token = api.call("POST", account, asked)["status"]["token"]
    path = tmp_path / "kubeconfig"
    layout = plane.layout()
    path.write_text(
        access.kubeconfig("lab", layout.server, layout.authority.read_bytes(), access.Account("controller", token, ()))
    )
    client = Client(Access(path))
    delivered = []
    Joining(client, boot_s=600, deliver=delivered.append).token()
    made = f"bootstrap-token-{delivered[0].partition('.')[0]}"
    assert there(api, f"/api/v1/namespaces/kube-system/secrets/{made}")
    assert Joining(client, boot_s=600, deliver=delivered.append).approve(["p5-1"], (), {}, delivered.append) == []
    where = pod(api, "p2")
    toleration = {"key": RENTED_TAINT, "operator": "Equal", "value": "uid.1", "effect": "NoSchedule"}
    changed = client.patch(where, [{"op": "add", "path": "/spec/tolerations/-", "value": toleration}], JSON_PATCH)
    assert toleration in changed.body["spec"]["tolerations"]
    client.create("/api/v1/namespaces/default/pods/p2/eviction", _eviction("p2"))
    for each in shares.quotas_of([TeamShare("default", 8)], {}, {"default": Quota(8, 8)}):
        api.call("POST", "/api/v1/namespaces/default/resourcequotas", each)
    quotas.write(client, {"default": Quota(3, 5, short=5)})
    quota = api.call("GET", "/api/v1/namespaces/default/resourcequotas/ironburst-guaranteed")
    assert quota["spec"]["hard"] == {"requests.nvidia.com/gpu": "3"}
    for each in api.call("GET", "/api/v1/namespaces/default/resourcequotas")["items"]:
        api.call("DELETE", f"/api/v1/namespaces/default/resourcequotas/{each['metadata']['name']}")
    api.call("DELETE", f"/api/v1/namespaces/kube-system/secrets/{made}")


def _eviction(name):
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "default"}}


@pytest.mark.parametrize(
    "method, path, body",
    [
        ("POST", "/api/v1/namespaces/default/pods", {"metadata": {"name": "x"}}),
        ("GET", "/api/v1/namespaces/kube-system/secrets", None),
        ("GET", "/api/v1/namespaces/default/configmaps", None),
        ("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "x"}}),
        ("GET", f"{RBAC}/clusterroles", None),
        ("PATCH", f"{RBAC}/clusterroles/ironburst-lab", {"rules": []}),
        ("DELETE", f"{ADMISSION}/validatingadmissionpolicybindings/ironburst-lab-pods", None),
        ("POST", "/api/v1/nodes", {"metadata": {"name": "x"}}),
        ("PATCH", "/api/v1/nodes/x/status", {"status": {}}),
        ("GET", "/api/v1/resourcequotas", None),
        ("POST", "/api/v1/namespaces/default/resourcequotas", {"metadata": {"name": "ironburst-guaranteed"}}),
        ("PATCH", "/api/v1/namespaces/default/resourcequotas/ironburst-most", {"spec": {"hard": {"pods": "9"}}}),
        ("DELETE", "/api/v1/namespaces/default/resourcequotas/ironburst-guaranteed", None),
        ("POST", "/apis/certificates.k8s.io/v1/certificatesigningrequests", {"metadata": {"name": "x"}}),
    ],
)
def test_what_the_controller_has_no_right_to(controller, method, path, body):
    assert "cannot" in refused(lambda: controller.call(method, path, body))


def test_the_controller_approves_what_came_by_its_tokens_alone(plane, api, controller):
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    subject = [(NameOID.ORGANIZATION_NAME, "system:nodes"), (NameOID.COMMON_NAME, "system:node:p5-1")]
    named = x509.Name([x509.NameAttribute(oid, value) for oid, value in subject])
    request = x509.CertificateSigningRequestBuilder().subject_name(named).sign(key, hashes.SHA256())
    pem = request.public_bytes(serialization.Encoding.PEM)
    requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests"

    def ask(name, group):
        import base64

        spec = {
            "request": base64.b64encode(pem).decode(),
            "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
            "usages": ["digital signature", "client auth"],
        }
        asker = plane.api(impersonate=(f"system:bootstrap:{name}", group))
        asker.call("POST", requests, {"metadata": {"name": name}, "spec": spec})
        made = api.call("GET", f"{requests}/{name}")
        answer = {"type": "Approved", "status": "True", "reason": "Rented", "message": "ours"}
        return {**made, "status": {"conditions": [answer]}}

    api.call(
        "POST",
        f"{RBAC}/clusterrolebindings",
        {
            "metadata": {"name": "kubeadm"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "system:node-bootstrapper",
            },
            "subjects": [{"kind": "Group", "name": "system:bootstrappers:kubeadm"}],
        },
    )
    theirs = wait_for(lambda: _asked(ask, "theirs", "system:bootstrappers:kubeadm"), 30, "their right to ask")
    said = refused(lambda: controller.call("PUT", f"{requests}/theirs/approval", theirs))
    assert "requests of rented nodes that join" in said
    ours = ask("ours", "system:bootstrappers:ironburst")
    controller.call("PUT", f"{requests}/ours/approval", ours)
    api.call("DELETE", f"{RBAC}/clusterrolebindings/kubeadm")


def _asked(ask, name, group):
    try:
        return ask(name, group)
    except Refused:
        return None


def test_drift_shows_in_a_refresh_and_up_takes_it_back(engine, api, up):
    path = f"{RBAC}/clusterroles/ironburst-lab"
    rules = api.call("GET", path)["rules"]
    wider = [{**rules[0], "verbs": ["*"]}, *rules[1:]]
    api.call("PATCH", path, {"rules": wider})
    api.call("DELETE", f"{ADMISSION}/validatingadmissionpolicybindings/ironburst-lab-pods")
    seen = engine("refresh", "--preview-only", "--expect-no-changes")
    said = seen.stdout + seen.stderr
    assert seen.returncode != 0 and "ClusterRole" in said and "ValidatingAdmissionPolicyBinding" in said
    done(engine("refresh", "--yes", "--skip-preview"))
    done(engine("up", "--yes", "--skip-preview"))
    assert api.call("GET", path)["rules"] == rules
    assert there(api, f"{ADMISSION}/validatingadmissionpolicybindings/ironburst-lab-pods")


def test_destroy_leaves_nothing(engine, api, up):
    done(engine("destroy", "--yes", "--skip-preview"))
    assert [path for path in MADE if there(api, path)] == []
