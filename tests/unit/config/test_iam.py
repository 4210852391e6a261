"""What IAM takes, counted before `up`: the sizes are those of AWS's quotas, not of what our code accepts."""

import json
from pathlib import Path

import pytest
import yaml

from ironburst import cli
from ironburst.config import checks, load
from ironburst.config.aws import sizes, up_policies
from tests.pki import issue
from tests.unit.config.conftest import LAB
from tests.unit.config.test_checks import NOW, findings
from tests.unit.kubernetes_stack import on_eks
from tests.unit.largest_cloud import enlarge

QUOTAS = {"inline": 10_240, "managed": 6_144, "trust": 2_048}
"""https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html, read 2026-11-28"""


def refused(value):
    """What is said of sizes, by the key that it is said of."""
    found = checks.check(load.from_value(value), NOW)
    return {each.path.split("cluster.", 1)[1]: each.message for each in found if each.rule == "iam-size"}


def test_every_policy_of_the_largest_site_is_below_its_limit(declared):
    config = load.from_value(enlarge(declared))
    sized = list(sizes.of(config, config.cloud))
    assert {each.kind: each.most for each in sized} == {kind: QUOTAS[kind] for kind in ("inline", "managed")}
    assert len([each for each in sized if each.role.startswith("node-pool")]) == 12
    assert all(each.size <= each.most for each in sized) and not refused(declared)


def test_a_pool_more_costs_what_its_own_name_and_roles_cost(declared):
    """Nothing by zone, by type that another pool has, or by template: 12 pools of 12 templates each."""

    def controller(pools, zones=4):
        value = enlarge(load.read_value(LAB), pools)
        for pool in value["cloud"]["pools"]:
            pool["zones"] = pool["zones"][:zones]
        config = load.from_value(value)
        return next(each.size for each in sizes.of(config, config.cloud) if each.role == "controller")

    assert controller(12, zones=1) == controller(12)
    assert controller(12) - controller(11) < 200


def test_too_many_pools_are_refused_with_the_size_that_they_would_have(declared):
    enlarge(declared, pools=60)
    ((path, message),) = refused(declared).items()
    assert path == "cloud.pools" and "and IAM takes 10,240 for the inline policies of a role together" in message
    assert "declare fewer pools in this stack" in message


def test_too_many_data_sets_of_one_pool(declared):
    declared["cloud"]["data"] = {f"set{n}": {"s3": f"training-data-{n}/imagenet"} for n in range(60)}
    declared["cloud"]["pools"][0]["data"] = list(declared["cloud"]["data"])
    ((path, message),) = refused(declared).items()
    assert path == "cloud.pools[0].data" and "name fewer data sets" in message


def test_too_many_subjects_of_ci(declared):
    subjects = [f"repo:organization/site:environment:preview-{n}" for n in range(60)]
    declared["cloud"]["ci"] = {"issuer": "token.actions.githubusercontent.com", "preview": subjects}
    ((path, message),) = refused(declared).items()
    assert path == "cloud.ci.preview" and "2,048 for a role's trust policy: name fewer subjects" in message


@pytest.mark.parametrize(("region", "partition"), [("cn-north-1", "aws-cn"), ("us-east-1", "aws")])
def test_sizes_are_of_the_regions_own_partition(declared, region, partition):
    declared["cloud"]["region"] = region
    assert sizes.where(load.from_value(declared).cloud).partition == partition


BOUNDARY = "arn:aws:iam::123456789012:policy/security/gpu"


@pytest.mark.parametrize(
    ("iam", "words"),
    [
        ({"permissions_boundary": BOUNDARY, "path": "/ironburst/"}, None),
        ({"permissions_boundary": "arn:aws:iam::aws:policy/PowerUserAccess"}, None),
        ({"permissions_boundary": "gpu"}, "permissions_boundary"),
        ({"permissions_boundary": "arn:aws:iam::123456789012:role/gpu"}, "permissions_boundary"),
        ({"path": "ironburst"}, "path"),
        ({"path": "/ironburst"}, "path"),
        ({"path": "//"}, "path"),
        ({"path": "/a b/"}, "path"),
        ({"permissions_boundary": BOUNDARY.replace("aws:", "aws-cn:", 1)}, "is of the partition aws-cn"),
        # whoever does `up` may write versions of the policies that are called so
        ({"permissions_boundary": "arn:aws:iam::123456789012:policy/lab-gpu"}, "could change what bounds him"),
        (
            {"permissions_boundary": "arn:aws:iam::123456789012:policy/x/lab-gpu", "path": "/x/"},
            "could change what bounds him",
        ),
        ({"permissions_boundary": "arn:aws:iam::123456789012:policy/x/lab-gpu"}, None),
    ],
)
def test_a_boundary_and_a_path(declared, iam, words):
    declared["cloud"]["iam"] = iam
    said = [str(each) for each in findings(declared)]
    assert not said if words is None else len(said) == 1 and words in said[0], said


@pytest.mark.parametrize("change", [enlarge, on_eks, lambda value: value])
def test_the_policies_for_up_fit_and_give_no_way_out(declared, change):
    change(declared)
    declared["cloud"] |= {"iam": {"permissions_boundary": BOUNDARY, "path": "/ironburst/"}}
    declared["cloud"]["controller"] = {"ca": issue("authority", ca=True).pem, "common_name": "head.hall-a"}
    config = load.from_value(declared)
    written = up_policies.policies_of(config, config.cloud, sizes.where(config.cloud))
    assert all(sizes.size(policy) <= QUOTAS["managed"] for policy in written.values())
    statements = [each for policy in written.values() for each in policy["Statement"] if each["Effect"] == "Allow"]
    # https://docs.aws.amazon.com/IAM/latest/UserGuide/access_policies_boundaries.html, "delegating responsibility"
    for statement in statements:
        asked, where = {name.partition(":")[2] for name in statement["Action"]}, statement["Resource"]
        if asked & {"CreateRole", "PutRolePolicy", "AttachRolePolicy", "PutRolePermissionsBoundary"}:
            assert statement["Condition"]["StringEquals"] == {"iam:PermissionsBoundary": BOUNDARY}
        if "PassRole" in asked:
            assert set(statement["Condition"]["StringEquals"]) == {"iam:PassedToService"}
        of_iam = [name for name in statement["Action"] if name.startswith("iam:") and "List" not in name]
        if of_iam and statement["Sid"] not in ("Ask", "ServiceRole"):
            assert all(f"/ironburst/{config.name}-*" in arn for arn in where), statement
        assert not any(name in ("*", "iam:*", "sts:*") for name in statement["Action"])


def test_rights_are_printed_and_written(declared, tmp_path, capsys):
    stack = tmp_path / "Pulumi.lab.yaml"

    def said(*arguments):
        stack.write_text(yaml.safe_dump({"config": {"ironburst:cluster": declared, **settings}}))
        code = cli.main(["rights", str(stack), *arguments])
        return code, *capsys.readouterr()

    settings = {}
    code, _, wrong = said("--account", "123456789012")
    assert code == 2 and "who may make roles without one can give himself any right" in wrong
    declared["cloud"]["iam"] = {"permissions_boundary": BOUNDARY}
    code, _, wrong = said()
    assert code == 2 and "which account?" in wrong
    settings["aws:allowedAccountIds"] = ["210987654321"]
    code, printed, _ = said()
    assert code == 0 and set(json.loads(printed)) == {"up-roles", "up-resources"} and "210987654321" in printed
    code, printed, _ = said("--account", "123456789012", "--out", str(tmp_path / "rights"))
    files = printed.split()
    assert code == 0 and [path.rpartition("/")[2] for path in files] == ["up-roles.json", "up-resources.json"]
    assert json.loads(Path(files[0]).read_text())["Version"] == "2012-10-17"
    settings.clear()
    del declared["cloud"], declared["budget"], declared["burst"]
    code, _, wrong = said()
    assert code == 2 and "declares no cloud" in wrong


# what a company's tag policy asks for, and what people paste from Kubernetes or from another account's console
@pytest.mark.parametrize(
    ("tags", "words"),
    [
        ({"CostCenter": "4711", "Überschrift": ""}, "can't be shown in the metadata"),
        ({"CostCenter": "4711", "owner": "Jürgen / R&D".replace("&", "+")}, None),
        ({"Cost Center": "4711"}, "can't be shown in the metadata of instances"),
        ({"acme.com/cost-center": "4711"}, "write letters, digits and + - = . _ : @"),
        ({"_index": "4711"}, "can't be shown"),
        ({"a,b": "4711"}, "write letters, digits"),
        ({"aws:cost": "4711"}, "begins with aws:"),
        ({"AWS:cost": "4711"}, "begins with aws:"),
        ({"Name": "gpu"}, "is ours"),
        ({"name": "gpu"}, "is ours"),
        ({"ironburst:cluster": "other"}, "is ours"),
        ({"kubernetes.io/cluster/x": "owned"}, "is ours"),
        ({"CostCenter": "1", "costcenter": "2"}, "differs from 'CostCenter' in case alone"),
        ({"k" * 129: "1"}, "has 129 characters, and AWS takes 128"),
        ({"k": "v" * 257}, "has 257 characters, and AWS takes 256"),
        ({"k": "a;b"}, "has ';'"),
        ({"": "x"}, "is empty"),
        ({f"key-{n}": "" for n in range(42)}, "has 42, and a resource takes 50, of which 9 are ours"),
        ({f"key-{n}": "" for n in range(41)}, None),
    ],
)
def test_tags_of_the_organization(declared, tags, words):
    declared["cloud"]["tags"] = tags
    said = [str(each) for each in findings(declared)]
    assert not said if words is None else len(said) == 1 and words in said[0], said


def test_nodes_of_eks_show_no_tags_so_their_keys_may_have_a_slash(declared):
    on_eks(declared)
    declared["cloud"]["tags"] = {"acme.com/cost-center": "4711"}
    assert not [each for each in findings(declared) if each.rule == "tags"]
