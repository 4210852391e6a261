"""What the role makes of a declaration: where owned hosts and rented nodes send their journals, and who signs in."""

import copy
import re
from pathlib import Path

import pytest
import templated
import yaml
from programs import load

from ironburst.config import load as config
from ironburst.config.monitoring_models import Logs
from ironburst.document import build, variables
from ironburst.monitoring import log_relay
from tests.logs import VICTORIA_PATH

ROOT = Path(__file__).parents[2]
LAB = ROOT / "stacks/Pulumi.lab.yaml"
OBSERVED = build.Observed(
    instances={"fixed-1": {"id": "i-1", "address": "10.90.1.4"}},
    pool_zones={"p5": [{"zone": "us-east-1a", "place": {"subnet_id": "subnet-1", "launch_template_id": "lt-1"}}]},
    notices={"p5": "http://queue"},
)
SIGNED = {"url": "https://logs.example.org:9200", "user": "ironburst", "password": "file:/etc/ironburst/logs"}


def document(logs, receiver="10.78.0.10:8644"):
    value = copy.deepcopy(config.read_value(LAB)) | {"metrics": True}
    value["monitoring"] = {"logs": logs} | ({"receiver": receiver} if receiver else {})
    return build.build(config.from_value(value), OBSERVED).model_dump(mode="json")


def of(logs, host="dgx01", **more):
    """The role's settings on a host of the document."""
    its = document(logs)
    known = variables.of_all(its) | variables.of_others(its).get(host, {}) | {"inventory_hostname": host} | more

    def value(name):
        return templated.value("logs", name, known)

    return value


@pytest.mark.parametrize(
    ("logs", "url", "template"),
    [
        ({"url": "http://10.0.0.10:9200"}, "http://10.0.0.10:9200/_bulk", True),
        (
            {"url": "http://10.0.0.10:9428", "kind": "victorialogs"},
            f"http://10.0.0.10:9428{VICTORIA_PATH}",
            False,
        ),
    ],
)
def test_owned_hosts_send_to_the_centre(logs, url, template):
    settings = of(logs)("logs_settings")
    assert (settings["url"], settings["template"], settings["user"], settings["days"]) == (url, template, "", 0)
    assert of(logs, "head")("logs_settings")["days"] == (30 if template else 0), "one host deletes old days"
    assert settings["relay"] == {"_SYSTEMD_UNIT": "ironburst-receive.service"}
    assert load("roles/logs/files/ironburst-logs.py").Centre(settings).url.port in (9200, 9428)


def test_a_rented_node_has_no_secret_and_sends_to_the_head():
    value = of(SIGNED | {"ca": None}, "image-p5", image_build=True)
    settings = value("logs_settings")
    assert settings["url"] == f"http://10.78.0.10:8644{log_relay.PATH}"
    assert (settings["user"], settings["ca"], settings["template"], settings["days"]) == ("", "", False, 0)
    assert value("logs_password") == "" and value("logs_url") == settings["url"]
    assert not any("password" in str(each) for each in value("logs_unit")["reads"])


def test_who_signs_in_has_the_password_by_reference():
    value = of(SIGNED)
    assert (value("logs_user"), value("logs_password")) == ("ironburst", "file:/etc/ironburst/logs")
    assert "/etc/ironburst/logs.password" in value("logs_unit")["reads"]
    assert "password" not in value("logs_settings"), "a file that anybody may read"


def test_the_role_is_off_until_it_is_declared_and_where_nobody_would_take_it():
    def roles(its):
        return {host["name"] for host in its["hosts"] if "logs" in host["roles"]}, [
            "logs" in pool["roles"] for pool in its["pools"]
        ]

    assert roles(document(None)) == (set(), [False])
    assert roles(document(SIGNED)) == ({"head", "dgx01", "dgx02", "fixed-1"}, [True])
    assert roles(document(SIGNED, receiver="")) == ({"head", "dgx01", "dgx02", "fixed-1"}, [False])
    its = document(None)
    assert variables.of_others(its)["dgx01"].get("node_logs") is None


def test_the_unit_of_the_relay_is_the_one_that_slurm_head_installs():
    variables_of = yaml.safe_load((ROOT / "playbooks/roles/logs/vars/main.yml").read_text())
    unit = variables_of["logs_settings"]["relay"]["_SYSTEMD_UNIT"]
    assert (ROOT / f"playbooks/roles/slurm_head/templates/{unit}.j2").exists()
    text = (ROOT / "ironburst/adapters/host_journal.py").read_text()
    assert re.findall(r"_SYSTEMD_UNIT=([\w.-]+)", text) == [unit]


@pytest.mark.parametrize(
    "given",
    [
        {"url": "http://logs:9200", "user": "a", "password": "env:A"},
        {"url": "https://logs:9200", "user": "a"},
        {"url": "https://logs:9200/path"},
        {"url": "ftp://logs"},
        {"url": "https://logs", "days": 0},
        {"url": "https://logs", "kind": "loki"},
    ],
)
def test_what_can_not_work_is_refused(given):
    with pytest.raises(ValueError):
        Logs.model_validate(given)
