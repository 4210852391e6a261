"""What users of other tools report that Google Cloud and Azure answered to a launch, and what a site that gets the same
answer is to do. The texts are the clouds', as they stand in the threads named.
"""

from typing import Any, NamedTuple

GITHUB = "https://github.com/"


class Reported(NamedTuple):
    """`status`: of the HTTP answer to the request; 0: the operation failed, later. `market`: the only one that gets
    it. `kind`: a row of KINDS in test_reported. `says`: what a person must read in an event. `stays`: the status of the
    machine that is there all the same.
    """

    thread: str
    code: str
    text: str
    kind: str
    status: int = 0
    says: tuple[str, ...] = ()
    market: str = ""
    more: dict[str, Any] = {}  # noqa: RUF012 nobody changes it
    stays: str = ""

    @property
    def id(self):
        """Of its test."""
        return f"{self.thread.replace('/issues/', '#').replace('/pull/', '#')}-{self.code}"


def _stockout(at, vm, there, attachment=""):
    """errorDetails of a zone without machines, as gcloud and the operation show them."""
    link = {
        "description": "Troubleshooting documentation",
        "url": "https://cloud.google.com/compute/docs/resource-error",
    }
    say = f"A {vm} VM instance is currently unavailable in the {at} zone. Alternatively, you can try your request again"
    facts = {"attachment": attachment, "vmType": vm, "zone": at, "zonesAvailable": there}
    info = {"domain": "compute.googleapis.com", "reason": "resource_availability", "metadatas": facts}
    return [{"help": {"links": [link]}}, {"localizedMessage": {"locale": "en-US", "message": say}}, {"errorInfo": info}]


def _quota(metric, name, limit, **dimensions):
    return [
        {"quotaInfo": {"metricName": metric, "limitName": name, "limit": limit, "dimensions": dimensions}},
    ]


_ZONE = "The zone 'projects/p/zones/us-central1-a' does not have enough resources available to fulfill the request."
GOOGLE = [
    Reported(
        "kubernetes/k8s.io/issues/9834",
        "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS",
        _ZONE,
        "no capacity",
        says=("us-central1-a,us-central1-f",),
        more={
            "errorDetails": _stockout(
                "us-central1-b", "n1-standard-4", "us-central1-a,us-central1-f", "nvidia-tesla-t4:1"
            )
        },
    ),
    Reported(
        "CCExtractor/sample-platform/issues/901",
        "ZONE_RESOURCE_POOL_EXHAUSTED",
        f"{_ZONE}  Try a different zone, or try again later.",
        "no capacity",
        more={"errorDetails": _stockout("us-central1-a", "e2-standard-2", "")},
    ),
    Reported(
        "scylladb/scylla-cluster-tests/issues/12477",
        "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS",
        f"{_ZONE}  '(resource type:compute)'.",
        "no capacity",
        says=("resource type:compute",),
    ),
    Reported(
        "ray-project/ray/issues/25525",
        "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS",
        "the zone 'projects/p/zones/z' does not have enough resources available to fulfill the request",
        "no capacity",
        market="spot",
    ),
    Reported(
        "GoogleCloudPlatform/cluster-toolkit/issues/4940",
        "ZONE_RESOURCE_POOL_EXHAUSTED",
        _ZONE,
        "no capacity",
        status=503,
    ),
    Reported(
        "GoogleCloudPlatform/cluster-toolkit/issues/2389",
        "IP_SPACE_EXHAUSTED",
        "IP space of 'projects/p/regions/r/subnetworks/hpc-subnet' is exhausted",
        "no capacity",
        says=("IP space of",),
    ),
    Reported(
        "Privatehive/gcp-hosted-github-runner/pull/7",
        "IP_SPACE_EXHAUSTED_WITH_DETAILS",
        "IP space of 'projects/p/regions/us-central1/subnetworks/spot-runner-subnetwork' is exhausted. Insufficient "
        "free IP addresses in the IP range '10.0.1.0/24'. Consider expanding the current IP range or selecting an "
        "alternative IP range.",
        "no capacity",
        says=("10.0.1.0/24",),
    ),
    Reported(
        "scylladb/scylla-cluster-tests/pull/16106",
        "PREEMPTED",
        "Instance failed to start due to preemption.",
        "no capacity",
        market="spot",
        stays="TERMINATED",
    ),
    Reported(
        "scylladb/scylla-cluster-tests/pull/2945",
        "UNKNOWN",
        "Instance failed to start due to preemption.",
        "no capacity",
        market="spot",
    ),
    Reported(
        "skypilot-org/skypilot/issues/1797",
        "RESOURCE_NOT_FOUND",
        "The resource 'projects/p/zones/us-central1-a/instances/ray-head' was not found",
        "failed",
        stays="RUNNING",
    ),
    Reported(
        "skypilot-org/skypilot/pull/4333",
        "QUOTA_EXCEEDED",
        "Quota 'SSD_TOTAL_GB' exceeded.  Limit: 500.0 in region us-central1",
        "quota",
        says=("SSD_TOTAL_GB", "Limit: 500.0 in region us-central1"),
    ),
    Reported(
        "GoogleCloudPlatform/cluster-toolkit/issues/3225",
        "QUOTA_EXCEEDED",
        "Quota CPUS_PER_VM_FAMILY exceeded. Limit: 12.0 in region europe-west4.",
        "quota",
        says=("CPUS_PER_VM_FAMILY", "12.0", "europe-west4"),
    ),
    Reported(
        "hashicorp/terraform-provider-google/issues/20573",
        "QUOTA_EXCEEDED",
        "Quota 'CPUS_PER_VM_FAMILY' exceeded.  Limit: 176.0 in region us-central1.",
        "quota",
        says=("CPUS_PER_VM_FAMILY", "vm_family H3", "cpus_per_vm_family"),
        more={
            "errorDetails": _quota(
                "compute.googleapis.com/cpus_per_vm_family",
                "CPUS-PER-VM-FAMILY-per-project-region",
                176,
                region="us-central1",
                vm_family="H3",
            )
        },
    ),
    Reported(
        "fastai/course-v3/pull/165",
        "QUOTA_EXCEEDED",
        "Quota 'GPUS_ALL_REGIONS' exceeded. Limit: 0.0 globally.",
        "quota",
        says=("GPUS_ALL_REGIONS", "Limit: 0.0 globally"),
    ),
    Reported(
        "scylladb/scylla-cluster-tests/issues/3649",
        "quotaExceeded",
        "Quota 'C2_CPUS' exceeded.  Limit: 50.0 in region us-east1.",
        "quota",
        status=403,
        says=("C2_CPUS", "Limit: 50.0 in region us-east1"),
    ),
    Reported(
        "skypilot-org/skypilot/issues/3327",
        "invalid",
        "Invalid value for field 'resource.instanceProperties.reservationAffinity': '{}'. Specified reservations "
        "[projects/xx/reservations/n2-standard-2-auto] can not be targeted as specificReservationRequired is not set",
        "refused",
        status=400,
        says=("specificReservationRequired is not set",),
    ),
    Reported(
        "iterative/cml/issues/1398",
        "badRequest",
        "Instances with guest accelerators do not support live migration.",
        "refused",
        status=400,
        says=("do not support live migration",),
    ),
    Reported(
        "skypilot-org/skypilot/issues/3235",
        "invalid",
        "Invalid value for field 'resource.scheduling.provisioningModel': 'STANDARD'. For preemptible, only allowed "
        "provisioning_model value is SPOT",
        "refused",
        status=400,
        says=("only allowed provisioning_model",),
    ),
    Reported(
        "GoogleCloudPlatform/magic-modules/pull/13881",
        "resourceNotReady",
        "The resource 'projects/p/global/networks/nodes' is not ready",
        "again",
        status=400,
    ),
    Reported(
        "hashicorp/terraform-provider-google/issues/8360",
        "rateLimitExceeded",
        "Quota exceeded for quota group 'ReadGroup' and limit 'Read requests per user per 100 seconds' of service "
        "'compute.googleapis.com' for consumer 'project_number:123456'.",
        "again",
        status=403,
    ),
    Reported(
        "astronomer/astronomer/issues/2463",
        "UNSUPPORTED_OPERATION",
        "[pd-balanced, c4-standard-16] features are not compatible for creating instance.",
        "shut",
        says=("[pd-balanced, c4-standard-16] features are not compatible",),
    ),
    Reported(
        "skypilot-org/skypilot/issues/212",
        "badRequest",
        "[nvidia-tesla-a100, n1-highmem-8] features are not compatible for creating instance.",
        "shut",
        status=400,
        says=("[nvidia-tesla-a100, n1-highmem-8]",),
    ),
    Reported(
        "GoogleCloudPlatform/pubsub/issues/258",
        "CONDITION_NOT_MET",
        "Instance 'cps-3mpv' creation failed: Constraint constraints/compute.vmExternalIpAccess violated for project",
        "failed",
        says=("constraints/compute.vmExternalIpAccess",),
    ),
    Reported(
        "midl-dev/tezos-on-gke/issues/34",
        "accessNotConfigured",
        "Compute Engine API has not been used in project [xxxx] before or it is disabled. Enable it by visiting "
        "https://console.developers.google.com/apis/api/compute.googleapis.com/overview?project=[xxxx] then retry.",
        "refused",
        status=403,
        says=("Enable it by visiting",),
    ),
]
