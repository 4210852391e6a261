"""How long each state of Slurm and Kubernetes is believed on a rented node, and what follows then.

A state that should be short can last for ever: a step that can't be killed, a hung epilog, an image that nobody can
pull. The node answers, so nothing else notices, and it is paid for. A row says what is done when a state has lasted so
long, step by step, each with an event; one without steps says what ends it. ironburst/controller/lasting.py carries it
out (docs/adr/0087).

The times leave room for what is slow and good: an epilog that copies results home, an image of 100 GB, a prolog that
mounts storage. KillWait, and a pod's grace period, come on top.

All job and node states of Slurm 23.02 to 26.05 (JOB_STATE and NODE_STATES of data_parser v0.0.39 to v0.0.45), all
waiting reasons of kubelet (pkg/kubelet/images, kuberuntime and container of Kubernetes 1.36), and Kubernetes' own lists
of pod phases, pod conditions, their reasons, and node conditions (k8s.io/api core/v1). Karpenter's NodeClaims
(sigs.k8s.io/karpenter pkg/apis/v1) are ended by Karpenter; what is told of them is in CLAIM. slurm-bridge's jobs and
nodes are Slurm's, with what the cluster says of the pods.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

MINUTE, HOUR = 60.0, 3600.0


class Then(StrEnum):
    """What is done when a state has lasted too long. Each has an event."""

    TELL = "told"
    RENT = "it is believed no more, and rented for like any other"
    DRAIN = "its node takes no new job, and goes when those on it have ended"
    REQUEUE = "it goes back to the queue, or ends where that may not be, and its node goes"
    FORCE = "its node goes at once, with what is left of it"


@dataclass(frozen=True)
class StateTime:
    """`steps`: (seconds that it has lasted, what is done then), in order. `ends`: who ends it, where there are none."""

    steps: tuple[tuple[float, Then], ...] = ()
    ends: str = ""
    takes_turns: str = ""  # the name that states share which take turns and count as one; empty: none
    gap_s: float = 0.0  # it still lasts when it was away for less
    works: bool = False  # the job works: its time counts from the end of its limit on
    again: bool = True  # its job may be rented for again


def _by(ends: str, *states: str) -> dict[str, StateTime]:
    return dict.fromkeys(states, StateTime(ends=ends))


_QUEUE = "the queue: it holds no node"
_JOBS = "its jobs, by their own rows, and the pool's idle time"

# Slurm's jobs. Flags come beside a base state; the readers keep the one that says most (base_state in
# ironburst/adapters/slurm/answers.py)
JOB: dict[str, StateTime] = {
    **_by(_QUEUE, "PENDING"),
    "RUNNING": StateTime(((HOUR, Then.TELL),), works=True),  # OverTimeLimit may let it
    "SIGNALING": StateTime(((HOUR, Then.TELL), (4 * HOUR, Then.REQUEUE)), works=True),
    "RESIZING": StateTime(((HOUR, Then.TELL), (4 * HOUR, Then.REQUEUE)), works=True),
    # its limit stands still, so that doesn't end it
    "SUSPENDED": StateTime(((HOUR, Then.TELL), (4 * HOUR, Then.REQUEUE))),
    "STOPPED": StateTime(((HOUR, Then.TELL), (4 * HOUR, Then.REQUEUE))),
    # its prolog runs, or its nodes boot
    "CONFIGURING": StateTime(((HOUR, Then.TELL), (3 * HOUR, Then.REQUEUE)), again=False),
    # its processes are being killed, then its epilog runs
    "COMPLETING": StateTime(((10 * MINUTE, Then.TELL), (30 * MINUTE, Then.FORCE))),
    "STAGE_OUT": StateTime(((HOUR, Then.TELL), (4 * HOUR, Then.FORCE))),
    **_by("the queue: it has ended", "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED"),
    **_by("the queue: it has ended", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY", "END"),
    **_by(_QUEUE, "LAUNCH_FAILED", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RECONFIG_FAIL", "REQUEUE_FED"),
    **_by(_QUEUE, "REVOKED", "RESV_DEL_HOLD", "EXPEDITING"),
    **_by("the base state beside it", "POWER_UP_NODE", "UPDATE_DB"),
}

# Slurm's nodes, and Kubernetes' in the same words (ironburst/adapters/kubernetes/nodes.py)
NODE: dict[str, StateTime] = {
    **_by(_JOBS, "ALLOCATED", "MIXED", "IDLE", "BLOCKED", "PLANNED", "RESERVED", "MAINTENANCE"),
    **_by("nothing: it says nothing of what runs there", "CLOUD", "DYNAMIC_FUTURE", "DYNAMIC_NORM", "EXTERNAL"),
    **_by("nothing: it says nothing of what runs there", "PERFCTRS", "REBOOT_CANCELED", "RESUME", "UNDRAIN"),
    **_by("the controller at once: its jobs go back to the queue, and it goes", "DOWN"),
    # a program's drain (ironburst/burst/drains.py) gives the node back at once
    **_by(f"a person, who is asked to be quick; {_JOBS}", "DRAIN"),
    **_by("the pool's boot time", "POWER_UP", "POWERING_UP"),
    **_by("the controller at once: its instance ends", "POWERING_DOWN", "POWERED_DOWN"),
    "COMPLETING": StateTime(
        ((10 * MINUTE, Then.TELL), (30 * MINUTE, Then.FORCE))
    ),  # where the queue shows no job there
    # Slurm makes it DOWN after SlurmdTimeout; some set that to 0
    "NOT_RESPONDING": StateTime(((15 * MINUTE, Then.TELL), (HOUR, Then.DRAIN))),
    **dict.fromkeys(
        ("ERROR", "FAIL", "FUTURE", "INVALID", "INVALID_REG", "UNKNOWN"),
        StateTime(((5 * MINUTE, Then.TELL), (15 * MINUTE, Then.DRAIN))),
    ),
    # asked to power down, with no job left on it
    **dict.fromkeys(
        ("POWER_DOWN", "POWER_DRAIN", "POWER_DOWN_ASAP", "POWER_DOWN_FORCE"),
        StateTime(((10 * MINUTE, Then.TELL), (15 * MINUTE, Then.FORCE)), takes_turns="POWER_DOWN"),
    ),
    "REBOOT_REQUESTED": StateTime(((24 * HOUR, Then.TELL),)),
    # conditions of Kubernetes' nodes, and what they come down to
    **_by("NOT_RESPONDING, and DOWN after 5 min", "Ready"),
    **_by("FAIL, by the taint", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"),
    **_by(f"an administrator, who sets it: it says nothing; {_JOBS}", "DrainInProgress", "Drained"),
    **_by(f"an administrator, who sets it: it says nothing; {_JOBS}", "MaintenancePlanned", "MaintenanceInProgress"),
    **_by("NOT_RESPONDING, and DOWN after 5 min: its kubelet shuts down", "GracefulNodeShutdownInProgress"),
    **_by("slurm-bridge, which takes it out of Slurm's GRES: by Slurm's states of the node", "SlurmGRESCompatible"),
    **_by("the pool's idle time; Slurm makes it DOWN after ResumeTimeout", "REBOOT_ISSUED"),
}


_IMAGE = StateTime(
    ((15 * MINUTE, Then.TELL), (30 * MINUTE, Then.REQUEUE)), takes_turns="Image", gap_s=600.0, again=False
)
_CONTAINER = StateTime(
    ((15 * MINUTE, Then.TELL), (30 * MINUTE, Then.REQUEUE)), takes_turns="Start", gap_s=600.0, again=False
)
_SLOW = StateTime(((HOUR, Then.TELL), (3 * HOUR, Then.REQUEUE)), takes_turns="Create", again=False)
SOME_WAIT, SOME_END, INCOMPLETE = "SomeWait", "SomeEnd", "Incomplete"
"""words of ours: of a gang's pods some can't start, are being deleted, or have no node, while others run"""

# Jobs of pods that have a node, by the word that their pods wait with: kubelet's reasons, and ours of a gang
POD: dict[str, StateTime] = {
    "ContainerCreating": _SLOW,  # its image is pulled, its volumes are mounted
    "PodInitializing": _SLOW,
    **dict.fromkeys(
        (
            "ErrImagePull",
            "ImagePullBackOff",
            "ImageInspectError",
            "ErrImageNeverPull",
            "InvalidImageName",
            "RegistryUnavailable",
            "SignatureValidationFailed",
        ),
        _IMAGE,
    ),
    **dict.fromkeys(
        (
            "CreateContainerConfigError",
            "CreateContainerError",
            "PreCreateHookError",
            "PreStartHookError",
            "PostStartHookError",
            "RunContainerError",
            "StartError",
            "CreatePodSandboxError",
            "ConfigPodSandboxError",
        ),
        _CONTAINER,
    ),
    # it starts and ends again and again, with up to 5 min between; kubelet forgets that when it ran for 10 min
    "CrashLoopBackOff": StateTime(((30 * MINUTE, Then.TELL), (2 * HOUR, Then.REQUEUE)), gap_s=660.0, again=False),
    "KillContainerError": StateTime(((30 * MINUTE, Then.TELL), (2 * HOUR, Then.REQUEUE)), gap_s=600.0),
    "KillPodSandboxError": StateTime(((30 * MINUTE, Then.TELL), (2 * HOUR, Then.REQUEUE)), gap_s=600.0),
    SOME_WAIT: StateTime(((30 * MINUTE, Then.TELL),), gap_s=600.0),
    SOME_END: StateTime(((30 * MINUTE, Then.TELL),), gap_s=600.0),
    INCOMPLETE: StateTime(((HOUR, Then.TELL),)),
    # phases and conditions, and what they come down to
    **_by("the words above, of what its containers wait for", "Pending", "Initialized", "PodReadyToStartContainers"),
    **_by("its containers, by their own words", "ContainersReady", "Ready"),
    **_by("its job's row: RUNNING, and COMPLETING once it is being deleted", "Running", "DisruptionTarget", "Unknown"),
    **_by("the queue: it has ended", "Succeeded", "Failed"),
    **_by("its job's row: it works on", "PodResizePending", "PodResizeInProgress", "AllContainersRestarting"),
    **_by("its reason, below", "PodScheduled"),
    # reasons of these conditions
    **_by("its job's row: COMPLETING, it is being deleted", "TerminationByKubelet", "PreemptionByScheduler"),
    **_by("its job's row: it works on, with what it has", "Deferred", "Infeasible", "Error", "ResizePodInPlaceError"),
    **_by("its other words: a container that has ended isn't cleaned up", "RemoveContainerError"),
}

# Karpenter's NodeClaims. DELETED is no condition: it is to end (metadata.deletionTimestamp, expireAfter)
DELETED = "Deleted"
CLAIM: dict[str, StateTime] = {
    # from when its pods must have gone (terminationGracePeriod) and its instance ended
    DELETED: StateTime(((HOUR, Then.TELL),)),
    **_by("Karpenter: what hasn't launched after 5 min, or registered after 15, is deleted", "Launched", "Registered"),
    **_by("its pods, by their own words; Karpenter's consolidation", "Initialized", "Ready", "ConsistentStateFound"),
    **_by("Karpenter, which replaces it", "Consolidatable", "Drifted", "DisruptionReason"),
    **_by(f"{DELETED}, above", "Terminating", "Drained", "VolumesDetached", "InstanceTerminating"),
}

# Pending pods, by the first word of why: PodScheduled's reasons, and what the readers say
PENDING_POD: dict[str, StateTime] = {
    **_by("its node, or the pools", "Unschedulable"),
    # its room is being made: those that leave may save for as long as their grace period is
    "Nominated": StateTime(((30 * MINUTE, Then.RENT),)),
    "SchedulingGated": StateTime(ends=_QUEUE),  # somebody else's controller opens it, and says so
    "SchedulerError": StateTime(((HOUR, Then.TELL),)),
    "Waiting": StateTime(((HOUR, Then.TELL),)),  # kube-scheduler hasn't looked at it
    INCOMPLETE: StateTime(ends=_QUEUE),  # not all of its pods are made
}


def of_job(state: str, word: str) -> tuple[str, StateTime]:
    """The name and the row of a job that is on a node. `word`: the first of the scheduler's reason; one that isn't
    there (a later kubelet's) counts as its state does.
    """
    if word in POD:
        return word, POD[word]
    return state, JOB.get(state, StateTime())


def of_pending(word: str) -> tuple[str, StateTime]:
    """The same of a pending one."""
    return word, PENDING_POD.get(word, JOB["PENDING"])
