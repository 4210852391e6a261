from components.cluster import Cluster
from ironburst.baremetal.declared import allowed_mismatches, node_inputs
from ironburst.config.allowance_models import Allowance
from ironburst.config.models import Nodes
from tests.components.conftest import valid

BMC = {"addresses": "https://10.0.9.[11-12]", "username": "admin", "password": "env:BMC_PASSWORD"}
BASE = {
    "names": "dgx[01-02]",
    "platform": "dgx-h100",
    "rack": "r01",
    "units": [1, 9],
    "addresses": "10.0.1.[11-12]",
    "bmc": BMC,
}


def inputs(**changes):
    return node_inputs(Nodes.model_validate(BASE | changes))


def test_each_node_of_a_range_has_its_own_values():
    first, second = inputs(serials=["S1", "S2"], macs=["52:54:00:00:00:01", "52:54:00:00:00:02"])
    assert first == {
        "name": "dgx01",
        "bmcAddress": "https://10.0.9.11",
        "bmcUsername": "admin",
        "passwordRef": "env:BMC_PASSWORD",
        "verifyTls": True,
        "powerOffOnDelete": False,
        "serial": "S1",
        "macs": ["52:54:00:00:00:01"],
        "platform": "dgx-h100",
        "gpuModel": "H100 SXM5 80GB",
        "gpuCount": 8,
    }
    assert (second["name"], second["bmcAddress"], second["serial"]) == ("dgx02", "https://10.0.9.12", "S2")


def test_a_node_is_told_the_driver_that_the_lock_has_for_it():
    first, second = node_inputs(Nodes.model_validate(BASE), drivers={"dgx02": "580.95.05"})
    assert "driver" not in first and second["driver"] == "580.95.05"


def test_what_is_not_declared_is_not_compared():
    assert not {"serial", "macs", "model", "memoryGib", "caFile", "certificateSha256"} & set(inputs()[0])


def test_how_a_bmc_is_known():
    printed = ":".join(["AB"] * 32)  # as openssl prints it
    nodes = inputs(bmc=BMC | {"sha256": [printed, "c" * 64]})
    assert [each["certificateSha256"] for each in nodes] == ["ab" * 32, "c" * 64]
    assert [each["caFile"] for each in inputs(bmc=BMC | {"ca_file": "/etc/bmc.pem"})] == ["/etc/bmc.pem"] * 2


def test_a_head_without_a_platform_must_have_no_gpu():
    (head,) = inputs(
        names="head",
        role="head",
        platform=None,
        units=[40],
        height=1,
        addresses="10.0.1.10",
        bmc={**BMC, "addresses": "https://10.0.9.10"},
    )
    assert head["gpuCount"] == 0 and "gpuModel" not in head


def test_nodes_are_resources_of_our_own_plugin(cluster, value):
    nodes = cluster(value).all("baremetal:index:Node")
    expected = [("dgx01", "hall-a"), ("dgx02", "hall-a"), ("head", "hall-a")]
    assert [(each.name, each.parent) for each in nodes] == expected


def test_the_locks_driver_reaches_its_node(run, value):
    stack = valid(value)
    recording = run(lambda: Cluster(stack.config.name, stack.config, stack.software, {"dgx02": "580.95.05"}).document)
    nodes = recording.all("baremetal:index:Node")
    assert {each.name: each.inputs.get("driver") for each in nodes} == {
        "dgx01": None,
        "dgx02": "580.95.05",
        "head": None,
    }


def test_a_password_in_secrets_manager_is_asked_for_where_the_cloud_is():
    kept = Nodes.model_validate(BASE | {"bmc": BMC | {"password": "aws-secretsmanager:hall/bmc"}})
    assert [each.get("secretsRegion") for each in node_inputs(kept, {"aws": "eu-west-1", "google": "x"})] == [
        "eu-west-1"
    ] * 2
    assert not any(
        "secretsRegion" in each for each in [*node_inputs(kept), *node_inputs(Nodes.model_validate(BASE), {"aws": "x"})]
    )


def test_what_somebody_answers_for_is_an_input_of_its_node():
    allow = [
        Allowance(rule="hardware", of=f"dgx02/{what}", reason="r", by="b", until=day)
        for what, day in (("psu_input", "2026-12-01"), ("drives", "2026-12-05"), ("psu_input", "2026-12-03"))
    ]
    allow.append(Allowance(rule="node", of="dgx02", reason="r", by="b", until="2026-12-01"))
    first, second = node_inputs(Nodes.model_validate(BASE), allowed=allowed_mismatches(allow))
    assert "allowed" not in first
    assert second["allowed"] == {"psu_input": "2026-12-03", "drives": "2026-12-05"}
