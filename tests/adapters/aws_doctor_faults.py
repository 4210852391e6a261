"""What can be wrong in an account, one thing each: how to make it so, and which check says what then."""

from dataclasses import replace
from datetime import UTC, datetime

from moto.iam.models import iam_backends

from ironburst.doctor.aws import billing, capacity, images, link, orphans, quotas, rights, secret, zones
from ironburst.nodes.naming import tags
from lab.aws.cloud import ACCOUNT
from tests.doctor_account import GROUPS_IMAGE, IMAGE, P5_SPOT, P_ON_DEMAND, SECRET, STANDARD, spelled


def pool(**changes):
    return lambda value: value["cloud"]["pools"][0].update(changes)


def reserved(made, *, count=3, zone="us-east-1a", kind="p5.48xlarge", ends=None):
    asked = {"InstanceType": kind, "AvailabilityZone": zone, "InstanceCount": count, "InstancePlatform": "Linux/UNIX"}
    held = made.ec2.create_capacity_reservation(**asked)["CapacityReservation"]["CapacityReservationId"]
    if ends:
        made.given("reservations")[held]["EndDate"] = ends
    return held


def in_reservation(**of):
    """A pool on demand in one zone, in a reservation of `of`."""

    def change(made):
        held = reserved(made, **of)
        return pool(markets=["on-demand"], zones=["us-east-1a"], capacity_reservation=held)

    return change


def block(made):
    """The fixed group in what is no capacity block."""
    ends = "2027-01-01T00:00:00Z"
    held = reserved(made, count=1)
    return lambda value: value["cloud"]["groups"][0].update(
        placement_group=False, capacity_block={"id": held, "ends": ends}
    )


def ami(image_id=IMAGE, **changes):
    return lambda made: vars(made.cloud.backend.amis[image_id]).update(changes)


def nat_of_somebody(made):
    made.given("quotas")["L-FE5A380F"] = 1
    address = made.ec2.allocate_address(Domain="vpc")["AllocationId"]
    made.ec2.create_nat_gateway(SubnetId=made.subnets["us-east-1a"], AllocationId=address)


def of_no_state(made):
    """What an `up` leaves that was killed while EC2 launched."""
    listed = [{"Key": key, "Value": value} for key, value in tags("lab", "fixed-1", group="fixed").items()]
    made.ec2.run_instances(
        ImageId=GROUPS_IMAGE,
        InstanceType="p5.48xlarge",
        MinCount=1,
        MaxCount=1,
        SubnetId=made.subnets["us-east-1a"],
        TagSpecifications=[{"ResourceType": "instance", "Tags": listed}],
    )


def address_of_no_state(made):
    made.ec2.allocate_address(Domain="vpc", **spelled("elastic-ip", "nat-us-east-1a"))


def nat_of_no_state(made):
    """As an `up` leaves it that was killed before it wrote its id down: it has its address, and no route."""
    address = made.ec2.allocate_address(Domain="vpc", **spelled("elastic-ip", "nat-us-east-1b"))["AllocationId"]
    asked = {"SubnetId": made.subnets["us-east-1b"], "AllocationId": address}
    made.ec2.create_nat_gateway(**asked, **spelled("natgateway", "nat-us-east-1b"))


def vpn_gateway_of_no_state(made):
    made.ec2.create_vpn_gateway(Type="ipsec.1", **spelled("vpn-gateway", "hall"))


def not_offered(made):
    """A zone of the region that has no p4de."""
    rows = made.ec2.describe_instance_type_offerings(
        LocationType="availability-zone", Filters=[{"Name": "instance-type", "Values": ["p4de.24xlarge"]}]
    )["InstanceTypeOfferings"]
    every = {f"us-east-1{letter}" for letter in "abcdef"}
    zone = min(every - {row["Location"] for row in rows})

    def change(value):
        value["cloud"]["network"]["zones"] = ["us-east-1a", "us-east-1b", zone]
        pool(instance_type="p4de.24xlarge", zones=[zone])(value)

    return change


def under_a_key(made):
    made.clients("secretsmanager").update_secret(SecretId=SECRET, KmsKeyId="arn:aws:kms:us-east-1:123456789012:key/1")


def forget_spot_role(made):
    roles = iam_backends[ACCOUNT]["aws"].roles
    for key in [key for key, role in roles.items() if role.name == capacity.SPOT_ROLE]:
        del roles[key]


def own_key(made, *grantees):
    """A default key of the account's own for EBS."""
    kms = made.clients("kms")
    key = kms.create_key()["KeyMetadata"]["Arn"]
    made.given("ebs")["key"] = key
    for name in grantees:
        arn = f"arn:aws:iam::{ACCOUNT}:role/aws-service-role/spot.amazonaws.com/{name}"
        kms.create_grant(KeyId=key, GranteePrincipal=arn, Operations=["Decrypt", "CreateGrant"])
    return key


def linked(state="", *, of_another=False):
    """A Direct Connect instead of the VPN, with the association of the cluster's gateway."""
    gateway = "0a1b2c3d-4e5f-6789-abcd-ef0123456789"

    def change(made):
        row = {"associationId": "1", "directConnectGatewayId": gateway, "associationState": state}
        rows = made.given("direct-connect-associations")
        if state:
            rows["1"] = row | {"associatedGateway": {"id": "vgw-0" if of_another else made.gateway}}
        wanted = {"kind": "direct-connect", "hall": "hall-a", "gateway_id": gateway}
        return lambda value: value["cloud"]["network"].update(hall_link=wanted)

    return change


def by_transit(site, gateway_id):
    """A site whose link is a transit gateway."""
    (declared,) = site.cloud.network.links
    network = site.cloud.network.model_copy(
        update={"hall_link": declared.model_copy(update={"gateway_id": gateway_id})}
    )
    return replace(site, cloud=site.cloud.model_copy(update={"network": network}))


def delete(service, call, **asked):
    return lambda made: getattr(made.clients(service), call)(**asked) and None


QUOTA = "request-service-quota-increase --region us-east-1 --service-code ec2 --quota-code"
BROKEN = {
    # what is broken (it may change the declaration): the check, the state, what is seen, what is to do
    "quota of P": (
        lambda made: made.given("quotas").update({P_ON_DEMAND: 384}),
        quotas,
        "fail",
        "384 vCPUs; this stack may run 768 (group fixed 192, pool p5 576)",
        f"{QUOTA} L-417A185B --desired-value 768",
    ),
    "quota of spot": (
        lambda made: made.given("quotas").pop(P5_SPOT) and None,
        quotas,
        "fail",
        "0 vCPUs; this stack may run 576",
        f"{QUOTA} L-C4BD4855 --desired-value 576",
    ),
    "quota of a build": (
        lambda made: made.given("quotas").pop(STANDARD) and None,
        quotas,
        "fail",
        "5 vCPUs; this stack may run 8 (a build 8)",
        f"{QUOTA} L-1216C47A --desired-value 8",
    ),
    "spot of P6": (
        lambda made: pool(instance_type="p6-b200.48xlarge"),
        quotas,
        "unknown",
        "isn't known here",
        "us-east-1.console.aws.amazon.com/servicequotas",
    ),
    "addresses": (
        lambda made: [made.ec2.allocate_address(Domain="vpc") for _ in range(4)] and None,
        quotas,
        "fail",
        "5; others use 4, this stack 2",
        "L-0263D0A3 --desired-value 6",
    ),
    "VPCs": (
        lambda made: made.given("quotas").update({"L-F678F1CE": 1}),
        quotas,
        "fail",
        "1; others use 1, this stack 1",
        "--service-code vpc --quota-code L-F678F1CE --desired-value 2",
    ),
    "NAT gateways": (nat_of_somebody, quotas, "fail", "1; others use 1, this stack 1", "L-FE5A380F --desired-value 2"),
    "network interfaces": (
        lambda made: made.given("quotas").update({"L-DF5E4CA3": 100}),
        quotas,
        "fail",
        "100; others use 1, this stack 132",
        "--service-code vpc --quota-code L-DF5E4CA3 --desired-value 133",
    ),
    "gp3 storage": (
        lambda made: made.given("quotas").update({"L-7A658B76": 0}),
        quotas,
        "fail",
        "0; others use 0, this stack 1",
        "--service-code ebs --quota-code L-7A658B76 --desired-value 1",
    ),
    "a key of one's own": (
        lambda made: own_key(made) and None,
        capacity,
        "warn",
        "lets it use it, and the key's policy isn't asked for: without either no node starts",
        "role/aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot --operations Decrypt",
    ),
    "zone not opted in": (
        lambda made: made.given("zones").update({"us-east-1b": {"OptInStatus": "not-opted-in"}}),
        zones,
        "fail",
        "has not opted in",
        "leave us-east-1b out",
    ),
    "zone impaired": (
        lambda made: made.given("zones").update({"us-east-1b": {"State": "impaired"}}),
        zones,
        "warn",
        "impaired",
        "health.aws.amazon.com",
    ),
    "zone unknown": (
        lambda made: lambda value: value["cloud"]["network"].update(zones=["us-east-1a", "us-east-1b", "us-east-1z"]),
        zones,
        "fail",
        "no such zone in us-east-1",
        "us-east-1a, us-east-1b",
    ),
    "not offered": (not_offered, zones, "fail", "doesn't offer it there", "use us-east-1"),
    "a fixed node of no state": (
        of_no_state,
        orphans,
        "fail",
        "tags of group fixed and is in no published document",
        "aws ec2 terminate-instances --instance-ids i-",
    ),
    "a NAT gateway of no state": (
        nat_of_no_state,
        orphans,
        "fail",
        "no route leads to this NAT gateway",
        "aws ec2 delete-nat-gateway --nat-gateway-id nat-",
    ),
    "an address of no state": (
        address_of_no_state,
        orphans,
        "fail",
        "nothing has this address",
        "aws ec2 release-address --allocation-id eipalloc-",
    ),
    "a VPN gateway of no state": (
        vpn_gateway_of_no_state,
        orphans,
        "fail",
        "a VPC takes one, and several have the cluster's tag (vgw-",
        "aws ec2 delete-vpn-gateway --vpn-gateway-id",
    ),
    "no image": (
        delete("ssm", "delete_parameter", Name="/ironburst/lab/p5/image"),
        images,
        "fail",
        "no SSM parameter /ironburst/lab/p5/image",
        "ironburst image p5",
    ),
    "image gone": (
        delete("ec2", "deregister_image", ImageId=IMAGE),
        images,
        "fail",
        "no such image",
        "ironburst image p5",
    ),
    "image pending": (ami(state="pending"), images, "fail", "it is pending", "wait"),
    "image of a stranger": (
        ami(owner_id="999999999999"),
        images,
        "fail",
        "its owner is 999999999999",
        "cloud.images.owners",
    ),
    "image of arm64": (
        ami(architecture="arm64"),
        images,
        "fail",
        "it is of arm64; p5.48xlarge is x86_64",
        "ironburst image p5",
    ),
    "image without ENA": (ami(ena_support=False), images, "fail", "EnaSupport", "ironburst image p5"),
    "image by UEFI alone": (
        lambda made: ami(boot_mode="uefi")(made) or pool(instance_type="p4d.24xlarge"),
        images,
        "fail",
        "it boots by uefi; p4d.24xlarge by legacy-bios",
        "ironburst image p5",
    ),
    "image without a root volume": (
        ami(root_device_name="/dev/xvda"),
        images,
        "fail",
        "/dev/xvda (ebs) is no EBS volume",
        "ironburst image p5",
    ),
    "image deprecated": (
        ami(deprecation_time="2026-01-01T00:00:00.000Z"),
        images,
        "warn",
        "deprecated it on 2026-01-01",
        "ironburst image p5",
    ),
    "disk of a group": (
        lambda made: lambda value: value["cloud"]["groups"][0].update(root_disk_gb=4),
        images,
        "fail",
        "4 GiB are declared",
        "write 8 or more",
    ),
    "disk of a pool": (
        lambda made: pool(root_disk_gb=300),
        images,
        "warn",
        "300 GiB are declared as root_disk_gb, the image's root volume has 200",
        "ironburst image p5",
    ),
    "group's image gone": (
        delete("ec2", "deregister_image", ImageId=GROUPS_IMAGE),
        images,
        "fail",
        "no such image",
        "share it with this account",
    ),
    "no right to end": (
        lambda made: made.policy("controller", "controller", ["EndRented"]),
        rights,
        "fail",
        "implicitDeny, says IAM's simulator",
        "pulumi up",
    ),
    "no right to launch": (
        lambda made: made.policy("controller", "launch", ["LaunchInstances"]),
        rights,
        "fail",
        "IAM was asked for ec2:RunInstances on arn:aws:ec2:us-east-1:123456789012:instance/*",
        "pulumi up",
    ),
    "no controller": (
        delete("iam", "untag_role", RoleName="lab-controller-0a1b2c3", TagKeys=["ironburst:cluster"]),
        rights,
        "fail",
        "there is none with this cluster's tag",
        "pulumi up",
    ),
    "template gone": (
        delete("ec2", "delete_launch_template", LaunchTemplateName="p5-us-east-1b"),
        rights,
        "fail",
        "InvalidLaunchTemplate",
        "pulumi up",
    ),
    "key pair gone": (
        delete("ec2", "delete_key_pair", KeyName="lab"),
        rights,
        "fail",
        "InvalidKeyPair.NotFound",
        "pulumi up",
    ),
    "tunnels down": (
        lambda made: made.hall(0, []),
        link,
        "fail",
        "IPSEC IS DOWN",
        "pulumi stack output hall_tunnels --show-secrets",
    ),
    "one tunnel": (lambda made: made.hall(1, ["10.78.0.0/21"]), link, "warn", "one tunnel is up", "hall-link.md"),
    "no route by BGP": (lambda made: made.hall(2, []), link, "fail", "no route came from the hall by BGP", "announce"),
    "another route": (
        lambda made: made.hall(2, ["10.79.0.0/21"]),
        link,
        "fail",
        "no route of lab-routes-us-east-1a covers 10.78.0.0/21",
        "announce 10.78.0.0/21",
    ),
    "no VPN": (
        lambda made: made.ec2.delete_vpn_connection(VpnConnectionId=made.vpn) and None,
        link,
        "fail",
        "no VPN connection lab-hall-hall-a",
        "pulumi up",
    ),
    "Direct Connect pending": (linked("associating"), link, "fail", "associating", "who accepts and ends them"),
    "Direct Connect of another": (
        linked("associated", of_another=True),
        link,
        "fail",
        "is not at gateway 0a1b2c3d",
        "let the gateway's owner accept it",
    ),
    "Direct Connect not associated": (linked(), link, "fail", "is not at gateway", "pulumi up"),
    "secret gone": (
        delete("secretsmanager", "delete_secret", SecretId=SECRET, ForceDeleteWithoutRecovery=True),
        secret,
        "fail",
        "there is none in us-east-1",
        "create-secret --region us-east-1 --name ironburst/lab/munge-key",
    ),
    "secret deleted": (
        delete("secretsmanager", "delete_secret", SecretId=SECRET),
        secret,
        "fail",
        "it is deleted",
        "restore-secret",
    ),
    "secret not readable": (
        lambda made: made.iam.delete_role_policy(RoleName="lab-node-0a1b2c3", PolicyName="node") and None,
        secret,
        "fail",
        "implicitDeny",
        "pulumi up",
    ),
    "secret under a key": (under_a_key, secret, "unknown", "whose key policy the simulator doesn't see", "kms:Decrypt"),
    "tag inactive": (
        lambda made: made.given("cost tags").update({"ironburst:pool": "Inactive"}),
        billing,
        "fail",
        "Inactive",
        "TagKey=ironburst:pool,Status=Active",
    ),
    "tag not seen": (
        lambda made: made.given("cost tags").clear(),
        billing,
        "warn",
        "has seen no resource with it",
        "a day after",
    ),
    "member account": (
        lambda made: made.given("cost tags").update(member=True),
        billing,
        "unknown",
        "only its payer account is",
        "aws ce list-cost-allocation-tags",
    ),
    "no budget": (
        delete("budgets", "delete_budget", AccountId=ACCOUNT, BudgetName="lab-rented-0a1b2c3"),
        billing,
        "fail",
        "there is no budget lab-rented",
        "pulumi up",
    ),
    "no spot role": (
        forget_spot_role,
        capacity,
        "fail",
        "lacks it",
        "create-service-linked-role --aws-service-name spot.amazonaws.com",
    ),
    "queue gone": (
        lambda made: made.clients("sqs").delete_queue(QueueUrl=made.queue) and None,
        capacity,
        "fail",
        "isn't there",
        "pulumi up",
    ),
    "rule disabled": (
        delete("events", "disable_rule", Name="lab-interruptions"),
        capacity,
        "fail",
        "rule lab-interruptions is disabled",
        "aws events enable-rule --region us-east-1 --name lab-interruptions",
    ),
    "rule without target": (
        delete("events", "remove_targets", Rule="lab-interruptions", Ids=["1"]),
        capacity,
        "fail",
        "no event rule sends to it",
        "pulumi up",
    ),
    "no reservation": (
        lambda made: pool(markets=["on-demand"], capacity_reservation="cr-0123456789abcdef0"),
        capacity,
        "fail",
        "no such reservation in us-east-1",
        "leave it out",
    ),
    "reservation too small": (
        in_reservation(count=2),
        capacity,
        "warn",
        "2 instances are reserved, 3 declared",
        "declare 2",
    ),
    "reservation of another type": (
        in_reservation(kind="p4d.24xlarge"),
        capacity,
        "fail",
        "it is for p4d.24xlarge",
        "declare the type",
    ),
    "reservation elsewhere": (
        in_reservation(zone="us-east-1b"),
        capacity,
        "fail",
        "it lies in us-east-1b",
        "declare us-east-1b",
    ),
    "reservation that ends": (
        in_reservation(ends=datetime(2027, 1, 1, tzinfo=UTC)),
        capacity,
        "warn",
        "2027-01-01T00:00Z, and nothing is declared",
        "capacity_ends",
    ),
    "no block": (block, capacity, "fail", "it is of kind default", "capacity_reservation"),
}
