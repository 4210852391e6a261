"""The alert rules, by Prometheus' own promtool: from PATH, or from Debian's package, unpacked for the test alone."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

import ironburst.baremetal
from ironburst.baremetal.telemetry import metrics
from tests import prometheus
from tests.unit.baremetal.test_telemetry import FINE, PLACE, Look

RULES = Path(ironburst.baremetal.__file__).parent / "alerts.yaml"
TESTS = Path(__file__).parent / "alerts_test.yaml"


@pytest.fixture(scope="module")
def promtool(tmp_path_factory):
    return prometheus.program("promtool", tmp_path_factory.mktemp("prometheus"))


def test_each_rule_alerts_and_a_healthy_hall_has_none(promtool, tmp_path):
    for file in (RULES, TESTS):
        shutil.copy(file, tmp_path / file.name)
    ran = subprocess.run([promtool, "test", "rules", TESTS.name], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_what_is_written_is_well_formed(promtool):
    text = metrics({"n1": Look(FINE, 1.25)}, {"n1": PLACE}, {("dc1", "a03"): 17000.0}, 1.5)
    prometheus.check_metrics(promtool, text)


def test_every_rule_is_tested_and_asks_for_metrics_that_are_written():
    rules = yaml.safe_load(RULES.read_text())["groups"][0]["rules"]
    written = metrics({"n1": Look(FINE, 1.25)}, {"n1": PLACE}, {("dc1", "a03"): 17000.0}, 1.5)
    for rule in rules:
        for name in re.findall(r"ironburst_\w+", rule["expr"]):
            assert f"# TYPE {name} gauge" in written, rule["alert"]
    tested = [
        each["alertname"] for test in yaml.safe_load(TESTS.read_text())["tests"] for each in test["alert_rule_test"]
    ]
    assert set(tested) == {rule["alert"] for rule in rules}
