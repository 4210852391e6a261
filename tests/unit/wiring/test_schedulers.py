"""Which scheduler the verbs reach, and what they say where that can't be."""

import argparse
from pathlib import Path

import pytest
import yaml

from ironburst import cli, document
from ironburst.adapters.both import Both
from ironburst.adapters.bridged import Bridged
from ironburst.adapters.kubernetes import Karpenter, Kubernetes
from ironburst.adapters.slurm.scheduler import Slurm
from ironburst.config import load
from ironburst.controller import declared_site
from ironburst.document import build
from ironburst.ports import Job, Observation, Resources, SchedulerError
from ironburst.system import secrets
from ironburst.system.bad_input import BadInput
from ironburst.wiring import schedulers
from tests.unit.document.test_document import LAB, OBSERVED, built
from tests.unit.kubernetes_stack import BRIDGE, on_both, on_kubernetes

KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "c",
    "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:9"}}],
    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    "users": [{"name": "u", "user": {"token": "t"}}],
}


def options(**given):
    return argparse.Namespace(**{"slurm_prefix": None, "kubeconfig": None} | given)


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch):
    for name in ("IRONBURST_SLURM_PREFIX", "IRONBURST_KUBECONFIG"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def cluster():
    def change(value):
        on_kubernetes(value)
        value["cloud"]["pools"][0]["labels"] = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}

    return document.parse(built(change).model_dump(mode="json"))


@pytest.fixture
def kubeconfig(tmp_path):
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(KUBECONFIG))
    return path


def test_a_document_of_slurm_is_reached_by_its_prefix():
    lab = built(lambda value: None)
    assert isinstance(schedulers.connect(options(slurm_prefix="ssh root@head"), lab), Slurm)
    with pytest.raises(BadInput, match="--kubeconfig k: the scheduler of lab is Slurm"):
        schedulers.connect(options(kubeconfig=Path("k")), lab)
    with pytest.raises(BadInput, match="can't be split into words"):
        schedulers.connect(options(slurm_prefix="'"), lab)


@pytest.fixture
def bridged():
    def change(value):
        value["scheduler"]["bridge"] = BRIDGE | {"scheduler_name": "bridge-two"}
        value["software"] |= {"slurm": "25.11", "kubernetes": "1.35"}

    return document.parse(built(change).model_dump(mode="json"))


def test_slurm_with_a_bridge_is_reached_by_both(bridged, kubeconfig):
    connection = schedulers.SchedulerConnection(options(slurm_prefix="ssh root@head", kubeconfig=kubeconfig))
    reached = connection.follow(bridged)
    assert isinstance(reached, Bridged) and connection.follow(bridged) is reached
    site = schedulers.site_of(bridged)
    assert site.schedulers == {"bridge-two"} and site.namespace == "ironburst-system"
    (pool,) = bridged.pools
    assert set(site.pool_of) == set(pool.nodes) and site.pool_of[pool.nodes[0]].each.gpus == pool.gpu.count
    assert reached._slurm.pools == {pool.partition: frozenset(pool.nodes)}
    fewer = pool.model_copy(update={"nodes": pool.nodes[:1]})
    assert connection.follow(bridged.model_copy(update={"pools": [fewer]})) is reached
    assert reached._slurm.pools == {pool.partition: {pool.nodes[0]}}
    with pytest.raises(SchedulerError, match="there is no kubeconfig /etc/ironburst/kubeconfig that can be read"):
        schedulers.connect(options(), bridged)


def test_the_token_of_a_bridge_goes_where_its_nodes_read_it(bridged, kubeconfig, monkeypatch):
    stored = []
    monkeypatch.setattr(secrets, "store", lambda reference, text, **_: stored.append((reference, text)))
    connection = schedulers.SchedulerConnection(options(kubeconfig=kubeconfig))
    connection.follow(bridged)
    connection._deliver("abcdef.0123456789abcdef")
    assert stored == [(BRIDGE["join_token"], "abcdef.0123456789abcdef")]


@pytest.mark.parametrize("by", ["option", "environment", "document", "secret"])
def test_a_cluster_is_reached_by_a_kubeconfig(cluster, kubeconfig, monkeypatch, by):
    named = cluster.scheduler.model_copy(
        update={"kubeconfig": "env:KUBECONFIG_TEXT" if by == "secret" else f"file:{kubeconfig}"}
    )
    if by == "environment":
        monkeypatch.setenv("IRONBURST_KUBECONFIG", str(kubeconfig))
    if by == "secret":
        monkeypatch.setenv("KUBECONFIG_TEXT", kubeconfig.read_text())
    if by in ("document", "secret"):
        cluster = cluster.model_copy(update={"scheduler": named})
    reached = schedulers.connect(options(kubeconfig=kubeconfig if by == "option" else None), cluster)
    assert isinstance(reached, Kubernetes)
    with pytest.raises(SchedulerError, match=r"127\.0\.0\.1:9 can't be reached"):
        reached.claim("", "", 600.0)
    reached.close()


def test_a_kubeconfig_that_isnt_there_or_is_none_is_one_sentence(cluster, monkeypatch, capsys, tmp_path):
    with pytest.raises(SchedulerError, match="there is no kubeconfig /etc/ironburst/kubeconfig that can be read"):
        schedulers.connect(options(), cluster)
    by_secret = cluster.scheduler.model_copy(update={"kubeconfig": "env:KUBECONFIG_TEXT"})
    for text, words in ((None, "does not resolve"), ("just words", "env:KUBECONFIG_TEXT holds no kubeconfig")):
        if text:
            monkeypatch.setenv("KUBECONFIG_TEXT", text)
        with pytest.raises(SchedulerError, match=words):
            schedulers.connect(options(), cluster.model_copy(update={"scheduler": by_secret}))
    path = tmp_path / "cluster.json"
    path.write_text(cluster.model_dump_json())
    assert cli.main(["status", "--document", str(path), "--ledger", str(tmp_path / "ledger")]) == 3
    assert capsys.readouterr().err.count("\n") == 1
    assert cli.main(["status", "--document", str(path), "--slurm-prefix", "x"]) == 2
    assert "give --kubeconfig" in capsys.readouterr().err


def test_the_adapter_is_told_what_is_declared(cluster):
    site = schedulers.site_of(cluster)
    (pool,) = site.pools
    assert (site.name, site.namespace, site.boot_s) == ("lab", "ironburst-system", 45.0)
    assert (pool.partition, pool.nodes, pool.each) == ("burst-p5", ("p5-1", "p5-2", "p5-3"), Resources(8, 16, 1000))
    ours = {
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
        "topology.kubernetes.io/region": "us-east-1",
        "topology.kubernetes.io/zone": "us-east-1a",
        "node.kubernetes.io/instance-type": "p5.48xlarge",
        "ironburst.io/site": "burst-p5",
    }
    assert pool.resources == {"vpc.amazonaws.com/efa": 32}
    assert ours.items() <= pool.labels.items()
    assert pool.labels["topology.ebs.csi.aws.com/zone"] == "us-east-1a"  # by which EBS's volumes are bound


def test_node_objects_of_other_names_are_known_by_ours():
    def change(value):
        on_kubernetes(value)
        value["halls"][0]["nodes"][0] |= {"names": "dgx[01-02]", "node_objects": "dgx[01-02].hall.example"}

    made = built(change)
    theirs = {host.node_object: host.name for host in made.hosts if host.node_object}
    assert theirs == {"dgx01.hall.example": "dgx01", "dgx02.hall.example": "dgx02"} == schedulers.site_of(made).ours


def test_the_token_goes_to_the_declared_secret(cluster, monkeypatch):
    written = []
    monkeypatch.setattr(secrets, "store", lambda reference, text, region: written.append((reference, text, region)))
    schedulers._deliver(cluster, "abcdef.0123456789abcdef")
    assert written == [("aws-secretsmanager:ironburst/lab/join-token", "abcdef.0123456789abcdef", "us-east-1")]

    def refused(*_, **__):
        raise secrets.SecretError("Secrets Manager says AccessDeniedException")

    monkeypatch.setattr(secrets, "store", refused)
    with pytest.raises(SchedulerError, match="AccessDenied"):
        schedulers._deliver(cluster, "x")


# ---- both


@pytest.fixture
def both(kubeconfig):
    zones = OBSERVED.pool_zones | {"g5": OBSERVED.pool_zones["p5"]}
    value = load.read_value(LAB)
    on_both(value)
    value["other_schedulers"][0]["kubeconfig"] = f"file:{kubeconfig}"
    return build.build(load.from_value(value), OBSERVED.model_copy(update={"pool_zones": zones}))


def test_both_are_reached_together(both, kubeconfig):
    reached = schedulers.connect(options(slurm_prefix="false", kubeconfig=kubeconfig), both)
    assert isinstance(reached, Both)
    with pytest.raises(SchedulerError, match=r"Slurm: .*; Kubernetes: .*127\.0\.0\.1:9 can't be reached"):
        reached.claim("", "", 600.0)
    site = schedulers.site_of(both)
    assert [pool.partition for pool in site.pools] == ["burst-g5"] and site.home_partition == "pods"
    assert site.pools[0].gpu_type == "h100"  # the policy's word


def test_a_kubeconfig_that_isnt_there_doesnt_stop_slurm(both, kubeconfig):
    kubeconfig.unlink()
    connection = schedulers.SchedulerConnection(options(slurm_prefix="false"))
    reached = connection.follow(both)
    with pytest.raises(SchedulerError, match="Kubernetes: there is no kubeconfig"):
        reached.claim("", "", 600.0)
    kubeconfig.write_text(yaml.safe_dump(KUBECONFIG))
    assert connection.follow(both) is reached  # what it remembers stays
    with pytest.raises(SchedulerError, match=r"127\.0\.0\.1:9 can't be reached"):
        reached.claim("", "", 600.0)


def test_a_new_document_reaches_the_cluster_without_a_restart(cluster, kubeconfig):
    connection = schedulers.SchedulerConnection(options(kubeconfig=kubeconfig))
    reached = connection.follow(cluster)
    more = cluster.pools[0].model_copy(update={"name": "g6", "partition": "burst-g6", "nodes": ["g6-1"]})
    assert connection.follow(cluster.model_copy(update={"pools": [*cluster.pools, more]})) is reached
    assert set(reached._site.pool_of) == {"p5-1", "p5-2", "p5-3", "g6-1"}
    other = cluster.scheduler.model_copy(update={"kubeconfig": "file:/elsewhere"})
    assert connection.follow(cluster.model_copy(update={"scheduler": other})) is not reached


def test_karpenter_is_reached_as_the_cluster_is(both, cluster, kubeconfig):
    connection = schedulers.SchedulerConnection(options(kubeconfig=kubeconfig))
    connection.follow(cluster)
    assert isinstance(connection.karpenter, Karpenter)
    nowhere = schedulers.SchedulerConnection(
        options(slurm_prefix="ssh root@head", kubeconfig=Path("/nonexistent/kubeconfig"))
    )
    nowhere.follow(both)
    assert nowhere.karpenter is None


def test_a_stack_of_two_says_whose_queue_a_trace_is(both, tmp_path, capsys):
    value = load.read_value(LAB)
    on_both(value)
    path = tmp_path / "Pulumi.both.yaml"
    path.write_text(yaml.safe_dump({"config": {load.KEY: value}}))
    with pytest.raises(BadInput, match="a trace is of one queue: give --scheduler slurm or kubernetes"):
        declared_site.declared(path)
    assert [
        [pool.name for pool in declared_site.declared(path, kind).cloud.pools] for kind in ("slurm", "kubernetes")
    ] == [
        ["p5"],
        ["g5"],
    ]
    with pytest.raises(BadInput, match=r"--scheduler kubernetes: .* has slurm alone"):
        declared_site.declared(LAB, "kubernetes")


def test_status_tells_both_sides_and_which_one_is_silent(both, tmp_path, monkeypatch, capsys):
    path = tmp_path / "cluster.json"
    path.write_text(both.model_dump_json())
    pod = Job(2**40, "team-a/train", "bob", "PENDING", 0.0, 1, Resources(8), 60.0, ("pods",))
    seen = Observation((pod,), (), silent=("slurm",), unreadable=("Slurm gives no answer (x): ...",))
    monkeypatch.setattr(schedulers, "connect", lambda *_: argparse.Namespace(observe=lambda: seen))
    asked = ["status", "--document", str(path), "--ledger", str(tmp_path / "ledger")]
    assert cli.main(asked) == 3
    out, err = capsys.readouterr()
    assert "queue of Slurm: no answer" in out and "team-a/train" in out.partition("queue of Kubernetes")[2]
    assert err == "ironburst: Slurm gives no answer (x): ...\n"


@pytest.mark.parametrize(
    "said",
    [
        {"kubernetes.io/arch": "amd64"},
        {"kubernetes.io/os": "linux"},
        {"node.kubernetes.io/instance-type": "p5.48xlarge"},
        {"topology.kubernetes.io/region": "us-east-1"},
        {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.count": "8"},
        {"nvidia.com/gpu.family": "hopper", "nvidia.com/gpu.present": "true"},
        {"nvidia.com/gpu.compute.major": "9", "nvidia.com/gpu.memory": "81559"},
    ],
    ids=lambda said: next(iter(said)),
)
def test_what_kubelet_and_feature_discovery_will_say_of_a_node_is_known_before_it_is_there(said):
    from ironburst.adapters.kubernetes.pods import read_pod
    from tests.fakes.kube_objects import pod

    site = schedulers.site_of(document.parse(built(on_kubernetes).model_dump(mode="json")))
    assert read_pod(pod("a", nodeSelector=said), site).pools == {"burst-p5"}
    assert read_pod(pod("a", nodeSelector=dict.fromkeys(said, "other")), site).pools == frozenset()
