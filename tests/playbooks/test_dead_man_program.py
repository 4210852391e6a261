"""The program that ends a rented node, with tools and a /proc of its own. What it decides: tests/unit/controller/
test_heartbeat.py.
"""

import json
import os

import pytest
from programs import load

IDLE = "NodeName=p5-1 Arch=x86_64 State=IDLE+CLOUD Comment=ironburst,at=7,left=600"
SETTINGS = {"node": "p5-1", "dead_man_s": 1800, "hard_limit_s": 90_000}


class Node:
    """A root folder, and tools that write down how they are called."""

    def __init__(self, root, monkeypatch):
        self.root, self.calls, self.console = root, root / "calls", root / "console"
        self.tools = root / "bin"
        self.tools.mkdir()
        monkeypatch.setenv("IRONBURST_DEAD_MAN_ROOT", str(root))
        monkeypatch.setenv("IRONBURST_DEAD_MAN_CONSOLE", str(self.console))
        monkeypatch.setenv("PATH", f"{self.tools}:{os.environ['PATH']}")
        self.program = load("roles/cloud_node/files/ironburst-dead-man.py")
        for name in ("systemctl", "scontrol", "journalctl"):
            self.tool(name, "exit 0")

    def journal_says(self, unit, text):
        """As journalctl(1): of a unit's lines of this boot; an option that it doesn't know, or a short one with others
        behind it that takes an argument (-bqn30 is the boot "qn30"), is an error.
        """
        known = "--sync|--boot|--quiet|--lines=*|--output=cat"
        self.tool(
            "journalctl",
            f"""for word; do case $word in
{known}) ;; _SYSTEMD_UNIT={unit}.service) said=yes;; _SYSTEMD_UNIT=*) ;; *) echo "journalctl: $word?" >&2; exit 1;;
esac; done
[ -z "$said" ] || printf '{text}\\n'""",
        )

    def tool(self, name, body):
        path = self.tools / name
        path.write_text(f'#!/bin/sh\necho "{name} $*" >> {self.calls}\n{body}\n')
        path.chmod(0o755)

    def slurm_shows(self, text):
        self.tool("scontrol", f'[ "$2" = show ] && echo "{text}"\nexit 0')

    def declared(self, **settings):
        path = self.root / "run/ironburst/dead-man.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(settings))

    def process(self, number, title):
        path = self.root / "proc" / str(number) / "cmdline"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(title)

    def heard(self, seconds_ago):
        path = self.root / "run/ironburst/heartbeat.json"
        now = self.program.time.monotonic()
        path.write_text(json.dumps({"heard_s": now - seconds_ago, "said": "", "ends_s": None}))

    def told(self):
        return self.calls.read_text().splitlines() if self.calls.exists() else []

    def is_off(self):
        return "systemctl poweroff --no-block" in self.told()


@pytest.fixture
def node(tmp_path, monkeypatch):
    node = Node(tmp_path, monkeypatch)
    node.declared(**SETTINGS)
    node.slurm_shows(IDLE)
    return node


def test_a_node_that_hears_its_controller_stays(node):
    assert node.program.main([]) == 0
    assert node.told() == ["scontrol --oneliner show node p5-1"] and not node.console.exists()
    assert (
        json.loads((node.root / "run/ironburst/heartbeat.json").read_text())["said"]
        == "Comment=ironburst,at=7,left=600"
    )


def test_one_that_nobody_looks_after_closes_itself_to_jobs_says_why_and_ends(node):
    node.slurm_shows("NodeName=p5-1 State=IDLE+CLOUD")
    node.heard(2000)
    assert node.program.main([]) == 0
    drain = next(n for n, call in enumerate(node.told()) if "state=drain reason=ironburst: it has no jobs" in call)
    assert drain < node.told().index("systemctl poweroff --no-block")
    assert "ironburst-dead-man: p5-1 powers off: it has no jobs, and no heartbeat of the controller for 2000 s" in (
        node.console.read_text()
    )


def test_a_job_that_starts_in_this_moment_keeps_it(node):
    node.tool(
        "scontrol",
        f"[ $2 = show ] || exit 0\nif grep -q drain {node.calls}; then s=ALLOCATED; else s=IDLE; fi\n"
        "echo NodeName=p5-1 State=$s+CLOUD",
    )
    node.heard(2000)
    node.program.main([])
    assert any("state=drain" in call for call in node.told()) and not node.is_off()


@pytest.mark.parametrize(
    ("title", "stays"),
    [
        (b"slurmstepd: [7.batch]\0", True),
        (b"/usr/sbin/slurmstepd\0infinity\0", False),  # holds slurmd's control group for as long as the node is up
        (b"python\0train.py\0slurmstepd: [7.0]\0", False),
    ],
)
def test_a_step_counts_though_slurm_does_not_answer(node, title, stays):
    node.tool("scontrol", "exit 1")
    node.process(1, b"/sbin/init\0")
    node.process(4711, title)
    node.heard(2000)
    node.program.main([])
    assert node.is_off() != stays


def test_an_allocation_without_a_step_counts(node):
    node.slurm_shows("NodeName=p5-1 State=ALLOCATED+CLOUD")
    node.heard(2000)
    node.program.main([])
    assert not node.is_off()


def test_a_slurm_that_hangs_is_no_heartbeat(node, monkeypatch):
    monkeypatch.setattr(node.program, "TOOL_S", 0.2)
    node.tool("scontrol", "exec sleep 600")
    node.heard(2000)
    node.program.main([])
    assert node.is_off()


@pytest.mark.parametrize("damage", [None, "", "{"])
def test_a_node_whose_join_never_came_to_its_end_ends_after_the_default(node, damage, monkeypatch):
    path = node.root / "run/ironburst/dead-man.json"
    path.unlink() if damage is None else path.write_text(damage)
    node.program.main([])
    assert not node.is_off()
    later = node.program.time.monotonic() + 1801
    monkeypatch.setattr(node.program.time, "monotonic", lambda: later)
    node.program.main([])
    assert node.is_off()


@pytest.mark.parametrize("arguments", [[], ["--failed"]])
def test_a_machine_that_nobody_rented_is_never_ended(node, arguments):
    node.declared(dead_man_s=None)
    node.heard(1_000_000)
    assert node.program.main(arguments) == 0
    assert node.told() == []


def test_a_full_disk_is_no_reason_to_stay(node, monkeypatch):
    def full(path, value):
        raise OSError(28, "No space left on device")

    node.slurm_shows("NodeName=p5-1 State=IDLE+CLOUD")
    node.heard(2000)
    monkeypatch.setattr(node.program, "write", full)
    node.program.main([])
    assert node.is_off()


# ---- in Kubernetes
UID, SERVICE, STATIC = "0e3f5f4c-83a4-4a3b-9f41-0a1b2c3d4e5f", "11111111-83a4-4a3b-9f41-0a1b2c3d4e5f", "ab" * 16


@pytest.fixture
def pods(node):
    """The node with a scheduler that is Kubernetes."""
    node.declared(**SETTINGS, scheduler="kubernetes")
    node.kubernetes_shows = lambda text: node.tool("ironburst-kubelet", f'[ "$1" != show ] || echo "{text}"')
    node.kubernetes_shows(f"NodeName=p5-1 State=IDLE Comment=ironburst,at=7,left=600 Others={SERVICE},{STATIC}")
    return node


def in_pod(node, number, group):
    path = node.root / "proc" / str(number) / "cgroup"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(group)


def slice_of(uid, kind="burstable"):
    name = uid.replace("-", "_")
    return f"0::/kubepods.slice/kubepods-{kind}.slice/kubepods-{kind}-pod{name}.slice/cri-containerd-{'c' * 64}.scope\n"


def known(node):
    return json.loads((node.root / "run/ironburst/heartbeat.json").read_text())


def test_a_node_of_kubernetes_hears_its_controller_by_its_own_node_object(pods):
    pods.program.main([])
    assert pods.told() == ["ironburst-kubelet show"]
    assert known(pods)["said"] == "Comment=ironburst,at=7,left=600" and known(pods)["others"] == [SERVICE, STATIC]


@pytest.fixture
def bridged(pods):
    """A node of both, by slurm-bridge: jobs and heartbeat are Slurm's."""
    pods.declared(**SETTINGS, scheduler="slurm-bridge")
    pods.slurm_shows("NodeName=p5-1 State=IDLE+CLOUD Comment=ironburst,at=7,left=600")
    pods.kubernetes_shows(f"NodeName=p5-1 State=IDLE Comment= Others={SERVICE},{STATIC}")
    return pods


def test_a_node_of_both_hears_slurm_and_knows_which_pods_are_none_of_a_job(bridged):
    in_pod(bridged, 7, slice_of(SERVICE))
    bridged.program.main([])
    assert known(bridged)["said"] == "Comment=ironburst,at=7,left=600" and known(bridged)["others"] == [SERVICE, STATIC]
    bridged.slurm_shows("NodeName=p5-1 State=IDLE+CLOUD")
    bridged.heard(2000)
    bridged.program.main([])
    assert bridged.is_off(), "a pod of a DaemonSet keeps no node"
    told = bridged.told()
    assert any("state=drain" in call for call in told) and "ironburst-kubelet cordon" not in told


@pytest.mark.parametrize("state", ["ALLOCATED+CLOUD", "IDLE+CLOUD+DRAIN"])
def test_on_a_node_of_both_jobs_and_pods_count(bridged, state):
    """A job of slurm-bridge has no step; its pod may live longer than it."""
    bridged.slurm_shows(f"NodeName=p5-1 State={state}")
    if "IDLE" in state:
        in_pod(bridged, 7, slice_of(UID))
    bridged.heard(2000)
    bridged.program.main([])
    assert not bridged.is_off()


def test_a_node_of_both_without_its_cluster_counts_every_pod(bridged):
    bridged.tool("ironburst-kubelet", "exit 1")
    in_pod(bridged, 7, slice_of(SERVICE))
    bridged.heard(2000)
    bridged.program.main([])
    assert not bridged.is_off()


def test_one_that_nobody_looks_after_cordons_itself_and_ends(pods):
    pods.kubernetes_shows(f"NodeName=p5-1 State=IDLE Comment= Others={SERVICE},{STATIC}")
    pods.heard(2000)
    in_pod(pods, 7, slice_of(SERVICE))  # DaemonSets and static pods keep no node
    in_pod(pods, 8, slice_of(STATIC))
    pods.program.main([])
    told = pods.told()
    assert told.index("ironburst-kubelet cordon") < told.index("systemctl poweroff --no-block")
    assert not any(call.startswith("scontrol") for call in told)


def test_a_pod_of_a_workload_keeps_it(pods):
    pods.kubernetes_shows("NodeName=p5-1 State=ALLOCATED Comment= Others=")
    pods.heard(2000)
    pods.program.main([])
    assert not pods.is_off()


def test_a_pod_that_starts_in_this_moment_keeps_it(pods):
    script = f"if grep -q cordon {pods.calls}; then s=ALLOCATED; else s=IDLE; fi"
    pods.tool("ironburst-kubelet", f"{script}\n[ $1 != show ] || echo NodeName=p5-1 State=$s Comment= Others=")
    pods.heard(2000)
    pods.program.main([])
    assert "ironburst-kubelet cordon" in pods.told() and not pods.is_off()


@pytest.mark.parametrize(
    ("group", "stays"),
    [
        (slice_of(UID), True),
        (slice_of(UID, "besteffort"), True),
        (f"0::/kubepods.slice/kubepods-pod{UID.replace('-', '_')}.slice/x.scope\n", True),
        (f"0::/kubepods/burstable/pod{UID}/{'c' * 64}\n", True),  # cgroupfs's names
        (f"12:cpu:/kubepods/pod{UID}/a\n0::/system.slice\n", True),
        (f"0::/lab/host/kubepods.slice/kubepods-pod{UID.replace('-', '_')}.slice\n", True),
        (slice_of(SERVICE), False),
        (slice_of(STATIC), False),
        ("0::/system.slice/kubelet.service\n", False),
        (f"0::/user.slice/pod{UID}\n", False),
        ("", False),
    ],
)
def test_without_an_api_server_every_pod_that_it_had_not_excused_counts(pods, group, stays):
    pods.program.main([])  # the API server answers once, and never again
    pods.tool("ironburst-kubelet", "exit 1")
    in_pod(pods, 9, group)
    path = pods.root / "run/ironburst/heartbeat.json"
    path.write_text(json.dumps(known(pods) | {"heard_s": pods.program.time.monotonic() - 2000}))
    pods.program.main([])
    assert pods.is_off() != stays


def test_one_that_never_reached_its_api_server_ends_unless_a_pod_runs(pods):
    pods.tool("ironburst-kubelet", "exit 1")
    in_pod(pods, 9, slice_of(SERVICE))
    pods.heard(2000)
    pods.program.main([])
    assert not pods.is_off()  # nobody has said that this pod is a DaemonSet's
    in_pod(pods, 9, "0::/init.scope\n")
    pods.program.main([])
    assert pods.is_off() and "ironburst-kubelet cordon" not in pods.told()


def test_its_hard_limit_ends_it_with_pods(pods):
    pods.kubernetes_shows("NodeName=p5-1 State=ALLOCATED Comment= Others=")
    pods.heard(90_001)
    pods.program.main([])
    assert pods.is_off()


def test_a_kubelet_that_can_not_start_ends_its_node_but_not_under_pods(pods):
    in_pod(pods, 9, slice_of(UID))
    pods.program.main(["--failed"])
    assert not pods.is_off()
    in_pod(pods, 9, "0::/init.scope\n")
    pods.program.main(["--failed"])
    assert pods.is_off()


# ---- a node that could not join


def test_a_gate_that_failed_is_told_in_one_line_and_the_node_ends_at_once(node):
    node.tool("systemctl", '[ "$1" != is-failed ] || [ "$2" = ironburst-gate.service ]')
    node.journal_says(
        "ironburst-gate", "gate: ok     gpus: 8\\ngate: FAILED mounts: /shared is not mounted\\ngate: not passed"
    )
    node.program.main(["--failed"])
    assert node.console.read_text().splitlines() == [
        "",
        "ironburst-join: ironburst-gate failed: gate: FAILED mounts: /shared is not mounted",
    ]
    assert node.is_off()


def test_a_unit_that_said_nothing_keeps_no_node(node):
    node.tool("systemctl", '[ "$1" != is-failed ] || [ "$2" = ironburst-gate.service ]')
    node.program.main(["--failed"])
    assert "ironburst-gate failed: it said nothing" in node.console.read_text() and node.is_off()


def test_a_join_that_failed_before_it_knew_anything_ends_too(node):
    (node.root / "run/ironburst/dead-man.json").unlink()
    node.tool("systemctl", '[ "$1" != is-failed ] || [ "$2" = ironburst-join.service ]')
    node.journal_says("ironburst-join", "join: the munge key x does not resolve: AccessDenied")
    node.program.main(["--failed"])
    assert "ironburst-join: ironburst-join failed: join: the munge key x does not resolve" in node.console.read_text()
    assert node.is_off()


def test_a_node_with_a_running_step_stays_though_its_slurmd_can_not_start(node):
    node.process(4711, b"slurmstepd: [7.0]\0")
    node.program.main(["--failed"])
    assert not node.is_off()


def test_no_console_is_no_reason_to_stay(node, monkeypatch):
    monkeypatch.setattr(node.program, "CONSOLE", str(node.root))
    node.program.main(["--failed"])
    assert node.is_off()
