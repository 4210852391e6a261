"""The gate's program with tools of its own: what it writes, that a tool that hangs does not hang it, its levels and its
baseline.
"""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from unittest import mock

import pytest
from programs import PLAYBOOKS, load

from ironburst import catalog, roles
from ironburst.health.settings import LAYERS
from tests.unit.health import samples as written

REPOSITORY = Path(__file__).resolve().parents[2]
GATE = REPOSITORY / "playbooks/roles/node_health/files/ironburst-gate.py"
PROLOG = REPOSITORY / "playbooks/roles/node_health/files/ironburst-prolog"
LSPCI = "".join(f"echo '0000:{0x18 + 16 * n:02x}:00.0 0302: 10de:2330 (rev a1)'\n" for n in range(8))
SETTINGS = {
    "driver": "580.95.05",
    "gpu_model": "H100 SXM5 80GB",
    "gpu_count": 8,
    "fabric": "infiniband",
    "fabric_links": 1,
    "mounts": ["/shared"],
    "fabric_manager": True,
    "disks": ["/tmp"],
    "nccl_command": ["all_reduce_perf", "-c", "1"],
}
TOOLS = ("lspci", "nvidia-smi", "systemctl", "journalctl", "timedatectl", "dcgmi", "all_reduce_perf", "ib_write_bw")
H100 = written.BY["h100-sxm5"]


def bundle() -> str:
    """The judgement as the role node_health writes it."""
    modules = {path.name: path.read_text() for path in (REPOSITORY / "ironburst/health").glob("*.py")}
    names = ("gpus.csv", "acceptance_thresholds.csv", "xid_actions.csv")
    return json.dumps(
        {
            "modules": modules,
            "data": {name: (REPOSITORY / "ironburst/catalog/data" / name).read_text() for name in names},
        }
    )


class Node:
    """A root folder with what the gate reads, and its tools."""

    def __init__(self, root: Path):
        self.root = root
        self.stamp = root / "run/ironburst/gate.ok"
        self.baseline = root / "var/lib/ironburst/baseline.json"
        self.put("lib/health.json", bundle())
        self.settings()
        port = "sys/class/infiniband/mlx5_0/ports/1"
        for name, value in {
            "state": "4: ACTIVE",
            "link_layer": "InfiniBand",
            "rate": "400 Gb/sec (4X NDR)",
            "phys_state": "5: LinkUp",
        }.items():
            self.put(f"{port}/{name}", value + "\n")
        mounts = (
            "22 1 0:21 / / rw - overlay o rw",
            "23 22 0:22 / /shared rw - nfs4 s rw",
            "24 22 0:23 / /tmp rw - tmpfs t rw",
        )
        self.put("proc/self/mountinfo", "\n".join(mounts) + "\n")
        self.put("proc/meminfo", "MemTotal:       2113536000 kB\nMemAvailable:   2000000000 kB\n")
        (root / "tmp").mkdir()
        self.tool("lspci", LSPCI)
        self.smi(xml=written.xml(H100))
        self.tool(
            "systemctl",
            "printf 'Result=success\\nMainPID=1\\nLoadState=loaded\\nActiveState=active\\nSubState=running\\n'",
        )
        self.tool("journalctl", "echo '[    1.500000] node01 kernel: NVRM: loading NVIDIA UNIX Open Kernel Module'")
        self.tool("timedatectl", "echo NTPSynchronized=yes")
        self.say("dcgmi", written.diag_json(H100, "4.4.2"))
        self.say("all_reduce_perf", written.nccl(H100, 2**34, 478.0, low=2**30))
        self.say("ib_write_bw", written.ib_write_bw(394.0, "Gb/sec", False))

    def settings(self, **changes) -> None:
        self.put("etc/ironburst/gate.json", json.dumps(SETTINGS | changes))

    def put(self, path: str, text: str) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def tool(self, name: str, script: str) -> None:
        self.put(f"bin/{name}", f"#!/bin/sh\n{script}\n").chmod(0o755)

    def say(self, name: str, text: str) -> None:
        self.tool(name, f"cat {self.put(f'said/{name}', text)}")

    def smi(
        self, xml: str | None = None, nvlink: str = written.nvlink(H100), csv: str = written.csv(H100, False, False)
    ) -> None:
        if xml is not None:
            self.put("said/smi-xml", xml)
        self.put("said/smi-nvlink", nvlink)
        self.put("said/smi-csv", csv)
        said = self.root / "said"
        self.tool(
            "nvidia-smi",
            f'case "$1" in -q) cat {said}/smi-xml ;; nvlink) cat {said}/smi-nvlink ;; *) cat {said}/smi-csv ;; esac',
        )

    def environment(self, limit_s: float, more_tools: str = ":/bin") -> dict[str, str]:
        return {
            "PATH": f"{self.root}/bin{more_tools}",
            "IRONBURST_GATE_ROOT": str(self.root),
            "IRONBURST_GATE_TOOL_TIMEOUT": str(limit_s),
            "IRONBURST_GATE_LIB": str(self.root / "lib"),
        }

    def run(self, *arguments: str, python: str = sys.executable) -> subprocess.CompletedProcess:
        """The program as systemd runs it."""
        environment = os.environ | self.environment(5)
        return subprocess.run(
            [python, str(GATE), *arguments], env=environment, capture_output=True, text=True, timeout=60
        )

    def gate(self, *arguments: str, **environment: object) -> tuple[int, dict]:
        """The same in this process, which is quicker."""
        said = io.StringIO()
        with (
            mock.patch.dict(os.environ, self.environment(**{"limit_s": 5} | environment)),
            contextlib.redirect_stdout(said),
        ):
            status = load(GATE.relative_to(PLAYBOOKS)).main(["--json", *arguments])
        return status, json.loads(said.getvalue())


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


def failed(report):
    return {finding["check"]: finding["text"] for finding in report["findings"] if not finding["passed"]}


def texts(report):
    return " ".join(failed(report).values())


def test_a_good_node_gets_its_stamp(node):
    status, report = node.gate()
    assert (status, failed(report)) == (0, {})
    assert report == json.loads((node.root / "run/ironburst/gate.json").read_text())
    assert len(report["findings"]) == 14
    assert node.stamp.exists() and not node.baseline.exists()


def test_a_node_that_fails_later_loses_its_stamp(node):
    node.gate()
    node.put("sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n")
    status, report = node.gate()
    assert status == 1 and "mlx5_0/1 is 1: DOWN" in texts(report)
    assert not node.stamp.exists()


HELD = ("hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown")
HOT = [(f"_{name}>Not Active", f"_{name}>Active") for name in HELD]
HOT.append(("<gpu_temp>[0-9]+ C", "<gpu_temp>95 C"))


def hot(node, pattern, becomes, count=1):
    xml = written.xml(H100)
    node.smi(xml=re.sub(pattern, becomes, xml, count=count))
    assert (node.root / "said/smi-xml").read_text() != xml


def said(node):
    return [line for line in node.run().stdout.splitlines() if line.startswith("gate: SHARED")]


@pytest.mark.parametrize(("pattern", "becomes"), HOT)
def test_what_heat_or_power_holds_down_may_be_the_halls_and_is_tolerated_for_a_while(node, pattern, becomes):
    hot(node, pattern, becomes, count=0)
    assert said(node) == ["gate: SHARED throttle"] and not node.stamp.exists()
    for until, passes in ((time.time() + 900, True), (time.time() - 1, False), (time.time() + 9e6, False)):
        node.put("run/ironburst/tolerated", f"{until:.0f} mounts,throttle\n")
        status, report = node.gate()
        assert ((status, node.stamp.exists()) == (0, True)) == passes
        texts = [finding["text"] for finding in report["findings"] if finding["check"] == "gpu_health"]
        assert texts[0].startswith("the hall has it, jobs go on: ") == passes
    node.put("run/ironburst/tolerated", f"{time.time() + 900:.0f} throttle\n")
    assert node.gate("--level", "accept")[0] == 1  # bandwidth of a hot node is nobody's baseline
    node.put("sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n")
    assert said(node) == ["gate: SHARED fabric"] and node.gate()[0] == 1


def test_the_gate_knows_the_fabric_of_every_instance_type():
    """A node of one that it doesn't know never joins: three of Google's were."""
    known = set()
    for kind in catalog.instance_types().values():
        with contextlib.suppress(catalog.Unknown):  # its network cards aren't sourced: it can't be declared
            known.add(kind.fabric()[0])
    assert known - {*LAYERS, "none"} == set() and len(known) > 4
    for role in ("node_health", "rdma"):
        assert set(roles.spec(role)["options"]["node_fabric"]["choices"]) == {*LAYERS, "none"}


@pytest.mark.parametrize("up", [5, 4])
def test_network_cards_are_a_fabric_but_for_the_one_of_the_default_route(node, up):
    """gVNICs (driver gve, drivers/net/ethernet/google of Linux) carry TCPX, and are no RDMA devices."""
    node.settings(fabric="gpudirect-tcpx", fabric_links=4)
    node.put("proc/net/route", "Iface\tDestination\tGateway\neth0\t00000000\t01005A0A\neth0\t00005A0A\t00000000\n")
    for number in range(5):
        card = node.put(f"sys/class/net/eth{number}/operstate", "up\n" if number < up else "down\n").parent
        (card / "device").mkdir()
        (card / "device/driver").symlink_to("../../../../bus/pci/drivers/gve")
    status, report = node.gate()
    (found,) = [each for each in report["findings"] if each["check"] == "fabric"]
    assert status == (0 if up == 5 else 1) and found["text"].startswith(
        f"{up - 1} of 4 gpudirect-tcpx links are active"
    )


@pytest.mark.parametrize(
    ("damage", "causes"),
    [
        (lambda node: node.put("sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n"), "fabric"),
        (lambda node: node.put("sys/class/infiniband/mlx5_0/ports/1/phys_state", "3: Disabled\n"), "fabric"),
        (lambda node: node.settings(mounts=["/shared", "/scratch"]), "mounts"),
        (lambda node: node.tool("timedatectl", "echo NTPSynchronized=no"), "time"),
        (lambda node: node.tool("timedatectl", "exit 1"), ""),  # nobody knows what it is
        (lambda node: node.settings(gpu_count=4), ""),
        (lambda node: hot(node, r"(<pending_blacklist>|<remapped_row_pending>)No", r"\1Yes"), ""),
    ],
)
def test_which_causes_may_be_the_halls(node, damage, causes):
    damage(node)
    assert said(node) == ([f"gate: SHARED {causes}"] if causes else [])
    assert node.gate()[0] == 1
    node.put("run/ironburst/tolerated", f"{time.time() + 900:.0f} fabric,mounts,time\n")
    assert (node.gate()[0] == 0) == (causes == "time"), "only what lets jobs work is tolerated"
    node.tool("lspci", "true")  # a GPU is gone, too
    assert said(node) == []


def test_hanging_tools_fail_the_gate_in_time(node):
    for tool in TOOLS[:5]:
        node.tool(tool, "exec sleep 1000")
    status, report = node.gate(limit_s=1)
    late = [check for check, text in failed(report).items() if "did not answer in 1 s" in text]
    assert status == 1
    assert set(late) == {
        "gpus_on_bus",
        "gpu_count",
        "gpu_model",
        "driver",
        "gpu_health",
        "nvlink",
        "fabric_manager",
        "xid",
        "time",
    }
    assert not node.stamp.exists()


def test_missing_tools_fail_the_gate(node):
    for tool in TOOLS[:5]:
        (node.root / "bin" / tool).unlink()
    status, report = node.gate(more_tools="")
    assert status == 1 and len([text for text in failed(report).values() if "is not installed" in text]) == 9


@pytest.mark.parametrize("tool", TOOLS[:5])
def test_a_tool_that_says_nothing_or_fails_fails_the_gate(node, tool):
    node.tool(tool, "exit 0")
    assert "says nothing" in texts(node.gate()[1])
    node.tool(tool, "echo 'something is wrong'; exit 9")
    assert "exit status 9" in texts(node.gate()[1])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        json.dumps(SETTINGS | {"gpu_count": 0}),
        json.dumps(SETTINGS | {"not_applicable": ["xld"]}),
        json.dumps(SETTINGS | {"pcie_widht": 8}),
        json.dumps(SETTINGS | {"fabric_manager": "yes"}),
        json.dumps(SETTINGS | {"baseline_tolerance": 1.0}),
    ],
)
def test_damaged_settings_fail_the_gate(node, text):
    node.gate()
    node.put("etc/ironburst/gate.json", text)
    status, report = node.gate()
    assert status == 1 and report["findings"][0]["check"] == "settings"
    assert not node.stamp.exists()


@pytest.mark.parametrize(
    "text", ["", "{}", bundle().replace("def settings_from", "def settings_not"), bundle().replace("xid,name", "x,y")]
)
def test_a_damaged_or_missing_bundle_is_no_pass(node, text):
    assert node.run().returncode == 0 and node.stamp.exists()
    node.put("lib/health.json", text)
    done = node.run()
    assert done.returncode == 1 and "not passed, this node takes no jobs" in done.stdout + done.stderr
    assert not node.stamp.exists()


@pytest.mark.parametrize(
    ("change", "check", "text"),
    [
        (
            lambda n: n.smi(xml=written.xml(H100).replace("<dram_uncorrectable>0", "<dram_uncorrectable>4", 1)),
            "gpu_health",
            "is 4, must be 0",
        ),
        (
            lambda n: n.smi(xml=written.xml(H100).replace("<current_link_width>16x", "<current_link_width>8x", 1)),
            "gpu_health",
            "8 of 16 lanes",
        ),
        (lambda n: n.smi(xml=written.xml(H100)[:-400]), "gpu_health", "cut or damaged"),
        (lambda n: n.smi(xml=written.xml(written.BY["h200-sxm"])), "gpu_health", "declared"),
        (
            lambda n: n.smi(nvlink=written.nvlink(H100).replace("26.562 GB/s", "<inactive>", 1)),
            "nvlink",
            "143 of 144 NVLinks",
        ),
        (lambda n: n.smi(nvlink="No devices were found\n"), "nvlink", "0 of 144"),
        (
            lambda n: n.tool("systemctl", "printf 'ActiveState=failed\\nSubState=failed\\n'"),
            "fabric_manager",
            "ActiveState is failed",
        ),
        (lambda n: n.put("sys/class/infiniband/mlx5_0/ports/1/rate", "x"), "fabric_rate", "at x"),
        (lambda n: n.settings(fabric_rate_gb_s=800), "fabric_rate", "400 of 800"),
        (
            lambda n: n.tool(
                "journalctl", "echo '[  9.1] n kernel: NVRM: Xid (PCI:0000:18:00): 79, GPU has fallen off the bus.'"
            ),
            "xid",
            "Xid 79",
        ),
        (
            lambda n: n.tool("journalctl", "echo '[  9.1] n kernel: NVRM: Xid (PCI:0000:18:00): 999, new.'"),
            "xid",
            "not in the table",
        ),
        (lambda n: n.tool("journalctl", "echo '-- No entries --'"), "xid", "no line with a time"),
        (lambda n: n.tool("timedatectl", "echo NTPSynchronized=no"), "time", "not synchronised"),
        (lambda n: n.put("proc/meminfo", "MemTotal: 100 kB\nMemAvailable: 5 kB\n"), "memory", "are free"),
        (lambda n: n.put("proc/meminfo", ""), "memory", "no amount"),
        (lambda n: n.settings(memory_gib=4000), "memory", "of 4000 GiB"),
        (lambda n: n.put("sys/devices/system/edac/mc/mc0/ue_count", "2\n"), "memory", "2 uncorrected"),
        (lambda n: n.settings(disks=["/scratch"]), "disks", "/scratch is not there"),
        (
            lambda n: n.put("proc/self/mountinfo", "1 1 0:1 / /shared rw - n n rw\n2 1 0:2 / /tmp ro - t t ro\n"),
            "disks",
            "cannot be written",
        ),
    ],
)
def test_each_check_of_the_join_level_fails_on_its_fault(node, change, check, text):
    change(node)
    status, report = node.gate()
    assert status == 1 and text in failed(report)[check]


def test_what_the_inventory_leaves_out_is_named(node):
    node.tool("journalctl", "exit 1")
    node.settings(not_applicable=["xid"])
    status, report = node.gate()
    assert status == 0
    texts = {finding["check"]: finding["text"] for finding in report["findings"]}
    assert texts["xid"] == "not applicable: the inventory says so"


def test_an_xid_that_was_dealt_with_counts_no_more(node):
    node.tool("journalctl", "echo '[    0.5] n kernel: NVRM: Xid (PCI:0000:18:00): 48, pid=1, DBE'")
    assert "xid" in failed(node.gate()[1])
    assert node.gate("--xid-handled")[0] == 0
    node.tool("journalctl", "echo '[99999999.5] n kernel: NVRM: Xid (PCI:0000:18:00): 48, pid=1, DBE'")
    assert "xid" in failed(node.gate()[1])


def test_settling_waits_for_a_link_that_trains(node):
    state = node.put("sys/class/infiniband/mlx5_0/ports/1/state", "2: INIT\n")
    # the link comes up while the gate looks: its second look at the GPUs finds the file changed
    node.tool("lspci", LSPCI + f'[ -f {node.root}/once ] && echo "4: ACTIVE" > {state}\n: > {node.root}/once\n')
    assert node.gate()[0] == 1
    (node.root / "once").unlink()
    state.write_text("2: INIT\n")
    assert node.gate("--settle", "20")[0] == 0
    assert node.stamp.exists()


def test_accept_makes_the_baseline_and_holds_later_runs_against_it(node):
    status, report = node.gate("--level", "accept")
    assert (status, failed(report)) == (0, {})
    first = json.loads(node.baseline.read_text())
    assert first["driver"] == "580.95.05" and first["level"] == "accept" and first["at"]
    assert first["figures"]["ib_write_bw Gb/s on mlx5_0 at 65536 B"] == pytest.approx(370, abs=5)
    assert first["figures"]["nccl busbw GB/s at 17179869184 B"] == pytest.approx(478, abs=3)
    # the new driver is slower than this node was, and still above the table's 460
    node.settings(driver="590.48.01")
    node.smi(
        xml=written.xml(H100._replace(driver="590.48.01")),
        csv=written.csv(H100._replace(driver="590.48.01"), False, False),
    )
    node.say("dcgmi", written.diag_json(H100._replace(driver="590.48.01"), "4.4.2"))
    node.say("all_reduce_perf", written.nccl(H100, 2**34, 461.0, low=2**30))
    node.settings(driver="590.48.01", baseline_tolerance=0.02)
    status, report = node.gate("--level", "accept")
    assert status == 1 and set(failed(report)) == {"baseline"}
    assert "driver 580.95.05, now 590.48.01" in failed(report)["baseline"] and "was 47" in failed(report)["baseline"]
    assert json.loads(node.baseline.read_text()) == first and not node.stamp.exists()
    # within the tolerance it passes, and the best stays the baseline
    node.settings(driver="590.48.01")
    assert node.gate("--level", "accept")[0] == 0
    assert json.loads(node.baseline.read_text())["figures"] == first["figures"]
    assert node.gate("--level", "accept", "--forget-baseline")[0] == 0
    assert json.loads(node.baseline.read_text())["figures"]["nccl busbw GB/s at 17179869184 B"] < 462


@pytest.mark.parametrize(
    ("change", "check", "text"),
    [
        (lambda n: (n.root / "bin/dcgmi").unlink(), "dcgm", "not installed"),
        (
            lambda n: n.say("dcgmi", written.diag_json(H100, "4.4.2").replace('"Pass"', '"Fail"', 1)),
            "dcgm",
            "summary of software",
        ),
        (lambda n: n.say("dcgmi", ""), "dcgm", "says nothing"),
        (lambda n: n.settings(dcgm_level=4), "dcgm", "level 3 has run, declared is 4"),
        (lambda n: n.say("all_reduce_perf", written.nccl(H100, 2**34, 300.0, low=2**30)), "nccl", "T04 asks for 460"),
        (
            lambda n: n.say(
                "all_reduce_perf", written.nccl(H100, 2**34, 478.0, low=2**30).replace("validation: 1", "validation: 0")
            ),
            "nccl",
            "not checked",
        ),
        (lambda n: n.tool("all_reduce_perf", "echo 'Test CUDA failure'; exit 3"), "nccl", "exit status 3"),
        (lambda n: n.say("ib_write_bw", "Couldn't connect\n"), "rdma_bandwidth", "not understood"),
        (lambda n: n.settings(rdma_threshold="T27"), "rdma_bandwidth", "T27 asks for 380"),
        (lambda n: n.put("var/lib/ironburst/baseline.json", "{}"), "baseline", "damaged"),
        (
            lambda n: n.put("var/lib/ironburst/baseline.json", '{"driver": "x", "figures": {"other": 3}}'),
            "baseline",
            "not measured",
        ),
    ],
)
def test_each_check_of_the_accept_level_fails_on_its_fault(node, change, check, text):
    change(node)
    before = node.baseline.read_text() if node.baseline.exists() else None
    status, report = node.gate("--level", "accept")
    assert status == 1 and text in failed(report)[check]
    assert (node.baseline.read_text() if node.baseline.exists() else None) == before
    assert json.loads((node.root / "var/lib/ironburst/gate-accept.json").read_text())["passed"] is False


def test_accept_is_not_tried_on_a_node_that_fails_join(node):
    node.tool("timedatectl", "echo NTPSynchronized=no")
    node.tool("dcgmi", f"touch {node.root}/ran")
    assert node.gate("--level", "accept")[0] == 1
    assert not (node.root / "ran").exists()


def test_it_runs_with_the_python_of_el8(node):
    python = next(iter(sorted(Path.home().glob(".pyenv/versions/3.6.*/bin/python3"))), None)
    if python is None:
        pytest.skip("no Python 3.6 in ~/.pyenv: `pyenv install 3.6`")
    done = node.run("--json", "--level", "accept", python=str(python))
    assert (done.returncode, failed(json.loads(done.stdout))) == (0, {}), done.stderr


def test_the_prolog_reads_the_stamp():
    assert "test -f /run/ironburst/gate.ok" in PROLOG.read_text().splitlines()
