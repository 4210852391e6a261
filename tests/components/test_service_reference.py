"""Our policies against what AWS says of each action: the types of resources that it knows, and the condition keys that
it has for them. A key that an action lacks never matches: such a statement allows nothing, or (negated) everything.
"""

import functools
import re
from pathlib import Path

import pytest
import yaml
from moto.s3.responses import ACTION_MAP

import lab.aws
from ironburst.config import load
from ironburst.config.aws import policies, roles, sizes, up_policies
from ironburst.config.aws.data_models import DataSet
from lab.aws import s3_calls
from lab.aws.iam_calls import CALLS, OF_BUDGETS
from tests.components.conftest import STACKS
from tests.pki import issue
from tests.unit.kubernetes_stack import on_eks

REFERENCE = Path(__file__).with_name("service_reference.yaml")
WHERE = policies.Scope("aws", "us-east-1", "123456789012")
KEY = "arn:aws:kms:us-east-1:123456789012:key/0a1b2c3d-0000-4000-8000-000000000000"
GLOBAL = {"aws:RequestedRegion", "aws:SourceArn"}
"""keys that every request has, or that are the service's own principal's"""


def documents():
    """Every policy that is written, with everything declared that changes one."""

    def of(*changes):
        value = load.read_value(STACKS / "Pulumi.lab.yaml")
        cloud = value["cloud"]
        cloud["iam"] = {"permissions_boundary": "arn:aws:iam::123456789012:policy/b", "path": "/ironburst/"}
        cloud["controller"] = {"ca": issue("authority", ca=True).pem, "common_name": "head.hall-a"}
        cloud["data"] = {"set": {"s3": "training/set"}}
        for change in changes:
            change(value)
        return load.from_value(value)

    def bought(value):
        pool = value["cloud"]["pools"][0]
        del pool["markets"]
        pool["capacity_reservation_group"] = "arn:aws:resource-groups:us-east-1:123456789012:group/training"

    slurm, bought_in, eks = of(), of(bought), of(on_eks)
    data = [DataSet(s3="training/set", kms_key=KEY)]
    queue, role = WHERE.arn("sqs", "lab-interruptions-0a1b2c3"), WHERE.arn("iam", "role/lab-node", region="")
    found = {
        "node": policies.node(WHERE, ["aws-secretsmanager:lab/munge-key"], data),
        "ending": policies.ending(WHERE, "lab"),
        "launching": roles.launching(slurm, slurm.cloud, WHERE, [queue], [role]),
        "launching in a group": roles.launching(bought_in, bought_in.cloud, WHERE, [queue], [role]),
        "baking": policies.baking(WHERE, "lab"),
        "previewing": policies.previewing(WHERE, ["training"]),
    }
    for name, config in (("slurm", slurm), ("eks", eks)):
        written = up_policies.policies_of(config, config.cloud, sizes.where(config.cloud))
        found |= {f"{each} of {name}": document for each, document in written.items()}
    return found


@functools.cache
def reference():
    return yaml.safe_load(REFERENCE.read_text())


def type_of(arn):
    """The reference's name of a resource's type."""
    _, _, service, _, _, resource = arn.split(":", 5)
    named = {"sqs": "queue", "events": "rule-on-default-event-bus", "secretsmanager": "Secret"}
    if service == "s3":
        return "object" if "/" in resource else "bucket"
    return named.get(service) or re.split("[:/]", resource)[0]


def plain(key):
    """A condition key without the tag's own name."""
    return re.sub(r"^(aws|ec2):(RequestTag|ResourceTag)/.*", r"\1:\2", key)


def listed(value):
    return [value] if isinstance(value, str) else value


def wrong(statement):
    """What of a statement AWS doesn't know: sentences."""
    actions = [action for action in listed(statement["Action"]) if "*" not in action]
    keys = {plain(key) for tests in statement.get("Condition", {}).values() for key in tests} - GLOBAL
    supported = set()
    for action in actions:
        known = reference()["actions"][action]
        types = {name.rstrip("*"): keys for name, keys in known.get("types", {}).items()}
        needed = [name.rstrip("*") for name in known.get("types", {}) if name.endswith("*")] or list(types)
        for resource in listed(statement["Resource"]):
            own = [*types] if resource == "*" and not needed else needed if resource == "*" else [type_of(resource)]
            if resource != "*" and own[0] not in types:
                continue
            supported.add((action, resource))
            for kind in own or [""]:
                for key in keys - set(known["keys"]) - set(types.get(kind, [])):
                    yield f"{action} has no {key} for {kind or 'no resource'}"
    for action in actions:
        if not any(action == each for each, _ in supported):
            yield f"{action} knows none of {statement['Resource']}"
    for resource in listed(statement["Resource"]) if actions else ():
        if not any(resource == each for _, each in supported):
            yield f"no action of {statement['Sid']} knows {resource}"


STATEMENTS = [
    pytest.param(statement, id=f"{name}: {statement['Sid']}")
    for name, document in documents().items()
    for statement in document["Statement"]
]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_uses_what_its_actions_know(statement):
    assert list(wrong(statement)) == []


@pytest.mark.parametrize(
    ("actions", "resource", "key", "words"),
    [
        # what was tried first, or is often written
        (["iam:PassRole"], "arn:aws:iam::1:role/x", "aws:ResourceTag/a", "iam:PassRole has no aws:ResourceTag"),
        (["ec2:RunInstances"], "arn:aws:ec2:r:1:subnet/*", "ec2:InstanceType", "has no ec2:InstanceType for subnet"),
        (["ec2:RunInstances"], "arn:aws:ec2:r:1:instance/*", "ec2:ResourceTag/a", "has no ec2:ResourceTag"),
        (["ec2:DescribeInstances"], "arn:aws:ec2:r:1:instance/*", None, "knows none of"),
        (["iam:CreateInstanceProfile"], "arn:aws:iam::1:instance-profile/x", "iam:PermissionsBoundary", "has no iam:"),
        (["eks:CreateCluster"], "arn:aws:eks:r:1:cluster/x", None, "knows none of"),
    ],
)
def test_what_aws_does_not_know_is_found(actions, resource, key, words):
    condition = {"Condition": {"StringEquals": {key: "x"}}} if key else {}
    said = list(wrong({"Sid": "s", "Action": actions, "Resource": [resource], **condition}))
    assert said and words in said[0]


def test_the_reference_says_where_and_when_it_was_read():
    assert reference()["source"].startswith("https://docs.aws.amazon.com/service-authorization/")
    assert str(reference()["read"]) == "2026-08-22"


# ---- the stand-in's own


def named(actions):
    """Of moto's nested map of S3's calls."""
    return {name for each in actions.values() for name in (named(each) if isinstance(each, dict) else [each])}


def asked_by_the_lab():
    """Actions that the lab's IAM judges by, and whatever else it writes in their form: condition keys."""
    calls = {
        f"{service}:{OF_BUDGETS.get(name, name) if service == 'budgets' else name.removesuffix('Batch')}"
        for service, name in CALLS
    }
    text = "".join(path.read_text() for path in sorted(Path(lab.aws.__file__).parent.glob("*.py")))
    services = "|".join(sorted({action.partition(":")[0] for action in reference()["actions"]}))
    calls |= {f"s3:{s3_calls.OF_OTHER_NAME.get(name, name)}" for name in named(ACTION_MAP)}
    return calls | set(re.findall(rf'"((?:{services}):[A-Z]\w+)"', text))


def test_what_the_lab_judges_by_is_known_to_aws():
    """A misspelt action, or a key that AWS doesn't have, would make a policy good in the lab alone."""
    known = {
        *reference()["actions"],
        *reference()["others"],
        *reference()["keys"],
        "kms:ViaService",
    }  # one of KMS's own, of any action
    for action in reference()["actions"].values():
        known |= {*action["keys"], *(key for keys in action.get("types", {}).values() for key in keys)}
    asked = asked_by_the_lab()
    assert {"ec2:RunInstances", "budgets:ViewBudget", "s3:GetObject", "iam:PassedToService"} <= asked
    assert sorted(asked - known) == []
