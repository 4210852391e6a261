"""What IAM takes, counted before `up`: the sizes are those of AWS's quotas, not of what our code accepts."""

import pytest

from ironburst.config import checks, load
from ironburst.config.aws import iam_sizes
from tests.unit.config.conftest import LAB
from tests.unit.config.test_checks import NOW
from tests.unit.largest_cloud import enlarge

QUOTAS = {"inline": 10_240, "managed": 6_144, "trust": 2_048}
"""https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html, read 2026-11-28"""


def refused(value):
    """What is said of sizes, by the key that it is said of."""
    found = checks.check(load.from_value(value), NOW)
    return {each.path.split("cluster.", 1)[1]: each.message for each in found if each.rule == "iam-size"}


def test_every_policy_of_the_largest_site_is_below_its_limit(declared):
    config = load.from_value(enlarge(declared))
    sized = list(iam_sizes.of(config, config.cloud))
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
        return next(each.size for each in iam_sizes.of(config, config.cloud) if each.role == "controller")

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
    assert iam_sizes.where(load.from_value(declared).cloud).partition == partition
