"""The site's own Prometheus as it is declared: what the document says of it, who scrapes what, and what is refused."""

import copy
from pathlib import Path

import pytest
import yaml

from ironburst.cli import run
from ironburst.config.checks import monitoring as checks
from ironburst.config.load import from_value
from ironburst.convergence.inputs import Sources
from ironburst.document import variables
from ironburst.document.build import CloudInstance, Observed, build
from ironburst.monitoring import targets
from tests.unit.config.test_second_head import second_head

STACK = Path(__file__).parents[3] / "stacks/Pulumi.lab.yaml"
OBSERVED = Observed(instances={"fixed-1": CloudInstance(id="i-0", address="10.90.0.9")}, pool_zones={"p5": []})


def declared(monitoring, **changed):
    value = yaml.safe_load(STACK.read_text())["config"]["ironburst:cluster"]
    return from_value({**copy.deepcopy(value), "metrics": True, "monitoring": monitoring, **changed})


def made(monitoring, **changed):
    return build(declared(monitoring, **changed), OBSERVED)


def having(site, role):
    return [host.name for host in site.hosts if role in host.roles]


def test_without_a_server_nothing_is_there():
    site = made({})
    assert having(site, "prometheus") == [] and site.monitoring.url == "" and site.monitoring.controller == ""
    assert all("node_monitoring" not in its for its in variables.of_others(site.model_dump(mode="json")).values())


def test_on_the_head_it_is_reached_by_the_loopback():
    site = made({"server": "head"})
    assert having(site, "prometheus") == ["head"]
    of_it = site.monitoring
    assert (of_it.address, of_it.url, of_it.controller) == ("127.0.0.1", "http://127.0.0.1:9090", "127.0.0.1:8643")
    assert (of_it.retention, of_it.retention_gb) == ("30d", 20)
    others = variables.of_others(site.model_dump(mode="json"))
    assert [name for name, its in others.items() if "node_monitoring" in its] == ["head"]


def test_another_host_and_the_head_reach_each_other_by_their_own_addresses():
    site = made({"server": "dgx02", "retention": "90d", "retention_gb": 200})
    assert having(site, "prometheus") == ["dgx02"]
    of_it = site.monitoring
    assert (of_it.address, of_it.url) == ("10.78.0.12", "http://10.78.0.12:9090")
    assert of_it.controller == "10.78.0.10:8643", "and there the controller listens"
    assert run._metrics_at(arguments(), site) == ("10.78.0.10", 8643)
    assert (of_it.retention, of_it.retention_gb) == ("90d", 200)


def test_of_two_heads_both_are_scraped_and_each_listens_at_its_own_address(monkeypatch):
    """And either one has to reach Prometheus, on whichever of them it runs."""
    monkeypatch.delenv("IRONBURST_METRICS", raising=False)
    value = yaml.safe_load(STACK.read_text())["config"]["ironburst:cluster"]
    for server, address in (("head", "10.78.0.10"), ("head2", "10.78.0.9"), ("dgx02", "10.78.0.12")):
        site = build(from_value(second_head(copy.deepcopy(value) | {"monitoring": {"server": server}})), OBSERVED)
        of_it = site.monitoring
        assert (of_it.address, of_it.url) == (address, f"http://{address}:9090")
        assert of_it.controllers == ["10.78.0.10:8643", "10.78.0.9:8643"]
        found = targets.of(site.hosts, targets.controllers(site.schedulers, of_it.controllers))["ironburst"]
        scraped = {each["labels"]["node"]: each["targets"] for each in found}
        assert scraped == {"head": ["10.78.0.10:8643"], "head2": ["10.78.0.9:8643"]}
    ours = {
        "controller": "192.0.2.1:8643",
        "second_controller": "127.0.0.1:8643",
    }  # RFC 5737: no host's; this one's
    here = site.model_copy(update={"monitoring": of_it.model_copy(update=ours)})
    assert run._metrics_at(arguments(), here) == ("127.0.0.1", 8643)


def arguments(metrics=None, shadow=False):
    return type("Arguments", (), {"metrics": metrics, "shadow": shadow})()


def test_what_the_command_line_says_of_the_metrics_counts_first(monkeypatch):
    monkeypatch.delenv("IRONBURST_METRICS", raising=False)
    site = made({"server": "dgx02"})
    assert run._metrics_at(arguments("10.78.0.10:1"), site) == ("10.78.0.10", 1)
    assert run._metrics_at(arguments("none"), site) is None
    assert run._metrics_at(arguments(shadow=True), site) is None
    monkeypatch.setenv("IRONBURST_METRICS", "127.0.0.1:2")
    assert run._metrics_at(arguments(), site) == ("127.0.0.1", 2)
    monkeypatch.delenv("IRONBURST_METRICS")
    assert run._metrics_at(arguments(), made({})) == ("127.0.0.1", 8643)


def test_a_url_of_ones_own_is_kept():
    assert (
        made({"server": "head", "url": "https://mimir.example.com/x"}).monitoring.url == "https://mimir.example.com/x"
    )


def test_nobody_rents_so_no_controller_is_scraped():
    value = yaml.safe_load(STACK.read_text())["config"]["ironburst:cluster"]
    alone = {key: item for key, item in value.items() if key not in ("cloud", "budget")}
    config = from_value(alone | {"burst": {}, "monitoring": {"server": "head"}})
    assert build(config, Observed()).monitoring.controller == ""


def test_who_is_told_is_in_the_document_by_reference():
    tell = [{"audience": "operators", "service": "slack", "secret": "env:SLACK_URL"}]
    (told,) = made({"server": "head", "tell": tell}).monitoring.tell
    assert (told.audience, told.service, told.secret, told.mail) == ("operators", "slack", "env:SLACK_URL", [])


@pytest.mark.parametrize(
    ("server", "changed", "code", "words"),
    [
        ("haed", {}, "unknown", "'haed' is no host of a hall: name one of these: head, dgx01, dgx02"),
        ("fixed-1", {}, "unknown", "is no host of a hall"),  # of the cloud
        ("p5-1", {}, "unknown", "is no host of a hall"),  # rented
        ("head", {"metrics": False}, "nothing-to-scrape", "write `metrics: true`"),
    ],
)
def test_what_is_declared_wrongly(server, changed, code, words):
    (found,) = checks.server(declared({"server": server}, **changed))
    assert found.path.endswith("monitoring.server") and found.rule == code and words in found.message


def test_a_host_that_is_not_managed_runs_nothing_of_ours():
    halls = yaml.safe_load(STACK.read_text())["config"]["ironburst:cluster"]["halls"]
    halls[0]["nodes"][1]["managed"] = False
    (found,) = checks.server(declared({"server": "dgx01"}, halls=halls))
    assert found.rule == "not-managed" and "ironburst monitoring" in found.message


def test_a_server_that_is_right_has_no_finding():
    assert list(checks.server(declared({"server": "dgx01"}))) == list(checks.server(declared({}))) == []


def test_a_rule_and_a_secret_are_inputs_of_the_host_that_has_the_role_alone():
    asked = []

    def resolve(reference):
        asked.append(reference)
        return "https://hooks.example.com/x"

    tell = [{"audience": "operators", "service": "slack", "secret": "env:SLACK_URL"}]
    document = made({"server": "head", "tell": tell}).model_dump(mode="json")
    sources = Sources(STACK.parents[1], STACK.parents[1] / "inventory/lab", document, "00", resolve, {})
    head, node = sources.of("head"), sources.of("dgx01")
    assert {"monitoring library", "secret env:SLACK_URL", "node_monitoring"} <= set(head)
    assert not {"monitoring library", "secret env:SLACK_URL", "node_monitoring"} & set(node)
    assert "https://hooks.example.com/x" not in str(head)
