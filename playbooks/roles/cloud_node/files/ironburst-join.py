#!/usr/bin/python3
"""ironburst-join: at boot a rented node learns its name, its cluster, and the secret to join it.

The launch's user data (JSON: ironburst, nodes, region; for Slurm conf_server, munge_key, hosts; for Kubernetes
scheduler, api_server, ca, join_token or eks, labels; for slurm-bridge all of these) and its place among the launch's
nodes come from the cloud's metadata service, the munge key or the bootstrap token from its store of secrets with the
instance's own credentials (ironburst_cloud.py beside this file is that cloud's); both are asked again until a deadline.
Writes /etc/ironburst/node.env, and for
ironburst-data which data sets the launch names (/etc/ironburst/data.json), and for ironburst-agent where it pushes
metrics to, if the launch names a receiver (/run/ironburst/agent.json);
- for Slurm /etc/munge/munge.key, and the host gets the node's name, which leads to its address, not to 127.0.1.1, so
  that launchers know themselves among the names of a job's nodes; head and login nodes are known by theirs;
- for Kubernetes what kubelet asks for its certificate with (/etc/kubernetes/bootstrap-kubelet.conf, for root alone) and
  where its cluster is (/etc/ironburst/cluster.json, cluster-ca.crt); on EKS, where it signs in by the instance's role
  and under its id, no secret but how (/etc/kubernetes/kubelet.conf).
Exit status 1, and none of them touched, if anything is missing: then neither munge nor slurmd nor kubelet starts. For
ironburst-dead-man it writes what the launch declares (/run/ironburst/dead-man.json), or that this instance is nobody's
rented node and never ends itself.
"""

import contextlib
import json
import os
import pwd
import re
import socket
import sys
import time
import urllib.error
from pathlib import Path

import ironburst_cloud as cloud

ROOT = Path(os.environ.get("IRONBURST_JOIN_ROOT", "/"))  # another root in tests
DEADLINE_S = float(os.environ.get("IRONBURST_JOIN_DEADLINE", "120"))
BOOT_S = 120  # of the longest time from launch to joined: those of the boot itself
SAFE = re.compile(r"^[A-Za-z0-9._:-]+$")
HEADS = re.compile(r"^[A-Za-z0-9._:-]+(,[A-Za-z0-9._:-]+)?$")
SERVER = re.compile(r"^https://[A-Za-z0-9.:\[\]-]+$")
RECEIVER = re.compile(r"^[0-9.]+:[0-9]+$")
ADDRESS = re.compile(r"^[0-9a-fA-F.:]+$")
LABEL = re.compile(r"^([a-z0-9.-]+/)?[A-Za-z0-9._-]+=[A-Za-z0-9._-]*$")
TOKEN = re.compile(r"^[a-z0-9]{6}[.][a-z0-9]{16}$")  # of a bootstrap token


BEGIN, END = "# BEGIN ironburst: this node and its head", "# END ironburst: this node and its head"
# It gives an instance another name at each boot, and may write /etc/hosts anew
CLOUD_INIT = "# Written by ironburst-join\npreserve_hostname: true\nmanage_etc_hosts: false\n"


class JoinError(Exception):
    """Why the node can't join; one sentence."""


class NotRented(JoinError):
    """This instance was launched by somebody else: it is no node, and may stay."""


def launch(end):
    """(user data, place among the launch's nodes), asked until the metadata service answers or the deadline `end`
    (monotonic) is over.
    """
    while True:
        try:
            return cloud.launch()
        except urllib.error.HTTPError as error:
            if error.code == 404 and error.url.endswith("/user-data"):
                raise NotRented(f"the metadata service at {cloud.SERVICE} answers 404 for {error.url}") from None
            if error.code in (401, 403, 404):
                raise JoinError(
                    f"the metadata service at {cloud.SERVICE} answers {error.code} for {error.url}"
                ) from None
            reason = f"HTTP {error.code}"
        except OSError as error:
            reason = str(error)
        if time.monotonic() > end:
            raise JoinError(f"the metadata service at {cloud.SERVICE} did not answer in {DEADLINE_S:g} s: {reason}")
        time.sleep(0.5)


def instance(end):
    """(id, zone, address) of this instance, asked as launch() does. Raises JoinError."""
    while True:
        try:
            return cloud.instance()
        except OSError as error:
            reason = str(error)
        if time.monotonic() > end:
            raise JoinError(f"the metadata service at {cloud.SERVICE} did not say which instance this is: {reason}")
        time.sleep(0.5)


def parse(user_data):
    """The launch's user data. Raises JoinError."""
    try:
        data = json.loads(user_data)
    except ValueError:
        raise NotRented("the user data is not JSON: this instance was not launched by ironburst") from None
    if not isinstance(data, dict) or data.get("ironburst") != 1:
        ours = isinstance(data, dict) and "ironburst" in data
        raise (JoinError if ours else NotRented)(
            "the user data has no `ironburst: 1`: this instance was not launched by an ironburst that this image knows"
        )
    return data


def name_of(data, index):
    """The node's name, of the user data. Raises JoinError."""
    try:
        name = data["nodes"][int(index)]
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise JoinError(f"the user data has no usable nodes for launch index {index}: {error!r}") from None
    if not isinstance(name, str) or not SAFE.match(name):
        raise JoinError(f"the user data names {name!r}, which is no host name")
    return name


def text_of(data, key, form=None, what="text"):
    """What the user data has as `key`. Raises JoinError."""
    value = data.get(key)
    if not isinstance(value, str) or not value or (form and not form.match(value)):
        raise JoinError(f"the user data has {value!r} as {key}, which is no {what}")
    return value


def data_sets(data, region):
    """What ironburst-data is to bring, of the user data: its settings. It has what the boot leaves of the pool's limit.
    Raises JoinError.
    """
    sets = data.get("data") or {}
    if sets and not (ROOT / "usr/local/sbin/ironburst-data").exists():
        named = ", ".join(sorted(sets))
        raise JoinError(f"the launch names data sets ({named}), and this image can't bring any: bake the image anew")
    return {"region": region, "seconds": max(60, data.get("boot_s", 0) - BOOT_S), "sets": sets}


def secret(what, reference, region, end):
    """The bytes behind a reference to the cloud's store, of a text without a trailing newline; asked for until `end`
    (monotonic): a new instance's rights may be unknown for some seconds. `what`: its name in sentences. Raises
    JoinError.
    """
    scheme, _, rest = reference.partition(":")
    if scheme != cloud.SCHEME or not rest:
        raise JoinError(f"a rented node here can only resolve {cloud.SCHEME} references, not {scheme}:")
    name, _, field = rest.partition("#")
    while True:
        try:
            held = cloud.secret(name, region)
            if isinstance(held, bytes) and not field:  # a key that munge made itself is no text
                return held
            return (str(json.loads(held)[field]) if field else held).rstrip("\n").encode()
        except Exception as error:  # a client's errors may be made at run time; the text never holds the secret
            said = f"{type(error).__name__}: {error}"
            if time.monotonic() > end:
                raise JoinError(f"the {what} {reference} does not resolve: {said}") from None
            print(f"join: the {what} does not resolve yet: {said}", file=sys.stderr, flush=True)
        time.sleep(1.0)


# ---- what each scheduler needs: {path: (content, mode, owner)}


def slurm(data, name, region, end):
    """A node of Slurm. Raises JoinError."""
    head = text_of(data, "conf_server", HEADS, "host name or address")
    reference = text_of(data, "munge_key")
    key = secret("munge key", reference, region, end)
    if len(key) < 32:
        raise JoinError(f"the munge key {reference} has {len(key)} bytes; munge wants 32 or more")
    env = f"IRONBURST_NODE={name}\nIRONBURST_CONF_SERVER={head}\n".encode()
    return {
        "etc/munge/munge.key": (key, 0o400, "munge"),
        "etc/ironburst/node.env": (env, 0o644, None),
        "etc/hostname": (f"{name}\n".encode(), 0o644, None),
        "etc/hosts": (hosts(data, name, instance(end)[2]).encode(), 0o644, None),
        "etc/cloud/cloud.cfg.d/90-ironburst-names.cfg": (CLOUD_INIT.encode(), 0o644, None),
    }


def hosts(data, name, address):
    """/etc/hosts of this instance: first the node itself, then head and login nodes, then what is there. Raises
    JoinError.
    """
    given = data.get("hosts") or {}
    if not isinstance(given, dict) or not all(SAFE.match(k) and ADDRESS.match(str(v)) for k, v in given.items()):
        raise JoinError(f"the user data has {given!r} as hosts, which are no names with an address each")
    lines = [BEGIN, f"{address} {name}", *(f"{its} {host}" for host, its in sorted(given.items())), END]
    path = ROOT / "etc/hosts"
    before = re.sub(f"^{BEGIN}\n.*?^{END}\n", "", path.read_text() if path.exists() else "", flags=re.S | re.M)
    return "\n".join(lines) + "\n" + before


def kubernetes(data, name, region, end):
    """A node of Kubernetes. Raises JoinError."""
    if not (ROOT / "usr/local/sbin/ironburst-kubelet").exists():
        raise JoinError("the launch is for Kubernetes, and this image was baked for Slurm: bake the image anew")
    server = text_of(data, "api_server", SERVER, "https URL of a server")
    authority = text_of(data, "ca")
    if "-----BEGIN CERTIFICATE-----" not in authority:
        raise JoinError("the user data has no certificate as ca")
    given = data.get("labels")
    labels = [f"{key}={value}" for key, value in sorted((given if isinstance(given, dict) else {}).items())]
    bad = [label for label in labels if not LABEL.match(label)]
    if bad or not isinstance(given, dict):
        raise JoinError(f"the user data has {(bad or [given])[0]!r} among its labels, which is no label of a node")
    if "eks" in data:
        return of_eks(data, name, region, end)
    reference = text_of(data, "join_token")
    token = secret("bootstrap token", reference, region, end).decode(errors="replace")
    if not TOKEN.match(token):
        raise JoinError(f"the secret {reference} holds no bootstrap token (six letters or digits, a dot, sixteen more)")
    cluster = {"node": name, "api_server": server}
    env = f"IRONBURST_NODE={name}\nIRONBURST_NODE_LABELS={','.join(labels)}\n".encode()
    return {
        "etc/kubernetes/bootstrap-kubelet.conf": (kubeconfig(server, {"token": token}), 0o600, None),
        "etc/ironburst/cluster-ca.crt": (authority.encode(), 0o644, None),
        "etc/ironburst/cluster.json": (json.dumps(cluster).encode(), 0o644, None),
        "etc/ironburst/node.env": (env, 0o644, None),
    }


def of_eks(data, name, region, end):
    """A node of EKS, which knows it by its instance's id; what we call it is a label. Raises JoinError."""
    if not (ROOT / "usr/local/sbin/ironburst-eks").exists():
        raise JoinError("the launch is for EKS, and this image was baked for another cluster: bake the image anew")
    (its_id, zone, address), server = instance(end), data["api_server"]
    cluster = {"node": its_id, "api_server": server, "eks": text_of(data, "eks", SAFE, "name"), "region": region}
    labels = [f"{key}={value}" for key, value in sorted(dict(data["labels"], **{"ironburst.io/node": name}).items())]
    env = [f"IRONBURST_NODE={its_id}", f"IRONBURST_NODE_LABELS={','.join(labels)}"]
    env += [f"IRONBURST_PROVIDER_ID=aws:///{zone}/{its_id}", f"IRONBURST_NODE_IP={address}", ""]
    sign_in = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "/usr/local/sbin/ironburst-eks",
        "args": ["token"],
        "interactiveMode": "Never",
    }
    return {
        "etc/kubernetes/kubelet.conf": (kubeconfig(server, {"exec": sign_in}), 0o600, None),
        "etc/ironburst/cluster-ca.crt": (data["ca"].encode(), 0o644, None),
        "etc/ironburst/cluster.json": (json.dumps(cluster).encode(), 0o644, None),
        "etc/ironburst/node.env": ("\n".join(env).encode(), 0o644, None),
    }


def kubeconfig(server, user):
    """How kubelet signs in, as JSON, which is YAML. `user`: with what."""
    cluster = {"server": server, "certificate-authority": "/etc/ironburst/cluster-ca.crt"}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "cluster", "cluster": cluster}],
        "users": [{"name": "bootstrap", "user": user}],
        "contexts": [{"name": "bootstrap", "context": {"cluster": "cluster", "user": "bootstrap"}}],
        "current-context": "bootstrap",
    }
    return json.dumps(content).encode()


def both(data, name, region, end):
    """A node of Slurm and of the Kubernetes cluster whose pods wait in its queue, by slurm-bridge. Raises JoinError."""
    if not (ROOT / "etc/systemd/system/slurmd.service.d/ironburst.conf").exists():
        raise JoinError("the launch is for slurm-bridge, and this image was baked for Kubernetes: bake the image anew")
    files, more = slurm(data, name, region, end), kubernetes(data, name, region, end)
    env, mode, owner = files["etc/ironburst/node.env"]
    labels = more.pop("etc/ironburst/node.env")[0].split(b"\n")[1]
    return {**files, **more, "etc/ironburst/node.env": (env + labels + b"\n", mode, owner)}


SCHEDULERS = {"slurm": slurm, "kubernetes": kubernetes, "slurm-bridge": both}


def write(path, content, mode, owner=None):
    """Write a file at once, with its mode from the first moment on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(path.name + ".new")
    with contextlib.suppress(FileNotFoundError):
        new.unlink()
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
    if owner:
        user = pwd.getpwnam(owner)
        os.chown(new, user.pw_uid, user.pw_gid)
    new.replace(path)


def declare(**settings):
    """For ironburst-dead-man; dead_man_s None: it never acts here."""
    write(ROOT / "run/ironburst/dead-man.json", json.dumps(settings).encode(), 0o644)


def push(data):
    """Settings of ironburst-agent, where the launch names a receiver of metrics: as they were baked, with its URL."""
    receiver = data.get("receiver")
    if receiver is None:
        return
    try:
        settings = json.loads((ROOT / "etc/ironburst/agent.json").read_text())
        settings["remote_write"][0]["url"] = (
            f"http://{text_of(data, 'receiver', RECEIVER, 'address and port')}/api/v1/write"
        )
        write(ROOT / "run/ironburst/agent.json", json.dumps(settings).encode(), 0o644)
    except (OSError, ValueError, LookupError, TypeError, JoinError) as error:  # a node without metrics is a node
        print(f"join: its metrics are not pushed to {receiver}: {error}; bake the image anew", file=sys.stderr)


def main():
    """The exit status."""
    end = time.monotonic() + DEADLINE_S
    try:
        user_data, index = launch(end)
        data = parse(user_data)
        name, scheduler = name_of(data, index), data.get("scheduler", "slurm")
        limits = {key: data.get(key) for key in ("dead_man_s", "hard_limit_s")}
        declare(node=name, scheduler=scheduler, **limits)
        if not isinstance(scheduler, str) or scheduler not in SCHEDULERS:
            known = ", ".join(SCHEDULERS)
            raise JoinError(f"the launch is for the scheduler {scheduler!r}, and this image knows {known}")
        region = text_of(data, "region")
        data_settings = data_sets(data, region)
        files = SCHEDULERS[scheduler](data, name, region, end)
    except JoinError as error:
        if isinstance(error, NotRented):
            declare(dead_man_s=None)
        print(f"join: {error}", file=sys.stderr)
        return 1
    files["etc/ironburst/data.json"] = (json.dumps(data_settings).encode(), 0o644, None)
    for path, (content, mode, owner) in files.items():
        write(ROOT / path, content, mode, owner if Path("/") == ROOT else None)
    push(data)
    if "etc/hostname" in files and Path("/") == ROOT:
        socket.sethostname(files["etc/hostname"][0].decode().strip())
    print(f"join: this is {name}, of {data.get('conf_server') or data.get('api_server')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
