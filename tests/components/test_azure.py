"""A stack in Azure under Pulumi's mocks: every input is checked by the SDK's own classes to its last key, and what a
resource names has to be there (conftest).
"""

import pytest
from pulumi import RunError

from ironburst import document
from ironburst.adapters.azure import launching
from ironburst.config.azure import rights
from ironburst.document.azure import AzurePlace
from ironburst.nodes import azure as names
from lab.provider.schema import args_class, problems
from tests import azure_stack
from tests.azure_stack import SUBSCRIPTION, VAULT

GROUP = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/ironburst-lab"
SUBNET = f"{GROUP}/providers/Microsoft.Network/virtualNetworks/nodes/subnets/nodes"


@pytest.fixture(autouse=True)
def _secret(monkeypatch):
    monkeypatch.setenv("VPN_SECRET", "k3y-of-the-hall")


@pytest.fixture
def azure(cluster):
    def build(again=False, total=None, **changes):
        value = azure_stack.value()
        value["cloud"] |= changes
        value["budget"] |= {"total_usd_per_month": total} if total else {}
        return cluster(value, again)

    return build


def network(**changes):
    return azure_stack.cloud()["network"] | changes


def places(recording):
    return {pool.name: pool for pool in document.parse(recording.result).pools}


def test_the_document_says_where_each_pool_is_launched(azure):
    pools = places(azure())
    h100 = [zone.place for zone in pools["h100"].zones]
    assert [zone.zone for zone in pools["h100"].zones] == ["eastus-1", "eastus-2"]
    assert all(isinstance(place, AzurePlace) and place.subnet_id == SUBNET for place in h100)
    assert h100[0].infiniband and h100[0].admin_user and h100[0].identity_id.startswith(GROUP)
    (t4,) = [zone.place for zone in pools["t4"].zones]
    assert not t4.infiniband and t4.accelerated_networking and t4.vm_size == "Standard_NC64as_T4_v3"


def test_a_place_is_all_that_a_launch_needs(azure):
    """For the adapter, which refuses one that lacks something."""
    for pool in places(azure()).values():
        request = launching.LaunchRequest(
            token="t", launch="l", cluster="lab", pool=pool.name, zone="eastus-1", market="on-demand", count=2,
            image_id="i", user_data="", place=pool.zones[0].place.model_dump(),
        )  # fmt: skip
        launch = launching.of(request, SUBSCRIPTION)
        assert bool(launch.scale_set) == pool.zones[0].place.infiniband


def test_no_machine_has_an_address_outside_and_only_nodes_and_the_hall_come_in(azure):
    recording = azure()
    for nic in recording.all("network:NetworkInterface"):
        assert all("publicIPAddress" not in each for each in nic.inputs["ipConfigurations"])
    (rules,) = recording.all("network:NetworkSecurityGroup")
    said = [(each["sourceAddressPrefix"], each["access"]) for each in rules.inputs["securityRules"]]
    assert said == [("10.90.0.0/17", "Allow"), ("10.78.0.0/21", "Allow"), ("VirtualNetwork", "Deny")]
    priorities = [each["priority"] for each in rules.inputs["securityRules"]]
    assert priorities == sorted(set(priorities)) and priorities[-1] == 4096
    nodes = next(each for each in recording.all("network:Subnet") if each.inputs["subnetName"] == "nodes")
    assert nodes.inputs["defaultOutboundAccess"] is False and nodes.inputs["networkSecurityGroup"]["id"]


def test_the_way_out_is_nat_or_key_vault_alone(azure):
    def nodes(recording):
        return next(each.inputs for each in recording.all("network:Subnet") if each.inputs["subnetName"] == "nodes")

    assert len(azure().all("network:NatGateway")) == 1 and "natGateway" in nodes(azure())
    private = azure(network=network(egress="private"))
    assert not private.all("network:NatGateway") and "natGateway" not in nodes(private)
    assert nodes(private)["serviceEndpoints"] == [{"service": "Microsoft.KeyVault"}]


def test_a_vpn_routes_the_hall_alone_and_its_key_is_a_secret(azure):
    recording = azure()
    (gateway,) = recording.all("network:VirtualNetworkGateway")
    assert (gateway.inputs["gatewayType"], gateway.inputs["vpnType"]) == ("Vpn", "RouteBased")
    (hall,) = recording.all("network:LocalNetworkGateway")
    assert hall.inputs["localNetworkAddressSpace"] == {"addressPrefixes": ["10.78.0.0/21"]}
    assert hall.inputs["gatewayIpAddress"] == "203.0.113.10"
    (link,) = recording.all("network:VirtualNetworkGatewayConnection")
    assert (link.inputs["connectionType"], link.inputs["connectionProtocol"]) == ("IPsec", "IKEv2")
    assert "sharedKey" in dict(recording.secrets)["azure-native:network:VirtualNetworkGatewayConnection"]
    assert "k3y-of-the-hall" not in str(recording.result)
    assert "GatewaySubnet" in [each.inputs["subnetName"] for each in recording.all("network:Subnet")]


def test_an_expressroute_circuit_is_connected(azure):
    circuit = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/net/providers/Microsoft.Network/expressRouteCircuits/hall"
    recording = azure(network=network(hall_link={"kind": "expressroute", "hall": "hall-a", "circuit": circuit}))
    (gateway,) = recording.all("network:VirtualNetworkGateway")
    assert gateway.inputs["gatewayType"] == "ExpressRoute" and "vpnType" not in gateway.inputs
    (link,) = recording.all("network:VirtualNetworkGatewayConnection")
    assert link.inputs["peer"] == {"id": circuit} and not recording.all("network:LocalNetworkGateway")


def test_a_network_that_is_there_gets_nothing(azure):
    there = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/net/providers/Microsoft.Network"
    existing = {"subnet": f"{there}/virtualNetworks/v/subnets/s", "security_group": f"{there}/networkSecurityGroups/g"}
    declared = {"cidr": "10.90.0.0/16", "zones": ["eastus-1", "eastus-2"], "existing": existing}
    recording = azure(network=declared)
    kinds = {each.token for each in recording.resources if each.token.startswith("azure-native:network:")}
    assert kinds == {"azure-native:network:NetworkInterface"}
    place = places(recording)["h100"].zones[0].place
    assert (place.subnet_id, place.security_group_id) == (existing["subnet"], existing["security_group"])


def test_a_fixed_node_is_no_lease_and_its_disk_goes_with_it(azure):
    recording = azure()
    (machine,) = recording.all("compute:VirtualMachine")
    assert "ironburst:lease" not in machine.inputs["tags"] and "identity" not in machine.inputs
    assert machine.inputs["storageProfile"]["osDisk"]["deleteOption"] == "Delete"
    image = machine.inputs["storageProfile"]["imageReference"]
    assert image == {"publisher": "Canonical", "offer": "ubuntu-24_04-lts", "sku": "server", "version": "latest"}
    (host,) = [each for each in document.parse(recording.result).hosts if each.name == "fixed-1"]
    assert host.address.startswith("10.20.")


def test_fixed_nodes_with_infiniband_are_in_one_fabric(azure):
    group = azure_stack.cloud()["groups"][0] | {"instance_type": "Standard_ND96isr_H100_v5"}
    recording = azure(groups=[group], total=200_000)
    (fabric,) = recording.all("compute:VirtualMachineScaleSet")
    assert fabric.inputs["singlePlacementGroup"] and fabric.inputs["orchestrationMode"] == "Flexible"
    machines = recording.all("compute:VirtualMachine")
    assert len({each.inputs["virtualMachineScaleSet"]["id"] for each in machines}) == 1 and len(machines) == 1


def given(recording):
    """{role's label: (actions, data actions, [(scope, principal)])}."""
    roles = {each.name: each.inputs["permissions"][0] for each in recording.all("authorization:RoleDefinition")}
    scopes = {}
    for each in recording.all("authorization:RoleAssignment"):
        scopes.setdefault(each.inputs["roleDefinitionId"].rpartition("/")[2], []).append(each.inputs["scope"])
    numbers = {each.name: each.inputs["roleDefinitionId"] for each in recording.all("authorization:RoleDefinition")}
    return {
        name.removeprefix("lab-"): (said.get("actions"), said.get("dataActions"), scopes.get(numbers[name], []))
        for name, said in roles.items()
    }


def test_nodes_read_their_own_secrets_and_may_do_nothing_else(azure):
    roles = given(azure())
    actions, data, scopes = roles["read-secrets"]
    assert not actions and data == [rights.READING_SECRET] and scopes == [f"{VAULT}/secrets/munge-key"]


def test_the_reaper_reads_and_deletes_groups_and_machines_and_nothing_else(azure):
    recording = azure()
    actions, data, scopes = given(recording)["reap"]
    assert sorted(actions) == sorted(rights.REAPING) and not data and scopes == [f"/subscriptions/{SUBSCRIPTION}"]
    (workflow,) = recording.all("logic:Workflow")
    assert workflow.inputs["workflowName"] == names.reaper("lab") and workflow.inputs["state"] == "Enabled"
    assert workflow.inputs["identity"]["type"] == "UserAssigned"
    (timer,) = workflow.inputs["definition"]["triggers"].values()
    assert timer["recurrence"] == {"frequency": "Minute", "interval": 5}


def test_the_controller_has_its_role_where_somebody_is_declared(azure):
    principal = "11111111-2222-4333-8444-555555555555"
    assert given(azure())["controller"][2] == []
    actions, _, scopes = given(azure(controller={"principal": principal}))["controller"]
    assert set(actions) == {*rights.LOOKING, *rights.LAUNCHING} and scopes == [f"/subscriptions/{SUBSCRIPTION}"]


def test_a_controller_outside_signs_in_with_tokens_of_its_own_issuer(azure):
    recording = azure(controller={"issuer": "idp.example.org", "subject": "head"})
    (trust,) = recording.all("managedidentity:FederatedIdentityCredential")
    assert trust.inputs["issuer"] == "https://idp.example.org" and trust.inputs["subject"] == "head"
    assert trust.inputs["audiences"] == ["api://AzureADTokenExchange"]
    assert len(given(recording)["controller"][2]) == 1


def test_without_pools_nobody_may_launch_and_nothing_has_to_be_reaped(azure):
    recording = azure(pools=[], price={})
    assert set(given(recording)) == {"controller"} and set(given(recording)["controller"][0]) == set(rights.LOOKING)
    assert not recording.all("logic:Workflow") and not recording.all("consumption:Budget")


def test_ci_of_one_repository_may_preview_and_change_nothing(azure):
    subjects = ["repo:org/name:pull_request", "repo:org/name:ref:refs/heads/main"]
    recording = azure(ci={"issuer": "token.actions.githubusercontent.com", "preview": subjects})
    trusted = [each.inputs["subject"] for each in recording.all("managedidentity:FederatedIdentityCredential")]
    assert trusted == subjects
    actions, data, _ = given(recording)["preview"]
    assert all(each.endswith("/read") for each in actions) and not data


def test_the_budget_alarm_counts_the_clusters_machines(azure):
    (budget,) = azure().all("consumption:Budget")
    assert budget.inputs["filter"]["tags"] == {"name": "ironburst:cluster", "operator": "In", "values": ["lab"]}
    told = budget.inputs["notifications"].values()
    alarms = sorted((each["thresholdType"], each["threshold"]) for each in told)
    assert alarms == [("Actual", 80), ("Actual", 100), ("Forecasted", 100)]
    assert all(each["contactEmails"] for each in told) and budget.ignore_changes == ("timePeriod",)
    assert budget.inputs["timePeriod"]["startDate"].endswith("-01T00:00:00Z")


def test_a_provider_that_is_told_another_subscription_is_refused(azure, monkeypatch):
    monkeypatch.setattr("pulumi.Config.get", lambda self, key, *_: "other" if key == "subscriptionId" else None)
    with pytest.raises((RunError, ValueError), match=r"azure-native:subscriptionId and cloud\.subscription"):
        azure(again=True)


@pytest.mark.parametrize(
    ("token", "inputs", "path"),
    [
        (
            "azure-native:compute:VirtualMachine",
            {"networkProfile": {"networkInterfaces": [{"prmary": True}]}},
            "networkProfile.networkInterfaces[0].prmary",
        ),
        ("azure-native:network:Subnet", {"natGateway": {"idd": "x"}}, "natGateway.idd"),
    ],
)
def test_a_nested_typo_is_seen(token, inputs, path):
    """Mocks let it pass."""
    import pulumi_azure_native

    assert path in dict(problems(args_class(pulumi_azure_native, token), None, inputs))
