"""Google's rented node on real hosts, the demo in Google Cloud in short: it boots as a machine of Google's, joins with
the key that its own service account reads, tells that it is taken back, and has itself deleted, disk and all, when its
controller is silent for ever. Real systemd, Slurm and munge, the role's own programs and units; the APIs are
lab/google.
"""

import json
import os
import secrets
import sys

import pytest

from ironburst.adapters.slurm.scheduler import Slurm
from ironburst.config.google import rights
from ironburst.controller.notices import TAKEN_BACK
from lab import names
from lab.hosts import spec
from lab.hosts.host import SSH_OPTIONS
from lab.hosts.rootfs import ssh_key
from lab.site import Site
from lab.system import wait_for
from tests import sites
from tests.lab.test_rented_node import CLOUD_ROLE, CONFIG, install, put, role_files

pytestmark = pytest.mark.lab
BAKER, IMAGE, PROJECT, REGION = "ib-baker", "node-image", "lab-project", "us-central1"
EMAIL = f"ib-lab-nodes@{PROJECT}.iam.gserviceaccount.com"
SUBNET = f"projects/{PROJECT}/regions/{REGION}/subnetworks/nodes"
DEAD_MAN_S = 8
DECLARED = {
    "gcp:compute/network:Network": {"name": "n"},
    "gcp:compute/subnetwork:Subnetwork": {"name": "nodes", "network": "n", "ipCidrRange": str(names.VPC_NETWORK)},
    "gcp:projects/iAMCustomRole:IAMCustomRole": {"roleId": "ends", "permissions": list(rights.ENDING)},
    "gcp:projects/iAMMember:IAMMember": {
        "role": f"projects/{PROJECT}/roles/ends",
        "member": f"serviceAccount:{EMAIL}",
        "condition": {"expression": rights.of_names("lab")},
    },
    "gcp:secretmanager/secretIamMember:SecretIamMember": {
        "secretId": "munge-key",
        "role": "roles/secretmanager.secretAccessor",
        "member": f"serviceAccount:{EMAIL}",
    },
}
DECLARE = """import json, sys, urllib.request as web
for token, said in json.loads(sys.argv[1]).items():
    web.urlopen(f"http://10.78.0.1:5002/lab/declared/{token}", json.dumps(said).encode(), timeout=30).read()
"""
LAUNCH = """import json, sys
from google.auth.credentials import AnonymousCredentials
from ironburst.adapters.google.api import Api
from ironburst.adapters.google.cloud import Google
from ironburst.ports import LaunchRequest
api = Api("lab-project", credentials=AnonymousCredentials(), endpoint="http://10.78.0.1:5002/compute/v1/")
(made,) = Google(api, "us-central1").launch_all([LaunchRequest(**json.loads(sys.argv[1]))])
print(json.dumps([each.id for each in made]))
"""
METADATA = "timeout 5 python3 -c \"import urllib.request as u; u.urlopen('http://169.254.169.254/', timeout=3)\" 2>&1"


class Lab:
    """A head with a slurmctld, Google's APIs, and an image of rented nodes."""

    def __init__(self, site):
        self.site = site
        key = ["ssh", "-i", str(ssh_key(site.box.root)), *SSH_OPTIONS]
        self.slurm = Slurm([*site.box.net_prefix(), *key, "root@10.78.0.10"])

    def inside(self, *command):
        done = self.site.run([sys.executable, *command], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if done.stdout.strip() else None

    def control(self, verb, path, **body):
        return self.inside("-m", "lab.aws.client", verb, path, *([json.dumps(body)] if verb == "POST" else []))

    def ready(self):
        command = [sys.executable, "-m", "lab.aws.client", "GET", "/lab/health"]
        return self.site.run(command, capture_output=True).returncode == 0

    def launch(self, node, market):
        """Power up in Slurm, then launch by the adapter: the instance's id."""
        said = {"ironburst": 1, "cluster": "lab", "nodes": [node], "conf_server": "10.78.0.10", "region": REGION}
        said |= {"munge_key": f"google-secretmanager:{PROJECT}/munge-key"}
        said |= {"dead_man_s": DEAD_MAN_S if market == "on-demand" else 100_000, "hard_limit_s": 3600}
        self.slurm.power_up([node])
        wait_for(lambda: self.slurm.observe().node(node).has("POWERING_UP"), 60, f"{node} powering up", pause=0.3)
        place = {"machine_type": "a3-highgpu-8g", "boot_disk_type": "pd-balanced", "boot_disk_gb": 100}
        place |= {"network_interfaces": [{"subnetwork": SUBNET}], "service_account": EMAIL}
        asked = {"token": f"t-{node}", "launch": node, "cluster": "lab", "pool": "p5", "zone": f"{REGION}-a"}
        asked |= {"market": market, "count": 1, "place": place, "user_data": json.dumps(said)}
        (made,) = self.inside(
            "-c", LAUNCH, json.dumps(asked | {"image_id": f"projects/{PROJECT}/global/images/{IMAGE}"})
        )
        return made

    def joined(self, name):
        def registered():
            node = self.slurm.observe().node(name)
            return node.has("IDLE") and not node.has("POWERING_UP") and not node.has("POWERED_DOWN")

        wait_for(registered, 90, f"{name} to register", pause=0.3)


@pytest.fixture(scope="module")
def lab():
    sites.need_lab()
    site = Site(f"t-gnode-{os.getpid()}")
    site.up(start=["head"], tied=True)
    try:
        site.spawn(
            [sys.executable, "-m", "lab.google", "--prefix", site.prefix, "--root", str(site.box.root)], "google"
        )
        site.start_host(spec.google(BAKER, "10.90.9.1", "a3-highgpu-8g"))
        lab, key = Lab(site), secrets.token_hex(48)
        install(site, "head", "slurmctld", "slurm-client", "munge")
        put(site, "head", {"/etc/slurm/slurm.conf": CONFIG, "/etc/slurm/cgroup.conf": "CgroupPlugin=disabled\n"})
        site.ssh("head", f"mkdir -p /var/spool/ironburst/leases; printf {key} > /etc/munge/munge.key")
        site.ssh("head", "systemctl restart munge slurmctld")
        site.wait([BAKER])
        install(site, BAKER, "slurmd", "slurm-client", "munge", "nftables")
        notice = {
            f"/{where}": (CLOUD_ROLE / "files" / name).read_text()
            for where, name in {
                "usr/local/sbin/ironburst-notice": "ironburst-notice.py",
                "etc/systemd/system/ironburst-notice.service": "ironburst-notice.service",
            }.items()
        }
        put(site, BAKER, role_files("google") | notice)
        units = (
            "ironburst-metadata ironburst-join ironburst-dead-man.timer ironburst-notice munge ironburst-data slurmd"
        )
        site.ssh(
            BAKER,
            "rm -f /etc/munge/munge.key; useradd --uid 1500 --create-home --shell /bin/bash alice;"
            f"chmod 755 /usr/local/sbin/ironburst-*; systemctl daemon-reload; systemctl enable -q {units}",
        )
        site.bake_image(BAKER, IMAGE)
        site.destroy_host(BAKER)
        wait_for(lab.ready, 30, "the cloud")
        lab.control("POST", "/lab/images", name=IMAGE)
        lab.control("POST", "/lab/secrets", name=f"projects/{PROJECT}/secrets/munge-key", value=key)
        lab.inside("-c", DECLARE, json.dumps(DECLARED))
        yield lab
    finally:
        site.down()


def test_a_node_joins_is_taken_back_or_deletes_itself(lab):
    spot, alone = lab.launch("p5-1", "spot"), lab.launch("p5-2", "on-demand")
    host = lab.site.host(spot.split("/")[1])
    lab.joined("p5-1")
    assert host.ssh("cat /sys/class/dmi/id/product_name").stdout.strip() == "Google Compute Engine"
    assert "HTTP Error 403" in host.ssh(METADATA, check=False).stdout  # it lacks Google's header, and is root's
    assert "HTTP Error" not in host.ssh(f"runuser -u alice -- {METADATA}", check=False).stdout

    # nobody beats for the other one: it has itself deleted, by its own account, whatever Google's default would leave
    def instances():
        return [each["instance_id"] for each in lab.control("GET", "/lab/instances")]

    wait_for(lambda: alone not in instances(), 120, f"the end of {alone}", pause=0.5)
    assert instances() == [spot]

    lab.slurm.beat({"p5-1": 3600}, 1.0)
    job = "sbatch --parsable --nodelist=p5-1 --time=10 --output=/dev/null --wrap='sleep 600'"
    lab.site.ssh("head", f"cd /shared/alice && runuser -u alice -- {job}")
    running = "squeue -h -t running -o %N"
    wait_for(lambda: "p5-1" in lab.site.ssh("head", running).stdout, 60, "the job to start", pause=0.3)
    lab.control("POST", "/lab/interrupt", instance_id=spot, notice_s=5)
    reason = f"{TAKEN_BACK} (preempted): {spot}"
    wait_for(lambda: lab.slurm.observe().node("p5-1").reason == reason, 60, "the notice in Slurm", pause=0.2)
    wait_for(lambda: not instances(), 60, f"the end of {spot}", pause=0.5)
    left = lab.control("GET", "/lab/leftovers")
    assert not left.keys() & {"instances", "disks", "network interfaces", "addresses", "reservations in use"}, left
    wait_for(lambda: len(lab.site.hosts()) == 3, 30, "the end of both hosts", pause=0.2)
