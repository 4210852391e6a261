#!/usr/bin/python3
"""STAND-IN for cloud-init, in the lab's stock image: what it does with EC2's, Google's or Azure's metadata at the first
boot of an instance, as far as the lab uses it. Whose they are is in DMI, as cloud-init's ds-identify has it.

cloud-init init              new instance: host keys, which go to the console, the login user's keys, user data's runcmd
cloud-init status [--wait]   whether that is done
"""

import base64
import json
import os
import re
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
MORE_SETTINGS = Path("/etc/cloud/cloud.cfg.d")
AZURE_CHASSIS = "7783-7084-3265-9085-8269-3286-77"
WIRE_SERVER = "http://168.63.129.16/machine"
HEALTH = """<?xml version="1.0" encoding="utf-8"?><Health><GoalStateIncarnation>{}</GoalStateIncarnation><Container>
<ContainerId>{}</ContainerId><RoleInstanceList><Role><InstanceId>{}</InstanceId><Health><State>Ready</State></Health></Role>
</RoleInstanceList></Container></Health>"""
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
    told = cloud_config(google("instance/attributes/user-data"))
    return user, google("instance/id"), [key.strip() for key in keys], told


def of_azure():
    """As DataSourceAzure: the user is the machine's, and user data are read where there is no custom data."""
    url = "http://169.254.169.254/metadata/instance?api-version=2021-08-01"
    asked = urllib.request.Request(url, headers={"Metadata": "true"})
    its = json.load(urllib.request.urlopen(asked, timeout=5))["compute"]
    told = cloud_config(base64.b64decode(its["userData"]).decode())
    return its["osProfile"]["adminUsername"], its["vmId"], [each["keyData"].strip() for each in its["publicKeys"]], told


def report_ready():
    """To Azure, for which a machine isn't up before."""
    headers = {"x-ms-version": "2012-11-30", "x-ms-agent-name": "WALinuxAgent"}
    asked = urllib.request.Request(f"{WIRE_SERVER}/?comp=goalstate", headers=headers)
    goal = urllib.request.urlopen(asked, timeout=5).read().decode()
    ids = [re.search(f"<{key}>(.*?)</{key}>", goal)[1] for key in ("Incarnation", "ContainerId", "InstanceId")]
    said = HEALTH.format(*ids).encode()
    urllib.request.urlopen(urllib.request.Request(f"{WIRE_SERVER}?comp=health", said, headers), timeout=5).read()


def metadata(user):
    """(user, instance id, public keys, user data); of an instance without the service only a made-up id."""
    if in_azure():
        return of_azure()
    if dmi("product_name") == "Google Compute Engine":
        return of_google(user)
    headers = {"X-aws-ec2-metadata-token-ttl-seconds": "60"}
    try:
        asked = urllib.request.Request(f"{SERVICE}/api/token", method="PUT", headers=headers)
        token = urllib.request.urlopen(asked, timeout=5).read().decode()
    except OSError:
        return user, "iid-datasource-none", [], {}
    keys = [
        get(f"meta-data/public-keys/{line.split('=')[0]}/openssh-key", token)
        for line in get("meta-data/public-keys/", token).split()
    ]
    told = cloud_config(get("user-data", token))
    return user, get("meta-data/instance-id", token), [key.strip() for key in keys if key.strip()], told


def dmi(name):
    return Path("/sys/class/dmi/id", name).read_text().strip()


def in_azure():
    return dmi("chassis_asset_tag") == AZURE_CHASSIS


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


def make_user(user):
    """With sudo; the image's own is there."""
    if subprocess.run(["id", user], capture_output=True).returncode:
        subprocess.run(["useradd", "--create-home", "--shell", "/bin/bash", user], check=True)
        with Path("/etc/sudoers.d/90-cloud-init-users").open("a") as sudoers:
            sudoers.write(f"{user} ALL=(ALL) NOPASSWD:ALL\n")


def make_host_keys():
    for path in Path("/etc/ssh").glob("ssh_host_*"):
        path.unlink()
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "/etc/ssh/ssh_host_ed25519_key"], check=True)


def show_host_keys():
    keys = "".join(path.read_text() for path in sorted(Path("/etc/ssh").glob("ssh_host_*.pub")))
    with Path("/dev/ttyS0").open("a") as console:
        console.write(f"-----BEGIN SSH HOST KEY KEYS-----\n{keys}-----END SSH HOST KEY KEYS-----\n")


def init():
    settings = json.loads(SETTINGS.read_text())
    for more in sorted(MORE_SETTINGS.glob("*.cfg")):
        if (text := more.read_text()).startswith("{"):
            settings |= json.loads(text)
    user, instance, keys, told = metadata(settings["system_info"]["default_user"]["name"])
    known = STATE / "data/instance-id"
    if not known.exists() or known.read_text() != instance:
        make_host_keys()
        keys += settings.get("ssh_authorized_keys", []) + told.get("ssh_authorized_keys", [])
        make_user(user)
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
    if in_azure():
        report_ready()


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
