#!/usr/bin/python3
"""STAND-IN for cloud-init, in the lab's stock image: what it does with EC2's or Google's metadata at the first boot of
an instance, as far as the lab uses it. Whose they are is in DMI, as cloud-init's ds-identify has it.

cloud-init init              new instance: host keys, which go to the console, the login user's keys, user data's runcmd
cloud-init status [--wait]   whether that is done
"""

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

SERVICE = "http://169.254.169.254/latest"
STATE = Path("/var/lib/cloud")
DONE = Path("/run/cloud-init/result.json")
SETTINGS = Path("/etc/cloud/cloud.cfg")
REFUSED = 'command="echo Please login as the user {} rather than the user root; sleep 10; exit 142" '


def get(path, token):
    request = urllib.request.Request(f"{SERVICE}/{path}", headers={"X-aws-ec2-metadata-token": token})
    try:
        return urllib.request.urlopen(request, timeout=5).read().decode()
    except urllib.error.HTTPError:
        return ""


def google(path):
    url = f"http://169.254.169.254/computeMetadata/v1/{path}"
    try:
        asked = urllib.request.Request(url, headers={"Metadata-Flavor": "Google"})
        return urllib.request.urlopen(asked, timeout=5).read().decode()
    except urllib.error.HTTPError:
        return ""


def of_google(user):
    """As DataSourceGCE: of the lines `USER:KEY` of instance and project those of the image's own user."""
    lines = google("instance/attributes/ssh-keys") + "\n" + google("project/attributes/ssh-keys")
    keys = [line.partition(":")[2] for line in lines.splitlines() if line.partition(":")[0] in (user, "cloudinit")]
    return google("instance/id"), [key.strip() for key in keys], cloud_config(google("instance/attributes/user-data"))


def metadata(user):
    """(instance id, public keys, user data); of an instance without the service only a made-up id."""
    if Path("/sys/class/dmi/id/product_name").read_text().strip() == "Google Compute Engine":
        return of_google(user)
    headers = {"X-aws-ec2-metadata-token-ttl-seconds": "60"}
    try:
        asked = urllib.request.Request(f"{SERVICE}/api/token", method="PUT", headers=headers)
        token = urllib.request.urlopen(asked, timeout=5).read().decode()
    except OSError:
        return "iid-datasource-none", [], {}
    keys = [
        get(f"meta-data/public-keys/{line.split('=')[0]}/openssh-key", token)
        for line in get("meta-data/public-keys/", token).split()
    ]
    told = cloud_config(get("user-data", token))
    return get("meta-data/instance-id", token), [key.strip() for key in keys if key.strip()], told


def cloud_config(text):
    """It is YAML, of which JSON is a part: no other is read here."""
    return json.loads(text.split("\n", 1)[1]) if text.startswith("#cloud-config\n{") else {}


def authorize(home, owner, keys, prefix=""):
    folder = Path(home, ".ssh")
    folder.mkdir(mode=0o700, exist_ok=True)
    (folder / "authorized_keys").write_text("".join(f"{prefix}{key}\n" for key in keys))
    (folder / "authorized_keys").chmod(0o600)
    for path in (folder, folder / "authorized_keys"):
        shutil.chown(path, owner, owner)


def make_host_keys():
    for path in Path("/etc/ssh").glob("ssh_host_*"):
        path.unlink()
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "/etc/ssh/ssh_host_ed25519_key"], check=True)


def show_host_keys():
    keys = "".join(path.read_text() for path in sorted(Path("/etc/ssh").glob("ssh_host_*.pub")))
    with Path("/dev/ttyS0").open("a") as console:
        console.write(f"-----BEGIN SSH HOST KEY KEYS-----\n{keys}-----END SSH HOST KEY KEYS-----\n")


def init():
    user = json.loads(SETTINGS.read_text())["system_info"]["default_user"]["name"]
    instance, keys, told = metadata(user)
    known = STATE / "data/instance-id"
    if not known.exists() or known.read_text() != instance:
        make_host_keys()
        keys += told.get("ssh_authorized_keys", [])
        authorize(f"/home/{user}", user, keys)
        authorize("/root", "root", keys, REFUSED.format(user))
        for command in told.get("runcmd", []):
            subprocess.run(command)
        for path, text in {known: instance, STATE / "instance/user-data.txt": json.dumps(told)}.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        show_host_keys()
    with Path("/var/log/cloud-init.log").open("a") as log:
        log.write(f"{instance}: {len(keys)} keys for {user}\n")
    DONE.parent.mkdir(exist_ok=True)
    DONE.write_text("{}")


def status(wait):
    while wait and not DONE.exists():
        time.sleep(0.1)
    print("status: done" if DONE.exists() else "status: running")


if __name__ == "__main__":
    os.umask(0o022)
    if sys.argv[1:2] == ["init"]:
        init()
    elif sys.argv[1:2] == ["status"]:
        status("--wait" in sys.argv)
    else:
        sys.exit("usage: cloud-init init | status [--wait]")
