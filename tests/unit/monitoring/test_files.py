"""What `ironburst monitoring` writes of a stack, and what it refuses."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from ironburst import document
from ironburst.cli import main
from ironburst.config import checks, stack
from ironburst.config.load import from_value
from ironburst.config.monitoring_models import Monitoring
from ironburst.document.build import CloudInstance, Observed, build
from ironburst.monitoring import receivers, receiving, rules, targets

ROOT = Path(__file__).parents[3]
RELAY = {"host": "mail.example.org:587", "sender": "ironburst@example.org"}
OBSERVED = Observed(instances={"fixed-1": CloudInstance(id="i-0", address="10.90.0.9")}, pool_zones={"p5": []})
OPERATORS = {"audience": "operators", "mail": ["ops@example.org"]}


def declared(**changed):
    value = yaml.safe_load((ROOT / "stacks/Pulumi.lab.yaml").read_text())["config"]["ironburst:cluster"]
    return value | changed


def of(value, controller=targets.CONTROLLER):
    """The targets of a declaration."""
    site = build(from_value(value), OBSERVED)
    return targets.of(site.hosts, targets.controllers(site.schedulers, [controller]) if site.pools else {})


def test_targets_are_the_declared_nodes_owned_and_fixed():
    found = of(declared())
    named = {job: [each["labels"]["node"] for each in its] for job, its in found.items()}
    gpus = ["dgx01", "dgx02", "fixed-1"]
    assert named == {"node": ["head", *gpus], "dcgm": gpus, "ironburst": ["head"]}
    fixed = {"node": "fixed-1", "role": "gpu", "zone": "us-east-1a"}
    assert found["dcgm"][-1] == {"targets": ["10.90.0.9:9400"], "labels": fixed}
    assert found["node"][0]["labels"]["role"] == "head" and found["node"][0]["targets"][0].endswith(":9100")
    assert found["ironburst"][0]["targets"] == ["127.0.0.1:8643"], "as ironburst run listens"
    assert of(declared(), "10.0.0.5:1")["ironburst"][0]["targets"] == ["10.0.0.5:1"]
    assert {each["labels"].get("hall") for each in found["dcgm"]} == {"hall-a", None}


def test_a_fixed_node_is_a_target_where_the_published_document_is_given(tmp_path, capsys):
    """A stack file doesn't know what address EC2 gave it."""
    stack_file, published = ROOT / "stacks/Pulumi.lab.yaml", tmp_path / "lab.json"
    document.publish(build(from_value(declared()), OBSERVED), published)
    assert main(["monitoring", str(stack_file), "--to", str(tmp_path / "a")]) == 0
    assert "no targets: fixed-1: only the published document has their addresses" in capsys.readouterr().out
    assert main(["monitoring", str(stack_file), "--to", str(tmp_path / "b"), "--document", str(published)]) == 0
    names = [
        [each["labels"]["node"] for each in json.loads((tmp_path / its / "targets/dcgm.json").read_text())]
        for its in "ab"
    ]
    assert names == [["dgx01", "dgx02"], ["dgx01", "dgx02", "fixed-1"]]


def test_what_comes_late_is_taken_only_where_something_is_pushed(tmp_path):
    for given, taken in (
        ({}, None),
        ({"receiver": "10.78.0.10:8644"}, {"tsdb": {"out_of_order_time_window": targets.LATE}}),
    ):
        value = declared(metrics=True, monitoring=given)
        file = tmp_path / "Pulumi.x.yaml"
        file.write_text(yaml.safe_dump({"config": {"ironburst:cluster": value}}))
        assert main(["monitoring", str(file), "--to", str(tmp_path / "out")]) == 0
        assert yaml.safe_load((tmp_path / "out/prometheus.yml").read_text()).get("storage") == taken
    assert f"{receiving.LATE_S / 3600:.0f}h" == targets.LATE


def test_what_is_not_managed_or_not_there_is_no_target():
    value = declared(cloud=None, budget=None)
    for nodes in value["halls"][0]["nodes"]:
        if nodes["names"] != "head":
            nodes["managed"] = False
    found = of(value)
    assert [each["labels"]["node"] for each in found["node"]] == ["head"]
    assert found["dcgm"] == [] and found["ironburst"] == [], "nobody rents, so no controller is silent"


def settings(*tell, **more):
    return receivers.alertmanager(Monitoring.model_validate({"tell": list(tell)} | more), lambda given: f"<{given}>")


@pytest.mark.parametrize(
    ("service", "section", "key"),
    [
        ("slack", "slack_configs", "api_url"),
        ("teams", "msteamsv2_configs", "webhook_url"),
        ("pagerduty", "pagerduty_configs", "routing_key"),
        ("webhook", "webhook_configs", "url"),
    ],
)
def test_each_service_gets_its_secret_where_alertmanager_wants_it(service, section, key):
    made = settings({"audience": "operators", "service": service, "secret": "env:X"})
    assert made["receivers"][1][section][0][key] == "<env:X>"


def test_routes_are_by_audience_and_severity_and_nobody_gets_the_rest():
    made = settings(OPERATORS | {"severity": "page"}, OPERATORS | {"audience": "money"}, relay=RELAY)
    assert made["route"]["receiver"] == "nobody" and made["receivers"][0] == {"name": "nobody"}
    routes = {each["receiver"]: each["matchers"] for each in made["route"]["routes"]}
    assert routes == {
        "operators-0": ['audience="operators"', 'severity=~"page"'],
        "money-1": ['audience="money"', 'severity=~"page|ticket"'],
    }
    assert all(each["continue"] for each in made["route"]["routes"]), "two items of one audience both hear"


def test_an_account_hears_of_its_own_jobs_alone():
    made = settings(OPERATORS, OPERATORS | {"audience": "money", "account": "vision"}, relay=RELAY)
    assert made["route"]["routes"][1]["matchers"][2:] == ['account="vision"']


def test_inhibitions_name_rules_that_are_there_and_labels_that_both_have():
    known = rules.every()
    for stopped, by, _ in receivers.INHIBITED:
        assert {*stopped.split("|"), by} <= set(known)
        assert known[by]["labels"]["audience"] == "operators"
        assert by not in stopped.split("|"), "no alert silences itself"


@pytest.mark.parametrize(
    ("monitoring", "words"),
    [
        ({"tell": [OPERATORS]}, "no relay"),
        ({"url": "10.0.0.10:9090"}, "url"),
        ({"pue": 0.8}, "pue"),
        ({"receiver": "0.0.0.0:8644"}, "private IPv4 address of the head"),
        ({"receiver": "127.0.0.1:8644"}, "private IPv4 address of the head"),
        ({"receiver": "8.8.8.8:8644"}, "private IPv4 address of the head"),
        ({"receiver": "head:8644"}, "private IPv4 address of the head"),
        ({"receiver": "10.78.0.10"}, "private IPv4 address of the head"),
        ({"receiver": "10.78.0.10:70000"}, "private IPv4 address of the head"),
        ({"relay": RELAY, "tell": [OPERATORS | {"audience": "money"}]}, "nobody would wake"),
        ({"relay": RELAY, "tell": [OPERATORS | {"severity": "ticket"}]}, "nobody would wake"),
        ({"relay": RELAY, "tell": [OPERATORS | {"service": "slack", "secret": "env:X"}]}, "needs one way"),
        ({"tell": [{"audience": "operators"}]}, "needs one way"),
        ({"relay": RELAY, "tell": [OPERATORS | {"account": "vision"}]}, "machines are of none"),
        ({"tell": [{"audience": "operators", "service": "slack"}]}, "one of service and secret without the other"),
        ({"tell": [{"audience": "operators", "service": "slack", "secret": "https://hooks.slack.com/x"}]}, "secret"),
        ({"relay": RELAY | {"user": "x"}, "tell": [OPERATORS]}, "one of user and password without the other"),
        ({"relay": RELAY | {"user": "x", "password": "env:P", "tls": False}, "tell": [OPERATORS]}, "unencrypted"),
        ({"relay": RELAY | {"host": "mail.example.org"}, "tell": [OPERATORS]}, "host"),
    ],
)
def test_what_is_declared_wrongly_is_one_sentence(tmp_path, capsys, monitoring, words):
    file = tmp_path / "Pulumi.x.yaml"
    file.write_text(yaml.safe_dump({"config": {"ironburst:cluster": declared(monitoring=monitoring)}}))
    assert main(["monitoring", str(file), "--to", str(tmp_path / "out")]) == 2
    shown = capsys.readouterr()
    assert words in shown.err and "monitoring" in shown.err and "Traceback" not in shown.err
    assert not (tmp_path / "out").exists()


def test_a_receiver_needs_exporters():
    monitoring = {"receiver": "10.78.0.10:8644"}
    for metrics in (False, True):
        found = checks.check(from_value(declared(metrics=metrics, monitoring=monitoring)), datetime.now(UTC))
        assert ("no-exporters" in {each.rule for each in found}) != metrics


def test_a_secret_that_is_not_there_writes_nothing(tmp_path, capsys):
    tell = [{"audience": "operators", "service": "slack", "secret": f"file:{tmp_path}/none"}]
    file = tmp_path / "Pulumi.x.yaml"
    file.write_text(yaml.safe_dump({"config": {"ironburst:cluster": declared(monitoring={"tell": tell})}}))
    assert main(["monitoring", str(file), "--to", str(tmp_path / "out")]) == 2
    assert f"{tmp_path}/none" in capsys.readouterr().err and not (tmp_path / "out").exists()


def test_validate_names_a_secret_that_is_not_there(tmp_path):
    tell = [{"audience": "operators", "service": "slack", "secret": f"file:{tmp_path}/none"}]
    relay = RELAY | {"user": "x", "password": "env:NO_SUCH_VARIABLE"}
    config = from_value(declared(monitoring={"relay": relay, "tell": tell}))
    found = {each.path: each.message for each in stack.secret_references(config)}
    assert {"monitoring.tell[0].secret", "monitoring.relay.password"} <= {
        path.partition("cluster.")[2] or path for path in found
    }


def test_without_receivers_the_rest_is_written(tmp_path, capsys):
    file = ROOT / "stacks/Pulumi.lab.yaml"
    assert main(["monitoring", str(file), "--to", str(tmp_path / "out")]) == 0
    assert "declares no `monitoring.tell`" in capsys.readouterr().out
    assert sorted(each.name for each in (tmp_path / "out").iterdir()) == [
        "dashboards",
        "ironburst-alerts.yml",
        "prometheus.yml",
        "targets",
    ]
    assert json.loads((tmp_path / "out/targets/dcgm.json").read_text())
    boards = {path.stem: json.loads(path.read_text()) for path in (tmp_path / "out/dashboards").glob("*.json")}
    assert len(boards) == 6 and all(board["uid"] == name for name, board in boards.items())
