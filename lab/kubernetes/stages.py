"""What kwok does to nodes and pods in place of a kubelet: its Stage objects, pure.

The package's docstring says what they leave out. Times are those of the API, whole seconds.
"""

from typing import Any

import yaml

NOTE = "lab.ironburst/"  # begins the annotations that say what a node has or a pod does
READY = '.status.conditions[]? | select(.type == "Ready") | .status'

# kwok plays a delayed stage even if its node was taken from it meanwhile. NodeIPWith gives kwok's own --node-ip then:
# the template fails, and nothing is done. When the node comes back, its pods are looked at anew.
REACHABLE = '{{ if eq (NodeIPWith .spec.nodeName) NodeIP }}{{ fail "its node is unreachable" }}{{ end }}\n'

# What ends a running pod first: {"why", "at": seconds since 1970}; its work, its deadline, or its deletion.
# deletionTimestamp is the end of the grace period, not the moment of the request
END = f"""
def after($from; $seconds): if $from and $seconds then ($from | fromdate) + ($seconds | tonumber) else empty end;
(.metadata.annotations // {{}}) as $note
| (.metadata.deletionGracePeriodSeconds // 0) as $grace
| [
    {{why: "done", at: after(.status.containerStatuses[0].state.running.startedAt; $note["{NOTE}run-seconds"])}},
    {{why: "deadline", at: after(.status.startTime; .spec.activeDeadlineSeconds)}},
    {{why: "stop", at: (after(.metadata.deletionTimestamp; "0")
      - ([$grace - ($note["{NOTE}stop-seconds"] // $grace | tonumber), 0] | max))}}
  ]
| min_by(.at)
"""

NODE_READY = """
{{ $now := Now }}
conditions:
{{ range NodeConditions }}
- type: {{ .type }}
  status: {{ .status | Quote }}
  reason: {{ .reason }}
  message: {{ .message | Quote }}
  lastHeartbeatTime: {{ $now }}
  lastTransitionTime: {{ $now }}
{{ end }}
"""
NODE_DEVICES = f"""
capacity: {{{{ index .metadata.annotations "{NOTE}devices" }}}}
allocatable: {{{{ index .metadata.annotations "{NOTE}devices" }}}}
"""
POD_CREATING = """
{{ $now := Now }}
startTime: {{ $now }}
hostIP: {{ NodeIPWith .spec.nodeName }}
conditions:
- {type: Initialized, status: "True", lastTransitionTime: {{ $now }}}
- {type: Ready, status: "False", reason: ContainersNotReady, lastTransitionTime: {{ $now }}}
- {type: ContainersReady, status: "False", reason: ContainersNotReady, lastTransitionTime: {{ $now }}}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name }}
  image: {{ .image | Quote }}
  imageID: ""
  ready: false
  started: false
  restartCount: 0
  state: {waiting: {reason: ContainerCreating}}
{{ end }}
"""
POD_RUNNING = """
{{ $now := Now }}
{{ $network := or .spec.hostNetwork false }}
{{ $ip := PodIPWith .spec.nodeName $network .metadata.uid .metadata.name .metadata.namespace }}
phase: Running
podIP: {{ $ip | Quote }}
podIPs:
- ip: {{ $ip | Quote }}
conditions:
- {type: Ready, status: "True", reason: null, lastTransitionTime: {{ $now }}}
- {type: ContainersReady, status: "True", reason: null, lastTransitionTime: {{ $now }}}
initContainerStatuses:
{{ range .spec.initContainers }}
- name: {{ .name }}
  image: {{ .image | Quote }}
  imageID: ""
  ready: true
  restartCount: 0
  {{ if eq (or .restartPolicy "") "Always" }}
  started: true
  state: {running: {startedAt: {{ $now }}}}
  {{ else }}
  state: {terminated: {exitCode: 0, reason: Completed, startedAt: {{ $now }}, finishedAt: {{ $now }}}}
  {{ end }}
{{ end }}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name }}
  image: {{ .image | Quote }}
  imageID: ""
  ready: true
  started: true
  restartCount: 0
  state: {running: {startedAt: {{ $now }}}}
{{ end }}
"""
POD_ENDED = """
{{ $now := Now }}
{{ $started := (index .status.containerStatuses 0).state.running.startedAt }}
phase: {{ ternary "Succeeded" "Failed" (eq $code 0) }}
conditions:
- {type: Ready, status: "False", reason: {{ $ready }}, lastTransitionTime: {{ $now }}}
- {type: ContainersReady, status: "False", reason: {{ $ready }}, lastTransitionTime: {{ $now }}}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name }}
  image: {{ .image | Quote }}
  imageID: ""
  ready: false
  started: false
  restartCount: 0
  state:
    terminated:
      exitCode: {{ $code }}
      reason: {{ ternary "Completed" "Error" (eq $code 0) }}
      startedAt: {{ $started }}
      finishedAt: {{ $now }}
{{ end }}
"""
DONE = f"""
{{{{ $code := int (or (index (or .metadata.annotations dict) "{NOTE}exit-code") "0") }}}}
{{{{ $ready := ternary "PodCompleted" "PodFailed" (eq $code 0) }}}}
"""
KILLED = '{{ $code := 137 }}{{ $ready := "PodFailed" }}\n'
LATE = "reason: DeadlineExceeded\nmessage: Pod was active on the node longer than the specified deadline\n"


def _where(jq: str, operator: str, *values: str) -> dict[str, Any]:
    return {"jq": {"key": jq, "operator": operator, **({"values": list(values)} if values else {})}}


def _stage(
    name: str, selector: list[dict[str, Any]], status: str, delay: str = "", delete: bool = False
) -> dict[str, Any]:
    """A stage that patches the status. `delay`: jq of a time or a duration."""
    late = {"durationMilliseconds": 0, "durationFrom": {"jq": {"expression": delay}}}
    patch = {"patch": {"subresource": "status", "root": "status", "template": status}}
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": name.partition("-")[0].capitalize()},
            "selector": {"matchExpressions": selector},
            **({"delay": late} if delay else {}),
            "steps": [patch, *([{"delete": True}] if delete else [])],
        },
    }


def _end(why: str, status: str) -> dict[str, Any]:
    running = [_where(".status.phase", "In", "Running"), _where(f"{END} | .why", "In", why)]
    return _stage(f"pod-{why}", running, REACHABLE + status, f"{END} | .at | todate")


def stages() -> list[dict[str, Any]]:
    """The stages of nodes and of pods; at any moment one at most fits a thing."""
    not_deleted = _where(".metadata.deletionTimestamp", "DoesNotExist")
    pending = _where(".status.phase", "In", "Pending")
    lacking = (
        f'((.metadata.annotations["{NOTE}devices"] // "{{}}") | fromjson | keys) - (.status.capacity | keys) | .[]'
    )
    # a time, for kwok begins a duration anew whenever the node changes, and the gate writes often
    registered = (
        '(.status.conditions[] | select(.type == "Ready") | .lastTransitionTime | fromdate) '
        f'+ (.metadata.annotations["{NOTE}devices-after"] | tonumber) | ceil | todate'
    )
    pull = (
        f'.metadata.annotations["{NOTE}pull-seconds"] as $pull '
        '| if $pull then (.status.startTime | fromdate) + ($pull | tonumber) | todate else "0s" end'
    )
    return [
        _stage("node-ready", [_where(READY, "NotIn", "True")], NODE_READY),
        # a device plugin registers some time after its kubelet
        _stage("node-devices", [_where(READY, "In", "True"), _where(lacking, "Exists")], NODE_DEVICES, registered),
        _stage("pod-create", [not_deleted, pending, _where(".status.startTime", "DoesNotExist")], POD_CREATING),
        _stage("pod-run", [not_deleted, pending, _where(".status.startTime", "Exists")], REACHABLE + POD_RUNNING, pull),
        _end("done", DONE + POD_ENDED),
        _end("deadline", KILLED + LATE + POD_ENDED),
        _end("stop", KILLED + POD_ENDED),
        _stage(
            "pod-remove",
            [
                _where(".metadata.deletionTimestamp", "Exists"),
                _where(".status.phase", "In", "Pending", "Succeeded", "Failed"),
            ],
            REACHABLE + "{}",
            delete=True,
        ),
    ]


def text() -> str:
    """kwok's configuration file."""
    return yaml.safe_dump_all(stages(), sort_keys=False)
