"""The alert rules, by Prometheus' own promtool: each fires, and is quiet for the nearest that isn't its matter; a
healthy site has none; each asks for what an exporter of ours gives, and each Xid for what NVIDIA's catalogue says.
"""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from ironburst.baremetal import telemetry
from ironburst.catalog import tables
from ironburst.monitoring import rules
from tests import prometheus
from tests.playbooks.programs import load

ROOT = Path(__file__).parents[3]
RULES = rules.every()
CASES = yaml.safe_load((Path(__file__).parent / "alerts_test.yaml").read_text())
ALWAYS = "Watchdog"


@pytest.fixture(scope="module")
def promtool():
    return prometheus.program("promtool")


def expected(name, case):
    rule = RULES[name]
    annotations = {"summary": case["summary"], "do": rule["annotations"]["do"]}
    return {"exp_labels": {**rule["labels"], **case["labels"]}, "exp_annotations": annotations}


def promtools_test(name, about, series, at, alerts):
    return {
        "name": f"{name} {about}",
        "interval": "1m",
        "input_series": [{"series": each, "values": values} for each, values in series.items()],
        "alert_rule_test": [{"eval_time": at, "alertname": name, "exp_alerts": alerts}],
    }


def cases_of(name):
    """Of one rule: it fires, also where its target is gone, and is quiet, also where it has none."""
    if name == ALWAYS:
        alert = expected(name, {"labels": {}, "summary": RULES[name]["annotations"]["summary"]})
        return [promtools_test(name, "fires", {"up": "0x10"}, "5m", [alert])]
    case = CASES[name]
    found = [promtools_test(name, "fires", case["fires"], case["at"], [expected(name, case)])]
    if gone := case.get("gone"):
        found.append(promtools_test(name, "fires", gone["fires"], "30m", [expected(name, gone)]))
    quiet = [case[its] for its in ("quiet", "none") if its in case]
    return [*found, *(promtools_test(name, "is quiet", each, case["at"], []) for each in quiet)]


def run(promtool, folder, tests, names):
    """Only these rules: promtool evaluates every one at each interval, for each test from its beginning."""
    group = {"name": "tested", "rules": [RULES[name] for name in names]}
    (folder / "alerts.yaml").write_text(yaml.safe_dump({"groups": [group]}))
    about = {"rule_files": ["alerts.yaml"], "evaluation_interval": "1m", "tests": tests}
    (folder / "tests.yaml").write_text(yaml.safe_dump(about))
    return subprocess.run([promtool, "test", "rules", "tests.yaml"], cwd=folder, capture_output=True, text=True)


def test_each_rule_has_a_case_of_both_kinds():
    assert set(CASES) == set(RULES) - {ALWAYS}
    assert [name for name, case in CASES.items() if not case["fires"] or not case["quiet"]] == []


@pytest.mark.parametrize("name", RULES)
def test_a_rule_fires_and_is_quiet(promtool, tmp_path, name):
    ran = run(promtool, tmp_path, cases_of(name), [name])
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_rule_that_cannot_fire_is_found(promtool, tmp_path):
    """The test above can fail: with the series of silence a rule doesn't fire."""
    case = CASES["GpuLost"]
    alerts = [expected("GpuLost", case)]
    tests = [promtools_test("GpuLost", "fires", case["quiet"], case["at"], alerts)]
    assert run(promtool, tmp_path, tests, ["GpuLost"]).returncode != 0


def test_the_file_is_well_formed(promtool, tmp_path):
    (tmp_path / "alerts.yaml").write_text(rules.text())
    check = [promtool, "check", "rules", "--lint-fatal", "alerts.yaml"]
    ran = subprocess.run(check, cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr


HEALTHY = {
    'up{job="node",node="head",role="head"}': "1x200",
    'up{job="node",node="n1",hall="h",rack="r"}': "1x200",
    'up{job="dcgm",node="n1",hall="h",rack="r"}': "1x200",
    'up{job="ironburst",node="head"}': "1x200",
    'DCGM_EXP_XID_ERRORS_COUNT{node="n1",gpu="0",xid="31"}': "1x200",  # a user's own illegal address
    'DCGM_FI_DEV_ROW_REMAP_FAILURE{node="n1",gpu="0"}': "0x200",
    'DCGM_FI_DEV_ROW_REMAP_PENDING{node="n1",gpu="0"}': "0x200",
    'DCGM_FI_DEV_CLOCKS_EVENT_REASONS{hall="h",node="n1",gpu="0"}': "5x200",
    'DCGM_FI_DEV_GPU_TEMP{node="n1",gpu="0"}': "60x200",
    'DCGM_FI_DEV_GPU_UTIL{node="n1",gpu="0",hpc_job="7"}': "98x200",
    'DCGM_FI_DEV_FB_USED{node="n1",gpu="0",hpc_job="7"}': "70000x200",
    'node_filesystem_avail_bytes{node="n1",mountpoint="/",fstype="ext4"}': "60x200",
    'node_filesystem_size_bytes{node="n1",mountpoint="/",fstype="ext4"}': "100x200",
    'node_filesystem_readonly{node="n1",mountpoint="/",fstype="ext4"}': "0x200",
    'node_timex_offset_seconds{node="n1"}': "0.0001x200",
    'node_timex_sync_status{node="n1"}': "1x200",
    'node_timex_maxerror_seconds{node="n1"}': "0.01x200",
    'node_systemd_unit_state{node="n1",name="slurmd.service",state="failed"}': "0x200",
    'node_infiniband_state_id{node="n1",device="mlx5_0",port="1"}': "4x200",
    'node_infiniband_rate_bytes_per_second{node="n1",device="mlx5_0",port="1"}': "5e10x200",
    'node_infiniband_link_downed_total{node="n1",device="mlx5_0",port="1"}': "2x200",
    'node_infiniband_symbol_error_total{node="n1",device="mlx5_0",port="1"}': "5x200",
    'DCGM_FI_PROF_GR_ENGINE_ACTIVE{node="n1",gpu="0"}': "0.9x200",
    'ironburst_fabric_time_seconds{node="head"}': "0+60x200",
    'ironburst_infiniband_symbol_ber{node="n1",device="mlx5_0",port="1"}': "15e-255x200",
    'ironburst_fabric_link_up{node="leaf1",port="1",peer="n1",cable="c"}': "1x200",
    'ironburst_fabric_link_rate_bytes_per_second{node="leaf1",port="1",cable="c"}': "5e10x200",
    'ironburst_fabric_link_declared_rate_bytes_per_second{node="leaf1",port="1",cable="c"}': "5e10x200",
    'ironburst_fabric_errors_total{node="leaf1",port="1",cable="c",counter="LinkDownedCounter"}': "3x200",
    'ironburst_fabric_errors_total{node="leaf1",port="1",cable="c",counter="SymbolErrorCounter"}': "0x100 5x100",
    'ironburst_slurm_up{node="head",daemon="slurmctld"}': "1x200",
    'ironburst_slurm_up{node="head",daemon="slurmdbd"}': "1x200",
    'ironburst_metrics_time_seconds{node="head"}': "0+60x200",
    'ironburst_slurm_nodes{node="head",partition="home",state="allocated"}': "20x200",
    'ironburst_slurm_nodes_drained{node="head",partition="burst-p5"}': "8x200",
    'ironburst_slurm_nodes{node="head",partition="burst-p5",state="idle"}': "8x200",
    'ironburst_last_tick_timestamp_seconds{job="ironburst"}': "0+60x200",
    'ironburst_errors_total{job="ironburst",class="needs_a_person"}': "0x200",
    'ironburst_ledger_backup_timestamp_seconds{job="ironburst"}': "0+60x200",
    'ironburst_certificate_expiry_timestamp_seconds{job="ironburst",name="controller"}': "90000000x200",
    'ironburst_leases{job="ironburst",state="ready",market="spot",instance_type="p5.48xlarge"}': "1x200",
    'DCGM_FI_DEV_GPU_TEMP{node="p5-1",lease="l1/p5-1",rented="true",gpu="0"}': "60x200",
    'ironburst_usd_spent{job="ironburst"}': "20x200",
    'ironburst_usd_budget{job="ironburst"}': "1000x200",
    'ironburst_usd_hour{job="ironburst"}': "1x200",
    'ironburst_bmc_up{hall="h",rack="r",node="n1"}': "1x200",
    'ironburst_telemetry_timestamp_seconds{node="head"}': "0+60x200",
    'ironburst_node_inlet_celsius{hall="h",rack="r",node="n1"}': "24x200",
    'ironburst_node_inlet_limit_celsius{hall="h",rack="r",node="n1"}': "30x200",
    'ironburst_node_psu_input{hall="h",rack="r",node="n1",psu="PSU1"}': "1x200",
    'ironburst_node_power_watts{hall="h",rack="r",node="n1"}': "6000x200",
    'ironburst_node_power_limit_watts{hall="h",rack="r",node="n1"}': "10200x200",
    'ironburst_rack_power_watts{hall="h",rack="r"}': "12000x200",
    'ironburst_rack_power_limit_watts{hall="h",rack="r"}': "17000x200",
}
BARE = {'up{job="node",node="n1",hall="h"}': "1x200"}  # neither GPUs, head, controller nor BMCs
NONE_THERE: dict[str, str] = {"none": "0x200"}


@pytest.mark.parametrize("site", [HEALTHY, BARE, NONE_THERE], ids=["healthy", "bare", "empty"])
def test_a_healthy_site_has_no_alert(promtool, tmp_path, site):
    quiet = [{**promtools_test(name, "healthy", site, at, [])} for name in RULES if name != ALWAYS for at in ("3h",)]
    together = {**quiet[0], "alert_rule_test": [each["alert_rule_test"][0] for each in quiet]}
    ran = run(promtool, tmp_path, [together], RULES)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_each_rule_says_whom_it_is_for_and_what_to_do():
    for name, rule in RULES.items():
        assert rule["labels"]["severity"] in ("page", "ticket", "none"), name
        assert rule["labels"]["audience"] in ("operators", "money"), name
        assert set(rule["labels"]) == {"severity", "audience"} and set(rule["annotations"]) == {"summary", "do"}, name
        do = rule["annotations"]["do"]
        assert do.endswith(".") and len(do) > 20 and "{{" not in do, name
    assert len({rule["annotations"]["summary"] for rule in RULES.values()}) == len(RULES)


# ---- what is asked for is there

NODE_EXPORTER = {  # 1.5.0: collectors filesystem, infiniband, systemd and timex
    *("node_filesystem_avail_bytes", "node_filesystem_size_bytes", "node_filesystem_readonly"),
    *("node_infiniband_state_id", "node_infiniband_rate_bytes_per_second"),
    *("node_infiniband_link_downed_total", "node_infiniband_symbol_error_total"),
    *("node_timex_offset_seconds", "node_timex_sync_status", "node_timex_maxerror_seconds", "node_systemd_unit_state"),
}
SERVERS = {"prometheus_rule_evaluation_failures_total", "alertmanager_notifications_failed_total"}


def dcgm():
    defaults = yaml.safe_load((ROOT / "playbooks/roles/metrics/defaults/main.yml").read_text())
    return {field[0] for field in defaults["metrics_dcgm_fields"]}


def asked(rule):
    """Names of the metrics in an expression: what is no word of PromQL's, no label and no text."""
    bare = re.sub(r"(\{[^}]*\}|\b(by|on|without|ignoring)\s*\([^)]*\)|\[[^\]]*\])", " ", rule["expr"])
    return set(re.findall(r"\b(?:[A-Z]+_[A-Z_0-9]+|[a-z]+(?:_[a-z]+)+|up)\b(?!\s*\()", bare))


def ours():
    """What role metrics' program and the controller write, as their text says."""
    program = (ROOT / "playbooks/roles/metrics/files/ironburst-metrics.py").read_text()
    controller = (ROOT / "ironburst/controller/metrics.py").read_text()
    names = {
        *re.findall(r'"(slurm_[a-z_]+)"', program),
        *re.findall(r'(?:_gauge|_counter)\(\s*"([a-z_]+)"', controller),
    }
    fabric, links = (
        load("roles/infiniband_fabric/files/ironburst-fabric.py"),
        load("roles/metrics/files/ironburst-links.py"),
    )
    names |= {f"fabric_{name}" for name, _, _ in fabric.HELP} | {f"infiniband_{name}" for name, _, _ in links.METRICS}
    return {f"ironburst_{name}" for name in names} | set(re.findall(r"\bironburst_[a-z_]+\b", program))


def test_each_metric_of_a_rule_is_one_that_somebody_exports():
    exported = dcgm() | NODE_EXPORTER | SERVERS | ours() | set(telemetry._HELP) | {"up"}
    unknown = {name: sorted(asked(rule) - exported) for name, rule in RULES.items() if asked(rule) - exported}
    assert unknown == {}


def test_gauges_have_no_rate_and_counters_have_one():
    for name, rule in RULES.items():
        for metric in re.findall(r"(?:rate|increase)\((\w+)", rule["expr"]):
            assert metric.endswith("_total"), f"{name}: {metric}"
        for metric in asked(rule):
            if metric.endswith("_total"):
                assert f"increase({metric}" in rule["expr"], f"{name}: {metric}"


# ---- Xids are NVIDIA's catalogue's

SEVERE = ("reset", "reboot", "isolate")


def codes(name):
    (found,) = re.findall(r'xid=~?"([\d|]+)"', RULES[name]["expr"])
    return set(found.split("|"))


def test_each_xid_that_takes_a_gpu_away_is_of_one_rule_by_its_action():
    rows = {row["xid"]: row for row in tables.table("xid_actions.csv").rows}
    severe = {xid: row["severity"] for xid, row in rows.items() if row["severity"] in SEVERE}
    by_rule = [codes(name) for name in ("GpuLost", "GpuNeedsReset", "GpuNvlinkFault", "GpuNvlinkMessage")]
    assert sorted(xid for each in by_rule for xid in each) == sorted(severe), "each once"
    assert codes("GpuLost") == {xid for xid, action in severe.items() if action in ("reboot", "isolate")}
    nvlink = {xid for xid, row in rows.items() if row["nvidia_r590_action"].startswith("WORKFLOW_NVLINK")}
    assert codes("GpuNvlinkFault") | codes("GpuNvlinkMessage") == nvlink
    assert all("Nonfatal" in rows[xid]["node_action"] for xid in codes("GpuNvlinkMessage"))
    assert {rows[xid]["name"] for xid in codes("GpuMemoryContained")} == {"Contained memory error"}
