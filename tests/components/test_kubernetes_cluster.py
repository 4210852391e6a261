"""What a Kubernetes stack registers: through an explicit provider, in order, and nothing where Pulumi isn't let in."""

import copy
import json

import pulumi
import pytest
import yaml

from components import admission, cluster_kinds, gpu_charts
from ironburst import catalog, kubernetes_rights
from ironburst.catalog.tables import table
from ironburst.config.gpu_support_models import GpuSupport
from ironburst.nodes.naming import GATE_TAINT, NOT_READY_TAINT, RENTED_TAINT
from ironburst.shares.kubernetes import TEAM as TEAM_LABEL
from tests.unit.kubernetes_stack import BRIDGE, on_kubernetes

ROLE, BINDING = "rbac.authorization.k8s.io/v1:ClusterRole", "rbac.authorization.k8s.io/v1:ClusterRoleBinding"
POLICY = "admissionregistration.k8s.io/v1:ValidatingAdmissionPolicy"
KUBECONFIG = "apiVersion: v1\nkind: Config\n"


@pytest.fixture
def declared(value, monkeypatch):
    """A stack whose scheduler is Kubernetes; Pulumi is let in."""
    monkeypatch.setenv("ADMIN_KUBECONFIG", KUBECONFIG)
    value = copy.deepcopy(value)
    on_kubernetes(value)
    value["scheduler"]["admin_kubeconfig"] = "env:ADMIN_KUBECONFIG"
    return value


def kubernetes(recording):
    return [each for each in recording.resources if each.token.startswith("kubernetes:")]


def test_nothing_is_declared_in_a_cluster_that_pulumi_is_not_let_into(cluster, declared):
    del declared["scheduler"]["admin_kubeconfig"]
    recording = cluster(declared)
    assert kubernetes(recording) == [] and not recording.all("providers:kubernetes")


def test_with_slurm_bridge_the_controller_changes_no_pod(cluster, value, monkeypatch):
    monkeypatch.setenv("ADMIN_KUBECONFIG", KUBECONFIG)
    value["scheduler"]["bridge"] = BRIDGE | {"admin_kubeconfig": "env:ADMIN_KUBECONFIG"}
    value["software"] |= {"slurm": "25.11", "kubernetes": "1.35"}
    role = cluster(value).one(ROLE)
    assert role.inputs["rules"] == kubernetes_rights.rendered(kubernetes_rights.BRIDGE)
    assert {verb for rule in kubernetes_rights.BRIDGE if "pods" in rule.resources for verb in rule.verbs} == {"list"}


def test_everything_goes_through_the_declared_provider(cluster, declared):
    recording = cluster(declared)
    assert recording.one("pulumi:providers:kubernetes").inputs["kubeconfig"] == KUBECONFIG
    names = [(each.token.rsplit(":", 1)[1], each.inputs["metadata"]["name"]) for each in kubernetes(recording)]
    policies = [f"ironburst-lab-{kind}" for kind in ("approvals", "pods", "tokens")]
    assert sorted(names) == sorted(
        [
            ("Namespace", "ironburst-system"),
            ("ServiceAccount", "ironburst-controller"),
            ("ClusterRole", "ironburst-lab"),
            ("ClusterRoleBinding", "ironburst-lab"),
            ("ClusterRoleBinding", "ironburst-lab-bootstrap"),
            *[(kind, "ironburst-lab") for kind in ("Role", "Role", "RoleBinding", "RoleBinding")],
            *[("ValidatingAdmissionPolicy", name) for name in policies],
            *[("ValidatingAdmissionPolicyBinding", name) for name in policies],
        ]
    )
    # the state's own encryption is the only one that hides it
    (sent,) = [each for each in recording.secrets if each[0] == "pulumi:providers:kubernetes"]
    assert sent[1] == ["kubeconfig"]


def test_the_rights_are_those_that_the_adapter_needs(cluster, declared):
    recording = cluster(declared)
    assert recording.one(ROLE).inputs["rules"] == kubernetes_rights.rendered(kubernetes_rights.CLUSTER)
    roles = {each.inputs["metadata"]["namespace"]: each.inputs["rules"] for each in recording.all("v1:Role")}
    rights = kubernetes_rights.namespaced("ironburst-lab")
    assert roles["ironburst-system"] == kubernetes_rights.rendered(rights)
    assert roles["kube-system"] == kubernetes_rights.rendered(kubernetes_rights.TOKENS)
    for binding in (*recording.all("v1:RoleBinding"), recording.one(BINDING, "lab-controller")):
        assert binding.inputs["subjects"] == [
            {"kind": "ServiceAccount", "name": "ironburst-controller", "namespace": "ironburst-system"}
        ]
    joining = recording.one(BINDING, "lab-bootstrap").inputs
    assert joining["roleRef"]["name"] == "system:node-bootstrapper"
    assert [each["name"] for each in joining["subjects"]] == ["system:bootstrappers:ironburst"]


def test_where_kueue_is_the_queue_there_is_a_check_and_no_right_to_change_pods(cluster, declared):
    declared["scheduler"]["queue"] = "kueue"
    recording = cluster(declared)
    (check,) = [each for each in kubernetes(recording) if each.token.endswith(":AdmissionCheck")]
    assert check.token == "kubernetes:kueue.x-k8s.io/v1beta2:AdmissionCheck"
    assert check.inputs["metadata"]["name"] == "ironburst-lab"
    assert check.inputs["spec"] == {"controllerName": "ironburst.io/lab"}
    rules = recording.one(ROLE).inputs["rules"]
    assert rules == kubernetes_rights.rendered(kubernetes_rights.cluster("kueue", "ironburst-lab"))
    (pods,) = [each["verbs"] for each in rules if each["resources"] == ["pods"]]
    assert pods == ["list", "watch", "delete"]
    named = [each["resourceNames"] for each in rules if each["resources"] == ["admissionchecks/status"]]
    assert named == [["ironburst-lab"]]
    assert any(each.inputs["metadata"]["name"] == "ironburst-lab-workloads" for each in recording.all(POLICY))


def test_the_quotas_of_kueues_queues_follow_the_shares(cluster, declared):
    declared["scheduler"]["queue"] = "kueue"
    declared["shares"] = [{"team": "vision", "guaranteed_gpus": 8}]
    recording = cluster(declared)
    rules = recording.one(ROLE).inputs["rules"]
    named = {each["resources"][0]: each.get("resourceNames") for each in rules if each["verbs"] == ["get", "patch"]}
    assert (named["clusterqueues"], named["cohorts"]) == (["vision"], ["ironburst"])
    assert not any("resourcequotas" in each["resources"] for each in rules)
    assert any(each.inputs["metadata"]["name"] == "ironburst-lab-queues" for each in recording.all(POLICY))


POOL = {"name": "wide", "instance_type": "g6e.12xlarge", "max_nodes": 4, "node_class": "gpu", "max_run": "2h"}


@pytest.fixture
def karpenter(declared):
    """With a pool that Karpenter launches, and none of ours."""
    declared["cloud"]["pools"] = []
    declared["cloud"]["karpenter"] = [copy.deepcopy(POOL)]
    return declared


def test_karpenter_launches_nothing_before_the_controller_lets_it(cluster, karpenter):
    recording = cluster(karpenter)
    (pool,) = [each for each in kubernetes(recording) if each.token.endswith(":NodePool")]
    assert pool.token == "kubernetes:karpenter.sh/v1:NodePool"
    assert pool.inputs["metadata"] == {"name": "ironburst-lab-wide", "labels": {"ironburst.io/cluster": "lab"}}
    assert set(pool.inputs["spec"]["limits"].values()) == {"0"} and pool.ignore_changes == ("spec.limits",)


def test_a_node_of_karpenters_has_one_type_one_market_and_an_end(cluster, karpenter):
    karpenter["cloud"]["karpenter"][0] |= {"market": "spot", "zones": ["us-east-1a"], "labels": {"team": "vision"}}
    (pool,) = [each for each in kubernetes(cluster(karpenter)) if each.token.endswith(":NodePool")]
    template = pool.inputs["spec"]["template"]
    assert {each["key"]: (each["operator"], each["values"]) for each in template["spec"]["requirements"]} == {
        "node.kubernetes.io/instance-type": ("In", ["g6e.12xlarge"]),
        "karpenter.sh/capacity-type": ("In", ["spot"]),
        "topology.kubernetes.io/zone": ("In", ["us-east-1a"]),
    }
    assert template["spec"]["nodeClassRef"] == {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"}
    assert (template["spec"]["expireAfter"], template["spec"]["terminationGracePeriod"]) == ("7200s", "7200s")
    labels = template["metadata"]["labels"]
    assert labels == {"ironburst.io/cluster": "lab", "ironburst.io/site": "wide", "team": "vision"}
    disruption = pool.inputs["spec"]["disruption"]
    assert (disruption["consolidationPolicy"], disruption["consolidateAfter"]) == ("WhenEmpty", "600s")
    assert {"nodes": "0", "reasons": ["Drifted", "Underutilized"]} in disruption["budgets"]  # replaces nothing


def test_the_controller_may_list_karpenters_objects_and_write_its_own_limits(cluster, karpenter):
    recording = cluster(karpenter)
    rules = [each for each in recording.one(ROLE).inputs["rules"] if each["apiGroups"] == ["karpenter.sh"]]
    assert [(each["resources"], each["verbs"], each.get("resourceNames")) for each in rules] == [
        (["nodeclaims", "nodepools"], ["list"], None),
        (["nodepools"], ["patch"], ["ironburst-lab-wide"]),
    ]
    assert any(each.inputs["metadata"]["name"] == "ironburst-lab-node-pools" for each in recording.all(POLICY))


def test_a_user_of_ones_own_gets_the_rights_and_the_bounds(cluster, declared):
    declared["scheduler"]["controller_user"] = "o'brien"
    recording = cluster(declared)
    assert recording.all("v1:ServiceAccount") == []
    (subject,) = recording.one(BINDING, "lab-controller").inputs["subjects"]
    assert (subject["kind"], subject["name"]) == ("User", "o'brien")
    for policy in recording.all(POLICY):
        (condition,) = policy.inputs["spec"]["matchConditions"]
        assert condition["expression"] == r"request.userInfo.username == 'o\'brien'"
        assert policy.inputs["spec"]["failurePolicy"] == "Fail"


def test_the_gate_is_a_rule_for_owned_nodes_only_where_that_is_asked_for(cluster, declared, monkeypatch):
    def rules(recording):
        return [each for each in kubernetes(recording) if each.token.endswith(":NodeReadinessRule")]

    assert rules(cluster(declared)) == []
    monkeypatch.setattr(cluster_kinds, "groups", lambda kubeconfig: {"readiness.node.x-k8s.io": ["v1alpha1"]})
    declared["scheduler"]["gate_rule"] = {"node_labels": {"a": "b"}, "dry_run": True}
    (rule,) = rules(cluster(declared, again=True))
    assert rule.inputs["spec"]["nodeSelector"] == {"matchLabels": {"a": "b"}} and rule.inputs["spec"]["dryRun"] is True
    assert rule.inputs["spec"]["taint"]["effect"] == "NoSchedule"  # whoever runs there goes on


def test_nodes_may_taint_their_devices_only_where_that_is_asked_for(cluster, declared, monkeypatch):
    def made(recording):
        return [each.token for each in kubernetes(recording) if each.name.endswith("device-taints")]

    assert made(cluster(declared)) == []
    monkeypatch.setattr(cluster_kinds, "groups", lambda kubeconfig: {"resource.k8s.io": ["v1", "v1beta2"]})
    declared["scheduler"]["gpu_support"] = {"dra": "gpus", "device_taints": True}
    declared["cloud"]["pools"] = []
    recording = cluster(declared, again=True)
    assert len(made(recording)) == 4
    binding = recording.one(BINDING, "lab-device-taints").inputs
    assert [subject["name"] for subject in binding["subjects"]] == ["system:nodes"]
    (rule,) = recording.one(ROLE, "lab-device-taints").inputs["rules"]
    assert (rule["resources"], set(rule["verbs"])) == (["devicetaintrules"], {"list", "create", "delete"})


@pytest.mark.parametrize(
    ("scheduler", "served", "sentences"),
    [
        (
            {"gpu_support": {"dra": "gpus", "device_taints": True}},
            {"resource.k8s.io": ["v1"]},
            ["scheduler.gpu_support.device_taints: the cluster has resource.k8s.io as v1, needed is v1beta2: have the"],
        ),
        ({"gate_rule": {}}, {"readiness.node.x-k8s.io": ["v1alpha1", "v1"]}, []),
        (
            {"gate_rule": {}},
            {},
            ["scheduler.gate_rule: the cluster has no readiness.node.x-k8s.io: install the node-rea"],
        ),
        (
            {"gate_rule": {}, "queue": "kueue"},
            {"kueue.x-k8s.io": ["v1beta1"]},
            [
                "scheduler.gate_rule: the cluster has no",
                "scheduler.queue: the cluster has kueue.x-k8s.io as v1beta1, n",
            ],
        ),
    ],
)
def test_what_the_cluster_lacks_is_told_before_anything_is_made(
    cluster, declared, monkeypatch, scheduler, served, sentences
):
    monkeypatch.setattr(cluster_kinds, "groups", lambda kubeconfig: served)
    declared["scheduler"] |= scheduler
    if "gpu_support" in scheduler:  # claims, which rented nodes don't know
        declared["cloud"]["pools"] = []
    if not sentences:
        assert cluster(declared)
        return
    with pytest.raises(pulumi.RunError) as error:
        cluster(declared, again=True)
    lines = str(error.value).splitlines()
    assert len(lines) == len(sentences)
    assert all(line.startswith(start) for line, start in zip(lines, sentences, strict=True)), lines


TEAM = {
    "groups": ["oidc:vision"],
    "quota": {"requests.cpu": "1000", "requests.memory": "8Ti", "pods": "500"},
    "limit_range": {"default_request": {"cpu": "1", "memory": "4Gi"}, "max": {"memory": "1Ti"}},
    "open_to": ["monitoring"],
    "time_limit": "8h",
}
"""As Kubernetes' documentation of multi-tenancy has it: quota, limit range, network policy and roles by namespace"""


def test_a_teams_namespace_comes_from_its_share(cluster, declared):
    declared["shares"] = [{"team": "vision", "guaranteed_gpus": 8, "namespace": TEAM}, {"team": "nlp"}]
    recording = cluster(declared)
    its = {
        each.token.rsplit(":", 1)[1]: each.inputs
        for each in kubernetes(recording)
        if "vision" in (each.inputs["metadata"]["name"], each.inputs["metadata"].get("namespace"))
    }
    assert set(its) == {"Namespace", "RoleBinding", "ResourceQuota", "LimitRange", "NetworkPolicy"}
    labels = its["Namespace"]["metadata"]["labels"]
    assert labels[TEAM_LABEL] == "vision" and labels["pod-security.kubernetes.io/enforce"] == "baseline"
    assert its["Namespace"]["metadata"]["annotations"] == {"ironburst.io/time-limit": "8h"}
    assert its["RoleBinding"]["roleRef"]["name"] == "edit"
    assert [each["name"] for each in its["RoleBinding"]["subjects"]] == ["oidc:vision"]
    assert its["ResourceQuota"]["spec"] == {"hard": TEAM["quota"]}
    of_each = {"type": "Container", "defaultRequest": TEAM["limit_range"]["default_request"], "max": {"memory": "1Ti"}}
    assert its["LimitRange"]["spec"] == {"limits": [of_each]}
    own, others = its["NetworkPolicy"]["spec"]["ingress"][0]["from"]
    assert own == {"podSelector": {}} and "monitoring" in str(others["namespaceSelector"])
    names = {each.inputs["metadata"]["name"] for each in recording.all("v1:Namespace")}
    assert "nlp" not in names, "off unless declared"


def test_the_rights_come_after_what_bounds_them_and_all_after_the_namespace(cluster, declared):
    recording = cluster(declared)

    def after(name, token):
        return {urn.split("::")[2].rsplit("$", 1)[-1].rsplit(":", 1)[-1] for urn in recording.after[token, name]}

    assert "ValidatingAdmissionPolicyBinding" in after("lab-controller", f"kubernetes:{BINDING}")
    for kind in ("Role", "RoleBinding"):
        at = ("lab-controller", f"kubernetes:rbac.authorization.k8s.io/v1:{kind}")
        assert after(*at) & {"Namespace", "Role"}
    assert after("lab-controller", "kubernetes:core/v1:ServiceAccount") == {"Namespace"}


def test_a_kubeconfig_that_does_not_resolve_is_one_sentence(cluster, declared, monkeypatch):
    monkeypatch.delenv("ADMIN_KUBECONFIG")
    with pytest.raises(pulumi.RunError, match=r"scheduler.admin_kubeconfig: .*set the environment variable"):
        cluster(declared, again=True)


@pytest.mark.parametrize("repository", ["https://charts.example.org/gpus", "oci://registry.example.org/charts"])
def test_a_hall_without_internet_has_its_own_charts(cluster, declared, repository):
    every = {"plugin": "device-plugin", "dcgm_exporter": True, "network_operator": True, "dra": "compute-domains"}
    declared["scheduler"]["gpu_support"] = {**every, "chart_repository": repository}
    releases = [each.inputs for each in cluster(declared).all("helm.sh/v3:Release")]
    assert len(releases) == 4
    for inputs in releases:
        own = catalog.chart(inputs["name"])
        name = own.chart.rpartition("/")[2]
        assert inputs["version"] == own.version
        if repository.startswith("oci"):
            assert inputs["chart"] == f"{repository}/{name}" and "repositoryOpts" not in inputs
        else:
            assert inputs["chart"] == name and inputs["repositoryOpts"] == {"repo": repository}


def test_charts_are_installed_at_the_catalogues_versions(cluster, declared):
    declared["scheduler"]["gpu_support"] = {"plugin": "device-plugin", "dcgm_exporter": True}
    recording = cluster(declared)
    releases = {each.inputs["name"]: each.inputs for each in recording.all("helm.sh/v3:Release")}
    assert set(releases) == {"device-plugin", "dcgm-exporter"}
    for name, inputs in releases.items():
        chart = catalog.chart(name)
        assert (inputs["chart"], inputs["version"]) == (chart.chart, chart.version)
        assert inputs["repositoryOpts"] == {"repo": chart.repository} and inputs["namespace"] == "ironburst-gpu"
    assert recording.one("node.k8s.io/v1:RuntimeClass").inputs["handler"] == "nvidia"
    room = next(each for each in recording.all("v1:Namespace") if each.inputs["metadata"]["name"] == "ironburst-gpu")
    assert room.inputs["metadata"]["labels"] == {"pod-security.kubernetes.io/enforce": "privileged"}


def support(**given):
    return {each.chart.name: each.values for each in gpu_charts.releases(GpuSupport(**given))}


def test_the_operator_leaves_alone_what_the_hosts_have():
    (values,) = support(plugin="gpu-operator", mig_strategy="mixed", dcgm_exporter=True).values()
    off = ("driver", "toolkit", "migManager")
    assert all(values[part] == {"enabled": False} for part in off)
    assert values["clusterPolicy"]["deployCR"] and not values["gpuCluster"]["deployCR"]
    assert values["mig"]["strategy"] == "mixed" and values["dcgmExporter"]["enabled"]


def test_claims_hand_out_gpus_instead_of_a_plugin_never_beside_it():
    (values,) = support(plugin="gpu-operator", dra="gpus").values()
    assert values["gpuCluster"]["deployCR"] and not values["clusterPolicy"]["deployCR"]
    alone = support(dra="gpus")["dra-driver"]
    assert alone["resources"]["gpus"]["enabled"] and alone["gpuResourcesEnabledOverride"]
    beside = support(plugin="device-plugin", dra="compute-domains")["dra-driver"]
    assert not beside["resources"]["gpus"]["enabled"] and beside["resources"]["computeDomains"]["enabled"]
    assert set(support(plugin="gpu-operator", dra="compute-domains")) == {"gpu-operator", "dra-driver"}


def test_a_cluster_gets_one_feature_discovery():
    assert support(network_operator=True)["network-operator"]["nfd"]["enabled"]
    both = support(plugin="gpu-operator", network_operator=True)
    assert not both["network-operator"]["nfd"]["enabled"]


EVERYTHING = {"network_operator": True, "rdma_resource": "rdma_shared_device_a", "efa": True, "dcgm_exporter": True}
EVERYTHING |= {"dcgm_hostengine": "host", "registry": "registry.example.org/mirror", "pull_secrets": ["regcred"]}
SHARING = {"by": "mps", "replicas": 4}
KINDS = [
    {"plugin": "gpu-operator", "sharing": SHARING},
    {"plugin": "gpu-operator", "dra": "gpus"},
    {"plugin": "device-plugin", "dra": "compute-domains", "sharing": SHARING},
    {"plugin": "none", "dra": "gpus"},
]


def leaves(values, known, path=""):
    """(path, value) of what is written; maps that are one key of the chart's are not gone into."""
    for key, value in values.items():
        at = f"{path}.{key}" if path else key
        if isinstance(value, dict) and at not in known:
            yield from leaves(value, known, at)
        else:
            yield at, value


@pytest.mark.parametrize("given", KINDS)
def test_what_is_written_is_in_the_charts(given):
    types = {"bool": bool, "str": str, "list": list, "map": dict}
    for name, values in support(**given, **EVERYTHING).items():
        known = catalog.chart_facts(name).values
        for path, value in leaves(values, known):
            assert path in known and isinstance(value, types[known[path]]), (name, path, value)


def test_every_locked_chart_has_facts():
    for name in catalog.charts():
        assert catalog.chart_facts(name).values and catalog.chart_facts(name).images


@pytest.mark.parametrize(
    ("when", "charts"), [("pre-install", {"network-operator"}), ("pre-upgrade", {"network-operator", "gpu-operator"})]
)
def test_what_up_waits_for_is_as_the_page_says(when, charts):
    hooks = [row for row in table("chart_facts.csv").rows if row["fact"] == "hook"]
    assert {row["chart"] for row in hooks if when in row["detail"].split()} == charts


@pytest.mark.parametrize("given", KINDS)
def test_every_daemonset_tolerates_rented_nodes_and_what_its_chart_does(given):
    for name, values in support(**given, **EVERYTHING).items():
        facts = catalog.chart_facts(name)
        found = {path: value for path, value in leaves(values, facts.values) if path.endswith("tolerations")}
        assert found, name
        for path, tolerations in found.items():
            assert all(each["operator"] == "Exists" for each in tolerations)
            keys = {each["key"] for each in tolerations}
            assert {NOT_READY_TAINT, RENTED_TAINT, GATE_TAINT, "nvidia.com/gpu"} <= keys, name
            assert facts.tolerates.get(path, frozenset()) <= keys, (name, path)


@pytest.mark.parametrize("given", KINDS)
def test_a_chart_comes_after_those_whose_kinds_it_makes_objects_of(given):
    """The network operator makes NodeFeatureRules, which are of whose feature discovery there is."""
    made = []
    for release in gpu_charts.releases(GpuSupport(**given, **EVERYTHING)):
        name = release.chart.name
        facts = catalog.chart_facts(name)
        own = facts.crds if name != "network-operator" or release.values["nfd"]["enabled"] else {}
        first = {crd for other in release.after for crd in catalog.chart_facts(other).crds}
        assert facts.needs <= {*own, *first}, name
        assert set(release.after) <= set(made)
        made.append(name)


def test_releases_wait_for_the_kinds_that_they_need(cluster, declared):
    declared["scheduler"]["gpu_support"] = {"plugin": "device-plugin", **EVERYTHING}
    recording = cluster(declared)

    def after(kind, name):
        return {urn.rsplit("::", 1)[-1] for urn in recording.after[f"kubernetes:{kind}", name]}

    assert "lab-gpu-support-device-plugin" in after("helm.sh/v3:Release", "lab-gpu-support-network-operator")
    nics = recording.one("mellanox.com/v1alpha1:NicClusterPolicy")
    assert "lab-gpu-support-network-operator" in after("mellanox.com/v1alpha1:NicClusterPolicy", nics.name)


def test_nics_are_shared_as_the_network_operators_example_has_it():
    """example/crs/mellanox.com_v1alpha1_nicclusterpolicy_cr.yaml at v26.4.1, without driver and networks."""
    spec = gpu_charts.nic_cluster_policy(GpuSupport(network_operator=True, rdma_resource="rdma_shared_device_a"))
    plugin = spec["rdmaSharedDevicePlugin"]
    assert (plugin["image"], plugin["repository"]) == ("k8s-rdma-shared-dev-plugin", "nvcr.io/nvidia/mellanox")
    assert plugin["version"] == "network-operator-v26.4.1" and "ofedDriver" not in spec
    (shared,) = json.loads(plugin["config"])["configList"]
    assert shared == {"resourceName": "rdma_shared_device_a", "rdmaHcaMax": 63, "selectors": {"vendors": ["15b3"]}}
    assert {NOT_READY_TAINT, RENTED_TAINT} <= {each["key"] for each in spec["tolerations"]}


def test_a_hall_without_internet_pulls_every_image_from_its_registry():
    for given in KINDS:
        for name, values in support(**given, **EVERYTHING).items():
            facts = catalog.chart_facts(name)
            written = dict(leaves(values, facts.values))
            for path in facts.images:
                assert written[path].startswith("registry.example.org/mirror/"), (name, path)
    values = support(plugin="gpu-operator", **EVERYTHING)
    assert values["gpu-operator"]["devicePlugin"]["repository"] == "registry.example.org/mirror/nvidia"
    assert values["gpu-operator"]["operator"]["imagePullSecrets"] == ["regcred"]
    assert values["gpu-operator"]["node-feature-discovery"]["imagePullSecrets"] == [{"name": "regcred"}]
    assert values["efa-device-plugin"]["imagePullSecrets"] == [{"name": "regcred"}]


def test_a_sites_values_come_last():
    """Of a Prometheus stack: dcgm-exporter's README, serviceMonitor with the labels that Prometheus selects by."""
    monitor = {"enabled": True, "additionalLabels": {"release": "kube-prometheus-stack"}}
    given = {"dcgm-exporter": {"serviceMonitor": monitor, "tolerations": []}}
    values = support(plugin="device-plugin", dcgm_exporter=True, values=given)["dcgm-exporter"]
    assert values["serviceMonitor"] == monitor and values["tolerations"] == []
    assert values["affinity"] == gpu_charts.HAS_GPUS


def test_one_hostengine_reads_the_counters():
    """As the exporter's and the operator's documentation have it for hosts with DCGM of their own (DGX OS)."""
    alone = support(plugin="device-plugin", dcgm_exporter=True, dcgm_hostengine="host")["dcgm-exporter"]
    its = support(plugin="gpu-operator", dcgm_exporter=True, dcgm_hostengine="host")["gpu-operator"]["dcgmExporter"]
    for env, values in ((alone["extraEnv"], alone), (its["env"], its)):
        assert env == [{"name": "DCGM_REMOTE_HOSTENGINE_INFO", "value": "localhost:5555"}] and values["hostNetwork"]
    assert "extraEnv" not in support(plugin="device-plugin", dcgm_exporter=True)["dcgm-exporter"]


@pytest.mark.parametrize(("by", "kind"), [("time-slicing", "timeSlicing"), ("mps", "mps")])
def test_gpus_are_shared_on_labelled_nodes_alone_and_under_another_name(by, kind):
    """Else 8 GPUs in 10 slices would be 80 GPUs to who rents. The shape: the device plugin's README, Shared Access."""
    sharing = {"by": by, "replicas": 10}
    alone = support(plugin="device-plugin", sharing=sharing)["device-plugin"]["config"]
    its = support(plugin="gpu-operator", sharing=sharing)["gpu-operator"]["devicePlugin"]["config"]
    for named in (alone["map"], its["data"]):
        assert yaml.safe_load(named["default"]) == {"version": "v1"}
        shared = {"renameByDefault": True, "resources": [{"name": "nvidia.com/gpu", "replicas": 10}]}
        assert yaml.safe_load(named["shared"]) == {"version": "v1", "sharing": {kind: shared}}
    assert alone["default"] == its["default"] == "default"


def test_no_image_gets_gpus_by_what_it_says_of_itself():
    """Base images of CUDA have NVIDIA_VISIBLE_DEVICES=all; the hosts' runtime believes mounts and CDI alone (role
    nvidia_container_toolkit).
    """
    by_mounts = support(plugin="device-plugin", device_list="volume-mounts")["device-plugin"]
    assert by_mounts["deviceListStrategy"] == "volume-mounts"
    assert support(plugin="gpu-operator")["gpu-operator"]["cdi"] == {"enabled": True}


def test_texts_of_policies_are_quoted():
    condition = admission.pods("a'b\\c")["match_conditions"][0]["expression"]
    assert condition == r"request.userInfo.username == 'a\'b\\c'"
