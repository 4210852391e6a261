"""A stack in Google Cloud under Pulumi's mocks: every input is checked by the SDK's own classes to its last key, and
what a resource names has to be there (conftest).
"""

import re

import pytest
from pulumi import RunError

from ironburst import document
from ironburst.adapters.google import launching
from ironburst.adapters.google.cloud import Google
from ironburst.config.google import rights
from ironburst.document.google import GooglePlace
from lab.google.iam import Binding
from lab.google.server import Cloud
from lab.provider.schema import args_class, problems
from tests.components.google_stack import MUNGE_KEY, PROJECT, REGION, ZONES, cloud


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setenv("HALL_KEY", "k3y-of-the-hall")


@pytest.fixture
def google(cluster, value):
    def build(again=False, **changes):
        value["cloud"] = cloud(**changes)
        value["scheduler"]["munge_key"] = MUNGE_KEY
        return cluster(value, again)

    return build


def places(recording):
    parsed = document.parse(recording.result)
    return {pool.name: pool for pool in parsed.pools}


def test_the_document_says_where_each_pool_is_launched(google):
    pools = places(google())
    l4 = [zone.place for zone in pools["l4"].zones]
    assert [zone.zone for zone in pools["l4"].zones] == ZONES
    assert all(isinstance(place, GooglePlace) and place.boot_disk_type for place in l4)
    assert [nic.subnetwork for nic in l4[0].network_interfaces] == [
        f"projects/{PROJECT}/regions/{REGION}/subnetworks/ib-lab-nodes"
    ]
    (a3,) = [zone.place for zone in pools["a3"].zones]
    assert len(a3.network_interfaces) == 9 and {nic.nic_type for nic in a3.network_interfaces} == {"GVNIC"}
    assert len({nic.subnetwork for nic in a3.network_interfaces}) == 9
    assert a3.service_account.startswith("ib-lab-nodes@") and a3.labels == {"cost-center": "4711"}
    assert a3.placement_policy.endswith("/resourcePolicies/ib-lab-a3-us-central1-a-placement")
    assert not l4[0].placement_policy


def test_a_type_with_rdma_has_a_network_of_its_zone_with_its_profile(google):
    pool = {"name": "h200", "instance_type": "a3-ultragpu-8g", "zones": ZONES[:1], "max_nodes": 4, "markets": ["spot"]}
    recording = google(pools=[pool])
    profiles = [each.inputs.get("networkProfile") for each in recording.all("compute/network:Network")]
    assert [each for each in profiles if each] == [f"projects/{PROJECT}/global/networkProfiles/us-central1-a-vpc-roce"]
    (place,) = [zone.place for zone in places(recording)["h200"].zones]
    assert [nic.nic_type for nic in place.network_interfaces] == ["GVNIC"] * 2 + ["MRDMA"] * 8
    assert (
        len({nic.subnetwork for nic in place.network_interfaces}) == 10 and place.boot_disk_type == "hyperdisk-balanced"
    )
    (rdma,) = [each for each in recording.all("compute/network:Network") if each.inputs.get("networkProfile")]
    ruled = {each.inputs["network"] for each in recording.all("compute/firewall:Firewall")}
    assert not any(link.endswith(rdma.inputs["name"]) for link in ruled)  # the profile takes none


def test_no_machine_has_an_address_outside_and_only_nodes_and_the_hall_come_in(google):
    recording = google()
    for machine in recording.all("compute/instance:Instance"):
        assert all("accessConfigs" not in nic for nic in machine.inputs["networkInterfaces"])
    own = [each.inputs for each in recording.all("compute/firewall:Firewall") if "fabric" not in each.name]
    assert [(each.get("sourceTags"), each.get("sourceRanges")) for each in own] == [
        (["ironburst-node"], None),
        (None, ["10.78.0.0/21"]),
    ]
    assert all(each["targetTags"] == ["ironburst-node"] and each["direction"] == "INGRESS" for each in own)


def test_the_way_out_is_nat_of_the_nodes_subnet_or_none(google):
    (nat,) = google().all("compute/routerNat:RouterNat")
    assert nat.inputs["natIpAllocateOption"] == "AUTO_ONLY" and len(nat.inputs["subnetworks"]) == 1
    declared = cloud()["network"] | {"egress": "private"}
    assert not google(network=declared).all("compute/routerNat:RouterNat")


def test_an_ha_vpn_has_two_tunnels_with_bgp_and_its_key_is_a_secret(google):
    recording = google()
    tunnels = recording.all("VPNTunnel")
    assert [each.inputs["vpnGatewayInterface"] for each in tunnels] == [0, 1]
    assert all("sharedSecret" in dict(recording.secrets)["gcp:compute/vPNTunnel:VPNTunnel"] for _ in tunnels)
    ends = [each.inputs["ipRange"] for each in recording.all("routerInterface:RouterInterface")]
    assert ends == ["169.254.64.1/30", "169.254.64.5/30"]
    peers = recording.all("routerPeer:RouterPeer")
    assert [each.inputs["peerIpAddress"] for each in peers] == ["169.254.64.2", "169.254.64.6"]
    assert {each.inputs["peerAsn"] for each in peers} == {65010}
    assert "k3y-of-the-hall" not in str(recording.result)


def test_an_interconnect_has_an_attachment_on_each(google):
    link = {"kind": "interconnect", "hall": "hall-a", "peer_asn": 65010}
    link["interconnects"] = [f"projects/{PROJECT}/global/interconnects/hall-a-{n}" for n in (1, 2)]
    recording = google(network=cloud()["network"] | {"hall_link": link})
    assert len(recording.all("InterconnectAttachment")) == 2 and not recording.all("VPNTunnel")
    assert [each.inputs["peerIpAddress"] for each in recording.all("routerPeer:RouterPeer")] == ["169.254.100.2"] * 2


def test_networks_that_are_there_get_nothing(google):
    there = {"network": "gpu", "subnetwork": "gpu-nodes", "fabric": {ZONES[0]: [f"f-{n}" for n in range(8)]}}
    network = {"cidr": "10.90.0.0/16", "zones": ZONES, "existing": there}
    recording = google(network=network, groups=[])
    kinds = {each.token for each in recording.resources if each.token.startswith("gcp:compute/")}
    assert kinds == {"gcp:compute/resourcePolicy:ResourcePolicy"}
    (a3,) = [zone.place for zone in places(recording)["a3"].zones]
    assert a3.network_interfaces[0].subnetwork == f"projects/{PROJECT}/regions/{REGION}/subnetworks/gpu-nodes"
    assert len(a3.network_interfaces) == 9


def bindings(recording):
    """{service account's name: [(permissions, condition)]}."""
    given = [each.inputs for each in recording.all("IAMCustomRole")]
    roles = {f"projects/{PROJECT}/roles/{each['roleId']}": each["permissions"] for each in given}
    found = {}
    for each in recording.all("projects/iAMMember:IAMMember"):
        who = re.fullmatch(r"serviceAccount:(.*)@.*", each.inputs["member"])[1]
        condition = (each.inputs.get("condition") or {}).get("expression", "")
        found.setdefault(who, []).append((roles[each.inputs["role"]], condition))
    return found


def all_of(recording):
    """[(permissions, condition)] of all accounts."""
    return [pair for of in bindings(recording).values() for pair in of]


def test_what_ends_instances_is_bound_to_the_names_that_launches_give(google):
    """The names are the adapter's, of a request; fixed nodes have others, and none may end them."""
    recording = google()
    given = bindings(recording)
    assert set(given) == {"ib-lab-nodes", "ib-lab-controller"}
    ends = [condition for permissions, condition in all_of(recording) if "compute.instances.delete" in permissions]
    assert ends == [rights.of_names("lab")] * 2
    assert given["ib-lab-nodes"] == [(["compute.instances.delete"], ends[0])]
    request = launching.LaunchRequest(
        token="t", launch="l", cluster="lab", pool="l4", zone=ZONES[0], market="on-demand", count=1, image_id="i",
        user_data="", place=places(recording)["l4"].zones[0].place.model_dump(),
    )  # fmt: skip
    (name,) = launching.of(request).names
    binding = Binding("serviceAccount:x", frozenset(), ends[0])
    at = f"projects/{PROJECT}/zones/{ZONES[0]}/instances/"
    assert binding.holds(at + name)
    fixed = [each.inputs["name"] for each in recording.all("compute/instance:Instance")]
    assert len(fixed) == 2 and not any(binding.holds(at + each) for each in fixed)
    assert not any("serviceAccount" in each.inputs for each in recording.all("compute/instance:Instance"))


def test_the_controller_may_give_machines_the_nodes_account_and_no_other(google):
    recording = google()
    (user,) = [each.inputs for each in recording.all("serviceaccount/iAMMember:IAMMember")]
    assert user["role"] == "roles/iam.serviceAccountUser" and "/ib-lab-nodes@" in user["serviceAccountId"]
    assert user["member"].startswith("serviceAccount:ib-lab-controller@")


def test_without_pools_nobody_may_launch(google):
    recording = google(pools=[], billing_account="01A2B3-C4D5E6-F7A8B9")
    assert not any("compute.instances.create" in permissions for permissions, _ in all_of(recording))
    assert not recording.all("billing/budget:Budget")


def test_no_right_names_everything(google):
    for permissions, _ in all_of(google()):
        assert not any("*" in each for each in permissions)
    assert not any(each.inputs["role"].startswith("roles/") for each in google().all("projects/iAMMember:IAMMember"))


def test_a_controller_outside_signs_in_with_its_certificate_alone(google):
    pem = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
    recording = google(controller={"ca": pem, "common_name": "head.hall-a"})
    (provider,) = recording.all("WorkloadIdentityPoolProvider")
    assert provider.inputs["attributeCondition"] == "assertion.subject.dn.cn == 'head.hall-a'"
    assert provider.inputs["x509"]["trustStore"]["trustAnchors"] == [{"pemCertificate": pem}]
    members = [each.inputs["member"] for each in recording.all("serviceaccount/iAMMember:IAMMember")]
    assert [each for each in members if each.startswith("principal://iam.googleapis.com/")] == [
        "principal://iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/ib-lab-controller/subject/head.hall-a"
    ]


def test_ci_of_one_repository_may_preview_and_change_nothing(google):
    subject = "repo:org/name:pull_request"
    recording = google(ci={"issuer": "token.actions.githubusercontent.com", "preview": [subject]})
    (provider,) = recording.all("WorkloadIdentityPoolProvider")
    assert provider.inputs["attributeCondition"] == f"assertion.sub in ['{subject}']"
    assert provider.inputs["oidc"]["issuerUri"] == "https://token.actions.githubusercontent.com"
    ((permissions, _),) = bindings(recording)["ib-lab-preview"]
    assert all(re.search(r"\.(get|getIamPolicy|list)$", each) for each in permissions)


DATA = {
    "imagenet": {"gs": "training/imagenet"},
    "again": {"gs": "training/imagenet", "path": "/again"},
    "all": {"gs": "wide-open"},
}


def with_data(google, **more):
    groups, pools = cloud()["groups"], cloud()["pools"]
    groups[0]["data"], pools[0]["data"] = ["all"], ["imagenet", "again", "all", "brought-by-hand"]
    return google(data=DATA, groups=groups, pools=pools, **more)


def readers(recording):
    """{account: [(bucket, role, condition)]} of what buckets are bound to."""
    found = {}
    for each in recording.all("storage/bucketIAMMember:BucketIAMMember"):
        who = re.fullmatch(r"serviceAccount:(.*)@.*", each.inputs["member"])[1]
        condition = (each.inputs.get("condition") or {}).get("expression", "")
        found.setdefault(who, []).append((each.inputs["bucket"], each.inputs["role"], condition))
    return found


def test_nodes_with_data_have_an_account_of_their_pools_own_that_reads_it(google):
    """And what a rented node needs besides: its secret, its own end. A fixed one reads its data, and ends nobody."""
    recording = with_data(google)
    of = 'resource.name == "projects/_/buckets/training" || '
    below = of + 'resource.name.startsWith("projects/_/buckets/training/objects/imagenet/")'
    everything = ("wide-open", "roles/storage.objectViewer", "")
    assert {who: sorted(bound) for who, bound in readers(recording).items()} == {
        "ib-lab--nodes-l4": [("training", "roles/storage.objectViewer", below), everything],
        "ib-lab--fixed-fixed": [everything],
    }
    ends = [(["compute.instances.delete"], rights.of_names("lab"))]
    given = bindings(recording)
    assert given["ib-lab--nodes-l4"] == given["ib-lab-nodes"] == ends and "ib-lab--fixed-fixed" not in given
    secrets = [each.inputs["member"] for each in recording.all("secretIamMember:SecretIamMember")]
    assert sorted((each.partition("@")[0] for each in secrets), reverse=True) == [
        "serviceAccount:ib-lab-nodes",
        "serviceAccount:ib-lab--nodes-l4",
    ]


def test_each_node_gets_the_account_that_reads_its_data_and_no_other(google):
    recording = with_data(google)
    pools = places(recording)
    accounts = {
        name: {zone.place.service_account.partition("@")[0] for zone in pool.zones} for name, pool in pools.items()
    }
    assert accounts == {"l4": {"ib-lab--nodes-l4"}, "a3": {"ib-lab-nodes"}}
    fixed = [each.inputs["serviceAccount"] for each in recording.all("compute/instance:Instance")]
    assert {each["email"].partition("@")[0] for each in fixed} == {"ib-lab--fixed-fixed"}
    users = [each.inputs["serviceAccountId"] for each in recording.all("serviceaccount/iAMMember:IAMMember")]
    assert {re.search(r"/([^/@]+)@", each)[1] for each in users} == {"ib-lab-nodes", "ib-lab--nodes-l4"}
    assert document.parse(recording.result).data["imagenet"].model_dump() == {
        "kind": "gs",
        "source": "training/imagenet",
        "path": "/data/imagenet",
    }


def test_an_account_that_no_pool_has_is_handed_to_no_machine(google):
    pools = [cloud()["pools"][0] | {"data": ["all"]}]
    users = google(data=DATA, pools=pools).all("serviceaccount/iAMMember:IAMMember")
    assert ["--nodes-l4@" in each.inputs["serviceAccountId"] for each in users] == [True]


def test_ci_of_a_stack_with_data_sees_who_reads_it(google):
    ci = {"issuer": "gitlab.com", "preview": ["project_path:x/y:ref_type:branch:ref:main"]}
    ((with_it, _),) = bindings(with_data(google, ci=ci))["ib-lab-preview"]
    ((without, _),) = bindings(google(ci=ci, again=True))["ib-lab-preview"]
    assert set(with_it) - set(without) == {"storage.buckets.getIamPolicy"}


def test_the_budget_alarm_counts_the_clusters_nodes(google, value):
    (budget,) = google(billing_account="01A2B3-C4D5E6-F7A8B9").all("billing/budget:Budget")
    assert budget.inputs["budgetFilter"]["labels"] == {launching.CLUSTER: "lab"}
    assert budget.inputs["amount"]["specifiedAmount"] == {"currencyCode": "USD", "units": "2000", "nanos": 0}
    assert [each["thresholdPercent"] for each in budget.inputs["thresholdRules"]] == [0.8, 1.0, 1.0]
    assert len(budget.inputs["allUpdatesRule"]["monitoringNotificationChannels"]) == 1


def test_a_provider_that_is_told_another_project_is_refused(google, monkeypatch):
    monkeypatch.setattr("pulumi.Config.get", lambda self, key, *_: "other" if key == "project" else None)
    with pytest.raises((RunError, ValueError), match=r"gcp:project and cloud\.project"):
        google(again=True)


@pytest.mark.parametrize(
    ("token", "inputs", "path"),
    [
        ("gcp:compute/instance:Instance", {"networkInterfaces": [{"subnet": 1}]}, "networkInterfaces[0].subnet"),
        ("gcp:compute/resourcePolicy:ResourcePolicy", {"workloadPolicy": {"x": 1}}, "workloadPolicy.x"),
    ],
)
def test_a_nested_typo_is_seen(token, inputs, path):
    """Mocks let it pass."""
    import pulumi_gcp

    assert path in dict(problems(args_class(pulumi_gcp, token), None, inputs))


def test_an_adapter_launches_into_what_was_declared_and_nowhere_else(google):
    from google.auth.credentials import AnonymousCredentials

    from ironburst.adapters.google.api import Api
    from ironburst.ports import CloudError

    place = places(google())["a3"].zones[0].place.model_dump()
    world = Cloud(project=PROJECT, region=REGION, zones=ZONES)
    world.images["ib-1"] = "f"
    for nic in place["network_interfaces"]:
        world.declared.held["gcp:compute/subnetwork:Subnetwork"][nic["subnetwork"]] = {"name": nic["subnetwork"]}
    port = Google(
        Api(PROJECT, credentials=AnonymousCredentials(), endpoint=world.url_of_api), REGION, wait=lambda _: None
    )
    asked = {"launch": "l", "cluster": "lab", "pool": "a3", "zone": ZONES[0], "market": "spot", "count": 2}
    asked |= {"image_id": f"projects/{PROJECT}/global/images/ib-1", "user_data": "{}"}
    ((first, second),) = port.launch_all([launching.LaunchRequest(token="t1", place=place, **asked)])
    assert first.zone == second.zone == ZONES[0] and world.wrong == []
    away = place | {"network_interfaces": [{"subnetwork": "projects/x/regions/y/subnetworks/z"}]}
    (refused,) = port.launch_all([launching.LaunchRequest(token="t2", place=away, **asked)])
    assert isinstance(refused, CloudError) and "subnetwork" in str(refused)
    world.close()
