#!/usr/bin/python3
"""ironburst-kubelet: what this node says to its Kubernetes cluster, and asks it, beside kubelet and with its rights.

gate [--wait SECONDS]  run the health gate, and write what it says as the condition ironburst.io/GatePassed of the Node:
                       True, False with its reason, or Unknown if it gives no word. --wait: so long the Node may take to
                       appear. Where cluster.json says {device_taints}, bad GPUs of a good node are kept from claims by
                       a DeviceTaintRule each, and the others stay in use
show                   one line, for ironburst-dead-man: NodeName=, State=ALLOCATED (with a pod of a workload) or IDLE,
                       Comment= the controller's heartbeat, Others= uids of the pods that keep no node
cordon                 no pod is to start here any more
idle                   status 0: nothing that a restart of kubelet or containerd could hurt runs here; else why, and 1
ready [--gpus NUMBER]  status 0: the Node is ready, its gate has passed, and its device plugin, where there is one,
                       offers so many GPUs; else why, and 1
services               one line: process ids of what holds a GPU and is of a pod that keeps no node (a device plugin, an
                       exporter)
free                   end the containers of those; kubelet must be stopped, and starts them anew when it is started

A pod of a workload is one that isn't finished, and neither a DaemonSet's nor static. Name and server are in
/etc/ironburst/cluster.json ({node, api_server}), their authority is in cluster-ca.crt beside it. It signs in as kubelet
does, with kubelet's own certificate, or on EKS ({eks}) by the instance's role; so the API server lets it read and write
this node alone. Exit status 1: it could not be done; one
sentence on standard error.
"""

import argparse
import contextlib
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

ROOT = Path(os.environ.get("IRONBURST_KUBELET_ROOT", "/"))  # another root in tests
GATE_PROGRAM = os.environ.get("IRONBURST_KUBELET_GATE", "/usr/local/sbin/ironburst-gate")
CONDITION, BEAT = "ironburst.io/GatePassed", "ironburst.io/beat"
# DeviceTaintRules, the slices in which NVIDIA's driver offers a node's GPUs, its name there, and the taint of a bad one
RULES, SLICES = "/apis/resource.k8s.io/v1beta2/devicetaintrules", "/apis/resource.k8s.io/v1/resourceslices"
DRIVER, BAD_GPU = "gpu.nvidia.com", "ironburst.io/bad-gpu"
MIRROR = "kubernetes.io/config.mirror"  # annotation of a static pod's image in the API; its value is the pod's own uid
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
ANSWER_S = 10.0  # so long the API server may take
GATE_S = 180.0  # so long the gate may take; it has limits of its own
TOKEN_S = 30.0  # so long the cloud's metadata service may take
PAUSE_S = 2.0
WORDS = 600  # characters of the gate's reason
FREE_S, GRACE_S, LOOK_S = 60.0, 10.0, 0.2  # for `free`: in all, until it kills, and between two looks
# The control group of a pod's processes, by systemd's names and by cgroupfs's; a static pod's uid has no dashes
POD = re.compile(r"/kubepods\b.*?pod([0-9a-f]{8}(?:[_-][0-9a-f]{4}){3}[_-][0-9a-f]{12}|[0-9a-f]{32})(?=[./\n]|$)")
DEVICE = re.compile(r"/dev/(nvidia(\d+|ctl|-uvm|-nvswitch|-caps)|dri/render)")
OFFERED = re.compile(r"nvidia\.com/(gpu|mig-.*)$")  # resources of NVIDIA's device plugin: GPUs and their instances


class Failed(Exception):
    """Why it could not be done; one sentence."""


# ---- what is decided: values in, values out


def is_workload(pod):
    """Whether a pod (JSON) keeps its node: of no DaemonSet, not static, not finished."""
    meta = pod["metadata"]
    owners = [owner["kind"] for owner in meta.get("ownerReferences") or [] if owner.get("controller")]
    static = MIRROR in (meta.get("annotations") or {}) or "Node" in owners
    finished = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    return not (static or finished or "DaemonSet" in owners)


def uids(pods):
    """By which the processes of pods are known on the node: a static one's are under a uid that the API doesn't use."""
    metas = [pod["metadata"] for pod in pods]
    return sorted(
        {meta["uid"] for meta in metas} | {(meta.get("annotations") or {}).get(MIRROR) for meta in metas} - {None}
    )


def shown(node, pods):
    """The line of `show`."""
    beat = (node["metadata"].get("annotations") or {}).get(BEAT, "")
    state = "ALLOCATED" if any(is_workload(pod) for pod in pods) else "IDLE"
    others = ",".join(uids([pod for pod in pods if not is_workload(pod)]))
    return "NodeName={} State={} Comment={} Others={}".format(
        node["metadata"]["name"], state, "".join(beat.split()), others
    )


def word_of(status, text):
    """(status, reason, message) of the condition, of the gate's exit status (None: it gave no answer; `text` says why)
    and of what it printed. Only a report that passed, with status 0, is a pass.
    """
    try:
        report = json.loads(text)
        failed = [finding["text"] for finding in report["findings"] if not finding["passed"]]
        if status == 0 and report["passed"] is True and not failed and report["findings"]:
            return "True", "GatePassed", "the health gate has passed"
        if status is not None and report["passed"] is False:
            return "False", "GateFailed", ("; ".join(failed) or "the gate gives no reason")[:WORDS]
    except (ValueError, KeyError, TypeError):
        pass
    said = " ".join(text.split())[-WORDS:] or "nothing"
    return "Unknown", "GateSilent", "the gate gave no word (exit status {}): {}".format(status, said)[:WORDS]


def bad_gpus(text):
    """(UUIDs, whether nothing else is bad) of a report of the gate."""
    failed = [finding.get("gpus") or [] for finding in json.loads(text)["findings"] if not finding["passed"]]
    return {uuid for gpus in failed for uuid in gpus}, all(failed)


def offered_devices(slices):
    """{name of a device: UUID of its GPU} of a node's ResourceSlices (JSON); a MIG instance is its GPU's."""
    found = {}
    for each in slices:
        for device in each["spec"].get("devices") or []:
            attributes = device.get("attributes") or {}
            uuid = attributes.get("parentUUID") or attributes.get("uuid") or {}
            found[device["name"]] = uuid.get("string", "")
    return found


def rule_of(node, device):
    """The DeviceTaintRule that keeps a device of a node from claims. Who has it keeps it."""
    selector = {"driver": DRIVER, "pool": node, "device": device}
    taint = {"key": BAD_GPU, "value": "gate-failed", "effect": "NoSchedule"}
    return {
        "apiVersion": "resource.k8s.io/v1beta2",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "ironburst-{}-{}".format(node, device)},
        "spec": {"deviceSelector": selector, "taint": taint},
    }


def condition(word, before, now):
    """The condition as it is written. `before`: the Node's present one, or None; `now`: "2026-11-21T10:00:00Z"."""
    status, reason, message = word
    same = before and before.get("status") == status
    since = (before or {}).get("lastTransitionTime") if same else now
    words = {"type": CONDITION, "status": status, "reason": reason, "message": message}
    return dict(words, lastHeartbeatTime=now, lastTransitionTime=since or now)


def unready(node, gpus):
    """Why a Node (JSON) is not to take pods yet; empty: it is ready, its gate has passed, and it offers `gpus` GPUs or
    instances. A device plugin announces them some seconds after kubelet's start; where claims hand them out, there is
    no such resource.
    """
    status = node.get("status") or {}
    known = {each.get("type"): each for each in status.get("conditions") or []}
    for kind in ("Ready", CONDITION):
        each = known.get(kind) or {}
        if each.get("status") != "True":
            return "{} is {}: {}".format(kind, each.get("status", "unheard"), each.get("message") or "it said nothing")
    if any(OFFERED.match(name) for name in status.get("capacity") or {}):
        offered = status.get("allocatable") or {}
        count = sum(int(amount) for name, amount in offered.items() if OFFERED.match(name) and str(amount).isdigit())
        if count < gpus:
            return "its device plugin offers {} of {} GPUs".format(count, gpus)
    return ""


# ---- the API server, and the node


class Api:
    """The API server, as kubelet of this node."""

    def __init__(self):
        path = ROOT / "etc/ironburst/cluster.json"
        try:
            settings = json.loads(path.read_text())
            self.node, self.server = settings["node"], settings["api_server"].rstrip("/")
            self.taints_devices = settings.get("device_taints") is True
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise Failed("{} says nothing usable of the cluster: {!r}".format(path, error)) from None
        try:
            context = ssl.create_default_context(cafile=str(ROOT / "etc/ironburst/cluster-ca.crt"))
        except (OSError, ValueError) as error:  # ssl's errors are OSErrors
            raise Failed("etc/ironburst/cluster-ca.crt can't be used: {}".format(error)) from None
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # Python 3.13 refuses authorities that kubelet takes
        command = sign_in()
        self.token = token_of(command) if command else ""
        if not self.token:
            load_certificate(context)
        https = urllib.request.HTTPSHandler(context=context)
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), https)
        self.path = "/api/v1/nodes/" + urllib.parse.quote(self.node, safe="")

    def call(self, path, body=None, kind=MERGE, method=None):
        """The JSON of a GET, or of a PATCH with a body, or of another method. Raises Failed."""
        data = None if body is None else json.dumps(body).encode()
        method = method or ("GET" if body is None else "PATCH")
        request = urllib.request.Request(self.server + path, data, method=method)
        request.add_header("Content-Type", kind)
        if self.token:
            request.add_header("Authorization", "Bearer " + self.token)
        try:
            with self.opener.open(request, timeout=ANSWER_S) as answer:
                return json.loads(answer.read().decode())
        except urllib.error.HTTPError as error:
            said = " ".join(error.read().decode(errors="replace").split())
            with contextlib.suppress(ValueError, KeyError, TypeError):
                said = json.loads(said)["message"]
            raise Failed("the API server answers {} for {}: {}".format(error.code, path, said[:WORDS])) from None
        except (OSError, ValueError) as error:
            raise Failed("the API server {} doesn't answer: {}".format(self.server, error)) from None

    def pods(self):
        """Those of this node; the API server gives it no others."""
        query = urllib.parse.urlencode({"fieldSelector": "spec.nodeName=" + self.node})
        return self.call("/api/v1/pods?" + query)["items"] or []


def load_certificate(context):
    """kubelet's own. Raises Failed."""
    certificate = ROOT / "var/lib/kubelet/pki/kubelet-client-current.pem"
    try:
        context.load_cert_chain(str(certificate))
    except (OSError, ValueError) as error:
        raise Failed("kubelet has no certificate yet ({}): {}".format(certificate, error)) from None


def sign_in():
    """The command that gives kubelet a token, by the instance's role; None: kubelet has a certificate, or none yet."""
    try:
        user = json.loads((ROOT / "etc/kubernetes/kubelet.conf").read_text())["users"][0]["user"]
        return [user["exec"]["command"]] + user["exec"]["args"]
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return None


def token_of(command):
    """What it gives. Raises Failed."""
    pipe = subprocess.PIPE
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, timeout=TOKEN_S)
        return json.loads(done.stdout.decode())["status"]["token"]
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failed("{} gives no token: {}".format(command[0], error)) from None
    except (ValueError, KeyError, TypeError):
        said = " ".join(done.stderr.decode(errors="replace").split())
        raise Failed("the node can't sign in to its cluster: {}".format(said[:WORDS] or "no token")) from None


def run_gate():
    """(exit status, what it printed) of the health gate now; status None: there is no answer, and the text says why."""
    pipe = subprocess.PIPE
    command = [GATE_PROGRAM, "--json"]
    try:
        gate = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, start_new_session=True)
    except OSError as error:
        return None, "{} can't be run: {}".format(GATE_PROGRAM, error.strerror)
    try:
        said, complaint = gate.communicate(timeout=GATE_S)
    except subprocess.TimeoutExpired:
        os.killpg(gate.pid, 9)  # one that can't even be killed is left behind
        return None, "it did not end in {:g} s".format(GATE_S)
    return gate.returncode, (said or complaint).decode(errors="replace")


def gate(wait_s):
    """Write the condition. The Node may be there only some seconds after kubelet has started."""
    status, text = run_gate()
    word, end = word_of(status, text), time.monotonic() + wait_s
    while True:
        try:
            api = Api()
            conditions = (api.call(api.path).get("status") or {}).get("conditions") or []
            before = next((each for each in conditions if each.get("type") == CONDITION), None)
            if api.taints_devices and word[0] != "Unknown":
                word = with_taints(api, word_of(status, text), *bad_gpus(text))
            now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            new = condition(word, before, now)
            api.call(api.path + "/status", {"status": {"conditions": [new]}}, STRATEGIC)
            break
        except Failed as error:
            if time.monotonic() + PAUSE_S > end:
                told = "{} is {} ({}), and that could not be told: {}".format(CONDITION, word[0], word[2], error)
                raise Failed(told) from None
        time.sleep(PAUSE_S)
    print("{} is {}: {}".format(CONDITION, word[0], word[2]))
    forget_token()


def with_taints(api, word, bad, alone):
    """The word, when the taints of the node's devices are as these bad GPUs want them: True also where they `alone` are
    bad, all of them are kept from claims, and others are left.
    """
    try:
        query = urllib.parse.urlencode({"fieldSelector": "spec.nodeName=" + api.node})
        slices = [each for each in api.call(SLICES + "?" + query)["items"] if each["spec"]["driver"] == DRIVER]
        devices = offered_devices(slices)
        wanted = {device for device, uuid in devices.items() if uuid in bad}
        write_taints(api, wanted)
    except Failed as error:
        return word[0], word[1], "{}; the taints of its GPUs could not be written: {}".format(word[2], error)[:WORDS]
    if word[0] == "False" and alone and bad <= set(devices.values()) and len(wanted) < len(devices):
        said = "{} of its {} devices are kept from claims: {}".format(len(wanted), len(devices), word[2])
        return "True", "GpusTainted", said[:WORDS]
    return word


def write_taints(api, wanted):
    """A rule for each of these devices of this node, and none for others."""
    spec = "deviceSelector"
    ours = {
        each["metadata"]["name"]: each["spec"][spec].get("device")
        for each in api.call(RULES)["items"]
        if each["spec"]["taint"]["key"] == BAD_GPU and (each["spec"].get(spec) or {}).get("pool") == api.node
    }
    for device in sorted(wanted - set(ours.values())):
        api.call(RULES, rule_of(api.node, device), "application/json", "POST")
    for name in sorted(name for name, device in ours.items() if device not in wanted):
        api.call(RULES + "/" + urllib.parse.quote(name, safe=""), method="DELETE")


def forget_token():
    """The node has its own certificate, so the secret to join is of no use any more."""
    bootstrap = ROOT / "etc/kubernetes/bootstrap-kubelet.conf"
    if (ROOT / "etc/ironburst/kubelet.yaml").exists() and bootstrap.exists():  # else somebody else's
        bootstrap.unlink()


def show():
    """The line for ironburst-dead-man."""
    api = Api()
    print(shown(api.call(api.path), api.pods()))


def cordon():
    """No pod is to start here."""
    api = Api()
    api.call(api.path, {"spec": {"unschedulable": True}})


def idle():
    """Raises Failed with what runs here."""
    names = ["{namespace}/{name}".format(**pod["metadata"]) for pod in Api().pods() if is_workload(pod)]
    others = [name for name in namespaces() if name != "k8s.io"]
    if names:
        more = " and {} more".format(len(names) - 3) if len(names) > 3 else ""
        raise Failed("pods run here: {}{}".format(", ".join(sorted(names)[:3]), more))
    if others:
        raise Failed("containers run here beside Kubernetes' own, of containerd's namespace {}".format(others[0]))


def ready(gpus):
    """Raises Failed with what is missing."""
    api = Api()
    missing = unready(api.call(api.path), gpus)
    if missing:
        raise Failed("Node {}: {}".format(api.node, missing))


def groups():
    """{process id: its control groups} of all processes."""
    found = {}
    for path in (ROOT / "proc").glob("[0-9]*/cgroup"):
        with contextlib.suppress(OSError):  # it has just ended
            found[int(path.parent.name)] = path.read_text()
    return found


def holds_gpu(pid):
    """Whether a process has a GPU open."""
    for path in (ROOT / "proc" / str(pid) / "fd").glob("*"):
        with contextlib.suppress(OSError):
            if DEVICE.match(os.readlink(str(path))):
                return True
    return False


def holders():
    """{process id: (its control groups, uid of its pod)} of what holds a GPU and is of a pod."""
    found = {pid: (group, POD.search(group)) for pid, group in groups().items()}
    pods = {pid: (group, match.group(1).replace("_", "-")) for pid, (group, match) in found.items() if match}
    return {pid: value for pid, value in pods.items() if holds_gpu(pid)}


def kept():
    """uids of the pods that keep no node."""
    return set(uids([pod for pod in Api().pods() if not is_workload(pod)]))


def services():
    """The process ids."""
    others = kept()
    print(" ".join(str(pid) for pid, (_, uid) in sorted(holders().items()) if uid in others))


def free():
    """Without kubelet nobody starts them again. First they are asked to end; process 1 of a container may not hear."""
    if subprocess.call(["systemctl", "is-active", "--quiet", "kubelet"]) == 0:
        raise Failed("kubelet runs, and would start again what is ended: stop it first")
    others, began = kept(), time.monotonic()
    while True:
        held = holders()
        strangers = sorted(uid for _, uid in held.values() if uid not in others)
        if strangers:
            raise Failed("a pod of a workload holds a GPU, of uid {}: drain the node first".format(strangers[0]))
        if not held:
            return
        waited = time.monotonic() - began
        if waited > FREE_S:
            raise Failed("process {} holds a GPU, and doesn't end".format(sorted(held)[0]))
        containers = {group for group, _ in held.values()}
        for pid, group in groups().items():
            if group in containers:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL if waited > GRACE_S else signal.SIGTERM)
        time.sleep(LOOK_S)


def namespaces():
    """containerd's, of the containers that run: k8s.io, moby (Docker)."""
    for path in (ROOT / "proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace").split("\0")
        except OSError:  # it has just ended
            continue
        if "containerd-shim" in os.path.basename(words[0]) and "-namespace" in words[:-1]:
            yield words[words.index("-namespace") + 1]


def main(argv=None):
    """The exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = {"show": show, "cordon": cordon, "idle": idle, "services": services, "free": free}
    parser.add_argument("verb", choices=("gate", "ready", *verbs))
    parser.add_argument("--wait", type=float, default=0, metavar="SECONDS")
    parser.add_argument("--gpus", type=int, default=0, metavar="NUMBER")
    arguments = parser.parse_args(argv)
    try:
        if arguments.verb == "gate":
            gate(arguments.wait)
        elif arguments.verb == "ready":
            ready(arguments.gpus)
        else:
            verbs[arguments.verb]()
    except Failed as error:
        print("ironburst-kubelet: {}".format(error), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
