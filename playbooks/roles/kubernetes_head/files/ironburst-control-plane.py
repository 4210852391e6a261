#!/usr/bin/python3
"""ironburst-control-plane: what a control plane that kubeadm made needs while nobody looks at it. Run it as root.

backup --folder DIR --keep N  a snapshot of etcd and all of /etc/kubernetes (certificates, keys, manifests) as one file,
                              control-plane-<time>.tar, which root alone may read; the newest N are kept
renew --days N                if a certificate is good for fewer than N days: kubeadm renews all, and the parts of the
                              control plane start anew with them, one after the other
check --folder DIR            status 0: no certificate ends within 30 days, and there is a backup of the last two days

Exit status 1: it could not be done, or something is wrong; one sentence on standard error. How a backup is put back:
docs/how-to/kubernetes.md.
"""

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tarfile
import time
from pathlib import Path

ROOT = Path(os.environ.get("IRONBURST_CONTROL_PLANE_ROOT", "/"))  # another root in tests
PARTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
CRICTL = ["crictl", "--runtime-endpoint=unix:///run/containerd/containerd.sock"]
DAY_S = 86400
ENDS_SOON_S = 30 * DAY_S
OLD_S = 2 * DAY_S
ANSWER_S = 120  # so long a program may take
READY_S = 300  # so long a part may take to come back
PAUSE_S = 2


class Failed(Exception):
    """Why it could not be done; one sentence."""


def run(*command):
    """What a program prints. Raises Failed with its last words."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=ANSWER_S, check=False)
    except subprocess.TimeoutExpired:
        raise Failed("{} gave no answer in {} s".format(command[0], ANSWER_S)) from None
    except OSError as error:
        raise Failed("{} can't be run: {}".format(command[0], error.strerror)) from None
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).decode(errors="replace").split())[-600:]
        raise Failed("{} says: {}".format(command[0], said or "nothing, with status {}".format(done.returncode)))
    return done.stdout.decode(errors="replace")


# ---- backups


def data_folder():
    """Where etcd's data is, on the host as in its container."""
    text = (ROOT / "etc/kubernetes/manifests/etcd.yaml").read_text()
    return re.search(r"--data-dir=(\S+)", text).group(1)


def backups(folder):
    """Those that are there, the newest first."""
    return sorted(folder.glob("control-plane-*.tar"), reverse=True)


def backup(folder, keep):
    """Raises Failed."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    inside = "{}/ironburst-snapshot.db".format(data_folder())
    snapshot = ROOT / inside.lstrip("/")
    target = folder / time.strftime("control-plane-%Y%m%dT%H%M%SZ.tar", time.gmtime())
    partial = target.with_suffix(".partial")
    try:
        snapshot_etcd(inside)
        with os.fdopen(os.open(str(partial), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            with tarfile.open(fileobj=file, mode="w") as tar:
                tar.add(str(snapshot), "etcd-snapshot.db")
                tar.add(str(ROOT / "etc/kubernetes"), "etc/kubernetes")
            os.fsync(file.fileno())
        partial.rename(target)
    finally:
        for left in (snapshot, partial):
            with contextlib.suppress(FileNotFoundError):
                left.unlink()
    for old in backups(folder)[keep:]:
        old.unlink()
    print("backed up to {}".format(target))


def snapshot_etcd(path):
    """By etcd's own container: the host has no etcdctl."""
    containers = run(*CRICTL, "ps", "--quiet", "--state=Running", "--name=^etcd$").split()
    if not containers:
        raise Failed("no etcd runs here, so there is nothing to back up")
    pki = "/etc/kubernetes/pki/etcd"
    keys = ["--cacert={}/ca.crt".format(pki)]
    keys += ["--cert={}/healthcheck-client.crt".format(pki), "--key={}/healthcheck-client.key".format(pki)]
    run(
        *CRICTL, "exec", containers[0], "etcdctl", "--endpoints=https://127.0.0.1:2379", *keys, "snapshot", "save", path
    )


# ---- certificates


def certificates():
    """{name: seconds that it is still good for} of those that kubeadm looks after."""
    said = run("kubeadm", "certs", "check-expiration", "--output=json")
    answer = json.loads(said[said.index("{") :])
    every = answer["certificates"] + answer["certificateAuthorities"]
    return {each["name"]: each["residualTime"] for each in every if not (each["missing"] or each["externallyManaged"])}


def renew(days):
    """Raises Failed."""
    left = certificates()
    first = min(left, key=left.get)
    if left[first] >= days * DAY_S:
        print("nothing to renew: {} is the first to end, in {} days".format(first, left[first] // DAY_S))
        return
    run("kubeadm", "certs", "renew", "all")
    for part in PARTS:
        restart(part)
    print("renewed; {} had {} days left".format(first, left[first] // DAY_S))


def pods(part):
    """Ids of a part's static pod, where it runs."""
    label = "--label=component={}".format(part)
    return set(run(*CRICTL, "pods", "--quiet", "--namespace=kube-system", "--state=Ready", label).split())


def restart(part):
    """kubelet makes a static pod anew when its containers are taken away; the manifest stays where it is."""
    before, end = pods(part), time.monotonic() + READY_S
    for pod in before:
        run(*CRICTL, "rmp", "--force", pod)
    while not (pods(part) - before and ready()):
        if time.monotonic() > end:
            raise Failed("{} did not come back in {} s with its new certificate".format(part, READY_S))
        time.sleep(PAUSE_S)


def ready():
    """Whether the API server is."""
    try:
        run("kubectl", "--kubeconfig=/etc/kubernetes/admin.conf", "get", "--raw=/readyz")
    except Failed:
        return False
    return True


def check(folder):
    """Raises Failed with what is wrong."""
    ending = sorted(name for name, left in certificates().items() if left < ENDS_SOON_S)
    if ending:
        raise Failed(
            "certificates end within 30 days: {}; `journalctl -u ironburst-control-plane` says why they were not "
            "renewed".format(", ".join(ending))
        )
    newest = backups(folder)[:1]
    if not newest or time.time() - newest[0].stat().st_mtime > OLD_S:
        raise Failed(
            "there is no backup of the last two days in {}; `journalctl -u ironburst-control-plane` says why".format(
                folder
            )
        )


def main(argv=None):
    """The exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb")
    verbs.required = True
    saving, renewing, checking = (verbs.add_parser(name) for name in ("backup", "renew", "check"))
    for each in (saving, checking):
        each.add_argument("--folder", type=Path, required=True)
    saving.add_argument("--keep", type=int, required=True)
    renewing.add_argument("--days", type=int, required=True)
    given = vars(parser.parse_args(argv))
    try:
        {"backup": backup, "renew": renew, "check": check}[given.pop("verb")](**given)
    except (Failed, OSError, ValueError, KeyError, AttributeError) as error:
        print("ironburst-control-plane: {}".format(error or repr(error)), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
