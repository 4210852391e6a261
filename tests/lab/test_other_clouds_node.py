"""A rented node of Google's and of Azure's on real hosts, the demo there in short: it boots as a machine of that cloud,
joins with the key that its own identity reads, tells that it is taken back, and ends when its controller is silent for
ever: Google's has itself deleted, disk and all; Azure's powers off, and its group's end is tests/adapters/
test_azure_reaper.py's. Real systemd, Slurm and munge, the role's own programs and units; the APIs are the stand-ins'.
"""

import json
import os
import sys

import pytest

from ironburst.config.azure.rights import LAUNCHING, LOOKING, READING_SECRET
from ironburst.config.google import rights
from ironburst.controller.notices import TAKEN_BACK
from lab import names
from lab.hosts import azure_machines, google_instances, spec
from lab.hosts.rootfs import ssh_key
from lab.site import Site
from lab.system import wait_for
from tests import azure_stack, sites
from tests.lab.test_rented_node import CLOUD_ROLE, Rented, install, put, role_files

pytestmark = pytest.mark.lab
BAKER, DEAD_MAN_S = "ib-baker", 8
METADATA = "timeout 5 python3 -c \"import urllib.request as u; u.urlopen('http://169.254.169.254/', timeout=3)\" 2>&1"
DECLARE = """import json, sys, urllib.request as web
print(web.urlopen(f"{sys.argv[1]}/lab/declared/{sys.argv[2]}", sys.argv[3].encode(), timeout=30).read().decode())
"""
PORT = """import json, os, sys
from ironburst.ports import LaunchRequest
{}
if sys.argv[1] == "launch":
    (made,) = port.launch_all([LaunchRequest(**json.loads(sys.argv[2]))])
    print(json.dumps([each.id for each in made] if isinstance(made, list) else [type(made).__name__, str(made)]))
else:
    port.terminate([sys.argv[2]])
"""


class OfGoogle:
    name, program, image, header, url = "google", "lab.google", "node-image", "HTTP Error 403", names.GOOGLE_ENDPOINT
    project, region, zone = google_instances.PROJECT, google_instances.REGION, "us-central1-a"
    email = f"ib-lab-nodes@{google_instances.PROJECT}.iam.gserviceaccount.com"
    image_id = f"projects/{google_instances.PROJECT}/global/images/node-image"
    secret, munge_key = f"projects/{project}/secrets/munge-key", f"google-secretmanager:{project}/munge-key"
    product, reason, paid = (
        "Google Compute Engine",
        "preempted",
        ("instances", "disks", "network interfaces", "addresses"),
    )
    port = PORT.format(f"""from google.auth.credentials import AnonymousCredentials
from ironburst.adapters.google.api import Api
from ironburst.adapters.google.cloud import Google
api = Api("{project}", credentials=AnonymousCredentials(), endpoint="{url}/compute/v1/")
port = Google(api, "{region}")
""")

    def baker(self, _key):
        return spec.google(BAKER, "10.90.9.1", "a3-highgpu-8g")

    def declare(self, lab):
        """Its network, and what its nodes may do; the place of a launch."""
        member = f"serviceAccount:{self.email}"
        for token, said in {
            "gcp:compute/network:Network": {"name": "n"},
            "gcp:compute/subnetwork:Subnetwork": {
                "name": "nodes", "network": "n", "ipCidrRange": str(names.VPC_NETWORK)
            },
            "gcp:projects/iAMCustomRole:IAMCustomRole": {"roleId": "ends", "permissions": list(rights.ENDING)},
            "gcp:projects/iAMMember:IAMMember": {
                "role": f"projects/{self.project}/roles/ends",
                "member": member,
                "condition": {"expression": rights.of_names("lab")},
            },
            "gcp:secretmanager/secretIamMember:SecretIamMember": {
                "secretId": "munge-key", "role": "roles/secretmanager.secretAccessor", "member": member
            },
        }.items():  # fmt: skip
            lab.declare(token, said)
        subnet = f"projects/{self.project}/regions/{self.region}/subnetworks/nodes"
        place = {"machine_type": "a3-highgpu-8g", "boot_disk_type": "pd-balanced", "boot_disk_gb": 100}
        return place | {"network_interfaces": [{"subnetwork": subnet}], "service_account": self.email}

    def ends(self, lab, alone):
        """By its own account, whatever Google's default would leave."""
        wait_for(lambda: alone not in lab.instances(), 120, f"the end of {alone}", pause=0.5)


class OfAzure:
    name, program, image, header = "azure", "lab.azure", "node-image-1.0.0", "HTTP Error 400"
    url, region, zone = names.AZURE_VARIABLES["AZURE_RESOURCE_MANAGER_URL"], azure_machines.REGION, "eastus-1"
    size, subscription = "Standard_ND96isr_H100_v5", f"/subscriptions/{azure_machines.SUBSCRIPTION}"
    group = f"{subscription}/resourceGroups/ironburst-lab"
    image_id = f"{group}/providers/Microsoft.Compute/galleries/ironburst_lab/images/node-image/versions/1.0.0"
    secret, munge_key = "lab-vault/munge-key", "azure-keyvault:lab-vault/munge-key"
    product, paid = "Virtual Machine", ("machines", "interfaces", "disks")
    header_of_head = "the head's"
    port = PORT.format(f"""from ironburst.adapters.azure.api import Api
from ironburst.adapters.azure.cloud import Azure
os.environ |= {{"IDENTITY_ENDPOINT": "{url}/lab/identity", "IDENTITY_HEADER": "{header_of_head}"}}
port = Azure(Api("{azure_machines.SUBSCRIPTION}", endpoint="{url}"), "{region}")
""")

    def baker(self, key):
        return spec.azure(BAKER, "10.90.9.1", self.size, "6f2f1a52-5a0c-5d0e-9f57-6d3f4a3a2d10", key)

    def declare(self, lab):
        """Its network, what its nodes may read, and who may launch; the place of a launch."""
        here = {"resourceGroupName": "ironburst-lab", "location": self.region}
        lab.declare("azure-native:resources:ResourceGroup", here)
        lab.declare("azure-native:network:VirtualNetwork", here | {"virtualNetworkName": "nodes"})
        cidr = {"virtualNetworkName": "nodes", "subnetName": "nodes", "addressPrefix": "10.90.0.0/17"}
        subnet = lab.declare("azure-native:network:Subnet", here | cidr)["id"]
        own = lab.declare("azure-native:managedidentity:UserAssignedIdentity", here | {"resourceName": "nodes"})
        secret, head = f"{azure_stack.VAULT}/secrets/munge-key", "4a5d1c1e-7a52-4d6e-9a53-0f3c4b1f2a11"
        self.gives(lab, "reads", own["principalId"], secret, dataActions=[READING_SECRET])
        self.gives(lab, "launches", head, self.subscription, actions=[*LOOKING, *LAUNCHING])
        lab.control("POST", "/lab/identities", header=self.header_of_head, principal=head)
        place = {"vm_size": self.size, "subnet_id": subnet, "os_disk_type": "Premium_LRS", "os_disk_gb": 100}
        key = ssh_key(lab.site.box.root).with_suffix(".pub").read_text().strip()
        return place | {"ssh_public_key": key, "identity_id": own["id"], "infiniband": True}

    def gives(self, lab, name, who, scope, **permission):
        role = {"roleDefinitionId": name, "scope": self.subscription, "permissions": [permission]}
        id = lab.declare("azure-native:authorization:RoleDefinition", role)["id"]
        given = {"roleAssignmentName": name, "roleDefinitionId": id, "principalId": who, "scope": scope}
        lab.declare("azure-native:authorization:RoleAssignment", given)

    def ends(self, lab, alone):
        """It powers off, and is paid for until somebody deletes it."""
        wait_for(lambda: lab.instances().get(alone) == "stopped", 120, f"{alone} to power off", pause=0.5)
        lab.inside("-c", self.port, "end", alone)
        wait_for(lambda: alone not in lab.instances(), 60, f"the end of {alone}", pause=0.3)


class Lab(Rented):
    def __init__(self, site, cloud):
        super().__init__(site)
        self.cloud, self.place = cloud, {}

    def control(self, verb, path, **body):
        return super().control(verb, path, *([json.dumps(body)] if verb == "POST" else []))

    def declare(self, token, said):
        return self.inside("-c", DECLARE, self.cloud.url, token, json.dumps(said))

    def instances(self):
        return {each["instance_id"]: each["state"] for each in self.control("GET", "/lab/instances")}

    def launch(self, node, market):
        """Power up in Slurm, then launch by the adapter: the instance's id."""
        said = {"region": self.cloud.region, "munge_key": self.cloud.munge_key}
        said = self.power_up(node, **said, dead_man_s=DEAD_MAN_S if market == "on-demand" else 100_000)
        asked = {"token": f"t-{node}", "launch": node, "cluster": "lab", "pool": "p5", "zone": self.cloud.zone}
        asked |= {"market": market, "count": 1, "place": self.place, "user_data": said}
        asked |= {"image_id": self.cloud.image_id, "hard_limit_s": 3600}

        def made():  # Azure's takes until it has booted
            answer = self.inside("-c", self.cloud.port, "launch", json.dumps(asked))
            assert answer[0] == "UnderWay" or "/" in answer[0], answer
            return answer[0] if answer[0] != "UnderWay" else ""

        return wait_for(made, 90, f"the launch of {node}", pause=1)


CLOUDS = [pytest.param(OfGoogle(), id="google", marks=pytest.mark.slow), pytest.param(OfAzure(), id="azure")]


@pytest.fixture(scope="module", params=CLOUDS)
def lab(request):
    sites.need_lab()
    cloud = request.param
    site = Site(f"t-node-{cloud.name}-{os.getpid()}")
    site.up(start=["head"], tied=True)
    try:
        site.spawn(
            [sys.executable, "-m", cloud.program, "--prefix", site.prefix, "--root", str(site.box.root)], cloud.name
        )
        site.start_host(cloud.baker(ssh_key(site.box.root).with_suffix(".pub").read_text().strip()))
        lab = Lab(site, cloud)
        key = lab.head()
        site.wait([BAKER])
        install(site, BAKER, "slurmd", "slurm-client", "munge", "nftables")
        notice = {
            f"/{where}": (CLOUD_ROLE / "files" / name).read_text()
            for where, name in {
                "usr/local/sbin/ironburst-notice": "ironburst-notice.py",
                "etc/systemd/system/ironburst-notice.service": "ironburst-notice.service",
            }.items()
        }
        put(site, BAKER, role_files(cloud.name) | notice)
        units = (
            "ironburst-metadata ironburst-join ironburst-dead-man.timer ironburst-notice munge ironburst-data slurmd"
        )
        site.ssh(
            BAKER,
            "rm -f /etc/munge/munge.key; useradd --uid 1500 --create-home --shell /bin/bash alice;"
            f"chmod 755 /usr/local/sbin/ironburst-*; systemctl daemon-reload; systemctl enable -q {units}",
        )
        site.bake_image(BAKER, cloud.image)
        site.destroy_host(BAKER)
        wait_for(lab.ready, 30, "the cloud")
        lab.control("POST", "/lab/images", name=cloud.image_id if cloud.name == "azure" else cloud.image)
        lab.control("POST", "/lab/secrets", name=cloud.secret, value=key)
        lab.place = cloud.declare(lab)
        yield lab
    finally:
        site.down()


def test_a_node_joins_is_taken_back_or_ends_itself(lab):
    spot, alone = lab.launch("p5-1", "spot"), lab.launch("p5-2", "on-demand")
    host = lab.site.host(spot.split("/")[1])
    lab.joined("p5-1")
    assert host.ssh("cat /sys/class/dmi/id/product_name").stdout.strip() == lab.cloud.product
    assert lab.cloud.header in host.ssh(METADATA, check=False).stdout  # it lacks the header, and is root's
    assert "HTTP Error" not in host.ssh(f"runuser -u alice -- {METADATA}", check=False).stdout

    lab.cloud.ends(lab, alone)  # nobody beats for it
    assert list(lab.instances()) == [spot]

    lab.slurm.beat({"p5-1": 3600}, 1.0)
    job = "sbatch --parsable --nodelist=p5-1 --time=10 --output=/dev/null --wrap='sleep 600'"
    lab.site.ssh("head", f"cd /shared/alice && runuser -u alice -- {job}")
    wait_for(lambda: lab.busy("p5-1"), 60, "the job to start", pause=0.3)
    lab.control("POST", "/lab/interrupt", instance_id=spot, notice_s=15 if lab.cloud.name == "azure" else 5)
    reason = f"{TAKEN_BACK} (preempted): {spot}"
    wait_for(lambda: lab.node("p5-1").reason == reason, 60, "the notice in Slurm", pause=0.2)
    wait_for(lambda: not lab.instances(), 60, f"the end of {spot}", pause=0.5)
    left = lab.control("GET", "/lab/leftovers")
    assert not left.keys() & set(lab.cloud.paid), left
    wait_for(lambda: len(lab.site.hosts()) == 3, 30, "the end of both hosts", pause=0.2)
