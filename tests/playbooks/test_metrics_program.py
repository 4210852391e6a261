"""The figures of Slurm: what is counted, what isn't understood, and what can't be asked."""

import os
import re
import subprocess
import sys
from datetime import datetime

import pytest
import yaml
from programs import PLAYBOOKS, load

from tests import prometheus

metrics = load("roles/metrics/files/ironburst-metrics.py")
# `sinfo --Node` of Slurm 24.11: the last column is when the reason was set
NODES = """\
home|dgx01|idle|Unknown
home|dgx02|draining|2026-11-27T07:00:00
big|dgx02|draining|2026-11-27T07:00:00
burst-p5|p5-1|drained~|2026-11-20T07:00:00
burst-p5|p5-2|idle+cloud+drain+powered_down|2026-11-20T07:00:00
"""
JOBS = """\
home|RUNNING|None
home|PENDING|Resources
home|PENDING|Resources
burst-p5|PENDING|ReqNodeNotAvail, UnavailableNodes:p5-1
"""
NO_DBD = "sacctmgr: You are not running a supported accounting_storage plugin\n"


@pytest.fixture(scope="module")
def promtool():
    return prometheus.program("promtool")


def values(lines):
    return dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))


@pytest.mark.parametrize("prefix", ["ironburst_slurm", "slurm"])  # those without are Slurm 25.11's own: until 0.3
def test_slurm_is_counted(prefix):
    samples = values(metrics.slurm(NODES, JOBS))
    assert samples[prefix + '_nodes{partition="home",state="idle"}'] == "1"
    assert samples[prefix + '_nodes{partition="burst-p5",state="idle"}'] == "2"
    assert samples[prefix + '_nodes_drained{partition="home"}'] == "1"
    assert samples[prefix + '_jobs{partition="home",state="pending"}'] == "2"
    assert samples[prefix + '_jobs_pending{reason="ReqNodeNotAvail"}'] == "1"


def test_a_drained_node_says_since_when_but_not_a_rented_one_that_is_off():
    samples = values(metrics.slurm(NODES, JOBS))
    name = "ironburst_slurm_node_drained_since_timestamp_seconds"
    at = int(datetime(2026, 11, 27, 7).timestamp())
    assert {key: value for key, value in samples.items() if key.startswith(name)} == {
        f'{name}{{node="dgx02"}}': str(at)
    }


@pytest.mark.parametrize(
    ("nodes", "jobs"),
    [
        *(("home|dgx01|idle", JOBS), ("home|dgx01|purple|Unknown", JOBS), (NODES, "home")),
        ("slurm_load_partitions: error", ""),
    ],
)
def test_what_is_not_understood_is_no_figure(nodes, jobs):
    with pytest.raises(ValueError):
        metrics.slurm(nodes, jobs)


def test_labels_are_escaped():
    assert metrics.line("a", 1, b='x"y\\z\n') == 'a{b="x\\"y\\\\z\\n"} 1'


def run(tmp_path):
    program = PLAYBOOKS / "roles/metrics/files/ironburst-metrics.py"
    argv = [sys.executable, str(program), "--folder", str(tmp_path / "out")]
    done = subprocess.run(
        argv, env=os.environ | {"PATH": str(tmp_path / "bin")}, capture_output=True, text=True, timeout=30
    )
    return done, values((tmp_path / "out/ironburst.prom").read_text().splitlines())


@pytest.fixture
def folders(tmp_path):
    for name in ("bin", "out"):
        (tmp_path / name).mkdir()
    return tmp_path


def tool(folder, name, text, status=0, errors=""):
    path = folder / "bin" / name
    path.write_text(f"#!/bin/sh\n/bin/cat <<'X'\n{text}X\n/bin/cat >&2 <<'X'\n{errors}X\nexit {status}\n")
    path.chmod(0o755)


def up(samples):
    return {name.split('"')[1]: value for name, value in samples.items() if name.startswith("ironburst_slurm_up")}


def test_without_slurms_commands_nothing_is_known_of_its_daemons(folders):
    done, samples = run(folders)
    assert done.returncode == 1 and "metrics: slurm:" in done.stderr
    assert samples['ironburst_up{source="slurm"}'] == "0" and not any("slurm_" in name for name in samples)


def test_all_answer(folders, promtool):
    tool(folders, "sinfo", NODES)
    tool(folders, "squeue", JOBS)
    tool(folders, "sacctmgr", "hall1\n")
    done, samples = run(folders)
    assert (done.returncode, done.stderr) == (0, "")
    assert up(samples) == {"slurmctld": "1", "slurmdbd": "1"} and samples['ironburst_up{source="slurm"}'] == "1"
    prometheus.check_metrics(promtool, (folders / "out/ironburst.prom").read_text())


@pytest.mark.parametrize(
    ("errors", "told"),
    [(NO_DBD, {"slurmctld": "1"}), ("sacctmgr: error: Problem talking to the database: Connection refused\n", None)],
)
def test_no_slurmdbd_is_no_slurmdbd_that_is_down(folders, errors, told):
    tool(folders, "sinfo", NODES)
    tool(folders, "squeue", JOBS)
    tool(folders, "sacctmgr", "", 1, errors)
    done, samples = run(folders)
    assert up(samples) == (told or {"slurmctld": "1", "slurmdbd": "0"}) and done.returncode == (told is None)


def test_slurmctld_is_down(folders):
    tool(folders, "sinfo", "", 1, "slurm_load_partitions: Unable to contact slurm controller (connect failure)\n")
    tool(folders, "sacctmgr", "hall1\n")
    done, samples = run(folders)
    assert done.returncode == 1 and up(samples) == {"slurmctld": "0", "slurmdbd": "1"}
    assert not any("slurm_nodes" in name or "slurm_jobs" in name for name in samples)


# ---- DCGM's fields


FIELDS = yaml.safe_load((PLAYBOOKS / "roles/metrics/defaults/main.yml").read_text())["metrics_dcgm_fields"]
DCGM = re.compile(r"\bDCGM_(?:FI|EXP)_[A-Z0-9_]+[A-Z0-9]\b")


def test_every_dcgm_name_that_is_asked_for_anywhere_is_exported():
    """In code, rules, dashboards and docs; a file that only says what others have names it so."""
    listed = {name for name, _, _ in FIELDS}
    root = PLAYBOOKS.parent
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=root, check=True, capture_output=True, text=True).stdout
    asked = {}
    for name in tracked.split("\0"):
        path = root / name
        if path.suffix in (".py", ".md", ".yml", ".yaml", ".json", ".j2") and not name.startswith("tests/"):
            asked.update(dict.fromkeys(DCGM.findall(path.read_text(errors="replace")), name) if path.is_file() else {})
    assert {name: where for name, where in asked.items() if name not in listed} == {}
    assert len(listed) == len(FIELDS) >= 29


def test_a_field_is_a_line_that_the_exporter_reads():
    """Three columns of a CSV (dcgm-exporter's default-counters.csv): a comma in the help would be a fourth."""
    for name, kind, told in FIELDS:
        assert DCGM.fullmatch(name) and kind in ("gauge", "counter") and "," not in told
        # DCGM's means of an interval, and codes, are no counters: rate() of them says nothing
        assert kind == "gauge" or not name.startswith(("DCGM_FI_PROF_", "DCGM_EXP_"))


# --- bit error rates. The form is of published outputs of `mlxlink --show_counters` (MFT 4.24, ConnectX-6 of HDR) and
# of mlxlink's source, which prints Symbol Errors and BER of InfiniBand alone, "N/A" where the link is down, and colours

links = load("roles/metrics/files/ironburst-links.py")
BER = """
Operational Info
----------------
State                           : Active
Speed                           : IB-HDR
Width                           : 2x
FEC                             : RS-FEC - (544,514) + PLR

Physical Counters and BER Info
------------------------------
Time Since Last Clear [Min]     : 7205.3
Symbol Errors                   : 0
Symbol BER                      : \x1b[32m15E-255\x1b[0m
Effective Physical Errors       : 2
Effective Physical BER          : 3E-13
Raw Physical Errors Per Lane    : 31415926,271828
Raw Physical BER                : 2E-7
Link Error Recovery Counter     : 0
"""


def test_bit_error_rates_are_read_as_mlxlink_prints_them():
    assert links.rates(BER) == {"symbol_ber": 15e-255, "effective_ber": 3e-13, "raw_ber": 2e-7}
    assert links.rates(BER.replace("3E-13", "N/A")) == {"symbol_ber": 15e-255, "raw_ber": 2e-7}
    assert links.rates('-E- Failed to open device: "mlx5_0".') == {}


def cards(folder, **layers):
    for device, layer in layers.items():
        port = folder / "infiniband" / device / "ports/1"
        port.mkdir(parents=True)
        (port / "link_layer").write_text(layer + "\n")
    return folder / "infiniband"


def asked_for_links(monkeypatch, folder, there, tool):
    """Exit status of a run with this program as mlxlink; none: it isn't installed."""
    tools = folder / "bin"
    tools.mkdir(exist_ok=True)
    if tool:
        (tools / "mlxlink").write_text(f"#!/bin/sh\n{tool}\n")
        (tools / "mlxlink").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin" if tool else str(tools))
    monkeypatch.setattr("sys.argv", ["ironburst-links", "--folder", str(folder), "--cards", str(there)])
    return links.main()


def test_only_cards_of_infiniband_that_answer_have_rates(monkeypatch, tmp_path, capsys):
    there = cards(tmp_path, mlx5_0="InfiniBand", mlx5_1="Ethernet", mlx5_2="InfiniBand")
    (tmp_path / "ber.txt").write_text(BER)
    tool = f'[ "$2" = mlx5_0 ] || exit 1; cat {tmp_path}/ber.txt'
    assert asked_for_links(monkeypatch, tmp_path, there, tool) == 1
    assert "no bit error rates of mlx5_2" in capsys.readouterr().err
    text = (tmp_path / links.FILE).read_text()
    assert 'ironburst_infiniband_effective_ber{device="mlx5_0",port="1"} 3e-13\n' in text
    assert "mlx5_1" not in text and "mlx5_2" not in text
    prometheus.check_metrics(prometheus.program("promtool"), text)


def test_without_the_tool_nothing_old_stays(monkeypatch, tmp_path):
    there = cards(tmp_path, mlx5_0="InfiniBand")
    (tmp_path / links.FILE).write_text("old\n")
    assert asked_for_links(monkeypatch, tmp_path, there, "") == 0
    assert not (tmp_path / links.FILE).exists()
