"""The table of how long states are believed: all of them are in it, and each row says what ends its state."""

import inspect
import re

import pytest

from ironburst.adapters import bridged
from ironburst.adapters.kubernetes import nodes, pods
from ironburst.adapters.slurm import answers as slurm_json
from ironburst.nodes import states as node_states
from ironburst.nodes.state_times import CLAIM, JOB, NODE, PENDING_POD, POD, Then
from tests.unit.test_node_states import RELEASES

# All of JOB_STATE in src/plugins/data_parser/v0.0.N/parsers.c of Slurm's public source, on the release's branch; 23.02
# has no such list yet, and prints job_state_string of src/common/slurm_protocol_defs.c
BASE = (
    "PENDING RUNNING SUSPENDED COMPLETED CANCELLED FAILED TIMEOUT NODE_FAIL PREEMPTED BOOT_FAIL DEADLINE OUT_OF_MEMORY"
)
FLAGS = (
    "LAUNCH_FAILED REQUEUED REQUEUE_HOLD SPECIAL_EXIT RESIZING CONFIGURING COMPLETING STOPPED RECONFIG_FAIL "
    "POWER_UP_NODE REVOKED REQUEUE_FED RESV_DEL_HOLD SIGNALING STAGE_OUT"
)
ALWAYS = {*BASE.split(), *FLAGS.split()}
JOB_STATES = {
    "23.02": ALWAYS | {"UPDATE_DB"},
    "23.11": ALWAYS | {"UPDATE_DB"},
    "24.05": ALWAYS | {"UPDATE_DB"},
    "24.11": ALWAYS,
    "25.05": ALWAYS,
    "25.11": ALWAYS | {"EXPEDITING"},
    "26.05": ALWAYS | {"EXPEDITING", "END"},
}
# pkg/kubelet/images/types.go, kuberuntime/kuberuntime_container.go, container/sync_result.go, kubelet_pods.go
KUBELET = """ErrImagePull ImagePullBackOff ImageInspectError ErrImageNeverPull InvalidImageName RegistryUnavailable
SignatureValidationFailed CreateContainerConfigError CreateContainerError PreCreateHookError PreStartHookError
PostStartHookError RunContainerError CrashLoopBackOff KillContainerError CreatePodSandboxError ConfigPodSandboxError
KillPodSandboxError ContainerCreating PodInitializing StartError ResizePodInPlaceError RemoveContainerError"""
# k8s.io/api core/v1/types.go of 1.37: PodPhase, PodConditionType, PodReason*, NodeConditionType
PHASES = "Pending Running Succeeded Failed Unknown"
POD_CONDITIONS = """ContainersReady Initialized Ready PodScheduled DisruptionTarget PodReadyToStartContainers
PodResizePending PodResizeInProgress AllContainersRestarting"""
SCHEDULED_REASONS = "Unschedulable SchedulingGated SchedulerError"  # of PodScheduled
OTHER_REASONS = "TerminationByKubelet PreemptionByScheduler Deferred Infeasible Error"
NODE_CONDITIONS = """Ready MemoryPressure DiskPressure PIDPressure NetworkUnavailable GracefulNodeShutdownInProgress
DrainInProgress Drained MaintenancePlanned MaintenanceInProgress"""
# sigs.k8s.io/karpenter pkg/apis/v1/nodeclaim_status.go of 1.0 (Terminating) to 1.12, and what operatorpkg adds
NODE_CLAIM = """Launched Registered Initialized Consolidatable Drifted Terminating Drained VolumesDetached
InstanceTerminating ConsistentStateFound DisruptionReason Ready"""
SLURM_BRIDGE = "SlurmGRESCompatible"  # internal/controller/node/node_condition.go of slurm-bridge


@pytest.mark.parametrize("release", JOB_STATES)
def test_every_state_of_every_release_has_a_row(release):
    assert JOB_STATES[release] <= JOB.keys()
    assert RELEASES[release] <= NODE.keys()


def test_every_state_that_a_reader_knows_has_a_row():
    assert set(slurm_json._ON_NODES) <= JOB.keys()
    assert node_states.STATES.keys() <= NODE.keys()
    assert set(pods.view._STARTS) <= POD.keys()
    for reader in (nodes, bridged):
        words = {
            word for state in re.findall(r'"([A-Z_]{4,})"', inspect.getsource(reader)) for word in state.split("+")
        }
        assert len(words) > 3 and words <= NODE.keys(), reader.__name__


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (POD, KUBELET),
        (POD, PHASES),
        (POD, POD_CONDITIONS),
        (POD, OTHER_REASONS),
        (PENDING_POD, f"{SCHEDULED_REASONS} Nominated"),
        (NODE, NODE_CONDITIONS),
        (NODE, SLURM_BRIDGE),
        (CLAIM, NODE_CLAIM),
    ],
    ids=["kubelet", "phases", "pod-conditions", "reasons", "scheduled", "node-conditions", "slurm-bridge", "karpenter"],
)
def test_all_of_kubernetes_own_lists_are_there(table, words):
    assert set(words.split()) <= table.keys()


@pytest.mark.parametrize("table", [JOB, NODE, POD, PENDING_POD, CLAIM])
def test_a_row_says_what_ends_its_state_and_tells_before_it_acts(table):
    for name, row in table.items():
        assert bool(row.steps) != bool(row.ends), name
        assert [after_s for after_s, _ in row.steps] == sorted({after_s for after_s, _ in row.steps}), name
        if row.steps:
            assert row.steps[0][1] in (Then.TELL, Then.RENT), f"{name}: silently"
        if row.gap_s:
            assert row.gap_s < row.steps[0][0], name


def test_states_that_take_turns_have_the_same_times():
    for table in (JOB, NODE, POD):
        for row in table.values():
            alike = {each for each in table.values() if row.takes_turns and each.takes_turns == row.takes_turns}
            assert len(alike) <= 1


def test_what_is_slow_and_good_has_its_time():
    """100 GB at 100 MB/s are 17 min; a prolog that mounts and copies, 45; an epilog that copies home, 20."""
    first = {**JOB, **POD}
    assert first["ContainerCreating"].steps[-1][0] >= 3600 and first["PodInitializing"].steps[-1][0] >= 3600
    assert first["CONFIGURING"].steps[-1][0] >= 45 * 60 and first["COMPLETING"].steps[-1][0] >= 20 * 60
