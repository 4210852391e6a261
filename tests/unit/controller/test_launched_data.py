"""What a launch tells its nodes of their pool's data sets."""

import json

from ironburst import document
from ironburst.controller.launch_request import user_data
from tests.unit.document.test_document import built
from tests.unit.kubernetes_stack import on_kubernetes

DATA = {"imagenet": {"s3": "training/imagenet"}, "genomes": {"s3": "training/genomes"}}


def said(*names):
    def change(value):
        value["cloud"]["data"] = DATA
        value["cloud"]["pools"][0]["data"] = list(names)

    declared = document.parse(built(change).model_dump(mode="json"))
    return json.loads(user_data(declared, declared.pool("p5"), declared.pool("p5").zones[0], ("p5-1",), 45.0))


def test_a_launch_names_the_declared_data_sets_of_its_pool_and_the_time_for_them():
    told = said("imagenet", "c4")
    assert told["data"] == {"imagenet": {"kind": "s3", "source": "training/imagenet", "path": "/data/imagenet"}}
    assert told["boot_s"] == 45.0


def test_a_pool_without_any_is_launched_as_before():
    """To the letter: a launch that is open while the controller is renewed is repeated with the same parameters."""
    assert set(said("c4")) == {
        *("ironburst", "cluster", "nodes", "conf_server", "munge_key", "hosts", "region", "dead_man_s", "hard_limit_s"),
    }


def test_a_launch_names_where_metrics_are_pushed_to_if_somebody_takes_them():
    def change(value):
        value |= {"metrics": True, "monitoring": {"receiver": "10.78.0.10:8644"}}

    declared = document.parse(built(change).model_dump(mode="json"))
    pool = declared.pool("p5")
    told = json.loads(user_data(declared, pool, pool.zones[0], ("p5-1",), 45.0))
    assert told["receiver"] == "10.78.0.10:8644" and "receiver" not in said("c4")


def test_a_launch_names_head_and_login_nodes_and_no_others():
    assert said("c4")["hosts"] == {"head": "10.78.0.10"}


def test_a_node_of_kubernetes_is_told_its_cluster_its_labels_and_nothing_of_slurm():
    def change(value):
        on_kubernetes(value)
        value["cloud"]["pools"][0]["labels"] = {"team": "vision"}

    declared = document.parse(built(change).model_dump(mode="json"))
    pool = declared.pool("p5")
    told = json.loads(user_data(declared, pool, pool.zones[0], ("p5-1",), 45.0))
    assert set(told) == {
        *("ironburst", "scheduler", "cluster", "nodes", "api_server", "ca", "join_token", "labels", "region"),
        *("dead_man_s", "hard_limit_s"),
    }
    assert told["join_token"] == "aws-secretsmanager:ironburst/lab/join-token" and "BEGIN CERTIFICATE" in told["ca"]
    assert told["labels"] == {
        "ironburst.io/site": "burst-p5",
        "node.kubernetes.io/instance-type": "p5.48xlarge",
        "team": "vision",
        "topology.kubernetes.io/region": "us-east-1",
        "topology.kubernetes.io/zone": "us-east-1a",
    }
    assert len(json.dumps(told)) < 4096
