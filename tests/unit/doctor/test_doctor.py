"""What the doctor judges, without a cloud: which quota counts, what a simulator's silence means, and that no finding is
a dead end.
"""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ironburst.catalog.aws import instances
from ironburst.config.aws import policies
from ironburst.config.checks.aws.provider import allowed_accounts
from ironburst.config.load import load, settings
from ironburst.doctor.aws import identity, quotas
from ironburst.doctor.aws.account import Caller, IamDecision, IamQuestion
from ironburst.doctor.aws.rights import OURS, judged
from ironburst.doctor.aws.site import AwsSite
from ironburst.doctor.checks import CheckResult, Unasked, answered
from tests.fakes import document

STACKS = Path(__file__).parents[3] / "stacks"
ROLE = "arn:aws:iam::123456789012:role/lab-controller-0a1b2c3"


class Asked:
    """An account that says who asks and of what status its region is."""

    def __init__(self, arn="arn:aws:iam::123456789012:user/ops", opt_in="opt-in-not-required"):
        self.arn, self.opt_in = arn, opt_in

    def caller(self):
        return Caller(self.arn, "123456789012")

    def region_opt_in(self):
        return self.opt_in


def site(**more):
    config = load(STACKS / "Pulumi.prod.yaml")
    return AwsSite(config=config, cloud=config.cloud, account=Asked(**more), now=datetime(2026, 11, 21, tzinfo=UTC))


@pytest.mark.parametrize(("state", "todo"), [("ok", "something"), ("fail", ""), ("warn", ""), ("unknown", "")])
def test_no_finding_is_a_dead_end_and_ok_asks_for_nothing(state, todo):
    with pytest.raises(ValueError, match="to do"):
        CheckResult("quotas", "vCPUs", state, "seen", todo)


def test_a_question_without_an_answer_hides_no_finding_before_it():
    def found():
        yield CheckResult("zones", "a", "ok", "available")
        raise Unasked("the caller lacks ec2:DescribeZones", "allow it")

    first, second = answered("zones", "zones", found())
    assert (first.state, second.state, second.todo) == ("ok", "unknown", "allow it")


@pytest.mark.parametrize(
    ("instance_type", "on_demand", "spot"),
    [
        ("p3dn.24xlarge", "L-417A185B", "L-7212CCBC"),
        ("p4de.24xlarge", "L-417A185B", "L-7212CCBC"),
        ("p5en.48xlarge", "L-417A185B", "L-C4BD4855"),
        ("p6-b200.48xlarge", "L-417A185B", None),
        ("g6e.12xlarge", "L-DB2E81BA", "L-3819A6DF"),
        ("gr6.4xlarge", "L-DB2E81BA", "L-3819A6DF"),
        ("m7i.2xlarge", "L-1216C47A", "L-34B43A08"),
        ("trn2.48xlarge", None, None),
        ("u-6tb1.metal", None, None),
    ],
)
def test_which_quota_counts(instance_type, on_demand, spot):
    assert (quotas.code_of(instance_type, "on-demand"), quotas.code_of(instance_type, "spot")) == (on_demand, spot)


def test_every_type_that_may_be_declared_has_a_quota_on_demand():
    types = [kind.name for kind in instances.instance_types().values() if kind.gpu]
    assert types and [name for name in types if not quotas.code_of(name, "on-demand")] == []


def test_what_a_stack_may_run_is_counted_by_quota_and_market():
    wanted = {(need.who, need.market): (need.code, need.vcpus) for need in quotas.needs(site())}
    assert wanted == {
        ("group inference", "on-demand"): ("L-417A185B", 2 * 192),
        ("pool p5", "on-demand"): ("L-417A185B", 8 * 192),
        ("pool p4d", "spot"): ("L-7212CCBC", 4 * 96),
        ("pool p4d", "on-demand"): ("L-417A185B", 4 * 96),
    }


# ---- the simulator
def test_the_keys_that_our_policies_ask_for_are_known():
    where = policies.Scope("aws", "us-east-1", "123456789012")
    pools = policies.Pools(["p5"], ["p5.48xlarge"], ["reservation"], True, ["queue"], ["1"])
    written = [policies.ending(where, "lab"), policies.launching(where, "lab", pools, [ROLE])]
    statements = [each for each_document in written for each in each_document["Statement"]]
    keys = {key for each in statements for tests in each.get("Condition", {}).values() for key in tests}
    assert keys and [key for key in keys if not OURS.fullmatch(key)] == []


@pytest.mark.parametrize(
    ("verdict", "state"),
    [
        (IamDecision("allowed", ("ec2:Owner",)), "ok"),
        (IamDecision("implicitDeny", ("ec2:Owner", "aws:RequestTag/ironburst:pool")), "fail"),
        (IamDecision("implicitDeny", ("aws:PrincipalTag/team",)), "unknown"),
        (IamDecision("explicitDeny", ("aws:PrincipalTag/team",)), "fail"),
        (IamDecision("implicitDeny", by_organization=True), "fail"),
    ],
)
def test_keys_that_the_simulator_lacks_count_where_they_are_not_ours(verdict, state):
    assert judged("rights", ROLE, IamQuestion("ec2:RunInstances"), verdict, "run `pulumi up`").state == state


# ---- who asks
def test_the_root_user_is_told_to_use_another():
    first, region = identity.check(site(arn="arn:aws:iam::123456789012:root"))
    assert (first.state, region.state) == ("warn", "ok") and "role or user" in first.todo


def test_a_region_that_the_account_has_not_enabled():
    _, region = identity.check(site(opt_in="not-opted-in"))
    assert region.state == "fail" and "enable-region --region-name us-east-1" in region.todo


def test_the_account_of_the_documents_queues_is_the_declared_one():
    url = "https://sqs.us-east-1.amazonaws.com/999999999999/lab-interruptions"
    published = document()
    pool = published.pools[0].model_copy(update={"notices": url})
    of_another = replace(site(), document=published.model_copy(update={"pools": [pool], "region": "us-east-1"}))
    first, _ = identity.check(of_another)
    assert first.state == "fail" and "999999999999" in first.seen


def test_a_stack_file_names_the_accounts_that_it_allows(tmp_path):
    path = tmp_path / "Pulumi.x.yaml"
    path.write_text("config:\n  aws:allowedAccountIds: ['123456789012', 210987654321]\n")
    assert allowed_accounts(settings(path)) == ["123456789012", "210987654321"]
    path.write_text("config: {}\n")
    assert allowed_accounts(settings(path)) == []
